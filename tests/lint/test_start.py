"""A process that checks a file does without what it does not need."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import CASES

CLEAN = CASES / "wrong-root/pass/plain.xml"


@pytest.mark.parametrize("heavy", ["numpy", "scipy", "ml_dtypes", "json", "tempfile", "tomllib"])
def test_is_not_imported(heavy: str, tmp_path: Path) -> None:
    for suffix in (".xml", ".bin"):  # away from our own pyproject.toml
        (tmp_path / f"m{suffix}").write_bytes(CLEAN.with_suffix(suffix).read_bytes())
    code = (
        "import sys; from deconv_cli.lint import command\n"
        f"command.main(['m.xml'], standalone_mode=False)\n"
        f"assert {heavy!r} not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, cwd=tmp_path)


def test_exit_code_and_output_survive_the_quick_exit() -> None:
    code = "from deconv_cli.lint import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, str(CASES / "cycle/fail/two_layers.xml")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stdout.endswith("Found 1 error in 1 of 1 file.\n")
