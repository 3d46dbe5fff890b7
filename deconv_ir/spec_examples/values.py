"""Values of an example's inputs, from its comments.

Documents print shapes; if the value of an input matters, a comment beside its dims states it, in
varying words: ``output_shape value is: [450, 450]``, ``The tensor contains 2 elements: 0, 4``,
``axes input contains [1, 2]``, ``num_samples value: 10``, ``[1, 2]``, ``[0.5, 2.0]``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from deconv_ir.ir.geometry import Dim
from deconv_ir.spec_examples.scanner import Example, PortText

MAX_VALUES = 64
"""Maximum length of a list of numbers that is accepted as a shape, a list of axes or similar."""

_MINUS = "\N{MINUS SIGN}"
# 2, 0.5, .5, 5e-1, 0.5f; 2. only before a comma or a bracket, since a dot may end a sentence.
_DIGITS = "[0-9]{1,19}"
_FRACTION = rf"(?:{_DIGITS}(?:\.{_DIGITS}|\.(?=\s*[,;\])}}]))?|\.{_DIGITS})"
_NUMBER = rf"[+\-{_MINUS}]?{_FRACTION}(?:[eE][+-]?[0-9]{{1,2}})?(?:(?<=[.0-9])f\b)?"
_NUMBERS = rf"{_NUMBER}(?:\s*[,;x\u00d7]\s*{_NUMBER}|\s+{_NUMBER}){{0,{MAX_VALUES}}}"
# data.shape[0] is a subscript.
_SUBSCRIPT = re.compile(rf"(?<=[\w\])])\[\s*-?{_DIGITS}\s*\]")
_BRACKETED = re.compile(rf"[\[({{]\s*({_NUMBERS})\s*,?\s*[\])}}]")
# Without brackets, a list must be announced and end the comment.
_ANNOUNCED = re.compile(rf"(?:[:=]|\b(?:is|are|be|contains?|values?))\s*({_NUMBERS})\s*\.?\s*\Z")
_LENGTH = 2_000


def value_in(comment: str) -> tuple[float, ...] | None:
    """Return the list of numbers in a comment; None if it has none.

    Examples
    --------
    >>> value_in(" output_shape value is: [450, 450]")
    (450, 450)
    >>> value_in("The tensor contains 2 elements: 0, -4 ")
    (0, -4)
    >>> value_in("The values in this input are [0.5, 2.0]")
    (0.5, 2.0)
    >>> value_in(" batch size of 2 ") is None
    True
    >>> value_in(" data.shape[0] * block_size ") is None
    True
    """
    if len(comment) > _LENGTH:
        return None
    comment = _SUBSCRIPT.sub("", comment)
    found = _BRACKETED.findall(comment)
    if len(found) > 1:  # a matrix, or several statements
        return None
    announced = None if found else _ANNOUNCED.search(comment.strip())
    text = found[0] if found else announced.group(1) if announced else None
    if text is None:
        return None
    return tuple(_number(n.replace(_MINUS, "-")) for n in re.findall(_NUMBER, text))


def _number(text: str) -> float:
    """Return a number: an int unless it has a fraction or an exponent."""
    return int(text) if text.lstrip("+-").isdecimal() else float(text.rstrip("f"))


def input_values(
    example: Example, inputs: Sequence[PortText], names: Sequence[str]
) -> list[tuple[float, ...] | None]:
    """Return the value of each input from the comments.

    A comment belongs to the input that it is in, next to or before or, if that input cannot use it,
    to the input that it names. `names` are those of the operation's inputs.
    """
    values = [_value_of(port) for port in inputs]
    ports = (*inputs, *example.outputs)
    for comment in (*(c for port in ports for c in port.comments), *example.comments):
        value = value_in(comment)
        if value is None:
            continue
        words = set(re.findall(r"\w+", comment))
        for i, (name, port) in enumerate(zip(names, inputs, strict=False)):
            if name in words and values[i] is None and _may_have_value(port):
                values[i] = value
    return values


def _may_have_value(port: PortText) -> bool:
    """Whether a port is that of a scalar or list, not of a tensor of more axes."""
    return len(port.dims) <= 1 and not port.elided


def _value_of(port: PortText) -> tuple[float, ...] | None:
    """Return the value of a scalar or list; None for a tensor of more axes."""
    if not _may_have_value(port):
        return None
    return next((v for v in map(value_in, port.comments) if v is not None), None)


def misfit(value: Sequence[float], shape: Sequence[Dim]) -> str | None:
    """Return the reason why a value does not fit an input of that shape; None if it fits."""
    count = shape[0] if shape else 1
    if not isinstance(count, int) or count == len(value):
        return None
    return f"the comment gives {len(value)} values, the port has {count}"
