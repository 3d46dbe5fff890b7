"""The text of an XML file, with offsets that lead back to its bytes.

Ill-formed XML is rejected.  In a well-formed
document ``<`` opens a comment, a CDATA section, a processing instruction or a tag, and nothing
else.  Blanking out the first three leaves a text whose every ``<`` is a tag, at its own offset:
lines, columns and byte-exact fixes work in files of any size, and reading is faster than from
a tree.
"""

from __future__ import annotations

import codecs
import re
from bisect import bisect_left
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final
from xml.parsers import expat

from deconv_ir.errors import IRError

if TYPE_CHECKING:
    from deconv_ir.edits import Edit

_BOMS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
    (b"<\0?\0", "utf-16-le"),
    (b"\0<\0?", "utf-16-be"),
)
# Most files do not need these patterns, so they are compiled on first use.
_DECLARED: Final = rb"""\s*<\?xml[^>]*?encoding\s*=\s*["']([A-Za-z0-9._-]+)"""
_HIDDEN: Final = r"(?s)<!--(.*?)-->|<!\[CDATA\[(.*?)\]\]>|<\?.*?\?>"
_NOT_NEWLINE: Final = re.compile(r"[^\n]")
_ENTITY: Final = r"&(?:#x([0-9A-Fa-f]+)|#([0-9]+)|(lt|gt|amp|quot|apos));"
_NAMED: Final = {"lt": "<", "gt": ">", "amp": "&", "quot": '"', "apos": "'"}
_WHITE: Final = r"\r\n|[\t\n\r]"

BLOCK: Final = 1 << 14

_EXPAT_BYTES: Final = 10_000_000
"""lxml bounds the size of each part of a file, which only larger files can exceed."""

_NAMES = "utf ascii iso8859 iso2022 cp mac koi8 big5 gb hz euc shift johab tis kz ptcp hp-roman"
_CHARSETS: Final = tuple(_NAMES.split())

# Not allowed in XML, so free to stand for characters in CDATA sections.
_CDATA_LESS, _CDATA_AMPERSAND = "\ufffe", "\uffff"


class XMLText:
    """One XML file, named `file` in messages; ill-formed XML or a DOCTYPE is an IRError."""

    __slots__ = ("_lines", "comments", "data", "encoding", "file", "markup", "text")

    def __init__(self, data: bytes, file: str | None = None) -> None:
        self.data = data
        self.file = file
        # The codec between `data` and `text`; a byte order mark is part of both.
        self.encoding = _encoding(data)
        text = _decode(data, self.encoding, file)
        self.text = text
        self._lines: list[int] | None = None
        # Checked before a parser reads the text: a DTD may define entities.
        doctype = _doctype(text)
        if doctype is not None:
            line, _ = self.position(doctype)
            raise IRError("a DOCTYPE is not allowed in an IR", file=file, line=line, rule="xml")
        # The parser reads the same decoded text: two decoders might disagree.
        check_well_formed(data if self.encoding == "utf-8" else text.encode(), file)
        self.comments: list[tuple[int, int]] = []  # spans of their contents
        # The text with comments, CDATA markers and processing instructions blanked out; length and
        # line ends are unchanged.
        self.markup = self._mask(text)

    def _mask(self, text: str) -> str:
        if "<!" not in text and text.find("<?", text.find("<") + 1) < 0:
            # At most an XML declaration, or one instruction, which stands first.
            end = text.find("?>") + 2 if text.lstrip("\ufeff \t\r\n").startswith("<?") else 0
            return _NOT_NEWLINE.sub(" ", text[:end]) + text[end:]
        parts: list[str] = []
        at = 0
        for match in re.finditer(_HIDDEN, text):
            start, end = match.span()
            parts.append(text[at:start])
            at = end
            if match[1] is not None:
                self.comments.append(match.span(1))
            if match[2] is None:
                parts.append(_NOT_NEWLINE.sub(" ", match[0]))
            else:
                hidden = match[2].replace("<", _CDATA_LESS).replace("&", _CDATA_AMPERSAND)
                parts.append(f"{' ' * 9}{hidden}{' ' * 3}")
        parts.append(text[at:])
        return "".join(parts)

    def position(self, offset: int) -> tuple[int, int]:
        """Return the line and the column, in characters, of an offset; both from 1."""
        text, counts = self.text, self._line_counts()
        block = offset // BLOCK
        line = counts[block] + text.count("\n", block * BLOCK, offset) + 1
        start = text.rfind("\n", block * BLOCK, offset) + 1
        if not start and counts[block]:  # the line begins in an earlier block
            block = bisect_left(counts, counts[block])
            start = text.rfind("\n", (block - 1) * BLOCK, block * BLOCK) + 1
        if line == 1 and text.startswith("\ufeff"):
            start += 1
        return line, offset - start + 1

    def line_text(self, line: int) -> str:
        """Return a line without its end."""
        counts = self._line_counts()
        block = bisect_left(counts, line - 1) - 1 if line > 1 else 0
        start = block * BLOCK
        for _ in range(line - 1 - counts[block]):
            start = self.text.index("\n", start) + 1
        end = self.text.find("\n", start)
        return self.text[start : end if end >= 0 else None].rstrip("\r").lstrip("\ufeff")

    def _line_counts(self) -> list[int]:
        """Return the number of lines that end before each block of the text.

        A list of all lines could take far more memory than the text.
        """
        if self._lines is None:
            ends = (
                self.text.count("\n", at, at + BLOCK) for at in range(0, len(self.text) + 1, BLOCK)
            )
            self._lines = [0, *accumulate(ends)]
        return self._lines

    def edited(self, edits: list[Edit]) -> bytes:
        """Return the bytes with some spans replaced; all other bytes are unchanged.

        Raises ValueError if edits overlap, or if encoding the text does not reproduce the bytes.
        """
        from deconv_ir.edits import apply_edits

        if self.text.encode(self.encoding) != self.data:
            raise ValueError(f"{self.encoding} text does not lead back to the same bytes")
        return apply_edits(self.text, edits).encode(self.encoding)


