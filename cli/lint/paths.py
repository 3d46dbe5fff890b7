"""Resolution of the paths and patterns of the command line."""

from __future__ import annotations

import os
from collections.abc import Iterable
from typing import TYPE_CHECKING

from deconv_ir.errors import one_line
from deconv_ir.formats.files import similar_file
from deconv_ir.formats.registry import models_beside, suffixes
from deconv_ir.hints import Hint

from ..shared.common import STREAM, Mistake

if TYPE_CHECKING:
    from deconv_ir.linter.engine import FileResult


def find_files(paths: Iterable[str]) -> list[tuple[str, bool]]:
    """Return each file once, in order, and whether the user named it (rather than its folder).

    A .bin refers to the .xml next to it, if any: a pre-commit hook gets all changed files.
    """
    found: dict[str, bool] = {}
    paths = list(paths)
    for path in paths:
        if len(paths) > 1 and path != STREAM and not os.path.lexists(path) and not _has_wild(path):
            found[path] = True  # a finding reports that it cannot be read
            continue
        for match in _matches(path):
            if match != STREAM and os.path.isdir(match):
                from .folders import walk

                for file in walk(match):
                    found.setdefault(file, False)
            elif models := models_beside(match):
                found |= dict.fromkeys(filter(os.path.exists, models), True)
            else:
                found[match] = True  # the reader reports files that are not regular
    return list(found.items())


def explain_none(paths: Iterable[str]) -> str:
    """Return why none of these paths leads to a file to check."""
    for path in paths:
        if (models := models_beside(path)) and os.path.isfile(path):
            name, model = os.path.basename(path), os.path.basename(models[0])
            return one_line(f"{name} is a weights file; there is no {model} next to it")
    return "folders skip what .gitignore or settings exclude"


def is_other_xml(result: FileResult) -> bool:
    """Whether a checked file is XML of another kind."""
    return [f.rule for f in result.findings] == ["wrong-root"]


def _has_wild(path: str) -> bool:
    return any(c in path for c in "*?[")


def _matches(path: str) -> list[str]:
    if path == STREAM or os.path.lexists(path):
        return [path]
    if not _has_wild(path):
        there = [path + suffix for suffix in suffixes() if os.path.isfile(path + suffix)]
        hint = Hint.DID_YOU_MEAN(there[0]) if there else similar_file(path, suffixes())
        raise Mistake(f"{path}: no such file or folder{f' ({hint})' if hint else ''}")
    import glob

    matches = sorted(glob.glob(path, recursive=True))
    if not matches:
        raise Mistake(f"{path}: no file matches")
    return matches
