"""The interface of the text of a file of any format."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol


class FileText(Protocol):
    """The text of a file, with lines and columns.

    Attributes
    ----------
    text : str
    comments : sequence of (int, int)
        Spans of the comments that may silence findings.
    """

    @property
    def text(self) -> str:
        """The text."""
        ...

    @property
    def comments(self) -> Sequence[tuple[int, int]]:
        """The comments."""
        ...

    def position(self, offset: int) -> tuple[int, int]:
        """Return the line and the column of an offset, both from 1."""
        ...

    def line_text(self, line: int) -> str:
        """Return a line without its end."""
        ...
