"""python -m deconv_ir: the commands as one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

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
