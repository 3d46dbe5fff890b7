"""The text of a box, its colour and its size."""

from __future__ import annotations

from typing import NamedTuple

from deconv_ir.drawing.graph.blocks import DrawnBox
from deconv_ir.drawing.pen import TEXT, TITLE
from deconv_ir.drawing.text import TIMES, by, cut
from deconv_ir.ir.graph import Graph, Layer
from deconv_ir.ir.infer import Outputs
from deconv_ir.ir.shapes import is_static, static

MAX_TITLE = 30
MAX_LINE = 36
"""Maximum length of a text."""

FAMILIES = {
    "convolution": "convolution",
    "pooling": "pooling",
    "resample": "pooling",
    "elementwise": "elementwise",
    "normalization": "normalization",
    "quantization": "normalization",
    "reduction": "elementwise",
    "linear_algebra": "convolution",
    "recurrent": "convolution",
    "shape": "shape",
    "gather_scatter": "shape",
}
"""Folder of an operation -> the colour of its layers."""
WITH_FILTERS = ("convolution", "deconvolution")
"""Families whose second input is a filter; the caption shows its dims."""
_ACTIVATIONS = (
    "Clamp Elu GELU Gelu HSigmoid HSwish HardSigmoid HardSwish LeakyReLU LogSoftmax Mish PReLU "
    "ReLU ReLU6 Selu Sigmoid SoftMax SoftPlus SoftSign Softmax Swish Tanh"
)
ACTIVATIONS = frozenset(_ACTIVATIONS.split())


class Caption(NamedTuple):
    """The text of a box: its title, lines below it, its family and its closed size."""

    title: str
    lines: tuple[str, ...]
    family: str
    width: float
    height: float


def caption_of(box: DrawnBox, graph: Graph, filter_: str = "") -> Caption:
    """Write the caption of a box; `filter_` are the dims of a convolution's filter."""
    if box.layer is None:
        layers = f"{box.size} layers"
        if box.count > 1:
            layers = f"{box.size // box.count} layers each" if box.size > box.count else layers
            title = f"{box.count} {TIMES} {box.label}"
        else:
            title = box.label
        return _sized(title, (layers,), "repeat" if box.count > 1 else "group")
    layer = graph.layers[box.layer]
    lines = [box.label]
    if detail := _detail(layer, filter_):
        lines.append(detail)
    return _sized(layer.type, tuple(lines), family_of(layer))


def family_of(layer: Layer) -> str:
    """Return the family of a layer, which determines its colour."""
    if layer.type in ("Parameter", "Result", "Const"):
        return "end"
    if layer.type in ACTIVATIONS:
        return "activation"
    if not layer.operation.implemented:
        return "unknown"
    if "Backprop" in layer.type or layer.type in ("ConvTranspose", "ConvolutionBackwardData"):
        return "deconvolution"
    folder = type(layer.operation).__module__.rpartition(".")[0].rpartition(".")[2]
    return FAMILIES.get(folder, "other")


def _detail(layer: Layer, filter_: str) -> str:
    """Return the window and the strides of a layer, if any."""
    given = dict(layer.attributes)
    parts = []
    if kernel := given.get("kernel"):
        parts.append(_window(kernel))
    elif filter_:
        parts.append(filter_)
    strides = given.get("strides", "")
    if strides and set(strides.replace(",", " ").split()) != {"1"}:
        parts.append(f"stride {_window(strides)}")
    return ", ".join(parts)


def _window(numbers: str) -> str:
    """Write ``3, 3`` as ``3×3`` and, for strides, ``2, 2`` as ``2×2``."""
    return by(numbers.replace(",", " ").split())[:MAX_LINE]


def dims_of(outputs: Outputs) -> str:
    """Write the dims of a constant: ``64×3×7×7``."""
    if not outputs or not is_static(outputs[0].shape):
        return ""
    return by(static(outputs[0].shape))


def _sized(title: str, lines: tuple[str, ...], family: str) -> Caption:
    title = cut(title, MAX_TITLE)
    lines = tuple(cut(line, MAX_LINE) for line in lines)
    width = max([TITLE.width(title), *map(TEXT.width, lines)]) + 26
    return Caption(title, lines, family, round(max(92.0, width)), 28.0 + 14 * len(lines))
