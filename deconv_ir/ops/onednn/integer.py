"""Convolutions and products of dequantized tensors, summed as integers.

A oneDNN library computes Dequantize, Dequantize, ConvTranspose as one int8 primitive:
sums of ``(src - zp) * (weights - zp)`` are exact, and scaled afterwards.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from deconv_ir.ir.graph import Edge, Graph, Layer
from deconv_ir.ir.operation import Context, Operation, TensorInfo
from deconv_ir.ir.options import Accuracy
from deconv_ir.ir.record import field
from deconv_ir.ir.shapes import element_count, static
from deconv_ir.ops.onednn.quantization import Dequantize, QuantizationType

if TYPE_CHECKING:
    from deconv_ir.ir.dtypes import Array

_OUTPUT_LETTERS = {
    "Convolution": "O",
    "ConvTranspose": "O",
    "ConvolutionBackwardData": "I",
    "ConvTransposeBackwardData": "I",
}
"""What layouts of weights call the channels of the output."""
_PRODUCT = "MatMul"


class OnIntegers(Operation):
    """An operation on two dequantized tensors, given the quantized ones.

    Sums are exact below 2**53; the scales and the bias are applied in f64, and the
    result is rounded once.

    Attributes
    ----------
    operation : Operation
    data, weights : Dequantize
        What stands before its first two inputs.
    """

    inputs = ("src", "weights", "bias")
    required_inputs = 2
    checks_values = False

    operation: Operation = field()
    data: Dequantize = field()
    weights: Dequantize = field()

    def infer(self, inputs: Sequence[TensorInfo], context: Context) -> tuple[TensorInfo, ...]:
        """Infer the operation on dequantized tensors."""
        data, weights, *rest = inputs
        return self.operation.infer(
            [*self.data.infer([data], context), *self.weights.infer([weights], context), *rest],
            context,
        )

    def explain(
        self, inputs: Sequence[TensorInfo], context: Context, output: int, axis: int
    ) -> str | None:
        """Explain the operation."""
        return self.operation.explain(inputs, context, output, axis)

    def execute(self, inputs: Sequence[Array], context: Context) -> Sequence[Array]:
        """Sum in f64, without Winograd, then scale."""
        import numpy as np

        data, weights, *rest = inputs
        levels = []
        for array, how in ((data, self.data), (weights, self.weights)):
            _, zps = how.parameters(array.shape)
            levels.append(array.astype(np.float64) - zps)
        exact = context._replace(accuracy=Accuracy.DIRECT)
        shape, bias = (rest, None) if self.operation.inputs[2:] == ("dst_shape",) else ([], rest)
        (total,) = self._summed().execute([*levels, *shape], exact)
        last = _channels_last(self.operation)
        scales = np.array(self.data.scales, np.float32).astype(np.float64)
        factors = np.array(self.weights.scales, np.float32).astype(np.float64)
        if len(factors) > 1:
            channels = total.shape[-1 if last else 1]
            factors = np.tile(factors, channels // len(factors))
        along = (-1,) if last else (-1, *(1,) * (total.ndim - 2))
        result = total * (scales * factors).reshape(along)
        if bias:
            added = bias[0].astype(np.float64)
            result += added if added.ndim > 1 else added.reshape(along)
        return (result.astype(np.float32),)

    def _summed(self) -> Operation:
        """Return the operation as it keeps the type of the sums."""
        typed = "output_type" in self.operation.fields
        return self.operation.replace(output_type=None) if typed else self.operation

    def scratch(
        self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo], context: Context
    ) -> int:
        """Count all tensors in f64, the result twice."""
        shapes = [i.shape for i in (*inputs, *outputs, *outputs)]
        return 8 * sum(element_count(static(shape)) for shape in shapes if shape is not None)


def _channels_last(operation: Operation) -> bool:
    return operation.type == _PRODUCT or bool(getattr(operation, "channels_last", False))


def _output_axis(operation: Operation, rank: int) -> int:
    """Return the axis of the weights that the channels of the output stand on."""
    if operation.type == _PRODUCT:
        return rank - 2 if getattr(operation, "transpose_b", False) else rank - 1
    for name in ("filter_format", "weights_format"):
        layout = getattr(operation, name, None)
        if layout is not None:
            wanted = _OUTPUT_LETTERS[operation.type]
            at: int = layout.value.replace("X", "X" * (rank - 2)).index(wanted)
            return at
    return -1


def on_integers(graph: Graph) -> Graph:
    """Return a graph whose operations on dequantized tensors take the quantized ones.

    Each keeps its layer, name and output; the Dequantize layers stay, and run if
    something else needs them.
    """
    layers = list(graph.layers)
    sources = graph.topology.sources
    edges = list(graph.edges)
    for index, layer in enumerate(graph.layers):
        found = _dequantized(graph, index)
        if found is None:
            continue
        before = [sources[index][i] for i in (0, 1)]
        ports = list(layer.inputs)
        for i, source in enumerate(before):
            assert source is not None, "_dequantized requires it"
            feeder = graph.layers[source[0]]
            ports[i] = feeder.inputs[0]._replace(id=i)
            origin = sources[source[0]][0]
            assert origin is not None, "_dequantized requires it"
            start = graph.layers[origin[0]]
            edges = [e for e in edges if (e.to_layer, e.to_port) != (layer.id, i)]
            edges.append(Edge(start.id, start.outputs[origin[1]].id, layer.id, i, layer.line))
        layers[index] = layer._replace(operation=found, inputs=tuple(ports))
    return graph.replace(layers=tuple(layers), edges=tuple(edges)) if edges else graph


def _dequantized(graph: Graph, index: int) -> OnIntegers | None:
    layer = graph.layers[index]
    operation = layer.operation
    if operation.type not in _OUTPUT_LETTERS and operation.type != _PRODUCT:
        return None
    feeders: list[Layer] = []
    for source in graph.topology.sources[index][:2]:
        if source is None or graph.topology.sources[source[0]][:1] in ((), (None,)):
            return None
        feeders.append(graph.layers[source[0]])
    found = [f.operation for f in feeders if isinstance(f.operation, Dequantize)]
    if len(found) < 2 or any(d.output_type is None or d.output_type.name != "f32" for d in found):
        return None
    data, weights = found
    shape = feeders[1].inputs[0].shape
    if data.qtype is not QuantizationType.PER_TENSOR or shape is None:
        return None
    if weights.qtype is QuantizationType.PER_CHANNEL and weights.axis % len(shape) != _output_axis(
        operation, len(shape)
    ):
        return None
    if weights.qtype is QuantizationType.PER_GROUP:
        return None
    return OnIntegers(operation=operation, data=data, weights=weights)
