"""What the steps of the NumPy path cost: one model for the choice of methods and of tiles.

Figures are nanoseconds for an element of f32 on one core that makes 90
GFLOP/s; only their relation matters.
"""

from __future__ import annotations

from typing import NamedTuple

from deconv_ir.kernels.box import Box
from deconv_ir.kernels.problem import PhaseSet

__all__ = ["ADD", "CALL", "Cost", "gather_time", "product_time", "write_time"]

# A pass over two operands in the caches.
ADD = 0.15
# A call of NumPy on views made for it.
CALL = 2500.0
# The BLAS: a multiply-add, packing either operand, storing a result.
_MULTIPLY, _PACK, _STORE = 0.022, 0.35, 0.3
# Copying with a stride or in short rows: an element, and a row.
_STRIDED, _ROW = 0.4, 8.0
# Writing results: an element.
_WRITE = 0.5
_WRITE_CALL = 9000.0


class Cost(NamedTuple):
    """Of one tile: elements of scratch, and nanoseconds."""

    elements: int
    nanoseconds: float


def product_time(box: Box, rows: int, depth: int, columns: int) -> float:
    """Estimate the products of a tile: `rows` for each output channel, all blocks and groups."""
    blocks = -(-box.outs // box.block)
    rows *= box.outs
    if rows <= blocks:
        return box.groups * blocks * 4 * _MULTIPLY * depth * columns
    padded = -(-rows // 4) * 4
    multiply = _MULTIPLY * padded * depth * columns + _STORE * rows * columns
    packing = _PACK * depth * (blocks * columns + rows)
    return CALL * blocks + box.groups * (multiply + packing)


def gather_time(elements: int, copies: int, row: int) -> float:
    """Estimate copies that together make `elements`, in rows of `row`."""
    return CALL * 2 * copies + elements * (_STRIDED + _ROW / max(1, row))


def write_time(box: Box, results: int, phases: PhaseSet) -> float:
    """Estimate the writing of `results` for each output channel."""
    row = max(1, box.size[-1])
    calls = -(-box.outs // box.block) * len(phases.axes[-1].phases)
    for axis in phases.axes[:-1]:
        calls *= min(len(axis.phases), 2)
    return calls * _WRITE_CALL + box.groups * box.outs * results * (_WRITE + _ROW / row)
