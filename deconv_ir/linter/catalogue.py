"""All rules, by code, name and family; a rule's file is imported when it is needed."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from deconv_ir.errors import DeconvError
from deconv_ir.ir.findings import Finding, Severity
from deconv_ir.linter._index import ENTRIES
from deconv_ir.linter.rule import FAMILIES, family

if TYPE_CHECKING:
    from deconv_ir.linter.rule import Rule

FALLBACK = "IR415"
"""The rule for errors of operations that no other rule claims."""


class Entry(NamedTuple):
    """What is known of a rule without importing it; see `rule.Rule`."""

    code: str
    name: str
    severity: Severity
    module: str
    slugs: tuple[str, ...]
    types: tuple[str, ...]
    when: str
    passive: bool
    """It only files what other parts of the library found."""
    deep: bool
    fix: str
    summary: str

    @property
    def family(self) -> str:
        """The family that the rule belongs to."""
        return family(self.code)


RULES: dict[str, Entry] = {
    entry[0]: Entry(entry[0], entry[1], Severity(entry[2]), *entry[3:]) for entry in ENTRIES
}
"""Code -> rule, in order."""

_BY_SLUG: dict[str, list[Entry]] = {}
for _entry in RULES.values():
    for _slug in _entry.slugs:
        _BY_SLUG.setdefault(_slug, []).append(_entry)

_LOADED: dict[str, Rule] = {}


def load_rule(code: str) -> Rule:
    """Return a rule, importing its file."""
    found = _LOADED.get(code)
    if found is None:
        module = importlib.import_module(f".rules.{RULES[code].module}", __package__)
        found = _LOADED[code] = module.RULE()
    return found


def rule_for(slug: str, item: DeconvError | Finding) -> str:
    """Return the code of the rule that an error or finding of the library belongs to."""
    candidates = _BY_SLUG.get(slug, ())
    if len(candidates) == 1:
        return candidates[0].code
    for entry in candidates:
        if load_rule(entry.code).claims(item):
            return entry.code
    return FALLBACK


def find_rule(word: str) -> Entry | None:
    """Return the rule of a code or a name; None where there is none."""
    folded = word.strip()
    if folded.upper() in RULES:
        return RULES[folded.upper()]
    return next((r for r in RULES.values() if r.name == folded.lower()), None)


def select_rules(words: Iterable[str]) -> frozenset[str]:
    """Return the codes that some words choose.

    Parameters
    ----------
    words : iterable of str
        Codes, beginnings of codes (``IR4``), names, families, or ``ALL``.

    Raises
    ------
    DeconvError
        A word chooses nothing.
    """
    chosen: set[str] = set()
    for word in words:
        text = word.strip()
        upper = text.upper()
        if upper == "ALL":
            found = set(RULES)
        elif text.lower() in FAMILIES.values():
            found = {r.code for r in RULES.values() if r.family == text.lower()}
        elif upper.startswith("IR"):
            found = {code for code in RULES if code.startswith(upper)}
        else:
            found = {r.code for r in RULES.values() if r.name == text.lower()}
        if not found:
            raise DeconvError(f"there is no lint rule {text!r}", hint=nearest_rule(text))
        chosen |= found
    return frozenset(chosen)


def nearest_rule(word: str) -> str:
    """Return a hint for a word that chooses no rule."""
    from deconv_ir.suggestions import nearest

    if f"IR{word}" in RULES:
        return f"did you mean 'IR{word}'?"
    # Codes all look alike: one that is wrong leads to none.
    names = [*(rule.name for rule in RULES.values()), *FAMILIES.values()]
    return nearest(word, names) or "the documentation lists all rules"
