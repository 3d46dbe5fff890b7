"""Application of fixes, without other changes of the file."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable

from deconv_ir.edits import Edit
from deconv_ir.findings import Finding
from deconv_ir.formats.openvino_xml.text import XMLText
from deconv_ir.limits import DEFAULT_LIMITS, Limits
from deconv_ir.linter.engine import FileResult, check_bytes
from deconv_ir.linter.options import CheckOptions

MAX_ROUNDS = 10
"""Maximum number of rounds: a fix can reveal the next finding; mostly one round suffices."""


def fix_bytes(
    data: bytes,
    name: str,
    options: CheckOptions,
    weights: str | os.PathLike[str] | None = None,
    limits: Limits = DEFAULT_LIMITS,
    *,
    unsafe: bool = False,
) -> tuple[bytes, int, FileResult]:
    """Apply all safe fixes, until no finding has one; see `check_bytes`.

    With `unsafe`, also apply fixes that the rest of the file does not confirm.  The .bin is never
    written.

    Returns
    -------
    data : bytes
        The file; bytes outside of the edits are unchanged.
    fixed : int
        Number of findings with an applicable fix that are gone.
    result : FileResult
        The remaining findings.  If fixes do not reduce the findings, the file is left unchanged.
    """
    original = data

    def check(data: bytes, *, resume: bool = True) -> FileResult:
        return check_bytes(data, name, options, weights, limits, resume=resume)

    first = result = check(data)
    resume = True
    if unsafe:
        data = _corrected(data, first, check)
        result = check(data)
        # Declared dims change to fit a layer only if it is not one of several possible corrections.
        resume = any(f.fix is not None and f.fix.alternatives for f in result.findings)
        result = result if resume else check(data, resume=False)
    best = data, result
    for _ in range(MAX_ROUNDS):
        edited = _edited(result, _applicable(result, unsafe))
        if edited is None:
            break
        data = edited
        result = check(data, resume=resume)
        # A dim that is fixed at one end of an edge no longer matches the other end, so a round may
        # add as many findings as it fixes.
        if len(_applicable(result, unsafe)) < len(_applicable(best[1], unsafe)):
            best = data, result
    data, result = best
    if data == original:
        return data, 0, first
    if unsafe:
        result = check(data)
    promised = Counter(
        _identity(f) for f in first.findings if f.fix is not None and (f.fix.safe or unsafe)
    )
    gone = promised - Counter(map(_identity, result.findings))
    fixes: Counter[str] = Counter()
    for (code, _, _), count in gone.items():
        fixes[code] += count
    return data, gone.total(), result._replace(fixes=tuple(sorted(fixes.items())))


def _identity(finding: Finding) -> tuple[str, str | None, str]:
    return finding.code, finding.layer, finding.message


def _corrected(data: bytes, result: FileResult, check: Callable[[bytes], FileResult]) -> bytes:
    """Make corrections of layers, before declared dims and types are changed to fit them."""
    for _ in range(MAX_ROUNDS):
        fixes = [f.fix for f in result.findings if f.fix is not None]
        diagnosed = [fix.edits for fix in fixes if fix.title and not fix.alternatives]
        changed = _edited(result, diagnosed)
        if changed is None:
            break
        after = check(changed)
        if len(after.findings) >= len(result.findings):
            break
        data, result = changed, after
    return data


def _applicable(result: FileResult, unsafe: bool) -> list[tuple[Edit, ...]]:
    """Return the edits of the fixes that may be applied."""
    fixes = [f.fix for f in result.findings if f.fix is not None]
    return [fix.edits for fix in fixes if fix.safe or (unsafe and not fix.alternatives)]


def _edited(result: FileResult, fixes: list[tuple[Edit, ...]]) -> bytes | None:
    """Return the bytes of a checked file with fixes applied; None if none can be applied."""
    file_text = None if result.parsed is None else result.parsed.file_text
    if not fixes or not isinstance(file_text, XMLText):
        return None
    try:
        return file_text.edited(_without_overlaps(fixes))
    except ValueError:
        return None  # the encoding does not reproduce the same bytes


def _without_overlaps(fixes: list[tuple[Edit, ...]]) -> list[Edit]:
    """Choose edits that do not overlap; the rest wait for the next round."""
    taken: list[Edit] = []
    by_start = sorted(fixes, key=lambda edits: edits[0][0])
    end = -1
    for edits in by_start:
        ordered = sorted(edits)
        if ordered[0][0] < end or (taken and ordered[0][:2] == taken[-1][:2]):
            continue
        taken += ordered
        end = max(edit[1] for edit in ordered)
    return taken
