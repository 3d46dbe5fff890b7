"""Fixes of files in place, or a diff of the changes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from deconv_ir.formats.files import rewrite
from deconv_ir.formats.openvino_xml.weights import weights_beside
from deconv_ir.linter.engine import FileResult, read_or_check
from deconv_ir.linter.fix import fix_bytes

from ..shared.common import STREAM, Mistake, unified_diff

if TYPE_CHECKING:
    from .request import LintRequest
    from .settings import LintSettings


def fix_files(
    files: list[str], settings: LintSettings, request: LintRequest
) -> tuple[list[FileResult], int, bool]:
    """Fix files one after the other; with --diff, print a diff instead.

    Return the remaining findings of each file, the number of fixed ones, and whether any file
    changed, or would change.
    """
    limits = request.limits
    results = []
    total = 0
    any_changed = False
    for file, chosen in [(file, settings.options(file)) for file in files]:
        if file == STREAM:
            raise Mistake(
                "standard input cannot be fixed in place (name a file, or use --diff with one)"
            )
        data = read_or_check(file, chosen, limits)
        if isinstance(data, FileResult):
            results.append(data)
            continue
        beside = request.weights or weights_beside(file)
        fixed_data, fixed, result = fix_bytes(
            data, file, chosen, beside, limits, unsafe=request.unsafe_fixes
        )
        results.append(result._replace(parsed=None))
        total += fixed
        if fixed_data == data:
            continue
        any_changed = True
        if request.diff:
            _show_diff(data, fixed_data, file)
        else:
            rewrite(Path(file), fixed_data, "the fixed file")
    return results, total, any_changed


def _show_diff(before: bytes, after: bytes, file: str) -> None:
    old, new = (data.decode("utf-8", "replace") for data in (before, after))
    for line in unified_diff(old, new, file):
        colour = {"-": "red", "+": "green", "@": "cyan"}.get(line[0])
        click.echo(click.style(line, fg=colour) if colour else line, nl=False)
