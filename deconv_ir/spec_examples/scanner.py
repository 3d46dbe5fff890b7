"""Search for the XML layer examples of a document, even damaged ones.

Examples in documents are seldom well-formed: attributes are elided with
``...``, closing tags are missing, port ids repeat, and extraction has put
blank lines anywhere.  Therefore this is not an XML parser: it reads the tags that an example may
have, from one ``<layer`` on, and stores the needed parts with their positions in the document.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import NamedTuple

from deconv_ir.spec_examples.text import DerivedText, Document
from deconv_ir.suggestions import one_edit_apart

MAX_DIMS = 64
"""Maximum number of dims of one port that are read."""

# <layer, or a word one edit away with a type.
_VARIANTS = "|".join(
    f"{'layer'[:i]}{middle}{'layer'[j:]}"
    for i in range(6)
    for middle, j in (("", i + 1), (r"\w", i + 1), (r"\w", i), ("layer"[i : i + 2][::-1], i + 2))
    if j <= 5
)
_LAYER = re.compile(
    rf"<\s?(?:layer(?=[\s>/.…])|(?!layers?\b)(?:{_VARIANTS})(?=\s[^<>]{{0,400}}\btype\s?=))"
)
_TAGS = ("layer", "data", "input", "output", "port", "dim")
_ENDS = ("layer", "layers", "net", "pre", "code")
"""Tags that end an example; their opening tags do, too."""
# A quotation mark may have been replaced by a curly one.
_BODY = re.compile(r"""[^<>"'“”]*(?:(?:"[^"<]*"|'[^'<]*'|[“”][^“”"<]*[“”"])[^<>"'“”]*)*(?=>)""")
_LOOSE_BODY = re.compile(r"[^<>]*")
_TAG = re.compile(rf"<\s?(/?)\s?([A-Za-z_][A-Za-z_0-9]*|(?:{_VARIANTS})\b)")
_ATTRIBUTE = re.compile(
    r"""(?<![\w.:-])([A-Za-z_][\w.:-]*+)\s*+=\s*+"""
    r"""(?:"([^"]*)"|'([^']*)'|[“”]([^“”"]*)[“”"]|([^\s"'<>/,“”]+))"""
)
_SPACE = re.compile(r"[\t\r\n]")
_BODY_LENGTH = 16_384
# Dashes of a comment may have been replaced by one longer dash.
_COMMENT_OPEN = re.compile(r"<!(?:--|\u2013|\u2014)")
_COMMENT_CLOSE = re.compile(r"(?:--|\u2013|\u2014)>")
_COMMENT_LENGTH = 20_000
_ELISION = re.compile(r"\.\.\.|…")
_FENCE = re.compile(r"^[ \t>]*(?:```|~~~)", re.MULTILINE)
_HIDDEN = re.compile(r"^[ \t]*<!--", re.MULTILINE)
_VERSIONED = re.compile(
    r"Versioned name(?:[\s*:_`]|<[^<>]{0,80}>|&nbsp;){0,24}([A-Za-z]\w{0,63})-([0-9]{1,3})\b"
)


class DimText(NamedTuple):
    """One ``<dim>``."""

    text: str
    start: int  # span of `text` in the document
    end: int
    line: int
    # From the end of the preceding element to the end of this one: the text to be repeated or
    # removed to add or remove a dim.
    unit_start: int
    unit_end: int
    closed: bool  # whether it has an end tag


class PortText:
    """One ``<port>``."""

    __slots__ = ("attributes", "comments", "dims", "elided", "line")

    def __init__(self, attributes: dict[str, str], line: int, comments: list[str]) -> None:
        self.attributes = attributes
        self.line = line
        self.comments = comments
        self.dims: list[DimText] = []
        self.elided = False  # whether dims are left out


class Typo(NamedTuple):
    """A tag whose name is one edit away from a known one."""

    found: str
    meant: str
    start: int  # span of the name in the document
    end: int
    line: int


class Example:
    """One layer example of a document."""

    def __init__(self, attributes: dict[str, str], line: int, start: int) -> None:
        self.attributes = attributes  # of `<layer>`
        self.line = line
        self.start = start  # start in the document
        self.cell = ""  # cell and line of a notebook, the prefix of messages
        self.data: dict[str, str] = {}  # attributes of `<data>`
        self.data_line: int | None = None  # line of `<data>`; None without one
        self.data_elided = False
        self.elided = False  # whether attributes of `<layer>` are left out
        self.ports_elided = False
        self.inputs: list[PortText] = []
        self.outputs: list[PortText] = []
        self.comments: list[str] = []  # comments that do not belong to a port
        self.typos: list[Typo] = []
        # Version of the operation, from the document's 'Versioned name'.
        self.versioned: str | None = None

    @property
    def type(self) -> str:
        """Type of the layer; empty if it is left out."""
        return self.attributes.get("type", "")

    @property
    def label(self) -> str:
        """The name of the example in messages."""
        name, id_ = self.attributes.get("name"), self.attributes.get("id")
        parts = [self.type or "type left out"] + ([f"id {id_}"] if id_ else [])
        label = f"{name!r} ({', '.join(parts)})" if name else ", ".join(parts)
        return self.cell + label


