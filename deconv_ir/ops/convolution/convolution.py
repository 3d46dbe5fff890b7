"""OpenVINO Convolution-1 and GroupConvolution-1."""

from __future__ import annotations

import abc
import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from deconv_ir.errors import ShapeError
from deconv_ir.ir.dtypes import Array
from deconv_ir.ir.geometry import (
    UNKNOWN,
    Axis,
    AxisGeometry,
    Dim,
    PadMode,
    bounds,
    convolution_axis,
)
from deconv_ir.ir.lazy_tensor import joined
from deconv_ir.ir.operation import Arrays, Context, Epilogue, Infos, Kernel, Operation, TensorInfo
from deconv_ir.ir.scratchpad import ONE_RUN
from deconv_ir.ir.shapes import element_count, format_shape, intersect_dims, is_static, static
from deconv_ir.ops.base import attribute, integers, operation
from deconv_ir.ops.checks import check_least, check_least_rank, merged_type, product
from deconv_ir.ops.convolution.views import FilterView, channel_misfit
from deconv_ir.ops.windows import (
    AUTO_PAD,
    explain_window,
    static_geometry,
    window_axes,
    window_extent,
)

if TYPE_CHECKING:
    from deconv_ir.ir.boxes import Boxes, LayerTile
    from deconv_ir.ir.lazy_tensor import Constant
    from deconv_ir.ir.scratchpad import ScratchpadBudget
    from deconv_ir.kernels import Activation
    from deconv_ir.kernels import Convolution as ConvolutionKernel
    from deconv_ir.ops.convolution.packed import Placement


