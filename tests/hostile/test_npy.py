"""Malicious .npy files that tests/formats/test_npy.py does not cover."""

from __future__ import annotations

import os
import re
import struct
import subprocess
import sys
import threading
import zipfile
from pathlib import Path

import numpy as np
import pytest
from support import IR

from deconv_ir import InputError
from deconv_ir.formats import npy
from hostile.children import MIB, bounded, one_error_line, run

HEADERS = Path(__file__).parent / "headers.py"
MAGIC = b"\x93NUMPY"


def v1(text: str) -> bytes:
    return MAGIC + b"\1\0" + struct.pack("<H", len(text)) + text.encode()


def dictionary(descr: str = "'<f4'", shape: str = "(2,)") -> str:
    return f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}}}\n"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (v1(dictionary(shape="(1,) * 3")), "not a .npy file"),
        (v1(dictionary(shape=f"({'1,' * 100})")) + bytes(4), "rank 100"),
        (v1(dictionary(shape=f"({2**62}, {2**62}, 0)")), "more than the 2^63 - 1"),
        (v1(dictionary(shape=f"(0, {2**70})")), "more than the 2^63 - 1"),
        (v1(dictionary(shape=f"({'9' * 5000},)")), "not a .npy file"),
        (v1(dictionary(shape="(True, 6)")) + bytes(24), "its shape is (True, 6)"),
        (v1(dictionary(shape="(2.5,)")), "not a .npy file"),
        (v1(dictionary("'<U" + "9" * 18 + "'")), "not a .npy file"),
        (v1(dictionary("'|O8'")), "Python objects, which are never read"),
        (v1(dictionary("[('a', '|O')]")), "Python objects, which are never read"),
        (v1(dictionary("[('a', '<f4'), ('b', '<f4')]")) + bytes(16), "not supported"),
        (v1(dictionary("'(2,)f4'")) + bytes(16), "n"),
        (v1("(" * 5000), "not a .npy file"),
        (v1("[" * 200 + "]" * 200), "not a .npy file"),
        (v1("__import__('os').system('true')"), "not a .npy file"),
        (v1("{'descr': '<f4'}"), "not a .npy file: invalid header: Header does not contain"),
        (v1("{1: 2, 'shape': 3}"), "not a .npy file: invalid header"),
        (v1("\0\0"), "not a .npy file"),
        # NumPy would take seconds for these two.
        (v1("{}" + " " * 9000 + "\1"), "not a literal"),
        (v1("'" + "\\'" * 4990), "not a literal"),
        (v1("-" * 9999), "not a .npy file: "),
        (MAGIC + b"\4\0" + bytes(40), "version 4.0"),
        (MAGIC + b"\1\0" + b"\x11\x27" + bytes(10_001), "its header would have 10001 bytes"),
        (b"", "not a .npy file: it is empty"),
        (MAGIC[:3], "not a .npy file: the magic bytes are missing"),
        (MAGIC + b"\2\0" + b"\xff" * 4, "its header would have 4294967295 bytes"),
        (MAGIC + b"\2\0" + struct.pack("<I", 100 << 20), "its header would have 104857600 bytes"),
        (MAGIC + b"\1\0" + b"\xff\x10", "truncated"),
        (MAGIC + b"\1\0", "not a .npy file"),
    ],
)
def test_refused_in_one_line(data: bytes, words: str, tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    path.write_bytes(data)
    with pytest.raises(InputError) as caught:
        npy.read(str(path))
    assert words in str(caught.value)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)


def test_a_header_of_100_mb_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "x.npy"
    with path.open("wb") as stream:
        stream.write(MAGIC + b"\2\0" + struct.pack("<I", 400 << 20))
        stream.truncate(500 << 20)
    out = bounded(f"from deconv_ir.formats import npy\nnpy.read({str(path)!r})", 300 * MIB)
    assert "its header would have 419430400 bytes" in out


@pytest.mark.parametrize("dtype", [">f4", ">f8", ">i2", ">u8", "<f2", "?", "i1"])
@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(2, 3), (0, 3), (), (1, 1, 1)])
def test_every_layout_reads_as_numpy_reads_it(
    dtype: str, order: str, shape: tuple[int, ...], tmp_path: Path
) -> None:
    array = np.asarray(np.arange(np.prod(shape)).reshape(shape).astype(dtype), order=order)
    np.save(tmp_path / "x.npy", array)
    found = npy.read(str(tmp_path / "x.npy"))
    assert found.dtype == array.dtype
    np.testing.assert_array_equal(found, np.load(tmp_path / "x.npy"))


