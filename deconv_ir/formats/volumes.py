"""Arrays in files that are read and written box by box: memory-mapped .npy, and Zarr."""

from __future__ import annotations

import contextlib
import json
import math
import os
import shutil
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

from deconv_ir.errors import InputError, UnsupportedError
from deconv_ir.formats.files import open_regular, replace_file
from deconv_ir.formats.npy import read_layout
from deconv_ir.hints import Hint
from deconv_ir.ir.boxes import Box, as_slices
from deconv_ir.ir.dtypes import Array

SUFFIXES = (".npy", ".zarr")
_MISSING, _DONE = b".", b"#"


class Volume(Protocol):
    """An array in a file."""

    path: str
    shape: tuple[int, ...]
    dtype: Any

    def read(self, box: Box) -> Array:
        """Return a copy of the elements of a box."""
        ...

    def write(self, box: Box, array: Array) -> None:
        """Write the elements of a box; boxes that do not overlap may be written concurrently."""
        ...


class NpyVolume:
    """An array in a .npy file.

    The file is mapped again for each box, so that its pages do not stay in the process's resident
    memory.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        try:
            with open_regular(path) as stream:
                size = os.fstat(stream.fileno()).st_size
                self.shape, self._fortran, self.dtype = read_layout(stream, path, size)
                self._offset = stream.tell()
        except OSError as error:
            raise InputError(f"cannot read the array: {error.strerror}", file=path) from error

    def _map(self, mode: Any) -> Array:
        import numpy as np

        order: Any = "F" if self._fortran else "C"
        return np.memmap(self.path, self.dtype, mode, self._offset, self.shape, order)

    def read(self, box: Box) -> Array:
        """Return a copy of the elements of a box."""
        import numpy as np

        if 0 in self.shape:
            return np.empty([stop - start for start, stop in box], self.dtype)
        return np.array(self._map("r")[as_slices(box)], order="C")

    def write(self, box: Box, array: Array) -> None:
        """Write the elements of a box; not through the map, where a full disk kills the process."""
        if not array.size:
            return
        if self._fortran:
            self._map("r+")[as_slices(box)] = array
            return
        import numpy as np

        starts, count = _runs(box, self.shape)
        width = self.dtype.itemsize
        rows = np.ascontiguousarray(array, self.dtype).reshape(-1).view(np.uint8).data
        with _named(self.path), Path(self.path).open("r+b", buffering=0) as stream:
            for number, start in enumerate(starts):
                stream.seek(self._offset + start * width)
                row = rows[number * count * width : (number + 1) * count * width]
                while row:
                    row = row[stream.write(row) :]


def _runs(box: Box, shape: Sequence[int]) -> tuple[list[int], int]:
    """Return the starts of a box's contiguous runs in an array in C order, and their length."""
    whole = len(shape)  # axes from here on are whole
    while whole and box[whole - 1] == (0, shape[whole - 1]):
        whole -= 1
    starts, step = [0], math.prod(shape[whole:])
    count = step
    for axis in range(whole - 1, -1, -1):
        first, last = box[axis]
        if axis == whole - 1:
            starts, count = [first * step], (last - first) * step
        else:
            starts = [index * step + start for index in range(first, last) for start in starts]
        step *= shape[axis]
    return starts, count


