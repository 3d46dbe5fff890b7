"""Edits of a text that leave the rest unchanged."""

from __future__ import annotations

from collections.abc import Iterable

Edit = tuple[int, int, str]
"""Characters from the first offset up to the second, and their replacement."""


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """Return a text with the edits applied; raise ValueError if they overlap."""
    parts: list[str] = []
    at = 0
    for start, end, new in sorted(edits):
        if start < at:
            raise ValueError("edits overlap")
        parts += (text[at:start], new)
        at = end
    return "".join((*parts, text[at:]))
