"""Dims as documents print them: numbers, intervals, symbols, and what is none of these."""

from __future__ import annotations

import re

from deconv_ir.ir.geometry import UNKNOWN, Dim
from deconv_ir.ir.shapes import parse_dim
from deconv_ir.suggestions import one_edit_apart

_DIGITS_APART = re.compile(r"(?=.*\d)[\d\s.,;_'\u2019]+")
_LETTER_BETWEEN = re.compile(r"\d+[^\W\d_]\d+")


def printed_dim(text: str) -> Dim:
    """Read a dim; a symbol such as ``H`` may be anything."""
    try:
        return parse_dim(text)
    except ValueError:
        return UNKNOWN


def is_malformed(text: str, computed: Dim = UNKNOWN) -> bool:
    """Whether a text is neither a dim nor a symbol.

    Examples
    --------
    >>> [is_malformed(text) for text in ("4,47", "4 47", "447", "1..2", "-1", "H", "2*H", "N1")]
    [True, True, False, False, False, False, False, False]
    >>> is_malformed("4l7", 447), is_malformed("2x3", 6)
    (True, False)
    """
    try:
        parse_dim(text)
    except ValueError:
        if _DIGITS_APART.fullmatch(text):
            return True
        between = _LETTER_BETWEEN.fullmatch(text) is not None
        return between and isinstance(computed, int) and one_edit_apart(text, str(computed))
    return False
