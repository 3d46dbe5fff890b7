"""The README's commands and code run unchanged."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from deconv_ir.kernels import kernel_info

ROOT = Path(__file__).parent.parent.parent
README = (ROOT / "README.md").read_text()
COMMANDS = (ROOT / "docs" / "commands.md").read_text()
BLOCKS = re.findall(r"```(console|python)\n(.*?)```", README + COMMANDS, re.S)
NOT_COPIED = (".git", ".venv", "out", "build", "dist", "golden", "__pycache__", ".*_cache")
ENVIRONMENT = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
if not kernel_info().available:
    ENVIRONMENT |= {"DECONV_IR_KERNEL": "numpy"}  # a run does not say that the kernel is missing


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A scratch copy of the checkout, in which all blocks run."""
    path = tmp_path / "checkout"
    shutil.copytree(ROOT, path, ignore=shutil.ignore_patterns(*NOT_COPIED), symlinks=True)
    git(path, "init", "--quiet")
    git(path, "add", "--all")
    git(path, "-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "-m", "all")
    return path


def git(folder: Path, *arguments: str) -> str:
    return subprocess.run(
        ["git", *arguments], cwd=folder, check=True, capture_output=True, text=True
    ).stdout


def commands(block: str) -> Iterator[tuple[str, list[str]]]:
    """Yield the commands of a console block, each with its expected lines of output."""
    for text in re.split(r"^\$ ", block, flags=re.M)[1:]:
        command, *shown = text.splitlines()
        yield command, shown


def masked(line: str) -> list[str]:
    """Return the words of a line without numbers that depend on the machine."""
    line = re.sub(r"[\d.]+ (ms|s)\b", "TIME", line)
    # The scratchpad, part of the peak, depends on the processor and its cores.
    return re.sub(r"(peak|scratch|process) [\d.]+ [KMG]iB", r"\1 SIZE", line).split()


def assert_same_lines(printed: str, shown: list[str]) -> None:
    """Compare lines; numbers may differ in their last digits, which depend on the order of sums."""
    lines = printed.splitlines()
    assert len(lines) == len(shown), printed
    for line, expected in zip(map(masked, lines), map(masked, shown), strict=True):
        assert len(line) == len(expected), printed
        for word, wanted in zip(line, expected, strict=True):
            try:
                assert float(word) == pytest.approx(float(wanted), rel=1e-4), printed
            except ValueError:
                assert word == wanted, printed


def run_console(block: str, folder: Path) -> None:
    for command, shown in commands(block):
        done = subprocess.run(
            ["bash", "-c", command], cwd=folder, env=ENVIRONMENT, text=True, check=False,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        assert done.returncode == 0, f"{command}\n{done.stdout}"
        assert "Traceback" not in done.stdout
        if shown:
            assert_same_lines(done.stdout, shown)


def stated_values(code: str) -> dict[int, str]:
    """Return the line of each expression -> the value that a comment behind it states.

    The comment is the value, or the value and a remark: ``# (2, 2): a remark``.
    """
    stated = {}
    lines = code.splitlines()
    for node in ast.parse(code).body:
        if isinstance(node, ast.Expr) and node.end_lineno is not None:
            _, _, comment = lines[node.end_lineno - 1].rpartition("  # ")
            for text in (comment, comment.partition(": ")[0]):
                try:
                    stated[node.lineno] = repr(ast.literal_eval(text.strip()))
                except (SyntaxError, ValueError):
                    continue
                break
    return stated


PYTHON_RUNNER = """
import ast, sys
code, stated = sys.argv[1], ast.literal_eval(sys.argv[2])
names = {"__name__": "__main__"}
for node in ast.parse(code).body:
    if isinstance(node, ast.Expr):
        found = repr(eval(compile(ast.Expression(node.value), "README.md", "eval"), names))
        wanted = stated.get(node.lineno, found)
        assert found == wanted, f"line {node.lineno}: {found}, the README says {wanted}"
    else:
        exec(compile(ast.Module([node], []), "README.md", "exec"), names)
"""


def run_python(code: str, folder: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-P", "-W", "error", "-c", PYTHON_RUNNER, code, repr(stated_values(code))],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr


def test_all_blocks_run_in_order_and_twice(checkout: Path, pytestconfig: pytest.Config) -> None:
    # The blocks take a minute in an emulator: they run once if only a part of the cases runs.
    times = 2 if pytestconfig.getoption("--one-in") == 1 else 1
    for language, block in times * BLOCKS:
        if language == "console":
            run_console(block, checkout)
        else:
            run_python(block, checkout)
    assert git(checkout, "status", "--porcelain") == ""


def test_the_home_page_is_short() -> None:
    assert len(README.splitlines()) <= 250


def test_the_readme_has_what_these_tests_are_for() -> None:
    shown = [c for language, b in BLOCKS if language == "console" for c in commands(b)]
    assert len(shown) >= 20
    assert sum(bool(lines) for _, lines in shown) >= 2
    assert sum(len(stated_values(b)) for language, b in BLOCKS if language == "python") >= 3


@pytest.mark.parametrize(
    "printed",
    ["output y  max 2.9\n", "output y  max 2.5  more\n", "", "output z  max 2.5\n"],
)
def test_other_output_than_is_shown_fails(printed: str) -> None:
    with pytest.raises(AssertionError):
        assert_same_lines(printed, ["output y  max 2.5"])


def test_a_value_that_the_readme_gets_wrong_fails(tmp_path: Path) -> None:
    run_python("x = 1\nx + 1  # 2: so it is\n", tmp_path)
    with pytest.raises(AssertionError, match="line 2: 2, the README says 3"):
        run_python("x = 1\nx + 1  # 3\n", tmp_path)


@pytest.mark.parametrize(
    "file",
    [
        *("README.md", "CONTRIBUTING.md", "docs/installing.md"),
        *(".github/workflows/ci.yml", ".github/workflows/wheels.yml"),
    ],
)
def test_make_targets_that_are_named_exist(file: str) -> None:
    makefile = (ROOT / "Makefile").read_text()
    named = re.findall(r"make ([a-z0-9-]+)", (ROOT / file).read_text())
    assert named
    for target in named:
        assert re.search(rf"^{target}:", makefile, re.M), target


def test_picture_there_and_back(tmp_path: Path) -> None:
    import numpy as np
    from PIL import Image

    picture = tmp_path / "a.png"
    pixels = np.random.default_rng(0).integers(0, 256, (5, 7, 3)).astype(np.uint8)
    Image.fromarray(pixels).save(picture)
    script = str(ROOT / "samples" / "upsample" / "picture.py")
    for arguments in (["to-npy", "a.png", "a.npy"], ["to-png", "a.npy", "b.png"]):
        subprocess.run([sys.executable, script, *arguments], cwd=tmp_path, check=True)
    assert np.array_equal(np.asarray(Image.open(tmp_path / "b.png")), pixels)


def test_bilinear_sample_is_what_scipy_computes(tmp_path: Path) -> None:
    """Between two pixels, weights 3/4 and 1/4 (FCN, section 3.3): linear interpolation."""
    import numpy as np
    from scipy.ndimage import map_coordinates

    import deconv_ir

    model = deconv_ir.load(ROOT / "samples" / "upsample" / "bilinear_x2.xml")
    picture = np.random.default_rng(0).integers(0, 256, (3, 6, 8)).astype(np.uint8)
    padded = np.pad(picture, ((0, 0), (1, 1), (1, 1)), mode="edge")
    (found,) = model.run([padded[None]]).values()
    rows, columns = (np.arange(2 * n) / 2 - 0.25 for n in picture.shape[1:])
    grid = np.meshgrid(rows, columns, indexing="ij")
    for channel in range(3):
        exact = map_coordinates(picture[channel].astype(float), grid, order=1, mode="nearest")
        assert np.abs(found[0, channel] - exact).max() <= 0.5 + 1e-6
