"""OpenVINO ConvolutionBackpropData-1 and GroupConvolutionBackpropData-1."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deconv_ir.ir.dtypes import ElementType
from deconv_ir.ir.geometry import Axis, AxisGeometry, openvino_axis
from deconv_ir.ir.operation import Context, Infos, TensorInfo
from deconv_ir.ir.options import Semantics
from deconv_ir.ops.base import operation
from deconv_ir.ops.checks import check_type, merged_type
from deconv_ir.ops.convolution.base import WithGroupAxis
from deconv_ir.ops.convolution.deconvolution import Deconvolution
from deconv_ir.ops.convolution.dims import Requested, check_output_shape

if TYPE_CHECKING:
    from deconv_ir.ir.expression import SemanticsDifference


class OpenVINODeconvolution(Deconvolution):
    """The base of the two OpenVINO operations: types, `output_shape`, pads."""

    takes_lazy = (1,)
    may_keep_codes = True

    def axis_geometry(
        self, axis: Axis, data: int, kernel: int, output: int | None, semantics: Semantics
    ) -> AxisGeometry:
        return openvino_axis(axis, data, kernel, self.auto_pad, output, semantics)

    def requested_output(self, inputs: Infos, spatial: int) -> Requested:
        if len(inputs) < 3:
            return None, None
        return check_output_shape(inputs[2], "output_shape", spatial), None

    def compare_semantics(self, inputs: Infos, context: Context) -> SemanticsDifference | None:
        """Compare the pads, which can differ only if `output_shape` is given."""
        return self.compare_pads(inputs, context) if len(inputs) > 2 else None

    def check_types(self, inputs: Infos, context: Context) -> ElementType | None:
        element_type = merged_type(inputs[:2], self.inputs)
        check_type(TensorInfo(None, element_type), self.inputs[0], "numeric")
        return element_type


@operation(
    "ConvolutionBackpropData-1(data, filter, output_shape?)",
    "f32[1,4,5,6], f32[4,3,3,3] -> f32[1,3,9,11]"
    " | strides=2,2 pads_begin=1,1 pads_end=1,1 dilations=1,1",
    "f32[1,4,5,6], f32[4,3,3,3], i64[2]{10,12} -> f32[1,3,10,12]"
    " | strides=2,2 pads_begin=0,0 pads_end=0,0 dilations=1,1 auto_pad=same_upper",
)
class ConvolutionBackpropData(OpenVINODeconvolution):
    """Transposed convolution.

    Inputs: `data` [N, C_INPUT, X...], `filter` [C_INPUT, C_OUTPUT, K...], and
    optionally `output_shape` [number of spatial axes].  Output:
    [N, C_OUTPUT, Y...].

    Examples
    --------
    >>> import numpy as np
    >>> from deconv_ir.operations import Context, ConvolutionBackpropData
    >>> up = ConvolutionBackpropData(
    ...     strides=(2,), dilations=(1,), pads_begin=(0,), pads_end=(0,)
    ... )
    >>> up.execute([np.array([[[1.0, 2.0]]]), np.array([[[1.0, 10.0]]])], Context())
    (array([[[ 1., 10.,  2., 20.]]]),)
    """


@operation(
    "GroupConvolutionBackpropData-1(data, filter, output_shape?)",
    "f32[1,4,5], f32[2,2,3,3] -> f32[1,6,12]"
    " | strides=2 pads_begin=0 pads_end=0 dilations=1 output_padding=1",
)
class GroupConvolutionBackpropData(WithGroupAxis, OpenVINODeconvolution):
    """Transposed convolution in groups of channels.

    Inputs: `data` [N, GROUPS * C_INPUT, X...], `filter`
    [GROUPS, C_INPUT, C_OUTPUT, K...], and optionally `output_shape`
    [number of spatial axes].  Output: [N, GROUPS * C_OUTPUT, Y...].

    Examples
    --------
    >>> import numpy as np
    >>> from deconv_ir.operations import Context, GroupConvolutionBackpropData
    >>> up = GroupConvolutionBackpropData(
    ...     strides=(2,), dilations=(1,), pads_begin=(0,), pads_end=(0,)
    ... )
    >>> x, w = np.ones((1, 2, 1)), np.array([[[[1.0, 2.0]]], [[[3.0, 4.0]]]])  # two groups
    >>> up.execute([x, w], Context())
    (array([[[1., 2.],
            [3., 4.]]]),)
    """
