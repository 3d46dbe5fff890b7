"""Write docs/operations.md: the table of operations, from the registry."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))
TARGET = ROOT / "docs" / "operations.md"

HEAD = """# Operations

Written by `tools/regen_operations_doc.py` from the registry; `deconv-run --list-operations`
prints the same table.

A version is the opset in which an operation got this form; a layer of a later opset has the
newest form before it. Element types are those of the first input. The two operations without
a version are those of the oneDNN graph.

| operation | version | attributes | element types | |
|---|---|---|---|---|
"""


def main() -> None:
    """Write the table."""
    from deconv_ir.ops.table import operations_table

    lines = [
        f"| {row.type} | {', '.join(row.versions)} "
        f"| {', '.join(f'`{name}`' for name in row.attributes)} "
        f"| {row.element_types} | {row.summary.replace('|', chr(92) + '|')} |\n"
        for row in operations_table()
    ]
    TARGET.write_text(HEAD + "".join(lines))


if __name__ == "__main__":
    main()
