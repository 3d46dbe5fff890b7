"""Physical layouts: memory as the strides of tensors describe it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from deconv_ir.errors import InputError
from deconv_ir.ir.graph import Port

if TYPE_CHECKING:
    from deconv_ir.ir.dtypes import Array


def strides_of(port: Port) -> tuple[int, ...] | None:
    """Return the strides that a tensor declares; None if they are missing."""
    for info in port.extras:
        if info.tag == "layout":
            text = dict(info.attributes)["stride"]
            return tuple(map(int, text.split(","))) if text else None
    return None


def strides_error(shape: Sequence[int], strides: Sequence[int]) -> str | None:
    """Return the reason why strides make elements of a shape overlap; None if they do not.

    Axes are visited from the innermost outwards: each stride must pass over the span of the axes
    before it.
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
    """Return the number of elements from the first to the last one in memory, inclusive."""
    if 0 in shape:
        return 0
    return 1 + sum((n - 1) * s for n, s in zip(shape, strides, strict=True))


def to_physical(array: Array, strides: Sequence[int]) -> Array:
    """Return memory in which an array has certain strides; gaps are zeros.

    Raises
    ------
    InputError
        The strides make elements overlap.
    """
    import numpy as np

    error = strides_error(array.shape, strides)
    if error is not None:
        raise InputError(f"the strides do not describe a layout: {error}")
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
