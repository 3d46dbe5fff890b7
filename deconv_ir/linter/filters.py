"""The axes of a filter along which the scales of its quantization vary."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from deconv_ir.errors import DeconvError
from deconv_ir.ir.shapes import Shape
from deconv_ir.ops.constants.constant import Const
from deconv_ir.ops.convolution.dims import INPUT_CHANNEL_AXIS, OUTPUT_CHANNEL_AXES

if TYPE_CHECKING:
    from deconv_ir.linter.context import LintContext

MAX_STEPS: Final = 8
"""Maximum layers between a filter's constant and the convolution."""
FEW_BITS: Final = 8
IN, OUT = "input channels", "output channels"
_SCALED: Final = ("Multiply", "Divide", "Subtract", "Add")
_MOVED: Final = ("Reshape", "Squeeze", "Unsqueeze", "StaticReshape")
_DEQUANTIZED: Final = ("Dequantize", "DynamicDequantize", "Quantize", "DynamicQuantize")

Roles = tuple[frozenset[str], ...]
"""For each axis of a tensor, the channels of the filter that lie along it."""


class Scales(NamedTuple):
    """A layer whose scales, ranges or zero points vary along the input channels of a filter."""

    layer: int
    shape: Shape
    """Shape of the scales."""
    data: Shape
    """Shape of what they scale."""
    along: frozenset[str]
    roles: Roles
    """Roles of the axes of `data`."""


def wrong_scales(context: "LintContext", index: int) -> Scales | None:
    """Return the scales of a convolution's filter that vary along input channels, if any."""
    from deconv_ir.linter.patterns import producer

    layers = context.graph.layers
    roles = _roles(context, index)
    at = producer(context, index, 1)
    found: Scales | None = None
    for _ in range(MAX_STEPS):
        if at is None or not roles:
            return None
        layer = layers[at]
        if isinstance(layer.operation, Const):
            element_type = layer.operation.element_type
            return found if element_type is not None and element_type.bits <= FEW_BITS else None
        shape = context.outputs(at)[0].shape
        if shape is None or len(shape) != len(roles):
            return None
        port, operands = 0, context.inputs(at)
        scales: list[Shape] = []
        if layer.type == "FakeQuantize":
            scales = [info.shape for info in operands[1:]]
        elif layer.type in _SCALED and len(operands) == 2:
            port = int(layer.type != "Divide" and _extent(operands[0].shape) < _extent(shape))
            scales = [operands[1 - port].shape]
        elif layer.type in _DEQUANTIZED:
            scales = [_parameters(layer.operation, operands[0].shape)]
        for candidate in scales:
            along = _along(candidate, roles)
            if found is None and IN in along:
                found = Scales(at, candidate, shape, along, roles)
        if found is not None and layer.type in ("FakeQuantize", *_DEQUANTIZED):
            return found  # no other layer has ranges, or scales of integers
        roles = _before(context, at, roles, shape)
        at = producer(context, at, port)
    return None


def _roles(context: "LintContext", index: int) -> Roles:
    """Return the roles of a filter's axes."""
    layer = context.graph.layers[index]
    inputs = context.inputs(index)
    shape = inputs[1].shape if len(inputs) > 1 else None
    if shape is None:
        return ()
    axes = dict.fromkeys(range(len(shape)), "")
    layout = getattr(layer.operation, "weights_format", None)
    layout = layout or getattr(layer.operation, "filter_format", None)
    if layout is not None and len(shape) > 2:
        letters = str(layout.value).replace("X", "X" * (len(shape) - 2))
        into, out = ("O", "I") if layer.type == "ConvolutionBackwardData" else ("I", "O")
        axes |= {letters.index(into): IN, letters.index(out): OUT}
    elif layout is None and layer.type in OUTPUT_CHANNEL_AXES:
        axes |= dict.fromkeys(OUTPUT_CHANNEL_AXES[layer.type], OUT)
        axes[INPUT_CHANNEL_AXIS[layer.type]] = IN
    return tuple(frozenset([role] if role else ()) for role in axes.values())


def _before(context: "LintContext", at: int, roles: Roles, shape: Sequence[Any]) -> Roles:
    """Return the roles of the axes before a layer."""
    layer = context.graph.layers[at]
    given = context.inputs(at)[0].shape if context.inputs(at) else None
    if layer.type in ("Transpose", "StaticTranspose"):
        order: Any = getattr(layer.operation, "order", None)
        if order is None and len(context.inputs(at)) > 1:
            order = context.inputs(at)[1].value
        if order is None or not all(isinstance(axis, int) for axis in order):
            return ()
        axes = [axis % len(roles) for axis in order]
        if sorted(axes) != list(range(len(roles))):
            return ()
        return tuple(roles[axes.index(axis)] for axis in range(len(roles)))
    if layer.type in _MOVED:
        return _reshaped(given, shape, roles)
    return roles if given is None or len(given) == len(roles) or layer.type in _SCALED else ()


def _reshaped(given: Shape, shape: Sequence[Any], roles: Roles) -> Roles:
    """Return the roles before a Reshape: axes that were merged or split share theirs."""
    if given is None or not all(isinstance(dim, int) and dim > 0 for dim in (*given, *shape)):
        return ()
    extents: list[int] = [dim for dim in given if isinstance(dim, int)]
    found: list[frozenset[str]] = []
    at = end = 0
    while at < len(extents):
        start, size, wanted, first = at, 1, 1, end
        while size != wanted or start == at:
            if size <= wanted and at < len(extents):
                size *= extents[at]
                at += 1
            elif end < len(shape):
                wanted *= shape[end]
                end += 1
            else:
                return ()
        # Axes of extent 1 may stand anywhere.
        shared = frozenset[str]().union(*(roles[i] for i in range(first, end) if shape[i] != 1))
        found += [shared if extent != 1 else frozenset() for extent in extents[start:at]]
    return tuple(found)


def _along(scales: Shape, roles: Roles) -> frozenset[str]:
    """Return the channels along which scales vary; they are aligned at the last axis."""
    if scales is None or len(scales) > len(roles):
        return frozenset()
    last = roles[len(roles) - len(scales) :]
    return frozenset[str]().union(*(r for d, r in zip(scales, last, strict=True) if d != 1))


def _parameters(operation: Any, shape: Shape) -> Shape:
    """Return the shape of the scales of a oneDNN operation, which broadcasts to its input.

    Scales of the output channels of all groups do not vary along the input channels of a group.
    """
    known = shape is not None and all(isinstance(dim, int) for dim in shape)
    if not known or not operation.implemented:
        return None
    try:
        found = tuple(operation.parameter_shape(shape))
    except DeconvError:
        return None
    grouped = getattr(operation, "grouped", None)
    if grouped is None:
        return found
    at = grouped.axis % len(found)
    return tuple(1 if axis == at else dim for axis, dim in enumerate(found))


def _extent(shape: Shape) -> float:
    """Return the number of elements; unknown ones count as many."""
    total = 1.0
    for dim in shape if shape is not None else (None,):
        total *= dim if isinstance(dim, int) else float("inf")
    return total
