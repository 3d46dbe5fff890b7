"""The destinations of arrays."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from deconv_ir.errors import OutputError
from deconv_ir.formats import npy, npz

from .common import STREAM, Mistake, require_absent

if TYPE_CHECKING:
    from deconv_ir.ir.dtypes import Array

    from .guard import Guard


def output_targets(
    option: str, names: Sequence[str], where: str, force: bool, guard: Guard
) -> dict[str, Path | None]:
    """Return the destination of each array, before any computation.

    `where` is a file, a directory (created if it ends with ``/``), ``-``, or empty for the current
    directory; the result is empty for the null device.  All arrays of a .npz file have the same
    path; the path of standard output is None.
    """
    if where == os.devnull:
        return {}
    if where == STREAM:
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
        guard.allow(option, None)
        return {names[0]: None}
    folder = Path(where)
    targets: dict[str, Path | None]
    if where and not folder.is_dir() and not where.endswith("/"):
        if len(names) > 1 and folder.suffix != npz.SUFFIX:
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
        if target is not None and target.is_dir():
            raise Mistake(f"{target} is a directory")
        if target is not None:
            require_absent(target, force)
    return targets


def write_arrays(arrays: Mapping[str, Array], targets: Mapping[str, Path | None]) -> None:
    """Write arrays to the destinations of `output_targets`, each file atomically."""
    archives: dict[Path, dict[str, Array]] = {}
    for name, target in targets.items():
        if target is None:
            if sys.stdout is None:
                raise OutputError("standard output is closed")
            npy.write_stream(sys.stdout.buffer, arrays[name])
            sys.stdout.buffer.flush()
        elif target.suffix == npz.SUFFIX:
            archives.setdefault(target, {})[name] = arrays[name]
        else:
            npy.write(arrays[name], target)
    for path, together in archives.items():
        npz.write(together, path)


def file_names(folder: Path, names: Sequence[str]) -> list[Path]:
    """Make file names of output names: safe characters, all distinct."""
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
