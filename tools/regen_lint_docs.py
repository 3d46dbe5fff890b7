"""Write docs/rules.md from the lint rules."""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
TARGET = ROOT / "docs" / "rules.md"

HEAD = """\
# Rules of deconv-lint

Written by `make regen` from the rules in `deconv_ir/linter/rules`. `deconv-lint --explain RULE`
prints the same text.

Codes and names are stable. `--select`, `--ignore` and the settings take codes, beginnings of codes
(`IR4`), names and families. Rules of severity `info` run with `--severity info`, or when they are
named: a clean file that OpenVINO saved has no other findings.

A fix is safe, and made by `--fix`, where all that the file states about a tensor agrees except what
is changed: the layer that gives it, the attributes and inputs of that layer, and the layers that it
leads to. No default is written beside an unknown attribute, and no dim that a missing .bin would
decide. `--unsafe-fixes` makes the other fixes too.

Each rule has a fragment that fails. It shows the few lines that matter of
[this network](../tests/linter/network.xml), which passes all rules but
IR801, since its kernel is 3 and its stride 2:

| id | name | type | output |
|---|---|---|---|
| 0 | x | Parameter | 1,4,5,6 |
| 1 | weights | Const | 4,6,3,3 |
| 2 | deconv | ConvolutionBackpropData, strides 2,2, pads 1,1 | 1,6,9,11 |
| 3 | bias | Const | 1,6,1,1 |
| 4 | add | Add | 1,6,9,11 |
| 5 | act | ReLU | 1,6,9,11 |
| 6 | y/sink_port_0 | Result | |

A `<layer>` changes the layer with its id, an `<edge>` the edge to the same port; `<data>`,
`<input>` and `<output>` alone are those of `deconv`. Layers and edges with other ids are added;
an added layer has the ports that its edges name. A fragment of JSON is a whole oneDNN Graph file.
The tests run all fragments.

"""


def main() -> None:
    """Write the page."""
    from deconv_ir.linter.catalogue import RULES
    from deconv_ir.linter.rule import FAMILIES

    lines = [HEAD]
    for family in FAMILIES.values():
        rules = [RULES[code] for code, entry in RULES.items() if entry.family == family]
        title = "oneDNN Graph files" if family == "onednn" else family.capitalize()
        lines += [f"## {title}", "", "| code | name | severity | fix | |"]
        lines.append("|---|---|---|---|---|")
        for rule in rules:
            lines.append(
                f"| [{rule.code}](#{rule.code.lower()}-{rule.name}) | `{rule.name}` "
                f"| {rule.severity.value} | {'yes' if rule.fix else ''} | {_plain(rule.title)} |"
            )
        lines.append("")
        for rule in rules:
            words = [_plain(rule.title), _plain(rule.why)]
            if rule.fix:
                words.append(f"`--fix` {rule.fix}.")
            if rule.state.value != "stable":
                words.append(f"State: {rule.state.value}.")
            if rule.deep:
                words.append("Runs with `--deep` only.")
            if rule.weights:
                words.append(f"The .bin of the fragment: {rule.weights}.")
            lines += [
                f"### {rule.code} {rule.name}",
                "",
                *textwrap.wrap(" ".join(words), 100, break_on_hyphens=False),
            ]
            language = "json" if rule.fragment.startswith("{") else "xml"
            lines += ["", f"```{language}", rule.fragment, "```", ""]
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")


def _plain(text: str) -> str:
    """Convert the literals in a rule's text to Markdown."""
    return text.replace("``", "`")


if __name__ == "__main__":
    main()
