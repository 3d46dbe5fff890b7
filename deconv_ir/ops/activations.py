"""Activations with attributes or parameters as inputs."""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..dtypes import ElementType
from ..errors import ShapeError
from ..geometry import Dim
from ..model import Context, Operation, TensorInfo
from ..shapes import (
    compatible,
    element_count,
    format_shape,
    intersect_dims,
    is_static,
    static,
)
from .base import attribute, choice, number, operation
from .checks import merged_type
from .elementwise import Unary, keeps_type
from .unary import erf
from .values import MAXIMUM, MINIMUM

if TYPE_CHECKING:
    from ..dtypes import Array


@operation("Clamp", "opset1", inputs=("data",), examples=("f32[2,3] -> f32[2,3] | min=-1 max=2.5",))
class Clamp(Unary):
    """min(max(x, min), max); NaN stays NaN.

    For integers, `min` is rounded up and `max` down.

    Source: OpenVINO operation specification, Clamp-1.

    Attributes
    ----------
    min, max : float
        Bounds.
    """

    min: float = attribute(number())
    max: float = attribute(number())

    def _check(self) -> None:
        if self.max < self.min:
            raise ShapeError(
                f"min {self.min} is greater than max {self.max}",
                attribute="min",
                expected=f"<= {self.max}",
                actual=self.min,
                rule="clamp",
            )

    def infer(self, inputs: Sequence[TensorInfo], context: Context) -> tuple[TensorInfo, ...]:
        """Shape and type are those of the input; known elements are clamped."""
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

    def apply(self, np: Any, data: Array) -> Array:
        """Compute the output."""
        low, high = self.min, self.max
        if data.dtype.kind in "iu":
            info = np.iinfo(data.dtype)
            low = info.min if low <= info.min else min(math.ceil(low), info.max)
            high = info.max if high >= info.max else max(math.floor(high), info.min)
        result: Array = np.minimum(np.maximum(data, data.dtype.type(low)), data.dtype.type(high))
        return result

    def apply_into(self, np: Any, data: Array, out: Array) -> None:
        """Compute the output of floats into an array."""
        np.maximum(data, data.dtype.type(self.min), out=out)
        np.minimum(out, data.dtype.type(self.max), out=out)


@operation("Elu", "opset1", inputs=("data",), examples=("f32[2,3] -> f32[2,3] | alpha=0.5",))
class Elu(Unary):
    """x, or alpha * (exp(x) - 1) where x is negative.

    Source: OpenVINO operation specification, Elu-1.

    Attributes
    ----------
    alpha : float
        What the output tends to, downwards.
    """

    family = "float"

    alpha: float = attribute(number())

    def apply(self, np: Any, data: Array) -> Array:
        """Compute the output."""
        negative = data.dtype.type(self.alpha) * np.expm1(np.minimum(data, 0))
        result: Array = np.where(data < 0, negative, data)
        return result

    def apply_into(self, np: Any, data: Array, out: Array) -> None:
        """Compute the output into an array."""
        below = data < 0
        negative = np.minimum(data, 0)
        np.expm1(negative, out=negative)
        np.multiply(negative, data.dtype.type(self.alpha), out=negative)
        if out is not data:
            np.copyto(out, data)
        np.copyto(out, negative, where=below)


class GeluMode(enum.Enum):
    """How Gelu is computed."""

    ERF = "erf"
    TANH = "tanh"


def gelu(np: Any, x: Any, mode: GeluMode) -> Any:
    """X * (1 + erf(x / sqrt 2)) / 2, or its approximation by tanh."""
    if mode is GeluMode.ERF:
        return 0.5 * x * (1 + erf(x * math.sqrt(0.5)))
    inner = math.sqrt(2 / math.pi) * (x + 0.044715 * x * x * x)
    return 0.5 * x * (1 + np.tanh(inner))


@operation("Gelu", "opset2", inputs=("data",), examples=("f32[2,3] -> f32[2,3]",))
class Gelu2(Unary):
    """x * (1 + erf(x / sqrt 2)) / 2.

    Source: OpenVINO operation specification, Gelu-2.
    """

    family = "float"

    def apply(self, np: Any, data: Array) -> Array:
        """Compute the output."""
        result: Array = gelu(np, data, GeluMode.ERF)
        return result


