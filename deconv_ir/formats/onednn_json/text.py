"""JSON text with positions: every value knows its location.

The standard library's parser keeps no positions, accepts NaN, and lets the last
of several equal keys win.
"""

from __future__ import annotations

import functools
import math
import re
from bisect import bisect_right
from typing import Any, Final, NoReturn

from deconv_ir.errors import IRError
from deconv_ir.findings import TextSpan
from deconv_ir.limits import Limits

MAX_DEPTH: Final = 32
"""Maximum nesting depth; a graph file has seven levels."""
_MAX_DIGITS: Final = 19

_SPACE: Final = re.compile(r"[ \t\n\r]*")
_STRING: Final = re.compile(r'"((?:[^"\\\x00-\x1f]|\\(?:["\\/bfnrt]|u[0-9A-Fa-f]{4}))*)"')
_NUMBER: Final = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?")
_NUMBER_END: Final = re.compile(r"[ \t\n\r,\]}]|\Z")
_INTEGERS: Final = re.compile(
    r"\[[ \t\n\r]*(?:-?(?:0|[1-9][0-9]{0,18})[ \t\n\r]*,[ \t\n\r]*)*"
    r"-?(?:0|[1-9][0-9]{0,18})[ \t\n\r]*\]"
)
_INTEGER: Final = re.compile(r"-?[0-9]+")
_WORD: Final = re.compile(r"[-+]?[A-Za-z_]\w*")
_WORDS: Final = {"true": True, "false": False, "null": None}
_ESCAPE: Final = re.compile(r'\\(?:(["\\/bfnrt])|u([0-9A-Fa-f]{4}))')
_ESCAPED: Final = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}


class Node:
    """A JSON value and its location.

    Attributes
    ----------
    value : dict, list, tuple, str, int, float, bool or None
        Members and elements are nodes; an array of integers is a tuple of them.
    start, end : int
        TextSpan of the value in the text.
    """

    __slots__ = ("end", "start", "value")

    def __init__(self, value: Any, start: int, end: int) -> None:
        self.value = value
        self.start = start
        self.end = end

    @property
    def span(self) -> TextSpan:
        """The location of the value."""
        return TextSpan(self.start, self.end)

    def get(self, name: str) -> Node | None:
        """Return a member of an object; None if it is missing."""
        found: Node | None = self.value.get(name) if isinstance(self.value, dict) else None
        return found


class JSONText:
    """The text of a JSON file.

    Parameters
    ----------
    data : bytes
    file : str, optional
        Name of the file in messages.

    Raises
    ------
    IRError
        The bytes are not UTF-8.
    """

    comments: tuple[TextSpan, ...] = ()

    def __init__(self, data: bytes, file: str | None = None) -> None:
        self.data = data
        self.file = file
        try:
            self.text = data.decode("utf-8-sig")
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            raise IRError(
                f"not UTF-8: byte 0x{data[error.start]:02x} at offset {error.start}",
                file=file,
                line=line,
                rule="json",
            ) from None

    @functools.cached_property
    def _starts(self) -> list[int]:
        return [0, *(match.end() for match in re.finditer("\n", self.text))]

    def position(self, offset: int) -> tuple[int, int]:
        """Return the line and the column of an offset, both from 1."""
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    def line_text(self, line: int) -> str:
        """Return a line without its end."""
        start = self._starts[line - 1]
        end = self._starts[line] - 1 if line < len(self._starts) else len(self.text)
        return self.text[start:end].rstrip("\r")

    def integer_span(self, node: Node, index: int) -> TextSpan:
        """Return the location of an element of an array of integers."""
        for i, match in enumerate(_INTEGER.finditer(self.text, node.start, node.end)):
            if i == index:
                return TextSpan(*match.span())
        return node.span


def parse(file_text: JSONText, limits: Limits) -> Node:
    """Parse JSON.

    Raises
    ------
    IRError
        The text is not JSON, an object has a duplicate key, a number is not finite or too large, or
        a limit is exceeded.
    """
    parser = _Parser(file_text, limits)
    node = parser.value(parser.skip(0), 0)
    at = parser.skip(node.end)
    if at < len(file_text.text):
        parser.fail("the file goes on after the end of the JSON value", at)
    return node


