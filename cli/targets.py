"""Where arrays go."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from . import npy
from .common import STREAM, Mistake

if TYPE_CHECKING:
    from deconv_ir.ir.dtypes import Array

    from .guard import Guard

ARCHIVE = ".npz"


def output_targets(
    option: str, names: Sequence[str], where: str, force: bool, guard: Guard
) -> dict[str, Path | None]:
    """Return where each array goes, before anything is computed.

    Parameters
    ----------
    option : str
        ``--output``, ``--save-inputs``: for messages.
    names : sequence of str
        Of the arrays.
    where : str
        A file, a directory (one that ends with ``/`` is made), ``-`` or
        nothing, which is the current directory.
    force : bool
        Whether files may be overwritten.
    guard : Guard
        Knows which may not be, whatever `force` says.

    Returns
    -------
    dict
        Name -> file, the same one for all in a .npz file; None: standard
        output.  Empty where `where` is the null device.

    Raises
    ------
    Mistake
        Nothing can be written there.
    """
    if where == os.devnull:
        return {}
    if where == STREAM:
        name = _for_stdout(option, names)
        guard.allow(option, None)
        return {name: None}
    folder = Path(where)
    targets: dict[str, Path | None]
    if where and not folder.is_dir() and not where.endswith("/"):
        if len(names) > 1 and folder.suffix != ARCHIVE:
            raise Mistake(
                f"{option} {where} is one array, there are {len(names)} "
                "(name a .npz file, an existing directory, or end the name with '/')"
            )
        targets = dict.fromkeys(names, folder)
        folder = folder.parent
    else:
        targets = dict(zip(names, file_names(folder, names), strict=True))
        if where.endswith("/"):
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise Mistake(f"{where}: cannot create the directory: {error.strerror}") from error
    if not folder.is_dir():
        raise Mistake(f"{option} {where}: directory {folder} does not exist")
    for target in dict.fromkeys(targets.values()):
        guard.allow(option, target)
        if target is not None and target.exists():
            if target.is_dir():
                raise Mistake(f"{target} is a directory")
            if not force:
                raise Mistake(f"{target} already exists (use --force to overwrite)")
    return targets


def _for_stdout(option: str, names: Sequence[str]) -> str:
    """Return the name of the one array that goes to standard output."""
    if len(names) != 1:
        raise Mistake(
            f"{option} {STREAM} writes one array, there are {len(names)} "
            "(name a .npz file or a directory)"
        )
    if sys.stdout is not None and sys.stdout.isatty():
        raise Mistake(
            f"{option} {STREAM} writes binary data, and standard output is a terminal "
            "(redirect it, or name a file)"
        )
    return names[0]


def write_arrays(arrays: Mapping[str, Array], targets: Mapping[str, Path | None]) -> None:
    """Write arrays where `output_targets` says, each file whole or not at all.

    Raises
    ------
    OutputError
        A file cannot be written.
    """
    archives: dict[Path, dict[str, Array]] = {}
    for name, target in targets.items():
        if target is None:
            npy.write_stdout(arrays[name])
        elif target.suffix == ARCHIVE:
            archives.setdefault(target, {})[name] = arrays[name]
        else:
            npy.write(arrays[name], target)
    for path, together in archives.items():
        from . import npz

        npz.write(together, path)


def file_names(folder: Path, names: Sequence[str]) -> list[Path]:
    """Make file names of output names: safe characters, no two alike."""
    paths: list[Path] = []
    for name in names:
        safe = "".join(c if c.isalnum() or c in "._-" else "_" for c in name)[:150].lstrip(".")
        stem = safe or "output"
        path, number = folder / f"{stem}.npy", 1
        while path in paths:
            number += 1
            path = folder / f"{stem}.{number}.npy"
        paths.append(path)
    return paths