@operation(
    "Gelu",
    "opset7",
    inputs=("data",),
    examples=("f32[2,3] -> f32[2,3] | approximation_mode=tanh",),
)
class Gelu7(Unary):
    """x * (1 + erf(x / sqrt 2)) / 2, or its approximation by tanh.

    Source: OpenVINO operation specification, Gelu-7.

    Attributes
    ----------
    approximation_mode : GeluMode
        erf or tanh.
    """

    family = "float"

    approximation_mode: GeluMode = attribute(choice(GeluMode), GeluMode.ERF)

    def apply(self, np: Any, data: Array) -> Array:
        """Compute the output."""
        result: Array = gelu(np, data, self.approximation_mode)
        return result


class _WithScalars(Operation):
    """An activation whose parameters are scalar inputs."""

    def infer(self, inputs: Sequence[TensorInfo], context: Context) -> tuple[TensorInfo, ...]:
        """Shape and type are those of the data; the others are scalars of its type."""
        element_type = merged_type(inputs, self.inputs, "float")
        for info, name in zip(inputs[1:], self.inputs[1:], strict=False):
            if info.shape is not None and any(intersect_dims(d, 1) is None for d in info.shape):
                raise ShapeError(
                    f"{name} must be a scalar, found {format_shape(info.shape)}",
                    expected="a scalar",
                    actual=format_shape(info.shape),
                    rule="rank",
                )
        return (TensorInfo(inputs[0].shape, element_type),)

    def explain(
        self, inputs: Sequence[TensorInfo], context: Context, output: int, axis: int
    ) -> str | None:
        """Name the shape of the input."""
        return f"the shape of the input, {format_shape(inputs[0].shape)}"

    def apply(self, np: Any, data: Array, *scalars: Any) -> Array:
        """Compute the output from arrays in their working precision."""
        raise NotImplementedError

    def execute(self, inputs: Sequence[Array], context: Context) -> Sequence[Array]:
        """Compute the output, keeping the element type."""
        import numpy as np

        from .numeric import narrow, widen

        scalars = [widen(s).reshape(()) for s in inputs[1:]]
        with np.errstate(all="ignore"):
            return (narrow(self.apply(np, widen(inputs[0]), *scalars), inputs[0].dtype),)


@operation(
    "Selu",
    "opset1",
    inputs=("data", "alpha", "lambda"),
    examples=("f32[2,3], f32[], f32[] -> f32[2,3]",),
)
class Selu(_WithScalars):
    """lambda * x, or lambda * alpha * (exp(x) - 1) where x is not positive.

    Source: OpenVINO operation specification, Selu-1.
    """

    def apply(self, np: Any, data: Array, *scalars: Any) -> Array:
        """Compute the output."""
        alpha, scale = scalars
        negative = alpha * np.expm1(np.minimum(data, 0))
        result: Array = scale * np.where(data <= 0, negative, data)
        return result


@operation(
    "HardSigmoid",
    "opset1",
    inputs=("data", "alpha", "beta"),
    examples=("f32[2,3], f32[], f32[] -> f32[2,3]",),
)
class HardSigmoid(_WithScalars):
    """min(max(alpha * x + beta, 0), 1).

    Source: OpenVINO operation specification, HardSigmoid-1.
    """

    def apply(self, np: Any, data: Array, *scalars: Any) -> Array:
        """Compute the output."""
        alpha, beta = scalars
        result: Array = np.minimum(np.maximum(alpha * data + beta, 0), 1)
        return result


@operation(
    "Swish",
    "opset4",
    inputs=("data", "beta"),
    required=1,
    examples=("f32[2,3] -> f32[2,3]", "f32[2,3], f32[] -> f32[2,3]"),
)
class Swish(_WithScalars):
    """x / (1 + exp(-beta * x)); `beta` absent: 1.

    Source: OpenVINO operation specification, Swish-4.
    """

    def apply(self, np: Any, data: Array, *scalars: Any) -> Array:
        """Compute the output."""
        beta = scalars[0] if scalars else data.dtype.type(1)
        result: Array = data / (1 + np.exp(-beta * data))
        return result

    def accepts_out(self, inputs: Sequence[TensorInfo], output: TensorInfo) -> bool:
        """Write to an array where there is no other type between."""
        return keeps_type(inputs, output)

    def overwritable(self, inputs: Sequence[TensorInfo], output: TensorInfo) -> tuple[int, ...]:
        """Overwrite the data."""
        return (0,)

    def execute_into(self, inputs: Sequence[Array], context: Context, out: Array) -> None:
        """Compute the output into an array."""
        import numpy as np

        data = inputs[0]
        beta = inputs[1].reshape(()) if len(inputs) > 1 else data.dtype.type(1)
        with np.errstate(all="ignore"):
            divisor = np.multiply(data, -beta)
            np.exp(divisor, out=divisor)
            np.add(divisor, data.dtype.type(1), out=divisor)
            np.divide(data, divisor, out=out)


