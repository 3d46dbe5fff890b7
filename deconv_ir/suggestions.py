"""Hints for words that are misspelt: did you mean another one."""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache


def nearest(word: str, known: Collection[str]) -> str | None:
    """Return a hint that names the known word most like this one; None: none is."""
    return _nearest(word, frozenset(known))


@lru_cache(maxsize=1024)
def _nearest(word: str, known: frozenset[str]) -> str | None:
    if len(word) > 2 * max(map(len, known), default=0):
        return None
    from difflib import get_close_matches

    folded = {k.lower(): k for k in sorted(known)}
    found = get_close_matches(word.lower(), folded, 1, 0.6)
    return f"did you mean {folded[found[0]]!r}?" if found else None
