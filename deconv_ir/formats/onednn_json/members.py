"""Members of a oneDNN Graph file: attributes, tensors, and problems with locations."""

from __future__ import annotations

from typing import Any, Final

from deconv_ir.errors import IRError
from deconv_ir.formats.onednn_json.kinds import DTYPES, SPELLINGS
from deconv_ir.formats.onednn_json.parsed import LogicalTensor, ParsedJSON
from deconv_ir.formats.onednn_json.text import JSONText, Node
from deconv_ir.hints import Hint
from deconv_ir.ir.dtypes import ElementType, parse_element_type
from deconv_ir.ir.geometry import UNKNOWN
from deconv_ir.ir.graph import Info, Port
from deconv_ir.ir.shapes import Shape
from deconv_ir.limits import Limits
from deconv_ir.suggestions import nearest

_TYPES: Final = ("bool", "s64", "s64[]", "f32", "f32[]", "string")
_UNKNOWN: Final = -(2**63)
_UNKNOWN_DIMS: Final = (-1, _UNKNOWN)


class UnusableError(Exception):
    """The part of the file that is being read cannot be used."""


class Members:
    """Reads members, and collects problems with the operation that they are in."""

    def __init__(self, parsed: ParsedJSON, file_text: JSONText, limits: Limits) -> None:
        self.parsed = parsed
        self.file_text = file_text
        self.limits = limits
        self.label: str | None = None

    def error(self, rule: str, message: str, node: Node, **facts: Any) -> None:
        """Collect a problem; after too many, the rest is not read."""
        line, column = self.file_text.position(node.start)
        found = self.parsed.errors
        if len(found) >= self.limits.problems:
            raise IRError(
                f"more than {self.limits.problems} problems; the rest was not read",
                file=self.parsed.file,
                line=line,
                rule="oversize",
            )
        found.append(
            IRError(
                message,
                file=self.parsed.file,
                line=line,
                column=column,
                layer=self.label,
                rule=rule,
                **facts,
            )
        )

    def fail(self, rule: str, message: str, node: Node, **facts: Any) -> UnusableError:
        """Collect a problem, and return the exception that ends the reading of this part."""
        self.error(rule, message, node, **facts)
        return UnusableError()

    def shown(self, node: Node) -> str:
        """Return the beginning of the text in the file, on one line."""
        if isinstance(node.value, int) and not isinstance(node.value, bool):
            return str(node.value)  # an element of a list is located at the list
        text = " ".join(self.file_text.text[node.start : min(node.end, node.start + 80)].split())
        return text if len(text) <= 40 and node.end - node.start <= 80 else f"{text[:37]}..."

    def member(self, node: Node, name: str, kind: type | tuple[type, ...], what: str) -> Any:
        """Return the value of a required member."""
        found = node.get(name)
        if found is None:
            raise self.fail("missing-attribute", f"{name!r} is missing", node)
        if not isinstance(found.value, kind) or isinstance(found.value, bool):
            rule = "number" if kind is int else "json"
            raise self.fail(rule, f"{name!r} must be {what}, found {self.shown(found)}", found)
        return found.value

    def attributes(self, node: Node) -> dict[str, str]:
        """Return the attributes as text, as an IR would write them."""
        section = node.get("attrs")
        if section is None or section.value is None:
            return {}
        if not isinstance(section.value, dict):
            self.error("json", "'attrs' must be an object", section)
            return {}
        found = {}
        for name, member in section.value.items():
            kind, value = member.get("type"), member.get("value")
            if kind is None or value is None:
                self.error(
                    "missing-attribute", f"attribute {name!r} must have 'type' and 'value'", member
                )
                continue
            if kind.value not in _TYPES:
                self.error(
                    "attribute-value",
                    f"the type of attribute {name!r} must be one of {', '.join(_TYPES)}, "
                    f"found {self.shown(kind)}",
                    kind,
                    attribute=name,
                )
                continue
            text = _as_text(kind.value, value)
            if text is None:
                self.error(
                    "attribute-value",
                    f"attribute {name!r} must be a value of type {kind.value}, "
                    f"found {self.shown(value)}",
                    value,
                    attribute=name,
                )
                continue
            found[name] = text
        names = [name for name in found if name in SPELLINGS]
        if len({found[name] for name in names}) > 1:
            first, last = names
            self.error(
                "attribute-value",
                f"{first!r} and {last!r} are names of one attribute, and must be equal: "
                f"found {found[first][:40]!r} and {found[last][:40]!r}",
                section.value[last].get("value"),
                attribute=last,
            )
        return found

    def tensors(self, node: Node, name: str) -> list[LogicalTensor]:
        """Read the tensors of one side."""
        section = node.get(name)
        if section is None:
            return []
        if not isinstance(section.value, list):
            self.error(
                "json", f"{name!r} must be a list of tensors, found {self.shown(section)}", section
            )
            return []
        return [self.tensor(element) for element in elements(section)]

    def tensor(self, node: Node) -> LogicalTensor:
        """Read a tensor."""
        if not isinstance(node.value, dict):
            raise self.fail("json", f"a tensor must be an object, found {self.shown(node)}", node)
        number = self.member(node, "id", int, "a whole number")
        dtype = self.text(node, "dtype", "undef")
        return LogicalTensor(
            number,
            dtype,
            self.element_type(node, dtype),
            self.shape(node),
            self.strides(node),
            self.text(node, "layout_type", "undef"),
            self.text(node, "property_type", "undef"),
            node,
        )

    def text(self, node: Node, name: str, default: str) -> str:
        """Return a member that is text."""
        found = node.get(name)
        if found is None:
            return default
        if not isinstance(found.value, str):
            self.error("json", f"{name!r} must be text, found {self.shown(found)}", found)
            return default
        return found.value

    def element_type(self, node: Node, dtype: str) -> ElementType | None:
        """Return the element type of a tensor."""
        if dtype == "undef":
            return None
        if dtype not in DTYPES:
            self.error(
                "precision",
                f"dtype must be an element type, found {dtype[:40]!r}",
                node.get("dtype") or node,
                actual=dtype[:40],
                hint=nearest(dtype, list(DTYPES)) or Hint.KNOWN_ARE(", ".join(DTYPES)),
            )
            return None
        return parse_element_type(DTYPES[dtype])

    def integers(self, node: Node, name: str) -> tuple[int, ...] | None:
        """Return a member that is a list of whole numbers."""
        found = node.get(name)
        if found is None:
            return None
        if not isinstance(found.value, tuple) and found.value != []:
            self.error(
                "number",
                f"{name!r} must be a list of whole numbers, found {self.shown(found)}",
                found,
            )
            return None
        if len(found.value) > self.limits.rank:
            self.error(
                "oversize",
                f"the tensor has {len(found.value)} dims, more than the limit of "
                f"{self.limits.rank}",
                found,
            )
            return None
        return tuple(found.value)

    def shape(self, node: Node) -> Shape:
        """Return the dims of a tensor; -1 and the least integer stand for unknown.

        The library also writes a single least integer for an unknown rank.
        """
        dims = self.integers(node, "shape")
        if dims is None or dims == (_UNKNOWN,):
            return None
        for dim in dims:
            if dim < 0 and dim not in _UNKNOWN_DIMS:
                self.error(
                    "dim-value",
                    f"a dim must not be negative, found {dim}",
                    node.get("shape") or node,
                    actual=dim,
                )
                return None
        return tuple(UNKNOWN if d < 0 else d for d in dims)

    def strides(self, node: Node) -> tuple[int, ...] | None:
        """Return the strides of a tensor; None if they are not known."""
        found = self.integers(node, "stride")
        return None if found is None or any(s in _UNKNOWN_DIMS for s in found) else found

    def port(self, tensor: LogicalTensor, index: int, line: int, *, output: bool) -> Port:
        """Make a port of a tensor; for outputs, a scalar and an unknown rank are the same."""
        at, _ = self.file_text.position(tensor.node.start)
        shape = tensor.shape if tensor.shape or not output else None
        names = (str(tensor.id),) if output else ()
        return Port(index, shape, tensor.element_type, names, at - line, (layout_info(tensor),))


