"""Names of layers, tensors and original layers that contradict attributes.

Frameworks and people name layers after what they do: ``softmax_dim1``, ``upsample_2x``,
``aten::upsample_nearest2d``, ``/MaxPool``.  The end of a name is read, and only where its words
leave no doubt.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from deconv_ir.findings import Finding, GraphLocation

if TYPE_CHECKING:
    from deconv_ir.ir.graph import Layer
    from deconv_ir.linter.context import LintContext

FAMILIES: Final = (
    {"relu": "ReLU", "sigmoid": "Sigmoid", "tanh": "Tanh", "elu": "Elu"},
    {"maxpool": "MaxPool", "averagepool": "AvgPool", "avgpool": "AvgPool"},
    {f"reduce{word}": f"Reduce{word.title()}" for word in ("mean", "sum", "max", "min", "prod")},
    {"max": "Maximum", "min": "Minimum", "maximum": "Maximum", "minimum": "Minimum"},
    {"floor": "Floor", "ceil": "Ceiling", "ceiling": "Ceiling"},
    {"sin": "Sin", "cos": "Cos"},
    {"greater": "Greater", "less": "Less"},
    {"and": "LogicalAnd", "or": "LogicalOr", "logicaland": "LogicalAnd", "logicalor": "LogicalOr"},
)
"""Words for types that take the same inputs, so that one may stand for the other unseen."""
WORDS: Final = frozenset(word for family in FAMILIES for word in family)
INTERPOLATION: Final = {
    "nearest": ("nearest",),
    "linear": ("linear", "linear_onnx", "bilinear_pillow"),
    "cubic": ("cubic", "bicubic_pillow"),
}
WITH_SCALE: Final = (
    "Interpolate",
    "ConvolutionBackpropData",
    "GroupConvolutionBackpropData",
    "DepthToSpace",
)
WITH_AXIS: Final = ("SoftMax", "LogSoftmax", "Concat", "Split", "VariadicSplit", "CumSum")
WITH_STRIDES: Final = (
    *("Convolution", "GroupConvolution", "ConvolutionBackpropData"),
    *("GroupConvolutionBackpropData", "MaxPool", "AvgPool"),
)

# Few names have the words of these patterns, so they are compiled on first use.
_AXIS: Final = (
    r"(?i)(?:soft_?max|concat(?:enate)?|cat|split|cum_?sum)[_-]?(?:dim|axis)[_=]?(-?\d)(?!\d)"
)
_SCALE: Final = (
    r"(?i)(?<![a-z])up_?(?:sampl\w*?|scale|conv)?[_-]?(?:x(\d)(?!\d)|(?<!\d)(\d)x(?!\d))"
)
_STRIDE: Final = r"(?i)(?:(?<!\d)(\d)x\1[_-]s|(?<![a-z])strides?[_=-]?)(\d)(?![\dx])"
_SQUARES: Final = tuple(f"{digit}x{digit}" for digit in range(10))
_MODE: Final = r"(?i)nearest|(?:bi|tri)?linear|(?:bi)?cubic"


def contradicted_names(context: LintContext) -> Iterator[Finding]:
    """Find layers that their names contradict."""
    layers = [
        (index, layer) for type_name in _CHECKS for index, layer in context.valid_layers(type_name)
    ]
    alike = Counter((layer.type, layer.name.rpartition("/")[0]) for _, layer in layers)
    for index, layer in layers:
        names = _names(layer)
        path, _, last = layer.name.rpartition("/")
        if path and alike[layer.type, path] == 1 and last.isalpha():
            names.append(path)  # the module of this layer alone
        for check in _CHECKS[layer.type]:
            found = next((f for n in names if (f := check(n, index, layer, context))), None)
            if found is not None:
                name, attribute, said, actual = found
                yield Finding(
                    f"{attribute} is {actual}, but the name {name!r} says {said}",
                    GraphLocation(layer=index, attribute=attribute),
                    expected=said,
                    actual=actual,
                )
                break


def _names(layer: Layer) -> list[str]:
    """Return the names of a layer, its tensors, and the one layer that it was converted from."""
    found = [layer.name, *(name for port in layer.outputs for name in port.names)]
    for extra in layer.extras:
        if extra.tag != "rt_info":
            continue
        for child in extra.children:
            attributes = dict(child.attributes)
            if attributes.get("name") == "fused_names":
                value = attributes.get("value", "")
                found += [] if "," in value else [value]
    return list(dict.fromkeys(filter(None, found)))


Said = tuple[str, str, str, str] | None
"""A name, an attribute, what the name says of it, and its value; None: the name says nothing, or
the same as the layer."""


def _type(name: str, index: int, layer: Layer, context: LintContext) -> Said:
    """Compare the last part of a name with the type."""
    word = name.replace(".", "/").replace(":", "/").rpartition("/")[2].lower()
    unnumbered, _, number = word.rpartition("_")
    word = unnumbered if number.isdecimal() and len(number) < len(word) else word
    if word not in WORDS:
        return None
    for family in FAMILIES:
        said = family.get(word)
        if said is not None and layer.type != said and layer.type in family.values():
            return name, "type", said, layer.type
    return None


def _axis(name: str, index: int, layer: Layer, context: LintContext) -> Said:
    found = _last(_AXIS, name, "dim", "axis")
    if found is None:
        return None
    inputs = context.inputs(index)
    rank = len(inputs[0].shape or ())
    axis = getattr(layer.operation, "axis", None)
    if axis is None and len(inputs) > 1 and inputs[1].value and len(inputs[1].value) == 1:
        axis = inputs[1].value[0]
    said = int(found[1])
    if not isinstance(axis, int) or not rank or not -rank <= said < rank:
        return None
    if axis % rank in (said % rank, abs(said)):  # the sign may be a hyphen
        return None
    return name, "axis", str(said), str(axis)


def _scale(name: str, index: int, layer: Layer, context: LintContext) -> Said:
    """Compare the factor that a name states with the extents, the strides or the block size."""
    found = _last(_SCALE, name, "up")
    if found is None:
        return None
    said = int(found[1] or found[2])
    actual: list[float] = []
    attribute = "strides"
    if layer.type == "Interpolate":
        attribute = "scales"
        before, after = context.inputs(index)[0].shape, context.outputs(index)[0].shape
        if before is None or after is None or len(before) != len(after):
            return None
        pairs = [(a, b) for a, b in zip(before, after, strict=True) if a != b]
        if not pairs or not all(isinstance(n, int) and n for pair in pairs for n in pair):
            return None
        if all(abs(int(str(b)) - said * int(str(a))) <= said for a, b in pairs):
            return None
        actual = [int(str(b)) / int(str(a)) for a, b in pairs]
    elif layer.type == "DepthToSpace":
        attribute = "block_size"
        actual = [float(getattr(layer.operation, "block_size", said))]
    else:
        actual = [float(n) for n in getattr(layer.operation, "strides", None) or ()]
    if not actual or said < 2 or said in actual:
        return None
    shown = ",".join(f"{n:g}" for n in actual)
    return name, attribute, str(said), shown


def _strides(name: str, index: int, layer: Layer, context: LintContext) -> Said:
    found = _last(_STRIDE, name, "stride", *_SQUARES)
    strides = getattr(layer.operation, "strides", None)
    if found is None or not strides or int(found[2]) in strides or found[2] == "0":
        return None
    return name, "strides", found[2], ",".join(map(str, strides))


def _mode(name: str, index: int, layer: Layer, context: LintContext) -> Said:
    found = next(reversed(list(re.finditer(_MODE, _end(name)))), None)
    mode = dict(layer.attributes).get("mode", "")
    if found is None or not mode:
        return None
    word = next(word for word in INTERPOLATION if word in found[0].lower())
    if mode.lower() in INTERPOLATION[word]:
        return None
    return name, "mode", word, mode


def _blocks(name: str, index: int, layer: Layer, context: LintContext) -> Said:
    """Compare the mode of DepthToSpace with torch's PixelShuffle."""
    mode = dict(layer.attributes).get("mode", "")
    if mode == "depth_first" or not re.search(r"(?i)pixel_?shuffle", _end(name)):
        return None
    return name, "mode", "depth_first", mode


