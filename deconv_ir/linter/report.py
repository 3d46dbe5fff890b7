"""Reports: problems that a rule reports, before they become findings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deconv_ir.errors import DeconvError
from deconv_ir.ir.findings import Finding
from deconv_ir.ir.graph import GraphLocation
from deconv_ir.ir.record import NamedTuple

if TYPE_CHECKING:
    from deconv_ir.formats.edits import Edit


class Fix(NamedTuple):
    """The edits that correct a finding."""

    edits: tuple[Edit, ...] = ()
    safe: bool = False
    """Whether the rest of the file confirms it; `--fix` applies only such fixes."""
    title: str = ""
    """A description of the edits, such as ``strides="2,2"``; empty: that of the rule's fix."""
    alternatives: tuple[Fix, ...] = ()
    """Other fixes that the file prefers no less: an editor offers all, a command makes none."""


NO_FIX = Fix()


class Report(NamedTuple):
    """One problem that a rule reports."""

    message: str
    """The problem, without the location."""
    location: GraphLocation | tuple[int, int] | None
    """The part of the graph, or a span of the file's text."""
    expected: Any = None
    actual: Any = None
    hint: str | None = None
    """A possible remedy."""
    fix: Fix = NO_FIX
    """The fix; without edits, none."""
    related: int | None = None
    """Index of another layer that is involved."""
    layer: str | None = None
    """The layer named by the library, if it gives a line instead of a location."""

    @classmethod
    def of(cls, found: DeconvError | Finding, fix: Fix = NO_FIX) -> Report:
        """Convert an error of the library, or a finding of inference, to a report."""
        report = cls(found.message, found.location, found.expected, found.actual, found.hint, fix)
        if report.location is not None or found.line is None:
            return report
        return report._replace(location=(-found.line, found.column or 0), layer=found.layer)

    def moved(self, **part: Any) -> Report:
        """Return the report at another part of its layer: the fields of a `GraphLocation`."""
        if not isinstance(self.location, GraphLocation):
            return self
        return self._replace(location=GraphLocation(layer=self.location.layer, **part))
