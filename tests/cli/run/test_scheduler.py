"""deconv-run with a scheduler and a worker that are already running."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import distributed
import numpy as np
import psutil
import pytest
import zarr
from support import IR, deconvolution_ir
from tiling.exactness import is_exact

import deconv_ir

BIN = Path(sys.executable).parent
WINDOW = {"strides": "2,2", "dilations": "1,1", "pads_begin": "1,1", "pads_end": "1,1"}


def started(*words: object) -> subprocess.Popen[bytes]:
    output = subprocess.DEVNULL
    return subprocess.Popen([str(BIN / "dask"), *map(str, words)], stdout=output, stderr=output)


def ended(process: subprocess.Popen[bytes]) -> None:
    children = psutil.Process(process.pid).children(recursive=True)
    for one in (process, *children):
        one.kill()
    process.wait(30)


@pytest.fixture(scope="module")
def scheduler(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The scheduler's file."""
    file = tmp_path_factory.mktemp("scheduler") / "scheduler.json"
    where = ("--scheduler-file", file, "--no-dashboard")
    processes = [started("scheduler", "--host", "127.0.0.1", "--port", 0, *where)]
    deadline = time.monotonic() + 60
    while not file.exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)
    folder = file.with_name("worker")
    processes.append(started("worker", *where, "--nthreads", 2, "--local-directory", folder))
    yield file
    for process in processes[::-1]:
        ended(process)


def address(file: Path) -> str:
    import json

    return str(json.loads(file.read_text())["address"])


def deconv_run(
    folder: Path, *options: object, model: str = "", **environment: str
) -> tuple[int, str]:
    """Run the command in a folder other than the worker's; `model` is piped in."""
    given = "-" if model else folder / "model.xml"
    arguments = [BIN / "deconv-run", given, "--accuracy", "direct", *options]
    done = subprocess.run(
        list(map(str, arguments)),
        cwd=folder,
        input=model,
        env=os.environ | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=120,
    )
    return done.returncode, done.stdout


def frame(number: int) -> np.ndarray:
    return np.random.default_rng(number).standard_normal((1, 2, 9, 13)).astype(np.float32)


def test_files_of_a_pattern(scheduler: Path, tmp_path: Path) -> None:
    deconvolution_ir("1,2,?,?", attributes=WINDOW).save(tmp_path)
    (tmp_path / "frames").mkdir()
    for number in range(12):
        np.save(tmp_path / "frames" / f"{number}.npy", frame(number))
    bad = tmp_path / "frames" / "7.npy"
    bad.write_bytes(b"not an array")
    given = ("--input", "frames/*.npy", "--output", "results")
    code, text = deconv_run(tmp_path, *given, DASK_SCHEDULER_ADDRESS=address(scheduler))
    assert code == 2
    assert "error: frames/7.npy: not a .npy file" in text
    assert "12 files: 11 done, 1 failed" in text
    model = deconv_ir.load(tmp_path / "model.xml", accuracy="direct")
    (expected,) = model.run(frame(11)).values()
    assert np.load(tmp_path / "results" / "11.npy").tobytes() == expected.tobytes()
    np.save(bad, frame(7))
    code, text = deconv_run(tmp_path, *given, "--resume", "--scheduler", address(scheduler))
    assert (code, "1 done, 11 skipped" in text) == (0, True), text


@pytest.mark.parametrize("tile", ["5,7", "auto"])
def test_tiles_of_an_array(scheduler: Path, tmp_path: Path, tile: str) -> None:
    deconvolution_ir("1,2,?,?", attributes=WINDOW).save(tmp_path)
    np.save(tmp_path / "x.npy", frame(0))
    given = ("--input", tmp_path / "x.npy", "--output", tmp_path / "y.zarr", "--tile", tile)
    code, text = deconv_run(tmp_path, *given, "--scheduler-file", scheduler)
    assert code == 0, text
    (expected,) = deconv_ir.load(tmp_path / "model.xml", accuracy="direct").run(frame(0)).values()
    assert is_exact(zarr.open_array(tmp_path / "y.zarr", mode="r")[:], expected)


