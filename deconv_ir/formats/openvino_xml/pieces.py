"""Parser of the contents of a layer: data, ports, dims, and their mistakes.

All positions are offsets into the text of one layer, so that layers with the
same text share the result.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from deconv_ir.errors import DeconvError, IRError
from deconv_ir.findings import Severity, TextSpan
from deconv_ir.formats.openvino_xml.scanner import Element, scan
from deconv_ir.formats.openvino_xml.vocabulary import ATTRIBUTES, CHILDREN
from deconv_ir.hints import Advice, Hint
from deconv_ir.ir.dtypes import ELEMENT_TYPES, ElementType, parse_element_type
from deconv_ir.ir.graph import Info, Port
from deconv_ir.ir.shapes import Shape, parse_dim
from deconv_ir.limits import Limits
from deconv_ir.suggestions import nearest

MAX_FAULTS = 1000
"""Maximum number of remarks, and of mistakes, for one layer or the text between layers."""


OPENVINO_FORM = "openvino-form"
"""Rule of remarks about input that this reader accepts and OpenVINO's reader rejects."""


_PRECISIONS: Final[dict[str, ElementType | None]] = {
    **{known.ir_name: known for known in ELEMENT_TYPES},
    **{known.name: known for known in ELEMENT_TYPES},
    **dict.fromkeys(("U1", "bin"), parse_element_type("u1")),
    **dict.fromkeys(("UNSPECIFIED", "undefined", "dynamic")),
}
# Sections and ports in the form in which OpenVINO writes them.
_SECTION: Final = re.compile(r"\s*<(/?)(input|output)>")
_PORT: Final = re.compile(
    r'\s*<port id="([0-9]{1,18})" precision="(\w+)"(?: names="([^"&\\\s]+)")?>'
)


class Piece:
    """The parsed text of a layer; shared by layers with the same text."""

    __slots__ = ("data", "extras", "faults", "inputs", "outputs")

    def __init__(self) -> None:
        self.data: tuple[tuple[str, str], ...] | None = None
        self.inputs: tuple[Port, ...] = ()
        self.outputs: tuple[Port, ...] = ()
        self.extras: tuple[Info, ...] = ()
        self.faults: list[DeconvError] = []


def add_fault(
    faults: list[DeconvError],
    rule: str,
    message: str,
    start: int,
    end: int,
    *,
    remark: bool = False,
    **fields: Any,
) -> None:
    """Record a mistake, or a remark, at offsets into the text; up to a limit per piece."""
    # At least half of a full list are mistakes, so the file is rejected in any case.
    if len(faults) >= (MAX_FAULTS if remark else 2 * MAX_FAULTS):
        return
    error = IRError(message, rule=rule, location=TextSpan(start, end), **fields)
    if remark:
        error.finding = error.finding._replace(severity=Severity.INFO)
    faults.append(error)


def whole(
    written: dict[str, str], name: str, element: Element, faults: list[DeconvError]
) -> int | None:
    """Return an attribute that must be a whole number; None, with a fault, if it is not."""
    text = written.get(name)
    if text is None:
        message = f"<{element.tag}> has no attribute {name!r}"
        add_fault(faults, "missing-attribute", message, *element.head, attribute=name)
        return None
    if text.isascii() and text.isdigit() and len(text) <= 18:
        return int(text)
    stripped = text.strip()
    if not (stripped.isascii() and stripped.isdigit() and len(stripped) <= 18):
        _, start, end = element.attribute_spans()[name]
        message = f"{name} of <{element.tag}> must be a whole number from 0, found {text[:40]!r}"
        add_fault(faults, "number", message, start, end, actual=text[:40])
        return None
    return int(stripped)


