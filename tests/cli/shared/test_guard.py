"""No command overwrites a file that it reads: model, weights, inputs, documents, settings."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from support import deconvolution_ir, invoke, invoke_script

SPEC = Path(__file__).parents[3] / "samples" / "spec" / "conv_transpose.toml"


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model, an input, a reference and a document, each with other names for the same file."""
    deconvolution_ir().save(tmp_path)
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", np.zeros((1, 2, 5, 5), "f4"))
    np.save("y.npy", np.zeros((1, 3, 7, 7), "f4"))
    Path("doc.md").write_text('```xml\n<layer id="1" name="r" type="ReLU"/>\n```\n')
    Path("deconv-lint.toml").write_text("")
    Path("sub").mkdir()
    return tmp_path


NAMES = ("as it is", "dotted", "absolute", "symbolic link", "hard link", "linked folder")


def renamed(file: str, way: str) -> str:
    """Return another name for a file."""
    if way == "symbolic link":
        os.symlink(file, f"soft-{file}")  # noqa: PTH211
        return f"soft-{file}"
    if way == "hard link":
        os.link(file, f"hard-{file}")
        return f"hard-{file}"
    if way == "linked folder":
        Path("same").symlink_to(".")
        return f"same/{file}"
    return {"dotted": f"sub/../{file}", "absolute": str(Path(file).absolute())}.get(way, file)


def contents() -> dict[str, bytes]:
    return {str(p): p.read_bytes() for p in Path().rglob("*") if p.is_file()}


@pytest.mark.parametrize("way", NAMES)
@pytest.mark.parametrize(
    ("module", "arguments", "file", "words"),
    [
        ("lint", "model.xml --output", "model.xml", "model.xml, which is checked"),
        ("lint", "model.xml --output", "model.bin", "the weights of model.xml"),
        ("lint", ". --output", "model.xml", "model.xml, which is checked"),
        ("lint", "model.xml --output", "deconv-lint.toml", "the settings"),
        ("lint", "model.xml --update-baseline --baseline", "model.xml", "which is checked"),
        ("lint", "model.xml --update-baseline --baseline", "model.bin", "the weights"),
        ("spec", "check doc.md --output", "doc.md", "doc.md, which is checked"),
        ("spec", "check . --format json --output", "doc.md", "doc.md, which is checked"),
    ],
)
def test_reports(module: str, arguments: str, file: str, words: str, way: str) -> None:
    name = renamed(file, way)
    before = contents()
    done = invoke_script(module, *arguments.split(), name)
    assert done.exit_code == 2
    assert f"{name} would overwrite " in done.stderr
    assert words in done.stderr
    assert contents() == before


def test_a_report_over_the_baseline() -> None:
    assert invoke_script("lint", "model.xml", "--update-baseline", "--baseline", "b").exit_code == 0
    done = invoke_script("lint", "model.xml", "--baseline", "b", "--output", "b")
    assert (done.exit_code, "would overwrite the baseline" in done.stderr) == (2, True)
    done = invoke_script("lint", "model.xml", "--update-baseline", "--baseline", "new", "--output",
                         "new")  # fmt: skip
    assert (done.exit_code, "is also written by --baseline" in done.stderr) == (2, True)


def test_generated_files_over_the_specification() -> None:
    Path("golden/axes-1").mkdir(parents=True)
    shutil.copy(SPEC, "golden/axes-1/layer.xml")
    done = invoke_script("spec", "generate", "golden/axes-1/layer.xml", "--out", "golden")
    assert done.exit_code == 2
    assert "would overwrite the specification" in done.stderr
    assert Path("golden/axes-1/layer.xml").read_bytes() == SPEC.read_bytes()
    assert not Path("golden/manifest.json").exists()


def test_a_report_may_be_written_again() -> None:
    for _ in range(2):
        assert (
            invoke_script("lint", "model.xml", "--exit-zero", "--output", "report.txt").exit_code
            == 0
        )


@pytest.mark.parametrize("way", NAMES)
@pytest.mark.parametrize("option", ["--output", "--profile", "--save-inputs"])
@pytest.mark.parametrize("force", [(), ("--force",)])
@pytest.mark.parametrize(
    ("file", "words"),
    [
        ("model.xml", "the model"),
        ("model.bin", "the weights"),
        ("x.npy", "the array of input 'x'"),
        ("y.npy", "the reference of output 'y'"),
    ],
)
def test_runs(file: str, words: str, option: str, force: tuple[str, ...], way: str) -> None:
    name = renamed(file, way)
    before = contents()
    value = [f"{option}={name}"]  # the form in which --profile accepts any name
    done = invoke("model.xml", "--input", "x.npy", "--expect", "y.npy", *value, *force)
    assert done.exit_code == 2
    assert done.stderr == f"error: {option} {name} would overwrite {words} (choose another name)\n"
    assert contents() == before


def test_a_default_name_that_is_an_input() -> None:
    shutil.copy("x.npy", "y.npy")
    done = invoke("model.xml", "--input", "y.npy", "--force")
    assert done.exit_code == 2
    assert "--output y.npy would overwrite the array of input 'x'" in done.stderr


def test_outputs_of_two_options() -> None:
    arguments = ["model.xml", "--random-inputs", "0", "--output", "same.npy"]
    done = invoke(*arguments, "--profile=same.npy")
    assert "--profile same.npy is also written by --output" in done.stderr
    done = invoke(*arguments, "--save-inputs", "sub/../same.npy")
    assert "is also written by --output" in done.stderr
    done = invoke("model.xml", "--random-inputs", "0", "--output", "-", "--save-inputs", "-")
    assert "--save-inputs - is also written by --output" in done.stderr
    assert not Path("same.npy").exists()
