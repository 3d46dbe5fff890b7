"""OpenVINO ExtractImagePatches-3 and Col2Im-15: windows of an image as channels, and back."""

from __future__ import annotations

import functools
import itertools
import math
from typing import TYPE_CHECKING

from deconv_ir.errors import ShapeError
from deconv_ir.ir.geometry import (
    UNKNOWN,
    Axis,
    Dim,
    Interval,
    PadMode,
    convolution_axis,
    effective_kernel,
    monotone,
)
from deconv_ir.ir.operation import Arrays, Context, Infos, Operation, TensorInfo
from deconv_ir.ir.shapes import static
from deconv_ir.ops.base import attribute, integers, operation
from deconv_ir.ops.checks import check_rank, check_shape, check_type, known_integers, product
from deconv_ir.ops.numeric import np
from deconv_ir.ops.values import as_dims
from deconv_ir.ops.windows import AUTO_PAD, check_length, window_axes

if TYPE_CHECKING:
    from deconv_ir.ops.allowance import Bounds, Case


@operation(
    "ExtractImagePatches-3(data)",
    "f32[1,2,10,10] -> f32[1,18,2,2] | sizes=3,3 strides=5,5 rates=1,1 auto_pad=valid",
    "f32[1,2,5,5] -> f32[1,8,3,3] | sizes=2,2 strides=2,2 rates=1,1 auto_pad=same_upper",
)
class ExtractImagePatches(Operation):
    """Windows of an image, with their elements as channels."""

    scratch_ratios = (0.75, 0.75)

    formula = "data {shape[data]}, sizes {self.sizes}, strides {self.strides}, rates {self.rates}"

    sizes: tuple[int, ...] = attribute(integers(1))
    strides: tuple[int, ...] = attribute(integers(1))
    rates: tuple[int, ...] = attribute(integers(1))
    auto_pad: PadMode = attribute(AUTO_PAD)

    def axes(self) -> tuple[Axis, ...]:
        """Return the attributes, axis by axis."""
        for name in ("sizes", "strides", "rates"):
            check_length(name, getattr(self, name), 2)
        return tuple(
            Axis(stride, rate, 0, 0) for stride, rate in zip(self.strides, self.rates, strict=True)
        )

    def count(self, axis: Axis, size: int, data: int) -> int:
        """Return the number of windows on an axis."""
        if self.auto_pad in (PadMode.SAME_UPPER, PadMode.SAME_LOWER):
            return -(-data // axis.stride)
        return max(0, (data - effective_kernel(size, axis.dilation)) // axis.stride + 1)

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        axes = self.axes()
        batch, channels, *extents = check_shape(inputs[0], "data", (UNKNOWN,) * 4) or (UNKNOWN,) * 4
        found = [
            monotone(functools.partial(self.count, axis, size), extent)
            for axis, size, extent in zip(axes, self.sizes, extents, strict=True)
        ]
        shape = (batch, product(channels, *self.sizes), *found)
        return (TensorInfo(shape, inputs[0].element_type),)

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        data, axes = inputs[0], self.axes()
        batch, channels, *extents = data.shape
        outputs = list(map(self.count, axes, self.sizes, extents))
        if 0 in (*outputs, batch, channels):
            return (np.empty((batch, channels * math.prod(self.sizes), *outputs), data.dtype),)
        pads = [
            convolution_axis(axis, extent, size, self.auto_pad)[:2]
            for axis, size, extent in zip(axes, self.sizes, extents, strict=True)
        ]
        padded = np.pad(data, [(0, 0), (0, 0), *pads])
        patches = np.empty((batch, *self.sizes, channels, *outputs), data.dtype)
        for taps in itertools.product(*map(range, self.sizes)):
            index = _places(taps, axes, outputs)
            patches[:, taps[0], taps[1]] = padded[:, :, index[0], index[1]]
        return (patches.reshape(batch, -1, *outputs),)


@operation(
    "Col2Im-15(data, output_size, kernel_size)",
    "f32[3,12,225], i64[2]{16,16}, i64[2]{2,2} -> f32[3,3,16,16]",
    "f32[12,81], i64[2]{16,16}, i64[2]{2,2} -> f32[3,16,16]"
    " | strides=2,2 pads_begin=1,1 pads_end=1,1",
)
class Col2Im(Operation):
    """Windows written back to their positions; overlapping elements are summed."""

    scratch_ratios = (0.75, 0.75)

    strides: tuple[int, ...] | None = attribute(integers(1), None)
    dilations: tuple[int, ...] | None = attribute(integers(1), None)
    pads_begin: tuple[int, ...] | None = attribute(integers(0), None)
    pads_end: tuple[int, ...] | None = attribute(integers(0), None)

    def allowance(self, case: Case) -> Bounds | None:
        from deconv_ir.ops.allowance import sums

        return sums(case, case.inputs[0].size / max(1, case.outputs[0].size), values=(0,))

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        data, *lists = inputs
        for info, name in zip(lists, self.inputs[1:], strict=True):
            check_type(info, name, "integer")
            check_shape(info, name, (2,))
        check_rank(data, "data", 2, 3)
        axes = window_axes(self, 2)
        if data.shape is None:
            return (TensorInfo(None, data.element_type),)
        *batch, columns, places = data.shape
        sizes = as_dims(lists[0].value or (UNKNOWN, UNKNOWN))
        kernel = known_integers(lists[1])
        channels: Dim = UNKNOWN
        if kernel is not None:
            channels = _quotient(columns, kernel[0] * kernel[1])
            if not any(isinstance(dim, Interval) for dim in sizes):
                _check_places(places, axes, static(sizes), kernel)
        return (TensorInfo((*batch, channels, *sizes), data.element_type),)

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        data = inputs[0]
        height, width = (int(v) for v in inputs[1].ravel())
        kernel = [int(v) for v in inputs[2].ravel()]
        axes = window_axes(self, 2)
        counts = _counts(axes, (height, width), kernel)
        batch = data.shape[:-2]
        channels = data.shape[-2] // (kernel[0] * kernel[1])
        columns = data.reshape(*batch, channels, *kernel, *counts)
        extents = [x + a.pad_begin + a.pad_end for x, a in zip((height, width), axes, strict=True)]
        image = np.zeros((*batch, channels, *extents), data.dtype)
        for taps in itertools.product(*map(range, kernel)):
            index = _places(taps, axes, counts)
            image[..., index[0], index[1]] += columns[..., taps[0], taps[1], :, :]
        rows, cols = axes
        inner = image[
            ...,
            rows.pad_begin : rows.pad_begin + height,
            cols.pad_begin : cols.pad_begin + width,
        ]
        return (np.ascontiguousarray(inner),)


def _places(taps: tuple[int, ...], axes: tuple[Axis, ...], counts: list[int]) -> list[slice]:
    """Return the positions of one tap in all windows."""
    return [
        slice(tap * axis.dilation, tap * axis.dilation + (n - 1) * axis.stride + 1, axis.stride)
        for tap, axis, n in zip(taps, axes, counts, strict=True)
    ]


def _counts(
    axes: tuple[Axis, ...], sizes: tuple[int, ...], kernel: list[int] | tuple[int, ...]
) -> list[int]:
    """Return the number of windows on each axis."""
    return [
        (x + a.pad_begin + a.pad_end - a.dilation * (k - 1) - 1) // a.stride + 1
        for x, a, k in zip(sizes, axes, kernel, strict=True)
    ]


def _check_places(
    places: Dim, axes: tuple[Axis, ...], sizes: tuple[int, ...], kernel: tuple[int, ...]
) -> None:
    rows, columns = _counts(axes, sizes, kernel)
    if rows < 1 or columns < 1 or (isinstance(places, int) and places != rows * columns):
        raise ShapeError(
            f"the last axis of data must have {max(rows, 0)} x {max(columns, 0)} windows, "
            f"found {places}",
            expected=max(rows, 0) * max(columns, 0),
            actual=places,
            rule="window",
        )


def _quotient(dim: Dim, divisor: int) -> Dim:
    if divisor < 1 or (isinstance(dim, int) and dim % divisor):
        message = (
            f"axis -2 of data must be a multiple of the {divisor} elements of a window, found {dim}"
        )
        raise ShapeError(message, expected=f"a multiple of {divisor}", actual=dim, rule="window")
    return monotone(lambda n: n // divisor, dim)
