"""Installations without the compiled kernel: the note, and how to leave it out."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from support import deconvolution_ir, invoke

from deconv_ir.kernels.runtime.extension import compiled_module

ROOT = Path(__file__).parents[3]


def test_a_missing_kernel_is_noted_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.delenv("DECONV_IR_KERNEL", raising=False)
    path = deconvolution_ir().save(tmp_path)
    arguments = (path, "--random-inputs", "0", "--no-output")
    monkeypatch.setattr(
        "deconv_cli.shared.about.describe_fallback", lambda load: "no compiled kernel"
    )
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


OUTDATED = """
from deconv_ir.kernels.runtime import interface
interface.INTERFACE = 0
"""
# As the dynamic linker's errors arrive.
UNLOADABLE = """
import sys
class Finder:
    def find_spec(self, name, *_):
        if name == "deconv_ir.kernels._compiled":
            raise ImportError("libgone.so.7: cannot open shared object file")
sys.meta_path.insert(0, Finder())
"""


@pytest.mark.skipif(compiled_module() is None, reason="the compiled kernel was not built")
@pytest.mark.parametrize(
    ("before", "reason"),
    [
        (OUTDATED, "the compiled kernel has interface "),
        (UNLOADABLE, "the compiled kernel cannot be loaded (libgone.so.7: cannot open "),
    ],
)
def test_a_kernel_that_is_there_and_not_used(before: str, reason: str, tmp_path: Path) -> None:
    """The note is said once for each reason, and names a command that builds the kernel anew."""
    path = deconvolution_ir().save(tmp_path)
    environment = {k: v for k, v in os.environ.items() if k != "DECONV_IR_KERNEL"}
    environment["XDG_CACHE_HOME"] = str(tmp_path)
    cache = tmp_path / "deconv-ir" / "no-compiled-kernel"
    cache.parent.mkdir()
    cache.write_text(f"{ROOT / 'cli'}: no compiled kernel in this installation\n")

    def run(*arguments: object) -> subprocess.CompletedProcess[str]:
        code = f"{before}\nfrom deconv_cli.run.command import main; main()"
        return subprocess.run(
            [sys.executable, "-c", code, *map(str, arguments)],
            env=environment, capture_output=True, text=True, check=True,
        )  # fmt: skip

    notes = [run(path, "--random-inputs", "0", "--no-output").stderr for _ in range(2)]
    assert notes[0].startswith(f"note: {reason}")
    assert "layers are computed with NumPy, which is slower ('pip install --editable .'" in notes[0]
    assert "note: " not in notes[1]
    version = run("--version", "-v").stdout
    assert version.splitlines()[1].startswith(reason)
    assert f"compiled kernel for none: {reason}" in version


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
