"""oneDNN Graph ConvolutionBackwardData."""

from __future__ import annotations

import enum

from deconv_ir.errors import ShapeError
from deconv_ir.ir.geometry import Axis, AxisGeometry, Dim, backward_data_axis
from deconv_ir.ir.operation import Infos
from deconv_ir.ir.options import Semantics
from deconv_ir.ops.base import attribute, choice, integers, operation
from deconv_ir.ops.convolution.onednn import OneDNNDeconvolution
from deconv_ir.ops.convolution.views import DataView, check_output_shape


class WeightsFormat(enum.Enum):
    """Layout of the weights; X stands for the spatial axes.

    Examples
    --------
    >>> from deconv_ir.operations import WeightsFormat
    >>> WeightsFormat("XIO")
    <WeightsFormat.XIO: 'XIO'>
    """

    XIO = "XIO"
    OIX = "OIX"


@operation(
    "ConvolutionBackwardData",
    inputs=("diff_dst", "weights", "dst_shape"),
    required=2,
    examples=(
        "f32[1,5,4], f32[3,3,4] -> f32[1,11,3]"
        " | strides=2 pads_begin=0 pads_end=0 dilations=1 dst_shape=1,11,3",
    ),
)
class ConvolutionBackwardData(OneDNNDeconvolution):
    """Gradient of a convolution with respect to its data: a transposed convolution.

    The document's names are those of the backward pass: `diff_dst` is the
    data of this operation, `diff_src` its output.

    Inputs: `diff_dst` [N, X..., C] (NXC) or [N, C, X...] (NCX), `weights`
    [K..., out/groups, in] (XIO) or [in, out/groups, K...] (OIX), seen from this
    operation, and optionally `dst_shape` [rank], of type s32.  Output: laid
    out as `diff_dst`, of shape `dst_shape`.

    Source: oneDNN Graph operation specification, ConvolutionBackwardData.

    Examples
    --------
    >>> from deconv_ir.operations import Context, ConvolutionBackwardData, TensorInfo
    >>> up = ConvolutionBackwardData(
    ...     strides=(2,), dilations=(1,), pads_begin=(0,), pads_end=(0,), dst_shape=(1, 11, 3)
    ... )
    >>> up.infer([TensorInfo((1, 5, 4)), TensorInfo((3, 3, 4))], Context())[0].shape
    (1, 11, 3)
    """

    weights_format: WeightsFormat = attribute(choice(WeightsFormat, fold=False), WeightsFormat.XIO)
    dst_shape: tuple[int, ...] | None = attribute(integers(1), None)

    @property
    def spatial_first(self) -> bool:
        """Whether the weights are laid out [spatial..., out/groups, in]."""
        return self.weights_format is WeightsFormat.XIO

    def axis_geometry(
        self, axis: Axis, data: int, kernel: int, output: int | None, semantics: Semantics
    ) -> AxisGeometry:
        """Find pads of one axis; see `geometry.backward_data_axis`."""
        assert output is not None, "requested_output always returns extents"
        return backward_data_axis(axis, data, kernel, output, self.auto_pad)

    def requested_output(
        self, inputs: Infos, spatial: int
    ) -> tuple[tuple[Dim, ...] | None, DataView | None]:
        """Return dst_shape, from the input or else from the attribute."""
        rank = spatial + 2
        dims: tuple[Dim, ...]
        if len(inputs) > 2:
            dims = check_output_shape(inputs[2], "dst_shape", rank)
        elif self.dst_shape is None:
            raise ShapeError(
                "dst_shape is missing: it must be given as an attribute or as the third input",
                attribute="dst_shape",
                rule="attribute-missing",
            )
        elif len(self.dst_shape) != rank:
            raise ShapeError(
                f"dst_shape must have {rank} elements (batch and channels included), "
                f"found {len(self.dst_shape)}: {','.join(map(str, self.dst_shape))}",
                attribute="dst_shape",
                expected=rank,
                actual=len(self.dst_shape),
                rule="output-shape-length",
            )
        else:
            dims = self.dst_shape
        view = self.data_view(dims)
        return view.spatial, view
