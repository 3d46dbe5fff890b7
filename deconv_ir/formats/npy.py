"""Arrays from and to .npy files, without pickle; files are written atomically."""

from __future__ import annotations

import io
import os
from typing import TYPE_CHECKING, Any, BinaryIO

from deconv_ir.errors import InputError
from deconv_ir.formats.files import open_regular, output_errors, replace_file, similar_file
from deconv_ir.formats.recognise import START, recognise
from deconv_ir.ir.dtypes import BF16, F8E5M2, Array
from deconv_ir.ir.shapes import element_count, size_error

if TYPE_CHECKING:
    from pathlib import Path


_CHUNK = 1 << 20
_LENGTH_BYTES = {(1, 0): 2, (2, 0): 4, (3, 0): 4}
"""Version of the format -> size of its header length field in bytes."""
_MAX_HEADER = 10_000
"""NumPy's own default."""


def read(path: str) -> Array:
    """Read an array from a .npy file; Python objects and records are rejected."""
    try:
        with open_regular(path) as stream:
            return read_stream(stream, path, os.fstat(stream.fileno()).st_size)
    except OSError as error:
        hint = similar_file(path, (".npy", ".npz"))
        message = f"cannot read the array: {error.strerror}"
        raise InputError(message, file=path, hint=hint) from error


def read_stream(stream: BinaryIO, name: str, size: int | None) -> Array:
    """Read an array from a stream, which messages call `name`.

    `size` is the size of a regular file; None: memory grows with the bytes that arrive.
    """
    import numpy as np

    shape, fortran, dtype = read_layout(stream, name, size)
    count = element_count(shape)
    needed = count * dtype.itemsize
    order: Any = "F" if fortran else "C"
    if size is None:
        data = np.frombuffer(_read_exactly(stream, needed, name), dtype, count)
    else:
        data = np.fromfile(stream, dtype, count)
        if data.size < count:  # another process truncated the file
            raise _cut_short(name, needed, data.nbytes)
    return data.reshape(shape, order=order)


def read_layout(stream: BinaryIO, name: str, size: int | None) -> tuple[tuple[int, ...], bool, Any]:
    """Read the header: shape, whether elements are in Fortran order, and dtype.

    Parameters are those of `read_stream`; if `size` is known, the file has all elements.
    """
    shape, fortran, dtype = _read_header(stream, name)
    if dtype.hasobject:
        raise InputError("the array holds Python objects, which are never read", file=name)
    if dtype.names is not None or dtype.subdtype is not None or dtype.itemsize == 0:
        raise InputError(f"arrays of dtype {dtype} are not supported", file=name)
    needed = element_count(shape) * dtype.itemsize
    if size is not None and size - stream.tell() < needed:
        raise _cut_short(name, needed, size - stream.tell())
    return shape, fortran, dtype


