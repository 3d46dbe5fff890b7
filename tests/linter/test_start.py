"""A process that checks a file imports only the modules that it needs."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from .conftest import case_of
from .network import NETWORK, WEIGHTS

ROOT = Path(__file__).parents[2]
# Read a file with a transposed convolution and a constant, and print a text report; then list the
# imported modules other than those of click.
CHECK = """
import sys, click
before = set(sys.modules)
from cli.lint.command import command
command.main(["m.xml"], standalone_mode=False)
print(*sorted(set(sys.modules) - before), file=sys.stderr)
"""


def check_in(folder: Path, model: bytes, weights: bytes | None = None) -> set[str]:
    """Check a file outside the repository, whose settings do not apply; return imported modules."""
    (folder / "m.xml").write_bytes(model)
    if weights is not None:
        (folder / "m.bin").write_bytes(weights)
    # -S: an editable install would import modules of its own.
    paths = os.pathsep.join([str(ROOT), *filter(os.path.isdir, sys.path)])
    done = subprocess.run(
        [sys.executable, "-S", "-c", CHECK],
        check=True,
        cwd=folder,
        env=os.environ | {"PYTHONPATH": paths},
        capture_output=True,
        text=True,
    )
    assert done.stdout.startswith("No problem found in 1 file.")
    modules = set(done.stderr.split())
    assert "deconv_ir.ops.convolution.deconvolution" in modules
    return modules


@pytest.fixture(scope="module")
def imported(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    return check_in(tmp_path_factory.mktemp("network"), NETWORK.read_bytes(), WEIGHTS)


@pytest.mark.parametrize(
    "module",
    [
        *("lxml", "numpy", "scipy", "ml_dtypes", "pathspec", "psutil", "tabulate", "dataclasses"),
        *("concurrent.futures", "difflib", "fnmatch", "glob", "hashlib"),
        *(
            "heapq",
            "json",
            "locale",
            "logging",
            "multiprocessing",
            "pathlib",
            "tempfile",
            "textwrap",
            "tomllib",
        ),
        *("urllib.parse", "xml.etree.ElementTree"),
        *("deconv_ir.model", "deconv_ir.execute", "deconv_ir.kernels", "deconv_ir.spec_examples"),
        *("deconv_ir.linter.cache", "deconv_ir.ops.opsets", "deconv_ir.linter.suppress"),
        *("deconv_ir.ir.body", "deconv_ir.ir.boxes", "deconv_ir.ir.scratchpad"),
        *("deconv_ir.formats.onednn_json.parsed", "deconv_ir.formats.onednn_json.kinds"),
        *("deconv_ir.formats.openvino_legacy.reader", "deconv_ir.formats.openvino_legacy.parsed"),
        *("deconv_ir.ops.tile_rules", "deconv_ir.ops.convolution.packed"),
        *("cli.lint.folders", "cli.lint.rules", "cli.lint.targets"),
        *("cli.shared.reporters.verdicts", "deconv_ir.linter.detection"),
        *("cli.shared.reporters.json", "cli.shared.reporters.sarif"),
    ],
)
def test_is_not_imported(module: str, imported: set[str]) -> None:
    assert module not in imported


def test_exit_code_and_output_survive_the_quick_exit(tmp_path: Path) -> None:
    code = "from deconv_cli.lint.command import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", code, str(case_of("cycle", "two layers").write(tmp_path))],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert done.stdout.endswith("Found 1 error in 1 of 1 file.\n")


def test_the_rules_run_without_docstrings(tmp_path: Path) -> None:
    path = case_of("cycle", "two layers").write(tmp_path)
    code = "from deconv_cli.lint.command import main; main()"
    outputs = []
    for level in ("-O", "-OO"):
        done = subprocess.run(
            [sys.executable, level, "-c", code, str(path)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        assert (done.returncode, done.stderr) == (1, "")
        outputs.append(done.stdout)
    assert "IR207" in outputs[0]
    assert outputs[0] == outputs[1]
