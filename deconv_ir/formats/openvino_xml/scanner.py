"""Elements of a well-formed document, with the offsets of all their parts.

Works on `XMLText.markup`, in which every ``<`` is a tag.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from deconv_ir.errors import IRError
from deconv_ir.findings import TextSpan
from deconv_ir.formats.openvino_xml.text import XMLText, attribute_value, unescape

TAG: Final = re.compile(r"""<(/?)([^\s/>]+)([^>"']*(?:"[^"]*"[^>"']*|'[^']*'[^>"']*)*)>""")
_ATTRIBUTE: Final = re.compile(r"""([^\s=/]+)\s*=\s*(?:"([^"]*)"|'([^']*)')""")

MAX_DEPTH: Final = 256
"""Levels of elements within one that is scanned."""


class NestingError(Exception):
    """An element contains more than `MAX_DEPTH` levels of others; `depth_error` tells where."""


class Element:
    """An element; all positions are offsets into the markup that was scanned."""

    __slots__ = ("attributes_start", "children", "end", "head_end", "markup", "start", "tag")

    def __init__(self, markup: str, tag: str, start: int, attributes_start: int, end: int) -> None:
        self.markup = markup
        self.tag = tag
        self.start = start  # of the start tag, at its "<"
        self.attributes_start = attributes_start
        self.head_end = end  # after the start tag
        self.end = end  # after the end tag
        self.children: list[Element] = []

    @classmethod
    def of(cls, markup: str, match: re.Match[str]) -> Element:
        """Make an element from a start tag; the position of a separate end tag is not known yet."""
        return cls(markup, match[2], match.start(), match.start(3), match.end())

    @property
    def closed(self) -> bool:
        """Whether the element is written as a single tag."""
        return self.markup[self.head_end - 2] == "/"

    @property
    def head(self) -> TextSpan:
        """Position of the start tag."""
        return TextSpan(self.start, self.head_end)

    def attributes(self) -> dict[str, str]:
        """Return the attributes, in the order of the file."""
        return read_attributes(self.markup, self.attributes_start, self.head_end)

    def attribute_spans(self) -> dict[str, tuple[int, int, int]]:
        """Return the offset of each attribute's name, and the start and end of its value."""
        return {
            m[1]: (m.start(), *(m.span(2) if m[2] is not None else m.span(3)))
            for m in _ATTRIBUTE.finditer(self.markup, self.attributes_start, self.head_end)
        }

    def text(self) -> str:
        """Return the text before the first child."""
        start, markup = self.head_end, self.markup
        return "" if self.end == start else unescape(markup[start : markup.index("<", start)])

    def text_span(self) -> tuple[int, int]:
        """Return the span of the text before the first child."""
        if self.end == self.head_end:
            return self.head_end, self.head_end
        return self.head_end, self.markup.index("<", self.head_end)

    def named(self, tag: str) -> Iterator[Element]:
        """Iterate over the children of one name."""
        return (child for child in self.children if child.tag == tag)

    def first(self, tag: str) -> Element | None:
        """Return the first child of a name."""
        return next(self.named(tag), None)


def read_attributes(markup: str, start: int, end: int) -> dict[str, str]:
    """Return the attributes between two offsets of a start tag."""
    return {
        name: attribute_value(double or single)
        for name, double, single in _ATTRIBUTE.findall(markup, start, end)
    }


def scan(markup: str, start: int = 0) -> Iterator[Element]:
    """Iterate over the elements from an offset on, with all they contain.

    The iteration ends with the markup, or with the element that contains `start`.  `NestingError`
    is raised where recursion over the elements would not be safe.
    """
    stack: list[Element] = []
    for match in TAG.finditer(markup, start):
        end = match.end()
        if match[1]:
            if not stack:
                return
            element = stack.pop()
            element.end = end
        else:
            element = Element(markup, match[2], match.start(), match.start(3), end)
            if markup[end - 2] != "/":
                if len(stack) == MAX_DEPTH:
                    raise NestingError
                stack.append(element)
                continue
        if stack:
            stack[-1].children.append(element)
        else:
            yield element


def depth_error(text: XMLText) -> IRError:
    """Return the error of a document whose elements are nested too deep."""
    depth = 0
    for match in TAG.finditer(text.markup):
        depth += -1 if match[1] else text.markup[match.end() - 2] != "/"
        if depth > MAX_DEPTH:
            break
    line, column = text.position(match.start())
    message = f"elements are nested more than {MAX_DEPTH} deep"
    return IRError(message, file=text.file, line=line, column=column, rule="xml")
