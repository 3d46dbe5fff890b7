"""A oneDNN Graph file as read: its text, graph, problems and the location of each part."""

from __future__ import annotations

from typing import NamedTuple

from deconv_ir.findings import GraphLocation, Location, TextSpan
from deconv_ir.formats import format as base
from deconv_ir.formats.onednn_json.kinds import KINDS, SPELLINGS
from deconv_ir.formats.onednn_json.text import JSONText, Node
from deconv_ir.ir.dtypes import ElementType
from deconv_ir.ir.graph import Layer
from deconv_ir.ir.shapes import Shape
from deconv_ir.ops.base import attributes_of


class LogicalTensor(NamedTuple):
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
    inputs: tuple[LogicalTensor, ...] = ()
    outputs: tuple[LogicalTensor, ...] = ()


class ParsedJSON(base.ParsedFile):
    """The result of reading one file.

    Attributes
    ----------
    stated : list of Stated
        One for each layer of the graph.
    ports : list of (str, int, TextSpan)
        Section, tensor id and place of each element of input_ports and output_ports.
    """

    format = "onednn_json"
    has_opsets = False
    states_edges = False

    def __init__(self, file: str | None) -> None:
        super().__init__(file)
        self.file_text: JSONText | None = None
        self.stated: list[Stated] = []
        self.root = TextSpan(0, 0)
        self.ports: list[tuple[str, int, TextSpan]] = []

    def locator(self) -> JSONLocator:
        """Return the locator of the parts of the graph in the text."""
        return JSONLocator(self)

    def is_known(self, layer: Layer) -> bool:
        """Whether oneDNN Graph has the kind, and it can be run."""
        return layer.type in KINDS

    def known_attributes(self, layer: Layer) -> frozenset[str] | None:
        """Return the attributes of the kind, which may differ from those of its class."""
        if not layer.operation.implemented:
            return None
        cls, kind = type(layer.operation), KINDS.get(layer.type)
        names = frozenset(spec.name for spec in attributes_of(cls))
        return names if kind is None else names.intersection(kind.attributes(cls).values())

    def is_rank_unknown(self, layer: int, output: int) -> bool:
        """Whether the file says of an output that its rank is unknown."""
        outputs = self.stated[layer].outputs
        return output < len(outputs) and outputs[output].shape is None


class JSONLocator(base.Locator):
    """Finds the parts of a graph in the text."""

    def __init__(self, parsed: ParsedJSON) -> None:
        assert parsed.file_text is not None
        self.parsed = parsed
        self.file_text: JSONText = parsed.file_text

    def span(self, location: Location) -> TextSpan:
        """Return the narrowest span of the text that contains a location."""
        if not isinstance(location, GraphLocation):
            return location
        if location.layer is None:
            return self.parsed.root
        stated = self.parsed.stated[location.layer]
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
            return node.span if shape is None else self.file_text.integer_span(shape, location.axis)
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
