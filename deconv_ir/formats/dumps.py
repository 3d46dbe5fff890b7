"""Folders of tensors, one .npy file each, with a manifest that maps names of tensors to files."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from pathlib import Path
from typing import NamedTuple

from deconv_ir.errors import InputError
from deconv_ir.formats.files import output_errors, read_regular, replace_file
from deconv_ir.hints import Hint

MANIFEST = "deconv-tensors.json"
FORMAT = 1
SUFFIX = ".npy"
_MAX_BYTES = 1 << 28
_MAX_STEM = 150
"""Bytes of a file name before its number and suffix; file systems allow 255 in total."""


class TensorFile(NamedTuple):
    """An entry of a manifest.

    Attributes
    ----------
    name : str
        Name of the tensor.
    file : str
        Name of its file in the folder.
    within : tuple of str
        For a tensor of a body: from the outermost, the names of the layers and their bodies around
        it, as in ``("rows", "body")``.  Empty for a tensor of the network itself.
    """

    name: str
    file: str
    within: tuple[str, ...] = ()

    @property
    def path(self) -> str:
        """The name with those of the layers and bodies around it: ``rows/body/scaled``."""
        return "/".join((*self.within, self.name))

    @property
    def is_plain(self) -> bool:
        """Whether the name of the file is that of the tensor."""
        return self.file == self.name + SUFFIX and not self.within


def name_files(names: Iterable[str], known: Collection[TensorFile] = ()) -> list[TensorFile]:
    """Choose a file name for each tensor: safe characters, all distinct on any file system.

    A tensor that is among the `known` entries of a manifest keeps its file; those of bodies are
    named with the layers and bodies around them.  Files of the others are not used.
    """
    kept = {entry.path: entry for entry in known}
    taken = {entry.file.casefold() for entry in known}
    numbers: dict[str, int] = {}
    entries = []
    for name in names:
        entry = kept.pop(name, None)
        if entry is None:
            stem = safe_stem(name)
            number = numbers.get(stem, 1)
            file = stem + SUFFIX if number == 1 else f"{stem}.{number}{SUFFIX}"
            while file.casefold() in taken:
                number += 1
                file = f"{stem}.{number}{SUFFIX}"
            numbers[stem] = number
            entry = TensorFile(name, file)
            taken.add(file.casefold())
        entries.append(entry)
    return entries


def safe_stem(name: str) -> str:
    """Return a name without the characters that file names cannot have, shortened."""
    safe = "".join(c if c.isalnum() or c in "._-" else "_" for c in name).lstrip(".")
    return safe.encode()[:_MAX_STEM].decode("utf-8", "ignore") or "output"


def read_manifest(folder: Path) -> tuple[TensorFile, ...]:
    """Read the manifest of a folder; empty if there is none.

    Raises
    ------
    InputError
        The manifest is damaged, or of a later format.
    """
    path = folder / MANIFEST
    try:
        text = read_regular(path, _MAX_BYTES)
    except FileNotFoundError:
        return ()
    except OSError as error:
        raise InputError(f"cannot read the manifest: {error.strerror}", file=str(path)) from error
    import json

    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise _damaged(path, "it is not JSON") from error
    if not isinstance(content, dict) or not isinstance(content.get("tensors"), list):
        raise _damaged(path, 'it has no list "tensors"')
    if content.get("format") != FORMAT:
        raise _damaged(path, f"format {content.get('format')!r} is not supported")
    return tuple(_entry(path, row) for row in content["tensors"])


def _entry(path: Path, row: object) -> TensorFile:
    found = row if isinstance(row, dict) else {}
    name, file, within = found.get("name"), found.get("file"), found.get("within", [])
    if isinstance(name, str) and isinstance(file, str) and isinstance(within, list):
        # Only files of the folder itself are read.
        inside = Path(file).name == file and file.endswith(SUFFIX) and "\0" not in file
        if inside and all(isinstance(part, str) for part in within):
            return TensorFile(name, file, tuple(within))
    import json

    text = json.dumps(row)
    shown = text if len(text) <= 80 else text[:77] + "..."
    raise _damaged(path, f"expected a name and a {SUFFIX} file in this folder, found {shown}")


def _damaged(path: Path, reason: str) -> InputError:
    message = f"not a manifest of tensors: {reason}"
    return InputError(message, file=str(path), hint=Hint.REMOVE_MANIFEST())


def write_manifest(folder: Path, entries: Iterable[TensorFile]) -> None:
    """Write the manifest of a folder atomically."""
    import json

    rows: list[dict[str, object]] = []
    for entry in entries:
        rows.append({"name": entry.name, "file": entry.file})
        if entry.within:
            rows[-1]["within"] = entry.within
    lines = ",\n".join(json.dumps(row) for row in rows)
    path = folder / MANIFEST
    with output_errors(path, "the manifest"), replace_file(path, durable=False) as stream:
        stream.write(f'{{"format": {FORMAT}, "tensors": [\n{lines}\n]}}\n'.encode())


def add_to_manifest(folder: Path, entries: Collection[TensorFile]) -> None:
    """Add tensors to the manifest of a folder; without one, only if names of files are not enough.

    Entries of files that exist no longer are removed.
    """
    known = read_manifest(folder)
    if not known and all(entry.is_plain for entry in entries):
        return
    files = {entry.file for entry in entries}
    kept = [x for x in known if x.file not in files and (folder / x.file).exists()]
    write_manifest(folder, [*kept, *entries])
