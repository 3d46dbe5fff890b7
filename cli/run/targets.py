"""The destinations of arrays."""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from deconv_ir.errors import OutputError
from deconv_ir.formats import npy, npz
from deconv_ir.formats.recognise import is_other_suffix

from ..shared.common import STREAM, Mistake, require_absent

if TYPE_CHECKING:
    from deconv_ir.formats.dumps import TensorFile
    from deconv_ir.ir.dtypes import Array

    from ..shared.guard import Guard


OTHER_KINDS = frozenset(
    {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".tsv", ".parquet", ".pkl"}
    | {".json", ".xml", ".hdf5", ".mat", ".zarr", ".html", ".pdf", ".svg", ".zip", ".gz", ".tar"}
)
"""Suffixes of files that are not arrays in the form of NumPy, beside those of models."""


class Targets(NamedTuple):
    """The destinations of arrays by their names.

    All arrays of a .npz file have the same path; the path of standard output is None.  The files of
    a folder are also `entries` of its manifest.
    """

    paths: Mapping[str, Path | None] = MappingProxyType({})
    entries: "tuple[TensorFile, ...]" = ()


def output_targets(
    option: str, names: Sequence[str], where: str, force: bool, guard: "Guard"
) -> Targets:
    """Choose the destination of each array, before any computation.

    `where` is a file, a directory (created if it ends with ``/``), ``-``, or empty for the current
    directory; the result is empty for the null device.
    """
    if where == os.devnull:
        return Targets()
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
        return Targets({names[0]: None})
    folder = Path(where)
    suffix = folder.suffix.lower()
    other = suffix in OTHER_KINDS or (is_other_suffix(suffix) and suffix != npz.SUFFIX)
    if other and not folder.is_dir() and not where.endswith("/"):
        guard.allow(option, where)  # a file that is read has a message of its own
        raise Mistake(
            f"{option} {where}: arrays are written as .npy, or together as .npz, not as "
            f"{folder.suffix} (name a .npy file)"
        )
    entries: Sequence[TensorFile] = ()
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
        for path in (folder, *folder.parents):
            if path.is_file():
                raise Mistake(f"{option} {where}: {path} is a file, not a directory")
        from deconv_ir.formats.dumps import name_files, read_manifest

        entries = name_files(names, read_manifest(folder))
        targets = {entry.path: folder / entry.file for entry in entries}
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
    return Targets(targets, tuple(entries))


def write_arrays(arrays: "Mapping[str, Array]", targets: Targets) -> None:
    """Write arrays to the destinations of `output_targets`, each file atomically."""
    archives: dict[Path, dict[str, Array]] = {}
    for name, target in targets.paths.items():
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
    if targets.entries:
        from deconv_ir.formats.dumps import add_to_manifest

        first = targets.paths[targets.entries[0].path]
        assert first is not None, "a file in a folder"
        add_to_manifest(first.parent, targets.entries)
