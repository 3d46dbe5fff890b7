"""Elementwise layers: Eltwise, Power, ScaleShift, activations and the functions of one variable.

Sources: catalogue, sections of the same names; Inference Engine 2020.3, ie_layer_validators.cpp
(defaults); Model Optimizer 2019 R3, extensions/back (names of functions in version 6 and 7).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from deconv_ir.formats.openvino_legacy.attributes import REQUIRED
from deconv_ir.formats.openvino_legacy.conversion import LayerConversion, Rule, outputs_of
from deconv_ir.formats.openvino_legacy.layer import computed_type, stored_type
from deconv_ir.ir.dtypes import F32, ElementType, parse_element_type
from deconv_ir.ir.graph import Source

BOOLEAN: Final = parse_element_type("boolean")

_OPERATIONS: Final = {
    "sum": "Add",
    "add": "Add",
    "sub": "Subtract",
    "mul": "Multiply",
    "prod": "Multiply",
    "div": "Divide",
    "max": "Maximum",
    "min": "Minimum",
    "squared_diff": "SquaredDifference",
    "floor_mod": "FloorMod",
    "pow": "Power",
}
_LOGICAL: Final = {
    "logical_and": "LogicalAnd",
    "logical_or": "LogicalOr",
    "logical_xor": "LogicalXor",
}
_COMPARISONS: Final = {
    "less": "Less",
    "less_equal": "LessEqual",
    "greater": "Greater",
    "greater_equal": "GreaterEqual",
    "equal": "Equal",
    "not_equal": "NotEqual",
}


def eltwise(step: LayerConversion) -> Source:
    """Convert Eltwise of two or more inputs; coefficients are factors of the addends."""
    name = step.text("operation", default="sum").lower() or "sum"
    factors = step.numbers("coeff", default=())
    inputs = list(step.inputs)
    if not inputs:
        step.input()
    if name in ("logical_not",):
        return truth(step, step.add("LogicalNot", step.convert(inputs[0], BOOLEAN)))
    if factors and (name not in ("sum", "add", "sub") or len(factors) != len(inputs)):
        if any(factor != 1 for factor in factors):
            raise step.fault("coeff", f"must be {len(inputs)} factors of a sum", step.text("coeff"))
        factors = ()
    inputs = [
        source if factor == 1 else step.add("Multiply", source, step.scalar(factor, source))
        for source, factor in zip(inputs, factors or (1,) * len(inputs), strict=True)
    ]
    kind = _OPERATIONS.get(name) or _LOGICAL.get(name) or _COMPARISONS.get(name)
    if kind is None:
        raise step.fault("operation", "is unknown", name)
    if len(inputs) == 1:
        return step.copy(inputs[0])
    if name in _LOGICAL:
        inputs = [step.convert(source, BOOLEAN) for source in inputs]
    made = inputs[0]
    for other in inputs[1:]:
        made, other = alike(step, made, other)
        made = step.add(kind, made, other)
    return truth(step, made) if name in _LOGICAL or name in _COMPARISONS else made


def alike(step: LayerConversion, one: Source, other: Source) -> tuple[Source, Source]:
    """Convert two tensors to a common type: a float if one is, else the wider integer."""
    a, b = step.type_of(one), step.type_of(other)
    if a is b:
        return one, other
    ranked = sorted((a, b), key=lambda known: (known.is_float, known.bits))
    wide = ranked[-1]
    return step.convert(one, wide), step.convert(other, wide)


def truth(step: LayerConversion, source: Source) -> Source:
    """Return truth values as numbers of the layer's precision, 1 and 0, as old layers had them."""
    return step.convert(source, result_type(step))


def result_type(step: LayerConversion) -> ElementType:
    """Return the type of numbers that a layer gives: that of its output port, or of its inputs."""
    port = step.layer.outputs[0].element_type if step.layer.outputs else None
    if port is not None and not port.is_float:
        return port
    known = computed_type(stored_type(step.layer.precision))
    return F32 if known.kind == "bool" else known


