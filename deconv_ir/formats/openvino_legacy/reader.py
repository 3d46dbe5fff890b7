"""Reading an old IR: XML in, a graph of current operations out.

XML is untrusted: it is read by the parts of the current reader, with the same limits.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from deconv_ir.errors import DeconvError, IRError
from deconv_ir.findings import GraphLocation, Severity, TextSpan
from deconv_ir.formats.openvino_legacy.conversion import Conversion
from deconv_ir.formats.openvino_legacy.layer import OldBlob, OldBody, OldLayer
from deconv_ir.formats.openvino_legacy.network import (
    NetworkConverter,
    add_results,
    connect_layers,
)
from deconv_ir.formats.openvino_legacy.parsed import ParsedLegacy
from deconv_ir.formats.openvino_legacy.summary import summary
from deconv_ir.formats.openvino_xml.locations import XMLLocator
from deconv_ir.formats.openvino_xml.pieces import (
    OPENVINO_FORM,
    PieceReader,
    info_of,
    whole,
)
from deconv_ir.formats.openvino_xml.reader import open_text, oversize
from deconv_ir.formats.openvino_xml.scanner import TAG, Element, NestingError, depth_error, scan
from deconv_ir.formats.openvino_xml.text import XMLText
from deconv_ir.hints import Hint
from deconv_ir.ir.graph import Edge, Graph, Info, Port
from deconv_ir.limits import DEFAULT_LIMITS, Limits

_EDGE_ENDS = ("from-layer", "from-port", "to-layer", "to-port")
_DROPPED = frozenset({"unknown-element", OPENVINO_FORM, "unknown-attribute"})
"""Remarks of the current reader that say nothing about old files."""


def parse_bytes(
    data: bytes, file: str | None = None, limits: Limits = DEFAULT_LIMITS
) -> ParsedLegacy:
    """Read an old IR from the bytes of its file, and keep the location of each part."""
    parsed = ParsedLegacy(file)
    try:
        parsed.file_text = text = open_text(data, file, limits)
        try:
            LegacyReader(parsed, text, limits).read()
        except NestingError:
            raise depth_error(text) from None
    except DeconvError as error:
        for earlier in parsed.errors:
            if isinstance(earlier.location, GraphLocation):
                earlier.location = None  # without a graph, the location has no meaning
        parsed.graph = None
        parsed.errors.append(error.locate(file=file))
    return parsed


class LegacyReader:
    """One pass over one document."""

    def __init__(self, parsed: ParsedLegacy, file_text: XMLText, limits: Limits) -> None:
        self.out = parsed
        self.file_text = file_text
        self.markup = file_text.markup
        self.limits = limits
        self.pieces = PieceReader(limits)
        self.faults: list[DeconvError] = []
        self._line_at, self._line = 0, 1

    # Text

    def line(self, offset: int) -> int:
        """Return the line of an offset; fast when asked in the order of the file."""
        if offset < self._line_at:
            self._line_at, self._line = 0, 1
        self._line += self.markup.count("\n", self._line_at, offset)
        self._line_at = offset
        return self._line

    def report(self, fault: DeconvError, base: int = 0, layer: str | None = None) -> None:
        """Record a fault whose location is relative to `base`."""
        if fault.rule in _DROPPED and fault.finding.severity is Severity.INFO:
            return
        place = fault.location
        if isinstance(place, TextSpan):
            start, end = base + place.start, base + place.end
            line, column = self.file_text.position(start)
            fault.finding = fault.finding._replace(
                location=TextSpan(start, end), line=line, column=column
            )
        fault.locate(file=self.out.file, layer=layer)
        if fault.finding.severity is Severity.INFO:
            if len(self.out.remarks) < self.limits.problems:
                self.out.remarks.append(fault)
            return
        self.out.errors.append(fault)
        if len(self.out.errors) >= self.limits.problems:
            most = self.limits.problems
            message = f"there are {most} mistakes up to here; the rest is not read"
            raise oversize(message, self.out.file, fault.line or 1, most)

    def flush(self) -> None:
        """Record the faults found at offsets into the whole text."""
        for fault in self.faults:
            self.report(fault)
        self.faults.clear()

    def remark(self, message: str, span: TextSpan) -> None:
        """Record a part of the file that is ignored."""
        error = IRError(message, rule="unknown-element", location=span)
        error.finding = error.finding._replace(severity=Severity.INFO)
        line, column = self.file_text.position(span.start)
        error.finding = error.finding._replace(line=line, column=column, file=self.out.file)
        self.out.remarks.append(error)

    def children(self, element: Element) -> Iterator[Element]:
        """Iterate over the start tags of the children of an element, without their contents."""
        at = element.head_end
        while not element.closed:
            match = TAG.search(self.markup, at)
            if match is None or match[1]:
                return
            head = Element.of(self.markup, match)
            at = head.head_end if head.closed else next(scan(self.markup, head.start)).end
            yield head

    # Document

    def read(self) -> None:
        """Read the root element into the document."""
        match = TAG.search(self.markup)
        assert match is not None, "the format was recognised"
        root = Element.of(self.markup, match)
        self.out.root = root.head
        written = root.attributes()
        self.out.version = whole(written, "version", root, self.faults) or 0
        self.flush()
        layers, edges, extras = self.sections(root)
        topology = connect_layers(self.out.file, layers, [edge for edge, _ in edges])
        if topology.errors:
            locator = XMLLocator(
                self.file_text, [old.start for old in layers], [start for _, start in edges]
            )
            for error in topology.errors:
                assert error.location is not None, "all of them have one"
                span = locator.span(error.location)
                line, column = self.file_text.position(span.start)
                error.finding = error.finding._replace(
                    location=span, line=line, column=column, file=self.out.file
                )
            raise_all(self.out, topology.errors)
        self.out.stated = sorted([*(old.start for old in layers), *(s for _, s in edges)])
        self.out.labels = {old.start: old.label for old in layers}
        converter = NetworkConverter(self.out.file, self.report)
        conversion = converter.convert(layers, topology)
        self.out.states_constants = not converter.has_unknown
        add_results(conversion, layers, converter.outputs, topology)
        self.out.origins = conversion.origins
        self.out.layers = [origin.start for origin in conversion.origins]
        self.out.edges = [conversion.origins[edge.to_layer].start for edge in conversion.edges]
        self.out.graph = Graph(
            name=written.get("name", ""),
            layers=tuple(conversion.layers),
            edges=tuple(conversion.edges),
            ir_version=self.out.version,
            extras=(*extras, summary(self.out.version, layers, conversion)),
            file=self.out.file,
            format=ParsedLegacy.format,
        )
        self.bodies(self.out, conversion)
        self.refuse(converter.missing, layers)

    def bodies(self, out: ParsedLegacy, conversion: Conversion) -> None:
        """Add the bodies of a conversion to its document."""
        for owner, inner, layers, graph in conversion.bodies:
            body = ParsedLegacy(out.file)
            body.file_text, body.version, body.root = out.file_text, out.version, out.root
            body.stated = sorted(old.start for old in layers)
            # Inputs that were added come last, with the places of their readers.
            body.labels = {old.start: old.label for old in reversed(layers)}
            body.origins = inner.origins
            body.layers = [origin.start for origin in inner.origins]
            body.edges = [inner.origins[edge.to_layer].start for edge in inner.edges]
            body.graph = graph.replace(ir_version=out.version, format=ParsedLegacy.format)
            self.bodies(body, inner)
            out.bodies.append((owner, "body", body))

    def refuse(self, missing: list[OldLayer], layers: list[OldLayer]) -> None:
        """Record that the types of some layers have no conversion."""
        if not missing:
            return
        counts = Counter(old.type for old in missing)
        named = ", ".join(f"{kind} ({count})" for kind, count in counts.most_common(16))
        more = f" and {len(counts) - 16} more types" if len(counts) > 16 else ""
        first = missing[0]
        self.out.errors.append(
            IRError(
                f"{len(missing)} of {count_layers(layers)} layers have types of IR version "
                f"{self.out.version} that cannot be converted: {named}{more}",
                file=self.out.file,
                line=first.line,
                layer=first.label,
                location=first.element.head,
                actual=first.type,
                hint=Hint.CONVERT_AGAIN(),
                rule="legacy-layer",
            )
        )

    def sections(self, root: Element) -> tuple[list[OldLayer], list[tuple[Edge, int]], list[Info]]:
        """Read the sections of a network."""
        layers: list[OldLayer] = []
        edges: list[tuple[Edge, int]] = []
        extras: list[Info] = []
        found = False
        for section in self.children(root):
            if section.tag == "layers":
                found = True
                self.layers(section, layers)
            elif section.tag == "edges":
                self.edges(section, edges)
            elif section.tag == "pre-process":
                extras.append(info_of(next(scan(self.markup, section.start))))
            elif section.tag == "statistics" and any(True for _ in self.children(section)):
                self.remark(
                    "<statistics> is ignored: the network is computed without calibration",
                    section.head,
                )
        if not found:
            raise IRError(
                f"<{root.tag}> has no <layers>",
                line=self.line(root.start),
                rule="missing-element",
                location=root.head,
            )
        return layers, edges, extras

    def layers(self, section: Element, layers: list[OldLayer]) -> None:
        """Read the layers of a section."""
        for head in self.children(section):
            if head.tag != "layer":
                continue
            if len(layers) >= self.limits.layers:
                limit = self.limits.layers
                message = f"the network has more layers than the limit of {limit}"
                raise oversize(message, self.out.file, self.line(head.start), limit)
            layer = self.layer(next(scan(self.markup, head.start)))
            if layer is not None:
                layers.append(layer)

    def layer(self, element: Element) -> OldLayer | None:
        """Read a layer; None, with a problem, if it has no id or type."""
        written = element.attributes()
        number = whole(written, "id", element, self.faults)
        kind = written.get("type", "")
        self.flush()
        line = self.line(element.start)
        if not kind:
            message = "<layer> has no attribute 'type'"
            self.report(IRError(message, rule="missing-attribute", location=element.head))
        if number is None or not kind:
            return None
        name = written.get("name", "")
        body = self.markup[element.head_end : element.end]
        body = body[: body.rindex("</")] if not element.closed else ""
        above = self.markup.count("\n", element.start, element.head_end)
        piece = self.pieces.read(body, above, has_data=False)
        label = f"{name!r} ({kind}, id {number})"
        for fault in piece.faults:
            self.report(fault, element.head_end, label)
        data = dict(piece.data) if piece.data is not None else old_data(element)
        return OldLayer(
            number,
            name,
            kind,
            written.get("precision", ""),
            data,
            tuple(map(scalar_port, piece.inputs)),
            tuple(map(scalar_port, piece.outputs)),
            self.blobs(element),
            line,
            element.start,
            element,
            self.body(element),
        )

    def body(self, element: Element) -> OldBody | None:
        """Read the body of a layer, if it has one."""
        body = element.first("body")
        if body is None:
            return None
        layers: list[OldLayer] = []
        edges: list[tuple[Edge, int]] = []
        for section in body.children:
            if section.tag == "layers":
                self.layers(section, layers)
            elif section.tag == "edges":
                self.edges(section, edges)
        ports, back = element.first("port_map"), element.first("back_edges")
        entries = () if ports is None else ports.children
        return OldBody(
            layers,
            [edge for edge, _ in edges],
            [entry.attributes() for entry in entries if entry.tag == "input"],
            [entry.attributes() for entry in entries if entry.tag == "output"],
            [edge.attributes() for edge in (() if back is None else back.named("edge"))],
        )

    def blobs(self, element: Element) -> dict[str, OldBlob]:
        """Read the blobs of a layer: children of ``<blobs>``, or of the layer in early files."""
        section = element.first("blobs")
        early = [c for c in element.children if c.tag in ("weights", "biases")]
        found: dict[str, OldBlob] = {}
        for child in [*early, *(section.children if section is not None else ())]:
            written = child.attributes()
            offset = whole(written, "offset", child, self.faults)
            size = whole(written, "size", child, self.faults)
            self.flush()
            if offset is not None and size is not None:
                found[child.tag] = OldBlob(offset, size, written.get("precision", ""), child.head)
        return found

    def edges(self, section: Element, edges: list[tuple[Edge, int]]) -> None:
        """Read the edges of a section."""
        for head in self.children(section):
            if head.tag != "edge":
                continue
            written = head.attributes()
            ends = [whole(written, name, head, self.faults) for name in _EDGE_ENDS]
            self.flush()
            found = [end for end in ends if end is not None]
            if len(found) == 4:
                a, b, c, d = found
                edges.append((Edge(a, b, c, d, self.line(head.start)), head.start))


def raise_all(parsed: ParsedLegacy, errors: tuple[IRError, ...]) -> None:
    """Record errors of the file; the last one ends its reading."""
    parsed.errors.extend(errors[:-1])
    raise errors[-1]


def old_data(element: Element) -> dict[str, str]:
    """Return the attributes of early files, whose element is ``<convolution_data>`` and so on.

    A ``<crop-data>`` has an element for each axis.
    """
    for child in element.children:
        if not child.tag.endswith(("_data", "-data")):
            continue
        rows = [row.attributes() for row in child.children]
        names = dict.fromkeys(name for row in rows for name in row)
        listed = {name: ",".join(row.get(name, "") for row in rows) for name in names}
        return child.attributes() | listed
    return {}


def count_layers(layers: list[OldLayer]) -> int:
    """Return the number of layers, with those of bodies."""
    return sum(1 if old.body is None else 1 + count_layers(old.body.layers) for old in layers)


def scalar_port(port: Port) -> Port:
    """Return a port without its names, which old files do not have."""
    return port._replace(names=(), extras=())
