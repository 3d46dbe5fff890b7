"""The README's commands and code run as they stand."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent.parent
README = (ROOT / "README.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.S)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A working directory with the samples, shared: later commands use earlier files."""
    path = tmp_path_factory.mktemp("readme")
    shutil.copytree(ROOT / "samples", path / "samples")
    shutil.copytree(ROOT / "tests/spec/documents", path / "tests/spec/documents")
    return path


COMMANDS = [
    line.removeprefix("$ ")
    for block in blocks("console")
    for line in block.splitlines()
    if line.startswith("$ deconv-")
]


def test_there_are_commands() -> None:
    assert len(COMMANDS) >= 5


def test_commands(folder: Path) -> None:
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    for command in COMMANDS:
        done = subprocess.run(
            ["bash", "-c", command], cwd=folder, env=environment, capture_output=True, text=True,
            check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{command}\n{done.stderr}"


def test_first_command_prints_what_the_readme_shows(folder: Path) -> None:
    shown = blocks("console")[0].splitlines()
    command = [sys.executable, "-m", "deconv_cli.run", *COMMANDS[0].split()[1:], "--force"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    printed = (done.stderr + done.stdout).splitlines()
    # times vary, and the last digits of a mean do
    assert printed[0] == shown[1]
    assert [w[:6] for w in printed[1].split()] == [w[:6] for w in shown[2].split()]
    # Scratch, which is in the peak, depends on the processor and its cores.
    bounds = [re.sub(r"(peak|scratch) \S+ \S+[,)]? ", "", line) for line in (printed[3], shown[4])]
    assert bounds[0].partition("process")[0] == bounds[1].partition("process")[0]
    assert printed[4] == shown[5]


@pytest.mark.parametrize("code", blocks("python"), ids=range(len(blocks("python"))))
def test_python(code: str, folder: Path) -> None:
    subprocess.run([sys.executable, "-W", "error", "-c", code], cwd=folder, check=True)


def test_make_targets_of_the_readme_exist() -> None:
    makefile = (ROOT / "Makefile").read_text()
    for target in re.findall(r"make ([a-z-]+)", README):
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
