"""Suggestions for misspelt words: "did you mean ...?"."""

from __future__ import annotations

from collections.abc import Collection
from functools import lru_cache

from deconv_ir.hints import Advice, Hint

# Between the similarity of one edit in three letters, and that of words with mostly equal letters.
SIMILARITY = 0.75


def nearest(word: str, known: Collection[str]) -> Advice | None:
    """Return a hint that names the most similar known word; None: no word is similar enough."""
    return _nearest(word, frozenset(known))


@lru_cache(maxsize=1024)
def _nearest(word: str, known: frozenset[str]) -> Advice | None:
    if len(word) > 2 * max(map(len, known), default=0):
        return None
    from difflib import get_close_matches

    folded = {k.lower(): k for k in sorted(known)}
    wanted = word.lower()
    found = get_close_matches(wanted, folded, 3, SIMILARITY)
    # Swapped letters are the more likely mistake: 'tahn' is 'tanh', not 'tan'.
    best = max(found, key=lambda k: sorted(k) == sorted(wanted), default=None)
    return None if best is None else Hint.DID_YOU_MEAN(folded[best])


def one_edit_apart(a: str, b: str) -> bool:
    """Whether two words differ by one letter: added, left out, replaced, or swapped with the next.

    Examples
    --------
    >>> [one_edit_apart(word, "port") for word in ("prt", "porrt", "part", "prot", "pro", "port")]
    [True, True, True, True, False, False]
    """
    if abs(len(a) - len(b)) > 1 or a == b:
        return False
    start = 0
    while start < min(len(a), len(b)) and a[start] == b[start]:
        start += 1
    rest_a, rest_b = a[start:], b[start:]
    return (
        rest_a[1:] == rest_b
        or rest_a == rest_b[1:]
        or rest_a[1:] == rest_b[1:]
        or (rest_a[:2] == rest_b[1::-1] and rest_a[2:] == rest_b[2:])
    )
