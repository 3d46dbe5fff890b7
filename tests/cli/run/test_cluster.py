"""deconv-run on local workers."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import click
import distributed
import numpy as np
import psutil
import pytest
from deconv_cli.run.cluster import completed, result_of
from deconv_cli.shared.common import Mistake, run_command
from support import deconvolution_ir, invoke
from tiling.exactness import is_exact

import deconv_ir
from deconv_ir.errors import ResourceError

WINDOW = {"strides": "2,2", "dilations": "1,1", "pads_begin": "1,1", "pads_end": "1,1"}
SCRIPT = Path(sys.executable).with_name("deconv-run")


@pytest.fixture
def network(tmp_path: Path) -> Path:
    deconvolution_ir("1,2,?,?", attributes=WINDOW).save(tmp_path)
    (tmp_path / "frames").mkdir()
    return tmp_path


def frame(number: int) -> np.ndarray:
    return np.random.default_rng(number).standard_normal((1, 2, 9, 13)).astype(np.float32)


def deconv_run(folder: Path, *options: str) -> subprocess.Popen[str]:
    arguments = [str(SCRIPT), str(folder / "model.xml"), "--accuracy", "direct", *options]
    return subprocess.Popen(
        arguments,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
        # A background job of a shell, which a test run may be, ignores the signal.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )


def test_a_killed_worker_costs_nothing_that_was_complete(network: Path) -> None:
    count, bad = 300, 7
    for number in range(count):
        np.save(network / "frames" / f"{number}.npy", frame(number))
    (network / "frames" / f"{bad}.npy").write_bytes(b"not an array")
    results = network / "results"
    process = deconv_run(
        network, "--input", str(network / "frames"), "--output", f"{results}/", "--workers", "2"
    )
    deadline = time.monotonic() + 60
    while len(list(results.glob("*.npy"))) < 20:
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)
    complete = {path: path.stat() for path in results.glob("*.npy")}
    workers = [p for p in psutil.Process(process.pid).children(recursive=True) if not p.children()]
    victim = max(workers, key=lambda p: sum(p.cpu_times()[:2]))
    victim.kill()
    _, errors = process.communicate(timeout=90)
    assert process.returncode == 2, errors
    assert f"{count} files: {count - 1} done, 1 failed" in errors
    assert f"{bad}.npy: not a .npy file" in errors
    for path, before in complete.items():
        after = path.stat()
        assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    model = deconv_ir.load(network / "model.xml", accuracy="direct")
    for number in (0, 150, 299):
        (expected,) = model.run(frame(number)).values()
        assert np.load(results / f"{number}.npy").tobytes() == expected.tobytes()
    assert len(list(results.glob("*.npy"))) == count - 1


def test_an_interrupted_run_of_files_is_resumed_where_it_was(network: Path) -> None:
    """Results that workers have written are kept, even if the client has not asked for them yet."""
    count, results = 400, network / "results"
    for number in range(count):
        np.save(network / "frames" / f"{number}.npy", frame(number))
    options = ("--input", f"{network / 'frames'}", "--output", f"{results}/", "--workers", "2")
    process = deconv_run(network, *options)
    deadline = time.monotonic() + 60
    while len(list(results.glob("*.npy"))) < 20:
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)
    children = psutil.Process(process.pid).children(recursive=True)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    assert (process.returncode, errors.split()) == (130, ["interrupted"])
    assert not psutil.wait_procs(children, timeout=30)[1]
    complete = {path: path.stat() for path in results.glob("*.npy")}
    process = deconv_run(network, *options, "--resume")
    _, errors = process.communicate(timeout=90)
    assert process.returncode == 0, errors
    kept = len(complete)
    assert errors.startswith(f"{count} files: {count - kept} done, {kept} skipped"), errors
    for path, before in complete.items():
        after = path.stat()
        assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_tiles_on_two_workers(network: Path) -> None:
    np.save(network / "x.npy", frame(0))
    process = deconv_run(
        network,
        *("--input", str(network / "x.npy"), "--output", str(network / "y.zarr")),
        *("--tile", "5,7", "--workers", "2", "--quiet"),
    )
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    import zarr

    found = zarr.open_array(network / "y.zarr", mode="r")
    model = deconv_ir.load(network / "model.xml", accuracy="direct")
    (expected,) = model.run(frame(0)).values()
    assert found.chunks == (1, 3, 5, 7)
    assert is_exact(found[:], expected)


@pytest.mark.parametrize("when", ["workers start", "tiles are computed"])
def test_ctrl_c_ends_the_workers_and_says_so_in_one_word(network: Path, when: str) -> None:
    """A terminal sends the signal to the whole group."""
    np.save(network / "x.npy", np.zeros((1, 2, 300, 300), np.float32))
    process = deconv_run(
        network,
        *("--input", str(network / "x.npy"), "--output", str(network / "y.npy")),
        *("--tile", "4,4", "--workers", "2"),
    )
    journal = network / "y.npy.partial.tiles"
    deadline = time.monotonic() + 60

    def reached() -> bool:
        if when == "workers start":
            return bool(psutil.Process(process.pid).children())
        return journal.exists() and journal.read_bytes().count(b"#") >= 3

    while not reached():
        assert process.poll() is None
        assert time.monotonic() < deadline
        time.sleep(0.02)
    children = psutil.Process(process.pid).children(recursive=True)
    os.killpg(process.pid, signal.SIGINT)
    _, errors = process.communicate(timeout=120)
    assert (process.returncode, errors.split()) == (130, ["interrupted"])
    assert len(children) >= (1 if when == "workers start" else 2)
    # The semaphore tracker ends when it notices that this process has ended.
    assert not psutil.wait_procs(children, timeout=30)[1]
    assert not (network / "y.npy").exists()


def test_an_interruption_that_a_library_drops(monkeypatch: pytest.MonkeyPatch) -> None:
    """The handler's exception may be raised in a finalizer, which cannot propagate it."""

    def dropping(futures: list[SimpleNamespace]) -> Iterator[SimpleNamespace]:
        for future in futures:
            with contextlib.suppress(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
            yield future

    monkeypatch.setattr(distributed, "as_completed", dropping)
    monkeypatch.setattr(sys, "argv", ["deconv-run"])
    futures = [SimpleNamespace(release=lambda: None)] * 3
    client = SimpleNamespace(status="closed")
    command = click.Command("run", callback=lambda: list(completed(client, futures)))
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(SystemExit) as caught:
            run_command(command)
    finally:
        signal.signal(signal.SIGINT, before)
    assert caught.value.code == 130


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (("--workers", "2", "--scheduler", "tcp://x:1"), "use one of them"),
        (("--scheduler", "tcp://127.0.0.1:1"), "y.npy: tiles of several machines"),
    ],
)
def test_mistakes(network: Path, options: tuple[str, ...], message: str) -> None:
    np.save(network / "x.npy", frame(0))
    files = ("--input", network / "x.npy", "--output", network / "y.npy")
    found = invoke(network / "model.xml", *files, "--tile", "5,7", *options)
    assert (found.exit_code, message in found.output) == (2, True), found.output


