"""Runs in tiles that are killed at any moment are resumed, with the result of a whole run.

A child of this process ends at the n-th operation on a file of the result, for each n, without any
cleanup, as by SIGKILL.  `python -m tests.tiling.kill_runs` kills commands at random moments.
"""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from support import IR, invoke

import deconv_ir
from deconv_ir.formats.volumes import remove_volume

from .exactness import is_exact

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system cannot fork")

TILE = ("--tile", "12,20")
KILLED = 9
EVENTS = frozenset(
    {"open", "os.rename", "os.remove", "os.mkdir", "os.rmdir", "os.truncate", "os.scandir"}
)


def network(folder: Path) -> None:
    """Write a model with a mean that needs two passes, and its input."""
    ir = IR()
    x = ir.parameter("x", "1,1,9,10")
    weights = ir.const(np.random.default_rng(0).standard_normal((1, 2, 4, 4)).astype(np.float32))
    window = {"strides": "2,2", "dilations": "1,1", "pads_begin": "1,1", "pads_end": "1,1"}
    up = ir.layer("ConvolutionBackpropData", [x, weights], window, name="up")
    axes = ir.const(np.array([2, 3]))
    mean = ir.layer("ReduceMean", [up, axes], {"keep_dims": "true"}, name="mean")
    ir.result(ir.layer("Subtract", [up, mean], name="scaled"), "result")
    ir.save(folder)
    data = np.random.default_rng(1).standard_normal((1, 1, 9, 10)).astype(np.float32)
    np.save(folder / "x.npy", data)


def run(folder: Path, output: str, *options: str) -> tuple[int, str]:
    model, data = folder / "model.xml", folder / "x.npy"
    found = invoke(model, "--input", data, "--output", folder / output, *TILE, *options)
    return found.exit_code, found.output


def load(path: Path) -> np.ndarray:
    return np.load(path) if path.suffix == ".npy" else zarr.open_array(path, mode="r")[...]


def count_or_kill(folder: Path, output: str, options: tuple[str, ...], at: int | None) -> int:
    """Run in a child that ends before the operation number `at`; return the number that it did."""
    read, write = os.pipe()
    pid = os.fork()
    if not pid:  # pragma: no cover
        code = 1
        try:
            prefixes = str(folder / output), str(folder / ".deconv")
            done, lock = 0, threading.Lock()

            def watch(event: str, arguments: tuple[Any, ...]) -> None:
                nonlocal done
                if event not in EVENTS or not str(arguments[0]).startswith(prefixes):
                    return
                with lock:
                    if done == at:
                        os._exit(KILLED)
                    done += 1

            sys.addaudithook(watch)
            code, _ = run(folder, output, *options)
            os.write(write, done.to_bytes(8, "little"))
        finally:
            os._exit(code)
    os.close(write)
    with os.fdopen(read, "rb") as stream:
        found = stream.read()
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert status == (0 if at is None else KILLED)
    return int.from_bytes(found, "little")


@pytest.mark.parametrize(
    ("output", "options", "before"),
    [
        ("y.npy", ("--two-pass",), "an interrupted run"),
        ("y.zarr", ("--until", "up"), "another result"),
    ],
)
def test_killed_at_each_operation_on_a_file(
    output: str, options: tuple[str, ...], before: str, tmp_path: Path
) -> None:
    """The run replaces another result, or starts again what an interrupted run has begun."""
    network(tmp_path)
    assert run(tmp_path, f"whole.{output}", *options)[0] == 0
    expected = load(tmp_path / f"whole.{output}")
    model = deconv_ir.load(tmp_path / "model.xml")
    name = "up" if "up" in options else "result"
    (whole,) = model.run(np.load(tmp_path / "x.npy"), outputs=name).values()
    assert is_exact(expected, whole) or np.allclose(expected, whole, rtol=0, atol=1e-6)
    options = (*options, "--force")

    def prepare() -> None:
        for path in [*tmp_path.glob("y.*"), *tmp_path.glob(".deconv*")]:
            remove_volume(path)
        if before == "an interrupted run":
            count_or_kill(tmp_path, output, options, 8 if output == "y.npy" else 16)
            assert len(list(tmp_path.glob("y.*"))) == 2
        elif output.endswith(".npy"):
            np.save(tmp_path / output, np.zeros(3))
        else:
            zarr.save_array(tmp_path / output, np.zeros(3))

    prepare()
    for at in range(count_or_kill(tmp_path, output, options, None)):
        prepare()
        count_or_kill(tmp_path, output, options, at)
        code, text = run(tmp_path, output, *options, "--resume")
        assert code == 0, (at, text)
        assert np.array_equal(load(tmp_path / output), expected), at
        assert [path.name for path in tmp_path.glob("y.*")] == [output], at
        assert not list(tmp_path.rglob("*.partial*")), at
    code, text = run(tmp_path, output, *options, "--resume")
    assert (code, "complete since an earlier run" in text) == (0, True)
    assert np.array_equal(load(tmp_path / output), expected)