def scan(document: Document) -> list[Example]:
    """Find the layer examples of a document, in its order."""
    found = [e for derived in document.texts() for e in _Scanner(document, derived).examples()]
    found.sort(key=lambda example: example.start)
    names = _VERSIONED.finditer(document.text)
    name = next(names, None)
    versions: dict[str, str] = {}
    for example in found:
        while name is not None and name.start() < example.start:
            versions[name.group(1)] = name.group(2)
            name = next(names, None)
        example.versioned = versions.get(example.type)
    return found


class _Scanner:
    """One pass over one text of a document."""

    def __init__(self, document: Document, derived: DerivedText) -> None:
        self.document = document
        self.derived = derived
        self.text = derived.text
        self._closed: re.Match[str] | None = None
        self._all_open = False

    def examples(self) -> Iterator[Example]:
        """Yield the examples: layers with a type, or with ports."""
        at = 0
        hidden = self._hidden()
        span = next(hidden, None)
        while found := _LAYER.search(self.text, at):
            while span is not None and span[1] <= found.start():
                span = next(hidden, None)
            if span is not None and span[0] < found.start():
                at = span[1]
                continue
            example, at = self._example(found.start())
            if (
                example.inputs
                or example.outputs
                or ("type" in example.attributes and not example.typos)
            ):
                yield example

    def _hidden(self) -> Iterator[tuple[int, int]]:
        """Find the comments at the beginning of a line, which are invisible to readers."""
        at = 0
        close = 0
        while found := _HIDDEN.search(self.text, at):
            at = found.end()
            if close < at:
                close = self.text.find("-->", at)
            if close < 0:
                return
            # A comment in which another one opens has lost its end.
            if self.text.find("<!--", at, close) < 0:
                at = close + 3
                yield found.start(), at

    def _line(self, position: int) -> int:
        return self.document.line(self.derived.start(position))

    def _tag(self, position: int) -> tuple[str, bool, str, int] | None:
        """Read the tag at a ``<``: its name, whether it closes, its body, and its end."""
        head = _TAG.match(self.text, position)
        if head is None:
            return None
        body = _BODY.match(self.text, head.end()) or _LOOSE_BODY.match(self.text, head.end())
        assert body is not None, "the loose form matches anything"
        end = body.end()
        if end < len(self.text) and self.text[end] == ">":
            end += 1
        return head.group(2), head.group(1) == "/", body.group(), end

    def _example(self, start: int) -> tuple[Example, int]:
        """Read one example; also return where to continue."""
        tag = self._tag(start)
        assert tag is not None, "the caller has seen a <layer"
        name, _, body, at = tag
        attributes, elided = _attributes(body)
        example = Example(attributes, self._line(start), self.derived.start(start))
        example.elided = elided
        self._meant(name, start, example)
        if body.rstrip().endswith("/"):
            return example, at
        walk = _Cursor(example)
        while True:
            bracket = self.text.find("<", at)
            between = self.text[at : bracket if bracket >= 0 else len(self.text)]
            if bracket < 0 or _FENCE.search(between):
                return example, len(self.text) if bracket < 0 else bracket
            walk.plain(between)
            if comment := self._comment(bracket):
                walk.comment(comment[0])
                at = comment[1]
                continue
            tag = self._tag(bracket)
            if tag is None:
                at = bracket + 1
                continue
            name, closing, body, at = tag
            name = self._meant(name, bracket, example)
            if name in _ENDS:
                # A layer that was never closed ends where the next begins.
                return example, at if closing else bracket
            if name == "dim" and not closing:
                at = self._dim(walk, body, at)
            else:
                walk.tag(name, closing, body, self._line(bracket), self.derived.end(at))

    def _meant(self, name: str, position: int, example: Example) -> str:
        """Return the tag of a name; record a misspelt one."""
        if name in _TAGS or name in _ENDS:
            return name
        meant = next((tag for tag in _TAGS if one_edit_apart(name, tag)), None)
        if meant is None:
            return name
        at = self.text.index(name, position)
        start, end = self.derived.start(at), self.derived.end(at + len(name))
        example.typos.append(Typo(name, meant, start, end, self._line(position)))
        return meant

    def _comment(self, position: int) -> tuple[str, int] | None:
        opened = _COMMENT_OPEN.match(self.text, position)
        if opened is None:
            return None
        # The next end is searched for once: repeated searches would be quadratic.
        if not self._all_open and (self._closed is None or self._closed.start() < opened.end()):
            self._closed = _COMMENT_CLOSE.search(self.text, opened.end())
            self._all_open = self._closed is None
        if self._closed is None or self._closed.start() - opened.end() > _COMMENT_LENGTH:
            return None
        return self.text[opened.end() : self._closed.start()], self._closed.end()

    def _dim(self, walk: _Cursor, body: str, at: int) -> int:
        """Read a dim whose start tag ends at `at`."""
        if walk.port is None:
            return at
        stop = self.text.find("<", at)
        stop = len(self.text) if stop < 0 else stop
        inner = self.text[at:stop]
        text = inner.strip()
        first = at + len(inner) - len(inner.lstrip())
        end = first + len(text)
        tag = self._tag(stop) if stop < len(self.text) else None
        closed = tag is not None and tag[0] == "dim" and tag[1]
        if tag is not None and closed:
            end = tag[3]
        if body.rstrip().endswith("/") or self.text[at - 1] != ">":
            text, end = "", at
        unit_end = self.derived.end(end)
        if not text or (_ELISION.search(text) and not re.search(r"\d", text)):
            walk.port.elided = True
        elif len(walk.port.dims) < MAX_DIMS:
            walk.port.dims.append(
                DimText(
                    html.unescape(text),
                    self.derived.start(first),
                    self.derived.end(first + len(text)),
                    self._line(first),
                    walk.unit_start,
                    unit_end,
                    closed,
                )
            )
        else:
            walk.port.elided = True
        walk.unit_start = unit_end
        return end


