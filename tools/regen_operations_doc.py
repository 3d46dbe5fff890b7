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
a version are those of oneDNN Graph that IRs may have too; [below](#onednn-graph) are the kinds that
oneDNN Graph files may have.

| operation | version | attributes | element types | |
|---|---|---|---|---|
"""

MISSING = """
## OpenVINO's operations that are not implemented

{missing}. Layers of types that are in no opset, such as those of OpenVINO's plugins and of
extension libraries, load, and a run that needs one is refused by name.
`deconv_ir.operations.register` adds an operation of your own.
"""

ONEDNN = """
## oneDNN Graph

The kinds of operations that [oneDNN Graph files](onednn.md) may have. Attributes have the names of
oneDNN; types are those that its documents list (the last one holds for the inputs that follow).

| kind | attributes | types of inputs | types of outputs | |
|---|---|---|---|---|
"""


KINDS_PAGE = TARGET.parent / "onednn.md"
DOCUMENT = "https://uxlfoundation.github.io/oneDNN/dev_guide_op_{}.html"
KINDS_HEAD = """
## Kinds

| kind and its document | runs | can be an IR |
|---|---|---|
"""


def onednn_rows() -> list[str]:
    """Return a row for each kind of oneDNN Graph."""
    from deconv_ir.formats.onednn_json.kinds import UNSUPPORTED, kinds_table

    lines = [
        f"| {row.kind} | {', '.join(f'`{name}`' for name in row.attributes)} "
        f"| {row.inputs} | {row.outputs} | {row.summary} |\n"
        for row in kinds_table()
    ]
    rest = ", ".join(sorted(UNSUPPORTED))
    lines.append(f"\nFiles with these kinds load, and are refused by name when they run: {rest}.\n")
    return lines


def write_kinds() -> None:
    """Write the table of kinds, the last section of docs/onednn.md."""
    from deconv_ir.formats.onednn_json.kinds import KINDS, UNSUPPORTED
    from deconv_ir.formats.onednn_json.to_openvino import has_counterpart

    states = dict.fromkeys(UNSUPPORTED, ("refused by name", ""))
    for name, kind in KINDS.items():
        written = has_counterpart(kind.operation(name, {None}))
        states[name] = ("yes", "yes" if written else "no")
    rows = [
        f"| [{name}]({DOCUMENT.format(name.lower())}) | {runs} | {written} |\n"
        for name, (runs, written) in sorted(states.items(), key=lambda item: item[0].lower())
    ]
    text, found, _ = KINDS_PAGE.read_text().partition(KINDS_HEAD)
    if not found:
        sys.exit(f"{KINDS_PAGE} lacks the heading of its table")
    KINDS_PAGE.write_text(text + KINDS_HEAD + "".join(rows))


def missing_operations() -> str:
    """Name the operations of OpenVINO's opsets that are not implemented."""
    from deconv_ir.ops import all_operations
    from deconv_ir.ops.opsets import OPERATIONS

    missing = OPERATIONS - {operation.type for operation in all_operations()}
    return (
        f"{', '.join(sorted(missing))} of opset17; none of opset1 to opset16" if missing else "None"
    )


def main() -> None:
    """Write the tables."""
    from deconv_ir.ops.table import operations_table

    lines = [
        f"| {row.type} | {', '.join(row.versions)} "
        f"| {', '.join(f'`{name}`' for name in row.attributes)} "
        f"| {row.element_types} | {row.summary.replace('|', chr(92) + '|')} |\n"
        for row in operations_table()
    ]
    missing = MISSING.format(missing=missing_operations())
    write_kinds()
    TARGET.write_text(HEAD + "".join(lines) + missing + ONEDNN + "".join(onednn_rows()))


if __name__ == "__main__":
    main()
