"""Compiled LSTM and GRU over time, in f32.

Names of axes: N sequences, T time, D directions, I inputs, H hidden units, G gates, and B
blocks of `UNITS` units; the last block is filled up with zeros.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from deconv_ir.ir.dtypes import Array
from deconv_ir.ir.lazy_tensor import Constant, rows_of
from deconv_ir.kernels.runtime import interface
from deconv_ir.kernels.runtime.cpu import INSTRUCTION_SETS, current_machine, instruction_set
from deconv_ir.kernels.runtime.extension import compiled_module
from deconv_ir.kernels.runtime.threads import get_threads

UNITS = 16
"""Units of a block, as in recurrent.h."""


class PackedCells(NamedTuple):
    """Weights in the order in which a time step (a moment) reads them."""

    w: Array
    """``[D, B, I, G, UNITS]``"""
    r: Array
    """``[D, B, H, G, UNITS]``"""
    b: Array
    """``[D, B, G, UNITS]``"""
    inner: Array | None
    """``[D, B, UNITS]``: for a GRU, the bias that the reset multiplies; None for an LSTM."""

    @property
    def gates(self) -> int:
        """Number of gates."""
        return int(self.r.shape[3])


def pack(
    w: Constant, r: Constant, b: Array, order: Sequence[int] | None = None
) -> PackedCells | None:
    """Pack the weights of an LSTM (gates f, i, c, o) or a GRU (z, r, h).

    W is ``[D, G * H, I]``, R ``[D, G * H, H]`` and B ``[D, G * H]``, or ``[D, 4 * H]`` for a GRU
    whose reset follows the product.  W and R have the gates in another `order`, if it is given:
    the place of each.  Returns None if the extension was not built, or for numbers that are not
    all numbers of f32.
    """
    if compiled_module() is None:
        return None
    if not all(np.can_cast(one.dtype, np.float32) for one in (w, r, b)):
        return None
    h = r.shape[2]
    gates = r.shape[1] // h
    order = range(gates) if order is None else order
    inner = None if gates == 4 else _blocks(b[:, 3 * h :], 1)[:, :, 0]
    return PackedCells(
        _packed(w, h, order),
        _packed(r, h, order),
        _blocks(b[:, : gates * h].astype(np.float32, copy=False), gates),
        inner,
    )


def _packed(weights: Constant, h: int, order: Sequence[int]) -> Array:
    """Reorder ``[D, G * H, I]`` to ``[D, B, I, G, UNITS]``, in parts."""
    directions, rows, inputs = weights.shape
    blocks = -(-h // UNITS)
    packed = np.zeros((directions, blocks, inputs, len(order), UNITS), np.float32)
    of_rows = weights.reshape(directions * rows, inputs)
    places = itertools.product(range(directions), range(blocks), enumerate(order))
    for direction, block, (gate, place) in places:
        first, last = block * UNITS, min((block + 1) * UNITS, h)
        begin = direction * rows + place * h
        part = rows_of(of_rows, begin + first, begin + last)
        packed[direction, block, :, gate, : last - first] = part.T
    return packed


def _blocks(rows: Array, gates: int) -> Array:
    """Reorder ``[D, G * H, ...]`` to ``[D, B, G, UNITS, ...]``."""
    d, h, rest = rows.shape[0], rows.shape[1] // gates, rows.shape[2:]
    blocks = -(-h // UNITS)
    padded = np.zeros((d, gates, blocks * UNITS, *rest), rows.dtype)
    padded[:, :, :h] = rows.reshape(d, gates, h, *rest)
    split = padded.reshape(d, gates, blocks, UNITS, *rest)
    return np.ascontiguousarray(split.swapaxes(1, 2))


def _rows(blocks: Array, h: int) -> Array:
    """Undo `_blocks`."""
    d, count, gates, _, *rest = blocks.shape
    return (
        blocks.swapaxes(1, 2)
        .reshape(d, gates, count * UNITS, *rest)[:, :, :h]
        .reshape(d, gates * h, *rest)
    )


def unpack(packed: PackedCells) -> list[Array]:
    """Return the original W, R and B."""
    h = packed.r.shape[2]
    w, r = (_rows(weights.transpose(0, 1, 3, 4, 2), h) for weights in (packed.w, packed.r))
    inner = [] if packed.inner is None else [_rows(packed.inner[:, :, None], h)]
    return [w, r, np.concatenate([_rows(packed.b, h), *inner], 1)]


def recur(
    x: Array,
    first: Sequence[Array],
    packed: PackedCells,
    backwards: Callable[[int], bool],
    at_once: int,
) -> list[Array]:
    """Run ``[N, T, I]`` over all time steps, from states ``[N, D, H]``.

    The initial states are the hidden state and, for an LSTM, the cell state.  `backwards` returns
    whether a direction starts with the last element; the inputs of `at_once` moments are multiplied
    by W at once.  Returns all hidden states ``[N, D, T, H]`` and the last states; the bits are the
    same for any number of threads or sequences.
    """
    module = compiled_module()
    assert module is not None, "the weights are packed for it"
    batch, time, _ = x.shape
    directions, blocks, h = packed.r.shape[:3]
    width = blocks * UNITS
    states = [np.zeros((directions, batch, width), np.float32) for _ in first]
    for state, given in zip(states, first, strict=True):
        state[:, :, :h] = given.swapaxes(0, 1)
    hidden = np.stack([states[0], states[0]])
    other = states[1] if packed.inner is None else packed.inner
    steps = np.empty((batch, directions, time, h), np.float32)
    flags = sum(1 << d for d in range(directions) if backwards(d))
    isa = instruction_set()
    projected = np.empty((directions, at_once, batch, packed.gates * width), np.float32)
    fields = interface.recur_fields(
        isa=INSTRUCTION_SETS.index(isa),
        is_gru=packed.inner is not None,
        backwards=flags,
        threads=get_threads(),
        multiply_adds=current_machine().multiply_adds(isa),
    )
    module.recur(
        np.ascontiguousarray(x), packed.w, packed.r, packed.b, other, hidden, steps, projected,
        fields,
    )  # fmt: skip
    last = [hidden[0], *states[1:]]
    return [steps, *(state[:, :, :h].swapaxes(0, 1) for state in last)]
