"""All rules by code, name and family; a family's module is imported when it is needed."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from typing import NamedTuple

from deconv_ir.errors import DeconvError
from deconv_ir.findings import Finding, Severity
from deconv_ir.hints import Advice, Hint
from deconv_ir.linter._index import ROWS
from deconv_ir.linter.rule import FAMILIES, REGISTRY, Rule, family_of

FALLBACK = "IR415"
"""The rule for errors of operations that no other rule claims."""


class Entry(NamedTuple):
    """The facts about a rule that determine whether it runs; see `rule.Rule`."""

    code: str
    name: str
    severity: Severity
    library_rules: tuple[str, ...]
    types: tuple[str, ...]
    when: str | None
    """None: the rule has no check, and only reports findings of the library."""
    deep: bool

    @property
    def family(self) -> str:
        """The family that the rule belongs to."""
        return family_of(self.code)


RULES: dict[str, Entry] = {row[0]: Entry(*row) for row in ROWS}
"""Code -> rule, in order."""

_BY_LIBRARY_RULE: dict[str, list[Entry]] = {}
for _entry in RULES.values():
    for _name in _entry.library_rules:
        _BY_LIBRARY_RULE.setdefault(_name, []).append(_entry)


def load_rule(code: str) -> Rule:
    """Return a rule, importing its family's module."""
    if code not in REGISTRY:
        importlib.import_module(f".rules.{RULES[code].family}", __package__)
    return REGISTRY[code]


def rule_for(library_rule: str, item: Finding) -> str:
    """Return the code of the rule that an error or finding of the library belongs to."""
    candidates = _BY_LIBRARY_RULE.get(library_rule, ())
    if len(candidates) == 1:
        return candidates[0].code
    for entry in candidates:
        claims = load_rule(entry.code).claims
        if claims is None or claims(item):
            return entry.code
    return FALLBACK


def is_claimed(library_rule: str) -> bool:
    """Whether a rule other than the fallback may claim findings of that name."""
    return library_rule in _BY_LIBRARY_RULE


def find_rule(word: str) -> Entry | None:
    """Return the rule of a code or a name; None if it is unknown."""
    folded = word.strip()
    if folded.upper() in RULES:
        return RULES[folded.upper()]
    return next((r for r in RULES.values() if r.name == folded.lower()), None)


def select_rules(words: Iterable[str]) -> frozenset[str]:
    """Return the codes that some words select.

    Parameters
    ----------
    words : iterable of str
        Codes, beginnings of codes (``IR4``), names, families, or ``ALL``.

    Raises
    ------
    DeconvError
        A word matches no rule.
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


def nearest_rule(word: str) -> Advice:
    """Return a hint for a word that matches no rule."""
    from deconv_ir.suggestions import nearest

    if f"IR{word}" in RULES:
        return Hint.DID_YOU_MEAN(f"IR{word}")
    # Codes are all similar, so a wrong code gives no suggestion.
    names = [*(rule.name for rule in RULES.values()), *FAMILIES.values()]
    return nearest(word, names) or Hint.RULES_ARE_LISTED()
