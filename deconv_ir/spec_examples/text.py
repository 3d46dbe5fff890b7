"""Documents as bytes, as text and as their readers see them, with positions mapped back.

A document is decoded without loss: whatever its bytes are, writing the text
back gives them again.  Its XML is in it either as it is, or, in HTML, with
entities for the angle brackets and markup for colours in between; `View` is
the text with those undone, and knows where each character came from.
"""

from __future__ import annotations

import bisect
import codecs
import html
import re
from array import array
from collections.abc import Iterator

from deconv_ir.errors import DeconvError
from deconv_ir.ir.record import NamedTuple

_MARKUP = re.compile(
    r"<!--|</?[A-Za-z][^<>]*>|&(?:#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});"
)
_ESCAPED_LAYER = re.compile(r"&(?:lt|LT|#0*60|#[xX]0*3[cC]);")
_LINE_END = re.compile(r"\r\n|\r|\n")

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)


class View(NamedTuple):
    """A text that was made of a document, and the position of each of its characters there."""

    text: str
    here: array[int]  # where each run begins, in this text and in the document
    there: array[int]
    # The length in the document of a run that is one entity; 0 for plain characters.
    entity: array[int]

    def start(self, position: int) -> int:
        """Return where in the document the character at `position` begins."""
        run = bisect.bisect_right(self.here, position) - 1
        if run < 0:
            return position
        offset = position - self.here[run]
        return self.there[run] + (0 if self.entity[run] else offset)

    def end(self, position: int) -> int:
        """Return where in the document the character before `position` ends."""
        if position == 0:
            return self.start(0)
        run = bisect.bisect_right(self.here, position - 1) - 1
        if run < 0:
            return position
        length = self.entity[run]
        return self.there[run] + (length or position - self.here[run])


class ViewBuilder:
    """Puts a `View` together, run by run."""

    def __init__(self) -> None:
        self._parts: list[str] = []
        self._length = 0
        self._runs = array("q"), array("q"), array("q")

    def add(self, part: str, origin: int, size: int = 0) -> None:
        """Add a run that begins at `origin` in the document; `size` is that of an entity there."""
        if part:
            for run, value in zip(self._runs, (self._length, origin, size), strict=True):
                run.append(value)
            self._parts.append(part)
            self._length += len(part)

    def view(self) -> View:
        """Return all runs."""
        return View("".join(self._parts), *self._runs)


class Document:
    """A document: its bytes, its text, its lines.

    The bytes are UTF-8, UTF-16 with a byte-order mark, or of any encoding that has ASCII as its
    lower half; messages call the document `name`.
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
        # Bytes that are no UTF-8 (of a Latin-1 document, say) travel as lone
        # surrogates, and come back as they were.
        return "surrogateescape" if self._codec == "utf-8" else "surrogatepass"

    def encode(self, text: str) -> bytes:
        """Return the bytes of a text as this document's are: encoding and mark."""
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

    def views(self) -> Iterator[View]:
        """Yield the text as it is and, where it has escaped tags, with those undone."""
        none = array("q")
        yield View(self.text, none, none, none)
        if _ESCAPED_LAYER.search(self.text):
            yield _unescape(self.text)


def _unescape(text: str) -> View:
    """Take markup out, and put characters for entities."""
    builder = ViewBuilder()
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
            # Searching again for what is not there would be quadratic.
            comments = close >= 0
            at = close + 3 if comments else at
    builder.add(text[at:], at)
    return builder.view()