def _extreme(name: str, index: int, layer: Layer, context: LintContext) -> Said:
    """Compare the mode of TopK with argmax and argmin."""
    found = re.search(r"(?i)arg_?(max|min)", _end(name))
    mode = dict(layer.attributes).get("mode", "")
    if found is None or mode == found[1].lower():
        return None
    return name, "mode", found[1].lower(), mode


def _last(pattern: str, name: str, *words: str) -> re.Match[str] | None:
    """Return the last match in the end of a name, which must have a digit and one of the words."""
    end = _end(name)
    folded = end.casefold()
    if not any(map(str.isdecimal, end)) or not any(word in folded for word in words):
        return None
    return next(reversed(list(re.finditer(pattern, end))), None)


def _end(name: str) -> str:
    """Return the last part of a path, with the one before it if that names a function."""
    parts = name[-400:].replace(".", "/").split("/")
    return "/".join(parts[-2:]) if len(parts) > 1 and "::" in parts[-2] else parts[-1]


NameCheck = Callable[[str, int, "Layer", "LintContext"], Said]
_CHECKS: Final[dict[str, tuple[NameCheck, ...]]] = {
    **dict.fromkeys((kind for family in FAMILIES for kind in family.values()), (_type,)),
    **dict.fromkeys(WITH_AXIS, (_axis,)),
    **dict.fromkeys(WITH_STRIDES, (_strides,)),
    "MaxPool": (_type, _strides),
    "AvgPool": (_type, _strides),
    "Interpolate": (_mode, _scale),
    "ConvolutionBackpropData": (_scale, _strides),
    "GroupConvolutionBackpropData": (_scale, _strides),
    "DepthToSpace": (_blocks, _scale),
    "TopK": (_extreme,),
}
