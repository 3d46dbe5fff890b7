"""The type of a lint rule, and its declaration: facts, a text with a failing fragment, a check."""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Hashable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from deconv_ir.errors import DeconvError, InputError, one_line
from deconv_ir.findings import Finding, Severity

if TYPE_CHECKING:
    from deconv_ir.findings import Finding
    from deconv_ir.ir.graph import Layer
    from deconv_ir.linter.context import LintContext

    Claims = Callable[[Finding], bool]
    Present = Callable[[Finding, LintContext], Finding | None]
    Check = Callable[[LintContext], Iterator[Finding]]
    CheckLayer = Callable[[int, Layer, LintContext], Iterator[Finding]]

ERROR, WARNING, INFO = Severity.ERROR, Severity.WARNING, Severity.INFO

FAMILIES = {
    "1": "file",
    "2": "graph",
    "3": "attributes",
    "4": "shapes",
    "5": "weights",
    "6": "portability",
    "7": "onednn",
    "8": "decoders",
    "9": "redundancy",
}
"""First digit of a rule's code -> its family, mostly its module, too."""

DECONVOLUTION = ("ConvolutionBackpropData", "GroupConvolutionBackpropData")
"""The transposed convolutions of OpenVINO's opsets."""
ANY_DECONVOLUTION = (*DECONVOLUTION, "ConvTranspose", "ConvolutionBackwardData")
"""The transposed convolutions of OpenVINO's opsets and of oneDNN Graph."""


REGISTRY: dict[str, Rule] = {}
"""Code -> rule; see `catalogue.RULES`."""


class RuleState(enum.Enum):
    """How far a rule can be relied upon; docs/stability.md says what each state promises.

    A rule in preview runs with `--preview`, or if it is named.  A deprecated one runs only if it
    is named.
    """

    PREVIEW = "preview"
    STABLE = "stable"
    DEPRECATED = "deprecated"


def family_of(code: str) -> str:
    """Return the family of the rule with a code; of one of another package, the code's letters."""
    letters = letters_of(code)
    return FAMILIES[code[2]] if letters == "IR" else letters.lower()


def letters_of(code: str) -> str:
    """Return the letters with which a code begins."""
    return code.rstrip("0123456789")


class Rule:
    """One kind of mistake; see `rule`, which gives the attributes with defaults as `facts`."""

    code: str
    """Stable and short: ``IR`` and three digits, the first of them the family's; of a rule of
    another package, the family in capitals, and a number."""
    name: str
    """Stable and readable."""
    severity: Severity
    text: str
    """A title of one line, why the mistake matters and, indented, `fails`."""
    fails: str = ""
    """The few lines of XML (or JSON) that show the mistake.  An element replaces the one with its
    id in the example network of docs/rules.md."""
    weights: str = ""
    """Contents of the .bin for the fragment: a type and values, or ``zeros`` and a number of bytes.
    Empty: the network's .bin."""
    library_rules: tuple[str, ...] = ()
    """`rule` of the errors and findings of the library that belong to this rule; see `claims`."""
    types: tuple[str, ...] = ()
    """Types of layers that the rule checks: it is not run for a graph without them.  Empty: it is
    always run."""
    when: str = ""
    """Name of an attribute of `LintContext`: if it is empty or false, the rule is not run."""
    fix: str = ""
    """Description of the fix that `--fix` makes; empty: no fix."""
    state: RuleState = RuleState.STABLE
    successor: str = ""
    """Code of the rule that replaces a deprecated one; empty: none."""
    docs: str = ""
    """Address of the page about the rule, of a rule of another package."""
    deep: bool = False
    """Whether the rule reads all weights; if so, it runs only with `--deep`."""
    target: str = ""
    """A target for which the fragment fails; if not empty, the rule runs only for targets."""
    claims: Claims | None = None
    """Whether a finding with one of `library_rules` belongs to this rule.  Rules are tried in the
    order of their codes; the finding belongs to the first that claims it."""
    present: Present | None = None
    """Completes a finding of the library; None if `check` reports the same."""
    check: Check | None = None
    """Finds the mistakes in one file."""
    check_layer: CheckLayer | None = None
    """Finds the mistakes in one layer of `types` from its attributes, ports and inputs. Layers that
    differ only in name and id are checked once if the first has no mistakes.
    """

    def __init__(self, code: str, name: str, severity: Severity, text: str, **facts: Any) -> None:
        unknown = facts.keys() - vars(Rule).keys()
        if unknown:
            raise TypeError(f"a rule has no {min(unknown)!r}")
        vars(self).update(facts, code=code, name=name, severity=severity, text=text)

    @property
    def has_check(self) -> bool:
        """Whether the rule finds mistakes itself, not only the library."""
        return self.check is not None or self.check_layer is not None

    @property
    def title(self) -> str:
        """The rule in one sentence."""
        return self.text.partition("\n")[0]

    @property
    def why(self) -> str:
        """Why the mistake matters, as one paragraph."""
        return " ".join(self._parts()[0].partition("\n")[2].split())

    @property
    def family(self) -> str:
        """The family that the rule belongs to."""
        return family_of(self.code)

    @property
    def fragment(self) -> str:
        """The failing fragment."""
        import textwrap

        fails = self.fails or f"    {self._parts()[2]}"
        return textwrap.dedent(fails).strip("\n").rstrip()

    def _parts(self) -> tuple[str, str, str]:
        """Split the text at the indented fragment."""
        import inspect

        return inspect.cleandoc(self.text).partition("\n\n    ")

    def found_in(self, context: LintContext) -> Iterator[Finding]:
        """Iterate over the mistakes that the rule itself finds in one file."""
        if self.check is not None:
            yield from self.check(context)
        if self.check_layer is None:
            return
        layers = context.graph.layers
        for group in context.alike(*self.types):
            reports = list(self.check_layer(group[0], layers[group[0]], context))
            if reports:
                yield from reports
                for index in group[1:]:
                    yield from self.check_layer(index, layers[index], context)