def check_attributes(
    tag: str, element: Element, written: Iterable[str], faults: list[DeconvError]
) -> None:
    """Add a remark for each unknown attribute."""
    if len(faults) >= MAX_FAULTS:
        return
    known = ATTRIBUTES[tag]
    unknown = [n for n in written if n not in known and ":" not in n and n != "xmlns"][:MAX_FAULTS]
    if not unknown:
        return

    spans = element.attribute_spans()
    for name in unknown:
        start, _, end = spans[name]
        add_fault(
            faults,
            "unknown-attribute",
            f"<{tag}> has no attribute {name!r}",
            start,
            end + 1,
            remark=True,
            attribute=name,
            actual=name,
            hint=nearest(name, known),
        )


def check_child(parent: str, element: Element, faults: list[DeconvError]) -> None:
    """Add a remark for an unknown element."""
    known = CHILDREN[parent]
    if element.tag in known or len(faults) >= MAX_FAULTS:
        return

    add_fault(
        faults,
        "unknown-element",
        f"<{element.tag}> in <{parent}> means nothing",
        *element.head,
        remark=True,
        actual=element.tag,
        hint=nearest(element.tag, known),
    )


def refuse(
    faults: list[DeconvError], what: str, start: int, end: int, *, hint: Advice | None = None
) -> None:
    """Add a remark that OpenVINO's reader rejects something; at most one for each layer."""
    if not any(fault.rule == OPENVINO_FORM for fault in faults):
        message = f"OpenVINO's reader refuses {what}"
        add_fault(faults, OPENVINO_FORM, message, start, end, remark=True, hint=hint)


def _check_precisions(section: Element, faults: list[DeconvError]) -> None:
    """Add a remark for an output port whose precision OpenVINO's reader rejects."""
    for port in section.named("port"):
        text = port.attributes().get("precision")
        if text is None:
            refuse(faults, "an output port without precision", port.start, port.head_end)
        elif text not in _PRECISIONS:
            _, start, end = port.attribute_spans()["precision"]
            refuse(faults, f"the precision {text!r}", start, end)


