"""Normalisations: MVN, GroupNormalization, BatchNormInference, NormalizeL2, LRN, GRN."""

from __future__ import annotations

import abc
import enum
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from deconv_ir.errors import ShapeError
from deconv_ir.ir.boxes import Boxes, LayerTile, Statistic, sole
from deconv_ir.ir.dtypes import Array
from deconv_ir.ir.geometry import UNKNOWN, Dim
from deconv_ir.ir.operation import Arrays, Call, Context, Infos, Operation, TensorInfo
from deconv_ir.ir.shapes import Shape, static
from deconv_ir.ops.axis_statistics import Moments
from deconv_ir.ops.base import attribute, boolean, choice, integer, integers, number, operation
from deconv_ir.ops.checks import (
    check_axes,
    check_least_rank,
    check_rank,
    check_shape,
    check_type,
    known_integers,
    leading_type,
    merged_type,
    normalize_axes,
)
from deconv_ir.ops.checks import integers as elements
from deconv_ir.ops.normalization.standardizing import (
    EpsMode,
    Standardizing,
    standardizer,
    standardizer_bytes,
)
from deconv_ir.ops.numeric import keeps_type, narrow, np, widen, widened_bytes
from deconv_ir.ops.tile_rules import along_axes

if TYPE_CHECKING:
    from deconv_ir.ops.allowance import Bounds, Case


class _Normalization(Operation):
    """An operation that keeps the shape and type of the data."""

    formula = "the shape of data, {shape[data]}"


def _keep_shape(inputs: Infos) -> tuple[TensorInfo, ...]:
    """Infer the output of data and axes."""
    data, axes = inputs
    element_type = check_type(data, "data", "float")
    check_axes(axes, data.shape)
    return (TensorInfo(data.shape, element_type),)


class _StandardizingOperation(_Normalization, abc.ABC):
    """Normalisation by mean and deviation."""

    def allowance(self, case: Case) -> Bounds | None:
        from deconv_ir.ops.allowance import composed

        return composed(case, arguments=16)

    @abc.abstractmethod
    def how(self, rank: int, axes: tuple[int, ...]) -> Standardizing:
        """Return the parameters of the standardisation, given the elements of the input `axes`."""

    def function(
        self, shape: tuple[int, ...], axes: tuple[int, ...], dtype: Any, scratch_bytes: int
    ) -> Callable[[Arrays, Array | None], Array]:
        """Return a function that computes the output from inputs in their working precision."""
        found = standardizer(shape, dtype, self.how(len(shape), axes), scratch_bytes)
        return lambda arrays, out: found(arrays[0], out)

    def known_axes(self, inputs: Infos) -> tuple[int, ...] | None:
        """Return the elements of the input `axes`, () without that input; None: not known."""
        return known_integers(inputs[1]) if "axes" in self.inputs else ()

    def accepts_out(self, inputs: Infos, output: TensorInfo) -> bool:
        """Write to an array if its type and order of axes are those of the computation."""
        axes, element_type = self.known_axes(inputs), output.element_type
        if axes is None or element_type is None or not keeps_type(element_type):
            return False
        rank = len(static(output.shape))
        found = self.seen_axes(rank, axes)
        return sorted(found) == list(range(rank - len(found), rank))

    def overwritable(self, inputs: Infos, output: TensorInfo) -> tuple[int, ...]:
        return (0,)

    def execute_into(self, inputs: Arrays, context: Context, out: Array) -> None:
        axes = elements(inputs[1]) if "axes" in self.inputs else ()
        self.function(out.shape, axes, out.dtype, context.scratch_bytes)(inputs, out)

    def bind(self, inputs: Infos, outputs: Infos, context: Context) -> Call:
        """Prepare the function once if the axes are known."""
        axes, element_type = self.known_axes(inputs), inputs[0].element_type
        if axes is None or element_type is None or not keeps_type(element_type):
            return super().bind(inputs, outputs, context)
        shape = static(inputs[0].shape)
        found = self.function(shape, axes, element_type.numpy(), context.scratch_bytes)
        return lambda arrays, out: (found(arrays, out),)

    def tile(self, boxes: Boxes, inputs: Infos, outputs: Infos, context: Context) -> LayerTile:
        axes = self.known_axes(inputs)
        if axes is None:
            return super().tile(boxes, inputs, outputs, context)
        rank = len(static(inputs[0].shape))
        return along_axes(self, boxes, self.seen_axes(rank, axes), inputs, outputs)

    def seen_axes(self, rank: int, axes: tuple[int, ...]) -> tuple[int, ...]:
        """Return the axes over which mean and deviation are taken."""
        return self.how(rank, axes).axes

    def statistic(self, inputs: Infos, outputs: Infos) -> Statistic | None:
        axes = self.known_axes(inputs)
        if axes is None:
            return None
        how = self.how(len(static(inputs[0].shape)), axes)
        return Moments(inputs[0], how.axes, how.factor)

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        axes = elements(inputs[1]) if "axes" in self.inputs else ()
        data = widen(inputs[0])
        found = self.function(data.shape, axes, data.dtype, context.scratch_bytes)
        with np.errstate(all="ignore"):
            return (narrow(found([data, *map(widen, inputs[1:])], None), inputs[0].dtype),)

    def scratch(self, inputs: Infos, outputs: Infos, context: Context) -> int:
        """Count the temporary arrays of `standardizer`."""
        return standardizer_bytes(inputs[0], context)


