"""What a check found: one record for the loader's warnings and the linter's findings."""

from __future__ import annotations

import enum
from typing import Any, NamedTuple

from deconv_ir.errors import DeconvError


class Severity(enum.Enum):
    """How bad a finding is."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class Finding(NamedTuple):
    """One thing that a check found.

    Attributes
    ----------
    rule : str
        Stable name of the kind of finding.
    severity : Severity
    message : str
        What is wrong, without the place.
    file, line, layer : optional
        Where: path, line from 1, and the layer as ``'name' (Type, id 5)``.
    expected, actual : Any
        What should be there, and what is.
    hint : str, optional
        What the user can do about it.
    column, end_column : int, optional
        Where in the line, in characters from 1; the end is the first one after.
    code : str
        Stable short id of the rule.
    place : GraphLocation or (int, int), optional
        The part of the graph, or of the text, that it is about.
    """

    rule: str
    severity: Severity
    message: str
    file: str | None = None
    line: int | None = None
    layer: str | None = None
    expected: Any = None
    actual: Any = None
    hint: str | None = None
    column: int | None = None
    end_column: int | None = None
    code: str = ""
    place: Any = None

    def __str__(self) -> str:
        return str(
            DeconvError(
                self.message, file=self.file, line=self.line, layer=self.layer, hint=self.hint
            )
        )


def plain(value: Any) -> Any:
    """Return what a finding expects, or found, as JSON can hold it."""
    return value if value is None or isinstance(value, int | float | str) else str(value)
