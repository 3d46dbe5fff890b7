"""Convolutions, their gradients and pooling of oneDNN Graph."""

from __future__ import annotations

import abc
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from deconv_ir.errors import ShapeError
from deconv_ir.ir.expression import SemanticsDifference
from deconv_ir.ir.geometry import PadMode, Rounding
from deconv_ir.ir.operation import Context, Infos
from deconv_ir.ir.options import Semantics
from deconv_ir.ir.shapes import is_static, static
from deconv_ir.ops.base import attribute, boolean, choice, choice_of, integer, integers
from deconv_ir.ops.checks import check_least_rank, merged_type
from deconv_ir.ops.convolution.onednn import (
    AUTO_PAD,
    DATA_FORMAT,
    DataFormat,
    FilterFormat,
    WeightsFormat,
)
from deconv_ir.ops.onednn.decomposition import Composite, Decomposition, Ref, kind
from deconv_ir.ops.pooling.pooling import Pooling

if TYPE_CHECKING:
    from deconv_ir.ir.dtypes import Array

_ROUNDING = choice_of({"floor": Rounding.FLOOR, "ceil": Rounding.CEIL})


class ByChannel(Composite):
    """An operation on data with channels first or last."""

    data_format: DataFormat = attribute(DATA_FORMAT, DataFormat.NXC)

    @property
    def channels_last(self) -> bool:
        """Whether data and output are laid out [N, spatial..., C]."""
        return self.data_format is DataFormat.NXC

    def enter(self, steps: Decomposition, ref: Ref) -> Ref:
        """Widen the data, and transpose it to [N, C, spatial...]."""
        check_least_rank(steps.infos[ref], self.inputs[0], 2)
        wide = steps.wide(ref)
        return steps.to_ncx(wide) if self.channels_last else wide

    def leave(self, steps: Decomposition, ref: Ref) -> Ref:
        """Convert the output to the layout and element type of the data."""
        found = steps.to_nxc(ref) if self.channels_last else ref
        return steps.cast(found, steps.infos[0].element_type)


class OneDNNWindowed(ByChannel):
    """Attributes of operations with a sliding window."""

    strides: tuple[int, ...] | None = attribute(integers(1, per_axis=True), None, required=True)
    pads_begin: tuple[int, ...] | None = attribute(integers(0, per_axis=True), None, required=True)
    pads_end: tuple[int, ...] | None = attribute(integers(0, per_axis=True), None, required=True)
    auto_pad: PadMode = attribute(AUTO_PAD, PadMode.EXPLICIT)

    def windows(self, steps: Decomposition) -> tuple[Ref, dict[str, Any]]:
        """Return the data, and the positions of windows."""
        return self.enter(steps, 0), {
            "strides": self.strides,
            "pads_begin": self.pads_begin or None,
            "pads_end": self.pads_end or None,
            "auto_pad": self.auto_pad,
        }


