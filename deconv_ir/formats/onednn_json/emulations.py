"""Layers of an IR that oneDNN Graph expresses by several operations, or by a constant operand."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from deconv_ir.formats.onednn_json.given import Feed, LayerWriter, Rule
from deconv_ir.ir.dtypes import BOOLEAN, F32, ElementType
from deconv_ir.ir.operation import TensorInfo
from deconv_ir.ir.shapes import is_static, static
from deconv_ir.ops.checks import known_integers, normalize_axes
from deconv_ir.ops.normalization.standardizing import EpsMode
from deconv_ir.ops.shape.pad import PadValues

_NUMPY: Final = {"auto_broadcast": "numpy"}
_LIMITS: Final = {"i8": (-128.0, 127.0), "u8": (0.0, 255.0)}


class _Logic:
    """Booleans, which oneDNN Graph has as results of GreaterEqual and conditions of Select.

    A boolean that depends on others is the comparison of a number that Select has chosen with 0.
    """

    def __init__(self, given: LayerWriter) -> None:
        self.given = given

    def at_least(self, a: Feed, b: Feed, *, last: bool = False) -> Feed:
        """Write a >= b; `last`: as the layer's result."""
        if last:
            self.given.emit("GreaterEqual", _NUMPY, [a, b])
            return a
        shape = _broadcast(a.info, b.info)
        return self.given.step("GreaterEqual", [a, b], TensorInfo(shape, BOOLEAN), _NUMPY)

    def choose(self, condition: Feed, yes: Feed | float, no: Feed | float) -> Feed:
        """Write a choice of numbers."""
        feeds = [self.given.scalar(each) if isinstance(each, float) else each for each in (yes, no)]
        info = TensorInfo(self.given.result.shape, F32)
        # The condition has the shape of the result: oneDNN's Select does not broadcast it.
        return self.given.step("Select", [condition, *feeds], info, _NUMPY)

    def state(self, number: Feed) -> None:
        """Write whether a number is at least 0, as the layer's result."""
        self.at_least(number, self.given.scalar(0.0), last=True)


def _operands(given: LayerWriter) -> tuple[Feed, Feed]:
    found = getattr(given.operation, "auto_broadcast", None)
    if found is not None and found.value == "pdpd":
        raise given.refuse("with pdpd broadcasting")
    for feed in given.feeds:
        if feed.info.element_type is None or not (
            feed.info.element_type.is_float or feed.info.element_type is BOOLEAN
        ):
            raise given.refuse(f"of {feed.info.element_type}")
    return given.feeds[0], given.feeds[1]


def _greater(given: LayerWriter) -> None:
    """A > b: a >= b, and not b >= a, which is false for NaN, too."""
    logic, (a, b) = _Logic(given), _operands(given)
    if given.layer.type == "Less":
        a, b = b, a
    below = logic.choose(logic.at_least(b, a), -1.0, 1.0)
    logic.state(logic.choose(logic.at_least(a, b), below, -1.0))


def _less_equal(given: LayerWriter) -> None:
    logic, (a, b) = _Logic(given), _operands(given)
    logic.at_least(b, a, last=True)


def _equal(given: LayerWriter) -> None:
    """A = b: a >= b and b >= a."""
    logic, (a, b) = _Logic(given), _operands(given)
    if BOOLEAN in (a.info.element_type, b.info.element_type):
        raise given.refuse("of boolean")
    same = (1.0, -1.0) if given.layer.type == "Equal" else (-1.0, 1.0)
    inner = logic.choose(logic.at_least(b, a), *same)
    logic.state(logic.choose(logic.at_least(a, b), inner, same[1]))


def _logical(given: LayerWriter) -> None:
    logic, kind = _Logic(given), given.layer.type
    if kind == "LogicalNot":
        logic.state(logic.choose(given.feeds[0], -1.0, 1.0))
        return
    a, b = _operands(given)
    if not a.info.shape == b.info.shape == given.result.shape:
        raise given.refuse("with broadcasting")
    if kind == "LogicalAnd":
        yes, no = logic.choose(b, 1.0, -1.0), -1.0
        logic.state(logic.choose(a, yes, no))
    elif kind == "LogicalOr":
        logic.state(logic.choose(a, 1.0, logic.choose(b, 1.0, -1.0)))
    else:
        yes = logic.choose(b, -1.0, 1.0)
        logic.state(logic.choose(a, yes, logic.choose(b, 1.0, -1.0)))


def _broadcast(a: TensorInfo, b: TensorInfo) -> tuple[int, ...]:
    import numpy as np

    return np.broadcast_shapes(static(a.shape), static(b.shape))


def _sign(given: LayerWriter) -> None:
    """Write (x >= 0) - (0 >= x)."""
    _float_only(given)
    logic, x = _Logic(given), given.feeds[0]
    zero = given.scalar(0.0)
    positive = logic.choose(logic.at_least(x, zero), 1.0, 0.0)
    negative = logic.choose(logic.at_least(zero, x), 1.0, 0.0)
    given.emit("Subtract", _NUMPY, [positive, negative])


def _float_only(given: LayerWriter) -> None:
    if given.feeds[0].info.element_type is not F32:
        raise given.refuse(f"of {given.feeds[0].info.element_type}")