@operation(
    "MVN-2(data)",
    "f32[2,3,4,5] -> f32[2,3,4,5] | across_channels=false normalize_variance=true eps=1e-9",
)
class MVN1(_StandardizingOperation):
    """Mean (and variance) normalisation over the spatial axes, or channels too.

    Source: OpenVINO operation specification, MVN-1.
    """

    across_channels: bool = attribute(boolean(), False)
    normalize_variance: bool = attribute(boolean(), True)
    eps: float = attribute(number(minimum=0), 1e-9)
    reduction_axes: tuple[int, ...] = attribute(integers(0), ())

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        element_type = check_type(inputs[0], "data", "float")
        check_least_rank(inputs[0], "data", 2)
        if inputs[0].shape is not None:
            normalize_axes(self.reduction_axes, len(inputs[0].shape), "reduction_axes")
        return (TensorInfo(inputs[0].shape, element_type),)

    def how(self, rank: int, axes: tuple[int, ...]) -> Standardizing:
        """Return the parameters; eps is added inside the root, as in OpenVINO."""
        axes = self.reduction_axes or tuple(range(1 if self.across_channels else 2, rank))
        return Standardizing(axes, self.eps, EpsMode.INSIDE_SQRT, self.normalize_variance)


@operation(
    "MVN-6(data, axes)",
    "f32[2,3,4,5], i64[2]{2,-1} -> f32[2,3,4,5]"
    " | normalize_variance=true eps=1e-9 eps_mode=outside_sqrt",
)
class MVN6(_StandardizingOperation):
    """Mean (and variance) normalisation over axes."""

    normalize_variance: bool = attribute(boolean())
    eps: float = attribute(number(minimum=0))
    eps_mode: EpsMode = attribute(choice(EpsMode))

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        return _keep_shape(inputs)

    def how(self, rank: int, axes: tuple[int, ...]) -> Standardizing:
        """Return the parameters."""
        axes = normalize_axes(axes, rank)
        return Standardizing(axes, self.eps, self.eps_mode, self.normalize_variance)


