"""Output files are complete or absent: full disks, signals, broken pipes, many writers."""

from __future__ import annotations

import contextlib
import os
import random
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import click
import numpy as np
import pytest
from deconv_cli.shared import common
from support import IR

from deconv_ir.formats.files import replace_file
from hostile.children import environment, limit_file_size, one_error_line, run, start

SIDE = 600


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Make a model that computes an array of some size, and its input."""
    ir = IR()
    ir.result(ir.layer("ReLU", [ir.parameter("x", "?,?")], names="y"))
    ir.save(tmp_path)
    np.save(tmp_path / "x.npy", np.ones((SIDE, SIDE), np.float32))
    (tmp_path / "out").mkdir()
    return tmp_path


RUN = ("model.xml", "--input", "x.npy", "--output", "out/y.npy")


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """Mount a file system of 1 MiB."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)]
    if os.geteuid() != 0 or subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("a file system cannot be mounted here (needs root)")
    yield disk
    subprocess.run(["umount", str(disk)], check=True)


def test_a_full_disk(folder: Path, small_disk: Path) -> None:
    code, _, error = run("run", *RUN[:3], "--output", "disk/y.npy", cwd=folder)
    assert code == 2
    assert "disk/y.npy: cannot write the array: No space left" in one_error_line(error)
    assert not list(small_disk.iterdir())


def test_a_full_disk_leaves_what_was_there(folder: Path, small_disk: Path) -> None:
    (small_disk / "y.npy").write_text("mine")
    code, _, error = run("run", *RUN[:3], "--output", "disk/y.npy", "--force", cwd=folder)
    assert code == 2
    assert "No space left" in one_error_line(error)
    assert [p.name for p in small_disk.iterdir()] == ["y.npy"]
    assert (small_disk / "y.npy").read_text() == "mine"


def test_a_disk_that_cannot_be_written(folder: Path, small_disk: Path) -> None:
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    for command in (("run", *RUN[:3], "--output"), ("lint", "model.xml", "--output")):
        code, _, error = run(*command, "disk/y", cwd=folder)
        assert code == 2
        assert "Read-only file system" in one_error_line(error)
    code, _, error = run("lint", "model.xml", "--cache-dir", "disk", cwd=folder)
    assert (code, error) == (1, "")


def test_a_file_size_limit(folder: Path) -> None:
    code, _, error = run("run", *RUN, cwd=folder, preexec_fn=lambda: limit_file_size(1 << 16))
    assert code == 2
    assert "out/y.npy: cannot write the array: File too large" in one_error_line(error)
    assert not list((folder / "out").iterdir())


