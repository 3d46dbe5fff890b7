"""The option --dump: the compared tensors of both sides, in two folders."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from deconv_ir.errors import OutputError
from deconv_ir.formats import npy
from deconv_ir.formats.dumps import (
    MANIFEST,
    SUFFIX,
    TensorFile,
    name_files,
    write_manifest,
)
from deconv_ir.ir.tensor_names import unique_names

from ..shared.common import Mistake, counted, note

if TYPE_CHECKING:
    from deconv_ir import Model
    from deconv_ir.ir.dtypes import Array

SIDES = ("A", "B")


class SideDumps:
    """The folders A and B in a folder, with a manifest each that maps names to files.

    Raises
    ------
    Mistake
        There are tensors in the folders, and `force` is not given.
    """

    def __init__(self, model: Model, folder: str, *, force: bool) -> None:
        self.folders = [Path(folder) / side for side in SIDES]
        for path in self.folders:
            if path.exists() and not path.is_dir():
                raise Mistake(f"--dump {folder}: {path} is a file, not a directory")
            there = sorted(path.glob(f"*{SUFFIX}"))
            if there and not force:
                raise Mistake(f"--dump {folder}: {there[0]} exists (use --force)")
        tensors = unique_names(model.graph, model.graph.topology.order)
        self.entries = {entry.name: entry for entry in name_files(tensors)}
        self.written: dict[str, TensorFile] = {}

    def write(self, name: str, a: Array, b: Array) -> None:
        """Write a tensor of both sides."""
        entry = self.entries[name]
        for folder, array in zip(self.folders, (a, b), strict=True):
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                message = f"cannot create the directory: {error.strerror}"
                raise OutputError(message, file=str(folder)) from error
            npy.write(array, folder / entry.file)
        self.written[name] = entry

    def finish(self) -> None:
        """Write the manifests."""
        for folder in self.folders:
            if all(entry.is_plain for entry in self.written.values()):
                (folder / MANIFEST).unlink(missing_ok=True)
            else:
                write_manifest(folder, self.written.values())
        note(f"wrote {counted(self.written, 'tensor')} of each side to {self.folders[0].parent}")
