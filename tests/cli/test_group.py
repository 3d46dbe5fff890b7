"""python -m deconv_ir: the commands as one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from support import IR

BLOCK = Path(__file__).parent.parent.parent / "samples/block/block.xml"


def run(*arguments: object, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "deconv_ir", *map(str, arguments)],
        cwd=cwd, capture_output=True, text=True, check=False,
    )  # fmt: skip


def test_commands(tmp_path: Path) -> None:
    done = run("run", BLOCK, "--random-inputs", "0", cwd=tmp_path)
    assert done.returncode == 0
    assert (tmp_path / "y.npy").exists()
    assert run("lint", BLOCK, cwd=tmp_path).returncode == 0
    assert run("spec", "--help", cwd=tmp_path).returncode == 0


@pytest.mark.parametrize("option", ["-h", "--help"])
def test_help(option: str, tmp_path: Path) -> None:
    done = run(option, cwd=tmp_path)
    assert done.returncode == 0
    assert "python -m deconv_ir" in done.stdout
    for text in ("run", "lint", "spec", "deconv-run"):
        assert text in done.stdout


def test_mistakes(tmp_path: Path) -> None:
    done = run("walk", cwd=tmp_path)
    assert done.returncode == 2
    assert "'walk'" in done.stderr
    done = run("run", "none.xml", cwd=tmp_path)
    assert done.returncode == 2
    assert "error: none.xml" in done.stderr
    assert "deconv-ir " in run("--version", cwd=tmp_path).stdout


def test_without_arguments_the_help_is_shown(tmp_path: Path) -> None:
    for arguments in ((), ("spec",)):
        done = run(*arguments, cwd=tmp_path)
        assert done.returncode == 2
        assert done.stderr.startswith("Usage: ")
        assert len(done.stderr.splitlines()) > 10


@pytest.mark.parametrize(
    ("arguments", "code"),
    [(("run", "--info"), 0), (("run", "--explain-plan"), 2), (("run", "--random-inputs", "0"), 2),
     (("lint",), 1)],
)  # fmt: skip
def test_a_misspelt_operation_gets_its_suggestion(
    arguments: tuple[str, ...], code: int, tmp_path: Path
) -> None:
    ir = IR()
    ir.result(ir.layer("Tenh", [ir.parameter("x", "2")], outputs=("2",)))
    ir.save(tmp_path)
    done = run(*arguments, "model.xml", cwd=tmp_path)
    assert done.returncode == code
    assert "did you mean 'Tanh'?" in done.stdout + done.stderr
