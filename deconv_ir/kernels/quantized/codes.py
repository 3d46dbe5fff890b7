"""Codes of 8 bits: those of four channels in an element of u32, or each in an i8, less 128."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from deconv_ir.ir.quantization import FOUR, Levels
from deconv_ir.kernels.activation import Activation
from deconv_ir.kernels.runtime import interface
from deconv_ir.kernels.runtime.cpu import isa_number
from deconv_ir.kernels.runtime.extension import compiled_module
from deconv_ir.kernels.runtime.threads import get_threads

if TYPE_CHECKING:
    from deconv_ir.ir.dtypes import Array


Call = Callable[[], object]
_SIGN = 0x80


def coded_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of the codes of a tensor ``[N, C, *X]``."""
    return (shape[0], -(-shape[1] // FOUR), *shape[2:])


def quantize(data: Array, codes: Array, levels: Levels, groups: int = 1) -> None:
    """Write the codes of data ``[N, groups * C, *X]`` in f32, those of four channels in an element.

    `codes` is ``[N, groups * ceil(C / 4), *X]``, u32.
    """
    bind_quantize(data, codes, levels, groups)()


def bind_quantize(data: Array, codes: Array, levels: Levels, groups: int = 1) -> Call:
    """Return the call of `quantize`."""
    module = compiled_module()
    assert module is not None, "codes are for compiled kernels"
    stacks, positions = data.shape[0] * groups, math.prod(data.shape[2:])
    return functools.partial(
        module.quantize,
        data.reshape(stacks, -1, positions),
        codes.reshape(stacks, -1, positions),
        ranges_of(levels),
        interface.quantize_fields(
            isa=isa_number(),
            highest=levels.number - 1,
            threads=get_threads(),
        ),
    )


def bind_quantize_plain(data: Array, codes: Array, levels: Levels) -> Call:
    """Return a call that writes the codes of contiguous data, each in an i8, less 128."""
    module = compiled_module()
    assert module is not None, "codes are for compiled kernels"
    fields = interface.quantize_fields(
        isa=isa_number(), highest=levels.number - 1, threads=get_threads()
    )
    ranges = ranges_of(levels)
    return functools.partial(
        module.quantize, data.reshape(1, 1, -1), codes.reshape(1, 1, -1), ranges, fields
    )


def to_codes(data: Array) -> Array:
    """Return the codes of bytes ``[N, C, *X]``; those of int8 begin at -128."""
    count, channels, *extents = data.shape
    fours = -(-channels // FOUR)
    codes = np.zeros((count, fours, *extents, FOUR), np.uint8)
    for place in range(min(FOUR, channels)):
        part = data[:, place::FOUR].view(np.uint8)
        np.bitwise_xor(
            part, _SIGN if data.dtype == np.int8 else 0, out=codes[:, : part.shape[1], ..., place]
        )
    return codes.view(np.uint32)[..., 0]


def from_codes(codes: Array, channels: int, dtype: Any) -> Array:
    """Return the bytes ``[N, C, *X]`` of codes, uint8 or int8: the inverse of `to_codes`."""
    count, _, *extents = codes.shape
    found = np.empty((count, channels, *extents), np.uint8)
    parts = codes.view(np.uint8).reshape(*codes.shape, FOUR)
    for place in range(min(FOUR, channels)):
        out = found[:, place::FOUR]
        np.bitwise_xor(
            parts[:, : out.shape[1], ..., place], _SIGN if dtype == np.int8 else 0, out=out
        )
    return found.view(dtype)


def to_plain_codes(data: Array) -> Array:
    """Return the codes of bytes, each in an i8, less 128; those of int8 are the bytes."""
    return data if data.dtype == np.int8 else (data ^ np.uint8(_SIGN)).view(np.int8)


def from_plain_codes(codes: Array, dtype: Any) -> Array:
    """Return the bytes of codes, uint8 or int8: the inverse of `to_plain_codes`."""
    return codes if dtype == np.int8 else codes.view(np.uint8) ^ np.uint8(_SIGN)


def in_numpy(data: Array, levels: Levels, axes: int, dtype: Any) -> Array:
    """Return the codes of data ``[N, C, *X]`` with `axes` spatial axes, in a floating-point type.

    NaN gets the lowest code.
    """
    low, high = (np.array(end)[(..., *(None,) * axes)] for end in (levels.low, levels.high))
    within = np.where(data > low, np.minimum(data, high), low).astype(np.float64)
    within -= low
    within *= (levels.number - 1) / (high - low)
    codes: Array = np.rint(within, out=within).astype(dtype, copy=False)
    return codes


def bind_pool(data: Array, out: Array, windows: Sequence[tuple[int, int, int, int]]) -> Call:
    """Return a call that writes the greatest codes of windows of ``[N, C / 4, *X]``.

    Each axis has a window: kernel, stride, dilation, and padding before the data.  `out` is
    ``[N, C / 4, *Y]``.
    """
    module, missing = compiled_module(), interface.AXES - len(windows)
    assert module is not None, "codes are for compiled kernels"
    kernel, strides, dilations, pads = zip(*((1, 1, 1, 0),) * missing, *windows, strict=True)
    planes, blank = data.shape[0] * data.shape[1], (1,) * missing
    return functools.partial(
        module.max_codes,
        data.reshape(planes, *blank, *data.shape[2:]),
        out.reshape(planes, *blank, *out.shape[2:]),
        interface.max_codes_fields(
            kernel=kernel,
            strides=strides,
            dilations=dilations,
            pads_begin=pads,
            threads=get_threads(),
        ),
    )


def bind_combine(
    first: Array,
    second: Array,
    out: Array,
    given: Sequence[Levels],
    levels: Levels | None,
    activation: Activation,
    *,
    multiplies: bool,
) -> Call:
    """Return a call that adds or multiplies codes ``[N, ceil(C / 4), *X]``, on single levels.

    `second` may have one position, ``[N, ceil(C / 4), 1, ...]``.  `out` gets the codes of the
    results, after an activation, or, without `levels`, ``[N, C, *X]``: the results, in f32.
    """
    module = compiled_module()
    assert module is not None, "codes are for compiled kernels"
    one, other = given
    return functools.partial(
        module.combine_codes,
        *(array.reshape(*array.shape[:2], -1) for array in (first, second, out)),
        interface.combine_codes_fields(
            isa=isa_number(),
            multiplies=multiplies,
            first_low=one.output_low[0],
            first_step=one.steps[0],
            second_low=other.output_low[0],
            second_step=other.steps[0],
            **activation.fields(),
            out_low=0 if levels is None else levels.low[0],
            out_high=0 if levels is None else levels.high[0],
            highest=0 if levels is None else levels.number - 1,
            threads=get_threads(),
        ),
    )


def bind_average(codes: Array, out: Array, levels: Levels, *, mean: bool) -> Call:
    """Return a call that sums codes ``[N, ceil(C / 4), *X]`` on single levels, or takes means.

    `out` is ``[N, C, ...]``, with one number for each channel, which is rounded once.
    """
    module = compiled_module()
    assert module is not None, "codes are for compiled kernels"
    positions = math.prod(codes.shape[2:])
    fields = interface.average_codes_fields(
        scale=levels.steps[0] / (positions if mean else 1),
        offset=levels.output_low[0] * (1 if mean else positions),
        threads=get_threads(),
    )
    return functools.partial(
        module.average_codes,
        codes.reshape(*codes.shape[:2], -1),
        out.reshape(out.shape[:2]),
        fields,
    )


def ranges_of(levels: Levels) -> Array:
    """Return ``[1 or channels, 2]``: the ends of input ranges."""
    return np.array([levels.low, levels.high]).T.copy()
