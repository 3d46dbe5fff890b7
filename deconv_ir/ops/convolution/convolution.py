"""OpenVINO Convolution-1 and GroupConvolution-1."""

from __future__ import annotations

from typing import ClassVar

from deconv_ir.ir.dtypes import ElementType
from deconv_ir.ir.geometry import Axis, AxisGeometry, Dim
from deconv_ir.ir.operation import Context, Infos, TensorInfo
from deconv_ir.ir.options import Semantics
from deconv_ir.ir.shapes import element_count, is_static, static
from deconv_ir.ops.base import operation
from deconv_ir.ops.checks import check_least, merged_type
from deconv_ir.ops.convolution.base import AnyConvolution, WithGroupAxis
from deconv_ir.ops.convolution.dims import DataDims, FilterDims
from deconv_ir.ops.windows import explain_window, static_geometry, window_extent


class _ForwardConvolution(AnyConvolution):
    """Behaviour that both operations share."""

    transposed: ClassVar[bool] = False
    takes_lazy = (1,)
    may_keep_codes = True

    def check_types(self, inputs: Infos, context: Context) -> ElementType | None:
        return merged_type(inputs, self.inputs, "numeric")

    def check_kernel(self, filter_: FilterDims) -> None:
        check_least(filter_.kernel, "kernel extents", 1, "kernel-extent")

    def extent(self, index: int, axis: Axis, data: Dim, kernel: Dim, semantics: Semantics) -> Dim:
        return window_extent(index, axis, data, kernel, self.auto_pad, self.rule)

    def geometry(self, inputs: Infos, context: Context) -> tuple[AxisGeometry, ...] | None:
        if not is_static(inputs[0].shape) or not is_static(inputs[1].shape):
            return None
        extents = static(inputs[0].shape)[2:]
        kernel = static(self.filter_dims(static(inputs[1].shape)).kernel)
        axes = self.axes(len(extents))
        return static_geometry(axes, extents, kernel, self.auto_pad, self.rule)

    def explain_axis(
        self, inputs: Infos, context: Context, data: DataDims, filter_: FilterDims, index: int
    ) -> str:
        axis = self.axes(len(data.spatial))[index]
        return explain_window(axis, data.spatial[index], filter_.kernel[index], self.rule)

    def work(self, inputs: Infos, output: TensorInfo) -> int | None:
        """Count two operations for each tap and input channel of each output element."""
        if not is_static(output.shape) or not is_static(inputs[1].shape):
            return None
        filter_ = static(inputs[1].shape)
        depth = element_count(filter_[self.filter_rank(0) - 1 :])
        return 2 * element_count(static(output.shape)) * depth


@operation(
    "Convolution-1(data, filter)",
    "f32[1,2,5,6], f32[3,2,3,3] -> f32[1,3,3,6]"
    " | strides=2,1 pads_begin=1,1 pads_end=1,1 dilations=1,1 auto_pad=explicit",
    "f32[1,2,5], f32[3,2,3] -> f32[1,3,3]"
    " | strides=2 pads_begin=0 pads_end=0 dilations=1 auto_pad=same_upper",
)
class Convolution(_ForwardConvolution):
    """Convolution (cross-correlation).

    Inputs: `data` [N, C_IN, X...], `filter` [C_OUT, C_IN, K...].  Output:
    [N, C_OUT, Y...].
    """


@operation(
    "GroupConvolution-1(data, filter)",
    "f32[1,4,5,6], f32[2,3,2,3,3] -> f32[1,6,3,4]"
    " | strides=1,1 pads_begin=0,0 pads_end=0,0 dilations=1,1",
)
class GroupConvolution(WithGroupAxis, _ForwardConvolution):
    """Convolution in groups of channels.

    Inputs: `data` [N, GROUPS * C_IN, X...], `filter` [GROUPS, C_OUT, C_IN,
    K...], channels counted in a group.  Output: [N, GROUPS * C_OUT, Y...].
    """
