"""Activations with attributes or parameters as inputs."""

from __future__ import annotations

import enum
import math
from typing import TYPE_CHECKING, Any

from deconv_ir.errors import ShapeError
from deconv_ir.ir.dtypes import Array, ElementType
from deconv_ir.ir.geometry import Dim
from deconv_ir.ir.operation import Arrays, Call, Context, Infos, Operands, TensorInfo
from deconv_ir.ir.shapes import compatible, element_count, intersect_dims, static
from deconv_ir.ops.base import attribute, choice, number, operation
from deconv_ir.ops.checks import check_type, merged_type, misfit, only
from deconv_ir.ops.elementwise.blocks import is_small
from deconv_ir.ops.elementwise.broadcasting import broadcasts_to, not_broadcast
from deconv_ir.ops.elementwise.elementwise import Elementwise, Unary
from deconv_ir.ops.elementwise.unary import erf, expm1
from deconv_ir.ops.numeric import keeps_type, np
from deconv_ir.ops.values import MAXIMUM, MINIMUM

if TYPE_CHECKING:
    from deconv_ir.ir.expression import Expression


@operation("Clamp-1(data)", "f32[2,3] -> f32[2,3] | min=-1 max=2.5")
class Clamp(Unary):
    """min(max(x, min), max); NaN stays NaN.

    For integers, `min` is rounded up and `max` down.
    """

    selects = True

    min: float = attribute(number())
    max: float = attribute(number())

    def _check(self) -> None:
        if self.max < self.min:
            message = f"min {self.min} is greater than max {self.max}"
            raise ShapeError(
                message, attribute="min", expected=f"<= {self.max}", actual=self.min, rule="clamp"
            )

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        self._check()
        (info,) = Unary.infer(self, inputs, context)
        value = inputs[0].value
        if value is not None:
            value = tuple(self._clamp(dim, info.element_type) for dim in value)
        return (TensorInfo(info.shape, info.element_type, value),)

    def _clamp(self, dim: Dim, element_type: ElementType | None) -> Dim:
        if math.isfinite(self.min):
            dim = MAXIMUM(dim, math.ceil(self.min), element_type)
        if math.isfinite(self.max):
            dim = MINIMUM(dim, math.floor(self.max), element_type)
        return dim

    def compile(self, expression: Expression, operands: Operands, inputs: Infos) -> int | None:
        return expression.apply("clamp", *operands, immediates=(self.min, self.max))

    def apply(self, *arrays: Array) -> Array:
        (data,) = arrays
        low, high = self.min, self.max
        if data.dtype.kind in "iu":
            info = np.iinfo(data.dtype)
            low = info.min if low <= info.min else min(math.ceil(low), info.max)
            high = info.max if high >= info.max else max(math.floor(high), info.min)
        result: Array = np.minimum(np.maximum(data, data.dtype.type(low)), data.dtype.type(high))
        return result


@operation("Elu-1(data)", "f32[2,3] -> f32[2,3] | alpha=0.5")
class Elu(Unary):
    """x, or alpha * (exp(x) - 1) where x is negative."""

    family = "float"
    absolute = 8

    alpha: float = attribute(number())

    def compile(self, expression: Expression, operands: Operands, inputs: Infos) -> int | None:
        return expression.apply("elu", *operands, immediates=(self.alpha,))

    def apply(self, *arrays: Array) -> Array:
        (data,) = arrays
        negative = data.dtype.type(self.alpha) * expm1(np.minimum(data, 0))
        result: Array = np.maximum(data, 0) + negative
        return result


class GeluMode(enum.Enum):
    """The formula of Gelu."""

    ERF = "erf"
    TANH = "tanh"


