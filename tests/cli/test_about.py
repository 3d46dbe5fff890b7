"""Installations without the compiled kernel: the note, and how to leave it out."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support import deconvolution_ir, invoke

ROOT = Path(__file__).parents[2]


def test_a_missing_kernel_is_noted_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("DECONV_IR_KERNEL", raising=False)
    path = deconvolution_ir().save(tmp_path)
    arguments = (path, "--random-inputs", "0", "--no-output")
    monkeypatch.setattr("deconv_cli.about.describe_fallback", lambda: "no compiled kernel")
    notes = [invoke(*arguments).stderr.count("note: no compiled kernel") for _ in range(2)]
    assert notes == [1, 0]
    # The cache cannot be written: the run goes on, and says it each time.
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    done = invoke(*arguments)
    assert (done.exit_code, done.stderr.count("note: no compiled kernel")) == (0, 1)
    # Whoever chose NumPy knows.
    monkeypatch.setenv("DECONV_IR_KERNEL", "numpy")
    assert "no compiled kernel" not in invoke(*arguments).stderr


@pytest.mark.parametrize("variable", [{"DECONV_IR_KERNEL": "none"}, {"PRE_COMMIT": "1"}, {}])
def test_the_kernel_can_be_left_out(variable: dict[str, str]) -> None:
    """The list of extensions that setup.py builds."""
    code = (
        "import setuptools, runpy\n"
        "setuptools.setup = lambda **given: print(len(given['ext_modules']))\n"
        "runpy.run_path('setup.py')"
    )
    environment = {
        k: v for k, v in os.environ.items() if k not in ("DECONV_IR_KERNEL", "PRE_COMMIT")
    }
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT, env=environment | variable, capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert done.stdout.strip() == ("0" if variable else "1")
