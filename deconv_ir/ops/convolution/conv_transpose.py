"""oneDNN Graph ConvTranspose-1."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

from deconv_ir.errors import ShapeError
from deconv_ir.ir.geometry import Axis, AxisGeometry, Dim, conv_transpose_axis
from deconv_ir.ir.operation import Context, Infos, TensorInfo
from deconv_ir.ir.options import Semantics
from deconv_ir.ir.shapes import format_shape, intersect_dims
from deconv_ir.ops.base import attribute, choice, operation
from deconv_ir.ops.checks import product
from deconv_ir.ops.convolution.onednn import OneDNNDeconvolution
from deconv_ir.ops.convolution.views import DataView


class FilterFormat(enum.Enum):
    """Layout of the filter; X stands for the spatial axes.

    Examples
    --------
    >>> from deconv_ir.operations import FilterFormat
    >>> FilterFormat("XOI")
    <FilterFormat.XOI: 'XOI'>
    """

    XOI = "XOI"
    IOX = "IOX"


@operation(
    "ConvTranspose",
    inputs=("data", "filter", "bias"),
    required=2,
    examples=(
        "f32[1,5,4], f32[3,3,4], f32[6] -> f32[1,11,6]"
        " | strides=2 pads_begin=0 pads_end=0 dilations=1 groups=2",
    ),
)
class ConvTranspose(OneDNNDeconvolution):
    """Transposed convolution, with an optional bias.

    Inputs: `data` [N, X..., C] (NXC) or [N, C, X...] (NCX), `filter`
    [K..., out/groups, in] (XOI) or [in, out/groups, K...] (IOX), and
    optionally `bias` [out].  Output: laid out as `data`.

    Source: oneDNN Graph operation specification, ConvTranspose-1.

    Examples
    --------
    >>> from deconv_ir.operations import Context, ConvTranspose, TensorInfo
    >>> up = ConvTranspose(strides=(2,), dilations=(1,), pads_begin=(0,), pads_end=(0,))
    >>> data, filter = TensorInfo((1, 5, 4)), TensorInfo((3, 3, 4))  # NXC, XOI
    >>> up.infer([data, filter], Context())[0].shape  # 2*(5 - 1) + 3
    (1, 11, 3)
    """

    filter_format: FilterFormat = attribute(choice(FilterFormat, fold=False), FilterFormat.XOI)

    @property
    def spatial_first(self) -> bool:
        """Whether the filter is laid out [spatial..., out/groups, in]."""
        return self.filter_format is FilterFormat.XOI

    def axis_geometry(
        self, axis: Axis, data: int, kernel: int, output: int | None, semantics: Semantics
    ) -> AxisGeometry:
        """Find pads and extent of one axis; see `geometry.conv_transpose_axis`."""
        return conv_transpose_axis(axis, data, kernel, self.auto_pad)

    def requested_output(
        self, inputs: Infos, spatial: int
    ) -> tuple[tuple[Dim, ...] | None, DataView | None]:
        """Nothing is requested: the operation has no output shape."""
        return None, None

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        (result,) = OneDNNDeconvolution.infer(self, inputs, context)
        bias = inputs[2].shape if len(inputs) > 2 else None
        if bias is not None and inputs[1].shape is not None:
            filter_ = self.filter_view(inputs[1].shape)
            channels = product(filter_.groups, filter_.outputs)
            if len(bias) != 1 or intersect_dims(bias[0], channels) is None:
                raise ShapeError(
                    f"bias must have shape [{channels}], found {format_shape(bias)}",
                    expected=f"[{channels}]",
                    actual=format_shape(bias),
                    rule="bias-shape",
                )
        return (result,)

    def has_bias(self, inputs: int) -> bool:
        """Tell whether there is a bias among this many inputs."""
        return inputs > 2

    def bias_of(self, inputs: Sequence[Any]) -> Any:
        """Pick the bias among the inputs."""
        return inputs[2] if len(inputs) > 2 else None
