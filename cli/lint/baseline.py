"""Separation of known and new findings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from deconv_ir.linter.baseline import Baseline

if TYPE_CHECKING:
    from deconv_ir.linter.engine import Result

    from .settings import Settings


def apply(
    file: str, results: list[Result], settings: Settings, *, update: bool
) -> tuple[list[Result], int]:
    """Remove the findings of a baseline from the results; also return their number.

    With `update`, the findings of the checked files are written to the baseline first.
    """
    stated = settings.config(results[0].file if results else "")
    path, root = Path(file), Path(stated.folder) if stated.file else None
    if update:
        exists = path.exists()
        baseline = Baseline.read(path, root) if exists else Baseline(path, root)
        checked = {result.file: settings.options(result.file).rules for result in results}
        baseline.update(checked, (f for result in results for f in result.findings))
    else:
        baseline = Baseline.read(path, root)
    left = []
    known = 0
    for result in results:
        fresh = baseline.new(result.findings)
        known += len(result.findings) - len(fresh)
        left.append(result.replace(findings=fresh))
    return left, known