@contextlib.contextmanager
def _named(path: str | Path) -> Iterator[None]:
    """Add the file's name to errors of writing."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error


class ZarrVolume:
    """An array in a Zarr store, of format 2 or 3."""

    def __init__(self, path: str, mode: str = "r") -> None:
        self.path = path
        try:
            self._array: Any = zarr().open_array(path, mode=mode)
        except (OSError, ValueError, KeyError) as error:
            hint = Hint.ARRAY_IN_GROUP() if _is_group(path) else None
            message = f"cannot read the Zarr array: {error}"
            raise InputError(message, file=path, hint=hint) from error
        self.shape: tuple[int, ...] = tuple(self._array.shape)
        self.dtype = self._array.dtype

    def read(self, box: Box) -> Array:
        """Return a copy of the elements of a box."""
        import numpy as np

        try:
            return np.ascontiguousarray(self._array[as_slices(box)])
        except (OSError, ValueError, RuntimeError) as error:  # raised by a codec
            raise InputError(f"cannot read the Zarr array: {error}", file=self.path) from error

    def write(self, box: Box, array: Array) -> None:
        """Write the elements of a box."""
        with _named(self.path):
            self._array[as_slices(box)] = array


def _is_group(path: str) -> bool:
    try:
        zarr().open_group(path, mode="r")
    except (OSError, ValueError, KeyError):
        return False
    return True


def is_array(path: Path) -> bool:
    """Whether there is a Zarr array, and not a group of them."""
    try:
        ZarrVolume(str(path))
    except InputError:
        return False
    return True


def zarr() -> Any:
    """Import Zarr.

    Raises
    ------
    UnsupportedError
        Zarr is not installed.
    """
    try:
        import zarr as module
    except ImportError:
        message = "Zarr arrays require the extra 'cluster'"
        raise UnsupportedError(message, hint=Hint.INSTALL_EXTRA("cluster")) from None
    return module


def open_volume(path: str, mode: str = "r") -> Volume:
    """Open an array by the suffix of its path; a Zarr path may lead to an array in a group.

    Raises
    ------
    InputError
        The suffix is neither .npy nor .zarr, or the array does not exist.
    """
    suffix = Path(path.rstrip("/")).suffix
    if suffix == ".npy" or path.endswith(".npy.partial"):
        return NpyVolume(path)
    if any(part.endswith((".zarr", ".zarr.partial")) for part in Path(path).parts):
        return ZarrVolume(path, mode)
    raise InputError("tiles are read from .npy and .zarr arrays", file=path)


def create_volume(path: Path, shape: Sequence[int], dtype: Any, tile: Sequence[int]) -> None:
    """Create an array to be written box by box, replacing an existing one.

    A .npy file is sparse until it is written; the chunks of a Zarr array are the tiles, so that
    several processes can write tiles concurrently.
    """
    remove_volume(path)
    if ".zarr" in path.suffixes:
        module = zarr()
        module.create_array(
            store=str(path), shape=tuple(shape), dtype=dtype, chunks=tuple(tile), fill_value=0
        )
        return
    import numpy as np
    from numpy.lib import format as npy

    from deconv_ir.arrays.fitting import to_storable

    stored = to_storable(np.empty(0, dtype)).dtype
    header = {"descr": npy.dtype_to_descr(stored), "fortran_order": False, "shape": tuple(shape)}
    with path.open("xb") as stream:
        npy.write_array_header_1_0(stream, header)
        stream.truncate(stream.tell() + math.prod(shape) * stored.itemsize)


def remove_volume(path: Path) -> None:
    """Remove an array, if it exists."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def remove_fragments(path: Path) -> None:
    """Remove the files that killed writers have left in a Zarr store."""
    if path.is_dir():
        for fragment in path.rglob("*.partial"):
            fragment.unlink(missing_ok=True)


def replace_volume(path: Path, target: Path) -> None:
    """Give an array its final name; an array of that name is removed.

    If the process is killed, one of the two has the name, or only `path` is left.
    """
    aside = target.with_name(f"{target.name}.partial.old")
    if target.is_dir() and not target.is_symlink():
        remove_volume(aside)
        target.rename(aside)
    path.replace(target)
    remove_volume(aside)  # also one that a killed process has left


class Journal:
    """The complete tiles of a partial result: a header, then one character per tile.

    Each tile has a fixed offset, so that processes and machines can record tiles concurrently, and
    look up a tile without reading the others.

    Parameters
    ----------
    path : Path
    header : mapping
        Everything that the result depends on, as JSON.
    """

    def __init__(self, path: Path, header: dict[str, Any]) -> None:
        self.path = path
        self.header: dict[str, Any] = json.loads(json.dumps(header))
        self._line = json.dumps(self.header).encode() + b"\n"

    def read(self) -> tuple[dict[str, Any], set[int]] | None:
        """Return header and complete tiles of an earlier run; None if there was no such run."""
        try:
            first, _, rest = self.path.read_bytes().partition(b"\n")
            found = json.loads(first)
        except (OSError, ValueError):
            return None
        if not isinstance(found, dict):
            return None
        return found, {number for number, mark in enumerate(rest) if mark == _DONE[0]}

    def start(self, done: Iterable[int], count: int) -> None:
        """Write the header, and mark the tiles that are already complete."""
        marks = bytearray(_MISSING * count)
        for number in done:
            marks[number] = _DONE[0]
        with _named(self.path), replace_file(self.path, durable=False) as stream:
            stream.write(self._line + marks + b"\n")

    def remove(self) -> None:
        """Remove the record."""
        self.path.unlink(missing_ok=True)

    def has(self, number: int) -> bool:
        """Whether a tile is complete.

        Raises
        ------
        InputError
            The run was abandoned: the journal is missing, or belongs to another run.
        """
        try:
            with self.path.open("rb") as stream:
                if stream.read(len(self._line)) == self._line:
                    stream.seek(number, os.SEEK_CUR)
                    return stream.read(1) == _DONE
        except FileNotFoundError:
            pass
        raise InputError("the run that this tile belongs to was given up", file=str(self.path))

    def add(self, number: int) -> None:
        """Mark a tile as complete."""
        with _named(self.path), self.path.open("r+b", buffering=0) as stream:
            stream.seek(len(self._line) + number)
            stream.write(_DONE)
