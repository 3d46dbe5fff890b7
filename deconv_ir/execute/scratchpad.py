"""Chooses the scratchpad budget of each layer of a plan.

Larger tiles and weights transformed for Winograd make kernels faster but take
memory.  The budgets go where they save the most time, and keep the peak near
the plan's lower bound.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from deconv_ir.ir.scratchpad import AlgorithmCandidate, ScratchpadBudget

MIN_SCRATCHPAD = 16 << 10
"""Bytes that a scratchpad may always take: smaller tiles are mostly halo."""

_SHARE = 0.25
# Python objects of a layer, in the graph and in a plan; rounding by allocators.
_LAYER_BYTES, _ROUNDED_BYTES = 5 << 10, 96 << 10
# Scratchpad sizes that are tried: the whole budget, a half, a quarter and so on.
_TRIED = 4
# The largest scratchpad that is offered to a layer which cannot run in a smaller one.
_LARGEST_OFFER = 1 << 30


def extra_bytes(bound: int, layers: int) -> int:
    """Return the bytes that may be taken beyond the lower bound of a plan's peak.

    Parameters
    ----------
    bound : int
        The lower bound, with constants.
    layers : int
        Number of layers of the graph, whose objects take memory as well.
    """
    kept = layers * _LAYER_BYTES + _ROUNDED_BYTES
    return max(int(bound * _SHARE) - kept, MIN_SCRATCHPAD)


class _Choice(NamedTuple):
    """Budgets of all layers, their predicted time and the largest scratchpad."""

    cycles: float
    budgets: list[ScratchpadBudget]
    most_scratch: int


def choose_budgets(
    asks: Sequence[Callable[[int], Sequence[AlgorithmCandidate]]], budget_bytes: int
) -> list[ScratchpadBudget]:
    """Choose the budget of each layer.

    Parameters
    ----------
    asks : sequence of callable
        For each layer: takes the bytes of a scratchpad and returns the
        candidates, the first of which packs no further weights.
    budget_bytes : int
        Bound on the largest scratchpad plus the further weights of all layers.

    Returns
    -------
    list of ScratchpadBudget
    """
    best: _Choice | None = None
    for halvings in range(_TRIED):
        scratch = max(budget_bytes >> halvings, MIN_SCRATCHPAD)
        found, everything = _with_scratch(asks, scratch, budget_bytes)
        if best is None or found.cycles < best.cycles:
            best = found
        if everything or scratch == MIN_SCRATCHPAD:
            break
    return [] if best is None else best.budgets


def _with_scratch(
    asks: Sequence[Callable[[int], Sequence[AlgorithmCandidate]]], scratch: int, budget_bytes: int
) -> tuple[_Choice, bool]:
    """Choose the layers that pack further weights, and return whether all do."""
    budgets, most, cycles = [], 0, 0.0
    gains: list[tuple[float, float, int, int]] = []
    for number, ask in enumerate(asks):
        given, candidates = scratch, ask(scratch)
        while math.isinf(candidates[0].cycles) and given < _LARGEST_OFFER:
            given *= 4
            candidates = ask(given)
        budgets.append(ScratchpadBudget(given, 0))
        most = max(most, *(candidate.scratch_bytes for candidate in candidates))
        if not math.isinf(candidates[0].cycles):
            cycles += candidates[0].cycles
        for candidate in candidates[1:]:
            gain = candidates[0].cycles - candidate.cycles
            gains.append((gain / candidate.weight_bytes, gain, candidate.weight_bytes, number))
    left = budget_bytes - most
    everything = True
    for _, gain, needed, number in sorted(gains, reverse=True):
        if needed <= left:
            left -= needed
            cycles -= gain
            budgets[number] = budgets[number]._replace(weight_bytes=needed)
        else:
            everything = False
    return _Choice(cycles, budgets, most), everything