def test_a_worker_elsewhere_needs_the_arrays_alone(scheduler: Path, tmp_path: Path) -> None:
    """A model that is piped in is sent with its weights; paths refer to the client's folder."""
    assert Path.cwd() != tmp_path
    path = deconvolution_ir("1,2,?,?", attributes=WINDOW).save(tmp_path)
    (expected,) = deconv_ir.load(path, accuracy="direct").run(frame(0)).values()
    np.save(tmp_path / "x.npy", frame(0))
    text = path.read_text()
    path.unlink()
    given = ("--weights", "model.bin", "--input", "x.npy", "--output", "y.zarr", "--tile", "5,7")
    code, said = deconv_run(tmp_path, *given, "--scheduler-file", scheduler, model=text)
    assert code == 0, said
    assert is_exact(zarr.open_array(tmp_path / "y.zarr", mode="r")[:], expected)


def test_two_passes_of_a_lazy_array(scheduler: Path) -> None:
    ir = IR()
    axes = ir.const(np.array([2, 3], np.int64))
    given = {"normalize_variance": "true", "eps": "1e-5", "eps_mode": "inside_sqrt"}
    x = ir.parameter("x", "1,2,90,80")
    ir.result(ir.layer("MVN", [x, axes], given, version="opset6"))
    model = deconv_ir.load(ir.xml().encode(), bytes(ir.weights), warn=False)
    data = np.random.default_rng(1).standard_normal((1, 2, 90, 80)).astype(np.float32)
    lazy = model.map_dask(data, tile=(40, 50), two_pass=True)
    with distributed.Client(scheduler_file=str(scheduler), set_as_default=False) as client:
        found = client.compute(lazy).result()
    mean, variance = (f((2, 3), keepdims=True) for f in (data.mean, data.var))
    assert np.allclose(found, (data - mean) / np.sqrt(variance + 1e-5), rtol=0, atol=1e-5)


def test_two_passes(scheduler: Path, tmp_path: Path) -> None:
    """The workers measure and use two statistics; the second depends on the first."""
    ir = IR()
    axes = ir.const(np.array([2, 3], np.int64))
    x = ir.parameter("x", "1,2,90,80")
    given = {"normalize_variance": "true", "eps": "1e-5", "eps_mode": "inside_sqrt"}
    even = ir.layer("MVN", [x, axes], given, version="opset6", name="mvn")
    peak = ir.layer("ReduceMax", [even, axes], {"keep_dims": "true"}, name="peak")
    ir.result(ir.layer("Divide", [even, peak], name="y"))
    ir.save(tmp_path)
    data = np.random.default_rng(1).standard_normal((1, 2, 90, 80)).astype(np.float32)
    np.save(tmp_path / "x.npy", data)
    options = ("--input", tmp_path / "x.npy", "--output", tmp_path / "y.zarr", "--tile", "40,50")
    code, text = deconv_run(tmp_path, *options, "--scheduler-file", scheduler)
    assert (code, "'mvn' (MVN, id 2): sees the whole of axes 2, 3" in text) == (2, True), text
    code, text = deconv_run(tmp_path, *options, "--two-pass", "--scheduler-file", scheduler)
    assert code == 0, text
    even_ = (data - data.mean((2, 3), keepdims=True)) / data.std((2, 3), keepdims=True)
    expected = even_ / even_.max((2, 3), keepdims=True)
    found = zarr.open_array(tmp_path / "y.zarr", mode="r")
    assert found.chunks == (1, 2, 40, 50)
    assert np.allclose(found[:], expected, rtol=0, atol=1e-5)


def test_a_scheduler_that_is_not_there(tmp_path: Path) -> None:
    deconvolution_ir("1,2,?,?", attributes=WINDOW).save(tmp_path)
    np.save(tmp_path / "x.npy", frame(0))
    options = ("--input", tmp_path / "x.npy", "--output", tmp_path / "y.zarr", "--tile", "5,7")
    code, text = deconv_run(tmp_path, *options, "--scheduler", "nonsense://127.0.0.1:1")
    assert (code, "no scheduler at nonsense://127.0.0.1:1" in text) == (2, True), text
    assert text.count("\n") == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == ["model.bin", "model.xml", "x.npy"]
