"""Putting right what can be, touching nothing else in the file."""

from __future__ import annotations

import os

from deconv_ir.formats.openvino_xml.source import Source
from deconv_ir.limits import DEFAULT_LIMITS, Limits
from deconv_ir.linter.engine import Result, check_bytes
from deconv_ir.linter.options import Options
from deconv_ir.linter.report import Edit

MAX_ROUNDS = 10
"""A fix can bring the next one into sight; mostly one round does."""


def fix_bytes(
    data: bytes,
    name: str,
    options: Options,
    weights: str | os.PathLike[str] | None = None,
    limits: Limits = DEFAULT_LIMITS,
    *,
    unsafe: bool = False,
) -> tuple[bytes, int, Result]:
    """Apply the fixes of all findings that have a safe one, until none has.

    Parameters
    ----------
    data : bytes
        The .xml.
    name : str
        What messages call it.
    options : Options
    weights : path-like, optional
        Where the .bin is; it is never written.
    limits : Limits
    unsafe : bool
        Also apply those that the rest of the file does not confirm.

    Returns
    -------
    data : bytes
        Every byte outside of the edits is as it was.
    fixed : int
        How many findings were put right.
    result : Result
        What is left.  Where fixes lead to no fewer findings, the file is left as it is.
    """
    result = check_bytes(data, name, options, weights, limits, resume=not unsafe)
    best = data, 0, result
    fixed = 0
    for _ in range(MAX_ROUNDS):
        chosen, count = _without_overlaps(_applicable(result, unsafe))
        source = None if result.document is None else result.document.source
        if not chosen or not isinstance(source, Source):
            break
        try:
            data = source.edited(chosen)
        except ValueError:
            break  # an encoding that does not lead back to the same bytes
        result = check_bytes(data, name, options, weights, limits, resume=not unsafe)
        fixed += count
        # A dim that is put right at one end of an edge no longer fits the other end, so a
        # round may leave as many findings as it mends.
        if len(_applicable(result, unsafe)) < len(_applicable(best[2], unsafe)):
            best = data, fixed, result
    if unsafe:
        data, fixed, _ = best
        best = data, fixed, check_bytes(data, name, options, weights, limits)
    return best


def _applicable(result: Result, unsafe: bool) -> list[tuple[Edit, ...]]:
    """Return the edits of the fixes that may be applied."""
    return [fix.edits for _, fix in result.fixes if fix.safe or unsafe]


def _without_overlaps(fixes: list[tuple[Edit, ...]]) -> tuple[list[Edit], int]:
    """Choose edits of which none touches another; the rest wait for the next round."""
    taken: list[Edit] = []
    count = 0
    by_start = sorted(fixes, key=lambda edits: edits[0][0])
    end = -1
    for edits in by_start:
        ordered = sorted(edits)
        if ordered[0][0] < end or (taken and ordered[0][:2] == taken[-1][:2]):
            continue
        taken += ordered
        end = max(edit[1] for edit in ordered)
        count += 1
    return taken, count