@operation(
    "PReLU",
    "opset1",
    inputs=("data", "slope"),
    examples=(
        "f32[2,3,4,4], f32[3] -> f32[2,3,4,4]",
        "f32[2,3,4], f32[4] -> f32[2,3,4]",
        "f32[2,3,4,4], f32[1,3,1,4] -> f32[2,3,4,4]",
    ),
)
class PReLU(Operation):
    """x, or slope * x where x is negative; one slope, one a channel, or broadcast.

    Source: OpenVINO operation specification, PReLU-1.
    """

    def infer(self, inputs: Sequence[TensorInfo], context: Context) -> tuple[TensorInfo, ...]:
        """Shape and type are those of the data; the slope must be broadcast to it."""
        data, slope = inputs
        element_type = merged_type(inputs, self.inputs, "float")
        if data.shape is not None and slope.shape is not None:
            spread = spread_slope(data.shape, slope.shape)
            fits = spread is not None and all(
                intersect_dims(s, 1) is not None or intersect_dims(s, d) is not None
                for s, d in zip(spread, data.shape[len(data.shape) - len(spread) :], strict=True)
            )
            if not fits:
                raise ShapeError(
                    f"slope {format_shape(slope.shape)} can not be broadcast to "
                    f"data {format_shape(data.shape)}",
                    expected=format_shape(data.shape),
                    actual=format_shape(slope.shape),
                    rule="broadcast",
                )
        return (TensorInfo(data.shape, element_type),)

    def explain(
        self, inputs: Sequence[TensorInfo], context: Context, output: int, axis: int
    ) -> str | None:
        """Name the shape of the input."""
        return f"the shape of the input, {format_shape(inputs[0].shape)}"

    def execute(self, inputs: Sequence[Array], context: Context) -> Sequence[Array]:
        """Compute the output, keeping the element type."""
        import numpy as np

        from .numeric import narrow, widen

        data, slope = inputs
        wide = widen(data)
        with np.errstate(all="ignore"):
            negative = wide * widen(_spread(data, slope))
            return (narrow(np.where(wide < 0, negative, wide), data.dtype),)

    def accepts_out(self, inputs: Sequence[TensorInfo], output: TensorInfo) -> bool:
        """Write to an array where there is no other type between."""
        return keeps_type(inputs, output)

    def overwritable(self, inputs: Sequence[TensorInfo], output: TensorInfo) -> tuple[int, ...]:
        """Overwrite the data."""
        return (0,)

    def execute_into(self, inputs: Sequence[Array], context: Context, out: Array) -> None:
        """Compute the output into an array."""
        import numpy as np

        data, slope = inputs
        below = data < 0
        if out is not data:
            np.copyto(out, data)
        with np.errstate(all="ignore"):
            np.multiply(data, _spread(data, slope), out=out, where=below)

    def work(self, inputs: Sequence[TensorInfo], output: TensorInfo) -> int | None:
        """Count one operation an element."""
        return element_count(static(output.shape)) if is_static(output.shape) else None


def _spread(data: Array, slope: Array) -> Array:
    """Give a slope the shape in which NumPy's rule broadcasts it as PReLU's does."""
    spread = spread_slope(data.shape, slope.shape)
    assert spread is not None, "the shapes were checked"
    return slope.reshape([d for d in spread if isinstance(d, int)])


def spread_slope(data: tuple[Dim, ...], slope: tuple[Dim, ...]) -> tuple[Dim, ...] | None:
    """Return the shape in which a slope is broadcast by NumPy's rule; None if it is not.

    A list as long as the data has channels runs along axis 1.
    """
    if len(slope) > len(data):
        return None
    channels = len(data) > 1 and len(slope) == 1 and slope[0] != 1
    if channels and compatible((data[1],), slope):
        return (*slope, *(1,) * (len(data) - 2))
    return slope
