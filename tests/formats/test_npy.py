"""Arrays from files: forms that are read, and forms that are refused without being read."""

from __future__ import annotations

import io
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import LFS_POINTER

from deconv_ir import DeconvError, InputError, OutputError
from deconv_ir.formats import npy


def header(text: str, version: tuple[int, int] = (1, 0)) -> bytes:
    """Return the beginning of a .npy file with this header."""
    size = len(text).to_bytes(2 if version == (1, 0) else 4, "little")
    return b"\x93NUMPY" + bytes(version) + size + text.encode()


def dictionary(descr: str = "'<f4'", order: str = "False", shape: str = "(2,)") -> str:
    return f"{{'descr': {descr}, 'fortran_order': {order}, 'shape': {shape}, }}\n"


@pytest.mark.parametrize(
    "array",
    [
        np.arange(6, dtype="f4").reshape(2, 3),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.arange(6, dtype=">i4"),
        np.array(3.5),
        np.zeros((0, 3), "i8"),
        np.array([True, False]),
    ],
    ids=["plain", "fortran", "big-endian", "scalar", "empty", "bool"],
)
@pytest.mark.parametrize("version", [(1, 0), (2, 0), (3, 0)])
def test_round_trip(array: np.ndarray, version: tuple[int, int], tmp_path: Path) -> None:
    path = tmp_path / "a.npy"
    with path.open("wb") as stream:
        np.lib.format.write_array(stream, array, version=version)
    found = npy.read(str(path))
    assert np.array_equal(found, array)
    npy.write(found, tmp_path / "b.npy")
    assert np.array_equal(np.load(tmp_path / "b.npy"), array)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["a.npy", "b.npy"]


@pytest.mark.parametrize(
    ("descr", "name"),
    [
        ("'<f1'", "float8_e5m2"),  # as numpy.save writes it, and numpy.load refuses it
        ("'<V2'", "void16"),
        ("'bfloat16'", "bfloat16"),
        ("'float8_e4m3fn'", "float8_e4m3fn"),
    ],
)
def test_types_of_ml_dtypes(descr: str, name: str, tmp_path: Path) -> None:
    """NumPy's header of each form, in a process that has not imported ml_dtypes."""
    path = tmp_path / "a.npy"
    path.write_bytes(header(dictionary(descr)) + bytes(range(4)))
    code = f"from deconv_ir.formats import npy; print(npy.read({str(path)!r}).dtype.name)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == name


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "not a .npy file"),
        (b"\x93NUMPY", "not a .npy file"),
        (b"PK\x03\x04" + bytes(40), "not a .npy file: it is a zip archive"),
        (b"\x89PNG\r\n\x1a\n", "not a .npy file: it is a PNG image"),
        (LFS_POINTER, "it is a Git LFS pointer ('git lfs pull' fetches the content)"),
        (header(dictionary(), (9, 0)), "version 9.0 of the .npy format is not supported"),
        (header("nonsense\n"), "not a .npy file"),
        (header(dictionary(shape="(2,")), "not a .npy file"),
        (header(dictionary(shape="(-2,)")) + bytes(8), "not a .npy file"),
        (header(dictionary(shape="('a',)")) + bytes(8), "not a .npy file"),
        (header(dictionary("'<f99'")), "not a .npy file"),
        (header(dictionary()) + bytes(7), "truncated: the header promises 8 bytes, the file has 7"),
        (header(dictionary(shape=f"({2**62}, {2**62})")) + bytes(8), "more than the 2^63 - 1"),
        (header(dictionary(shape=f"({2**40},)")) + bytes(8), "truncated"),
        (header(dictionary("'|O'")) + bytes(8), "Python objects, which are never read"),
        (header(dictionary("[('a', '<f4')]")) + bytes(8), "not supported"),
        (header(dictionary("'|V0'")) + bytes(8), "not supported"),
        (header("{" + " " * 60_000 + "}"), "not a .npy file"),
        (pickle.dumps([1, 2]), "not a .npy file"),
    ],
)
def test_files_that_are_refused(data: bytes, words: str, tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    path.write_bytes(data)
    with pytest.raises(InputError) as caught:
        npy.read(str(path))
    assert words in str(caught.value)
    assert str(caught.value).startswith(str(path))


def test_stream_that_is_cut_short() -> None:
    stream = io.BytesIO(header(dictionary(shape=f"({2**50},)")) + bytes(100))
    with pytest.raises(InputError, match=r"pipe: truncated"):
        npy.read_stream(stream, "pipe", None)


def test_no_regular_file(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    for path in (tmp_path, tmp_path / "fifo", tmp_path / "none"):
        with pytest.raises(DeconvError, match="cannot read the array"):
            npy.read(str(path))


def test_failed_write_leaves_what_was_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "y.npy"
    path.write_text("mine")

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("numpy.lib.format.write_array_header_1_0", full)
    with pytest.raises(OutputError, match="No space left on device"):
        npy.write(np.zeros(3), path)
    assert path.read_text() == "mine"
    assert [p.name for p in tmp_path.iterdir()] == ["y.npy"]


def test_permissions_are_those_of_any_new_file(tmp_path: Path) -> None:
    npy.write(np.zeros(3), tmp_path / "a.npy")
    (tmp_path / "b").write_text("")
    assert (tmp_path / "a.npy").stat().st_mode == (tmp_path / "b").stat().st_mode


@pytest.mark.parametrize(
    "array",
    [
        np.arange(24, dtype=np.float32).reshape(2, 3, 4),
        np.asfortranarray(np.arange(24).reshape(2, 3, 4)),
        np.arange(24).reshape(2, 3, 4)[:, ::2, ::-1],
        np.broadcast_to(np.int8(3), (4, 5)),
        np.float64(2.5),
        np.zeros((3, 0, 2), np.int8),
        np.zeros((0,), bool),
    ],
    ids=["C", "Fortran", "steps", "broadcast", "scalar", "empty", "empty list"],
)
def test_what_is_written_is_what_numpy_writes(array: Any, tmp_path: Path) -> None:
    npy.write(np.asarray(array), tmp_path / "y.npy")
    expected = io.BytesIO()
    np.save(expected, array)
    assert (tmp_path / "y.npy").read_bytes() == expected.getvalue()
