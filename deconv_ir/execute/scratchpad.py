"""How much the layers of a plan may take for themselves.

Tiles that are larger, and weights transformed for minimal filtering, make
kernels faster and take memory.  They get so much of it that the peak stays
near the plan's lower bound, where it saves the most time.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from deconv_ir.ir.scratchpad import AlgorithmCandidate, ScratchpadBudget

LEAST_ROOM = 16 << 10
"""Bytes that scratch may always take: below, tiles are little but the data around them."""

_SHARE = 0.25
# What Python keeps of a layer, in the graph and in a plan; what allocators round up.
_LAYER_BYTES, _ROUNDED_BYTES = 5 << 10, 96 << 10
# Halvings of the room that are tried for scratch.
_TRIED = 4
# Beyond this a layer that can do with no scratch it is offered is not asked again.
_LARGEST_OFFER = 1 << 30


def budget(bound: int, layers: int) -> int:
    """Return the bytes that may be taken beyond the lower bound of a plan's peak.

    Parameters
    ----------
    bound : int
        The lower bound, with constants.
    layers : int
        How many the graph has, which take memory as well.
    """
    kept = layers * _LAYER_BYTES + _ROUNDED_BYTES
    return max(int(bound * _SHARE) - kept, LEAST_ROOM)


class _Choice(NamedTuple):
    """Rooms of all layers, and what they come to."""

    cycles: float
    rooms: list[ScratchpadBudget]
    most_scratch: int


def share(
    asks: Sequence[Callable[[int], Sequence[AlgorithmCandidate]]], room_bytes: int
) -> list[ScratchpadBudget]:
    """Choose what each layer may take.

    Parameters
    ----------
    asks : sequence of callable
        For each layer: takes bytes of scratch, and returns the ways to
        compute it, the first without more weights.
    room_bytes : int
        What scratch, of one layer after the other, and further weights, of
        all of them together, may take.

    Returns
    -------
    list of Room
    """
    best: _Choice | None = None
    for halvings in range(_TRIED):
        scratch = max(room_bytes >> halvings, LEAST_ROOM)
        found, everything = _with_scratch(asks, scratch, room_bytes)
        if best is None or found.cycles < best.cycles:
            best = found
        if everything or scratch == LEAST_ROOM:
            break
    return [] if best is None else best.rooms


def _with_scratch(
    asks: Sequence[Callable[[int], Sequence[AlgorithmCandidate]]], scratch: int, room_bytes: int
) -> tuple[_Choice, bool]:
    """Choose who gets weights, where each has so much scratch; tell whether all do."""
    rooms, most, cycles = [], 0, 0.0
    gains: list[tuple[float, float, int, int]] = []
    for number, ask in enumerate(asks):
        given, ways = scratch, ask(scratch)
        while math.isinf(ways[0].cycles) and given < _LARGEST_OFFER:
            given *= 4
            ways = ask(given)
        rooms.append(ScratchpadBudget(given, 0))
        most = max(most, *(way.scratch_bytes for way in ways))
        if not math.isinf(ways[0].cycles):
            cycles += ways[0].cycles
        for way in ways[1:]:
            gain = ways[0].cycles - way.cycles
            gains.append((gain / way.weight_bytes, gain, way.weight_bytes, number))
    left = room_bytes - most
    everything = True
    for _, gain, needed, number in sorted(gains, reverse=True):
        if needed <= left:
            left -= needed
            cycles -= gain
            rooms[number] = rooms[number]._replace(weight_bytes=needed)
        else:
            everything = False
    return _Choice(cycles, rooms, most), everything
