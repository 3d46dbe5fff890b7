"""Tables on terminals: as wide as these at most; in files and pipes, whole."""

from __future__ import annotations

import fcntl
import os
import struct
import subprocess
import sys
import termios
from pathlib import Path

import pytest
from deconv_cli.shared.tables import fit
from support import IR

LONG = "features/stage3/block12/attention/projection/Convolution"
RUN = [sys.executable, "-P", "-m", "deconv_cli.run.command"]
END = "and/a/name/that/is/longer/still"
HEADERS = ["layer", "type", "ms", "share"]
ALIGNED = ["left", "left", "right", "right"]
CELLS = [[LONG, "Convolution+Add+ReLU", "1.234", "50.0%"], ["x", "ReLU", "0.1", "1.0%"]]


def width_of(cells: list[list[str]], headers: list[str]) -> int:
    """Return the width of a table of tabulate, whose headers have two spaces more."""
    columns = zip(*[[header + "  " for header in headers], *cells], strict=True)
    return sum(max(map(len, column)) + 2 for column in columns) - 2


@pytest.mark.parametrize(
    ("width", "omit", "left_out"),
    [
        (200, ["share"], []),
        (80, ["share"], []),
        (70, ["share"], []),
        (58, ["share", "ms"], ["share"]),
        (50, ["share", "ms"], ["share", "ms"]),
    ],
)
def test_tables_fit(width: int, omit: list[str], left_out: list[str]) -> None:
    found = fit(CELLS, HEADERS, ALIGNED, width, omit)
    assert found.omitted == left_out
    assert [HEADERS[c] for c in found.columns] == [h for h in HEADERS if h not in left_out]
    shown = [HEADERS[c] for c in found.columns]
    assert width_of(found.cells, shown) <= width
    assert (found.cells == CELLS) == (width == 200)
    # The begin and the end of a name remain.
    name = found.cells[0][0]
    assert len(name) >= 24
    assert name[:8] == LONG[:8]
    assert name[-12:] == LONG[-12:]


def test_a_width_that_nothing_fits_into_gives_the_narrowest_table() -> None:
    found = fit(CELLS, HEADERS, ALIGNED, 10, ["share"])
    assert len(found.cells[0][0]) == 24


def test_sentences_keep_their_begin() -> None:
    found = fit(
        [["winograd F(4,3); with a long list of layers"]], ["how"], ["left"], 30, (), ["how"]
    )
    assert found.cells == [["winograd F(4,3); with a long \N{HORIZONTAL ELLIPSIS}"]]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    ir = IR()
    at = ir.parameter("x", "1,4,8,8")
    for k in range(3):
        window = {"kernel": "2,2", "strides": "1,1", "pads_begin": "0,0", "pads_end": "0,0"}
        dims = f"1,4,{7 - k},{7 - k}"
        at = ir.layer("MaxPool", [at], window, outputs=(dims,), name=f"{LONG}/{k}/{END}")
    ir.result(at, "y")
    return ir.save(tmp_path_factory.mktemp("long"))


def in_terminal(
    arguments: list[str | Path], columns: int, folder: Path, module: str = "run", code: int = 0
) -> list[str]:
    """Run a command in a terminal of some columns; return the lines that it shows."""
    master, slave = os.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 50, columns, 0, 0))
    environment = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES")}
    command = [sys.executable, "-P", "-m", f"deconv_cli.{module}.command", *map(str, arguments)]
    with subprocess.Popen(
        command,
        stdin=slave,
        stdout=slave,
        stderr=slave,
        cwd=folder,
        env=environment | {"NO_COLOR": "1"},
    ) as process:
        os.close(slave)
        shown = bytearray()
        while True:
            try:
                part = os.read(master, 1 << 16)
            except OSError:  # the end, on Linux
                break
            if not part:
                break
            shown += part
    os.close(master)
    assert process.returncode == code, shown.decode()
    return shown.decode().replace("\r", "").splitlines()


@pytest.mark.parametrize("option", ["--profile", "--explain-plan"])
def test_tables_in_a_terminal_of_80_columns(option: str, model: Path, tmp_path: Path) -> None:
    arguments = [
        model,
        "--random-inputs",
        "0",
        *(["--no-output"] if option == "--profile" else []),
        option,
    ]
    lines = in_terminal(arguments, 80, tmp_path)
    (head,) = (k for k, line in enumerate(lines) if "layer  " in line)
    rows = lines[head : head + 4]
    assert max(map(len, rows)) <= 80
    assert all(line.count("features/") <= 1 for line in rows)
    assert any(line.startswith("left out at 80 columns: output") for line in lines)
    piped = subprocess.run(
        [*RUN, *map(str, arguments)],
        cwd=tmp_path, check=True, capture_output=True, text=True,
    )  # fmt: skip
    text = piped.stdout + piped.stderr
    assert text.count(END) >= 3
    assert "left out" not in text


def test_errors_of_tensors_in_a_terminal_of_80_columns(model: Path, tmp_path: Path) -> None:
    """The first window of the second model is another one, with an output of the same dims."""
    other = tmp_path / "other"
    other.mkdir()
    text = model.read_text().replace('kernel="2,2"', 'kernel="3,3"', 1)
    (other / "model.xml").write_text(text.replace('pads_begin="0,0"', 'pads_begin="1,1"', 1))
    arguments: list[str | Path] = [model, other / "model.xml", "--random-inputs", "0"]
    lines = in_terminal(arguments, 80, tmp_path, "diff", code=1)
    head, *_ = (k for k, line in enumerate(lines) if "tensor  " in line)
    assert max(map(len, lines[head : head + 3])) <= 80
    assert any(line.startswith("left out at 80 columns: NaN, inf") for line in lines)
    piped = subprocess.run(
        [sys.executable, "-P", "-m", "deconv_cli.diff.command", *map(str, arguments)],
        cwd=tmp_path, check=False, capture_output=True, text=True,
    )  # fmt: skip
    rows = [line for line in piped.stdout.splitlines() if line.startswith("!")]
    assert rows
    assert all(f"{LONG}/" in row for row in rows)


def test_one_step_is_one_step(model: Path, tmp_path: Path) -> None:
    name = f"{LONG}/0/{END}"
    done = subprocess.run(
        [*RUN, str(model), "--until", name, "--explain-plan"],
        cwd=tmp_path, check=True, capture_output=True, text=True,
    )  # fmt: skip
    assert "\n1 step; 0 layers folded" in done.stdout