class _Convolution(Operation, abc.ABC):
    """Attributes and behaviour that both operations have."""

    takes_lazy = (1,)

    strides: tuple[int, ...] | None = attribute(integers(1, per_axis=True), None, required=True)
    pads_begin: tuple[int, ...] | None = attribute(integers(per_axis=True), None, required=True)
    pads_end: tuple[int, ...] | None = attribute(integers(per_axis=True), None, required=True)
    dilations: tuple[int, ...] | None = attribute(integers(1, per_axis=True), None, required=True)
    auto_pad: PadMode = attribute(AUTO_PAD, PadMode.EXPLICIT)

    leading: ClassVar[int] = 2
    """Axes of the filter before the spatial ones."""

    @abc.abstractmethod
    def filter_view(self, shape: tuple[Dim, ...]) -> FilterView:
        """Read the dims of the filter by role."""

    @abc.abstractmethod
    def canonical_filter(self, weights: Constant) -> Constant:
        """Lay out a filter as the kernel takes it: [C_OUT, C_IN / groups, K...]."""

    def rule(self, axis: Axis, data: int, kernel: int) -> AxisGeometry:
        """Find pads and extent of an axis."""
        return convolution_axis(axis, data, kernel, self.auto_pad)

    def axes(self, spatial: int) -> tuple[Axis, ...]:
        """Return the attributes, axis by axis."""
        return window_axes(self, spatial)

    def spatial_count(self, inputs: Infos) -> int | None:
        """Tell the number of spatial axes; None where no input determines it."""
        data, filter_ = inputs
        check_least_rank(data, "data", 3)
        check_least_rank(filter_, "filter", self.leading + 1)
        counts = {
            len(shape) - leading
            for shape, leading in ((data.shape, 2), (filter_.shape, self.leading))
            if shape is not None
        }
        if len(counts) > 1:
            raise ShapeError(
                f"ranks do not fit: data {format_shape(data.shape)}, "
                f"filter {format_shape(filter_.shape)}",
                expected=format_shape(data.shape),
                actual=format_shape(filter_.shape),
                rule="rank",
            )
        return counts.pop() if counts else None

    def views(self, inputs: Infos, spatial: int) -> tuple[tuple[Dim, ...], FilterView]:
        """Return the dims of the data, and those of the filter by role."""
        data = inputs[0].shape or (UNKNOWN,) * (spatial + 2)
        filter_ = inputs[1].shape or (UNKNOWN,) * (spatial + self.leading)
        return data, self.filter_view(filter_)

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        """Compute the shape of the output; see `geometry.convolution_axis`."""
        element_type = merged_type(inputs, self.inputs, "numeric")
        spatial = self.spatial_count(inputs)
        if spatial is None:
            return (TensorInfo(None, element_type),)
        data, view = self.views(inputs, spatial)
        if intersect_dims(data[1], product(view.groups, view.inputs)) is None:
            raise channel_misfit(self.inputs, data[1], view)
        check_least(view.kernel, "kernel extents", 1, "kernel-extent")
        extents = [
            window_extent(i, axis, x, k, self.auto_pad, self.rule)
            for i, (axis, x, k) in enumerate(
                zip(self.axes(spatial), data[2:], view.kernel, strict=True)
            )
        ]
        channels = product(view.groups, view.outputs)
        return (TensorInfo((data[0], channels, *extents), element_type),)

    def explain(self, inputs: Infos, context: Context, output: int, axis: int) -> str | None:
        spatial = self.spatial_count(inputs)
        if spatial is None:
            return None
        data, view = self.views(inputs, spatial)
        if axis == 0:
            return f"N of data = {data[0]}"
        if axis == 1:
            return f"C_OUTPUT of filter = {product(view.groups, view.outputs)}"
        index = axis - 2
        return explain_window(self.axes(spatial)[index], data[axis], view.kernel[index], self.rule)

    def kernel(
        self,
        filter: Constant,  # noqa: A002
        context: Context,
        bias: Array | None = None,
        activation: Activation | None = None,
    ) -> ConvolutionKernel:
        """Pack a filter."""
        from deconv_ir.kernels import Convolution as ConvolutionKernel

        axes = self.axes(filter.ndim - self.leading)
        return ConvolutionKernel(
            self.canonical_filter(filter),
            strides=tuple(a.stride for a in axes),
            dilations=tuple(a.dilation for a in axes),
            groups=filter.shape[0] if self.leading == 3 else 1,
            bias=bias,
            activation=activation,
            scratch_bytes=context.scratch_bytes,
            accuracy=context.accuracy,
        )

    def prepare(self, constants: Sequence[Constant | None], context: Context) -> Kernel | None:
        return self.prepare_fused(constants, Epilogue(None), context)

    def prepare_fused(
        self, constants: Sequence[Constant | None], epilogue: Epilogue, context: Context
    ) -> Kernel | None:
        """Pack the filter, with what is added to each channel and an activation."""
        from deconv_ir.ops.convolution.fusing import as_kernel_epilogue
        from deconv_ir.ops.convolution.packed import PackedLayer

        filter_ = constants[1]
        if filter_ is None:
            return None
        leading = self.leading
        channels = element_count(filter_.shape[: leading - 1])
        rank = filter_.ndim - leading + 2
        found = as_kernel_epilogue(epilogue, rank, 1, channels, filter_.dtype)
        if found is None:
            return None
        extents = filter_.shape[leading:]
        packed = self.kernel(filter_, context, *found)

        def run(inputs: Arrays, out: Array | None, budget: ScratchpadBudget | None) -> Array:
            return self.apply(packed, extents, inputs[0], out, budget)

        def place(inputs: Infos) -> Placement:
            data = static(inputs[0].shape)
            return data, *_placed(self, data[2:], extents)

        return PackedLayer(run, place, packed)

    def accepts_out(self, inputs: Infos, output: TensorInfo) -> bool:
        return True

    def work(self, inputs: Infos, output: TensorInfo) -> int | None:
        """Count two operations for each tap and input channel of each output element."""
        if not is_static(output.shape) or not is_static(inputs[1].shape):
            return None
        filter_ = static(inputs[1].shape)
        depth = element_count(filter_[self.leading - 1 :])
        return 2 * element_count(static(output.shape)) * depth

    def tile(self, boxes: Boxes, inputs: Infos, outputs: Infos, context: Context) -> LayerTile:
        from deconv_ir.ops.convolution.tile import tile_convolution

        extents = static(inputs[0].shape)[2:]
        kernel = tuple(bounds(k)[0] for k in self.filter_view(static(inputs[1].shape)).kernel)
        pads, _ = _placed(self, extents, kernel)
        axes = self.axes(len(kernel))
        return tile_convolution(self, boxes[0], inputs, outputs, axes, kernel, pads)

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        return (self._pack_and_run(inputs, context, None),)

    def execute_into(self, inputs: Arrays, context: Context, out: Array) -> None:
        """Compute the output into an array, where the filter is not constant."""
        self._pack_and_run(inputs, context, out)

    def _pack_and_run(self, inputs: Arrays, context: Context, out: Array | None) -> Array:
        data, filter_ = inputs
        packed = self.kernel_of(inputs, context)
        return self.apply(packed, filter_.shape[self.leading :], data, out, ONE_RUN)

    def kernel_of(self, inputs: Arrays, context: Context) -> ConvolutionKernel:
        """Pack the filter among the inputs."""
        return self.kernel(inputs[1], context)

    def apply(
        self,
        packed: ConvolutionKernel,
        kernel: Sequence[int],
        data: Array,
        out: Array | None = None,
        budget: ScratchpadBudget | None = None,
    ) -> Array:
        """Run a packed kernel on actual data; `out` and `budget` as of the kernel."""
        return packed.run(data, *_placed(self, data.shape[2:], tuple(kernel)), out, budget)


