"""Write deconv_ir/linter/_index.py: what is known of each lint rule without importing it."""

from __future__ import annotations

import importlib
import pkgutil
import pprint
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
TARGET = ROOT / "deconv_ir" / "linter" / "_index.py"

HEAD = '''"""What is known of each lint rule without importing it; written by `make regen`.

Code, name, severity, file, slugs, types of layers, when, passive, deep, what --fix
does, summary: the fields of `catalogue.Entry`.
"""

from typing import Any

ENTRIES: tuple[tuple[Any, ...], ...] = (
'''


def main() -> None:
    """Import every file in linter/rules/ and list what each defines."""
    from deconv_ir.linter.rule import DeconvolutionRule, LayerRule, Rule

    rules = importlib.import_module("deconv_ir.linter.rules")
    entries = []
    for info in pkgutil.iter_modules(rules.__path__):
        module = importlib.import_module(f"deconv_ir.linter.rules.{info.name}")
        rule: type[Rule] = module.RULE
        summary = (rule.__doc__ or "").strip().splitlines()[0]
        checks = (Rule.check, LayerRule.check, DeconvolutionRule.check)
        entries.append(
            (
                rule.code,
                rule.name,
                rule.severity.value,
                info.name,
                rule.slugs,
                rule.types,
                rule.when,
                rule.check is checks[0],
                rule.deep,
                rule.fix,
                summary,
            )
        )
    codes = [entry[0] for entry in entries]
    names = [entry[1] for entry in entries]
    if len(set(codes)) < len(codes) or len(set(names)) < len(names):
        sys.exit(f"codes and names of rules must be unique: {sorted(codes)} {sorted(names)}")
    lines = [HEAD]
    for entry in sorted(entries):
        text = pprint.pformat(entry, width=96, sort_dicts=False)
        lines.append("".join(f"    {line}\n" for line in text.splitlines())[:-1] + ",\n")
    lines.append(")\n")
    TARGET.write_text("".join(lines))
    import subprocess

    subprocess.run([sys.executable, "-m", "ruff", "format", "--quiet", str(TARGET)], check=True)


if __name__ == "__main__":
    main()
