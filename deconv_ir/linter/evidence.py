"""Statements about a tensor elsewhere in a file.

A tensor is described several times: its producer and each consumer declare it, and the producer's
attributes and inputs determine it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

from deconv_ir.errors import DeconvError
from deconv_ir.ir.dtypes import ElementType
from deconv_ir.ir.graph import Graph, Port
from deconv_ir.ir.infer import Inference, Outputs
from deconv_ir.ir.operation import TensorInfo
from deconv_ir.ir.shapes import Shape, compatible, declared_form


class Evidence:
    """The statements about the tensors of a graph.

    Attributes
    ----------
    disputed : dict
        Index of a layer -> its computed outputs, if the producer and all consumers of an output
        declare the same dims, and other dims are computed.
    mistyped : set of int
        Layers for which this holds for an element type.
    plain : Inference or None
        The inference from attributes and inputs only, if it is disputed.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.disputed: dict[int, Outputs] = {}
        self.mistyped: set[int] = set()
        self.plain: Inference | None = None

    @cached_property
    def consumers(self) -> dict[tuple[int, int], list[Port]]:
        """The input ports that use each output."""
        found: dict[tuple[int, int], list[Port]] = {}
        layers = self.graph.layers
        for index, sources in enumerate(self.graph.topology.sources):
            for port, source in zip(layers[index].inputs, sources, strict=True):
                if source is not None:
                    found.setdefault(source, []).append(port)
        return found

    def resume(self, index: int, computed: Outputs) -> Outputs:
        """Return the outputs that later layers see, for a layer whose declared outputs differ.

        If both ends of every edge contradict the computed dims, the layer's attributes are more
        likely wrong than all the declared dims.
        """
        outputs = []
        declared = self.graph.layers[index].outputs
        for i, (port, info) in enumerate(zip(declared, computed, strict=False)):
            fed = self.consumers.get((index, i), ())
            shape, element_type = info.shape, info.element_type
            if not compatible(port.shape, shape) and all_declare(fed, port.shape):
                shape = port.shape
                self.disputed[index] = computed
            if (
                port.element_type not in (None, element_type)
                and element_type is not None
                and fed
                and not self.is_decompressed_result(index)
                and all(end.element_type is port.element_type for end in fed)
            ):
                element_type = port.element_type
                self.mistyped.add(index)
            same = shape is info.shape and element_type is info.element_type
            outputs.append(info if same else TensorInfo(shape, element_type))
        return (*outputs, *computed[len(outputs) :])

    @cached_property
    def culprits(self) -> dict[int, int]:
        """Each layer at or after a disputed one -> the first such disputed layer."""
        found: dict[int, int] = {}
        sources = self.graph.topology.sources
        for index in self.graph.topology.order:
            if index in self.disputed or index in self.mistyped:
                found[index] = index
                continue
            blamed = [found[s[0]] for s in sources[index] if s is not None and s[0] in found]
            if blamed:
                found[index] = blamed[0]
        return found

    def errors_of_sources(self) -> Iterator[DeconvError]:
        """Iterate over the layers that do not fit the attributes of an input or a constant.

        Either may be wrong, so both are reported.
        """
        assert self.plain is not None
        sources = self.graph.topology.sources
        for error in self.plain.errors:
            index = error.finding.part.layer
            culprit = None if index is None else self.culprits.get(index)
            if culprit is not None and not sources[culprit]:
                yield error

    def is_decompressed_result(self, index: int) -> bool:
        """Whether a Convert decompresses weights for a Result.

        OpenVINO declares the type before the Convert there.
        """
        layer = self.graph.layers[index]
        return (
            layer.type == "Convert"
            and index in self._before_results
            and any(
                ("name", "decompression") in child.attributes
                for extra in layer.extras
                if extra.tag == "rt_info"
                for child in extra.children
            )
        )

    @cached_property
    def _before_results(self) -> set[int]:
        sources = self.graph.topology.sources
        return {
            source[0]
            for index, layer in enumerate(self.graph.layers)
            if layer.type == "Result"
            for source in sources[index]
            if source is not None
        }

    @cached_property
    def declared_tensors(self) -> set[tuple[tuple[str, ...], ElementType | None]]:
        """Dims and type of each output port."""
        return {
            (declared_form(port.shape), port.element_type)
            for layer in self.graph.layers
            for port in layer.outputs
        }


def all_declare(ports: Sequence[Port], shape: Shape, least: int = 1) -> bool:
    """Whether at least this number of ports declare a shape; None is not a declaration."""
    stated = [declared_form(port.shape) for port in ports if port.shape is not None or not shape]
    return len(stated) >= least and all(form == declared_form(shape) for form in stated)
