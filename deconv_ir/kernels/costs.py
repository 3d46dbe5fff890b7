"""What the steps of the NumPy path cost: one model for the choice of methods and of tiles.

Figures are nanoseconds for an element of f32 on one core that makes 90
GFLOP/s; only their relation matters.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

from deconv_ir.kernels.box import Box
from deconv_ir.kernels.problem import PhaseSet

__all__ = [
    "ADD",
    "LOOP",
    "LOOP_INTO_PARTS",
    "MULTIPLY_ADD",
    "SPREAD",
    "Cost",
    "Time",
    "gather_time",
    "product_time",
    "write_time",
]

# A pass over two operands in the caches.
ADD = 0.15
# The same with a factor, added to what is there: `numpy.einsum`.
MULTIPLY_ADD = 0.11
# A row of a pass, beside its elements; and of one that adds to parts of what is there.
LOOP, LOOP_INTO_PARTS = 60.0, 300.0
# Copying what lies in the caches to many places.
SPREAD = 0.25
# Elements of scratch that stay in the caches, and what each doubling adds to passes.
_NEAR = 3 << 18
_FAR = 0.35
# The BLAS: a multiply-add, packing either operand, storing a result.
_MULTIPLY, _PACK, _STORE = 0.022, 0.35, 0.2
# Packing an operand that lies in the caches nearest by: so many elements.
_PACK_NEAR, _NEAREST = 0.12, 1 << 14
# A product of a stack, beside its work.
_PRODUCT = 300.0
# Copying with a stride or in short rows: an element, and a row.
_STRIDED, _ROW = 0.33, 8.0
# Writing results: an element in rows that follow each other, and in others, which miss the
# caches; and the calls that making its views is worth.
_WRITE, _WRITE_APART = 0.4, 0.7
_WRITE_CALLS = 3.6
# A call of NumPy on views made for it, for which the thread holds the interpreter.
_HOLD = 2500.0
# Another thread that comes meanwhile must be woken again.
_WOKEN = 80_000.0


@dataclass(frozen=True, slots=True)
class Time:
    """Nanoseconds of matrix products and of passes over elements, and how many calls do it."""

    products: float = 0.0
    passes: float = 0.0
    calls: float = 0.0

    def __add__(self, other: Time) -> Time:
        return Time(
            self.products + other.products, self.passes + other.passes, self.calls + other.calls
        )

    def __mul__(self, factor: float) -> Time:
        return Time(self.products * factor, self.passes * factor, self.calls * factor)


class Cost(NamedTuple):
    """Of one tile: elements of scratch, and time."""

    elements: int
    time: Time

    def nanoseconds(self, *, shared: bool) -> float:
        """Return all of it; with `shared`, several threads work off such tiles at once."""
        far = 1 + _FAR * max(0.0, math.log2(max(1, self.elements) / _NEAR))
        held = self.time.calls * _HOLD
        alone = self.time.products + self.time.passes * far + held
        # As likely as the other thread holds the interpreter when this one asks for it.
        return alone + self.time.calls * _WOKEN * held / alone if shared and alone else alone


def product_time(box: Box, rows: int, depth: int, columns: int) -> Time:
    """Estimate the products of a tile: `rows` for each output channel, all blocks and groups."""
    blocks = -(-box.outs // box.block)
    rows *= box.outs
    if depth == 1:
        return Time(passes=box.groups * rows * (ADD * columns + LOOP), calls=blocks)
    if rows <= blocks:
        return Time(box.groups * blocks * (4 * _MULTIPLY * depth * columns + _PRODUCT))
    padded = -(-rows // 4) * 4
    multiply = _MULTIPLY * padded * depth * columns + _STORE * rows * columns
    pack = _PACK_NEAR if depth * columns <= _NEAREST else _PACK
    packing = pack * depth * (blocks * columns + rows)
    return Time(products=box.groups * (multiply + packing), calls=blocks)


def gather_time(elements: int, copies: int, row: int) -> Time:
    """Estimate copies that together make `elements`, in rows of `row`."""
    return Time(passes=elements * (_STRIDED + _ROW / max(1, row)), calls=2 * copies)


def write_time(box: Box, results: int, phases: PhaseSet) -> Time:
    """Estimate the writing of `results` for each output channel."""
    row = max(1, box.size[-1])
    writes = -(-box.outs // box.block) * len(phases.axes[-1].phases)
    apart = False
    for part, axis in zip(phases.axes[:-1], box.axes[:-1], strict=True):
        writes *= min(len(part.phases), 2)
        apart |= len(part.phases) < axis.stride
    each = _WRITE_APART if apart else _WRITE
    passes = box.groups * box.outs * results * (each + _ROW / row)
    return Time(passes=passes, calls=writes * _WRITE_CALLS)