def _read_header(stream: BinaryIO, name: str) -> tuple[tuple[int, ...], bool, Any]:
    import ast
    import re
    import warnings

    from numpy.lib import format as npy

    # NumPy would allocate the memory before it finds that the header is too long.
    start = stream.read(npy.MAGIC_LEN)
    if not start:
        raise InputError("not a .npy file: it is empty", file=name)
    if start[: len(npy.MAGIC_PREFIX)] != npy.MAGIC_PREFIX or len(start) < npy.MAGIC_LEN:
        file_type = recognise(start + stream.read(START - len(start)), name)
        if file_type is None:
            raise InputError("not a .npy file: the magic bytes are missing", file=name)
        raise InputError(
            f"not a .npy file: it is {file_type.what}", file=name, hint=file_type.hint_for(name)
        )
    major, minor = start[-2:]
    if (major, minor) not in _LENGTH_BYTES:
        raise InputError(f"version {major}.{minor} of the .npy format is not supported", file=name)
    length = stream.read(_LENGTH_BYTES[major, minor])
    size = int.from_bytes(length, "little")
    if size > _MAX_HEADER:
        message = f"not a .npy file: its header would have {size} bytes"
        raise InputError(message, file=name, expected=f"<= {_MAX_HEADER}", actual=size)
    # Python 2 writes long integers with a suffix L.
    text = re.sub(rb"(?<=\d)L\b", b"", _read_exactly(stream, size, name))
    # ml_dtypes declares this type as a float of one byte, which NumPy writes but does not read.
    text, small_float = re.subn(rb"('descr': *)'[<|=>]f1'", rb"\1'|V1'", text)
    header = io.BytesIO(len(text).to_bytes(len(length), "little") + text)
    reader = npy.read_array_header_1_0 if major == 1 else npy.read_array_header_2_0
    try:
        # If this fails, NumPy would tokenize the text, which can take seconds.
        ast.literal_eval(text.decode("latin1"))
    except (SyntaxError, ValueError, TypeError, MemoryError, RecursionError) as error:
        raise InputError("not a .npy file: its header is not a literal", file=name) from error
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if b"'float" in text or b"'bfloat" in text:
                BF16.numpy()  # imports ml_dtypes, whose types NumPy then knows by name
            shape, fortran, dtype = reader(header)
        if small_float:
            dtype = F8E5M2.numpy()
    except Exception as error:  # a literal can be wrong in any way
        # NumPy raises ValueErrors for bad files; other errors come from its internals.
        reason = f": {error}".partition("\n")[0][:200] if isinstance(error, ValueError) else ""
        raise InputError(f"not a .npy file: invalid header{reason}", file=name) from error
    # NumPy accepts booleans as extents, since they are ints in Python.
    if any(isinstance(extent, bool) for extent in shape):
        raise InputError(f"not a .npy file: its shape is {shape}", file=name)
    wrong = size_error(shape, 8 * dtype.itemsize)
    if any(extent < 0 for extent in shape):
        wrong = f"its shape is {shape}"
    if wrong is not None:
        raise InputError(f"not a .npy file that can be read: {wrong}", file=name)
    return shape, fortran, dtype


def _read_exactly(stream: io.BufferedIOBase | BinaryIO, size: int, name: str) -> bytearray:
    """Read `size` bytes; memory grows with the file, not with the size in the header."""
    data = bytearray()
    while len(data) < size:
        chunk = stream.read(min(max(_CHUNK, len(data)), size - len(data)))
        if not chunk:
            raise _cut_short(name, size, len(data))
        data += chunk
    return data


def _cut_short(name: str, announced: int, there: int) -> InputError:
    message = f"truncated: the header promises {announced} bytes, the file has {there}"
    return InputError(message, file=name, expected=announced, actual=there)


def is_whole(path: Path) -> bool:
    """Whether a .npy file exists, with all the bytes that its header promises."""
    try:
        with open_regular(path) as stream:
            shape, _, dtype = _read_header(stream, str(path))
            needed = element_count(shape) * int(dtype.itemsize)
            return os.fstat(stream.fileno()).st_size == stream.tell() + needed
    except (OSError, InputError):
        return False


def write_stream(stream: BinaryIO, array: Array) -> None:
    """Write an array; NumPy's function copies it or loses the error of a full disk."""
    import numpy as np
    from numpy.lib import format as npy

    from deconv_ir.arrays.fitting import to_storable

    array = to_storable(array)
    header = npy.header_data_from_array_1_0(array)
    npy.write_array_header_1_0(stream, header)
    elements = array.T if header["fortran_order"] else np.ascontiguousarray(array)
    stream.write(elements.reshape(-1).view(np.uint8).data)


def write(array: Array, path: Path) -> tuple[int, int]:
    """Write an array to a .npy file atomically.

    Returns the size of the file in bytes, and its modification time in nanoseconds.
    """
    with output_errors(path, "the array"), replace_file(path) as stream:
        write_stream(stream, array)
        stream.flush()
        written = os.fstat(stream.fileno())
    return written.st_size, written.st_mtime_ns
