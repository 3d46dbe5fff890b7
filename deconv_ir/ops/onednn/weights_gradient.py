"""Gradients of convolutions with respect to their weights, of oneDNN Graph."""

from __future__ import annotations

import abc
from typing import Any, ClassVar

from deconv_ir.errors import ShapeError
from deconv_ir.ir.geometry import Axis, AxisGeometry, Dim, PadMode
from deconv_ir.ir.operation import Arrays, Context, Infos, TensorInfo
from deconv_ir.ir.shapes import Shape, element_count, format_shape, is_static, static
from deconv_ir.ops.base import attribute, choice, integer, integers
from deconv_ir.ops.checks import check_least_rank, merged_type
from deconv_ir.ops.convolution.dims import DataDims, check_output_shape, stated_shape
from deconv_ir.ops.convolution.onednn import (
    AUTO_PAD,
    DATA_FORMAT,
    DataFormat,
    FilterFormat,
    WeightsFormat,
)
from deconv_ir.ops.numeric import narrow, widen
from deconv_ir.ops.onednn.decomposition import kind
from deconv_ir.ops.values import actual
from deconv_ir.ops.windows import Windowed, static_geometry, window_axes


class WeightsGradient(Windowed, abc.ABC):
    """The sum over n and y of small[n, a, y] * large[n, b, stride*y + dilation*k - pad].

    This is element [a, b, k] of the weights.  `large` is the data of a convolution, or
    the output of a transposed one; `small` is the other.

    One product of matrices for each tap, summed in f32 or f64.
    """

    large: ClassVar[int]
    """Index of the input that is `large`."""

    pads_begin: tuple[int, ...] | None = attribute(integers(0, per_axis=True), None, required=True)
    pads_end: tuple[int, ...] | None = attribute(integers(0, per_axis=True), None, required=True)
    auto_pad: PadMode = attribute(AUTO_PAD, PadMode.EXPLICIT)
    groups: int = attribute(integer(1), 1)
    data_format: DataFormat = attribute(DATA_FORMAT, DataFormat.NXC)
    weights_shape: tuple[int, ...] | None = attribute(integers(0), None)
    declared_shape: tuple[int, ...] | None = attribute(integers(0), None)
    """The output's declared shape, used if no other shape is given."""

    @property
    @abc.abstractmethod
    def spatial_first(self) -> bool:
        """Whether the weights are laid out [spatial..., second, first]."""

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        """Check that weights of the requested shape fit the two tensors."""
        element_type = merged_type(inputs[:2], self.inputs, "float")
        for info, name in zip(inputs[:2], self.inputs, strict=False):
            check_least_rank(info, name, 3)
        ranks = {len(i.shape) for i in inputs[:2] if i.shape is not None}
        if len(ranks) > 1:
            raise ShapeError(
                f"ranks do not fit: {self.inputs[0]} {format_shape(inputs[0].shape)}, "
                f"{self.inputs[1]} {format_shape(inputs[1].shape)}",
                rule="rank",
            )
        shape = self._requested(inputs, ranks.pop() if ranks else None)
        if is_static(shape) and all(is_static(i.shape) for i in inputs[:2]):
            self.geometry(static(inputs[0].shape), static(inputs[1].shape), static(shape))
        return (TensorInfo(shape, element_type),)

    def _requested(self, inputs: Infos, rank: int | None) -> Shape:
        if len(inputs) > 2:
            if rank is None:
                return None
            return check_output_shape(inputs[2], "weights_shape", rank)
        found = stated_shape("weights_shape", "third", self.weights_shape, self.declared_shape)
        if rank is not None and len(found) != rank:
            raise ShapeError(
                f"weights_shape must have {rank} elements, found {format_shape(found)}",
                attribute="weights_shape",
                expected=rank,
                actual=len(found),
                rule="output-shape-length",
            )
        return found

    def dims(self, shape: tuple[int, ...]) -> DataDims:
        """Return the axes of one of the two tensors."""
        if self.data_format is DataFormat.NXC:
            return DataDims(shape[0], shape[-1], shape[1:-1])
        return DataDims(shape[0], shape[1], shape[2:])

    def canonical(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the weights' dims as [a, b, K...]."""
        return (shape[-1], shape[-2], *shape[:-2]) if self.spatial_first else shape

    def geometry(
        self, first: tuple[int, ...], second: tuple[int, ...], weights: tuple[int, ...]
    ) -> tuple[tuple[Axis, ...], tuple[AxisGeometry, ...]]:
        """Return the windows over `large`, from the shapes of both tensors and the weights.

        Raises
        ------
        ShapeError
            The shapes do not fit.
        """
        both = [self.dims(first), self.dims(second)]
        large, small = both[self.large], both[1 - self.large]
        rows, columns, *kernel = self.canonical(weights)
        expected: tuple[Dim, ...] = (small.channels, _share(large.channels, self.groups))
        if (rows, columns) != expected or rows % self.groups:
            raise ShapeError(
                f"weights of shape {format_shape(weights)} do not fit: "
                f"{self.inputs[1 - self.large]} has {small.channels} channels, "
                f"{self.inputs[self.large]} has {large.channels}, groups={self.groups}",
                expected=format_shape(expected),
                actual=format_shape((rows, columns)),
                rule="channels",
            )
        if large.batch != small.batch:
            raise ShapeError(
                f"batches differ: {self.inputs[0]} has {both[0].batch}, "
                f"{self.inputs[1]} has {both[1].batch}",
                expected=both[0].batch,
                actual=both[1].batch,
                rule="channels",
            )
        axes = window_axes(self, len(kernel))
        extents = tuple(int(x) for x in large.spatial if isinstance(x, int))
        found = static_geometry(axes, extents, kernel, self.auto_pad, self.rule)
        for index, (geometry, y) in enumerate(zip(found, small.spatial, strict=True)):
            if geometry.output != y:
                raise ShapeError(
                    f"{self.inputs[1 - self.large]} must have extent {geometry.output} on "
                    f"spatial axis {index}, found {y}: {geometry.formula}",
                    expected=geometry.output,
                    actual=y,
                    rule="weights-gradient",
                )
        return axes, found

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        """Sum over batch and positions, one tap after the other."""
        import numpy as np

        wanted = static(self.infer(list(map(actual, inputs)), context)[0].shape)
        axes, geometry = self.geometry(inputs[0].shape, inputs[1].shape, wanted)
        last = self.data_format is DataFormat.NXC
        both = [np.moveaxis(widen(a), -1, 1) if last else widen(a) for a in inputs[:2]]
        large, small = both[self.large], both[1 - self.large]
        rows, columns, *kernel = self.canonical(wanted)
        groups, batch = self.groups, small.shape[0]
        result = np.zeros((groups, rows // groups, columns, *kernel), small.dtype)
        left = small.reshape(batch, groups, rows // groups, *small.shape[2:])
        right = large.reshape(batch, groups, columns, *large.shape[2:])
        for tap in np.ndindex(*kernel):
            cuts = [
                _overlap(a, g, k, x)
                for a, g, k, x in zip(axes, geometry, tap, large.shape[2:], strict=True)
            ]
            if any(y.start >= y.stop for y, _ in cuts):
                continue
            inner: tuple[Any, ...] = (..., *(y for y, _ in cuts))
            outer: tuple[Any, ...] = (..., *(x for _, x in cuts))
            a = np.moveaxis(left[inner], 0, 2).reshape(groups, rows // groups, -1)
            b = np.moveaxis(right[outer], 0, 2).reshape(groups, columns, -1)
            result[(..., *tap)] = a @ b.swapaxes(1, 2)
        found = result.reshape(rows, columns, *kernel)
        if self.spatial_first:
            found = np.moveaxis(found, (0, 1), (-1, -2))
        return (narrow(found, inputs[0].dtype),)

    def scratch(self, inputs: Infos, outputs: Infos, context: Context) -> int:
        """Count the operands of one tap, and the sums."""
        width = max(4, (inputs[0].element_type.bits if inputs[0].element_type else 32) // 8)
        shapes = [static(i.shape) for i in (*inputs[:2], outputs[0])]
        return width * (2 * sum(map(element_count, shapes[:2])) + element_count(shapes[2]))

    def work(self, inputs: Infos, output: TensorInfo) -> int | None:
        """Count two operations for each tap and position."""
        if not is_static(output.shape) or not is_static(inputs[1 - self.large].shape):
            return None
        small = static(inputs[1 - self.large].shape)
        dims = self.dims(small)
        channels = dims.channels if isinstance(dims.channels, int) else 1
        return 2 * element_count(static(output.shape)) * (element_count(small) // max(1, channels))


def _share(channels: Dim, groups: int) -> Dim:
    return channels // groups if isinstance(channels, int) and channels % groups == 0 else -1


def _overlap(axis: Axis, geometry: AxisGeometry, tap: int, extent: int) -> tuple[slice, slice]:
    """Return the positions of `small` whose tap is inside `large`, and those of the tap."""
    shift = axis.dilation * tap - geometry.pad_begin
    first = max(0, -(shift // axis.stride))
    stop = min(geometry.output, (extent - 1 - shift) // axis.stride + 1)
    start = first * axis.stride + shift
    return slice(first, stop), slice(
        start, start + (stop - first - 1) * axis.stride + 1, axis.stride
    )


@kind("ConvolutionBackwardWeights", ("src", "diff_dst", "weights_shape"), 2)
class ConvolutionBackwardWeights(WeightsGradient):
    """Gradient of a convolution with respect to its weights.

    Output: [O, I / groups, K...] (OIX) or [K..., I / groups, O] (XIO).
    """

    large = 0

    weights_format: WeightsFormat = attribute(choice(WeightsFormat, fold=False), WeightsFormat.XIO)

    @property
    def spatial_first(self) -> bool:
        """Whether the weights are laid out [spatial..., I, O]."""
        return self.weights_format is WeightsFormat.XIO


@kind("ConvTransposeBackwardWeights", ("src", "diff_dst", "weights_shape"), 2)
class ConvTransposeBackwardWeights(WeightsGradient):
    """Gradient of ConvTranspose with respect to its weights.

    Output: [I, O / groups, K...] (IOX) or [K..., O / groups, I] (XOI).
    """

    large = 1

    filter_format: FilterFormat = attribute(choice(FilterFormat, fold=False), FilterFormat.XOI)

    @property
    def spatial_first(self) -> bool:
        """Whether the weights are laid out [spatial..., O, I]."""
        return self.filter_format is FilterFormat.XOI
