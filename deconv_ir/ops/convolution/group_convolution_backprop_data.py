"""OpenVINO GroupConvolutionBackpropData-1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from deconv_ir.ir.geometry import Dim
from deconv_ir.ir.lazy_tensor import joined
from deconv_ir.ops.base import operation
from deconv_ir.ops.convolution.openvino import OpenVINODeconvolution
from deconv_ir.ops.convolution.views import FilterView

if TYPE_CHECKING:
    from deconv_ir.ir.lazy_tensor import Constant


@operation(
    "GroupConvolutionBackpropData",
    "opset1",
    inputs=("data", "filter", "output_shape"),
    required=2,
    examples=(
        "f32[1,4,5], f32[2,2,3,3] -> f32[1,6,12]"
        " | strides=2 pads_begin=0 pads_end=0 dilations=1 output_padding=1",
    ),
)
class GroupConvolutionBackpropData(OpenVINODeconvolution):
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

    takes_lazy = (1,)

    def filter_rank(self, spatial: int) -> int:
        """Rank of the filter: groups are an axis of their own."""
        return spatial + 3

    def filter_view(self, shape: tuple[Dim, ...]) -> FilterView:
        """Read [GROUPS, C_INPUT, C_OUTPUT, K...]."""
        return FilterView(shape[0], shape[1], shape[2], shape[3:])

    def groups_of(self, filter_shape: Sequence[int]) -> int:
        """Groups are the first dim of the filter."""
        return filter_shape[0]

    def canonical_filter(self, filter: Constant) -> Constant:  # noqa: A002
        """Lay out a filter as the kernel takes it: groups and inputs are one axis."""
        return joined(filter)