@operation(
    "GroupNormalization-12(data, scale, bias)",
    "f32[2,6,4,5], f32[6], f32[6] -> f32[2,6,4,5] | num_groups=3 epsilon=1e-5",
)
class GroupNormalization(_StandardizingOperation):
    """Normalisation over groups of channels, then scale and bias for each channel."""

    num_groups: int = attribute(integer(1))
    epsilon: float = attribute(number(minimum=0))

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        data = inputs[0]
        element_type = leading_type(inputs, self.inputs, "float")
        check_least_rank(data, "data", 2)
        channels: Dim = UNKNOWN if data.shape is None else data.shape[1]
        for info, name in zip(inputs[1:], self.inputs[1:], strict=True):
            check_shape(info, name, (channels,))
        if isinstance(channels, int) and channels % self.num_groups:
            raise ShapeError(
                f"{channels} channels do not make {self.num_groups} groups",
                attribute="num_groups",
                expected=f"a divisor of {channels}",
                actual=self.num_groups,
                rule="groups",
            )
        return (TensorInfo(data.shape, element_type),)

    def how(self, rank: int, axes: tuple[int, ...]) -> Standardizing:
        """Return the parameters for rows of groups."""
        return Standardizing((2,), self.epsilon)

    def seen_axes(self, rank: int, axes: tuple[int, ...]) -> tuple[int, ...]:
        """Return the axes over which mean and deviation are taken: all but the batch."""
        return tuple(range(1, rank))

    def statistic(self, inputs: Infos, outputs: Infos) -> Statistic | None:
        rank = len(static(inputs[0].shape))
        factor = self.how(rank, ()).factor
        return Moments(inputs[0], tuple(range(2, rank)), factor, self.num_groups)

    def function(
        self, shape: tuple[int, ...], axes: tuple[int, ...], dtype: Any, scratch_bytes: int
    ) -> Callable[[Arrays, Array | None], Array]:
        """Return a function that normalises groups and scales channels."""
        from deconv_ir.kernels import empty
        from deconv_ir.kernels.runtime.extension import compiled_module

        grouped = shape[0], self.num_groups, math.prod(shape[1:]) // self.num_groups
        found = super().function(grouped, axes, dtype, scratch_bytes)
        per_channel = (shape[1],) + (1,) * (len(shape) - 2)
        compiled = dtype == np.float32 and compiled_module() is not None and math.prod(shape) > 0

        def run(arrays: Arrays, out: Array | None) -> Array:
            data, *parameters = arrays
            scale, bias = (values.astype(dtype, copy=False) for values in parameters)
            if compiled:
                from deconv_ir.kernels.normalization import standardize

                out = empty(shape, dtype) if out is None else out
                standardize(data, out, grouped[2], eps=self.epsilon, scale=scale, bias=bias)
                return out
            target = None if out is None else out.reshape(grouped)
            result = found([data.reshape(grouped)], target).reshape(shape)
            np.multiply(result, scale.reshape(per_channel), out=result)
            np.add(result, bias.reshape(per_channel), out=result)
            return result

        return run


@operation(
    "BatchNormInference-1(gamma, beta, data, mean, variance)",
    "f32[3], f32[3], f32[2,3,4], f32[3], f32[3] -> f32[2,3,4] | epsilon=1e-5",
)
class BatchNormInference1(_Normalization):
    """(x - mean) / sqrt(variance + epsilon) * gamma + beta, for each channel."""

    epsilon: float = attribute(number(minimum=0))

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        element_type = merged_type(inputs, self.inputs, "float")
        data = inputs[self.inputs.index("data")]
        check_least_rank(data, "data", 2)
        channels: Shape = None if data.shape is None else (data.shape[1],)
        for info, name in zip(inputs, self.inputs, strict=True):
            if name != "data":
                check_rank(info, name, 1)
                channels = check_shape(info, name, channels)
        shape = data.shape
        if shape is not None and channels is not None:
            shape = (shape[0], channels[0], *shape[2:])
        return (TensorInfo(shape, element_type),)

    def allowance(self, case: Case) -> Bounds | None:
        from deconv_ir.ops.allowance import sums

        inputs, at = list(case.inputs), self.inputs.index
        inputs[at("mean")] = -np.abs(inputs[at("mean")])  # the magnitudes of a difference
        return sums(case._replace(inputs=inputs), 1, values=[at("data"), at("gamma"), at("beta")])

    def tile(self, boxes: Boxes, inputs: Infos, outputs: Infos, context: Context) -> LayerTile:
        box = sole(boxes)
        at = self.inputs.index("data")
        found = tuple(box if i == at else (box[1],) for i in range(len(inputs)))
        return LayerTile(found, self)

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        named = {n: widen(a) for n, a in zip(self.inputs, inputs, strict=True)}
        data = named["data"]
        per_channel = (-1,) + (1,) * (data.ndim - 2)
        with np.errstate(all="ignore"):
            scale = named["gamma"] / np.sqrt(named["variance"] + data.dtype.type(self.epsilon))
            result = data - named["mean"].reshape(per_channel)
            result *= scale.reshape(per_channel)
            result += named["beta"].reshape(per_channel)
            return (narrow(result, inputs[self.inputs.index("data")].dtype),)

    def scratch(self, inputs: Infos, outputs: Infos, context: Context) -> int:
        """Count copies in f32 of narrow floats."""
        return widened_bytes(outputs[0])


@operation(
    "BatchNormInference-5(data, gamma, beta, mean, variance)",
    "f32[2,3,4], f32[3], f32[3], f32[3], f32[3] -> f32[2,3,4] | epsilon=1e-5",
)
class BatchNormInference5(BatchNormInference1):
    """(x - mean) / sqrt(variance + epsilon) * gamma + beta, for each channel."""


