"""Sorting findings into known and new ones."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from deconv_ir.linter.baseline import Baseline

from .common import Mistake

if TYPE_CHECKING:
    from deconv_ir.linter.engine import Result


def apply(file: str, results: list[Result], *, update: bool) -> tuple[list[Result], int]:
    """Take the known findings out of the results.

    Parameters
    ----------
    file : str
        The baseline.
    results : list of Result
    update : bool
        Write all findings to the baseline first.

    Returns
    -------
    results : list of Result
        With new findings only.
    known : int
        How many were known.

    Raises
    ------
    Mistake
        The baseline cannot be written.
    DeconvError
        It cannot be read.
    """
    path = Path(file)
    if update:
        try:
            Baseline(path).write(f for result in results for f in result.findings)
        except OSError as error:
            raise Mistake(f"{file}: cannot write the baseline: {error.strerror}") from None
    baseline = Baseline.read(path)
    left = []
    known = 0
    for result in results:
        fresh = baseline.new(result.findings)
        known += len(result.findings) - len(fresh)
        kept = {id(f) for f in fresh}
        positions = [i for i, f in enumerate(result.findings) if id(f) in kept]
        moved = {old: new for new, old in enumerate(positions)}
        fixes = [(moved[i], fix) for i, fix in result.fixes if i in moved]
        left.append(result._replace(findings=fresh, fixes=fixes))
    return left, known
