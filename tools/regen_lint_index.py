"""Write deconv_ir/linter/_index.py: the facts about lint rules that are needed at start."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
TARGET = ROOT / "deconv_ir" / "linter" / "_index.py"

HEAD = '''"""Facts about lint rules that are needed at start, written by `make regen`.

Each row has the fields of `catalogue.Entry`.
"""
# fmt: off
# ruff: noqa: E501

from typing import Any

from .rule import ANY_DECONVOLUTION, DECONVOLUTION, ERROR, INFO, WARNING

ROWS: tuple[tuple[Any, ...], ...] = (
'''


def main() -> None:
    """Import every family's module and write a row for each of its rules."""
    from deconv_ir.linter.rule import ANY_DECONVOLUTION, DECONVOLUTION, FAMILIES, REGISTRY

    names = {(): "()", DECONVOLUTION: "DECONVOLUTION", ANY_DECONVOLUTION: "ANY_DECONVOLUTION"}
    lines = [HEAD]
    codes: list[str] = []
    for digit, family in FAMILIES.items():
        before = set(REGISTRY)
        importlib.import_module(f"deconv_ir.linter.rules.{family}")
        for code in sorted(REGISTRY.keys() - before):
            rule = REGISTRY[code]
            if not rule.code.startswith(f"IR{digit}"):
                sys.exit(f"{rule.code} does not belong to the family {family}")
            codes += [rule.code, rule.name]
            has_check = rule.check is not None or rule.check_layer is not None
            types = names.get(rule.types, repr(rule.types))
            when = rule.when if has_check else None
            lines.append(
                f"    ({rule.code!r}, {rule.name!r}, {rule.severity.name}, {rule.library_rules!r},"
                f" {types}, {when!r}, {rule.deep}),\n".replace("'", '"')
            )
    if len(set(codes)) < len(codes):
        sys.exit(f"codes and names of rules must be unique: {sorted(codes)}")
    TARGET.write_text("".join([*lines, ")\n"]))


if __name__ == "__main__":
    main()
