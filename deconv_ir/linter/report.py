"""Reports: what a rule says about a file, before it becomes a finding."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from deconv_ir.ir.graph import GraphLocation

if TYPE_CHECKING:
    from deconv_ir.errors import DeconvError
    from deconv_ir.formats.edits import Edit
    from deconv_ir.ir.findings import Finding


class Fix(NamedTuple):
    """The edits that correct a finding.

    Attributes
    ----------
    edits : tuple of Edit
    safe : bool
        The rest of the file confirms it: `--fix` makes it, `--unsafe-fixes` the others too.
    """

    edits: tuple[Edit, ...] = ()
    safe: bool = False


NO_FIX = Fix()


class Report(NamedTuple):
    """One problem that a rule reports.

    Attributes
    ----------
    message : str
        What is wrong, without the location.
    place : GraphLocation or (int, int)
        The part of the graph, or a span of the file's text.
    expected, actual : Any
    hint : str or None
        What the user can do about it.
    fix : Fix
        Without edits: there is none.
    related : int or None
        Index of another layer that is involved.
    layer : str or None
        The layer that the library names, where it gives a line instead of a location.
    """

    message: str
    place: GraphLocation | tuple[int, int] | None
    expected: Any = None
    actual: Any = None
    hint: str | None = None
    fix: Fix = NO_FIX
    related: int | None = None
    layer: str | None = None

    @classmethod
    def of(cls, found: DeconvError | Finding, fix: Fix = NO_FIX) -> Report:
        """Make a report of an error of the library, or of a finding of inference."""
        report = cls(
            found.message, found.place, found.expected, found.actual, found.hint, fix
        )
        if report.place is not None or found.line is None:
            return report
        return report._replace(place=(-found.line, found.column or 0), layer=found.layer)

    def moved(self, **place: Any) -> Report:
        """Return the report at another part of its layer: the fields of a `GraphLocation`."""
        if not isinstance(self.place, GraphLocation):
            return self
        return self._replace(place=GraphLocation(layer=self.place.layer, **place))
