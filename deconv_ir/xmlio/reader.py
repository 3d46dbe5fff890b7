"""Reading an IR: XML in, a frozen graph out.

Everything that is wrong is collected, so that the linter sees all of it; a
loader raises the first error.  XML is untrusted: no DTD, no entity, no
external reference, no network.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from lxml import etree

from ..dtypes import ElementType, parse_element_type
from ..errors import DeconvError, IRError
from ..files import open_regular
from ..limits import DEFAULT_LIMITS, Limits
from ..model import Edge, Graph, Info, Layer, Operation, Port
from ..ops import find_operation
from ..ops.base import UnknownOperation, parse_attributes
from ..ops.parameter import Parameter, Result
from ..shapes import Shape, parse_dim

IR_VERSIONS: Final = (10, 11)

_LAYER_ATTRIBUTES: Final = ("id", "name", "type", "version")


def read(
    path: str | os.PathLike[str], limits: Limits = DEFAULT_LIMITS
) -> tuple[Graph | None, list[DeconvError]]:
    """Read an IR from a file.

    Returns
    -------
    graph : Graph or None
        None when the file is no IR at all.
    problems : list of DeconvError
        Everything that is wrong with the file, in its order.
    """
    try:
        data = _read_bytes(Path(path), limits)
    except DeconvError as error:
        return None, [error]
    return read_bytes(data, str(path), limits)


def read_bytes(
    data: bytes, file: str | None = None, limits: Limits = DEFAULT_LIMITS
) -> tuple[Graph | None, list[DeconvError]]:
    """Read an IR from the bytes of its file; see `read`."""
    reader = _Reader(file, limits)
    try:
        graph = reader.document(data)
    except DeconvError as error:
        return None, [*reader.problems, error]
    return graph, reader.problems


def _read_bytes(path: Path, limits: Limits) -> bytes:
    try:
        with open_regular(path) as stream:
            size = os.fstat(stream.fileno()).st_size
            if size > limits.xml_bytes:
                raise IRError(
                    f"the file has {size} bytes, more than the limit of {limits.xml_bytes}",
                    file=str(path),
                    rule="oversize",
                    expected=limits.xml_bytes,
                    actual=size,
                )
            return stream.read(limits.xml_bytes)
    except OSError as error:
        raise IRError(
            f"can not read the IR: {error.strerror}", file=str(path), rule="io"
        ) from error


class _Reader:
    """One pass over one document."""

    def __init__(self, file: str | None, limits: Limits) -> None:
        self.file = file
        self.limits = limits
        self.problems: list[DeconvError] = []
        # Networks repeat themselves: the same attributes, the same dims.
        self._operations: dict[tuple[object, ...], tuple[Operation, list[DeconvError]]] = {}
        self._shapes: dict[tuple[str | None, ...], Shape] = {}

    def problem(
        self, rule: str, message: str, element: etree._Element | None = None, **fields: object
    ) -> None:
        """Note what is wrong, and go on."""
        line = None if element is None else element.sourceline
        self.problems.append(
            IRError(message, file=self.file, line=line, rule=rule, **fields)  # type: ignore[arg-type]
        )

    def document(self, data: bytes) -> Graph:
        """Parse, and read the root element."""
        root = self._parse(data)
        if root.tag == "net":
            return self._net(root)
        if root.tag == "layer":
            return self._bare(root)
        raise IRError(
            f"the root element is <{_tag(root)}>, expected <net>, or a single <layer>",
            file=self.file,
            line=root.sourceline,
            rule="root",
            expected="net",
            actual=str(root.tag),
        )

    def _parse(self, data: bytes) -> etree._Element:
        parser = etree.XMLParser(
            resolve_entities=False, no_network=True, load_dtd=False, huge_tree=False
        )
        try:
            root = etree.fromstring(data, parser)
        except etree.XMLSyntaxError as error:
            message = (error.msg or "no element found").rpartition(", line ")[0] or error.msg
            raise IRError(
                f"this is no well-formed XML: {message}",
                file=self.file,
                line=error.lineno or 1,
                rule="xml",
            ) from error
        if root.getroottree().docinfo.doctype:
            raise IRError("a DOCTYPE is not allowed in an IR", file=self.file, line=1, rule="xml")
        return root

    def _net(self, root: etree._Element) -> Graph:
        version = self._whole(root, "version", "net")
        if version is not None and version not in IR_VERSIONS:
            self.problem(
                "ir-version",
                f"IR version {version} is not supported; 10 and 11 are",
                root,
                expected="10 or 11",
                actual=version,
            )
        layers: list[Layer] = []
        edges: list[Edge] = []
        extras: list[Info] = []
        sections = set()
        for child in _elements(root):
            sections.add(child.tag)
            if child.tag == "layers":
                layers += self._layers(child)
            elif child.tag == "edges":
                edges += self._edges(child)
            else:
                extras.append(_info(child))
        if "layers" not in sections:
            self.problem("missing-element", "<net> has no <layers>", root)
        return Graph(
            root.get("name", ""), tuple(layers), tuple(edges), version, tuple(extras), self.file
        )

    def _layers(self, section: etree._Element) -> Iterator[Layer]:
        if len(section) > self.limits.layers:
            raise IRError(
                f"the network has {len(section)} layers, more than the limit of "
                f"{self.limits.layers}",
                file=self.file,
                line=section.sourceline,
                rule="oversize",
            )
        for element in _elements(section):
            if element.tag != "layer":
                self.problem("unknown-element", f"<{_tag(element)}> in <layers>", element)
                continue
            layer = self._layer(element)
            if layer is not None:
                yield layer

    def _layer(self, element: etree._Element, default_id: int | None = None) -> Layer | None:
        written = dict(element.attrib)
        kind = written.get("type")
        name = written.get("name", "")
        if not kind:
            self.problem("missing-attribute", "<layer> has no attribute 'type'", element)
            return None
        if "id" in written or default_id is None:
            found = self._whole(element, "id", "layer")
            if found is None:
                return None
            layer_id = found
        else:
            layer_id = default_id
        version = written.get("version")
        attributes: tuple[tuple[str, str], ...] = ()
        inputs: tuple[Port, ...] = ()
        outputs: tuple[Port, ...] = ()
        extras: list[Info] = []
        data: etree._Element | None = None
        for child in element:
            tag = child.tag
            if tag == "data":
                data = child
                attributes = tuple((str(k), str(v)) for k, v in child.attrib.items())
            elif tag == "input":
                inputs = tuple(self._ports(child))
            elif tag == "output":
                outputs = tuple(self._ports(child))
            elif isinstance(tag, str):
                extras.append(_info(child))
        label = f"{name!r} ({kind}, id {layer_id})"
        operation = self._operation(kind, version, attributes, element, data, label)
        rest = tuple((k, v) for k, v in written.items() if k not in _LAYER_ATTRIBUTES)
        return Layer(
            layer_id,
            str(name),
            operation,
            str(kind),
            version,
            inputs,
            outputs,
            attributes,
            element.sourceline,
            rest,
            tuple(extras),
        )

    def _operation(
        self,
        kind: str,
        version: str | None,
        attributes: tuple[tuple[str, str], ...],
        element: etree._Element,
        data: etree._Element | None,
        label: str,
    ) -> Operation:
        key = (kind, version, attributes)
        cached = self._operations.get(key)
        if cached is None:
            cached = self._operations[key] = _make_operation(kind, version, attributes)
        operation, errors = cached
        if errors:
            line = (element if data is None else data).sourceline
            for error in errors:
                copy = type(error)(
                    error.message,
                    file=self.file,
                    line=line,
                    layer=label,
                    attribute=error.attribute,
                    expected=error.expected,
                    actual=error.actual,
                    rule=error.rule,
                )
                self.problems.append(copy)
        return operation

    def _ports(self, section: etree._Element) -> Iterator[Port]:
        for position, element in enumerate(_elements(section)):
            if element.tag != "port":
                self.problem("unknown-element", f"<{_tag(element)}> in <{_tag(section)}>", element)
                continue
            yield self._port(element, position)

    def _port(self, element: etree._Element, position: int) -> Port:
        port_id = position if element.get("id") is None else self._whole(element, "id", "port")
        texts: list[str | None] = []
        extras: tuple[Info, ...] = ()
        for child in element:
            tag = child.tag
            if tag == "dim":
                texts.append(child.text)
            elif isinstance(tag, str):
                extras = (*extras, _info(child))
        names = element.get("names")
        return Port(
            position if port_id is None else port_id,
            self._dims(element, tuple(texts)) if texts else None,
            self._precision(element),
            split_names(names) if names else (),
            element.sourceline,
            extras,
        )

    def _dims(self, port: etree._Element, texts: tuple[str | None, ...]) -> Shape:
        try:
            return self._shapes[texts]
        except KeyError:
            pass
        if len(texts) > self.limits.rank:
            self.problem("oversize", f"the port has {len(texts)} dims", port)
            return None
        try:
            shape = tuple(parse_dim(t or "") for t in texts)
        except ValueError:
            for child in port.iterchildren("dim"):
                try:
                    parse_dim(child.text or "")
                except ValueError as error:
                    self.problem("dim-value", f"<dim>: {error}", child, actual=child.text)
            return None
        self._shapes[texts] = shape
        return shape

    def _precision(self, port: etree._Element) -> ElementType | None:
        text = port.get("precision")
        if text is None or text in ("UNSPECIFIED", "undefined", "dynamic"):
            return None
        try:
            return parse_element_type(text)
        except ValueError as error:
            self.problem("precision", f"precision: {error}", port, actual=text)
            return None

    def _edges(self, section: etree._Element) -> Iterator[Edge]:
        for element in _elements(section):
            if element.tag != "edge":
                self.problem("unknown-element", f"<{_tag(element)}> in <edges>", element)
                continue
            ends = [
                self._whole(element, name, "edge")
                for name in ("from-layer", "from-port", "to-layer", "to-port")
            ]
            found = [end for end in ends if end is not None]
            if len(found) == 4:
                yield Edge(found[0], found[1], found[2], found[3], element.sourceline)

    def _whole(self, element: etree._Element, name: str, tag: str) -> int | None:
        text = element.get(name)
        if text is None:
            self.problem("missing-attribute", f"<{tag}> has no attribute {name!r}", element)
            return None
        stripped = text.strip()
        if not (stripped.isascii() and stripped.isdigit() and len(stripped) <= 18):
            self.problem(
                "number",
                f"{name} of <{tag}> must be a whole number from 0, found {text[:40]!r}",
                element,
                actual=text[:40],
            )
            return None
        return int(stripped)

    def _bare(self, element: etree._Element) -> Graph:
        """Make a model of a single layer, as the documents print it."""
        layer = self._layer(element, default_id=0)
        if layer is None:
            raise self.problems.pop()
        return wrap_layer(layer, self.file)


def wrap_layer(layer: Layer, file: str | None = None) -> Graph:
    """Make a model of one layer: a Parameter for each input, a Result for each output."""
    names = type(layer.operation).inputs
    shared = next((p.element_type for p in layer.outputs if p.element_type), None)
    layers: list[Layer] = []
    edges: list[Edge] = []
    inputs = []
    first = layer.id + 1
    for i, port in enumerate(layer.inputs):
        name = names[i] if i < len(names) else f"input{i}"
        known = port.element_type
        if known is None and name not in ("output_shape", "dst_shape"):
            known = shared
        operation = Parameter(shape=port.shape, element_type=known)
        source = Port(0, port.shape, known, (name,), port.line)
        layers.append(
            Layer(first + i, name, operation, "Parameter", "opset1", (), (source,), line=port.line)
        )
        # Ports are bound by order: the documents repeat ids.
        inputs.append(Port(i, port.shape, known, (), port.line, port.extras))
        edges.append(Edge(first + i, 0, layer.id, i, port.line))
    outputs = []
    results: list[Layer] = []
    for i, port in enumerate(layer.outputs or (Port(0, None),)):
        name = layer.name or layer.type
        name = name if len(layer.outputs) < 2 else f"{name}.{i}"
        outputs.append(
            Port(i, port.shape, port.element_type, port.names or (name,), port.line, port.extras)
        )
        result_id = first + len(inputs) + i
        results.append(
            Layer(
                result_id,
                f"{name}/result",
                Result(),
                "Result",
                "opset1",
                (Port(0, port.shape, port.element_type, (), port.line),),
                line=port.line,
            )
        )
        edges.append(Edge(layer.id, i, result_id, 0, port.line))
    body = Layer(
        layer.id,
        layer.name or layer.type,
        layer.operation,
        layer.type,
        layer.version,
        tuple(inputs),
        tuple(outputs),
        layer.attributes,
        layer.line,
        layer.extra_attributes,
        layer.extras,
    )
    return Graph(body.name, (*layers, body, *results), tuple(edges), file=file, bare=True)


def _make_operation(
    kind: str, version: str | None, attributes: tuple[tuple[str, str], ...]
) -> tuple[Operation, list[DeconvError]]:
    cls = find_operation(kind, version)
    if cls is None:
        return UnknownOperation(attributes=attributes), []
    operation, errors = parse_attributes(cls, dict(attributes))
    return operation or UnknownOperation(attributes=attributes), list(errors)


def _tag(element: etree._Element) -> str:
    return str(element.tag)


def _elements(parent: etree._Element) -> Iterator[etree._Element]:
    """Iterate over child elements; comments and processing instructions are passed over."""
    return (child for child in parent if isinstance(child.tag, str))


def _info(element: etree._Element) -> Info:
    """Keep an element that is not interpreted.

    Nesting is bounded by the parser (256 levels), so recursion is safe.
    """
    return Info(
        str(element.tag),
        tuple((str(k), str(v)) for k, v in element.attrib.items()),
        tuple(map(_info, _elements(element))),
        (element.text or "").strip(),
    )


def split_names(text: str) -> tuple[str, ...]:
    r"""Split tensor names at commas; ``\,`` is a comma within a name."""
    if "\\" not in text:
        return tuple(text.split(","))
    names = [""]
    escaped = False
    for char in text:
        if char == "\\" and not escaped:
            escaped = True
            continue
        if char == "," and not escaped:
            names.append("")
        else:
            names[-1] += char if char == "," or not escaped else "\\" + char
        escaped = False
    return tuple(names)
