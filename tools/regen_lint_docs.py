"""Write docs/rules.md from the docstrings of the lint rules."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
TARGET = ROOT / "docs" / "rules.md"

HEAD = """\
# Rules of deconv-lint

Written by `make regen` from the rules in `deconv_ir/linter/rules`: `deconv-lint --explain RULE`
says the same.

Codes and names are stable. `--select`, `--ignore` and the settings take codes, beginnings of codes
(`IR4`), names and families. Rules of severity `info` run with `--severity info`, or when they are
named: a clean file that OpenVINO saved has no finding otherwise.

"""


def main() -> None:
    """Write the page."""
    from deconv_ir.linter.catalogue import RULES
    from deconv_ir.linter.documentation import Fragment, explain
    from deconv_ir.linter.rule import FAMILIES

    def code(title: str, fragment: Fragment) -> list[str]:
        beside = f" (with a .bin of {fragment.weights})" if fragment.weights else ""
        return [f"{title}{beside}:", "", "```xml", fragment.xml, "```", ""]

    lines = [HEAD]
    for family in FAMILIES.values():
        entries = [entry for entry in RULES.values() if entry.family == family]
        lines += [f"## {family.capitalize()}", "", "| code | name | severity | fix | |"]
        lines.append("|---|---|---|---|---|")
        for entry in entries:
            mark = "yes" if entry.fix else ""
            lines.append(
                f"| [{entry.code}](#{entry.code.lower()}-{entry.name}) | `{entry.name}` "
                f"| {entry.severity.value} | {mark} | {entry.summary.replace('``', '`')} |"
            )
        lines.append("")
        for entry in entries:
            told = explain(entry.code)
            lines += [f"### {entry.code} {entry.name}", "", told.summary.replace("``", "`"), ""]
            lines += [told.why.replace("``", "`"), ""]
            if entry.fix:
                lines += [f"`--fix` {entry.fix}.", ""]
            if entry.deep:
                lines += ["Runs with `--deep` only.", ""]
            lines += code("Fails", told.fails) + code("Passes", told.passes)
    TARGET.parent.mkdir(exist_ok=True)
    TARGET.write_text("\n".join(lines).rstrip() + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
