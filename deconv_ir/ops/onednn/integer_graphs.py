"""Graphs of oneDNN whose operations on dequantized tensors become operations on integers."""

from __future__ import annotations

from collections.abc import Sequence

from deconv_ir.ir.dtypes import F32
from deconv_ir.ir.graph import Graph, Layer, Source, rewire
from deconv_ir.ir.operation import Operation
from deconv_ir.ir.shapes import is_static
from deconv_ir.ops.convolution.onednn import DataFormat, OneDNNDeconvolution
from deconv_ir.ops.onednn.elementwise import BiasAdd
from deconv_ir.ops.onednn.integer import BYTES, PRODUCT, OnIntegers, channels_last
from deconv_ir.ops.onednn.quantization import Dequantize, GroupedWeights, QuantizationType, Quantize

_OUTPUT_LETTERS = {
    "Convolution": "O",
    "ConvTranspose": "O",
    "ConvolutionBackwardData": "I",
    "ConvTransposeBackwardData": "I",
}
"""The letter of the output channels in layouts of weights."""
_ACTIVATIONS = ("ReLU", "Clamp")
"""Operations behind a layer that it computes with the same bits."""


def _output_axis(operation: Operation, rank: int) -> int:
    """Return the axis of the weights that has the channels of the output."""
    if operation.type == PRODUCT:
        return rank - 2 if getattr(operation, "transpose_b", False) else rank - 1
    for name in ("filter_format", "weights_format"):
        layout = getattr(operation, name, None)
        if layout is not None:
            wanted = _OUTPUT_LETTERS[operation.type]
            at: int = layout.value.replace("X", "X" * (rank - 2)).index(wanted)
            return at
    return -1


def with_grouped_scales(graph: Graph) -> Graph:
    """Return a graph whose weights in groups may have a scale for each output channel.

    The axis of the output channels of a ConvTranspose's weights has those of one group; oneDNN's
    library takes the scales of all groups there, in the order of the output's channels.
    """
    layers = list(graph.layers)
    for index, layer in enumerate(graph.layers):
        operation = layer.operation
        if not isinstance(operation, OneDNNDeconvolution) or operation.groups < 2:
            continue
        feeder = _dequantize_before(graph, _weights_before(graph, index, operation))
        shape = None if feeder is None else graph.layers[feeder].inputs[0].shape
        if feeder is None or shape is None or len(shape) < 3:
            continue
        weights = layers[feeder].operation
        assert isinstance(weights, Dequantize), "_dequantize_before requires it"
        at = _output_axis(operation, len(shape))
        per_channel = weights.qtype is QuantizationType.PER_CHANNEL
        if not per_channel or weights.axis % len(shape) != at or not isinstance(shape[at], int):
            continue
        inputs = len(shape) - 1 if operation.spatial_first else 0
        if len(weights.scales) == operation.groups * shape[at] != shape[at]:
            grouped = GroupedWeights(operation.groups, inputs)
            layers[feeder] = layers[feeder]._replace(operation=weights.replace(grouped=grouped))
            (before, *_) = graph.topology.sources[feeder]
            made = None if before is None else layers[before[0]].operation
            if before is not None and isinstance(made, Quantize) and _same_channels(made, weights):
                made = made.replace(grouped=grouped)
                layers[before[0]] = layers[before[0]]._replace(operation=made)
    return graph.replace(layers=tuple(layers)) if layers != list(graph.layers) else graph


def _weights_before(
    graph: Graph, index: int, operation: OneDNNDeconvolution
) -> Sequence[tuple[int, int] | None]:
    """Return the source of the weights, before a StaticReshape that keeps the axes of channels."""
    found = graph.topology.sources[index][1:2]
    source = found[0] if found else None
    if source is None or graph.layers[source[0]].type != "StaticReshape":
        return found
    reshape = graph.layers[source[0]]
    before, after = (ports[0].shape for ports in (reshape.inputs, reshape.outputs))
    channels = slice(-2, None) if operation.spatial_first else slice(2)
    if before is None or after is None or before[channels] != after[channels]:
        return found
    return graph.topology.sources[source[0]][:1]


def _same_channels(a: Quantize, b: Dequantize) -> bool:
    """Whether both have the same number of scales along the same axis."""
    return (a.qtype, a.axis, len(a.scales)) == (b.qtype, b.axis, len(b.scales))


