"""What the two oneDNN Graph operations share: groups, layouts, element types."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import TYPE_CHECKING

from deconv_ir.errors import ShapeError
from deconv_ir.ir.dtypes import ElementType
from deconv_ir.ir.geometry import Dim, PadMode
from deconv_ir.ir.lazy_tensor import whole
from deconv_ir.ir.operation import Infos
from deconv_ir.ops.base import attribute, choice, choice_of, integer
from deconv_ir.ops.checks import merged_type
from deconv_ir.ops.convolution.deconvolution import Deconvolution
from deconv_ir.ops.convolution.views import FilterView, quotient
from deconv_ir.ops.numeric import np

if TYPE_CHECKING:
    from deconv_ir.ir.lazy_tensor import Constant


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


DATA_FORMAT = choice(DataFormat, fold=False)
AUTO_PAD = choice_of(
    {
        "none": PadMode.EXPLICIT,
        "same_upper": PadMode.SAME_UPPER,
        "same_lower": PadMode.SAME_LOWER,
        "valid": PadMode.VALID,
    }
)


class OneDNNDeconvolution(Deconvolution):
    """Attributes and behaviour of both oneDNN operations."""

    auto_pad: PadMode = attribute(AUTO_PAD, PadMode.EXPLICIT)
    groups: int = attribute(integer(1), 1)
    data_format: DataFormat = attribute(DATA_FORMAT, DataFormat.NXC)

    @property
    def channels_last(self) -> bool:
        """Whether data and output are laid out [N, spatial..., C]."""
        return self.data_format is DataFormat.NXC

    @property
    def spatial_first(self) -> bool:
        """Whether the filter is laid out [spatial..., out/groups, in]."""
        raise NotImplementedError

    def check_length(self, name: str, values: tuple[int, ...] | None, spatial: int) -> None:
        """Allow output_padding to be longer: serialised graphs always write 12 elements."""
        if name == "output_padding" and values and len(values) > spatial:
            return
        Deconvolution.check_length(self, name, values, spatial)

    def filter_view(self, shape: tuple[Dim, ...]) -> FilterView:
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
        return FilterView(self.groups, per_group, outputs, kernel)

    def groups_of(self, filter_shape: Sequence[int]) -> int:
        """Groups are an attribute."""
        return self.groups

    def canonical_filter(self, filter: Constant) -> Constant:  # noqa: A002
        """Lay out a filter as the kernel takes it: [in, out/groups, spatial...]."""
        return np.moveaxis(whole(filter), (-1, -2), (0, 1)) if self.spatial_first else filter

    def check_types(self, inputs: Infos) -> ElementType | None:
        """Require one of f32, bf16, f16 for all tensors."""
        checked = [i for i, name in zip(inputs, self.inputs, strict=False) if name != "dst_shape"]
        element_type = merged_type(checked, self.inputs)
        if element_type is not None and element_type.name not in ("f32", "bf16", "f16"):
            raise ShapeError(
                f"{self.inputs[0]} must be f32, bf16 or f16, found {element_type}",
                expected="f32, bf16 or f16",
                actual=element_type,
                rule="element-type",
            )
        return element_type
