"""An XML file as read: its text, its graph, its problems, and where each part stands."""

from __future__ import annotations

from deconv_ir.errors import DeconvError
from deconv_ir.formats.openvino_xml.source import Source
from deconv_ir.ir.graph import Graph


class Document:
    """What reading one file gives.

    Attributes
    ----------
    source : Source or None
        The text; None when it is no XML.
    graph : Graph or None
        None when the file is no IR.
    problems : list of DeconvError
        What keeps the file from being loaded, in the order of the file.
    remarks : list of DeconvError
        What a reader passes over: elements and attributes that mean nothing.
    layers, edges : list of int
        Where each of the graph's layers and edges begins in the text.
    root : (int, int)
        Where the start tag of the root stands.
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
