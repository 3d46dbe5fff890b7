"""The parser of an IR: makes the graph in one pass over the text; see `entry`.

Networks repeat themselves, so each distinct layer text is parsed once, and
layers with the same text share operations, ports and dims.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, cast

from deconv_ir.errors import DeconvError, IRError
from deconv_ir.findings import GraphLocation, Severity, TextSpan
from deconv_ir.formats.openvino_xml.parsed import ParsedXML
from deconv_ir.formats.openvino_xml.pieces import (
    OPENVINO_FORM,
    Piece,
    PieceReader,
    add_fault,
    check_attributes,
    check_child,
    info_of,
    refuse,
    whole,
)
from deconv_ir.formats.openvino_xml.scanner import TAG, Element, read_attributes, scan
from deconv_ir.formats.openvino_xml.text import XMLText
from deconv_ir.formats.openvino_xml.vocabulary import LAYER_ATTRIBUTES
from deconv_ir.hints import Hint
from deconv_ir.ir.graph import Edge, Graph, Info, Layer
from deconv_ir.ir.operation import Operation
from deconv_ir.limits import Limits
from deconv_ir.ops import find_operation, standard_type
from deconv_ir.ops.base import UnknownOperation, parse_attributes

if TYPE_CHECKING:
    from deconv_ir.ir.body import Body

IR_VERSIONS: Final = (10, 11)
OLDER_VERSIONS: Final = range(2, 8)
"""Versions of the IR that OpenVINO 2020.4 read.

Source: OpenVINO pull request 1438, release notes of 2021.1.
"""
MAX_DEPTH: Final = 32
"""Maximum nesting depth of bodies."""
OPENVINO_FORM_OF_BARE: Final = f"{OPENVINO_FORM}-of-bare-layer"

# A fast path for start tags as OpenVINO writes them; others are parsed in general.
_PLAIN_LAYER: Final = (
    r"""<layer id="([0-9]{1,18})" name="([^"&\s]*)" type="([^"&\s]+)" version="([^"&\s]*)">"""
    r"""(?:\s*<data ([^<>&'\t\n\r]*)/>)?"""
)
_PLAIN_EDGE: Final = (
    r'''<edge from-layer="([0-9]{1,18})" from-port="([0-9]{1,18})"'''
    r""" to-layer="([0-9]{1,18})" to-port="([0-9]{1,18})" ?/>"""
)

_EXECUTED: Final = frozenset({"execOrder", "originalLayersNames"})
"""Attributes of each layer of an execution graph (OpenVINO's `get_runtime_model`)."""
_EDGE_ENDS: Final = ("from-layer", "from-port", "to-layer", "to-port")


_Head = tuple[int, str, str, str | None, tuple[tuple[str, str], ...], int, int]
"""A layer's start tag: id, name, type, version, other attributes, start, end."""


def oversize(
    message: str, file: str | None, line: int, limit: int, actual: int | None = None
) -> IRError:
    """Return the error for a size above a limit."""
    return IRError(message, file=file, line=line, rule="oversize", expected=limit, actual=actual)


def open_text(data: bytes, file: str | None, limits: Limits) -> XMLText:
    """Return the text of a file within limits of its size and of its tags, which become objects."""
    if len(data) > limits.xml_bytes:
        size = len(data)
        message = f"the file has {size} bytes, more than the limit of {limits.xml_bytes}"
        raise oversize(message, file, 1, limits.xml_bytes, size)
    tags = data.count(b"<")
    if tags > limits.tags:
        message = f"the file has {tags} tags, more than the limit of {limits.tags}"
        raise oversize(message, file, 1, limits.tags, tags)
    return XMLText(data, file)


