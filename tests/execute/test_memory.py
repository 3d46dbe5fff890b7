"""What is too big is refused before anything is allocated, and in no time."""

from __future__ import annotations

import tracemalloc
from pathlib import Path

import numpy as np
import pytest
from support import IR

import deconv_ir
from deconv_ir.execute.memory import format_bytes, parse_bytes


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("4096", 4096), ("1B", 1), ("1k", 1000), ("2KiB", 2048), ("1.5 GiB", 3 << 29),
        ("500MB", 500_000_000), ("2g", 2 * 10**9), (" 1 TiB ", 1 << 40), ("0", 0),
    ],
)  # fmt: skip
def test_sizes_are_read(text: str, count: int) -> None:
    assert parse_bytes(text) == count


@pytest.mark.parametrize("text", ["", "GiB", "-1", "1.5.2", "2 XiB", "1e9", "\u0661", "9" * 50])
def test_what_is_no_size(text: str) -> None:
    with pytest.raises(ValueError, match="is no size"):
        parse_bytes(text)


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1024, "1 KiB"), (1536, "1.5 KiB"), (1 << 40, "1 TiB"),
     (3 << 69, "1536 EiB"), (1 << 4000, "more than 2^4000 B")],
)  # fmt: skip
def test_sizes_are_written(count: int, text: str) -> None:
    assert format_bytes(count) == text


def tile(target: list[int], shape: str = "1,1") -> IR:
    """x broadcast to a target shape, then changed."""
    ir = IR()
    x = ir.parameter("x", shape)
    big = ir.layer("Tile", [x, ir.const(np.array(target))], name="tile")
    ir.result(ir.layer("Tanh", [big], name="tanh", names="y"))
    return ir


def refused(model: deconv_ir.Model, inputs: object) -> deconv_ir.ResourceError:
    """The error; nothing of size is allocated before it (modules are imported)."""
    tracemalloc.start()
    with pytest.raises(deconv_ir.ResourceError) as caught:
        model.run(inputs)  # type: ignore[arg-type]
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 << 20
    return caught.value


@pytest.mark.parametrize("target", [[1 << 20, 1 << 18], [1 << 30, 1 << 30]])
def test_tensors_of_a_tebibyte_and_more(target: list[int], tmp_path: Path) -> None:
    model = deconv_ir.load(tile(target).save(tmp_path))
    error = refused(model, [np.ones((1, 1), np.float32)])
    assert error.actual >= 4 * target[0] * target[1]
    assert "of memory at once" in str(error)
    assert "is available" in str(error)
    assert "--memory-limit" in str(error)


@pytest.mark.parametrize("target", [[1 << 31, 1 << 31], [1 << 62, 2]])
def test_sizes_that_overflow_are_errors_of_shape(target: list[int], tmp_path: Path) -> None:
    with pytest.raises(deconv_ir.ShapeError, match=r"layer 'tile'.*2\^63 - 1"):
        deconv_ir.load(tile(target).save(tmp_path))


def test_constants_that_unfold(tmp_path: Path) -> None:
    """A few bytes that become a tebibyte before the model even runs."""
    ir = IR()
    x = ir.parameter("x", "1")
    small = ir.const(np.ones((1, 1), np.float32))
    big = ir.layer("Tile", [small, ir.const(np.array([1 << 19, 1 << 19]))])
    ir.result(ir.layer("Add", [x, big]))
    refused(deconv_ir.load(ir.save(tmp_path)), [np.ones(1, np.float32)])


def test_a_deconvolution_that_is_too_wide(tmp_path: Path) -> None:
    ir = IR()
    x = ir.parameter("x", "1,1,2,2")
    filter_ = ir.const(np.ones((1, 1, 1, 1), np.float32))
    strides = {"strides": f"{1 << 20},{1 << 20}"}
    ir.result(ir.layer("ConvolutionBackpropData", [x, filter_], strides))
    refused(deconv_ir.load(ir.save(tmp_path)), [np.ones((1, 1, 2, 2), np.float32)])


def test_the_limit_is_to_the_byte(tmp_path: Path) -> None:
    path = tile([256, 1024]).save(tmp_path)
    x = np.ones((1, 1), np.float32)
    needed = deconv_ir.load(path).plan([x]).peak_bytes
    assert needed == 256 * 1024 * 4  # the second layer overwrites the first one's output
    assert deconv_ir.load(path, memory_limit=needed).run([x])["y"].shape == (256, 1024)
    error = refused(deconv_ir.load(path, memory_limit=needed - 1), [x])
    assert (error.expected, error.actual) == (needed - 1, needed)
    assert "the model needs 1 MiB of memory at once, 1024 KiB is the limit" in str(error)


def test_what_is_available_is_asked_when_pages_do_not_suffice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import psutil

    from deconv_ir.execute import memory

    model = deconv_ir.load(tile([256, 1024]).save(tmp_path))
    x = np.ones((1, 1), np.float32)
    monkeypatch.setattr(memory, "_surely_free", lambda: 0)
    there = psutil.virtual_memory()
    assert model.run([x])["y"].shape == (256, 1024)
    monkeypatch.setattr(psutil, "virtual_memory", lambda: there._replace(available=1000))
    assert "1000 B is available" in str(refused(model, [x]))


def test_sizes_that_are_not_known_are_said_to_be(tmp_path: Path) -> None:
    """The length of a Range of floats is in the values of its inputs."""
    ir = IR()
    ends = [ir.parameter(name, "") for name in ("start", "stop", "step")]
    ir.result(ir.layer("Range", ends, {"output_type": "f32"}, version="opset4", names="y"))
    model = deconv_ir.load(ir.save(tmp_path))
    scalars = [np.array(v, np.float32) for v in (0, 5, 1)]
    assert not model.plan(scalars).known
    assert model.run(scalars)["y"].tolist() == [0, 1, 2, 3, 4]