def test_errors_of_a_cluster_are_those_of_the_user() -> None:
    def future(error: Exception) -> SimpleNamespace:
        def result() -> None:
            raise error

        return SimpleNamespace(result=result)

    with pytest.raises(ResourceError, match="the workers died"):
        result_of(future(distributed.KilledWorker("task", "worker", 3)))
    with pytest.raises(Mistake, match="lost the connection to the scheduler"):
        result_of(future(distributed.CancelledError("task")))
    with pytest.raises(Mistake, match="a worker cannot import what it needs: No module named 'x'"):
        result_of(future(ModuleNotFoundError("No module named 'x'")))


@pytest.mark.parametrize(
    "signalling",
    [
        "class Signalling:\n    def __del__(self): os.kill(os.getpid(), signal.SIGINT)\n",
        # As a Dask future, whose finalizer needs attributes that its constructor sets.
        "class Signalling:\n"
        "    def __init__(self):\n"
        "        try: os.kill(os.getpid(), signal.SIGINT)\n"
        "        finally: print('dropped', flush=True)\n"
        "        self.client = None\n"
        "    def __del__(self): self.client\n",
    ],
    ids=["in a finalizer", "in a constructor"],
)
def test_a_signal_among_finalizers_is_one_word_all_the_same(signalling: str) -> None:
    """The signal may arrive in Dask's constructors and in callbacks of the garbage collector."""
    code = (
        "import click, os, signal\n"
        "from deconv_cli.shared.common import raise_again, run_command\n"
        f"{signalling}"
        "@click.command()\n"
        "def command():\n"
        "    Signalling()\n"
        "    print('dropped', flush=True)\n"
        "    raise_again()\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "run_command(command)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout, done.stderr.split()) == (
        130,
        "dropped\n",
        ["interrupted"],
    )