@functools.lru_cache(maxsize=512)
def _placed(
    operation: _Convolution, data: tuple[int, ...], kernel: tuple[int, ...]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return pad_begin and extent of each axis, for actual extents of data and kernel."""
    axes = operation.axes(len(kernel))
    geometry = static_geometry(axes, data, kernel, operation.auto_pad, operation.rule)
    return tuple(g.pad_begin for g in geometry), tuple(g.output for g in geometry)


@operation(
    "Convolution-1(data, filter)",
    "f32[1,2,5,6], f32[3,2,3,3] -> f32[1,3,3,6]"
    " | strides=2,1 pads_begin=1,1 pads_end=1,1 dilations=1,1 auto_pad=explicit",
    "f32[1,2,5], f32[3,2,3] -> f32[1,3,3]"
    " | strides=2 pads_begin=0 pads_end=0 dilations=1 auto_pad=same_upper",
)
class Convolution(_Convolution):
    """Convolution (cross-correlation).

    Inputs: `data` [N, C_IN, X...], `filter` [C_OUT, C_IN, K...].  Output:
    [N, C_OUT, Y...].
    """

    def filter_view(self, shape: tuple[Dim, ...]) -> FilterView:
        return FilterView(1, shape[1], shape[0], shape[2:])

    def canonical_filter(self, weights: Constant) -> Constant:
        return weights


@operation(
    "GroupConvolution-1(data, filter)",
    "f32[1,4,5,6], f32[2,3,2,3,3] -> f32[1,6,3,4]"
    " | strides=1,1 pads_begin=0,0 pads_end=0,0 dilations=1,1",
)
class GroupConvolution(_Convolution):
    """Convolution in groups of channels.

    Inputs: `data` [N, GROUPS * C_IN, X...], `filter` [GROUPS, C_OUT, C_IN,
    K...], channels counted in a group.  Output: [N, GROUPS * C_OUT, Y...].
    """

    leading = 3

    def filter_view(self, shape: tuple[Dim, ...]) -> FilterView:
        return FilterView(shape[0], shape[2], shape[1], shape[3:])

    def canonical_filter(self, weights: Constant) -> Constant:
        return joined(weights)