@operation("Gelu-2(data)", "f32[2,3] -> f32[2,3]")
class Gelu2(Unary):
    """x * (1 + erf(x / sqrt 2)) / 2."""

    family = "float"
    temporaries = 8
    compiled = "gelu"
    absolute = 8

    approximation_mode: GeluMode = GeluMode.ERF

    def apply(self, *arrays: Array) -> Array:
        (x,) = arrays
        found: Array
        if self.approximation_mode is GeluMode.ERF:
            found = erf(x * math.sqrt(0.5))
            found += 1
            found *= 0.5 * x
            return found
        inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)
        found = 0.5 * x * (1 + np.tanh(inner))
        return found


@operation("Gelu-7(data)", "f32[2,3] -> f32[2,3] | approximation_mode=tanh")
class Gelu7(Gelu2):
    """x * (1 + erf(x / sqrt 2)) / 2, or its approximation by tanh."""

    approximation_mode: GeluMode = attribute(choice(GeluMode), GeluMode.ERF)

    def compile(self, expression: Expression, operands: Operands, inputs: Infos) -> int | None:
        by_erf = self.approximation_mode is GeluMode.ERF
        return expression.apply("gelu" if by_erf else "gelu_tanh", *operands)


class _WithScalars(Elementwise):
    """An activation whose parameters are scalar inputs."""

    formula = "the shape of the input, {shape[data]}"

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        element_type = merged_type(inputs, self.inputs, "float")
        for info, name in zip(inputs[1:], self.inputs[1:], strict=False):
            if info.shape is not None and any(intersect_dims(d, 1) is None for d in info.shape):
                raise misfit("rank", name, "be a scalar", info.shape, "a scalar")
        return (TensorInfo(inputs[0].shape, element_type),)

    def aligned(self, inputs: Arrays) -> Arrays:
        """Convert the parameters to scalars."""
        data, *scalars = inputs
        return (data, *(only(a, name) for a, name in zip(scalars, self.inputs[1:], strict=False)))


@operation("Selu-1(data, alpha, lambda)", "f32[2,3], f32[], f32[] -> f32[2,3]")
class Selu(_WithScalars):
    """lambda * x, or lambda * alpha * (exp(x) - 1) where x is not positive."""

    absolute = 8

    def compile(self, expression: Expression, operands: Operands, inputs: Infos) -> int | None:
        apply, (data, alpha, scale) = expression.apply, operands
        positive = apply("greater", data, expression.constant(0.0))
        negative = apply("multiply", alpha, apply("elu", data, immediates=(1,)))
        return apply("multiply", scale, apply("select", positive, data, negative))

    def apply(self, *arrays: Array) -> Array:
        data, alpha, scale = arrays
        negative = alpha * expm1(np.minimum(data, 0))
        result: Array = scale * (np.maximum(data, 0) + negative)
        return result


@operation("HardSigmoid-1(data, alpha, beta)", "f32[2,3], f32[], f32[] -> f32[2,3]")
class HardSigmoid(_WithScalars):
    """min(max(alpha * x + beta, 0), 1)."""

    absolute = 8

    def compile(self, expression: Expression, operands: Operands, inputs: Infos) -> int | None:
        data, alpha, beta = operands
        line = expression.apply("add", expression.apply("multiply", alpha, data), beta)
        return expression.apply("clamp", line, immediates=(0, 1))

    def apply(self, *arrays: Array) -> Array:
        data, alpha, beta = arrays
        result: Array = np.minimum(np.maximum(alpha * data + beta, 0), 1)
        return result


@operation("Swish-4(data, beta?)", "f32[2,3] -> f32[2,3]", "f32[2,3], f32[] -> f32[2,3]")
class Swish(_WithScalars):
    """x / (1 + exp(-beta * x)); default `beta`: 1."""

    absolute = 8

    def compile(self, expression: Expression, operands: Operands, inputs: Infos) -> int | None:
        if len(operands) == 1:
            return expression.apply("swish", *operands)
        data, beta = operands
        gate = expression.apply("sigmoid", expression.apply("multiply", beta, data))
        return expression.apply("multiply", data, gate)

    def apply(self, *arrays: Array) -> Array:
        data = arrays[0]
        minus_beta = -arrays[1] if len(arrays) > 1 else data.dtype.type(-1)
        result: Array = data / (1 + np.exp(minus_beta * data))
        return result


