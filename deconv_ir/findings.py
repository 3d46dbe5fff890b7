"""The one record of a problem: of errors, the loader's warnings, and the linter's findings."""

import enum
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from deconv_ir.text import MAX_NAME, one_line

if TYPE_CHECKING:
    from deconv_ir.edits import Edit
    from deconv_ir.hints import Advice


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


class TextSpan(NamedTuple):
    """A part of a file's text, in characters from its beginning.

    Examples
    --------
    >>> from deconv_ir import TextSpan
    >>> span = TextSpan(4, 9)
    >>> "the cause"[slice(*span)]
    'cause'
    """

    start: int
    end: int


class GraphLocation(NamedTuple):
    """The part of a graph that an error or a finding refers to; None: unspecified.

    Attributes
    ----------
    layer : int
        Index in `Graph.layers`.
    edge : int
        Index in `Graph.edges`.
    side : str
        ``input`` or ``output``.
    port : int
        Index of the port on that side.
    axis : int
        Index of one of its dims.
    attribute : str
        An attribute of the port or edge, else of the layer's ``<data>``, or of the ``<layer>`` if
        `own`.
    own : bool
    child : str
        An uninterpreted child element of the layer, or a body.

    Examples
    --------
    >>> from pathlib import Path
    >>> import deconv_ir
    >>> text = Path("samples/documents/convolution_backprop_data_1.xml").read_text()
    >>> _ = Path("wrong.xml").write_text(text.replace("447", "448", 1))
    >>> (finding,) = deconv_ir.lint("wrong.xml")
    >>> isinstance(finding.location, deconv_ir.GraphLocation)
    True
    >>> finding.location.side, finding.location.port, finding.location.axis
    ('output', 0, 2)
    """

    layer: int | None = None
    edge: int | None = None
    side: str | None = None
    port: int | None = None
    axis: int | None = None
    attribute: str | None = None
    own: bool = False
    child: str | None = None


Location = GraphLocation | TextSpan

NOWHERE = GraphLocation()


class Fix(NamedTuple):
    """The edits that correct a finding.

    Attributes
    ----------
    edits : tuple
        Start, end and new text of each; none in findings of a cache.
    safe : bool
        Whether the rest of the file confirms it; ``--fix`` applies only such fixes.
    title : str
        A description of the edits, such as ``strides="2,2"``; empty: that of the rule's fix.
    alternatives : tuple of Fix
        Other fixes that the file prefers no less: an editor offers all, a command makes none.

    Examples
    --------
    >>> from pathlib import Path
    >>> import deconv_ir
    >>> text = Path("samples/documents/convolution_backprop_data_1.xml").read_text()
    >>> _ = Path("wrong.xml").write_text(text.replace("447", "448", 1))
    >>> (finding,) = deconv_ir.lint("wrong.xml")
    >>> isinstance(finding.fix, deconv_ir.Fix)
    True
    >>> [new for start, end, new in finding.fix.edits]
    ['447']
    """

    edits: "tuple[Edit, ...]" = ()
    safe: bool = False
    title: str = ""
    alternatives: "tuple[Fix, ...]" = ()


class Finding(NamedTuple):
    """A problem that a check found, or that an error reports.

    A rule gives the first six fields, and whoever knows the file the others.

    Attributes
    ----------
    message : str
        The problem, without its location.
    location : GraphLocation or TextSpan, optional
        The part of the graph, or of the file's text.
    expected, actual : Any
        The value that was expected, and the value that was found.
    hint : Advice, optional
        How to fix it.
    fix : Fix, optional
        The edits that fix it.
    file : str, optional
        Path of the file.
    line : int, optional
        Line of the file, from 1.
    column, end_column : int, optional
        First column in the line, and the first one after it, in characters from 1.
    layer : str, optional
        The layer, as ``'name' (Type, id 5)``.
    attribute : str, optional
        The attribute of the layer at fault.
    rule : str
        Stable name of the rule.
    severity : Severity
        Severity of the problem.
    code : str
        Stable short id of the rule, such as ``IR401``; empty for findings of `load`.

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

    message: str
    location: Location | None = None
    expected: Any = None
    actual: Any = None
    hint: "Advice | None" = None
    fix: Fix | None = None
    file: str | None = None
    line: int | None = None
    column: int | None = None
    end_column: int | None = None
    layer: str | None = None
    attribute: str | None = None
    rule: str = ""
    severity: Severity = Severity.ERROR
    code: str = ""

    @property
    def place(self) -> Location | None:
        """The same as `location`, under its earlier name."""
        return self.location

    @property
    def part(self) -> GraphLocation:
        """The part of the graph; an unspecified one without a location."""
        return self.location if isinstance(self.location, GraphLocation) else NOWHERE

    @property
    def identity(self) -> str:
        """The rule, the layer and the place, without words that a release may change, and lines.

        Findings of a file may share it.
        """
        part = self.part
        attribute = part.attribute or self.attribute
        # `expected` is left out: it may be a sentence, whose wording may change.
        place = f"{part.side} {part.port} {part.axis} {attribute} {self.actual}"
        return "\0".join((self.code, self.layer or "", place))

    def moved(self, **part: Any) -> Self:
        """Return the finding at another part of its layer: the fields of a `GraphLocation`."""
        location = self.location
        if not isinstance(location, GraphLocation):
            return self
        return self._replace(location=GraphLocation(layer=location.layer, **part))

    def __str__(self) -> str:
        """One line: file and line, layer, message, hint."""
        return self.as_line(self.hint)

    def as_line(self, hint: str | None) -> str:
        """Return the line with a wording of the hint."""
        where = one_line(self.file or "")
        if self.line is not None:
            where = f"{where}:{self.line}" if where else f"line {self.line}"
        parts = [where] if where else []
        if self.layer is not None:
            parts.append(f"layer {one_line(self.layer, MAX_NAME)}")
        parts.append(one_line(self.message))
        text = ": ".join(parts)
        return f"{text} ({one_line(hint)})" if hint else text


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
