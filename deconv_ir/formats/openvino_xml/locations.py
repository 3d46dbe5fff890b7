"""Mapping of parts of a graph to spans of its file's text."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from deconv_ir.findings import GraphLocation, Location, TextSpan
from deconv_ir.formats import format as base
from deconv_ir.formats.openvino_xml.scanner import Element, scan
from deconv_ir.formats.openvino_xml.text import XMLText


class XMLLocator(base.Locator):
    """Finds the parts of a graph in the text that it was read from.

    Parameters
    ----------
    file_text : XMLText
        The text.
    layers, edges : sequence of int
        Offsets of the graph's layers and edges in it.
    """

    def __init__(self, file_text: XMLText, layers: Sequence[int], edges: Sequence[int]) -> None:
        self.file_text: XMLText = file_text
        self.layers = layers
        self.edges = edges
        self._elements: dict[int, Element] = {}
        self._ports: dict[tuple[int, str], list[Element]] = {}

    def element(self, start: int) -> Element:
        """Return the element that begins at an offset, with its descendants."""
        found = self._elements.get(start)
        if found is None:
            markup = self.file_text.markup
            found = self._elements[start] = next(scan(markup, start))
        return found

    def layer(self, index: int) -> Element:
        """Return the element of a layer."""
        return self.element(self.layers[index])

    def data(self, index: int) -> Element | None:
        """Return the ``<data>`` of a layer."""
        return self.layer(index).first("data")

    def port(self, index: int, side: str, port: int) -> Element | None:
        """Return the element of a port."""
        # A layer may have thousands of ports, and a finding for each.
        ports = self._ports.get((index, side))
        if ports is None:
            section = self.layer(index).first(side)
            ports = [] if section is None else list(section.named("port"))
            self._ports[index, side] = ports
        return ports[port] if port < len(ports) else None

    def span(self, location: Location) -> TextSpan:
        """Return the narrowest span of the text that contains a location."""
        if not isinstance(location, GraphLocation):
            return location
        if location.edge is not None:
            edge = self.element(self.edges[location.edge])
            return attribute_span(edge, location.attribute)
        assert location.layer is not None, "a location names a layer or an edge"
        layer = self.layer(location.layer)
        if location.port is not None and location.side is not None:
            port = self.port(location.layer, location.side, location.port)
            if port is None:
                return layer.head
            if location.axis is not None:
                dims = list(port.named("dim"))
                if location.axis < len(dims):
                    return trimmed(dims[location.axis])
            return attribute_span(port, location.attribute)
        if location.child is not None:
            child = layer.first(location.child)
            return (layer if child is None else child).head
        if location.own:
            return attribute_span(layer, location.attribute)
        if location.attribute is not None:
            data = layer.first("data")
            return attribute_span(layer if data is None else data, location.attribute)
        return layer.head

    def owner(self, offset: int) -> TextSpan | None:
        """Return the span of the layer or edge that contains an offset; None outside of them."""
        for starts in (self.layers, self.edges):
            at = bisect_right(starts, offset) - 1
            if at >= 0:
                element = self.element(starts[at])
                if offset < element.end:
                    return TextSpan(element.start, element.end)
        return None


def attribute_span(element: Element, name: str | None) -> TextSpan:
    """Return the span of an attribute's value, or of the start tag without one."""
    if name is not None:
        spans = element.attribute_spans()
        if name in spans:
            start, first, last = spans[name]
            return TextSpan(first, last) if last > first else TextSpan(start, last + 1)
    return element.head


def trimmed(element: Element) -> TextSpan:
    """Return the span of an element's text without surrounding white space."""
    start, end = element.text_span()
    text = element.markup[start:end]
    if not text.strip():
        return element.head
    return TextSpan(start + len(text) - len(text.lstrip()), end - (len(text) - len(text.rstrip())))
