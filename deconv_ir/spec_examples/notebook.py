"""Jupyter notebooks as documents: the sources of their cells, mapped back to the JSON text.

Source: nbformat 4, "The Jupyter Notebook Format".
"""

from __future__ import annotations

import bisect
import json
import os
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from deconv_ir.errors import DeconvError
from deconv_ir.formats.files import is_json, read_input, similar_file
from deconv_ir.formats.recognise import START, recognise
from deconv_ir.limits import DEFAULT_LIMITS
from deconv_ir.spec_examples.text import DerivedText, DerivedTextBuilder, Document

SUFFIX: Final = ".ipynb"
SUFFIXES: Final = (".md", ".markdown", ".rst", ".txt", ".html", ".htm", SUFFIX)
"""Suffixes of the documents in a folder."""

_TOKEN: Final = re.compile(r'"(?:[^"\\]++|\\.)*+"|[{}\[\]]|[^\s{}\[\]"]+')
_ESCAPE: Final = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|.)"
)


class Notebook(Document):
    """A notebook: its examples are in the sources of its cells.

    The text is the unchanged JSON, so that an edit of a cell changes no other byte.  `line` counts
    the lines of all cells; `shown` converts them to lines of the file.
    """

    def __init__(self, data: bytes, name: str = "<document>") -> None:
        super().__init__(data, name)
        try:
            content = json.loads(self.text.removeprefix("\ufeff"))
        except (ValueError, RecursionError) as error:
            raise DeconvError(f"not a notebook: {error}", file=name, rule="not-text") from None
        if not isinstance(content, dict) or not isinstance(content.get("cells"), list):
            message = "not a notebook of format 4: it has no list of cells"
            raise DeconvError(message, file=name, rule="not-text")
        self._cells = [_text_of_cell(self.text, strings) for strings in _sources(self.text)]
        # Offset of each line of each cell, and its cell and line; both are counted from 1.
        self._starts = [0]
        self._places = [(0, 1)]
        for cell, derived in enumerate(self._cells, 1):
            ends = [m.end() for m in re.finditer("\n", derived.text)]
            for line, at in enumerate([0, *(end for end in ends if end < len(derived.text))], 1):
                if derived.text:
                    self._starts.append(derived.start(at))
                    self._places.append((cell, line))

    def texts(self) -> Iterator[DerivedText]:
        """Yield the source of each cell."""
        yield from self._cells

    def line(self, position: int) -> int:
        """Return the number, among the lines of all cells, of the line with a character."""
        return bisect.bisect_right(self._starts, position)

    def column(self, position: int) -> int:
        """Return the column, from 1, of a character in that line."""
        return position - self._starts[self.line(position) - 1] + 1

    def shown(self, line: int) -> tuple[str, int, int]:
        """Return a description of cell and line, the line in the file, and columns before it."""
        cell, own = self._places[line - 1]
        start = self._starts[line - 1]
        in_file = super().line(start)
        return f"cell {cell}, line {own}: ", in_file, start - self._lines[in_file - 1]


def _sources(text: str) -> Iterator[list[tuple[int, int]]]:
    """Iterate over the cells: the spans of the strings that their sources consist of."""
    # State of the walk: key and kind of each open object and list.
    path: list[str] = []
    key = ""
    strings: list[tuple[int, int]] = []
    tokens = list(_TOKEN.finditer(text))
    for token, after in pairwise([*tokens, None]):
        assert token is not None
        mark = token[0]
        if mark in ("{", "["):
            path.append(key + mark)
            key = ""
            if path == ["{", "cells[", "{"]:
                strings = []
        elif mark in ("}", "]"):
            if path == ["{", "cells[", "{"]:
                yield strings
            del path[-1:]
            key = ""
        elif mark[0] == '"':
            if path[-1:] and path[-1].endswith("{") and after and after[0].startswith(":"):
                key = mark[1:-1]
                continue
            source = path == ["{", "cells[", "{"] and key == "source"
            if source or path == ["{", "cells[", "{", "source["]:
                strings.append((token.start() + 1, token.end() - 1))


def _text_of_cell(text: str, strings: list[tuple[int, int]]) -> DerivedText:
    """Return the text of some JSON strings, and the origin of each character."""
    builder = DerivedTextBuilder()
    for start, end in strings:
        at = start
        for match in _ESCAPE.finditer(text, start, end):
            builder.add(text[at : match.start()], at)
            at = match.end()
            builder.add(json.loads(f'"{match[0]}"'), match.start(), at - match.start())
        builder.add(text[at:end], at)
    return builder.text()


def open_document(data: bytes, name: str = "<document>") -> Document:
    """Return the document of some bytes, named `name` in messages."""
    file_type = recognise(data[:START], name)
    if file_type is not None and not file_type.is_text:
        message = f"the file is {file_type.what}, not a document"
        hint = None if file_type.is_image else file_type.hint_for(name)
        raise DeconvError(message, file=name, rule="not-text", hint=hint)
    if name.lower().endswith(SUFFIX) or (is_json(data) and b'"nbformat"' in data):
        return Notebook(data, name)
    return Document(data, name)


def read_document(
    path: str | os.PathLike[str], limit: int = DEFAULT_LIMITS.document_bytes
) -> Document:
    """Read a document from a file of at most `limit` bytes."""
    hint = similar_file(path, SUFFIXES)
    return open_document(read_input(path, limit, hint=hint), os.fspath(path))