def check_once(
    layers: Iterable[tuple[int, Layer]],
    key: Callable[[Layer], Hashable],
    check: Callable[[int, Layer], Iterator[Finding]],
) -> Iterator[Finding]:
    """Check layers; once a layer has no mistakes, skip others with the same key."""
    right: set[Hashable] = set()
    for index, layer in layers:
        if (own := key(layer)) not in right:
            reports = list(check(index, layer))
            yield from reports
            if not reports:
                right.add(own)


def rule(
    code: str, name: str, severity: Severity, *, takes: str = "", **facts: Any
) -> Callable[[Callable[..., Any]], Rule]:
    """Declare a rule by the function that finds its mistakes.

    `takes` are the `library_rules`, separated by blanks; `facts` are further fields.

    The docstring is the text.  The parameters say what is checked: `context`, a file; `index`,
    `layer` and `context`, one layer of `types` (see `Rule.check_layer`); those with `operation`,
    one layer whose attributes and inputs are valid; `found` and `context`, a finding of the library
    (see `Rule.present`).  A function without parameters is not called: findings are reported
    unchanged.
    """

    def declare(written: Callable[..., Any]) -> Rule:
        count = written.__code__.co_argcount
        function = written if letters_of(code) == "IR" else _guarded(code, written)

        def check_valid_layer(index: int, layer: Layer, context: LintContext) -> Iterator[Finding]:
            is_valid = layer.operation.implemented and index not in context.unfit
            return function(index, layer, layer.operation, context) if is_valid else iter(())

        checks: dict[int, dict[str, Any]] = {
            0: {},
            1: {"check": function},
            2: {"present": function},
            3: {"check_layer": function},
            4: {"check_layer": check_valid_layer},
        }
        facts.update(checks[count], library_rules=tuple(takes.split()))
        found = Rule(code, name, severity, function.__doc__ or "", **facts)
        if code in REGISTRY:
            raise InputError(f"there is already a lint rule {code}, {REGISTRY[code].name}")
        REGISTRY[code] = found
        return found

    return declare


def _guarded(code: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a rule's function whose errors name the rule, as it is of another package."""
    import inspect

    def broken(error: Exception) -> InputError:
        reason = one_line(f"{type(error).__name__}: {error}")
        return InputError(f"lint rule {code} of another package failed: {reason}")

    if inspect.isgeneratorfunction(function):

        @functools.wraps(function)
        def iterate(*arguments: Any) -> Iterator[Any]:
            try:
                yield from function(*arguments)
            except DeconvError:
                raise
            except Exception as error:
                raise broken(error) from error

        return iterate

    @functools.wraps(function)
    def call(*arguments: Any) -> Any:
        try:
            return function(*arguments)
        except DeconvError:
            raise
        except Exception as error:
            raise broken(error) from error

    return call
