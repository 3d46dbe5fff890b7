"""The files below a folder, without ignored ones."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from deconv_ir.formats.files import open_regular
from deconv_ir.formats.registry import format_of_suffix

if TYPE_CHECKING:
    from pathspec import GitIgnoreSpec

    from deconv_ir.formats.format import Format

SNIFFED_BYTES = 64 << 10
"""Bytes of a file that are read to detect a model."""
ALWAYS_SKIPPED = frozenset(
    {".git", ".hg", ".svn", ".venv", "venv", "node_modules", "__pycache__", ".tox"}
    | {".mypy_cache", ".pytest_cache", ".ruff_cache"}
)
IGNORE_FILES = (".gitignore", ".ignore")


def walk(folder: str) -> Iterator[str]:
    """Iterate over the models in a folder and below it, skipping ignored files.

    Models are files with the suffix of a format; of those whose suffix other files share, such as
    .json, the ones that look like models.
    """
    specs = list(_specs_above(Path(folder).absolute()))
    yield from _walk(folder, Path(folder).absolute(), specs)


def _walk(shown: str, absolute: Path, specs: list[tuple[Path, GitIgnoreSpec]]) -> Iterator[str]:
    own = _spec(absolute)
    if own is not None:
        specs = [*specs, (absolute, own)]
    try:
        entries = sorted(os.scandir(absolute), key=lambda e: e.name)
    except OSError:
        return
    for entry in entries:
        path = entry.name if shown == os.curdir else os.path.join(shown, entry.name)
        # Links to folders are not followed: they may form cycles.
        if entry.is_dir(follow_symlinks=False):
            if entry.name not in ALWAYS_SKIPPED and not _is_ignored(
                absolute / entry.name, specs, is_folder=True
            ):
                yield from _walk(path, absolute / entry.name, specs)
        elif (
            (known := format_of_suffix(entry.name.lower())) is not None
            and _may_be_file(entry)
            and not _is_ignored(absolute / entry.name, specs, is_folder=False)
            and _is_model(absolute / entry.name, known)
        ):
            yield path


def _is_model(path: Path, known: Format) -> bool:
    """Whether a file is of the format that its name announces, by its contents."""
    if not known.shares_suffixes:
        return True
    try:
        with open_regular(path) as stream:
            return known.is_likely(stream.read(SNIFFED_BYTES))
    except OSError:
        return False


def _may_be_file(entry: os.DirEntry[str]) -> bool:
    """Whether an entry is a file; a cyclic link is reported when it is read."""
    try:
        return entry.is_file()
    except OSError:
        return True


def _specs_above(folder: Path) -> Iterator[tuple[Path, GitIgnoreSpec]]:
    """Iterate over the ignore files above a folder, up to the root of its repository."""
    above = []
    for parent in folder.parents:
        above.append(parent)
        if (parent / ".git").exists():
            break
    else:
        return  # outside of a repository, ignore files above do not apply
    if (folder / ".git").exists():
        return
    for parent in reversed(above):
        spec = _spec(parent)
        if spec is not None:
            yield parent, spec


def _spec(folder: Path) -> GitIgnoreSpec | None:
    lines: list[str] = []
    for name in (*IGNORE_FILES, ".git/info/exclude"):
        file = folder / name
        if file.is_file():
            lines += file.read_text(encoding="utf-8", errors="replace").splitlines()
    if not lines:
        return None
    from pathspec import GitIgnoreSpec

    return GitIgnoreSpec.from_lines(lines)


def _is_ignored(path: Path, specs: list[tuple[Path, GitIgnoreSpec]], *, is_folder: bool) -> bool:
    """Whether a path is ignored by the last ignore file with a pattern for it."""
    verdict = False
    for folder, spec in specs:
        name = path.relative_to(folder).as_posix() + ("/" if is_folder else "")
        found = spec.check_file(name).include
        if found is not None:
            verdict = found
    return verdict
