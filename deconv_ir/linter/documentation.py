"""What a rule's docstring says: for `--explain`, the rules' page and SARIF."""

from __future__ import annotations

import re
import textwrap
from typing import Final, NamedTuple

from deconv_ir.linter.catalogue import RULES, load_rule

_SECTION: Final = re.compile(r"^(Fails|Passes)(?: \(\.bin: ([^)]*)\))?::$", re.MULTILINE)


class Fragment(NamedTuple):
    """An example in a rule's docstring.

    Attributes
    ----------
    xml : str
    weights : str
        What the .bin beside it holds: a type and values, or ``zeros`` and a
        number of bytes; empty: there is none.
    """

    xml: str
    weights: str


class Explanation(NamedTuple):
    """What there is to say about a rule."""

    code: str
    name: str
    summary: str
    why: str
    fails: Fragment
    passes: Fragment


def explain(code: str) -> Explanation:
    """Return what the docstring of a rule says."""
    rule = load_rule(code)
    text = textwrap.dedent("    " + (type(rule).__doc__ or "")).strip()
    parts = _SECTION.split(text)
    summary, _, why = parts[0].strip().partition("\n\n")
    fragments = {
        kind: Fragment(textwrap.dedent(body).strip("\n"), weights or "")
        for kind, weights, body in zip(parts[1::3], parts[2::3], parts[3::3], strict=True)
    }
    return Explanation(
        code, RULES[code].name, summary, why, fragments["Fails"], fragments["Passes"]
    )
