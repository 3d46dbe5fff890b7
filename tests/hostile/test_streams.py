"""Standard streams that are closed, or whose reader has gone."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from support import IR, in_turn

from hostile.children import environment, one_error_line, run


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    ir = IR()
    ir.result(ir.layer("ReLU", [ir.parameter("x", "?,?")], names="y"))
    ir.save(tmp_path)
    np.save(tmp_path / "x.npy", np.ones((300, 300), np.float32))
    (tmp_path / "doc.md").write_text("# Nothing\n")
    return tmp_path


RUN = ("run", "model.xml", "--input", "x.npy", "--force")
COMMANDS = {
    (*RUN, "--output", "y.npy"): 0,
    (*RUN, "--output", "y.npy", "--json"): 0,
    (*RUN, "--explain-plan"): 0,
    ("run", "--list-operations"): 0,
    ("run", "none.xml"): 2,
    ("lint", "model.xml"): 1,
    ("lint", "model.xml", "--format", "sarif"): 1,
    ("lint", "none.xml"): 2,
    ("spec", "check", "doc.md"): 0,
    ("spec", "--help"): 0,
}


def closed(*descriptors: int) -> Callable[[], None]:
    def close() -> None:
        for descriptor in descriptors:
            os.close(descriptor)

    return close


# Each command without any stream, and without one of them in turn.
CLOSED = [(command, (0, 1, 2)) for command in COMMANDS]
CLOSED += in_turn(COMMANDS, [(0,), (1,), (2,)], 1)


@pytest.mark.parametrize(("command", "descriptors"), CLOSED, ids=lambda v: " ".join(map(str, v)))
def test_closed_streams(
    command: tuple[str, ...], descriptors: tuple[int, ...], folder: Path
) -> None:
    code, _, error = run(*command, cwd=folder, preexec_fn=closed(*descriptors))
    assert code == COMMANDS[command]
    assert "Traceback" not in error
    assert not error or 2 not in descriptors
    if "y.npy" in command:
        assert np.load(folder / "y.npy").shape == (300, 300)


@pytest.mark.parametrize(
    "command",
    [("run", "model.xml", "--input", "-"), ("lint", "-"), ("spec", "check", "-")],
    ids=" ".join,
)
def test_a_closed_standard_input_is_an_error(command: tuple[str, ...], folder: Path) -> None:
    code, _, error = run(*command, cwd=folder, preexec_fn=closed(0))
    assert code == 2
    assert one_error_line(error) == "error: standard input is closed"


def test_a_closed_standard_output_is_an_error(folder: Path) -> None:
    code, _, error = run(*RUN, "--output", "-", cwd=folder, preexec_fn=closed(1))
    assert code == 2
    assert one_error_line(error) == "error: standard output is closed"


def test_no_file_takes_the_number_of_a_closed_stream(folder: Path) -> None:
    """A library that prints to descriptor 1 or 2 must not write into a result."""
    code = (
        "import os, click\n"
        "from deconv_cli.shared.common import run_command\n"
        "@click.command()\n"
        "def command():\n"
        "    with open('made', 'wb') as stream:\n"
        "        assert stream.fileno() > 2\n"
        "        os.write(1, b'noise')\n"
        "        os.write(2, b'noise')\n"
        "run_command(command)\n"
    )
    subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env=environment(),
        preexec_fn=closed(0, 1, 2),
        check=True,
        timeout=60,
    )
    assert (folder / "made").read_bytes() == b""


@pytest.mark.parametrize(
    "command",
    [
        (*RUN, "--output", "y.npy"),
        ("run", "--list-operations"),
        ("lint", "model.xml"),
        ("lint", "model.xml", "--format", "sarif"),
        ("spec", "--help"),
    ],
    ids=" ".join,
)
def test_a_reader_that_has_gone_away(command: tuple[str, ...], folder: Path) -> None:
    read, write = os.pipe()
    os.close(read)
    try:
        code, _, error = run(*command, cwd=folder, stdout=write)
    finally:
        os.close(write)
    assert "Traceback" not in error
    assert "Broken pipe" not in error
    # The command may have printed nothing before the pipe was closed.
    assert code in (0, COMMANDS[command])
