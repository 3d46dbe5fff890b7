"""Dims as documents print them: numbers, intervals, symbols, and invalid text."""

from __future__ import annotations

import re

from deconv_ir.ir.geometry import UNKNOWN, Dim
from deconv_ir.ir.shapes import parse_dim

# Digits with invalid characters in between; `2x3` may be a product.  A letter that looks like a
# digit, behind one; a negative number, of which -1 is a dim.
_MALFORMED = re.compile(
    r"(?=.*\d)[\d\s.,;_'\u2019]+|\d+[^\W\dxX_]\d+|\d[\doOlI]*|[-\u2212\u2013]\s*\d+"
)
_ALIKE = str.maketrans("oOlI", "0011")


def printed_dim(text: str) -> Dim:
    """Read a dim; a symbol such as ``H`` may be anything."""
    try:
        return parse_dim(text)
    except ValueError:
        return UNKNOWN


def is_malformed(text: str) -> bool:
    """Whether a text is neither a dim nor a symbol.

    Examples
    --------
    >>> [is_malformed(text) for text in ("4,47", "4 47", "4l7", "1O", "-58")]
    [True, True, True, True, True]
    >>> [is_malformed(text) for text in ("447", "-1", "1..2", "H", "2*H", "N1", "O1", "2N")]
    [False, False, False, False, False, False, False, False]
    """
    try:
        parse_dim(text)
    except ValueError:
        return _MALFORMED.fullmatch(text) is not None
    return False


def meant_number(text: str) -> str:
    """Return the likely number of a malformed dim.

    Examples
    --------
    >>> meant_number("4,47"), meant_number("4l7")
    ('447', '417')
    """
    return "".join(filter(str.isdigit, text.translate(_ALIKE)))