@pytest.mark.parametrize("arguments", [("--output", "-"), ("--json", "--output", "out/"), ("-h",)])
def test_standard_output_is_full(arguments: tuple[str, ...], folder: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full here")
    with Path("/dev/full").open("wb") as full:
        code, _, error = run("run", *RUN[:3], *arguments, cwd=folder, stdout=full)
    assert code == 2
    assert "cannot write to standard output: No space left" in one_error_line(error)


def test_standard_error_is_full(folder: Path) -> None:
    if not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full here")
    with Path("/dev/full").open("wb") as full:
        code, _, _ = run("run", "none.xml", cwd=folder, stderr=full)
    assert code == 2


def test_a_broken_pipe_is_silent(folder: Path) -> None:
    process = start("run", *RUN[:3], "--output", "-", "--quiet", cwd=folder)
    assert process.stdout is not None
    assert process.stderr is not None
    assert process.stdout.read(6) == b"\x93NUMPY"
    process.stdout.close()  # as head does
    assert process.stderr.read() == b""
    assert process.wait(timeout=60) == 0
    process.stderr.close()


@pytest.fixture
def special(tmp_path: Path) -> Path:
    """Make names that exist but are not regular files; none of them belongs to the system."""
    folder = tmp_path / "special"
    folder.mkdir()
    os.mkfifo(folder / "fifo")
    (folder / "link").symlink_to("fifo")
    (folder / "loop").symlink_to("loop")
    (folder / "terminal").symlink_to("/dev/tty")
    (folder / "folder").mkdir()
    with contextlib.suppress(PermissionError):  # needs root
        os.mknod(folder / "device", 0o600 | stat.S_IFCHR, os.makedev(1, 3))
    return folder


REPORTS = [("lint", "model.xml", "--output"), ("spec", "check", "doc.md", "--output")]


@pytest.mark.parametrize("name", ["fifo", "link", "device"])
@pytest.mark.parametrize("command", REPORTS, ids=" ".join)
def test_reports_are_written_to_devices_and_fifos(
    command: tuple[str, ...], name: str, folder: Path, special: Path
) -> None:
    """Devices such as /dev/stdout and FIFOs stay what they are."""
    path = special / name
    if not os.path.lexists(path):
        pytest.skip("a device cannot be made here (needs root)")
    (folder / "doc.md").write_text("# Nothing\n")
    before = path.lstat().st_mode
    # Opened for reading and writing, so that neither side waits; a pipe's buffer holds a report.
    reader = os.open(path, os.O_RDWR)
    try:
        code, _, error = run(*command, f"special/{name}", cwd=folder)
        text = b"" if name == "device" else os.read(reader, 1 << 16)
    finally:
        os.close(reader)
    assert code == (1 if command[0] == "lint" else 0), error
    assert name == "device" or (b"IR401" if command[0] == "lint" else b"0 examples") in text
    assert path.lstat().st_mode == before


@pytest.mark.parametrize(
    ("command", "name"),
    [
        (command, name)
        for command in (
            ("run", *RUN[:3], "--force", "--output"),
            ("lint", "model.xml", "--update-baseline", "--baseline"),
            *REPORTS,
        )
        for name in ("fifo", "link", "loop", "terminal", "folder", "device")
        if command not in REPORTS or name in ("loop", "terminal", "folder")
    ],
    ids=lambda v: v if isinstance(v, str) else " ".join(v),
)
def test_devices_and_fifos_are_not_replaced(
    command: tuple[str, ...], name: str, folder: Path, special: Path
) -> None:
    """A rename would replace them by a file: as root, even /dev/null."""
    path = special / name
    if not os.path.lexists(path):
        pytest.skip("a device cannot be made here (needs root)")
    (folder / "doc.md").write_text("# Nothing\n")
    if command[0] == "run":  # a folder is accepted as the place of y.npy
        (special / "folder" / "y.npy").mkdir()

    def there() -> set[tuple[str, int, int]]:
        return {(p.name, p.lstat().st_ino, p.lstat().st_mode) for p in special.iterdir()}

    before = there()
    code, _, error = run(*command, f"special/{name}", cwd=folder)
    assert code == 2
    one_error_line(error)
    assert there() == before


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_names_of_the_system_are_not_replaced(name: str, tmp_path: Path) -> None:
    """These names may lead to anything, for example to a regular file."""
    if not os.path.lexists(name):
        pytest.skip(f"there is no {name} here")
    before = Path(name).readlink()
    with (tmp_path / "out").open("wb") as out:
        code = (
            "import pathlib\n"
            "from deconv_ir.formats.files import replace_file\n"
            f"with replace_file(pathlib.Path({name!r})):\n"
            "    raise SystemExit('it would be replaced')\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", code],
            stdout=out,
            stderr=subprocess.PIPE,
            env=environment(),
            check=False,
        )
    assert b"not a regular file" in done.stderr
    assert Path(name).readlink().parent == before.parent


def test_a_link_is_replaced_and_not_followed(folder: Path) -> None:
    """In a folder of another user, a link may lead anywhere."""
    (folder / "elsewhere.npy").write_text("mine")
    (folder / "out" / "y.npy").symlink_to(folder / "elsewhere.npy")
    code, _, error = run("run", *RUN, "--force", "-q", cwd=folder)
    assert code == 0, error
    assert (folder / "elsewhere.npy").read_text() == "mine"
    assert not (folder / "out" / "y.npy").is_symlink()


SIGNALS = [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]


