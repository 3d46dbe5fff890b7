"""An old IR as read: its text, graph, problems and source locations."""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

from deconv_ir.findings import GraphLocation, Location, TextSpan
from deconv_ir.formats import format as base
from deconv_ir.formats.openvino_xml.locations import XMLLocator
from deconv_ir.formats.openvino_xml.text import XMLText
from deconv_ir.ir.graph import Layer


class OldOrigin(NamedTuple):
    """Where a layer of the graph comes from.

    Attributes
    ----------
    start : int
        Offset of the old layer's element.
    inputs : tuple of int
        For each input the position of the old layer's input port; -1: it is inside the conversion.
    outputs : tuple of (int, int)
        Positions of its outputs that are outputs of the old layer, and of these.
    """

    start: int
    inputs: tuple[int, ...] = ()
    outputs: tuple[tuple[int, int], ...] = ()


class ParsedLegacy(base.ParsedFile):
    """The result of reading one file.

    Attributes
    ----------
    version : int
        That of the IR.
    origins : list of OldOrigin
        One for each layer of the graph.
    stated : list of int
        Offsets of the old layers and edges, in order.
    labels : dict
        Offset of an old layer -> its name for messages.
    """

    format = "openvino_legacy"
    has_opsets = False

    def __init__(self, file: str | None) -> None:
        super().__init__(file)
        self.file_text: XMLText | None = None
        self.version = 0
        self.root = TextSpan(0, 0)
        self.origins: list[OldOrigin] = []
        self.layers: list[int] = []
        self.edges: list[int] = []
        self.stated: list[int] = []
        self.labels: dict[int, str] = {}
        self.bodies: list[tuple[int, str, ParsedLegacy]] = []

    def locator(self) -> LegacyLocator:
        """Return the locator of the parts of the graph in the text."""
        assert self.file_text is not None
        return LegacyLocator(self, self.file_text)

    def is_rank_unknown(self, layer: int, output: int) -> bool:
        """Whether the file says nothing of an output: layers within a conversion have no dims."""
        return output not in dict(self.origins[layer].outputs)

    def label(self, index: int) -> str:
        """Return the name of the old layer that a layer comes from."""
        return self.labels.get(self.origins[index].start) or super().label(index)

    def known_attributes(self, layer: Layer) -> frozenset[str] | None:
        """Return None: the attributes of the graph are those of the conversion."""
        return None


class LegacyLocator(base.Locator):
    """Finds the parts of the converted graph in the text of the old IR."""

    def __init__(self, parsed: ParsedLegacy, file_text: XMLText) -> None:
        self.file_text: XMLText = file_text
        self.parsed = parsed
        self._xml = XMLLocator(file_text, parsed.layers, parsed.edges)

    def span(self, location: Location) -> TextSpan:
        """Return the narrowest span of the text that contains a location."""
        if not isinstance(location, GraphLocation) or location.layer is None:
            return self._xml.span(location)
        origin = self.parsed.origins[location.layer]
        if location.port is not None and location.side == "input":
            known = location.port < len(origin.inputs)
            port = origin.inputs[location.port] if known else -1
            location = location._replace(port=None if port < 0 else port)
        elif location.port is not None:
            location = location._replace(port=dict(origin.outputs).get(location.port))
        return self._xml.span(location)

    def owner(self, offset: int) -> TextSpan | None:
        """Return the span of the old layer or edge that contains an offset."""
        starts = self.parsed.stated
        at = bisect_right(starts, offset) - 1
        if at < 0:
            return None
        element = self._xml.element(starts[at])
        return TextSpan(element.start, element.end) if offset < element.end else None
