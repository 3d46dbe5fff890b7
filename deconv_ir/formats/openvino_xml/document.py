"""An XML file as read: its text, graph, problems and source locations."""

from __future__ import annotations

from collections.abc import Iterator

from deconv_ir.errors import DeconvError
from deconv_ir.formats.openvino_xml.locations import pin_down
from deconv_ir.formats.openvino_xml.source import Source
from deconv_ir.ir.graph import Graph


class Document:
    """The result of reading one file."""

    def __init__(self, file: str | None) -> None:
        self.file = file
        self.source: Source | None = None  # None if it is not XML
        self.graph: Graph | None = None  # None if it is not an IR
        self.problems: list[DeconvError] = []  # they prevent loading; in the order of the file
        self.remarks: list[DeconvError] = []  # unknown elements and attributes, which are ignored
        self.layers: list[int] = []  # offsets of the graph's layers in the text
        self.edges: list[int] = []
        self.root = (0, 0)  # span of the start tag of the root
        # Of If, Loop and TensorIterator: index of the layer, tag of the element, its contents.
        self.bodies: list[tuple[int, str, Document]] = []

    def walk(self) -> Iterator[Document]:
        """Iterate over the document and the bodies within it."""
        yield self
        for _, _, body in self.bodies:
            yield from body.walk()

    def located_problems(self) -> list[DeconvError]:
        """Return the problems, of bodies too, each with its line and column."""
        parts = list(self.walk())
        for part in parts:
            if part.problems:
                pin_down(part)
        return [problem for part in parts for problem in part.problems]