@pytest.mark.parametrize(("number", "expected"), SIGNALS, ids=lambda v: str(v))
def test_a_signal_while_writing(number: int, expected: int, folder: Path) -> None:
    """The writer waits for a FIFO as its standard input, with its output half done."""
    old = folder / "out" / "y.npy"
    old.write_text("mine")
    code = (
        "import sys, pathlib\n"
        "from deconv_cli.shared import common\n"
        "from deconv_ir.formats.files import replace_file\n"
        "import click\n"
        "@click.command()\n"
        "def command():\n"
        "    with replace_file(pathlib.Path('out/y.npy')) as stream:\n"
        "        stream.write(b'half')\n"
        "        stream.flush()\n"
        "        print('writing', flush=True)\n"
        "        sys.stdin.read()\n"
        "common.run_command(command)\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=folder,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environment(),
        preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"writing\n"
    assert len(list((folder / "out").iterdir())) == 2
    process.send_signal(number)
    _, error = process.communicate(timeout=60)
    assert process.returncode == expected
    assert b"Traceback" not in error
    assert [p.name for p in (folder / "out").iterdir()] == ["y.npy"]
    assert old.read_text() == "mine"


@pytest.mark.parametrize(("number", "expected"), SIGNALS[:2], ids=lambda v: str(v))
def test_a_signal_at_any_moment(number: int, expected: int, folder: Path) -> None:
    """The output is complete or absent, and no other file is left."""
    draw = random.Random(number)
    whole = _output_of_a_run(folder)
    ended = set()
    for _ in range(10):
        process = start(
            "run",
            *RUN,
            *("--force", "--quiet"),
            cwd=folder,
            preexec_fn=lambda: signal.signal(number, signal.SIG_DFL),
        )
        _wait_until_it_catches(process, signal.SIGTERM)
        time.sleep(draw.uniform(0.0, 0.4))
        process.send_signal(number)
        _, error = process.communicate(timeout=60)
        # After its cleanup is done, the signal has its default action.
        assert process.returncode in (0, expected, -number), error
        assert b"Traceback" not in error or process.returncode != expected
        ended.add(process.returncode)
        left = list((folder / "out").iterdir())
        assert [p.name for p in left] in ([], ["y.npy"])
        for path in left:
            assert path.read_bytes() == whole
            path.unlink()
    assert expected in ended


def _output_of_a_run(folder: Path) -> bytes:
    code, _, error = run("run", *RUN, "--quiet", cwd=folder)
    assert code == 0, error
    path = folder / "out" / "y.npy"
    data = path.read_bytes()
    assert np.load(path).shape == (SIDE, SIDE)
    path.unlink()
    return data


def _wait_until_it_catches(process: subprocess.Popen[bytes], number: int) -> None:
    """Wait until the command handles the signal."""
    status = Path(f"/proc/{process.pid}/status")
    while process.poll() is None:
        caught = next(x for x in status.read_text().splitlines() if x.startswith("SigCgt"))
        if int(caught.split()[1], 16) >> (number - 1) & 1:
            return
        time.sleep(0.005)


class _Interrupted(BaseException):
    """The exception raised by the signal handler."""


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore::ResourceWarning")  # freeing closes its descriptor
def test_an_interruption_after_any_instruction(tmp_path: Path) -> None:
    """An exception between any two lines of the writer leaves no temporary file behind."""
    watched = replace_file.__wrapped__.__code__  # type: ignore[attr-defined]
    path = tmp_path / "y"
    path.write_text("mine")
    for stop in range(1, 400):
        seen = 0

        def trace(frame, event, argument):
            nonlocal seen
            if frame.f_code is not watched:
                return None
            frame.f_trace_opcodes = True
            if event == "opcode":
                seen += 1
                if seen == stop:  # noqa: B023
                    sys.settrace(None)
                    raise _Interrupted
            return trace

        finished = False
        sys.settrace(trace)
        try:
            with replace_file(path, durable=False) as stream:
                stream.write(b"new")
            finished = True
        except _Interrupted:
            pass
        finally:
            sys.settrace(None)
        assert [p.name for p in tmp_path.iterdir()] == ["y"], stop
        assert path.read_text() in ("mine", "new")
        if finished:
            break
        path.write_text("mine")
    else:
        raise AssertionError("the writer never came to its end")
    assert stop > 20


def test_what_a_parent_ignores_stays_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    old = signal.getsignal(signal.SIGHUP)
    before = signal.getsignal(signal.SIGTERM)
    seen = {}

    @click.command("probe")
    def probe() -> None:
        seen.update({n: signal.getsignal(n) for n in (signal.SIGHUP, signal.SIGTERM)})

    monkeypatch.setattr(sys, "argv", ["probe"])
    try:
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        with pytest.raises(SystemExit) as done:
            common.run_command(probe)
        assert done.value.code == 0
        assert seen[signal.SIGHUP] is signal.SIG_IGN
        assert seen[signal.SIGTERM] not in (before, signal.SIG_DFL, signal.SIG_IGN)
        assert signal.getsignal(signal.SIGTERM) is before
    finally:
        signal.signal(signal.SIGHUP, old)


def test_concurrent_runs_into_one_directory(folder: Path) -> None:
    for i in range(4):
        np.save(folder / f"x{i}.npy", np.full((300, 300), i, np.float32))
    processes = [
        start("run", "model.xml", "--input", f"x{i}.npy", *RUN[3:], "--force", "-q", cwd=folder)
        for i in range(4)
    ]
    for process in processes:
        _, error = process.communicate(timeout=120)
        assert process.returncode == 0, error
    assert [p.name for p in (folder / "out").iterdir()] == ["y.npy"]
    found = np.load(folder / "out" / "y.npy")
    assert found.shape == (300, 300)
    assert len(np.unique(found)) == 1, "one run's result, not a mixture"


def test_concurrent_writers_in_one_process(tmp_path: Path) -> None:
    path = tmp_path / "y"
    errors = []

    def write(letter: bytes) -> None:
        for _ in range(50):
            try:
                with replace_file(path, durable=False) as stream:
                    stream.write(letter * 10_000)
            except OSError as error:
                errors.append(error)

    threads = [threading.Thread(target=write, args=(bytes([65 + i]),)) for i in range(4)]
    for thread in threads:
        thread.start()
    while any(t.is_alive() for t in threads):
        with contextlib.suppress(FileNotFoundError):
            data = path.read_bytes()
            assert len(data) == 10_000
            assert len(set(data)) == 1
    assert not errors
    assert [p.name for p in tmp_path.iterdir()] == ["y"]


def test_data_reach_the_disk_before_the_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    events = []
    fsync, replace = os.fsync, Path.replace

    def noted_fsync(descriptor: int) -> None:
        events.append("file")
        fsync(descriptor)

    def noted_replace(self: Path, target: Path) -> Path:
        events.append("rename")
        return replace(self, target)

    monkeypatch.setattr(os, "fsync", noted_fsync)
    monkeypatch.setattr(Path, "replace", noted_replace)
    with replace_file(tmp_path / "y") as stream:
        stream.write(b"new")
    assert events == ["file", "rename"]


@pytest.mark.parametrize("name", ["y" * 255, "\u4e2d" * 85, "\U0001f600" * 63])
def test_names_as_long_as_a_file_system_allows(name: str, tmp_path: Path) -> None:
    with replace_file(tmp_path / name) as stream:
        stream.write(b"new")
    assert (tmp_path / name).read_bytes() == b"new"


def test_output_names_that_are_paths_stay_in_the_folder(tmp_path: Path) -> None:
    ir = IR()
    x = ir.parameter("x", "2")
    for name in ("../escaped", "/etc/passwd", "..", "con\u4e2d" * 100, ".hidden", "a&#0010;b"):
        ir.result(ir.layer("ReLU", [x], names=name, name=name))
    ir.save(tmp_path)
    np.save(tmp_path / "x.npy", np.zeros(2, np.float32))
    code, _, error = run(
        "run", "model.xml", "--input", "x.npy", "--output", "out/", "-q", cwd=tmp_path
    )
    assert code == 0, error
    written = {path.name for path in (tmp_path / "out").iterdir()}
    assert len(written - {"deconv-tensors.json"}) == 6  # the manifest maps names to files
    assert sorted(p.name for p in tmp_path.iterdir()) == ["model.bin", "model.xml", "out", "x.npy"]
