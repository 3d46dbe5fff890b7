"""What a rule is, and what it reports.

Kept free of anything slow to import or to create: a process that lints one
small file must start at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar

from deconv_ir.ir.findings import Severity

if TYPE_CHECKING:
    from deconv_ir.errors import DeconvError
    from deconv_ir.ir.findings import Finding
    from deconv_ir.ir.graph import Layer, Place
    from deconv_ir.linter.subject import Subject
    from deconv_ir.ops.convolution.deconvolution import Deconvolution

ERROR, WARNING, INFO = Severity.ERROR, Severity.WARNING, Severity.INFO

FAMILIES = {
    "1": "file",
    "2": "graph",
    "3": "attributes",
    "4": "shapes",
    "5": "weights",
    "6": "portability",
}
"""First digit of a rule's code -> the family it belongs to."""

Edit = tuple[int, int, str]
"""Start and end of a span of the file's text, and what should stand there."""


class Report:
    """What a rule says about a file.

    Attributes
    ----------
    message : str
        What is wrong, without the place.
    place : Place or (int, int)
        The part of the graph, or a span of the file's text.
    expected, actual : Any
    hint : str or None
        What the user can do about it.
    edits : tuple of Edit
        What `--fix` does about it.
    related : int or None
        Index of another layer that has a part in it.
    """

    __slots__ = ("actual", "edits", "expected", "hint", "message", "place", "related")

    def __init__(
        self,
        message: str,
        place: Place | tuple[int, int] | None,
        *,
        expected: Any = None,
        actual: Any = None,
        hint: str | None = None,
        edits: tuple[Edit, ...] = (),
        related: int | None = None,
    ) -> None:
        self.message = message
        self.place = place
        self.expected = expected
        self.actual = actual
        self.hint = hint
        self.edits = edits
        self.related = related

    @classmethod
    def of(cls, found: DeconvError | Finding, edits: tuple[Edit, ...] = ()) -> Report:
        """Make a report of an error of the library, or of a finding of inference."""
        report = cls(
            found.message,
            found.place,
            expected=found.expected,
            actual=found.actual,
            hint=found.hint,
            edits=edits,
        )
        if report.place is None and found.line is not None:
            report.place = (-found.line, found.column or 0)
        return report


class Rule:
    """One kind of mistake.

    A subclass stands in a file of its own.  Its docstring says what the rule
    finds and why that matters, and ends with two XML fragments, after
    ``Fails::`` and ``Passes::``, which the tests run.

    Attributes
    ----------
    code : str
        Stable and short: ``IR`` and three digits, the first of them the family's.
    name : str
        Stable and readable.
    severity : Severity
    slugs : tuple of str
        `rule` of those errors and findings of the library that are this
        rule's; see `claims`.
    types : tuple of str
        Types of layers that the rule is about; without one of them in the
        graph it is not run.  Empty: it always is.
    when : str
        Name of an attribute of `Subject` that is empty, or false, where the
        rule has nothing to say; its file is not imported then.
    fix : str
        What `--fix` does; empty: nothing.
    deep : bool
        It reads all weights, so it runs only with `--deep`.
    """

    code: ClassVar[str] = ""
    name: ClassVar[str] = ""
    severity: ClassVar[Severity] = ERROR
    slugs: ClassVar[tuple[str, ...]] = ()
    types: ClassVar[tuple[str, ...]] = ()
    when: ClassVar[str] = ""
    fix: ClassVar[str] = ""
    deep: ClassVar[bool] = False

    @staticmethod
    def claims(found: DeconvError | Finding) -> bool:
        """Tell whether a finding with one of the rule's slugs is this rule's.

        Rules are asked in the order of their codes; the first one that claims
        a finding has it.
        """
        return True

    def check(self, subject: Subject) -> Iterator[Report]:
        """Find the mistakes in one file; what other parts of the library found comes first."""
        for found in subject.found(self):
            yield self.report(found, subject)

    def report(self, found: DeconvError | Finding, subject: Subject) -> Report:
        """Present something that another part of the library found."""
        return Report.of(found)


class LayerRule(Rule):
    """A rule that looks at one layer at a time.

    Layers that differ in name and id alone are looked at once, as long as
    there is nothing to say about them.
    """

    def check(self, subject: Subject) -> Iterator[Report]:
        """Find the mistakes in one file."""
        for found in subject.found(self):
            yield self.report(found, subject)
        for group in subject.alike(*self.types):
            reports = list(self.check_layer(group[0], subject.graph.layers[group[0]], subject))
            if reports:
                yield from reports
                for index in group[1:]:
                    yield from self.check_layer(index, subject.graph.layers[index], subject)

    def check_layer(self, index: int, layer: Layer, subject: Subject) -> Iterator[Report]:
        """Find the mistakes in one layer, from its attributes, ports and inputs alone."""
        raise NotImplementedError


class DeconvolutionRule(LayerRule):
    """A rule about transposed convolutions whose attributes and inputs hold together."""

    types: ClassVar[tuple[str, ...]] = ("ConvolutionBackpropData", "GroupConvolutionBackpropData")

    def check_layer(self, index: int, layer: Layer, subject: Subject) -> Iterator[Report]:
        """Find the mistakes in one layer."""
        if layer.operation.implemented and index not in subject.unfit:
            operation: Any = layer.operation
            yield from self.check_deconvolution(index, layer, operation, subject)

    def check_deconvolution(
        self, index: int, layer: Layer, operation: Deconvolution, subject: Subject
    ) -> Iterator[Report]:
        """Find the mistakes in one transposed convolution."""
        raise NotImplementedError


def family(code: str) -> str:
    """Return the family that a code belongs to."""
    return FAMILIES[code.removeprefix("IR")[0]]
