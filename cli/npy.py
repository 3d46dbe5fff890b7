"""Arrays from and to .npy files: no pickle, no surprise, whole or not at all."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from deconv_ir.errors import InputError, OutputError
from deconv_ir.files import open_regular, replace_file

if TYPE_CHECKING:
    from deconv_ir.dtypes import Array

STREAM = "-"
_CHUNK = 1 << 20


def read(path: str) -> Array:
    """Read an array from a .npy file, or from standard input (``-``).

    Raises
    ------
    InputError
        It is no .npy file, holds Python objects or records, or is cut short.
    """
    if path == STREAM:
        return _read_stream(sys.stdin.buffer, "standard input", None)
    try:
        with open_regular(path) as stream:
            return _read_stream(stream, path, os.fstat(stream.fileno()).st_size)
    except OSError as error:
        raise InputError(f"can not read the array: {error.strerror}", file=path) from error


def _read_stream(stream: BinaryIO, name: str, size: int | None) -> Array:
    import numpy as np

    shape, fortran, dtype = _read_header(stream, name)
    if dtype.hasobject:
        raise InputError("the array holds Python objects, which are never read", file=name)
    if dtype.names is not None or dtype.subdtype is not None or dtype.itemsize == 0:
        raise InputError(f"arrays of dtype {dtype} are not supported", file=name)
    count = 1
    for extent in shape:
        count *= extent
    needed = count * dtype.itemsize
    there = None if size is None else size - stream.tell()
    if there is not None and there < needed:
        raise InputError(
            f"the file is cut short: an array of {needed} bytes is announced, {there} are there",
            file=name,
            expected=needed,
            actual=there,
        )
    data = _read_exactly(stream, needed, name)
    order: Any = "F" if fortran else "C"
    return np.frombuffer(data, dtype, count).reshape(shape, order=order)


def _read_header(stream: BinaryIO, name: str) -> tuple[tuple[int, ...], bool, Any]:
    from numpy.lib import format as npy

    try:
        version = npy.read_magic(stream)
        if version == (1, 0):
            shape, fortran, dtype = npy.read_array_header_1_0(stream)
        elif version == (2, 0):
            shape, fortran, dtype = npy.read_array_header_2_0(stream)
        else:
            raise ValueError(f"version {version[0]}.{version[1]} of the format is not supported")
    except Exception as error:  # the header is Python text, and can be wrong in any way
        reason = str(error).partition("\n")[0]
        raise InputError(f"this is no .npy file: {reason}", file=name) from error
    if any(extent < 0 for extent in shape):
        raise InputError(f"this is no .npy file: its shape is {shape}", file=name)
    return shape, fortran, dtype


def _read_exactly(stream: BinaryIO, size: int, name: str) -> bytearray:
    """Read so many bytes; memory grows with what is really there."""
    data = bytearray()
    while len(data) < size:
        chunk = stream.read(min(max(_CHUNK, len(data)), size - len(data)))
        if not chunk:
            raise InputError(
                f"the file is cut short: {size} bytes are announced, {len(data)} are there",
                file=name,
            )
        data += chunk
    return data


def is_whole(path: Path) -> bool:
    """Whether a .npy file is there, with all the bytes that its header announces."""
    try:
        with open_regular(path) as stream:
            shape, _, dtype = _read_header(stream, str(path))
            needed = dtype.itemsize
            for extent in shape:
                needed *= extent
            return bool(os.fstat(stream.fileno()).st_size == stream.tell() + needed)
    except (OSError, InputError):
        return False


class _Plain:
    """A stream that NumPy takes for no file: its way of writing to files loses the error."""

    def __init__(self, stream: BinaryIO) -> None:
        self.write = stream.write


def write(array: Array, path: Path) -> None:
    """Write an array to a .npy file, which appears whole or not at all.

    Raises
    ------
    OutputError
        It can not be written.
    """
    from numpy.lib import format as npy

    from deconv_ir.arrays import to_storable

    try:
        with replace_file(path) as stream:
            npy.write_array(_Plain(stream), to_storable(array), allow_pickle=False)
    except OSError as error:
        raise OutputError(
            f"can not write the array: {error.strerror or error}", file=str(path)
        ) from error


def write_stdout(array: Array) -> None:
    """Write an array as .npy to standard output.

    Raises
    ------
    OutputError
        There is no standard output.
    OSError
        It can not be written, or nobody reads it.
    """
    from numpy.lib import format as npy

    from deconv_ir.arrays import to_storable

    if sys.stdout is None:
        raise OutputError("there is no standard output to write to")
    npy.write_array(_Plain(sys.stdout.buffer), to_storable(array), allow_pickle=False)
    sys.stdout.buffer.flush()