class Reader:
    """One pass over one document."""

    def __init__(
        self, parsed: ParsedXML, file_text: XMLText, limits: Limits, around: Reader | None = None
    ) -> None:
        self.out = parsed
        self.file = parsed.file
        self.file_text = file_text
        self.markup = file_text.markup
        self.limits = limits
        # Lines are counted from the last requested offset, which is always near.
        self._line_at: int = 0 if around is None else around._line_at
        self._line: int = 1 if around is None else around._line
        self._depth: int = 0 if around is None else around._depth + 1
        self._rounds = 1  # maximum number of shape inferences
        self._work: list[int] = [0] if around is None else around._work
        self._operations: dict[
            tuple[str, str | None, tuple[tuple[str, str], ...]], tuple[Operation, list[DeconvError]]
        ] = {}
        self._piece_reader = PieceReader(limits)
        self._pieces: dict[tuple[int, str], Piece] = {}
        self._data: dict[str, tuple[tuple[str, str], ...]] = {}
        self._faults: list[DeconvError] = []
        self._pre_process: Element | None = None

    # Faults

    def flush(self) -> None:
        """Record the faults that were found at offsets into the whole text."""
        for fault in self._faults:
            self.report(fault, 0)
        self._faults.clear()

    def report(
        self, fault: DeconvError, base: int, layer: str | None = None, span: TextSpan | None = None
    ) -> None:
        """Record a fault whose span, by default its location, is relative to `base`."""
        import copy

        found = fault.finding
        start, end = span or cast(TextSpan, found.location)
        line, column = self.file_text.position(base + start)
        error = copy.copy(fault)  # the piece may be shared
        error.finding = found._replace(
            location=TextSpan(base + start, base + end),
            file=self.file,
            line=line,
            column=column,
            layer=layer,
        )
        if found.severity is Severity.INFO:
            if len(self.out.remarks) < self.limits.problems:
                self.out.remarks.append(error)
            return
        self.out.errors.append(error)
        if len(self.out.errors) >= self.limits.problems:
            most = self.limits.problems
            message = f"there are {most} mistakes up to here; the rest is not read"
            raise oversize(message, self.file, line, most)

    def line(self, offset: int) -> int:
        """Return the line of an offset; fast when asked in the order of the file."""
        self._line += (
            self.markup.count("\n", self._line_at, offset)
            if offset >= self._line_at
            else -self.markup.count("\n", offset, self._line_at)
        )
        self._line_at = offset
        return self._line

    # The file

    def read(self) -> Graph:
        """Read the root element."""
        match = TAG.search(self.markup)
        assert match is not None, "a well-formed document has a root"
        self.out.root = TextSpan(*match.span())
        if match[2] == "net":
            return self._net(Element.of(self.markup, match))
        if match[2] == "layer":
            return self._bare(match)
        line, column = self.file_text.position(match.start())
        raise IRError(
            f"the root element is <{match[2]}>, expected <net>, or a single <layer>",
            file=self.file,
            line=line,
            column=column,
            rule="root",
            expected="net",
            actual=match[2],
            location=self.out.root,
        )

    def _net(self, root: Element) -> Graph:
        attributes = root.attributes()
        check_attributes("net", root, attributes, self._faults)
        version = whole(attributes, "version", root, self._faults)
        if version is not None and version not in IR_VERSIONS:
            _, start, end = root.attribute_spans()["version"]
            message = f"IR version {version} is not supported; 10 and 11 are"
            add_fault(
                self._faults,
                "ir-version",
                message,
                start,
                end,
                expected="10 or 11",
                actual=version,
                hint=Hint.CONVERT_AGAIN() if version in OLDER_VERSIONS else None,
            )
        self.flush()
        graph = self._graph(root, attributes.get("name", ""), version)
        if graph.layers and _EXECUTED.issubset(name for name, _ in graph.layers[0].attributes):
            self.out.errors.clear()  # its layers have no attributes of a model
            self.out.remarks.clear()
            raise IRError(
                "the file is an OpenVINO execution graph: it records a run and has neither "
                "attributes nor weights",
                file=self.file,
                line=self.line(root.start),
                rule="execution-graph",
                hint=Hint.COMPILED_FROM_IR(),
                location=root.head,
            )
        if self._pre_process is not None:
            self._check_pre_process(graph, self._pre_process)
        return graph

    def _check_pre_process(self, graph: Graph, element: Element) -> None:
        """Record the mistakes and the ignored elements of a `<pre-process>`."""
        from deconv_ir.formats.openvino_xml import pre_process

        try:
            pre_process.parse(graph)
        except IRError as error:
            self.report(error, 0, span=element.head)
        scale = next((s for c in element.named("channel") for s in c.named("scale")), None)
        if scale is not None:
            message = f"<scale> in <{pre_process.TAG}> is ignored, as by OpenVINO's reader"
            add_fault(self._faults, "unknown-element", message, *scale.head, remark=True)
            self.flush()

    def _bodies(self, operation: Operation, start: int, piece: Piece) -> dict[str, Body]:
        """Read the bodies of a layer; missing bodies are left out."""
        from deconv_ir.formats.openvino_xml.port_maps import join

        element = next(scan(self.markup, start))
        if self._depth >= MAX_DEPTH:
            message = f"bodies are nested more than {MAX_DEPTH} deep"
            raise self._oversize(message, start, MAX_DEPTH)
        bodies: dict[str, Body] = {}
        for name in operation.body_names:
            child = element.first(name)
            if child is None or child.closed:
                message = f"the layer has no <{name}>"
                add_fault(self._faults, "missing-element", message, *element.head)
                self.flush()
                continue
            inner = ParsedXML(self.file)
            inner.file_text, inner.root = self.file_text, child.head
            reader = Reader(inner, self.file_text, self.limits, self)
            reader._rounds = self._rounds * operation.inference_rounds
            inner.graph = graph = reader._graph(child, "", None)
            self._work[0] += reader._rounds * len(graph.layers)
            if self._work[0] > self.limits.layers:
                limit = self.limits.layers
                message = f"the bodies exceed the limit of {limit} layers (each inference counts)"
                raise self._oversize(message, start, limit)
            self.out.bodies.append((len(self.out.layers), name, inner))
            bodies[name] = join(name, graph, element, piece.inputs, piece.outputs)
        return bodies

    def _oversize(self, message: str, start: int, limit: int) -> IRError:
        return oversize(message, self.file, self.line(start), limit)

    def _graph(self, root: Element, name: str, version: int | None) -> Graph:
        """Read the sections of a network or of a body."""
        layers: list[Layer] = []
        edges: list[Edge] = []
        extras: list[Info] = []
        sections: set[str] = set()
        at = root.head_end
        while not root.closed:
            match = TAG.search(self.markup, at)
            if match is None or match[1]:
                break
            head = Element.of(self.markup, match)
            at = head.head_end
            sections.add(head.tag)
            if head.tag == "layers":
                at = at if head.closed else self._layers(at, layers)
            elif head.tag == "edges":
                at = at if head.closed else self._edges(at, edges)
            else:
                element = next(scan(self.markup, head.start))
                at = element.end
                extras.append(info_of(element))
                check_child("net", element, self._faults)
                if head.tag == "pre-process" and root.tag == "net":
                    self._pre_process = self._pre_process or element
        if "layers" not in sections:
            message = f"<{root.tag}> has no <layers>"
            add_fault(self._faults, "missing-element", message, *root.head)
        self.flush()
        return Graph(
            name=name,
            layers=tuple(layers),
            edges=tuple(edges),
            ir_version=version,
            extras=tuple(extras),
            file=self.file,
        )

    def _layers(self, at: int, layers: list[Layer]) -> int:
        """Read the layers from `at` on, and return the offset of the end of their section."""
        markup = self.markup
        find, match_tag, match_plain = markup.find, TAG.match, re.compile(_PLAIN_LAYER).match
        while True:
            start = find("<", at)
            plain = match_plain(markup, start)
            if plain is not None and len(layers) < self.limits.layers:
                layer_id, name, type_name, version, raw = plain.groups()
                head = (int(layer_id), name, type_name, version, (), start, plain.end())
                layer, at = self._layer(head, raw, plain.start(5) - 6)
                layers.append(layer)
                self.out.layers.append(start)
                continue
            match = match_tag(markup, start)
            assert match is not None, "a well-formed document has a tag at each '<'"
            head_end = match.end()
            if match[1]:
                return head_end
            if match[2] != "layer":
                element = next(scan(markup, start))
                at = element.end
                check_child("layers", element, self._faults)
                self.flush()
                continue
            if len(layers) >= self.limits.layers:
                limit = self.limits.layers
                message = f"the network has more layers than the limit of {limit}"
                raise self._oversize(message, start, limit)
            found = self._head(Element.of(markup, match))
            if found is None:
                at = next(scan(markup, start)).end
                continue
            layer, at = self._layer(found, None, start)
            layers.append(layer)
            self.out.layers.append(start)

    def _head(self, element: Element, default_id: int | None = None) -> _Head | None:
        """Read the start tag of a layer; None for other elements."""
        written = element.attributes()
        check_attributes("layer", element, written, self._faults)
        layer_id = default_id
        if "id" in written or default_id is None:
            layer_id = whole(written, "id", element, self._faults)
        type_name = written.get("type")
        if not type_name:
            message = "<layer> has no attribute 'type'"
            add_fault(self._faults, "missing-attribute", message, *element.head)
        if "name" not in written:
            refuse(self._faults, "a layer without name", *element.head)
        self.flush()
        if layer_id is None or not type_name:
            return None
        return (
            layer_id,
            written.get("name", ""),
            type_name,
            written.get("version"),
            tuple((k, v) for k, v in written.items() if k not in LAYER_ATTRIBUTES),
            *element.head,
        )

    def _layer(self, head: _Head, raw: str | None, data_start: int) -> tuple[Layer, int]:
        """Read a layer, and return the offset of its end.

        `head` ends after a leading ``<data .../>``, if present; `raw` is its text.
        """
        markup = self.markup
        layer_id, name, type_name, version, others, start, rest = head
        line = self.line(start)
        data: tuple[tuple[str, str], ...] | None = None
        if raw is not None:
            data = self._data.get(raw)
            if data is None:
                data = self._data[raw] = tuple(read_attributes(raw, 0, len(raw)).items())
        if raw is None and markup[rest - 2] == "/":
            end = close = rest
        else:
            close = markup.find("</layer", rest)
            end = close + 8 if markup[close + 7] == ">" else markup.index(">", close) + 1
        body = markup[rest:close]
        lines_above = markup.count("\n", start, rest)
        key = (lines_above if data is None else ~lines_above, body)
        piece = self._pieces.get(key)
        if piece is None:
            if "<layer" in body:  # the layer contains layers
                end = next(scan(markup, start)).end
                body = markup[rest : markup.rindex("</", rest, end)]
                key = (key[0], body)
            piece = self._pieces[key] = self._piece_reader.read(body, lines_above, data is not None)
        if data is None:
            data = piece.data or ()
        type_name = standard_type(type_name, version)
        operation, errors = self._operation(type_name, version, data)
        if operation.body_names:
            bodies = self._bodies(operation, start, piece)
            if len(bodies) == len(operation.body_names):
                operation = operation.replace(**bodies)
            else:
                operation = UnknownOperation(attributes=data)
        layer = Layer(
            layer_id,
            name,
            operation,
            type_name,
            version,
            piece.inputs,
            piece.outputs,
            data,
            line,
            others,
            piece.extras,
        )
        for fault in piece.faults:
            self.report(fault, rest, layer.label)
        for error in errors:
            at = start if raw is None else data_start
            self.report(error, 0, layer.label, TextSpan(at, rest))
            index = len(self.out.layers)
            self.out.errors[-1].location = GraphLocation(layer=index, attribute=error.attribute)
        return layer, end

    def _operation(
        self, type_name: str, version: str | None, attributes: tuple[tuple[str, str], ...]
    ) -> tuple[Operation, list[DeconvError]]:
        key = (type_name, version, attributes)
        cached = self._operations.get(key)
        if cached is None:
            cls = find_operation(type_name, version)
            found = None if cls is None else parse_attributes(cls, dict(attributes))
            operation, errors = found or (None, ())
            operation = operation or UnknownOperation(attributes=attributes)
            cached = self._operations[key] = operation, list(errors)
        return cached

    # Edges

    def _edges(self, at: int, edges: list[Edge]) -> int:
        """Read the edges from `at` on, and return the offset of the end of their section."""
        markup = self.markup
        find, match_tag, match_plain = markup.find, TAG.match, re.compile(_PLAIN_EDGE).match
        offsets = self.out.edges
        while True:
            start = find("<", at)
            plain = match_plain(markup, start)
            if plain is not None:
                a, b, c, d = map(int, plain.groups())
                edges.append(Edge(a, b, c, d, self.line(start)))
                offsets.append(start)
                at = plain.end()
                continue
            match = match_tag(markup, start)
            assert match is not None, "a well-formed document has a tag at each '<'"
            at = match.end()
            if match[1]:
                return at
            if match[2] != "edge" or not match[3].endswith("/"):
                element = next(scan(markup, start))
                at = element.end
                if match[2] != "edge":
                    check_child("edges", element, self._faults)
                    self.flush()
                    continue
                for child in element.children:
                    check_child("edge", child, self._faults)
            head = Element.of(markup, match)
            written = head.attributes()
            check_attributes("edge", head, written, self._faults)
            ends = [whole(written, name, head, self._faults) for name in _EDGE_ENDS]
            if self._faults:
                self.flush()
            found = [end for end in ends if end is not None]
            if len(found) == 4:
                edges.append(Edge(found[0], found[1], found[2], found[3], self.line(start)))
                offsets.append(start)

    def _bare(self, match: re.Match[str]) -> Graph:
        """Make a model of a single layer, the form of the examples in the documents."""
        head = self._head(Element.of(self.markup, match), default_id=0)
        if head is None:
            raise self.out.errors.pop()
        layer, _ = self._layer(head, None, match.start())
        from deconv_ir.ops.single_layer import wrap_layer

        graph = wrap_layer(layer, self.file)
        index = next(i for i, found in enumerate(graph.layers) if found.id == layer.id)
        for remark in self.out.remarks:
            if remark.rule == OPENVINO_FORM:
                remark.rule = OPENVINO_FORM_OF_BARE
        for error in self.out.errors:
            if isinstance(error.location, GraphLocation):
                error.location = GraphLocation(layer=index, attribute=error.location.attribute)
        self.out.layers = [match.start()] * len(graph.layers)
        self.out.edges = [match.start()] * len(graph.edges)
        return graph
