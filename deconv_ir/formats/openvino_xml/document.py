"""An XML file as read: its text, graph, problems and source locations."""

from __future__ import annotations

from deconv_ir.errors import DeconvError
from deconv_ir.formats.openvino_xml.source import Source
from deconv_ir.ir.graph import Graph


class Document:
    """The result of reading one file."""

    __slots__ = ("edges", "file", "graph", "layers", "problems", "remarks", "root", "source")

    def __init__(self, file: str | None) -> None:
        self.file = file
        self.source: Source | None = None  # None if it is not XML
        self.graph: Graph | None = None  # None if it is not an IR
        self.problems: list[DeconvError] = []  # they prevent loading; in the order of the file
        self.remarks: list[DeconvError] = []  # unknown elements and attributes, which are ignored
        self.layers: list[int] = []  # offsets of the graph's layers in the text
        self.edges: list[int] = []
        self.root = (0, 0)  # span of the start tag of the root
