"""The options of a check."""

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, NamedTuple

from deconv_ir.errors import DeconvError
from deconv_ir.findings import Severity
from deconv_ir.ir.options import Semantics
from deconv_ir.ir.shapes import Shape
from deconv_ir.linter.catalogue import RULES, select_rules
from deconv_ir.linter.plugins import load_rules
from deconv_ir.linter.rule import Rule, RuleState

if TYPE_CHECKING:
    from deconv_ir.linter.releases import Target

RANK = {Severity.INFO: 0, Severity.WARNING: 1, Severity.ERROR: 2}
"""Severities by weight."""
_DECLARED_DIMS = ("IR401", "IR402")
"""Rules about declared dims, which are valid only for the file's own input shapes."""


class CheckOptions(NamedTuple):
    """The options of a check."""

    rules: frozenset[str]
    """Codes of the rules that are run."""
    severities: tuple[tuple[str, Severity], ...] = ()
    """Code -> severity, if it differs from that of the rule."""
    semantics: Semantics = Semantics.SPEC
    reshape: tuple[tuple[str, Shape], ...] = ()
    """Input name -> shape to check at, instead of the file's."""
    deep: bool = False
    """Read all weights."""
    targets: "tuple[Target, ...]" = ()
    """Releases of OpenVINO that get a verdict."""
    unfixable: frozenset[str] = frozenset()
    """Codes of the rules whose findings have no fix."""
    hidden: frozenset[str] = frozenset()
    """Codes of the rules that are hidden only by severity: their findings are counted."""
    tables: tuple[tuple[str, tuple[tuple[str, object], ...]], ...] = ()
    """Family of another package's rules -> its settings, by name."""
    packages: tuple[str, ...] = ()
    """The packages of rules, with their versions."""
    selected: bool = False
    """Whether only rules in `select` are run."""

    @property
    def asked(self) -> tuple[Rule, ...]:
        """The rules to run, including hidden ones, in order of their codes."""
        if self.packages:
            load_rules()  # a process that was started for some files has not loaded them
        passed_over = _DECLARED_DIMS if self.reshape else ()
        codes = (self.rules | self.hidden).difference(passed_over)
        return tuple(RULES[code] for code in sorted(codes))

    def severity_of(self, code: str) -> Severity:
        """Return the severity of a rule's findings."""
        return dict(self.severities).get(code, RULES[code].severity)


def choose(
    *,
    select: Iterable[str] = (),
    ignore: Iterable[str] = (),
    extend_select: Iterable[str] = (),
    severity: Severity | str = Severity.WARNING,
    semantics: Semantics | str = Semantics.SPEC,
    severities: Mapping[str, str] | None = None,
    reshape: Mapping[str, Shape] | None = None,
    deep: bool = False,
    targets: Iterable[str] = (),
    fixable: Iterable[str] = (),
    unfixable: Iterable[str] = (),
    preview: bool = False,
    tables: tuple[tuple[str, tuple[tuple[str, object], ...]], ...] = (),
) -> CheckOptions:
    """Combine options.

    Parameters
    ----------
    select : iterable of str
        Rules to run, by code, beginning of a code, name or family; default:
        all.  Rules named here are run at any severity.
    ignore : iterable of str
        Rules to leave out.  If `select` and `ignore` both match a rule, the
        more specific entry wins, as in ruff.
    extend_select : iterable of str
        Rules to run in addition.
    severity : Severity or str
        Rules below this severity are not run, unless they are named.
    semantics : Semantics or str
    severities : mapping, optional
        Rule -> severity, instead of its own.
    reshape : mapping, optional
        Input name -> shape.
    deep : bool
        Read all weights, and run the rules that need that.
    targets : iterable of str
        Releases of OpenVINO that get a verdict, as ``openvino=2024.6``.
    fixable, unfixable : iterable of str
        Rules whose findings may be fixed, and rules whose findings may not; default: all may.  The
        more specific entry wins.
    preview : bool
        Run the rules in preview that are not named, too.
    tables : tuple
        Settings of the rules of other packages; see `Config.tables`.

    Raises
    ------
    DeconvError
        A rule, severity, semantics or target is unknown, or a package's rules cannot be loaded.
    """
    packages = load_rules()
    try:
        least = RANK[Severity(severity)]
    except ValueError:
        known = ", ".join(s.value for s in Severity)
        raise DeconvError(f"severity must be one of {known}; found {severity!r}") from None
    chosen_semantics = Semantics.of(semantics)
    fixable, unfixable = list(fixable), list(unfixable)
    changed: dict[str, Severity] = {}
    for word, name in (severities or {}).items():
        try:
            changed |= dict.fromkeys(select_rules([word]), Severity(name))
        except ValueError:
            raise DeconvError(f"severity of {word} must be one of error, warning, info") from None
    by_weight = frozenset(
        code for code, rule in RULES.items() if RANK[changed.get(code, rule.severity)] >= least
    )
    selected = list(select)
    named = [w for w in (*selected, *extend_select) if w.strip().upper() != "ALL"]
    all_of_a_weight = not selected or len(named) < len(selected)
    rules = (by_weight if all_of_a_weight else frozenset()) | select_rules(named)
    hidden = RULES.keys() - by_weight - rules if all_of_a_weight else frozenset()
    left_out = {
        code
        for word in ignore
        for code in select_rules([word])
        if not any(len(w) > len(word) and code in select_rules([w]) for w in named)
    }
    kept = [word for word in fixable if word.strip().upper() != "ALL"]
    by_default = not kept or len(kept) < len(list(fixable))
    fixed = RULES.keys() if by_default else select_rules(kept)
    never = {
        code
        for word in unfixable
        for code in select_rules([word])
        if not any(len(w) > len(word) and code in select_rules([w]) for w in kept)
    }
    if not deep:
        left_out |= {code for code, rule in RULES.items() if rule.deep}
    exact = {w.strip().upper() for w in named} | {w.strip().lower() for w in named}
    for code, rule in RULES.items():
        waits = rule.state is RuleState.PREVIEW and not preview
        if (waits or rule.state is RuleState.DEPRECATED) and exact.isdisjoint((code, rule.name)):
            left_out.add(code)
    return CheckOptions(
        rules=rules - left_out,
        severities=tuple(sorted(changed.items())),
        semantics=chosen_semantics,
        reshape=tuple((reshape or {}).items()),
        deep=deep,
        unfixable=frozenset((RULES.keys() - fixed) | never),
        targets=_parse_targets(targets),
        hidden=frozenset(hidden - left_out),
        tables=tables,
        packages=packages,
        selected=not all_of_a_weight,
    )


def _parse_targets(texts: Iterable[str]) -> "tuple[Target, ...]":
    texts = tuple(texts)
    if not texts:
        return ()
    from deconv_ir.linter.releases import parse_target

    return tuple(dict.fromkeys(map(parse_target, texts)))
