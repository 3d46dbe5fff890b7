"""Reports: what a rule says about a file, before it becomes a finding."""

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
    """The rest of the file confirms it: `--fix` makes it, `--unsafe-fixes` the others too."""


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
    """Without edits: there is none."""
    related: int | None = None
    """Index of another layer that is involved."""
    layer: str | None = None
    """The layer that the library names, where it gives a line instead of a location."""

    @classmethod
    def of(cls, found: DeconvError | Finding, fix: Fix = NO_FIX) -> Report:
        """Make a report of an error of the library, or of a finding of inference."""
        report = cls(found.message, found.location, found.expected, found.actual, found.hint, fix)
        if report.location is not None or found.line is None:
            return report
        return report._replace(location=(-found.line, found.column or 0), layer=found.layer)

    def moved(self, **part: Any) -> Report:
        """Return the report at another part of its layer: the fields of a `GraphLocation`."""
        if not isinstance(self.location, GraphLocation):
            return self
        return self._replace(location=GraphLocation(layer=self.location.layer, **part))