def _convert(given: LayerWriter) -> None:
    """Write TypeCast between floats; (Dynamic)Dequantize and Quantize with a scale of 1."""
    before, after = given.feeds[0].info.element_type, given.result.element_type
    if before is None or after is None:
        raise given.refuse(f"of {before} to {after}")
    if before is after:
        given.emit("Reorder", {})
    elif before.is_float and after.is_float and before.bits >= 16 <= after.bits:
        given.emit("TypeCast", {})
    elif before is BOOLEAN and after is F32:
        given.emit("Select", _NUMPY, [given.feeds[0], given.scalar(1.0), given.scalar(0.0)])
    elif before.name in ("i8", "u8") and after is F32:
        given.emit("Dequantize", _UNSCALED)
    elif before.name in ("i4", "u4") and after is F32:
        scale = given.scalar(1.0, rank=1)
        given.emit("DynamicDequantize", {"qtype": "per_tensor"}, [given.feeds[0], scale])
    elif before is F32 and after.name in _LIMITS and _is_level(given, after):
        given.emit("Quantize", _UNSCALED)
    else:
        raise given.refuse(f"of {before} to {after}")


_UNSCALED: Final[Mapping[str, Any]] = {
    "qtype": "per_tensor",
    "axis": 1,
    "scales": [1.0],
    "zps": [0],
}


def _is_level(given: LayerWriter, to: ElementType) -> bool:
    """Whether the data are whole numbers within an integer type: Clamp of Round.

    Convert truncates fractions and wraps, Quantize rounds and saturates.
    """
    low, high = _LIMITS[to.name]
    clamp = given.source(given.layer)
    while clamp is not None and clamp.type in ("Reshape", "Transpose"):
        clamp = given.source(clamp)
    if clamp is None or clamp.type != "Clamp":
        return False
    operation: Any = clamp.operation
    bounds = float(operation.min), float(operation.max)
    rounding = given.source(clamp)
    return (
        all(bound.is_integer() for bound in bounds)
        and low <= bounds[0]
        and bounds[1] <= high
        and rounding is not None
        and rounding.type in ("Round", "Floor", "Ceiling")
    )


def _mvn(given: LayerWriter) -> None:
    """Write LayerNorm over the last axes."""
    operation, shape = given.operation, given.feeds[0].info.shape
    if shape is None:
        raise given.refuse("of unknown rank")
    rank = len(shape)
    axes: tuple[int, ...] = ()
    if len(given.feeds) > 1:
        axes = known_integers(given.feeds[1].info) or ()
    how = operation.how(rank, axes)
    last = tuple(range(rank - len(how.axes), rank))
    if not how.axes or tuple(sorted(normalize_axes(how.axes, rank))) != last:
        raise given.refuse("over other axes than the last ones")
    if not how.variance or how.mode is not EpsMode.INSIDE_SQRT:
        raise given.refuse("without variance, or with eps outside of the root")
    attributes = {
        "begin_norm_axis": -len(last),
        "epsilon": float(how.eps),
        "keep_stats": False,
        "use_affine": False,
    }
    given.emit("LayerNorm", attributes, given.feeds[:1])


def _power(given: LayerWriter) -> None:
    """Write Pow with a constant exponent."""
    exponent = given.feeds[1].info.reals
    if exponent is None or len(exponent) != 1 or given.feeds[0].info.shape != given.result.shape:
        raise given.refuse("with an exponent that is not one constant number")
    given.emit("Pow", {"beta": float(exponent[0])}, given.feeds[:1])


def _broadcast_to(given: LayerWriter) -> None:
    """Write a product with ones of the result's shape."""
    if not is_static(given.result.shape) or given.feeds[0].info.element_type is not F32:
        raise given.refuse(f"of {given.feeds[0].info.element_type}")
    mode = getattr(given.operation, "mode", None)
    if mode is not None and mode.value == "explicit":
        raise given.refuse("with explicit axes")
    ones = given.filled(static(given.result.shape), 1.0)
    given.emit("Multiply", _NUMPY, [given.feeds[0], ones])


def _pad(given: LayerWriter) -> None:
    """Write Concat with constants before and behind each padded axis."""
    operation = given.operation
    begin, end = (known_integers(feed.info) for feed in given.feeds[1:3])
    value = given.feeds[3].info.reals if len(given.feeds) > 3 else (0.0,)
    data = given.feeds[0]
    if operation.pad_mode is not PadValues.CONSTANT or begin is None or end is None or not value:
        raise given.refuse("in this mode, or by values that are not constant")
    if (
        min(*begin, *end, 0) < 0
        or data.info.element_type is not F32
        or not is_static(data.info.shape)
    ):
        raise given.refuse("with negative pads, or of other types than f32")
    shape = list(static(data.info.shape))
    padded = [axis for axis in range(len(shape)) if begin[axis] or end[axis]]
    if not padded:
        given.emit("Reorder", {}, [data])
    for axis in padded:
        parts = [data]
        for count, at in ((begin[axis], 0), (end[axis], len(parts) + 1)):
            if count:
                block = given.filled((*shape[:axis], count, *shape[axis + 1 :]), float(value[0]))
                parts.insert(at, block)
        shape[axis] += begin[axis] + end[axis]
        if axis == padded[-1]:
            given.emit("Concat", {"axis": axis}, parts)
        else:
            data = given.step("Concat", parts, TensorInfo(tuple(shape), F32), {"axis": axis})


EMULATIONS: Final[dict[str, Rule]] = {
    "Broadcast": _broadcast_to,
    "Convert": _convert,
    "Equal": _equal,
    "Greater": _greater,
    "Less": _greater,
    "LessEqual": _less_equal,
    "LogicalAnd": _logical,
    "LogicalNot": _logical,
    "LogicalOr": _logical,
    "LogicalXor": _logical,
    "MVN": _mvn,
    "NotEqual": _equal,
    "Pad": _pad,
    "Power": _power,
    "Sign": _sign,
}