def prelu(data: Any, slope: Any, out: Any) -> None:
    """Write x, or slope * x where x is negative, to an array, which may be the data."""
    scaled = np.asarray(data * slope)  # for arrays of rank 0, the product is a number
    # `maximum` is ten times as fast as a choice by condition.
    if slope.min(initial=1) > 0 and slope.max(initial=1) <= 1:
        np.maximum(data, scaled, out=out)
    else:
        np.copyto(scaled, data, where=~(data < 0))
        np.copyto(out, scaled)


@operation(
    "PReLU-1(data, slope)",
    "f32[2,3,4,4], f32[3] -> f32[2,3,4,4]",
    "f32[2,3,4], f32[4] -> f32[2,3,4]",
    "f32[2,3,4,4], f32[1,3,1,4] -> f32[2,3,4,4]",
)
class PReLU(Elementwise):
    """x, or slope * x where x is negative; slopes: one, one per channel, or broadcast.

    The slope may be of another floating-point type than the data, as in files that Model Optimizer
    compressed to f16.
    """

    formula = "the shape of the input, {shape[data]}"
    arithmetic = True

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        data, slope = inputs
        element_type = check_type(data, "data", "float")
        check_type(slope, "slope", "float")
        if data.shape is not None and slope.shape is not None:
            spread = spread_slope(data.shape, slope.shape)
            if spread is None or not broadcasts_to(spread, data.shape):
                raise not_broadcast("slope", slope.shape, data.shape)
        return (TensorInfo(data.shape, element_type),)

    def aligned(self, inputs: Arrays) -> Arrays:
        """Broadcast a slope for each channel along axis 1."""
        data, slope = inputs
        spread = spread_slope(data.shape, slope.shape)
        return data, slope.reshape(static(spread))

    def aligned_shapes(self, *shapes: tuple[int, ...]) -> tuple[tuple[int, ...], ...]:
        data, slope = shapes
        return data, static(spread_slope(data, slope))

    def compile(self, expression: Expression, operands: Operands, inputs: Infos) -> int | None:
        (data, slope), (shape, slopes) = operands, (info.shape for info in inputs)
        spread = None if shape is None or slopes is None else spread_slope(shape, slopes)
        if spread is None or slopes is None:
            return None
        spread_out = expression.append_axes(slope, len(spread) - len(slopes))
        return expression.apply("prelu", data, spread_out)

    def apply(self, *arrays: Array) -> Array:
        result: Array = np.empty_like(arrays[0])
        data, slope = arrays
        prelu(data, slope, result)
        return result

    into = staticmethod(prelu)
    into_temporaries = 1

    def bind(self, inputs: Infos, outputs: Infos, context: Context) -> Call:
        """Check known slopes once: slopes from 0 to 1 allow a faster formula."""
        call = super().bind(inputs, outputs, context)
        slopes, element_type = inputs[1].reals, inputs[0].element_type
        if not slopes or not all(0 < slope <= 1 for slope in slopes):
            return call
        shape = static(outputs[0].shape)
        kept = element_type is not None and keeps_type(element_type)
        if not kept or not is_small(element_count(shape)):
            return call
        spread = static(spread_slope(shape, inputs[1].shape or ()))

        def bound(arrays: Arrays, out: Array | None) -> Arrays:
            data, slope = arrays
            return (np.maximum(data, data * slope.reshape(spread), out=out),)

        return bound


def spread_slope(data: tuple[Dim, ...], slope: tuple[Dim, ...]) -> tuple[Dim, ...] | None:
    """Return the shape in which NumPy's rule broadcasts a slope; None if it does not fit.

    A list as long as the data has channels runs along axis 1.
    """
    if len(slope) > len(data):
        return None
    channels = len(data) > 1 and len(slope) == 1 and slope[0] != 1
    if channels and compatible((data[1],), slope):
        return (*slope, *(1,) * (len(data) - 2))
    return slope
