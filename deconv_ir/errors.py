"""One family of errors: everything the library raises on purpose.

A message is one line: where (file, line, layer), what was expected, what was
found, and a hint where there is one.  The parts are fields too, so that the
linter and the commands can present them in their own way.
"""

from __future__ import annotations

from typing import Any

MAX_MESSAGE = 1000
MAX_NAME = 200


def one_line(text: str, limit: int = MAX_MESSAGE) -> str:
    """Return a text that may hold parts of a hostile file as one line of bounded length.

    Control characters, which could move a terminal's cursor or break a log,
    are written as escapes; of a text that is too long, the middle is left out.
    """
    if len(text) > limit:
        tail = limit // 4
        text = f"{text[: limit - tail]} ... {text[-tail:]}"
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


class DeconvError(Exception):
    """The root of every error that this package raises on purpose.

    Parameters
    ----------
    message : str
        What is wrong, without the place.
    file : str, optional
        Path of the file at fault.
    line, column : int, optional
        Line and column in that file, counted from 1.
    layer : str, optional
        The layer, as ``'name' (Type, id 5)``.
    attribute : str, optional
        The attribute of the layer at fault.
    expected, actual : Any, optional
        What should be there and what is.
    hint : str, optional
        What the user can do about it.
    rule : str, optional
        Stable name of the kind of mistake; the linter files findings under it.
    place : GraphLocation or (int, int), optional
        The part of the graph at fault (`deconv_ir.ir.graph.GraphLocation`), or a span of
        the file's text: where the linter puts its caret.
    """

    def __init__(
        self,
        message: str,
        *,
        file: str | None = None,
        line: int | None = None,
        layer: str | None = None,
        attribute: str | None = None,
        expected: Any = None,
        actual: Any = None,
        hint: str | None = None,
        rule: str | None = None,
        column: int | None = None,
        place: Any = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.file = file
        self.line = line
        self.layer = layer
        self.attribute = attribute
        self.expected = expected
        self.actual = actual
        self.hint = hint
        self.rule = rule
        self.column = column
        self.place = place

    def locate(
        self, *, file: str | None = None, line: int | None = None, layer: str | None = None
    ) -> DeconvError:
        """Fill in those parts of the place that are not known yet."""
        self.file = self.file if self.file is not None else file
        self.line = self.line if self.line is not None else line
        self.layer = self.layer if self.layer is not None else layer
        return self

    def __str__(self) -> str:
        """One line: place, layer, message, hint."""
        place = one_line(self.file or "")
        if self.line is not None:
            place = f"{place}:{self.line}" if place else f"line {self.line}"
        parts = [place] if place else []
        if self.layer is not None:
            parts.append(f"layer {one_line(self.layer, MAX_NAME)}")
        parts.append(one_line(self.message))
        text = ": ".join(parts)
        return f"{text} ({one_line(self.hint)})" if self.hint else text


class IRError(DeconvError):
    """The IR file is not well formed, or its graph does not hold together."""


class AttributeValueError(IRError):
    """An attribute of a layer is missing, of the wrong form or out of range."""


class ShapeError(DeconvError):
    """Shapes or element types of a layer's inputs do not fit the operation."""


class WeightsError(DeconvError):
    """The weights file is missing, too short, or a constant does not fit it."""


class InputError(DeconvError):
    """An array given by the user does not fit the model."""


class UnsupportedError(DeconvError):
    """Something needs an operation or element type without an implementation."""


class SettingError(DeconvError, ValueError):
    """A setting, such as an environment variable, asks for what is not there."""


class ResourceError(DeconvError):
    """A limit on size or memory would be passed."""


class OutputError(DeconvError):
    """A result can not be written where the user asked for it."""
