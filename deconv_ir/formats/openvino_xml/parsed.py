"""An XML file as read: its text, graph, problems and source locations."""

from __future__ import annotations

from deconv_ir.findings import TextSpan
from deconv_ir.formats import format as base
from deconv_ir.formats.openvino_xml.locations import XMLLocator
from deconv_ir.formats.openvino_xml.text import XMLText


class ParsedXML(base.ParsedFile):
    """The result of reading one file; `root` is the start tag of its root."""

    format = "openvino_xml"

    def __init__(self, file: str | None) -> None:
        super().__init__(file)
        self.file_text: XMLText | None = None
        self.layers: list[int] = []
        self.edges: list[int] = []
        self.root = TextSpan(0, 0)
        # Bodies of If, Loop and TensorIterator: index of the layer, tag of the element, contents.
        self.bodies: list[tuple[int, str, ParsedXML]] = []

    def locator(self) -> XMLLocator:
        """Return the locator of the parts of the graph in the text."""
        assert self.file_text is not None
        return XMLLocator(self.file_text, self.layers, self.edges)