class WindowedConvolution(OneDNNWindowed, abc.ABC):
    """A convolution: layouts of its filter, groups."""

    dilations: tuple[int, ...] | None = attribute(integers(1, per_axis=True), None, required=True)
    groups: int = attribute(integer(1), 1)

    @property
    @abc.abstractmethod
    def filter_order(self) -> tuple[int, int] | None:
        """Axes of output and input channels of a filter [spatial..., ...]; None: [O, I, ...]."""

    def filter(self, steps: Decomposition, ref: Ref) -> Ref:
        """Transpose a filter to [O, I / groups, spatial...], as in OpenVINO's convolution."""
        check_least_rank(steps.infos[ref], self.inputs[1], 3)
        found = steps.wide(ref)
        rank = steps.rank(found)
        order = self.filter_order
        if order is not None:
            spatial = range(rank - 2)
            found = steps.transpose(found, (rank + order[0], rank + order[1], *spatial))
        if self.groups == 1:
            return found
        outputs, inputs, *kernel = steps.shape(found)
        if outputs % self.groups:
            raise ShapeError(
                f"{self.inputs[1]} has {outputs} output channels, which groups={self.groups} "
                "does not divide",
                attribute="groups",
                expected=f"a multiple of {self.groups}",
                actual=outputs,
                rule="groups",
            )
        return steps.reshape(found, (self.groups, outputs // self.groups, inputs, *kernel))

    def by_outputs(self, weights: Array) -> Array:
        """Return an array laid out as `filter` does."""
        rank, order = weights.ndim, self.filter_order
        if order is not None:
            axes = (rank + order[0], rank + order[1], *range(rank - 2))
            weights = weights.transpose(axes)
        if self.groups == 1:
            return weights
        return weights.reshape(self.groups, -1, *weights.shape[1:])

    def decompose(self, steps: Decomposition) -> Sequence[Ref]:
        """Convolve, and add the bias."""
        merged_type(steps.infos, self.inputs, "float")
        data, windows = self.windows(steps)
        found = steps.add(
            "Convolution" if self.groups == 1 else "GroupConvolution",
            data,
            self.filter(steps, 1),
            dilations=self.dilations,
            **windows,
        )
        if steps.count > 2:
            bias = add_channels(steps, steps.wide(2), found, "bias")
            found = steps.add("Add", found, bias)
        return (self.leave(steps, found),)


def add_channels(steps: Decomposition, values: Ref, data: Ref, name: str) -> Ref:
    """Reshape a list of channels to the rank of data [N, C, spatial...]."""
    if steps.rank(values) != 1:
        raise ShapeError(f"{name} must have rank 1", rule="bias-shape")
    rank = steps.rank(data)
    shape, channels = steps.infos[values].shape or (), steps.infos[data].shape or ()
    if rank < 2 or shape[0] != channels[1]:
        wanted = channels[1] if rank > 1 else "C"
        message = f"{name} must have shape [{wanted}], found [{shape[0]}]"
        raise ShapeError(message, expected=f"[{wanted}]", actual=f"[{shape[0]}]", rule="bias-shape")
    return steps.reshape(values, (1, -1, *(1,) * (rank - 2)))


@kind("Convolution", ("src", "weights", "bias"), 2)
class OneDNNConvolution(WindowedConvolution):
    """Convolution of oneDNN Graph: layouts, groups, bias."""

    weights_format: WeightsFormat = attribute(choice(WeightsFormat, fold=False), WeightsFormat.XIO)

    @property
    def filter_order(self) -> tuple[int, int] | None:
        """[spatial..., I, O]."""
        return (-1, -2) if self.weights_format is WeightsFormat.XIO else None


@kind("ConvTransposeBackwardData", ("diff_dst", "weights"))
class ConvTransposeBackwardData(WindowedConvolution):
    """Gradient of ConvTranspose with respect to its data: a convolution.

    The weights are those of the ConvTranspose, [I, O / groups, K...] (IOX) or
    [K..., O / groups, I] (XOI).
    """

    filter_format: FilterFormat = attribute(choice(FilterFormat, fold=False), FilterFormat.XOI)

    @property
    def filter_order(self) -> tuple[int, int] | None:
        """[spatial..., O, I]; the input channels of ConvTranspose are the outputs here."""
        return (-1, -2) if self.filter_format is FilterFormat.XOI else None


class _OneDNNPool(OneDNNWindowed):
    kernel: tuple[int, ...] = attribute(integers(1, per_axis=True))
    rounding_type: Rounding = attribute(_ROUNDING, Rounding.FLOOR)

    def pool(self, inputs: Infos, context: Context) -> tuple[Pooling, Infos]:
        """Return the pooling of the decomposition, and its input."""
        steps, _ = self.build(inputs, context)
        for step in steps.steps:
            if isinstance(step.operation, Pooling):
                return step.operation, [steps.infos[i] for i in step.inputs]
        raise AssertionError("the steps has a pooling")


@kind("MaxPool", ("src",))
class OneDNNMaxPool(_OneDNNPool):
    """Maximum of a window."""

    dilations: tuple[int, ...] | None = attribute(integers(1), None)

    def decompose(self, steps: Decomposition) -> Sequence[Ref]:
        """Pool; more dilations than spatial axes are ignored."""
        data, windows = self.windows(steps)
        if steps.follows_library:  # which combines its windows as the OpenVINO runtime does
            steps.context = steps.context._replace(semantics=Semantics.OPENVINO)
        dilations = self.dilations
        spatial = steps.rank(data) - 2
        if dilations and len(dilations) > spatial:
            dilations = dilations[:spatial]
        found = steps.add(
            "MaxPool",
            data,
            version="opset8",
            dilations=dilations or None,
            kernel=self.kernel,
            rounding_type=self.rounding_type,
            **windows,
        )
        return (self.leave(steps, found),)

    def compare_semantics(self, inputs: Infos, context: Context) -> SemanticsDifference | None:
        """Compare the windows of padding alone."""
        pool, infos = self.pool(inputs, context)
        return pool.compare_semantics(infos, context)


@kind("AvgPool", ("src",))
class OneDNNAvgPool(_OneDNNPool):
    """Mean of the elements in a window."""

    exclude_pad: bool = attribute(boolean())

    def compare_semantics(self, inputs: Infos, context: Context) -> SemanticsDifference | None:
        """Compare the treatment of pads, which the library never counts if it rounds up."""
        if self.exclude_pad or self.rounding_type is Rounding.FLOOR:
            return None
        pool, infos = self.pool(inputs, context)
        shape = infos[0].shape
        if not is_static(shape) or not any(
            axis.pad_begin or axis.pad_end for axis in pool.geometry(static(shape)[2:])
        ):
            return None
        kernel = math.prod(self.kernel)
        return SemanticsDifference(
            f"gives a window with padding the divisor {kernel}",
            "the number of its elements in the data",
            (kernel,),
            ("elements in the data",),
        )

    def decompose(self, steps: Decomposition) -> Sequence[Ref]:
        """Pool."""
        data, windows = self.windows(steps)
        rounds_up = self.rounding_type is Rounding.CEIL
        found = steps.add(
            "AvgPool",
            data,
            version="opset1",
            kernel=self.kernel,
            exclude_pad=self.exclude_pad or (steps.follows_library and rounds_up),
            rounding_type=self.rounding_type,
            **windows,
        )
        return (self.leave(steps, found),)
