"""OpenVINO ConvolutionBackpropData-1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from deconv_ir.ir.geometry import Dim
from deconv_ir.ops.base import operation
from deconv_ir.ops.convolution.openvino import OpenVINODeconvolution
from deconv_ir.ops.convolution.views import FilterView

if TYPE_CHECKING:
    from deconv_ir.ir.lazy_tensor import Constant


@operation(
    "ConvolutionBackpropData",
    "opset1",
    inputs=("data", "filter", "output_shape"),
    required=2,
    examples=(
        "f32[1,4,5,6], f32[4,3,3,3] -> f32[1,3,9,11]"
        " | strides=2,2 pads_begin=1,1 pads_end=1,1 dilations=1,1",
        "f32[1,4,5,6], f32[4,3,3,3], i64[2]{10,12} -> f32[1,3,10,12]"
        " | strides=2,2 pads_begin=0,0 pads_end=0,0 dilations=1,1 auto_pad=same_upper",
    ),
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

    takes_lazy = (1,)

    def filter_view(self, shape: tuple[Dim, ...]) -> FilterView:
        """Read [C_INPUT, C_OUTPUT, K...]."""
        return FilterView(1, shape[0], shape[1], shape[2:])

    def groups_of(self, filter_shape: Sequence[int]) -> int:
        """One group."""
        return 1

    def canonical_filter(self, filter: Constant) -> Constant:  # noqa: A002
        """Lay out a filter as the kernel takes it, which is as it is."""
        return filter
