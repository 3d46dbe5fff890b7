"""An XML file as read: its text, graph, problems and source locations."""

from __future__ import annotations

from collections.abc import Iterator

from deconv_ir.errors import DeconvError
from deconv_ir.findings import TextSpan
from deconv_ir.formats.openvino_xml.locations import Locator
from deconv_ir.formats.openvino_xml.source import Source
from deconv_ir.ir.graph import Graph


class Document:
    """The result of reading one file."""

    def __init__(self, file: str | None) -> None:
        self.file = file
        self.source: Source | None = None  # None if it is not XML
        self.graph: Graph | None = None  # None if it is not an IR
        self.problems: list[DeconvError] = []  # prevent loading; in the order of the file
        self.remarks: list[DeconvError] = []  # unknown elements and attributes, which are ignored
        self.layers: list[int] = []  # offsets of the graph's layers in the text
        self.edges: list[int] = []
        self.root = TextSpan(0, 0)  # span of the start tag of the root
        # Bodies of If, Loop and TensorIterator: index of the layer, tag of the element, contents.
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
                part._pin_down()
        return [problem for part in parts for problem in part.problems]

    def locator(self) -> Locator:
        """Return the locator of the parts of the graph in the text."""
        assert self.source is not None
        return Locator(self.source, self.layers, self.edges)

    def _pin_down(self) -> None:
        """Narrow the problems' locations to the invalid attribute or dim."""
        if self.source is None or self.graph is None:
            return
        locator = self.locator()
        for problem in self.problems:
            if problem.location is not None:
                start, _ = locator.span(problem.location)
                problem.line, problem.column = self.source.position(start)
