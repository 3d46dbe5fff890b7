"""Codes of 8 bits: those of four channels in an element of u32."""

from __future__ import annotations

import math
from collections.abc import Sequence
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


def coded_shape(shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return the shape of the codes of a tensor ``[N, C, *X]``."""
    return (shape[0], -(-shape[1] // FOUR), *shape[2:])


def quantize(data: Array, codes: Array, levels: Levels, groups: int = 1) -> None:
    """Write the codes of data ``[N, groups * C, *X]`` in f32, those of four channels in an element.

    `codes` is ``[N, groups * ceil(C / 4), *X]``, u32.
    """
    module = compiled_module()
    assert module is not None, "codes are for compiled kernels"
    stacks, positions = data.shape[0] * groups, math.prod(data.shape[2:])
    module.quantize(
        data.reshape(stacks, -1, positions),
        codes.reshape(stacks, -1, positions),
        ranges_of(levels),
        interface.quantize_fields(
            isa=isa_number(),
            highest=levels.number - 1,
            threads=get_threads(),
        ),
    )


def in_numpy(data: Array, levels: Levels, axes: int, dtype: Any) -> Array:
    """Return the codes of data ``[N, C, *X]`` with `axes` spatial axes, in a floating-point type.

    NaN gets the lowest code.
    """
    low, high = (np.array(end)[(..., *(None,) * axes)] for end in (levels.low, levels.high))
    within = np.where(data > low, np.minimum(data, high), low).astype(np.float64)
    codes: Array = np.rint((within - low) * ((levels.number - 1) / (high - low))).astype(dtype)
    return codes


def pool_codes(data: Array, out: Array, windows: Sequence[tuple[int, int, int, int]]) -> None:
    """Write the greatest codes of windows of ``[N, C / 4, *X]`` to ``[N, C / 4, *Y]``.

    Each axis has a window: kernel, stride, dilation, and padding before the data.
    """
    module, missing = compiled_module(), interface.AXES - len(windows)
    assert module is not None, "codes are for compiled kernels"
    kernel, strides, dilations, pads = zip(*((1, 1, 1, 0),) * missing, *windows, strict=True)
    planes, blank = data.shape[0] * data.shape[1], (1,) * missing
    module.max_codes(
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


def add_codes(
    first: Array,
    second: Array,
    out: Array,
    given: Sequence[Levels],
    levels: Levels | None,
    activation: Activation,
) -> None:
    """Add two tensors of codes ``[N, ceil(C / 4), *X]``, whose numbers are on single levels.

    `out` gets the codes of the sums, after an activation, or, without `levels`, ``[N, C, *X]``:
    the sums, in f32.
    """
    module = compiled_module()
    assert module is not None, "codes are for compiled kernels"
    one, other = given
    module.add_codes(
        *(array.reshape(*array.shape[:2], -1) for array in (first, second, out)),
        interface.add_codes_fields(
            isa=isa_number(),
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


def ranges_of(levels: Levels) -> Array:
    """Return ``[1 or channels, 2]``: the ends of input ranges."""
    return np.array([levels.low, levels.high]).T.copy()