def layout_info(tensor: LogicalTensor) -> Info:
    """Return the layout of a tensor, as ports keep it."""
    strides = "" if tensor.strides is None else ",".join(map(str, tensor.strides))
    return Info(
        "layout",
        (
            ("stride", strides),
            ("layout_type", tensor.layout_type),
            ("property_type", tensor.property_type),
        ),
    )


def elements(node: Node) -> list[Node]:
    """Return the elements of a list; integers are located at the list."""
    if isinstance(node.value, tuple):
        return [Node(value, node.start, node.end) for value in node.value]
    found: list[Node] = node.value
    return found


def _as_text(kind: str, node: Node) -> str | None:
    """Write the value of an attribute as an IR does; None if it is not of its type."""
    value = node.value
    if kind == "string":
        return value if isinstance(value, str) else None
    if kind == "bool":
        return {0: "false", 1: "true"}.get(value) if isinstance(value, int) else None
    if kind in ("s64", "f32"):
        return _number(kind, value)
    if kind in ("s64[]", "f32[]"):
        values = list(value) if isinstance(value, tuple) else None
        if values is None and isinstance(value, list):
            values = [element.value for element in value]
        if values is None:
            return None
        texts = [_number(kind[:3], v) for v in values]
        return None if None in texts else ",".join(t for t in texts if t is not None)
    return None


def _number(kind: str, value: object) -> str | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    if kind == "s64":
        return str(value) if isinstance(value, int) else None
    return repr(float(value))
