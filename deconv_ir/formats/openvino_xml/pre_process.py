"""The section `<pre-process>`: means that OpenVINO subtracts from an input when it reads the file.

The section has a mean for each channel: a number, or an image in the .bin, in the element type of
the input.  Like OpenVINO, this reader ignores `mean-precision` and `<scale>`.  In IRs of version 2
to 7, images have the type of `mean-precision`.

Sources: OpenVINO 2026.4, src/frontends/ir/src/input_model.cpp, `parse_pre_process`; Inference
Engine 2018 R5, ie_format_parser.cpp, `ParsePreProcess`.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from deconv_ir.errors import IRError, WeightsError
from deconv_ir.formats.openvino_xml.weights import ExtendedWeights, Weights, WeightsInMemory
from deconv_ir.ir.dtypes import ElementType, parse_element_type
from deconv_ir.ir.graph import Edge, Graph, Info, Layer, Port
from deconv_ir.ir.operation import Operation
from deconv_ir.ir.shapes import format_shape, static
from deconv_ir.ops import find_operation
from deconv_ir.ops.base import format_attributes
from deconv_ir.ops.constants.constant import Const

TAG: Final = "pre-process"
_RULE: Final = "pre-process"


class PreProcess(NamedTuple):
    """The means of an input.

    Attributes
    ----------
    parameter : int
        Index of the Parameter.
    means : tuple of float
        The mean of each channel; empty if `images` are given.
    images : tuple of int
        For each channel the offset of its mean image in the .bin.
    shape : tuple of int
        Extents of all means, ``[C, 1, ...]``, or of one image, ``[1, H, W]`` for an input NCHW.
    element_type : ElementType
        Element type of the input.
    stored : ElementType
        Element type of the images.
    """

    parameter: int
    means: tuple[float, ...]
    images: tuple[int, ...]
    shape: tuple[int, ...]
    element_type: ElementType
    stored: ElementType

    @property
    def image_bytes(self) -> int:
        """Bytes of a mean image."""
        return self.stored.size_of(math.prod(self.shape))


def parse(graph: Graph, *, states_type: bool = False) -> PreProcess | None:
    """Return the means that the first `<pre-process>` of a graph states; None if it has none.

    Raises
    ------
    IRError
        OpenVINO refuses the section.
    """
    section = next((info for info in graph.extras if info.tag == TAG), None)
    if section is None:
        return None
    index = _parameter(section, graph)
    layer = graph.layers[index]
    dims, element_type = getattr(layer.operation, "shape", None), _element_type(layer)
    try:
        extents = static(dims)
    except ValueError:
        extents = ()
    if not 2 <= len(extents) <= 5 or element_type is None:
        raise _refused(
            f"<{TAG}> needs an input of 2 to 5 dims that are known, {layer.name!r} has "
            f"{format_shape(dims)}"
        )
    # Of three dims, the first is the channel (CHW).
    channel = 0 if len(extents) == 3 else 1
    channels, spatial = extents[channel], extents[channel + 1 :]
    means, images = _channels(section)
    if means and images:
        raise _refused("the means of some channels are numbers, those of others images")
    if not means and not images:
        return None
    found: dict[int, float] | dict[int, tuple[int, int]] = means or images
    if sorted(found) != list(range(channels)):
        raise _refused(
            f"<{TAG}> has means for {len(found)} channels, the input {layer.name!r} has {channels}",
            expected=channels,
            actual=len(found),
        )
    result = PreProcess(
        index,
        tuple(means[i] for i in range(channels) if means),
        tuple(images[i][0] for i in range(channels) if images),
        (channels, *(1 for _ in spatial)) if means else (1, *spatial),
        element_type,
        _stated(section, element_type) if states_type else element_type,
    )
    for number, (_, size) in images.items():
        if size != result.image_bytes:
            raise _refused(
                f"the mean image of channel {number} has {size} bytes, but "
                f"{result.stored}{format_shape(result.shape)} takes {result.image_bytes}",
                expected=result.image_bytes,
                actual=size,
            )
    return result


def image_spans(graph: Graph, *, states_type: bool) -> list[tuple[int, int]]:
    """Return the start and the end of each mean image in the .bin; empty if the section is bad."""
    try:
        found = parse(graph, states_type=states_type)
    except IRError:
        return []
    return [] if found is None else [(at, at + found.image_bytes) for at in found.images]


def apply(
    graph: Graph, weights: Weights | None, *, states_type: bool
) -> tuple[Graph, Weights | None]:
    """Return a graph whose layers subtract the means, and its weights.

    Numbers are appended to the weights, so that the graph can be saved as any other.

    Raises
    ------
    IRError
        As `parse`.
    WeightsError
        An image is not within the weights.
    """
    found = parse(graph, states_type=states_type)
    rest = tuple(info for info in graph.extras if info.tag != TAG)
    if found is None:
        return (graph, weights) if rest == graph.extras else (graph.replace(extras=rest), weights)
    parameter = graph.layers[found.parameter]
    try:
        if found.images:
            for offset in found.images:
                if weights is None:
                    raise WeightsError("the means are in the weights file, which is missing")
                weights.check(offset, found.image_bytes)
        else:
            weights = _append(found, weights)
    except WeightsError as error:
        error.rule = error.rule or "weights-missing"
        raise error.locate(file=graph.file, line=parameter.line, layer=parameter.label) from None
    builder = _LayerBuilder(graph, parameter)
    if found.images:
        mean = builder.joined([_const(found, at) for at in found.images])
        if found.stored is not found.element_type:
            mean = builder.converted(mean, found.element_type)
    else:
        assert weights is not None, "the means are appended to them"
        numbers = found._replace(stored=found.element_type)
        mean = builder.const("mean", _const(numbers, len(weights) - numbers.image_bytes))
    return builder.subtract(mean).replace(extras=rest), weights


def _parameter(section: Info, graph: Graph) -> int:
    """Return the index of the input: the one that is named, the first of rank 4, or the first."""
    name = dict(section.attributes).get("reference-layer-name", "").strip()
    inputs = [i for i, layer in enumerate(graph.layers) if layer.type == "Parameter"]
    for index in inputs:
        layer = graph.layers[index]
        dims = getattr(layer.operation, "shape", None)
        if layer.name == name if name else dims is not None and len(dims) == 4:
            return index
    if name or not inputs:
        raise _refused(f"<{TAG}> names the input {name!r}, which does not exist", actual=name)
    return inputs[0]


def _channels(section: Info) -> tuple[dict[int, float], dict[int, tuple[int, int]]]:
    """Return the number, and the offset and size of the image, of each channel that has them."""
    means: dict[int, float] = {}
    images: dict[int, tuple[int, int]] = {}
    channels = [child for child in section.children if child.tag == "channel"]
    for position, channel in enumerate(channels):
        written = dict(channel.attributes)
        number = _whole(written["id"], "id") if "id" in written else position
        mean = next((child for child in channel.children if child.tag == "mean"), None)
        if mean is None:
            continue
        values = dict(mean.attributes)
        if "value" not in values and "size" not in values:
            raise _refused(f"the <mean> of channel {number} has neither value nor size")
        if number in means or number in images:
            raise _refused(f"channel {number} has two means")
        if "value" in values:
            means[number] = _number(values["value"])
        if "size" in values and "offset" in values:
            images[number] = _whole(values["offset"], "offset"), _whole(values["size"], "size")
    return means, images


def _whole(text: str, name: str) -> int:
    digits = text.strip()
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= 18):
        raise _refused(f"{name} in <{TAG}> must be a whole number from 0, found {text[:40]!r}")
    return int(digits)


def _number(text: str) -> float:
    try:
        return float(text) if text.isascii() and "_" not in text else float("")
    except ValueError:
        raise _refused(f"value in <{TAG}> must be a number, found {text[:40]!r}") from None


def _refused(message: str, expected: object = None, actual: object = None) -> IRError:
    return IRError(message, rule=_RULE, expected=expected, actual=actual)


def _element_type(layer: Layer) -> ElementType | None:
    found: ElementType | None = getattr(layer.operation, "element_type", None)
    return None if found is None or found.is_packed or found.kind == "string" else found


def _stated(section: Info, element_type: ElementType) -> ElementType:
    """Return the element type of mean images, which is that of the input unless it is stated."""
    precision = dict(section.attributes).get("mean-precision", "").strip()
    if not precision:
        return element_type
    try:
        return parse_element_type(precision.upper())
    except ValueError:
        raise _refused(f"mean-precision of <{TAG}> is unknown: {precision[:40]!r}") from None


def _append(found: PreProcess, weights: Weights | None) -> Weights:
    """Append the means, in the element type of the input."""
    import numpy as np

    with np.errstate(all="ignore"):
        data = np.array(found.means, np.float32).astype(found.element_type.numpy()).tobytes()
    return WeightsInMemory(data) if weights is None else ExtendedWeights(weights, data)


def _const(found: PreProcess, offset: int) -> Const:
    return Const(
        element_type=found.stored, shape=found.shape, offset=offset, size=found.image_bytes
    )


class _LayerBuilder:
    """Adds layers behind an input."""

    def __init__(self, graph: Graph, parameter: Layer) -> None:
        self.graph = graph
        self.parameter = parameter
        self.layers: list[Layer] = []
        self.edges: list[Edge] = []
        self._next = 1 + max(layer.id for layer in graph.layers)
        self._names = {layer.name for layer in graph.layers}

    def const(self, name: str, operation: Const) -> Layer:
        """Add a constant."""
        return self._add(name, operation, (), operation.shape)

    def joined(self, operations: list[Const]) -> Layer:
        """Add a constant for each channel, and join them."""
        images = [self.const(f"mean{i}", each) for i, each in enumerate(operations)]
        cls = find_operation("Concat", "opset1")
        assert cls is not None, "Concat is built in"
        shape = (len(images), *static(operations[0].shape)[1:])
        return self._add("mean", cls(axis=0), tuple(images), shape)

    def converted(self, mean: Layer, element_type: ElementType) -> Layer:
        """Convert a constant to the element type of the input."""
        cls = find_operation("Convert", "opset1")
        assert cls is not None, "Convert is built in"
        return self._add(
            "mean/Convert", cls(destination_type=element_type), (mean,), mean.outputs[0].shape
        )

    def subtract(self, mean: Layer) -> Graph:
        """Subtract a constant from the input, for all layers that read it."""
        cls = find_operation("Subtract", "opset1")
        assert cls is not None, "Subtract is built in"
        parameter = self.parameter
        shape = getattr(parameter.operation, "shape", None)
        result = self._add("pre-process", cls(), (parameter, mean), shape)
        moved = [
            edge._replace(from_layer=result.id, from_port=result.outputs[0].id)
            if edge.from_layer == parameter.id
            else edge
            for edge in self.graph.edges
        ]
        return self.graph.replace(
            layers=(*self.graph.layers, *self.layers), edges=(*moved, *self.edges)
        )

    def _add(
        self, name: str, operation: Operation, sources: tuple[Layer, ...], shape: object
    ) -> Layer:
        number, self._next = self._next, self._next + 1
        full = f"{self.parameter.name}/{name}"
        while full in self._names:
            full += "_"
        self._names.add(full)
        inputs = tuple(
            Port(i, source.outputs[0].shape, source.outputs[0].element_type)
            for i, source in enumerate(sources)
        )
        known = _element_type(self.parameter)
        if isinstance(operation, Const):
            known = operation.element_type
        elif operation.type == "Concat":
            known = inputs[0].element_type
        layer = Layer(
            number,
            full,
            operation,
            operation.type,
            "opset1",
            inputs,
            (Port(len(inputs), shape, known),),  # type: ignore[arg-type]
            tuple(format_attributes(operation).items()),
            self.parameter.line,
        )
        self.layers.append(layer)
        for i, source in enumerate(sources):
            self.edges.append(Edge(source.id, source.outputs[0].id, number, i, source.line))
        return layer