def power(step: LayerConversion) -> Source:
    """Convert Power: (shift + scale * x) ^ power."""
    data = step.input()
    exponent = step.number("power", default=1.0)
    scale, shift = step.number("scale", default=1.0), step.number("shift", default=0.0)
    own = step.type_of(data)
    made = step.convert(data, F32)
    if scale != 1:
        made = step.add("Multiply", made, step.scalar(scale))
    if shift != 0:
        made = step.add("Add", made, step.scalar(shift))
    if exponent != 1:
        made = step.add("Power", made, step.scalar(exponent))
    return step.convert(made, own)


def per_channel(step: LayerConversion, name: str, axis: int = 1) -> Source:
    """Return a blob that is broadcast over the input: one number, or one for each channel."""
    dims = step.dims(step.input(), 1)
    if not step.has_blob(name):
        return step.blob(name, (1,))
    count = step.blob_elements(name)
    axis = min(axis, len(dims) - 1)
    if count == 1:
        return step.blob(name, ())
    if count == math.prod(dims[axis:]) and count != dims[axis]:
        return step.blob(name, (*(1 for _ in dims[:axis]), *dims[axis:]))
    shape = tuple(extent if i == axis else 1 for i, extent in enumerate(dims))
    return step.blob(name, shape)


def scale_shift(step: LayerConversion) -> Source:
    """Convert ScaleShift: weights * x + biases; both are optional."""
    made = step.input()
    if len(step.inputs) > 1:
        made = step.add("Multiply", made, step.input(1))
        return step.add("Add", made, step.input(2)) if len(step.inputs) > 2 else made
    if step.has_blob("weights"):
        made = step.add("Multiply", made, per_channel(step, "weights"))
    if step.has_blob("biases"):
        made = step.add("Add", made, per_channel(step, "biases"))
    return made


def relu(step: LayerConversion) -> Source:
    """Convert ReLU; a slope makes it a PReLU of one slope."""
    slope = step.number("negative_slope", "negative-slope", default=0.0)
    if slope == 0:
        return step.add("ReLU", step.input())
    return step.add("PReLU", step.input(), step.literal((slope,), F32, suffix="slope"))


def prelu(step: LayerConversion) -> Source:
    """Convert PReLU; the slopes are the weights, one or one for each channel."""
    data = step.input()
    if len(step.inputs) > 1 and not step.has_blob("weights"):
        return step.add("PReLU", data, step.reshape(step.input(1), (-1,)))
    shared = step.flag("channel_shared")
    channels = step.dims(data, 1)[min(1, step.rank(data) - 1)]
    one = shared or (step.has_blob("weights") and step.blob_elements("weights") == 1)
    return step.add("PReLU", data, step.blob("weights", (1 if one else channels,)))


def clamp(step: LayerConversion) -> Source:
    """Convert Clamp."""
    low, high = step.number("min", default=0.0), step.number("max", default=6.0)
    if low > high:
        raise step.fault("min", f"must be at most max, {high:g}", low)
    return step.add("Clamp", step.input(), min=float(low), max=float(high))


def relu6(step: LayerConversion) -> Source:
    """Convert ReLU6: a Clamp from 0 to `n`."""
    high = step.number("n", default=6.0)
    return step.add("Clamp", step.input(), min=0.0, max=float(high))


def elu(step: LayerConversion) -> Source:
    """Convert ELU."""
    return step.add("Elu", step.input(), alpha=float(step.number("alpha", default=1.0)))


def negate(step: LayerConversion) -> Source:
    """Convert a logical not, whose result is 1 or 0."""
    return truth(step, step.add("LogicalNot", step.convert(step.input(), BOOLEAN)))


def activation(step: LayerConversion) -> Source:
    """Convert Activation, whose `type` names a function."""
    name = step.text("type").lower()
    rule = _ACTIVATIONS.get(name)
    if rule is None:
        raise step.fault("type", f"must be one of {', '.join(_ACTIVATIONS)}", name)
    return outputs_of(rule(step))[0]


def function(kind: str) -> Callable[[LayerConversion], Source]:
    """Return the rule of a function without attributes."""

    def rule(step: LayerConversion) -> Source:
        return step.add(kind, step.input())

    return rule


