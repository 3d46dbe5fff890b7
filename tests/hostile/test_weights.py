"""The .bin: wrong offsets, files that shrink, paths that are not files."""

from __future__ import annotations

import gc
import os
import threading
from pathlib import Path

import numpy as np
import pytest
from support import IR

import deconv_ir
from deconv_ir.formats.openvino_xml.weights import Weights
from hostile.children import MIB, bounded


def constant_ir(elements: int = 3, overrides: dict[str, str] | None = None) -> IR:
    """A model whose output is a constant, plus 0."""
    ir = IR()
    data = np.arange(elements, dtype=np.float32).tobytes()
    c = ir.raw_const(data, "f32", (elements,), "c", overrides)
    x = ir.parameter("x", "1")
    ir.result(ir.layer("Add", [c, x], {"auto_broadcast": "numpy"}, names="y"))
    return ir


@pytest.mark.parametrize("attribute", ["offset", "size"])
@pytest.mark.parametrize(
    "value",
    [
        *("-1", "13", "9223372036854775807", "9223372036854775808", "18446744073709551616"),
        *("1" * 400, "", "0x0", "1e3", "nan", "\u0661", "4 4", "4,4", "+4"),
    ],
)
def test_invalid_offsets_and_sizes_are_refused(attribute: str, value: str, tmp_path: Path) -> None:
    path = constant_ir(overrides={attribute: value}).save(tmp_path)
    with pytest.raises(deconv_ir.DeconvError) as caught:
        deconv_ir.load(path)
    message = str(caught.value)
    assert message.startswith(f"{path}:")
    assert "\n" not in message
    assert any(f.severity.value == "error" for f in deconv_ir.lint(path))


def test_constants_may_share_bytes(tmp_path: Path) -> None:
    ir = IR()
    a = ir.const(np.arange(4, dtype=np.float32))
    b = ir.raw_const(b"", "f32", (2,), overrides={"offset": "8", "size": "8"})
    ir.result(a, "a")
    ir.result(b, "b")
    first, second = deconv_ir.load(ir.save(tmp_path)).run([]).values()
    assert first.tolist() == [0, 1, 2, 3]
    assert second.tolist() == [2, 3]


def test_a_file_that_shrinks_is_an_error_and_no_bus_error(tmp_path: Path) -> None:
    path = constant_ir(100_000).save(tmp_path)
    model = deconv_ir.load(path)
    os.truncate(tmp_path / "model.bin", 4096)
    with pytest.raises(deconv_ir.WeightsError) as caught:
        model.run([np.zeros(1, np.float32)])
    message = "was cut short while it was in use: it had 400000 bytes, now it ends at 4096"
    assert message in str(caught.value)


def test_what_was_read_stays_when_the_file_shrinks(tmp_path: Path) -> None:
    path = constant_ir(100_000).save(tmp_path)
    model = deconv_ir.load(path)
    expected = model.run([np.zeros(1, np.float32)])["y"]
    os.truncate(tmp_path / "model.bin", 0)
    np.testing.assert_array_equal(model.run([np.zeros(1, np.float32)])["y"], expected)


def test_a_file_that_is_replaced_does_not_mix_in(tmp_path: Path) -> None:
    model = deconv_ir.load(constant_ir().save(tmp_path))
    other = tmp_path / "other"
    other.write_bytes(b"\xff" * 12)
    other.replace(tmp_path / "model.bin")
    assert model.run([np.zeros(1, np.float32)])["y"].tolist() == [0, 1, 2]


def test_a_file_that_grows_does_not_matter(tmp_path: Path) -> None:
    model = deconv_ir.load(constant_ir().save(tmp_path))
    with (tmp_path / "model.bin").open("ab") as stream:
        stream.write(b"\xff" * 100)
    assert model.run([np.zeros(1, np.float32)])["y"].tolist() == [0, 1, 2]


def test_weights_files_are_closed(tmp_path: Path) -> None:
    path = constant_ir().save(tmp_path)
    gc.collect()
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(20):
        weights = Weights(path.with_suffix(".bin"))
        assert len(weights) == 12
    del weights
    gc.collect()
    assert len(list(Path("/proc/self/fd").iterdir())) == before


def test_threads_read_their_own_places(tmp_path: Path) -> None:
    path = tmp_path / "w.bin"
    path.write_bytes(np.arange(1 << 18, dtype="<u4").tobytes())
    weights = Weights(path)
    wrong: list[int] = []

    def read(first: int) -> None:
        for at in range(first, 1 << 18, 8192):
            found = np.frombuffer(weights.read(4 * at, 4096), "<u4")
            if found[0] != at or found[-1] != at + 1023:
                wrong.append(at)

    threads = [threading.Thread(target=read, args=(1024 * i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def _make(kind: str, path: Path) -> None:
    if kind == "directory":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "device":
        path.symlink_to("/dev/zero")
    elif kind == "loop":
        path.symlink_to(path)
    elif kind == "dangling":
        path.symlink_to(path.with_name("nowhere"))
    elif kind == "locked":
        path.write_bytes(bytes(12))
        path.chmod(0)


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("directory", "it is a directory"),
        ("fifo", "not a regular file"),
        ("device", "not a regular file"),
        ("loop", "Too many levels of symbolic links"),
        ("dangling", "No such file"),
    ],
)
@pytest.mark.parametrize("which", ["xml", "bin"])
def test_paths_that_are_no_files(kind: str, words: str, which: str, tmp_path: Path) -> None:
    path = constant_ir().save(tmp_path)
    bad = path.with_suffix(f".{which}")
    bad.unlink()
    _make(kind, bad)
    with pytest.raises(deconv_ir.DeconvError) as caught:
        deconv_ir.load(path)
    assert words in str(caught.value)
    assert str(bad) in str(caught.value)
    assert deconv_ir.lint(path)


@pytest.mark.parametrize(
    "extra", ['path="/etc/passwd"', 'file="../secret.bin"', 'bin="secret.bin"']
)
def test_an_ir_cannot_name_another_file(extra: str, tmp_path: Path) -> None:
    (tmp_path / "secret.bin").write_bytes(b"\x7f" * 12)
    folder = tmp_path / "models"
    folder.mkdir()
    path = constant_ir().save(folder)
    path.write_text(path.read_text().replace("<data element_type", f"<data {extra} element_type"))
    model = deconv_ir.load(path)
    assert model.run([np.zeros(1, np.float32)])["y"].tolist() == [0, 1, 2]
    (folder / "model.bin").unlink()
    with pytest.raises(deconv_ir.WeightsError, match=r"no model\.bin beside it"):
        deconv_ir.load(path)


def test_memory_is_taken_for_what_the_file_has(tmp_path: Path) -> None:
    shape = {"shape": str(1 << 40), "size": str(1 << 42)}
    path = constant_ir(overrides=shape).save(tmp_path)
    out = bounded(f"deconv_ir.load({str(path)!r})", 256 * MIB)
    assert "is past the end of model.bin, which has 12 bytes" in out


def test_a_constant_too_large_for_memory_is_one_line(tmp_path: Path) -> None:
    size = 1 << 40  # a sparse file, which takes no disk space
    path = constant_ir(overrides={"shape": str(size // 4), "size": str(size)}).save(tmp_path)
    try:
        os.truncate(tmp_path / "model.bin", size)
    except OSError:
        pytest.skip("the file system has no files of 1 TiB")
    out = bounded(
        f"import numpy as np\ndeconv_ir.load({str(path)!r}).run([np.zeros(1, np.float32)])"
    )
    assert out.startswith("DeconvError: ")
    assert str(size) in out or "TiB" in out