class _Parser:
    def __init__(self, file_text: JSONText, limits: Limits) -> None:
        self.file_text = file_text
        self.text = file_text.text
        self.left = limits.tags
        self.limits = limits

    def fail(self, message: str, at: int, rule: str = "json", **facts: Any) -> NoReturn:
        line, column = self.file_text.position(at)
        raise IRError(
            message, file=self.file_text.file, line=line, column=column, rule=rule, **facts
        )

    def expected(self, what: str, at: int) -> NoReturn:
        """Report unexpected text at a position, and the expected one."""
        found = "the end of the file" if at >= len(self.text) else repr(self.text[at])
        self.fail(f"not JSON: expected {what}, found {found}", at)

    def skip(self, at: int) -> int:
        match = _SPACE.match(self.text, at)
        assert match is not None, "matches nothing too"
        return match.end()

    def value(self, at: int, depth: int) -> Node:
        self.left -= 1
        if self.left < 0:
            most = self.limits.tags
            self.fail(f"the file has more values than the limit of {most}", at, "oversize")
        if depth > MAX_DEPTH:
            self.fail(f"values are nested deeper than {MAX_DEPTH} levels", at, "oversize")
        char = self.text[at : at + 1]
        if char == "{":
            return self.object(at, depth)
        if char == "[":
            return self.array(at, depth)
        if char == '"':
            text, end = self.string(at)
            return Node(text, at, end)
        if char and (char in "-0123456789"):
            found = self.number(at)
            if found is not None:
                return found
        return self.word(at)

    def word(self, at: int) -> Node:
        match = _WORD.match(self.text, at)
        if match is None:
            self.expected("a value", at)
        if match[0] not in _WORDS:
            found = match[0][:40]
            self.fail(f"not JSON: expected a value, found {found!r}", at, actual=found)
        return Node(_WORDS[match[0]], at, match.end())

    def number(self, at: int) -> Node | None:
        match = _NUMBER.match(self.text, at)
        if match is None:
            return None
        digits = match[0]
        if not _NUMBER_END.match(self.text, match.end()):
            self.fail(f"not JSON: invalid number {self.text[at : at + 40]!r}", at)
        if match[1] is None and match[2] is None:
            if len(digits.lstrip("-")) > _MAX_DIGITS or not -(2**63) <= int(digits) < 2**64:
                self.fail("a number does not fit 64 bits", at, "number", actual=digits[:40])
            return Node(int(digits), at, match.end())
        value = float(digits)
        if not math.isfinite(value):
            self.fail("a number is too large", at, "number", actual=digits[:40])
        return Node(value, at, match.end())

    def string(self, at: int) -> tuple[str, int]:
        match = _STRING.match(self.text, at)
        if match is None:
            self.fail("not JSON: invalid string", at)
        text = match[1]
        if "\\" in text:
            text = _ESCAPE.sub(_unescape, text)
            # A surrogate pair is one character; an unpaired surrogate is replaced.
            text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
        return text, match.end()

    def array(self, at: int, depth: int) -> Node:
        match = _INTEGERS.match(self.text, at)
        if match is not None:
            numbers = tuple(map(int, _INTEGER.findall(self.text, at, match.end())))
            self.left -= len(numbers)
            return Node(numbers, at, match.end())
        elements: list[Node] = []
        end = self.skip(at + 1)
        if self.text[end : end + 1] == "]":
            return Node(elements, at, end + 1)
        while True:
            element = self.value(end, depth + 1)
            elements.append(element)
            end = self.skip(element.end)
            mark = self.text[end : end + 1]
            if mark == "]":
                return Node(elements, at, end + 1)
            if mark != ",":
                self.expected("',' or ']' in an array", end)
            end = self.skip(end + 1)

    def object(self, at: int, depth: int) -> Node:
        members: dict[str, Node] = {}
        end = self.skip(at + 1)
        if self.text[end : end + 1] == "}":
            return Node(members, at, end + 1)
        while True:
            if self.text[end : end + 1] != '"':
                self.expected("a key in double quotes", end)
            key, after = self.string(end)
            if key in members:
                self.fail(f"duplicate key {key[:40]!r} in an object", end, actual=key[:40])
            after = self.skip(after)
            if self.text[after : after + 1] != ":":
                self.expected("':' after a key", after)
            members[key] = node = self.value(self.skip(after + 1), depth + 1)
            end = self.skip(node.end)
            mark = self.text[end : end + 1]
            if mark == "}":
                return Node(members, at, end + 1)
            if mark != ",":
                self.expected("',' or '}' in an object", end)
            end = self.skip(end + 1)


def _unescape(match: re.Match[str]) -> str:
    if match[2] is not None:
        return chr(int(match[2], 16))
    return _ESCAPED.get(match[1], match[1])