def reciprocal(step: LayerConversion) -> Source:
    """Convert Reciprocal."""
    return step.add("Power", step.input(), step.scalar(-1.0))


def hard_sigmoid(step: LayerConversion) -> Source:
    """Convert HardSigmoid: alpha * x + beta, clipped to [0, 1]."""
    alpha, beta = step.number("alpha", default=0.2), step.number("beta", default=0.5)
    return step.add("HardSigmoid", step.input(), step.scalar(alpha), step.scalar(beta))


def selu(step: LayerConversion) -> Source:
    """Convert Selu; the defaults are those of its paper."""
    alpha = step.number("alpha", default=1.67326324)
    gamma = step.number("gamma", default=1.05070098)
    return step.add("Selu", step.input(), step.scalar(alpha), step.scalar(gamma))


def swish(step: LayerConversion) -> Source:
    """Convert Swish: x * sigmoid(alpha * x)."""
    alpha = step.number("alpha", default=1.0)
    return step.add("Swish", step.input(), step.scalar(alpha))


def select(step: LayerConversion) -> Source:
    """Convert Select; a condition of numbers is true where they are not 0."""
    condition = step.convert(step.input(0), BOOLEAN)
    then, other = alike(step, step.input(1), step.input(2))
    return step.add("Select", condition, then, other)


def identity(step: LayerConversion) -> Source:
    """Convert a layer that copies its input."""
    return step.input()


def quantize(step: LayerConversion) -> Source:
    """Convert FakeQuantize, or Quantize as it was first named.

    The limits of two levels may be equal: a threshold, for which OpenVINO's FakeQuantize is NaN.
    """
    levels = step.integer("levels", default=REQUIRED, minimum=2)
    data, low, high, least, most = (step.input(i) for i in range(5))
    made = step.add("FakeQuantize", data, low, high, least, most, levels=levels)
    if levels > 2:
        return made
    above = step.add("Select", step.add("Greater", data, low), most, least)
    return step.add("Select", step.add("Equal", low, high), above, made)


_FUNCTIONS: Final = (
    *("Abs", "Acos", "Asin", "Atan", "Cos", "Cosh", "Erf", "Exp", "Floor", "Log", "Sigmoid"),
    *("Sign", "Sin", "Sinh", "Sqrt", "Tan", "Tanh", "Acosh", "Asinh", "Atanh", "HSwish", "Mish"),
)
_RENAMED: Final = {
    "TanH": "Tanh",
    "Ceil": "Ceiling",
    "Ceiling": "Ceiling",
    "Neg": "Negative",
    "Logistic": "Sigmoid",
}
_ACTIVATIONS: Final[dict[str, Rule]] = {
    "sigmoid": function("Sigmoid"),
    "logistic": function("Sigmoid"),
    "tanh": function("Tanh"),
    "elu": elu,
    "relu": relu,
    "relu6": relu6,
    "prelu": prelu,
    "clamp": clamp,
    "not": negate,
    "exp": function("Exp"),
    "abs": function("Abs"),
    "log": function("Log"),
    "sqrt": function("Sqrt"),
    "hswish": function("HSwish"),
    "mish": function("Mish"),
    "swish": swish,
}

RULES: Final[dict[str, Rule]] = {
    **{kind: function(kind) for kind in _FUNCTIONS},
    **{old: function(new) for old, new in _RENAMED.items()},
    "SoftPlus": function("SoftPlus"),
    "Softsign": function("SoftSign"),
    "Activation": activation,
    "Clamp": clamp,
    "Copy": identity,
    "ELU": elu,
    "Eltwise": eltwise,
    "FakeQuantize": quantize,
    "HardSigmoid": hard_sigmoid,
    "Not": negate,
    "PReLU": prelu,
    "Power": power,
    "Quantize": quantize,
    "ReLU": relu,
    "ReLU6": relu6,
    "Reciprocal": reciprocal,
    "ScaleShift": scale_shift,
    "Select": select,
    "Selu": selu,
    "Swish": swish,
}
