"""oneDNN Graph ConvTranspose-1 and ConvolutionBackwardData."""

from __future__ import annotations

import abc
import enum
from collections.abc import Sequence
from typing import TYPE_CHECKING

from deconv_ir.errors import ShapeError
from deconv_ir.ir.dtypes import ElementType
from deconv_ir.ir.geometry import (
    Axis,
    AxisGeometry,
    Dim,
    PadMode,
    backward_data_axis,
    bounds,
    conv_transpose_axis,
    effective_kernel,
)
from deconv_ir.ir.lazy_tensor import Constant, whole
from deconv_ir.ir.operation import Context, Infos, TensorInfo
from deconv_ir.ir.options import Semantics
from deconv_ir.ir.record import field
from deconv_ir.ir.shapes import intersect_dims
from deconv_ir.ops.base import attribute, choice, choice_of, integer, integers, operation
from deconv_ir.ops.checks import merged_type, misfit, product
from deconv_ir.ops.convolution.deconvolution import Deconvolution
from deconv_ir.ops.convolution.dims import (
    FilterDims,
    Requested,
    check_output_shape,
    missing_shape,
    quotient,
)
from deconv_ir.ops.numeric import np

if TYPE_CHECKING:
    from deconv_ir.ir.expression import SemanticsDifference


class DataFormat(enum.Enum):
    """Layout of data and output; X stands for the spatial axes.

    Examples
    --------
    >>> from deconv_ir.operations import DataFormat
    >>> DataFormat("NXC")
    <DataFormat.NXC: 'NXC'>
    """

    NXC = "NXC"
    NCX = "NCX"


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


DATA_FORMAT = choice(DataFormat, fold=False)
AUTO_PAD = choice_of(
    {
        "none": PadMode.EXPLICIT,
        "same_upper": PadMode.SAME_UPPER,
        "same_lower": PadMode.SAME_LOWER,
        "valid": PadMode.VALID,
    }
)


class OneDNNDeconvolution(Deconvolution, abc.ABC):
    """Attributes and behaviour of both oneDNN operations."""

    runtime = Semantics.ONEDNN

    takes_lazy = (1,)

    auto_pad: PadMode = attribute(AUTO_PAD, PadMode.EXPLICIT)
    groups: int = attribute(integer(1), 1)
    data_format: DataFormat = attribute(DATA_FORMAT, DataFormat.NXC)

    @property
    def channels_last(self) -> bool:
        return self.data_format is DataFormat.NXC

    @property
    @abc.abstractmethod
    def spatial_first(self) -> bool:
        """Whether the filter is laid out [spatial..., out/groups, in]."""

    @property
    def packing_copies(self) -> int:
        return int(self.spatial_first)

    def compare_semantics(self, inputs: Infos, context: Context) -> SemanticsDifference | None:
        """Compare the pads, which can differ only if they are computed from the extents."""
        same = self.auto_pad in (PadMode.SAME_UPPER, PadMode.SAME_LOWER)
        return self.compare_pads(inputs, context) if same else None

    def check_output_padding(self, spatial: int) -> None:
        """Allow more elements: serialised graphs always write 12."""
        if len(self.output_padding or ()) <= spatial:
            super().check_output_padding(spatial)

    def filter_dims(self, shape: tuple[Dim, ...]) -> FilterDims:
        """Read the filter by role; its input channels are those of all groups."""
        if self.spatial_first:
            inputs, outputs, kernel = shape[-1], shape[-2], shape[:-2]
        else:
            inputs, outputs, kernel = shape[0], shape[1], shape[2:]
        per_group = quotient(inputs, self.groups)
        if per_group is None:
            raise ShapeError(
                f"{self.inputs[1]} has {inputs} input channels, which groups={self.groups} "
                "does not divide",
                attribute="groups",
                expected=f"a multiple of {self.groups}",
                actual=inputs,
                rule="groups",
            )
        return FilterDims(self.groups, per_group, outputs, kernel)

    def groups_of(self, filter_shape: Sequence[int]) -> int:
        return self.groups

    def canonical_filter(self, weights: Constant) -> Constant:
        """Lay out a filter for the kernel: [in, out/groups, spatial...]."""
        return np.moveaxis(whole(weights), (-1, -2), (0, 1)) if self.spatial_first else weights

    def check_types(self, inputs: Infos, context: Context) -> ElementType | None:
        checked = [i for i, name in zip(inputs, self.inputs, strict=False) if name != "dst_shape"]
        element_type = merged_type(checked, self.inputs)
        accepted = ("f32", "bf16", "f16", *["f64"] * context.accuracy.is_float64)
        if element_type is not None and element_type.name not in accepted:
            wanted = "f32, bf16 or f16"
            raise misfit("element-type", self.inputs[0], f"be {wanted}", element_type, wanted)
        return element_type


