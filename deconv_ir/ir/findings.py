"""Findings of checks: one record for the loader's warnings and the linter's findings."""

from __future__ import annotations

import enum
from typing import Any

from deconv_ir.errors import DeconvError
from deconv_ir.ir.record import NamedTuple


class Severity(enum.Enum):
    """The severity of a finding.

    Examples
    --------
    >>> import deconv_ir
    >>> deconv_ir.Severity("warning")
    <Severity.WARNING: 'warning'>
    >>> findings = deconv_ir.lint("samples/block/block.xml", severity=deconv_ir.Severity.INFO)
    >>> {finding.severity for finding in findings} <= set(deconv_ir.Severity)
    True
    """

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


class Finding(NamedTuple):
    """A problem that a check found.

    Attributes
    ----------
    rule : str
        Stable name of the rule.
    severity : Severity
        Severity of the problem.
    message : str
        The problem, without its location.
    file, line, layer : optional
        Where: path, line from 1, and the layer as ``'name' (Type, id 5)``.
    expected, actual : Any
        The value that was expected, and the value that was found.
    hint : str, optional
        How to fix it.
    column, end_column : int, optional
        First column in the line, and the first one after it, in characters from 1.
    code : str
        Stable short id of the rule, such as ``IR401``; empty for findings of `load`.
    location : optional
        The part of the graph, or the span of the text.

    Examples
    --------
    >>> from pathlib import Path
    >>> import deconv_ir
    >>> text = Path("samples/documents/convolution_backprop_data_1.xml").read_text()
    >>> _ = Path("wrong.xml").write_text(text.replace("447", "448", 1))
    >>> (finding,) = deconv_ir.lint("wrong.xml")
    >>> isinstance(finding, deconv_ir.Finding)
    True
    >>> finding.code, finding.line, finding.actual, finding.expected
    ('IR401', 21, 448, 447)
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
    location: Any = None

    @property
    def place(self) -> Any:
        """The same as `location`, under its earlier name."""
        return self.location

    def __str__(self) -> str:
        return str(
            DeconvError(
                self.message, file=self.file, line=self.line, layer=self.layer, hint=self.hint
            )
        )


def plain(value: Any) -> Any:
    """Return an expected or found value in a form that JSON can hold."""
    return value if value is None or isinstance(value, int | float | str) else str(value)


class IRWarning(UserWarning):
    """A declared dim or type differs from the computed one, or a runtime differs from it.

    Examples
    --------
    >>> import warnings
    >>> from pathlib import Path
    >>> import deconv_ir
    >>> text = Path("samples/documents/convolution_backprop_data_1.xml").read_text()
    >>> _ = Path("wrong.xml").write_text(text.replace("447", "448", 1))
    >>> with warnings.catch_warnings(record=True, action="always") as caught:
    ...     model = deconv_ir.load("wrong.xml")
    >>> [warning.category is deconv_ir.IRWarning for warning in caught]
    [True]
    """
