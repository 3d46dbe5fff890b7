"""An XML file as read: its text, graph, problems and source locations."""

from __future__ import annotations

from deconv_ir.errors import DeconvError
from deconv_ir.formats.openvino_xml.source import Source
from deconv_ir.ir.graph import Graph


class Document:
    """The result of reading one file.

    Attributes
    ----------
    source : Source or None
        The text; None if it is not XML.
    graph : Graph or None
        None if the file is not an IR.
    problems : list of DeconvError
        Errors that prevent loading, in the order of the file.
    remarks : list of DeconvError
        Unknown elements and attributes, which a reader ignores.
    layers, edges : list of int
        Offsets of the graph's layers and edges in the text.
    root : (int, int)
        Span of the start tag of the root.
    """

    __slots__ = ("edges", "file", "graph", "layers", "problems", "remarks", "root", "source")

    def __init__(self, file: str | None) -> None:
        self.file = file
        self.source: Source | None = None
        self.graph: Graph | None = None
        self.problems: list[DeconvError] = []
        self.remarks: list[DeconvError] = []
        self.layers: list[int] = []
        self.edges: list[int] = []
        self.root = (0, 0)
