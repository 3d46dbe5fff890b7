"""Statements about a tensor elsewhere in a file: they decide whether a fix is safe.

A tensor is stated several times: its producer declares it, each consumer
declares it, and the producer's attributes and inputs give it.  A fix is safe
only where all statements but the one to be changed agree.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

from deconv_ir.errors import DeconvError
from deconv_ir.ir.dtypes import ElementType
from deconv_ir.ir.graph import Graph, Port
from deconv_ir.ir.infer import Inference, Outputs
from deconv_ir.ir.operation import TensorInfo
from deconv_ir.ir.shapes import Shape, compatible, declared_form
from deconv_ir.ops import find_operation
from deconv_ir.ops.base import attributes_of

if TYPE_CHECKING:
    from deconv_ir.linter.context import LintContext


class Evidence:
    """The statements about the tensors of a graph.

    Attributes
    ----------
    disputed : dict
        Index of a layer -> its computed outputs, where the producer and all
        consumers of an output declare the same dims, and others are computed.
    mistyped : set of int
        Layers of which that holds for an element type.
    plain : Inference or None
        What follows from attributes and inputs alone, where that is disputed.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.disputed: dict[int, Outputs] = {}
        self.mistyped: set[int] = set()
        self.plain: Inference | None = None

    @cached_property
    def consumers(self) -> dict[tuple[int, int], list[Port]]:
        """The input ports that each output leads to."""
        found: dict[tuple[int, int], list[Port]] = {}
        layers = self.graph.layers
        for index, sources in enumerate(self.graph.topology.sources):
            for port, source in zip(layers[index].inputs, sources, strict=True):
                if source is not None:
                    found.setdefault(source, []).append(port)
        return found

    def resume(self, index: int, computed: Outputs) -> Outputs:
        """Return what the layers after one are given whose declared outputs differ.

        Where both ends of every edge contradict what is computed, the layer's attributes
        are more likely wrong than all the declared dims.
        """
        outputs = []
        declared = self.graph.layers[index].outputs
        for i, (port, info) in enumerate(zip(declared, computed, strict=False)):
            fed = self.consumers.get((index, i), ())
            shape, kind = info.shape, info.element_type
            if not compatible(port.shape, shape) and _all_declare(fed, port.shape):
                shape = port.shape
                self.disputed[index] = computed
            if (
                port.element_type not in (None, kind)
                and kind is not None
                and fed
                and not self.is_decompressed_result(index)
                and all(end.element_type is port.element_type for end in fed)
            ):
                kind = port.element_type
                self.mistyped.add(index)
            same = shape is info.shape and kind is info.element_type
            outputs.append(info if same else TensorInfo(shape, kind))
        return (*outputs, *computed[len(outputs) :])

    @cached_property
    def culprits(self) -> dict[int, int]:
        """Each layer at or behind a disputed one -> the disputed layer that comes first."""
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
        """Iterate over the layers that do not fit an input or a constant as its attributes say.

        Which of the two is wrong is not certain, so both are reported.
        """
        assert self.plain is not None
        sources = self.graph.topology.sources
        for error in self.plain.errors:
            culprit = self.culprits.get(getattr(error.location, "layer", -1))
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

    # Fixes

    def supports_shape(
        self, context: LintContext, index: int, side: str, port: int, shape: Shape
    ) -> bool:
        """Whether all that is stated about a tensor, except at one port, is a shape."""
        source = self._source(index, side, port)
        if source is None or not self._is_sound(context, source[0]):
            return False
        if declared_form(context.outputs(source[0])[source[1]].shape) != declared_form(shape):
            return False
        layer = self.graph.layers[source[0]]
        stated = layer.outputs[source[1]]
        ends = self.consumers.get(source, [])
        if side == "output":
            return _all_declare(ends, shape)
        wrong = self.graph.layers[index].inputs[port]
        return (
            declared_form(stated.shape) == declared_form(shape)
            and _all_declare([end for end in ends if end is not wrong], shape, least=0)
            and self._may_be_misdeclared(context, index, port)
        )

    def supports_type(
        self, context: LintContext, index: int, side: str, port: int, kind: ElementType
    ) -> bool:
        """Whether all that is stated about a tensor, except at one port, is a type."""
        source = self._source(index, side, port)
        if source is None or not self._is_sound(context, source[0]):
            return False
        if context.outputs(source[0])[source[1]].element_type is not kind:
            return False
        ends = self.consumers.get(source, [])
        if side == "output":
            return bool(ends) and all(end.element_type is kind for end in ends)
        wrong = self.graph.layers[index].inputs[port]
        return (
            self.graph.layers[source[0]].outputs[source[1]].element_type is kind
            and all(end.element_type is kind for end in ends if end is not wrong)
            and self._may_be_misdeclared(context, index, port)
        )

    def supports_attribute(self, context: LintContext, index: int, name: str, value: str) -> bool:
        """Whether a layer has the declared outputs with one value of an attribute only."""
        from deconv_ir.linter.diagnosis import alternatives, gives_declared, is_same_work

        layer = self.graph.layers[index]
        if _unknown_attributes(context, index) or len(layer.inputs) > 2:
            return False  # an output_shape input decides the dims, whatever the attribute says
        if not all(
            port.shape is not None and _all_declare(self.consumers.get((index, i), ()), port.shape)
            for i, port in enumerate(layer.outputs)
        ):
            return False
        if not gives_declared(context, index, {name: value}):
            return False
        return not any(
            gives_declared(context, index, {name: other})
            and not is_same_work(context, index, {name: value}, {name: other})
            for other in alternatives(context, index, name)
            if other != value
        )

    def supports_size(self, context: LintContext, index: int, start: int, end: int) -> bool:
        """Whether a constant's port and consumers confirm it, and no other has its bytes."""
        (port,) = self.graph.layers[index].outputs
        if context.weights is None or end > len(context.weights):
            return False
        ends = self.consumers.get((index, 0), [])
        return (
            _all_declare(ends, port.shape)
            and all(other.element_type is port.element_type for other in ends)
            and not any(
                const.offset < end and start < const.offset + const.size and other != index
                for other, _, const in context.constants()
                if const.offset != start
            )
        )

    def _source(self, index: int, side: str, port: int) -> tuple[int, int] | None:
        return (index, port) if side == "output" else self.graph.topology.sources[index][port]

    def _is_sound(self, context: LintContext, index: int) -> bool:
        """Whether nothing is in doubt about how a layer computes its outputs."""
        layer = self.graph.layers[index]
        written = {name for name, value in layer.attributes if value.strip()}
        return (
            layer.operation.implemented
            and index not in context.unfit
            and index not in self.disputed
            and index not in self.mistyped
            and not _unknown_attributes(context, index)
            and all(
                spec.name in written or not spec.required
                for spec in attributes_of(type(layer.operation))
            )
        )

    def _may_be_misdeclared(self, context: LintContext, index: int, port: int) -> bool:
        """Whether an input port is wrong, rather than the edge that leads to it.

        The layer works with what the edge brings, and no other tensor is as the port declares.
        """
        if index in context.unfit or index in self.disputed:
            return False
        stated = self.graph.layers[index].inputs[port]
        return (declared_form(stated.shape), stated.element_type) not in self._declared_tensors

    @cached_property
    def _declared_tensors(self) -> set[tuple[tuple[str, ...], ElementType | None]]:
        return {
            (declared_form(port.shape), port.element_type)
            for layer in self.graph.layers
            for port in layer.outputs
        }


def _all_declare(ports: Sequence[Port], shape: Shape, least: int = 1) -> bool:
    """Whether at least this number of ports declare a shape; None says nothing."""
    stated = [declared_form(port.shape) for port in ports if port.shape is not None or not shape]
    return len(stated) >= least and all(form == declared_form(shape) for form in stated)


def _unknown_attributes(context: LintContext, index: int) -> bool:
    """Whether a layer has attributes that its operation does not."""
    layer = context.graph.layers[index]
    operation = find_operation(layer.type, layer.version)
    if operation is None:
        return True
    known = {spec.name for spec in attributes_of(operation)}
    return any(name not in known for name, _ in layer.attributes)