class PieceReader:
    """Reads the contents of layers; equal lists of dims become one shape."""

    def __init__(self, limits: Limits) -> None:
        self.limits = limits
        self._shapes: dict[tuple[str, ...], Shape] = {}
        self._plain_shapes: dict[str, Shape] = {}

    def read(self, body: str, line: int, has_data: bool) -> Piece:
        """Parse the contents of a layer, which begin `line` lines below its start."""
        piece = Piece()
        extras: list[Info] = []
        seen: set[str] = {"data"} if has_data else set()
        rest = self._plain_sections(piece, seen, body, line)
        for element in scan(body, rest):
            tag = element.tag
            if tag in seen and tag in ("data", "input", "output"):
                message = f"duplicate <{tag}> in a layer (the first is used)"
                add_fault(piece.faults, "duplicate-element", message, *element.head)
                continue
            seen.add(tag)
            if tag == "data":
                piece.data = tuple(element.attributes().items())
            elif tag == "input":
                piece.inputs = tuple(self._ports(element, line, piece.faults))
            elif tag == "output":
                piece.outputs = tuple(self._ports(element, line, piece.faults))
                _check_precisions(element, piece.faults)
            else:
                extras.append(info_of(element))
                check_child("layer", element, piece.faults)
        piece.extras = tuple(extras)
        return piece

    def _plain_sections(self, piece: Piece, seen: set[str], body: str, line: int) -> int:
        """Read the leading sections in OpenVINO's form; return the offset of their end."""
        end = counted = 0
        while (section := _SECTION.match(body, end)) is not None:
            tag, at, ports = section[2], section.end(), []
            if section[1] or tag in seen:
                return end
            while (head := _PORT.match(body, at)) is not None:
                number, precision, names = head.groups()
                at = body.find("</port>", head.end()) + len("</port>")
                dims = body[head.end() : at]
                if precision not in _PRECISIONS or not self._knows(dims):
                    return end
                line += body.count("\n", counted, head.start(1))
                counted = head.start(1)
                ports.append(
                    Port(
                        int(number),
                        self._plain_shapes[dims],
                        _PRECISIONS[precision],
                        tuple(names.split(",")) if names else (),
                        line,
                        (),
                    )
                )
            closing = _SECTION.match(body, at)
            if closing is None or not closing[1]:
                return end
            end = closing.end()
            seen.add(tag)
            setattr(piece, f"{tag}s", tuple(ports))
        return end

    def _knows(self, dims: str) -> bool:
        """Whether the text of a port has only valid dims; if so, their shape is stored."""
        if dims not in self._plain_shapes:
            faults: list[DeconvError] = []
            text = f"<port>{dims}"
            element = next(scan(text), None)
            if element is None or element.end < len(text):
                return False  # the end has another form, or the port contains ports
            shape = self._dims(element, element.children, faults) if element.children else None
            if faults or any(child.tag != "dim" for child in element.children):
                return False
            self._plain_shapes[dims] = shape
        return True

    def _ports(self, section: Element, line: int, faults: list[DeconvError]) -> Iterator[Port]:
        check_attributes(section.tag, section, section.attributes(), faults)
        at = 0
        for position, element in enumerate(section.children):
            if element.tag != "port":
                check_child(section.tag, element, faults)
                continue
            line += section.markup.count("\n", at, element.start)
            at = element.start
            yield self._port(element, position, line, faults)

    def _port(self, element: Element, position: int, line: int, faults: list[DeconvError]) -> Port:
        written = element.attributes()
        check_attributes("port", element, written, faults)
        if "id" in written:
            port_id = whole(written, "id", element, faults)
        else:
            port_id = position
            refuse(faults, "a port without id", element.start, element.head_end)
        dims = list(element.named("dim"))
        extras = []
        for child in element.children:
            if child.tag != "dim":
                extras.append(info_of(child))
                check_child("port", child, faults)
        names = written.get("names")
        return Port(
            position if port_id is None else port_id,
            self._dims(element, dims, faults) if dims else None,
            self._precision(element, written.get("precision"), faults),
            split_names(names) if names else (),
            line,
            tuple(extras),
        )

    def _dims(self, port: Element, dims: list[Element], faults: list[DeconvError]) -> Shape:
        texts = tuple(dim.text() for dim in dims)
        try:
            return self._shapes[texts]
        except KeyError:
            pass
        if len(texts) > self.limits.rank:
            message = f"the port has {len(texts)} dims, more than the limit of {self.limits.rank}"
            add_fault(faults, "oversize", message, *port.head)
            return None
        found = []
        for dim, text in zip(dims, texts, strict=True):
            if "?" in text:
                refuse(faults, "the dim '?'", *dim.text_span(), hint=Hint.WRITE_MINUS_ONE())
            try:
                found.append(parse_dim(text))
            except ValueError as error:
                start, end = dim.text_span()
                add_fault(faults, "dim-value", f"<dim>: {error}", start, end, actual=text[:40])
        if len(found) < len(texts):
            return None
        shape = tuple(found)
        if not any("?" in text for text in texts):
            self._shapes[texts] = shape
        return shape

    def _precision(
        self, port: Element, text: str | None, faults: list[DeconvError]
    ) -> ElementType | None:
        if text is None or text in _PRECISIONS:
            return None if text is None else _PRECISIONS[text]
        try:
            return parse_element_type(text)
        except ValueError:
            _, start, end = port.attribute_spans()["precision"]
            names = [known.ir_name for known in ELEMENT_TYPES]
            add_fault(
                faults,
                "precision",
                f"precision must be an element type, found {text[:40]!r}",
                start,
                end,
                actual=text[:40],
                hint=nearest(text, names) or Hint.KNOWN_ARE(", ".join(names)),
            )
            return None


def info_of(element: Element) -> Info:
    """Convert an uninterpreted element.

    Nesting is bounded by the scanner, so recursion is safe.
    """
    return Info(
        element.tag,
        tuple(element.attributes().items()),
        tuple(map(info_of, element.children)),
        element.text().strip(),
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