def on_integers(graph: Graph) -> Graph:
    """Return a graph whose operations on dequantized tensors read the quantized ones.

    Each operation keeps its layer, name and output.  So does what alone reads one: the sum with a
    bias or another tensor, an activation or a Quantize, which compute the operation, too.  The
    layers before them remain, and run if others need them.
    """
    layers, sources = list(graph.layers), [tuple(row) for row in graph.topology.sources]
    users: dict[Source, int] = {}
    for row in sources:
        for source in row:
            if source is not None:
                users[source] = users.get(source, 0) + 1
    for index in graph.topology.order:
        layer, row = layers[index], sources[index]
        found = _dequantized(graph, index)
        if found is not None:
            operation, feeders = found
            before = [graph.layers[feeder].inputs[0] for feeder in feeders]
            ports = [port._replace(id=i) for i, port in enumerate(before)]
            sources[index] = (*(sources[feeder][0] for feeder in feeders), *row[2:])
            layers[index] = layer._replace(operation=operation, inputs=(*ports, *layer.inputs[2:]))
            continue
        for at, source in enumerate(row):
            if source is None or users[source] > 1:
                continue
            maker = layers[source[0]]
            if not isinstance(maker.operation, OnIntegers):
                continue
            joined = _joined(maker.operation, layer, at, len(sources[source[0]]))
            if joined is not None:
                others = [i for i in range(len(row)) if i != at]
                sources[index] = (*sources[source[0]], *(row[i] for i in others))
                joint = (*maker.inputs, *(layer.inputs[i] for i in others))
                layers[index] = layer._replace(
                    operation=joined,
                    type=maker.type,
                    inputs=tuple(port._replace(id=i) for i, port in enumerate(joint)),
                )
                break
    return rewire(graph, layers, sources)


def _joined(made: OnIntegers, behind: Layer, at: int, inputs: int) -> OnIntegers | None:
    """Return an operation that computes the layer behind it as well; None: it cannot.

    It has some inputs, and is input `at` of that layer, whose other input becomes its last one.
    """
    if made.quantize is not None:
        return None
    operation, is_plain = behind.operation, made.activation is None and made.element_type is F32
    if isinstance(operation, Quantize):
        to, per_tensor = operation.output_type, operation.qtype is QuantizationType.PER_TENSOR
        is_bytes = to is not None and to.name in BYTES
        return made.replace(quantize=operation) if per_tensor and is_bytes else None
    if not is_plain:
        return None
    if behind.type in _ACTIVATIONS:
        return made.replace(activation=operation)
    if made.addition is not None:
        return None
    if isinstance(operation, BiasAdd):
        takes = inputs == 2 and at == 0 and made.operation.inputs[2:] == ("bias",)
        same = channels_last(made.operation) is (operation.data_format is DataFormat.NXC)
        return made if takes and same else None
    shapes = {port.shape for port in behind.inputs}
    known = made.operation.type != PRODUCT and len(shapes) == 1 and is_static(shapes.pop())
    return made.replace(addition=operation) if known and behind.type == "Add" else None


def _dequantized(graph: Graph, index: int) -> tuple[OnIntegers, list[int]] | None:
    """Return the operation on integers, and the two Dequantize layers before it."""
    layer = graph.layers[index]
    operation = layer.operation
    if operation.type not in _OUTPUT_LETTERS and operation.type != PRODUCT:
        return None
    sources = graph.topology.sources[index]
    feeders = [_dequantize_before(graph, sources[i : i + 1]) for i in (0, 1)]
    found = [i for i in feeders if i is not None]
    types = {port.element_type for port in layer.inputs[:2]}
    if len(found) < 2 or len(types) > 1:
        return None
    element_type = types.pop()
    data, weights = (graph.layers[i].operation for i in found)
    assert isinstance(data, Dequantize), "_dequantize_before requires it"
    assert isinstance(weights, Dequantize), "_dequantize_before requires it"
    shape = graph.layers[found[1]].inputs[0].shape
    if data.qtype is not QuantizationType.PER_TENSOR or shape is None or element_type is None:
        return None
    if weights.qtype is QuantizationType.PER_CHANNEL and weights.axis % len(shape) != _output_axis(
        operation, len(shape)
    ):
        return None
    if weights.qtype is QuantizationType.PER_GROUP:
        return None
    made = OnIntegers(operation=operation, data=data, weights=weights, element_type=element_type)
    return made, found


def _dequantize_before(graph: Graph, found: Sequence[tuple[int, int] | None]) -> int | None:
    """Return the Dequantize to f32 that produces an input, possibly through a TypeCast."""
    sources = graph.topology.sources
    source = found[0] if found else None
    if source is not None and graph.layers[source[0]].type == "TypeCast":
        source = sources[source[0]][0] if sources[source[0]] else None
    if source is None or sources[source[0]][:1] in ((), (None,)):
        return None
    operation = graph.layers[source[0]].operation
    if not isinstance(operation, Dequantize) or operation.output_type is not F32:
        return None
    return source[0]