def _encoding(data: bytes) -> str:
    for mark, encoding in _BOMS:
        if data.startswith(mark):
            return encoding
    head = data[:512]
    declared = re.match(_DECLARED, head) if b"encoding" in head else None
    return declared[1].decode("ascii") if declared else "utf-8"


def _decode(data: bytes, encoding: str, file: str | None) -> str:
    try:
        if not _is_charset(encoding):
            raise LookupError
        return data.decode(encoding)
    except LookupError:
        raise IRError(
            f"the encoding {encoding[:40]!r} is not supported", file=file, line=1, rule="xml"
        ) from None
    except UnicodeDecodeError as error:
        before = error.object[: error.start]
        line = before.decode(encoding, "ignore").count("\n") + 1
        message = f"byte {error.start} cannot be decoded: {error.reason} ({error.encoding})"
        raise IRError(message, file=file, line=line, rule="xml") from error


def _is_charset(encoding: str) -> bool:
    """Whether a codec is a plain character set; Python has others, some of them slow."""
    name = codecs.lookup(encoding).name
    return name.startswith(_CHARSETS) and name not in ("utf-7", "utf-8-sig")


def _doctype(text: str) -> int | None:
    """Return the position of a DOCTYPE; None if the text has no DOCTYPE."""
    at = 0
    while (at := text.find("<", at)) >= 0:
        if text.startswith("<!--", at):
            end = text.find("-->", at + 4)
        elif text.startswith("<?", at):
            end = text.find("?>", at + 2)
        else:
            return at if text.startswith("<!DOCTYPE", at) else None
        if end < 0:
            return None
        at = end
    return None


class _NoTree:
    """A parser target that keeps nothing: only well-formedness is checked."""

    def close(self) -> None:
        """End of the document."""


def check_well_formed(data: bytes, file: str | None = None) -> None:
    """Raise an IRError if a document in UTF-8, without a DOCTYPE, is not well-formed.

    expat accepts nearly all files, and starts 5 ms faster than lxml.  What it refuses, lxml parses
    again: it allows names of the fifth edition of XML, and says more about errors.
    """
    if len(data) > _EXPAT_BYTES or not _is_accepted_by_expat(data):
        _check_with_lxml(data, file)


def _is_accepted_by_expat(data: bytes) -> bool:
    versions = []
    parser = expat.ParserCreate("utf-8")
    parser.XmlDeclHandler = lambda version, _encoding, _standalone: versions.append(version)
    try:
        parser.Parse(data, True)
    except expat.ExpatError:
        return False
    return versions in ([], ["1.0"])  # expat takes every text for a version


def _check_with_lxml(data: bytes, file: str | None) -> None:
    from lxml import etree

    target: Any = _NoTree()
    parser = etree.XMLParser(
        target=target,
        encoding="utf-8",
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        huge_tree=False,
    )
    try:
        etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        message = (error.msg or "no element found").rpartition(", line ")[0] or error.msg
        line, column = error.lineno or 1, error.offset or 0
        message = f"not well-formed XML: {message.strip()}"
        raise IRError(message, file=file, line=line, column=column + 1, rule="xml") from error


def unescape(text: str) -> str:
    """Replace character references by their characters."""
    if "&" in text:
        text = re.sub(_ENTITY, _character, text)
    if _CDATA_LESS in text or _CDATA_AMPERSAND in text:
        text = text.replace(_CDATA_LESS, "<").replace(_CDATA_AMPERSAND, "&")
    return text


def _character(match: re.Match[str]) -> str:
    if match[3]:
        return _NAMED[match[3]]
    return chr(int(match[1], 16) if match[1] else int(match[2]))


def attribute_value(raw: str) -> str:
    """Return the value of an attribute as XML defines it, given the text between the quotes."""
    if "\n" in raw or "\t" in raw or "\r" in raw:
        raw = re.sub(_WHITE, " ", raw)
    return unescape(raw) if "&" in raw else raw