@pytest.mark.parametrize("dtype", ["<U4", "<M8[s]", "<m8[s]", "<c8", "S3", "V3", "<f16"])
def test_types_that_no_input_takes(dtype: str, tmp_path: Path) -> None:
    ir = IR()
    ir.result(ir.layer("ReLU", [ir.parameter("x", "2")], names="y"))
    ir.save(tmp_path)
    np.save(tmp_path / "x.npy", np.zeros(2, dtype))
    code, _, error = run("run", "model.xml", "--input", "x.npy", cwd=tmp_path)
    assert code == 2
    assert "input 'x' takes f32" in one_error_line(error)


def test_a_file_that_shrinks_while_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.npy"
    np.save(path, np.zeros(4 << 20, np.uint8))
    original = np.lib.format.read_array_header_1_0

    def then_shrink(*arguments: object) -> object:
        found = original(*arguments)
        os.truncate(path, 100_000)
        return found

    monkeypatch.setattr(np.lib.format, "read_array_header_1_0", then_shrink)
    with pytest.raises(InputError, match="truncated"):
        npy.read(str(path))


@pytest.mark.parametrize("change", ["grow", "vanish", "replace"])
def test_a_file_that_changes_otherwise_while_it_is_read(
    change: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "x.npy"
    array = np.arange(1 << 16, dtype=np.int32)
    np.save(path, array)
    original = np.lib.format.read_array_header_1_0

    def then_change(*arguments: object) -> object:
        found = original(*arguments)
        if change == "grow":
            with path.open("ab") as stream:
                stream.write(b"\xff" * 1000)
        elif change == "vanish":
            path.unlink()
        else:
            other = tmp_path / "other"
            other.write_bytes(b"")
            other.replace(path)
        return found

    monkeypatch.setattr(np.lib.format, "read_array_header_1_0", then_change)
    np.testing.assert_array_equal(npy.read(str(path)), array)


def test_a_file_that_is_written_to_while_it_is_read_never_breaks_the_reader(
    tmp_path: Path,
) -> None:
    path = tmp_path / "x.npy"
    np.save(path, np.zeros(1 << 16, np.uint8))
    good = path.read_bytes()
    stop = threading.Event()

    def disturb() -> None:
        draw = np.random.default_rng(0)
        while not stop.is_set():
            path.write_bytes(good[: draw.integers(len(good))])

    thread = threading.Thread(target=disturb)
    thread.start()
    outcomes = set()
    try:
        for _ in range(200):
            try:
                outcomes.add(npy.read(str(path)).shape)
            except InputError:
                outcomes.add("refused")
    finally:
        stop.set()
        thread.join()
    assert outcomes <= {"refused", (1 << 16,)}


def test_extents_that_python_2_wrote(tmp_path: Path) -> None:
    (tmp_path / "x.npy").write_bytes(v1(dictionary(shape="(2L, 0x3L)")) + bytes(24))
    assert npy.read(str(tmp_path / "x.npy")).shape == (2, 3)


def test_an_lzma_entry_that_asks_for_gigabytes(tmp_path: Path) -> None:
    """APPNOTE 5.8.8: version and size of properties, a byte, then the dictionary's size."""
    path = tmp_path / "x.npz"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_LZMA) as archive:
        archive.writestr("x.npy", v1(dictionary()) + bytes(8))
    damaged = bytearray(path.read_bytes())
    size = 30 + len("x.npy") + 4 + 1
    damaged[size : size + 4] = b"\xff\xff\xff\xff"
    path.write_bytes(damaged)
    out = bounded(f"from deconv_ir.formats import npz\nnpz.read({str(path)!r}, 'x')", 300 * MIB)
    assert f"{path}: cannot read the arrays: not enough memory" in out


def test_a_slice_of_the_hostile_headers() -> None:
    """The test runs in its own process, which has a memory limit."""
    command = [sys.executable, "-P", str(HEADERS), "--count", "1200", "--first", "12000"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "tried 1200, failures 0" in done.stdout
    read = re.search(r"^ *(\d+) read$", done.stdout, re.MULTILINE)
    assert read is not None
    assert int(read[1]) > 120, "what is wrong with them must not keep all of them from being read"