@operation(
    "ConvTranspose(data, filter, bias?)",
    "f32[1,5,4], f32[3,3,4], f32[6] -> f32[1,11,6]"
    " | strides=2 pads_begin=0 pads_end=0 dilations=1 groups=2",
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

    bias_at = 2

    filter_format: FilterFormat = attribute(choice(FilterFormat, fold=False), FilterFormat.XOI)

    declared: tuple[int, ...] | None = field(default=None)
    """The declared shape of the output."""

    @property
    def spatial_first(self) -> bool:
        return self.filter_format is FilterFormat.XOI

    def extent(self, index: int, axis: Axis, data: Dim, kernel: Dim, semantics: Semantics) -> Dim:
        found = super().extent(index, axis, data, kernel, semantics)
        if not isinstance(found, int) or not isinstance(kernel, int):
            return found
        return self._accepted(index, axis, kernel, found, semantics)

    def geometry(self, inputs: Infos, context: Context) -> tuple[AxisGeometry, ...] | None:
        found = super().geometry(inputs, context)
        if found is None or context.semantics is not Semantics.ONEDNN:
            return found
        _, filter_ = self.dims(inputs, len(found))
        rows = enumerate(zip(self.axes(len(found)), filter_.kernel, found, strict=True))
        return tuple(
            geo._replace(output=self._accepted(i, axis, bounds(k)[0], geo.output, Semantics.ONEDNN))
            for i, (axis, k, geo) in rows
        )

    def _accepted(
        self, index: int, axis: Axis, kernel: int, extent: int, semantics: Semantics
    ) -> int:
        """Return the extent of an axis that the library accepts if it clamps the padding.

        It computes the declared extent if a convolution of that extent gives back the data's.
        """
        same = self.auto_pad in (PadMode.SAME_UPPER, PadMode.SAME_LOWER)
        clamped = effective_kernel(kernel, axis.dilation) < axis.stride
        if semantics is not Semantics.ONEDNN or not same or not clamped or self.declared is None:
            return extent
        spatial = self.declared[1:-1] if self.channels_last else self.declared[2:]
        wanted = spatial[index] if index < len(spatial) else extent
        return wanted if extent <= wanted < extent + axis.stride else extent

    def axis_geometry(
        self, axis: Axis, data: int, kernel: int, output: int | None, semantics: Semantics
    ) -> AxisGeometry:
        return conv_transpose_axis(axis, data, kernel, self.auto_pad, semantics)

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        (result,) = OneDNNDeconvolution.infer(self, inputs, context)
        bias = inputs[2].shape if len(inputs) > 2 else None
        if bias is not None and inputs[1].shape is not None:
            filter_ = self.filter_dims(inputs[1].shape)
            channels = product(filter_.groups, filter_.outputs)
            if len(bias) != 1 or intersect_dims(bias[0], channels) is None:
                wanted = f"[{channels}]"
                raise misfit("bias-shape", "bias", f"have shape {wanted}", bias, wanted)
        return (result,)


@operation(
    "ConvolutionBackwardData(diff_dst, weights, dst_shape?)",
    "f32[1,5,4], f32[3,3,4] -> f32[1,11,3]"
    " | strides=2 pads_begin=0 pads_end=0 dilations=1 dst_shape=1,11,3",
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
        return self.weights_format is WeightsFormat.XIO

    def axis_geometry(
        self, axis: Axis, data: int, kernel: int, output: int | None, semantics: Semantics
    ) -> AxisGeometry:
        assert output is not None, "requested_output always returns extents"
        return backward_data_axis(axis, data, kernel, output, self.auto_pad, semantics)

    def requested_output(self, inputs: Infos, spatial: int) -> Requested:
        """Return dst_shape, from the input or else from the attribute."""
        rank = spatial + 2
        dims: tuple[Dim, ...]
        if len(inputs) > 2:
            dims = check_output_shape(inputs[2], "dst_shape", rank)
        elif self.dst_shape is None:
            raise missing_shape("dst_shape", "third")
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
        full = self.data_dims(dims)
        return full.spatial, full
