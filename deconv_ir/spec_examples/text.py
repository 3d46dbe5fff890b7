"""Documents as bytes, as text and as rendered text, with positions mapped back.

A document is decoded without loss: encoding the text reproduces any bytes.  Its XML is either
plain, or, in HTML, has entities for the angle brackets and markup for colours in between;
`DerivedText` is the text without these, and stores the origin of each character.
"""

from __future__ import annotations

import bisect
import codecs
import html
import re
from array import array
from collections.abc import Iterator
from typing import NamedTuple

from deconv_ir.errors import DeconvError

_MARKUP = re.compile(
    r"<!--|</?[A-Za-z][^<>]*>|&(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});"
)
_ESCAPED = re.compile(
    r"&(?:lt|LT|#0*60|#[xX]0*3[cC]);"  # of a tag
    r"|&(?:quot|QUOT|#0*34|#[xX]0*22);graph\b|>graph\b|\bgraph\"?<"  # of a oneDNN Graph file
)
_LINE_END = re.compile(r"\r\n|\r|\n")

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


class DerivedText(NamedTuple):
    """A text derived from a document, with the position of each character in the document."""

    text: str
    here: array[int]  # start of each run, in this text and in the document
    there: array[int]
    # The length in the document of a run that is one entity; 0 for plain characters.
    entity: array[int]

    def start(self, position: int) -> int:
        """Return the start in the document of the character at `position`."""
        run = bisect.bisect_right(self.here, position) - 1
        if run < 0:
            return position
        offset = position - self.here[run]
        return self.there[run] + (0 if self.entity[run] else offset)

    def end(self, position: int) -> int:
        """Return the end in the document of the character before `position`."""
        if position == 0:
            return self.start(0)
        run = bisect.bisect_right(self.here, position - 1) - 1
        if run < 0:
            return position
        length = self.entity[run]
        return self.there[run] + (length or position - self.here[run])


class DerivedTextBuilder:
    """Builds a `DerivedText` run by run."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._length = 0
        self._runs = array("q"), array("q"), array("q")

    def add(self, part: str, origin: int, size: int = 0) -> None:
        """Add a run that begins at `origin` in the document; `size` is the length of an entity."""
        if part:
            for run, value in zip(self._runs, (self._length, origin, size), strict=True):
                run.append(value)
            self._parts.append(part)
            self._length += len(part)

    def text(self) -> DerivedText:
        """Return the text of all runs."""
        return DerivedText("".join(self._parts), *self._runs)


class Document:
    """A document: its bytes, its text, its lines.

    The bytes are UTF-8, UTF-16 with a byte-order mark, or any encoding that extends ASCII; messages
    use `name` for the document.
    """

    def __init__(self, data: bytes, name: str = "<document>") -> None:
        self.name = name
        self._mark, self._codec = next(
            ((mark, codec) for mark, codec in _MARKS if data.startswith(mark)), (b"", "utf-8")
        )
        body = data[len(self._mark) :]
        if self._codec == "utf-8" and b"\0" in body:
            raise DeconvError("not a text file: it has NUL bytes", file=name, rule="not-text")
        try:
            self.text = body.decode(self._codec, self._errors)
        except UnicodeDecodeError as error:
            raise DeconvError(
                f"not a text file: {error.reason} at byte {error.start}", file=name, rule="not-text"
            ) from error
        self._lines = [0, *(m.end() for m in _LINE_END.finditer(self.text))]

    @property
    def _errors(self) -> str:
        # Bytes that are not UTF-8 (such as Latin-1) are decoded to lone surrogates, which encode to
        # the same bytes.
        return "surrogateescape" if self._codec == "utf-8" else "surrogatepass"

    def encode(self, text: str) -> bytes:
        """Return the bytes of a text in this document's encoding, with its mark."""
        return self._mark + text.encode(self._codec, self._errors)

    def line(self, position: int) -> int:
        """Return the line, from 1, of the character at `position`."""
        return bisect.bisect_right(self._lines, position)

    def column(self, position: int) -> int:
        """Return the column, from 1, of the character at `position`."""
        return position - self._lines[self.line(position) - 1] + 1

    def line_text(self, line: int) -> str:
        """Return the text of a line, without its end."""
        stop = self._lines[line] if line < len(self._lines) else len(self.text)
        return self.text[self._lines[line - 1] : stop].rstrip("\r\n")

    def texts(self) -> Iterator[DerivedText]:
        """Yield the text and, if it has escaped tags, the unescaped text."""
        none = array("q")
        yield DerivedText(self.text, none, none, none)
        if _ESCAPED.search(self.text):
            yield _unescape(self.text)


def _unescape(text: str) -> DerivedText:
    """Remove markup, and replace entities by characters."""
    builder = DerivedTextBuilder()
    at = 0
    comments = True
    while found := _MARKUP.search(text, at):
        builder.add(text[at : found.start()], at)
        at = found.end()
        piece = found.group()
        if piece[0] == "&":
            builder.add(html.unescape(piece), found.start(), len(piece))
        elif piece == "<!--" and comments:
            close = text.find("-->", at)
            # Repeated searches for a missing string would be quadratic.
            comments = close >= 0
            at = close + 3 if comments else at
    builder.add(text[at:], at)
    return builder.text()
