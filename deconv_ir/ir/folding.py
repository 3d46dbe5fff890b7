"""Small tensors computed from constants, so that shapes that a graph computes are known."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from deconv_ir.errors import DeconvError
from deconv_ir.ir.geometry import Dim, bounds
from deconv_ir.ir.operation import Context, Infos, Operation, TensorInfo
from deconv_ir.ir.shapes import Shape, compatible

if TYPE_CHECKING:
    from deconv_ir.ir.dtypes import Array

VALUE_LIMIT = 64
"""Maximum number of elements of a tensor whose value inference tracks."""

_MOST_REALS = 16
"""Maximum number of elements of a list of floating-point numbers that is computed, as scales."""

_MOST_WORK = 1 << 20
"""Bound on the product of all numbers of the attributes: pads may need large arrays."""


def fold(
    operation: Operation, inputs: Infos, outputs: tuple[TensorInfo, ...], context: Context
) -> tuple[TensorInfo, ...]:
    """Add the elements of small outputs if all inputs are known.

    Inputs that the operation `moves` may be known in part.  An error is left to the run.
    """
    if not inputs or any(info.value is None and info.reals is None for info in inputs):
        return outputs
    if all(info.value is not None or info.reals is not None for info in outputs):
        return outputs
    if not _may_run(operation) or not all(map(_is_small, outputs)):
        return outputs
    table = _codes(operation, inputs)
    if table is None:
        return outputs
    import numpy as np

    try:
        with np.errstate(all="ignore"):
            arrays = operation.execute(_arrays(operation, inputs, table), context)
    except (DeconvError, ArithmeticError, ValueError):
        return outputs
    return tuple(_known(i, array, table) for i, array in zip(outputs, arrays, strict=False))


def _may_run(operation: Operation) -> bool:
    if operation.bodies or operation.read_variable or operation.assigned_variable:
        return False
    numbers = _integers(getattr(operation, name) for name in operation.fields)
    work = math.prod(1 + abs(number) for number in numbers)
    return operation.implemented and operation.is_repeatable and work <= _MOST_WORK


def _integers(values: Any) -> Iterator[int]:
    for value in values:
        if isinstance(value, int):
            yield value
        elif isinstance(value, tuple):
            yield from _integers(value)


def _is_small(info: TensorInfo) -> bool:
    if info.shape is None or info.element_type is None or info.element_type.kind == "string":
        return False
    most = [bounds(dim)[1] for dim in info.shape]
    if info.element_type.is_float and len(most) > 1:
        return False
    limit = _MOST_REALS if info.element_type.is_float else VALUE_LIMIT
    return None not in most and math.prod(high for high in most if high is not None) <= limit


def _codes(operation: Operation, inputs: Infos) -> Sequence[Dim] | None:
    """Return elements that stand for themselves: empty if all are known, None if not foldable.

    The table has the elements of all moved inputs, which run as the indices of the table.
    """
    partly = [i for i, info in enumerate(inputs) if not _is_exact(info)]
    if not partly:
        return ()
    if not set(partly) <= set(operation.moves):
        return None
    moved = (inputs[i].value or () for i in operation.moves if i < len(inputs))
    return tuple(itertools.chain.from_iterable(moved))


def _is_exact(info: TensorInfo) -> bool:
    return info.value is None or all(type(element) is int for element in info.value)


def _arrays(operation: Operation, inputs: Infos, table: Sequence[Dim]) -> list[Array]:
    import numpy as np

    arrays: list[Array] = []
    start = 0
    for i, info in enumerate(inputs):
        elements: Any = info.value if info.reals is None else info.reals
        if table and i in operation.moves:
            array = np.arange(start, start + len(elements))
            start += len(elements)
        else:
            if info.element_type is None:
                raise ValueError("the element type is not known")
            array = np.array(elements, info.element_type.numpy())
        arrays.append(array.reshape(_extents(info.shape)))
    return arrays


def _extents(shape: Shape) -> tuple[int, ...]:
    if shape is None or not all(isinstance(dim, int) for dim in shape):
        raise ValueError("the shape is not static")
    return tuple(dim for dim in shape if isinstance(dim, int))


def _known(info: TensorInfo, array: Array, table: Sequence[Dim]) -> TensorInfo:
    """Return an info with the elements of an array."""
    if info.value is not None or info.reals is not None or not compatible(array.shape, info.shape):
        return info
    assert info.element_type is not None, "the tensor is small"
    shape = tuple(map(int, array.shape))
    if info.element_type.is_float:
        reals = tuple(map(float, array.ravel()))
        return info._replace(shape=shape, reals=reals) if all(map(math.isfinite, reals)) else info
    found = tuple(map(int, array.ravel()))
    return info._replace(shape=shape, value=tuple(table[c] for c in found) if table else found)
