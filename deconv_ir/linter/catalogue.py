"""All rules by code, name and family."""

from __future__ import annotations

from collections.abc import Iterable

from deconv_ir.errors import DeconvError, InputError
from deconv_ir.findings import Finding
from deconv_ir.hints import Advice, Hint
from deconv_ir.linter.rule import FAMILIES, REGISTRY, Rule, letters_of
from deconv_ir.linter.rules import (  # noqa: F401 - they declare the rules
    attributes,
    contradictions,
    decoders,
    file,
    graph,
    onednn,
    portability,
    redundancy,
    shapes,
    sizes,
    weights,
)
from deconv_ir.suggestions import nearest

FALLBACK = "IR415"
"""The rule for errors of operations that no other rule claims."""


RULES: dict[str, Rule] = dict(sorted(REGISTRY.items()))
"""Code -> rule, in order."""

_BY_LIBRARY_RULE: dict[str, list[Rule]] = {}
for _rule in RULES.values():
    for _name in _rule.library_rules:
        _BY_LIBRARY_RULE.setdefault(_name, []).append(_rule)


def register(rule: Rule) -> Rule:
    """Add a rule of another package, declared by `rule.rule`.

    Raises
    ------
    InputError
        Another rule has its code.
    """
    if rule.code in RULES and RULES[rule.code].name != rule.name:
        raise InputError(f"there is already a lint rule {rule.code}, {RULES[rule.code].name}")
    RULES[rule.code] = rule
    for name in rule.library_rules:
        _BY_LIBRARY_RULE.setdefault(name, []).append(rule)
    return rule


def rule_for(library_rule: str, item: Finding) -> str:
    """Return the code of the rule that an error or finding of the library belongs to."""
    candidates = _BY_LIBRARY_RULE.get(library_rule, ())
    if len(candidates) == 1:
        return candidates[0].code
    for rule in candidates:
        if rule.claims is None or rule.claims(item):
            return rule.code
    return FALLBACK


def is_claimed(library_rule: str) -> bool:
    """Whether a rule other than the fallback may claim findings of that name."""
    return library_rule in _BY_LIBRARY_RULE


def families() -> list[str]:
    """Return the families of all rules: those of other packages are last."""
    return list(dict.fromkeys([*FAMILIES.values(), *(rule.family for rule in RULES.values())]))


def find_rule(word: str) -> Rule | None:
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
        elif text.lower() in families():
            found = {r.code for r in RULES.values() if r.family == text.lower()}
        else:
            letters = letters_of(upper)
            found = {
                rule.code
                for rule in RULES.values()
                if rule.name == text.lower()
                or (rule.code.startswith(upper) and letters_of(rule.code) == letters)
            }
        if not found:
            raise DeconvError(f"there is no lint rule {text!r}", hint=nearest_rule(text))
        chosen |= found
    return frozenset(chosen)


def nearest_rule(word: str) -> Advice:
    """Return a hint for a word that matches no rule."""
    if f"IR{word}" in RULES:
        return Hint.DID_YOU_MEAN(f"IR{word}")
    # Codes are all similar, so a wrong code gives no suggestion.
    names = [*(rule.name for rule in RULES.values()), *families()]
    return nearest(word, names) or Hint.RULES_ARE_LISTED()
