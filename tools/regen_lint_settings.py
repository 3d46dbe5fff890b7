"""Write the table of settings in docs/linting.md, and docs/deconv-lint.schema.json."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
DOCS = ROOT / "docs"
TABLE = re.compile(r"(?<=\| setting \| form \| default \| meaning \|\n)(?:\|.*\n)*")


def main() -> None:
    """Write the table and the schema."""
    from deconv_ir.linter.settings import SETTINGS, json_schema

    rows = [f"| `{s.name}` | {s.form_shown} | {s.default} | {s.text} |" for s in SETTINGS]
    table = "\n".join(["|---|---|---|---|", *rows, ""])
    page = DOCS / "linting.md"
    page.write_text(TABLE.sub(lambda _: table, page.read_text("utf-8")), "utf-8")
    schema = json.dumps(json_schema(), indent=2) + "\n"
    (DOCS / "deconv-lint.schema.json").write_text(schema, "utf-8")


if __name__ == "__main__":
    main()
