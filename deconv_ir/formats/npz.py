"""Named arrays from and to .npz files, with the safety of `npy`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from deconv_ir.errors import InputError, ResourceError
from deconv_ir.formats import npy
from deconv_ir.formats.files import open_regular, output_errors, replace_file, similar_file
from deconv_ir.ir.dtypes import Array

# zipfile is imported where it is used: most processes read and write .npy files alone.
if TYPE_CHECKING:
    import zipfile


SUFFIX = ".npz"
_ENTRY = ".npy"


def names(path: str) -> list[str]:
    """Return the names of the arrays in a .npz file, in its order."""
    with _opened(path) as archive:
        return list(_entries(archive))


def read(path: str, name: str) -> Array:
    """Read one array: the array of that name, or without a name the only array of the file."""
    with _opened(path) as archive:
        entries = _entries(archive)
        entry = entries.get(name)
        if entry is None and len(entries) == 1:
            (entry,) = entries.values()
        if entry is None:
            message = (
                f"no array {name!r} in the file; it has {', '.join(map(repr, entries)) or 'none'}"
            )
            raise InputError(message, file=path, actual=name)
        with archive.open(entry) as stream:
            return npy.read_stream(stream, f"{path}, array {entry.filename!r}", None)  # type: ignore[arg-type]


def write(arrays: Mapping[str, Array], path: Path) -> None:
    """Write arrays to a .npz file atomically.

    Equal arrays give equal bytes.
    """
    import zipfile

    with (
        output_errors(path, "the arrays"),
        replace_file(path) as file,
        zipfile.ZipFile(file, "w") as archive,
    ):
        for name, array in arrays.items():
            # Without an explicit time, an entry is dated 1980, so that the bytes are reproducible.
            entry = zipfile.ZipInfo(f"{name}{_ENTRY}")
            with archive.open(entry, "w", force_zip64=True) as stream:
                npy.write_stream(stream, array)  # type: ignore[arg-type]


@contextmanager
def _opened(path: str) -> Iterator[zipfile.ZipFile]:
    import zipfile
    import zlib
    from lzma import LZMAError

    # RuntimeError: an encrypted entry; NotImplementedError: an unknown compression.
    damaged = (zipfile.BadZipFile, zlib.error, LZMAError, EOFError, RuntimeError, ValueError)
    try:
        with open_regular(path) as stream, zipfile.ZipFile(stream) as archive:
            yield archive
    except OSError as error:
        message = f"cannot read the arrays: {error.strerror or error}"
        hint = similar_file(path, (".npy", SUFFIX))
        raise InputError(message, file=path, hint=hint) from error
    except MemoryError as error:
        # Also raised for a damaged LZMA entry that requests a dictionary of gigabytes.
        raise ResourceError("cannot read the arrays: not enough memory", file=path) from error
    except damaged as error:
        raise InputError(f"not a valid .npz file: {error}", file=path) from error


def _entries(archive: zipfile.ZipFile) -> dict[str, zipfile.ZipInfo]:
    return {
        entry.filename.removesuffix(_ENTRY): entry
        for entry in archive.infolist()
        if entry.filename.endswith(_ENTRY)
    }
