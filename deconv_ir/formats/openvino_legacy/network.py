"""The conversion of a network, or of a body: its layers in topological order, and its Results."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from deconv_ir.errors import DeconvError
from deconv_ir.findings import GraphLocation, TextSpan
from deconv_ir.formats.openvino_legacy.conversion import (
    Conversion,
    LayerConversion,
    outputs_of,
    unknown,
)
from deconv_ir.formats.openvino_legacy.layer import OldLayer
from deconv_ir.formats.openvino_legacy.table import find_rule
from deconv_ir.ir.dtypes import F32
from deconv_ir.ir.graph import Edge, Graph, Layer, Topology, connect
from deconv_ir.ir.graph import Source as Tensor
from deconv_ir.ops.base import UnknownOperation


def connect_layers(file: str | None, layers: Sequence[OldLayer], edges: Sequence[Edge]) -> Topology:
    """Connect old layers, and collect the problems of their edges."""
    made = tuple(
        Layer(
            old.id,
            old.name,
            UnknownOperation(),
            old.type,
            None,
            old.inputs,
            old.outputs,
            line=old.line,
        )
        for old in layers
    )
    return connect(Graph(name="", layers=made, edges=tuple(edges), file=file))


class NetworkConverter:
    """Converts the layers of a network in topological order.

    Attributes
    ----------
    outputs : dict
        Index of an old layer -> what computes each of its outputs.
    missing : list of OldLayer
        Layers of types without a rule.
    has_unknown : bool
        Whether a layer could not be converted, so that its blobs are not in the graph.
    """

    def __init__(
        self, file: str | None, report: Callable[[DeconvError], None], *, inside: bool = False
    ) -> None:
        self.file = file
        self.file_error = report
        self.inside = inside
        """Whether the layers are those of a body, which is not part of the file's graph."""
        self.outputs: dict[int, list[Tensor]] = {}
        self.missing: list[OldLayer] = []
        self.has_unknown = False

    def convert(self, layers: list[OldLayer], topology: Topology) -> Conversion:
        """Convert all layers."""
        conversion = Conversion(self.file)
        names = Counter(old.name for old in layers)
        conversion.reserve(list(names))
        for index in topology.order:
            old = layers[index]
            sources = [
                self.outputs[source[0]][source[1]]
                for source in topology.sources[index]
                if source is not None
            ]
            is_named = names[old.name] == 1 and not self.inside
            step = LayerConversion(conversion, old, sources, is_named, self.body)
            self.outputs[index] = self.one(step)
        return conversion

    def body(
        self, layers: list[OldLayer], edges: list[Edge]
    ) -> tuple[Conversion, dict[int, list[Tensor]]]:
        """Convert the layers of a body; return what computes the outputs of each.

        Raises
        ------
        IRError
            Edges of the body do not fit.
        """
        topology = connect_layers(self.file, layers, edges)
        for error in topology.errors:
            error.location = None  # in the graph of the body
            raise error
        inner = NetworkConverter(self.file, self.file_error, inside=True)
        conversion = inner.convert(layers, topology)
        self.missing += inner.missing
        self.has_unknown |= inner.has_unknown
        return conversion, inner.outputs

    def one(self, step: LayerConversion) -> list[Tensor]:
        """Convert one layer; return what computes each of its outputs."""
        old, conversion = step.layer, step.conversion
        rule = find_rule(old.type)
        if rule is None:
            self.missing.append(old)
            return self.unknown(step)
        size = (len(conversion.layers), len(conversion.edges))
        try:
            made = rule(step)
            found = outputs_of(made)
            if len(found) < len(old.outputs):
                raise step.unsupported(
                    f"{old.type} has {len(found)} outputs, found {len(old.outputs)} declared"
                )
            own: dict[Tensor, None] = {}
            for source in found[: len(old.outputs)]:
                own[step.own(source) if source not in own else step.copy(source)] = None
        except DeconvError as error:
            del conversion.layers[size[0] :], conversion.origins[size[0] :]
            del conversion.edges[size[1] :]
            conversion.bodies = [row for row in conversion.bodies if row[0] < size[0]]
            self.report(error, step)
            return self.unknown(step)
        conversion.finish(step, list(own))
        # Images of U8 and I16 are computed as floats; integers of 32 and 64 bits may be indices.
        return [
            step.convert(source, F32)
            if old.type == "Input" and 0 < step.type_of(source).bits < 32
            else source
            for source in own
        ]

    def unknown(self, step: LayerConversion) -> list[Tensor]:
        """Add the layer as an unknown operation."""
        self.has_unknown = True
        index = len(step.conversion.layers)
        unknown(step)
        return [(index, i) for i in range(len(step.layer.outputs))]

    def report(self, error: DeconvError, step: LayerConversion) -> None:
        """Record the problem of a layer, at its attribute or blob."""
        old = step.layer
        if self.inside and not isinstance(error.location, TextSpan):
            error.location = old.element.head
        elif error.location is None:
            index = len(step.conversion.layers)
            error.location = GraphLocation(layer=index, attribute=error.attribute)
        error.locate(line=old.line, layer=old.label)
        self.file_error(error)


def add_results(
    conversion: Conversion,
    layers: list[OldLayer],
    outputs: dict[int, list[Tensor]],
    topology: Topology,
) -> None:
    """Add a Result for each output that no layer reads.

    Source: Inference Engine, `CNNNetwork::getOutputsInfo`: data without consumers.
    """
    used = {source for row in topology.sources for source in row}
    for index, old in enumerate(layers):
        for number in range(len(old.outputs)):
            if (index, number) in used:
                continue
            conversion.add_result(old, number, outputs[index][number])
