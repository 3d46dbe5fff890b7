"""Sorting findings into known and new ones."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from deconv_ir.formats.files import output_errors
from deconv_ir.linter.baseline import Baseline

if TYPE_CHECKING:
    from deconv_ir.linter.engine import Result


def apply(file: str, results: list[Result], *, update: bool) -> tuple[list[Result], int]:
    """Take the findings that a baseline knows out of the results; also return their number.

    With `update`, all findings are written to the baseline first.
    """
    path = Path(file)
    if update:
        with output_errors(file, "the baseline"):
            Baseline(path).write(f for result in results for f in result.findings)
    baseline = Baseline.read(path)
    left = []
    known = 0
    for result in results:
        fresh = baseline.new(result.findings)
        known += len(result.findings) - len(fresh)
        moved = {id(finding): position for position, finding in enumerate(fresh)}
        fixes = [
            (moved[id(result.findings[i])], fix)
            for i, fix in result.fixes
            if id(result.findings[i]) in moved
        ]
        left.append(result._replace(findings=fresh, fixes=fixes))
    return left, known