class _Cursor:
    """The position of the scanner in an example."""

    def __init__(self, example: Example) -> None:
        self.example = example
        self.section: list[PortText] | None = None
        self.port: PortText | None = None
        self.last: PortText | None = None
        self.waiting: list[str] = []
        self.unit_start = 0
        self.same_line = False

    def plain(self, text: str) -> None:
        """Record line ends and elisions in the text between tags."""
        if "\n" in text:
            self.same_line = False
        if _ELISION.search(text):
            example = self.example
            if self.port is not None:
                self.port.elided = True
            elif self.section is None and example.data_line is None and not example.inputs:
                example.data_elided = True
            elif self.section is not None or not example.outputs:
                example.ports_elided = True

    def comment(self, text: str) -> None:
        """Assign a comment to the port that it is in, next to or before."""
        if self.port is not None:
            self.port.comments.append(text)
        elif self.last is not None and self.same_line:
            self.last.comments.append(text)
        elif self.section is not None:
            self.waiting.append(text)
        else:
            self.example.comments.append(text)
        if "\n" in text:
            self.same_line = False

    def tag(self, name: str, closing: bool, body: str, line: int, end: int) -> None:
        """Process a tag."""
        example = self.example
        if name == "data" and not closing:
            if example.data_line is None:
                example.data, example.data_elided = _attributes(body)
                example.data_line = line
        elif name in ("input", "output"):
            self._leave()
            self.section = None
            if not closing and not body.rstrip().endswith("/"):
                self.section = example.inputs if name == "input" else example.outputs
        elif name == "port":
            self._port(closing, body, line, end)

    def _port(self, closing: bool, body: str, line: int, end: int) -> None:
        self.same_line = True
        if closing:
            self.port = None
            return
        if self.section is None:
            return
        attributes, _ = _attributes(body)
        port = PortText(attributes, line, self.waiting)
        self.waiting = []
        self.section.append(port)
        self.last = port
        self.port = None if body.rstrip().endswith("/") else port
        self.unit_start = end

    def _leave(self) -> None:
        self.example.comments += self.waiting
        self.waiting = []
        self.port = self.last = None


def _attributes(body: str) -> tuple[dict[str, str], bool]:
    """Read the attributes of a tag's body; also return whether some are left out."""
    found: dict[str, str] = {}
    rest = []
    at = 0
    if len(body) > _BODY_LENGTH:
        return found, True
    for match in _ATTRIBUTE.finditer(body):
        rest.append(body[at : match.start()])
        at = match.end()
        value = next(v for v in match.groups()[1:] if v is not None)
        # XML replaces each line end in a value by a space.
        found.setdefault(match.group(1), _SPACE.sub(" ", html.unescape(value)))
    rest.append(body[at:])
    return found, any(_ELISION.search(part) for part in rest)
