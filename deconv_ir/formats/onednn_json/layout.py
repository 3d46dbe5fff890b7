"""Physical layouts: memory as the strides of tensors describe it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from deconv_ir.errors import InputError
from deconv_ir.ir.graph import Port

if TYPE_CHECKING:
    from deconv_ir.ir.dtypes import Array


def strides_of(port: Port) -> tuple[int, ...] | None:
    """Return the strides that a tensor declares; None where there are none."""
    for info in port.extras:
        if info.tag == "layout":
            text = dict(info.attributes)["stride"]
            return tuple(map(int, text.split(","))) if text else None
    return None


def strides_problem(shape: Sequence[int], strides: Sequence[int]) -> str | None:
    """Say why strides do not give every element of a shape a place of its own.

    Axes are taken from the innermost outwards: each step must pass over all
    that the axes before it span.
    """
    if len(shape) != len(strides):
        return f"{len(strides)} strides for {len(shape)} dims"
    reached = 1
    for stride, extent in sorted(zip(strides, shape, strict=True)):
        if extent <= 1:
            continue
        if stride < reached:
            return f"stride {stride} of a dim of {extent} does not pass over {reached} elements"
        reached = stride * (extent - 1) + reached
    return None


def span(shape: Sequence[int], strides: Sequence[int]) -> int:
    """Return the elements between the first and the last one, both counted."""
    if 0 in shape:
        return 0
    return 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))


def to_physical(array: Array, strides: Sequence[int]) -> Array:
    """Return memory in which an array has certain strides; gaps are zeros.

    Raises
    ------
    InputError
        The strides do not give every element a place of its own.
    """
    import numpy as np

    problem = strides_problem(array.shape, strides)
    if problem is not None:
        raise InputError(f"the strides do not describe a layout: {problem}")
    memory = np.zeros(span(array.shape, strides), array.dtype)
    width = array.dtype.itemsize
    view = np.lib.stride_tricks.as_strided(memory, array.shape, [s * width for s in strides])
    if array.size:
        view[...] = array
    return memory


def dense_strides(dims: Sequence[int], tag: str) -> tuple[int, ...]:
    """Return the strides of dense memory whose axes are in the order of a tag."""
    strides = [0] * len(dims)
    step = 1
    for letter in reversed(tag):
        axis = ord(letter) - 97
        strides[axis] = step
        step *= max(1, dims[axis])
    return tuple(strides)
