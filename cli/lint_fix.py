"""Fixing files in place, or showing what would change."""

from __future__ import annotations

import difflib
import os
from pathlib import Path
from typing import TYPE_CHECKING

import click

from deconv_ir.errors import DeconvError
from deconv_ir.formats.files import replace_file
from deconv_ir.formats.openvino_xml.document import Document
from deconv_ir.formats.openvino_xml.reader import read_file
from deconv_ir.formats.openvino_xml.weights import weights_beside
from deconv_ir.linter.engine import Result, check_document
from deconv_ir.linter.fix import fix_bytes

from .common import Mistake

if TYPE_CHECKING:
    from deconv_ir.limits import Limits
    from deconv_ir.linter.options import Options


def fix_files(
    files: list[str],
    options: list[Options],
    weights: str | None,
    limits: Limits,
    *,
    show: bool,
    unsafe: bool,
) -> tuple[list[Result], int, bool]:
    """Fix files, one after the other.

    Parameters
    ----------
    files : list of str
    options : list of Options
        What is checked in each file.
    weights : str or None
        The .bin, where it is not beside the .xml.
    limits : Limits
    show : bool
        Print a unified diff, and write nothing.
    unsafe : bool
        Also make the fixes that the rest of the file does not confirm.

    Returns
    -------
    results : list of Result
        What is left in each file.
    fixed : int
        Number of findings that were fixed.
    changed : bool
        Whether any file changed, or would.

    Raises
    ------
    Mistake
        A file cannot be written, or is standard input.
    """
    results = []
    total = 0
    any_changed = False
    for file, chosen in zip(files, options, strict=True):
        if file == "-":
            raise Mistake(
                "standard input cannot be fixed in place (name a file, or use --diff with one)"
            )
        path = Path(file)
        try:
            data = read_file(path, limits)
        except DeconvError as error:
            document = Document(file)
            document.problems.append(error)
            results.append(check_document(document, chosen))
            continue
        beside = weights or weights_beside(file)
        fixed_data, fixed, result = fix_bytes(data, file, chosen, beside, limits, unsafe=unsafe)
        results.append(result._replace(document=None))
        total += fixed
        if fixed_data == data:
            continue
        any_changed = True
        if show:
            click.echo(unified_diff(data, fixed_data, file), nl=False)
        else:
            _overwrite(path, fixed_data)
    return results, total, any_changed


def _overwrite(path: Path, data: bytes) -> None:
    target = path.resolve()  # what a link leads to, not the link
    try:
        mode = target.stat().st_mode
        with replace_file(target) as stream:
            os.fchmod(stream.fileno(), mode & 0o7777)
            stream.write(data)
    except OSError as error:
        raise Mistake(f"{path}: cannot write the fixed file: {error.strerror}") from None


def unified_diff(before: bytes, after: bytes, file: str) -> str:
    """Show what changed, as `patch` reads it."""
    old, new = (
        data.decode("utf-8", "replace").splitlines(keepends=True) for data in (before, after)
    )
    lines = difflib.unified_diff(old, new, f"a/{file}", f"b/{file}")
    out = []
    for line in lines:
        colour = {"-": "red", "+": "green", "@": "cyan"}.get(line[0])
        if not line.endswith("\n"):
            line += "\n\\ No newline at end of file\n"
        out.append(click.style(line, fg=colour) if colour else line)
    return "".join(out)
