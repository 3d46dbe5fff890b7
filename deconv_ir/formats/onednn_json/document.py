"""A oneDNN Graph file as read: its text, graph, problems and the location of each part."""

from __future__ import annotations

from typing import NamedTuple

from deconv_ir.errors import DeconvError
from deconv_ir.findings import GraphLocation, Location, TextSpan
from deconv_ir.formats.onednn_json.kinds import SPELLINGS
from deconv_ir.formats.onednn_json.text import Node, Text
from deconv_ir.ir.dtypes import ElementType
from deconv_ir.ir.graph import Graph
from deconv_ir.ir.shapes import Shape


class Tensor(NamedTuple):
    """A tensor as declared by one operation.

    Attributes
    ----------
    id : int
    dtype : str
        oneDNN's spelling.
    element_type : ElementType or None
        None: ``undef``.
    shape : Shape
    strides : tuple of int, or None
        In elements; None: not stated.
    layout_type, property_type : str
    node : Node
        Its location.
    """

    id: int
    dtype: str
    element_type: ElementType | None
    shape: Shape
    strides: tuple[int, ...] | None
    layout_type: str
    property_type: str
    node: Node


class Stated(NamedTuple):
    """A layer as declared in the file: an operation, or a tensor for a Parameter or Result."""

    node: Node
    inputs: tuple[Tensor, ...] = ()
    outputs: tuple[Tensor, ...] = ()


class Document:
    """The result of reading one file; see the XML reader's class of this name.

    Attributes
    ----------
    stated : list of Stated
        One for each layer of the graph.
    ports : list of (str, int, TextSpan)
        Section, tensor id and place of each element of input_ports and output_ports.
    """

    def __init__(self, file: str | None) -> None:
        self.file = file
        self.source: Text | None = None
        self.graph: Graph | None = None
        self.problems: list[DeconvError] = []
        self.remarks: list[DeconvError] = []
        self.stated: list[Stated] = []
        self.root = TextSpan(0, 0)
        self.ports: list[tuple[str, int, TextSpan]] = []

    @property
    def layers(self) -> list[int]:
        """Offsets of the graph's layers; a Parameter has no offset of its own."""
        return []

    edges: tuple[int, ...] = ()

    def located_problems(self) -> list[DeconvError]:
        """Return the problems, each with its line and column."""
        if self.graph is not None and self.source is not None:
            locator = Locator(self)
            for problem in self.problems:
                if problem.location is not None:
                    start, _ = locator.span(problem.location)
                    problem.line, problem.column = self.source.position(start)
        return self.problems


class Locator:
    """Finds the parts of a graph in the text."""

    def __init__(self, document: Document) -> None:
        assert document.source is not None
        self.document = document
        self.source = document.source

    def span(self, location: Location) -> TextSpan:
        """Return the narrowest span of the text that contains a location."""
        if not isinstance(location, GraphLocation):
            return location
        if location.layer is None:
            return self.document.root
        stated = self.document.stated[location.layer]
        if location.side is not None and location.port is not None:
            tensors = stated.inputs if location.side == "input" else stated.outputs
            if location.port < len(tensors):
                return self._of_tensor(tensors[location.port].node, location)
        if location.attribute is not None and not location.own:
            return self._of_attribute(stated, location.attribute)
        name = stated.node.get("id" if location.attribute == "id" else "name")
        return (stated.node if name is None else name).span

    def _of_tensor(self, node: Node, location: GraphLocation) -> TextSpan:
        if location.axis is not None:
            shape = node.get("shape")
            return node.span if shape is None else self.source.integer_span(shape, location.axis)
        names = {"precision": "dtype"}
        member = node.get(names.get(location.attribute or "", location.attribute or "id"))
        return (node if member is None else member).span

    def _of_attribute(self, stated: Stated, name: str) -> TextSpan:
        attributes = stated.node.get("attrs")
        found = None
        if attributes is not None:
            found = attributes.get(name) or attributes.get(SPELLINGS.get(name, name))
        if found is None:
            head = stated.node.get("kind")
            return (stated.node if head is None else head).span
        value = found.get("value")
        return (found if value is None else value).span

    def data(self, index: int) -> None:
        """Return None: files of this format have no fixes."""
        return

    def port(self, index: int, side: str, port: int) -> None:
        """Return None: files of this format have no fixes."""
        return

    def owner(self, offset: int) -> TextSpan | None:
        """Return the span of the operation around an offset."""
        return None