class EpsRule(enum.Enum):
    """The rule by which NormalizeL2 avoids a division by 0."""

    ADD = "add"
    MAX = "max"


class _OverAxes(_Normalization):
    """Data and axes in, data out."""

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        return _keep_shape(inputs)

    def allowance(self, case: Case) -> Bounds | None:
        from deconv_ir.ops.allowance import composed

        return composed(case, arguments=4)

    def tile(self, boxes: Boxes, inputs: Infos, outputs: Infos, context: Context) -> LayerTile:
        axes = known_integers(inputs[1])
        if axes is None:
            return super().tile(boxes, inputs, outputs, context)
        axes = normalize_axes(axes, len(static(inputs[0].shape)))
        return along_axes(self, boxes, axes, inputs, outputs)


@operation(
    "NormalizeL2-1(data, axes)",
    "f32[2,3,4], i64[1]{1} -> f32[2,3,4] | eps=1e-8 eps_mode=max",
)
class NormalizeL2(_OverAxes):
    """x / sqrt(sum(x * x)) over axes; without axes, each element by itself."""

    scratch_ratios = (0.5, 1.5)

    eps: float = attribute(number(minimum=0))
    eps_mode: EpsRule = attribute(choice(EpsRule))

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        data = widen(inputs[0])
        axes = normalize_axes(elements(inputs[1]), data.ndim)
        with np.errstate(all="ignore"):
            total = np.sum(data * data, axis=axes, keepdims=True)
            eps = data.dtype.type(self.eps)
            total = total + eps if self.eps_mode is EpsRule.ADD else np.maximum(total, eps)
            return (narrow(data / np.sqrt(total), inputs[0].dtype),)


@operation(
    "LRN-1(data, axes)",
    "f32[2,6,4,5], i64[1]{1} -> f32[2,6,4,5] | alpha=1e-4 beta=0.75 bias=1 size=5",
)
class LRN(_OverAxes):
    """x / (bias + alpha / size^axes * sum(x * x))^beta, the sum over a window along axes."""

    scratch_ratios = (1.75, 2.5)

    alpha: float = attribute(number())
    beta: float = attribute(number())
    bias: float = attribute(number())
    size: int = attribute(integer(1))

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        data = widen(inputs[0])
        axes = normalize_axes(elements(inputs[1]), data.ndim)
        total = data * data
        for axis in axes:
            total = _window_sum(total, axis, self.size)
        alpha = self.alpha
        for _ in axes:
            alpha /= self.size
        scale = data.dtype.type(alpha)
        with np.errstate(all="ignore"):
            base = data.dtype.type(self.bias) + scale * total
            return (narrow(data / np.power(base, data.dtype.type(self.beta)), inputs[0].dtype),)


def _window_sum(data: Array, axis: int, size: int) -> Any:
    """Sum `size` neighbours along an axis, centered at each element."""
    extent = data.shape[axis]
    result = np.zeros_like(data)
    half = (size - 1) // 2
    moved, source = np.moveaxis(result, axis, 0), np.moveaxis(data, axis, 0)
    for shift in range(max(-half, 1 - extent), min(size - half, extent)):
        low, high = max(0, -shift), min(extent, extent - shift)
        if high > low:
            moved[low:high] += source[low + shift : high + shift]
    return result


@operation("GRN-1(data)", "f32[2,3,4,5] -> f32[2,3,4,5] | bias=1e-4")
class GRN(Operation):
    """x / sqrt(bias + sum of squares over the channels)."""

    scratch_ratios = (0.5, 1.5)

    formula = "the shape of data, {shape[data]}"

    bias: float = attribute(number(minimum=0))

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        element_type = check_type(inputs[0], "data", "float")
        check_rank(inputs[0], "data", 2, 3, 4)
        return (TensorInfo(inputs[0].shape, element_type),)

    def allowance(self, case: Case) -> Bounds | None:
        from deconv_ir.ops.allowance import composed

        return composed(case, arguments=4)

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        data = widen(inputs[0])
        squares = np.sum(data * data, axis=1, keepdims=True)
        result = data / np.sqrt(squares + data.dtype.type(self.bias))
        return (narrow(result, inputs[0].dtype),)
