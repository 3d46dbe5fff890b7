"""Reports to attach to an issue: what they have, and that their commands repeat the difference."""

from __future__ import annotations

import shlex
import zipfile
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result
from edited import Edit, build
from support import IR, invoke_script

import deconv_ir

X = np.random.default_rng(0).standard_normal((1, 4, 12, 12)).astype(np.float32)


@pytest.fixture
def original(tmp_path: Path) -> Path:
    path = build(tmp_path)
    np.save(tmp_path / "x.npy", X)
    return path


def report(tmp_path: Path, *arguments: object, name: str = "bug.zip") -> Path:
    """Write a report, and unzip it."""
    target = tmp_path / name
    done = invoke_script("diff", *arguments, "--input", tmp_path / "x.npy", "--report", target)
    assert (done.exit_code, done.exception.__class__) == (1, SystemExit), done.exception
    folder = tmp_path / target.stem
    zipfile.ZipFile(target).extractall(folder)
    return folder


def run(command: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> Result:
    """Run a command of the text, in its folder."""
    program, *words = shlex.split(command)
    with monkeypatch.context() as patch:
        patch.chdir(folder)
        return invoke_script(program.removeprefix("deconv-"), *words)


def commands(folder: Path) -> list[str]:
    lines = (folder / "issue.md").read_text().splitlines()
    return [line.strip() for line in lines if line.startswith("    deconv-")]


def array(folder: Path, side: str) -> np.ndarray:
    (file,) = (folder / "outputs" / side).glob("*.npy")
    return np.load(file)


def dumps(model: deconv_ir.Model, folder: Path) -> Path:
    """Write all tensors of a model as those of another tool."""
    folder.mkdir()
    names = ["enc", "enc/bias", "enc/relu", "mid", "mid/bn", "mid/clamp", "up", "pool"]
    for name, found in model.run(X, outputs=names).items():
        np.save(folder / f"{name.replace('/', '_')}.npy", found)
    return folder


def test_two_models(original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The report has the one layer that differs, and its commands show the difference."""
    edit = Edit(original)
    edit.set("mid/clamp", max="5")
    other = edit.save(tmp_path / "changed.xml")
    folder = report(tmp_path, original, other)
    types = [layer.type for layer in deconv_ir.load(folder / "part.xml").graph.layers]
    assert types == ["Parameter", "Clamp", "Result"]
    first, second, both = commands(folder)
    a, b = (run(command, folder, monkeypatch) for command in (first, second))
    assert (a.exit_code, b.exit_code) == (0, 0), a.stderr + b.stderr
    assert run(both, folder, monkeypatch).exit_code == 1
    (data,) = (folder / "inputs").glob("*.npy")
    exact = np.clip(np.load(data).astype(float), 0, 6)
    np.testing.assert_array_equal(array(folder, "exact"), exact)
    np.testing.assert_array_equal(array(folder, "A"), exact.astype(np.float32))
    np.testing.assert_array_equal(np.load(folder / "a.npy"), array(folder, "A"))
    np.testing.assert_array_equal(np.load(folder / "b.npy"), np.minimum(array(folder, "A"), 5))
    text = (folder / "issue.md").read_text()
    for word in (deconv_ir.__version__, np.__version__, "processor", "mid/clamp", "max: 6.0 in A"):
        assert word in text


def test_tensors_of_a_tool(original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    edit = Edit(original)
    edit.array("mid/w")[3, 2, 1, 0] = 2
    wrong = deconv_ir.load(edit.save(tmp_path / "changed.xml"))
    given = dumps(wrong, tmp_path / "dumps")
    folder = report(tmp_path, original, "--against", given)
    text = (folder / "issue.md").read_text()
    assert text.startswith("# arrays is wrong in layer 'mid' (Convolution, ")
    _, both = commands(folder)
    done = run(both, folder, monkeypatch)
    assert done.exit_code == 1
    assert "arrays is wrong in layer 'mid' (Convolution, " in done.stdout
    np.testing.assert_array_equal(array(folder, "arrays"), np.load(given / "mid.npy"))


def test_tensors_of_two_tools(
    original: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    edit = Edit(original)
    edit.set("mid/bn", epsilon="0.1")
    wrong = dumps(deconv_ir.load(edit.save(tmp_path / "changed.xml")), tmp_path / "wrong")
    right = dumps(deconv_ir.load(original), tmp_path / "right")
    folder = report(tmp_path, original, "--against", wrong, "--against", right)
    (both,) = commands(folder)
    done = run(both, folder, monkeypatch)
    assert done.stdout.startswith("A is wrong in layer 'mid/bn' ("), done.stdout


@pytest.mark.parametrize(
    ("layer", "change", "remains"),
    [("mid/clamp", {"max": "5"}, True), ("mid", {}, False)],
    ids=["an attribute", "weights"],
)
def test_stripped_weights(
    layer: str, change: dict[str, str], remains: bool, original: Path, tmp_path: Path
) -> None:
    """Noise has the deviation of the weights: two filters that differ in order become equal."""
    edit = Edit(original)
    if change:
        edit.set(layer, **change)
    else:
        weights = edit.array("mid/w")
        weights[...] = weights[..., ::-1].copy()
    other = edit.save(tmp_path / "changed.xml")
    target, x = tmp_path / "bug.zip", tmp_path / "x.npy"
    options = ["--input", x, "--report", target, "--strip-weights"]
    done = invoke_script("diff", original, other, *options)
    assert ("the fault is still there" in done.stderr) is remains, done.stderr
    assert ("the fault is not there any more" in done.stderr) is not remains
    said = "is still there" if remains else "is **not** there any more"
    with zipfile.ZipFile(target) as archive:
        assert said in archive.read("issue.md").decode()
        if not change:
            filters = np.frombuffer(archive.read("part.bin"), np.float32)
            kept = np.isin(filters, Edit(original).array("mid/w"))
            assert kept.mean() < 0.02  # noise has the same range


def test_names_that_files_cannot_have(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names with spaces, slashes, quotes and '=' survive the shell and the folders."""
    paths = []
    for slope, folder in ((0.5, "one"), (0.25, "two")):
        ir = IR()
        data = ir.layer("Negative", [ir.parameter("x", "2,3")], name="a = b/'c'", outputs=("2,3",))
        ir.result(ir.layer("PReLU", [data, ir.const(np.float32([slope]))], name="p/q r"), "y")
        (tmp_path / folder).mkdir()
        paths.append(ir.save(tmp_path / folder))
    np.save(tmp_path / "x.npy", np.float32([[-1, 2, 3], [4, 5, 6]]))
    folder = report(tmp_path, *paths)
    for command in commands(folder)[:2]:
        done = run(command, folder, monkeypatch)
        assert done.exit_code == 0, done.stderr
    np.testing.assert_array_equal(np.load(folder / "b.npy")[0], [1, -0.5, -0.75])


def test_nothing_is_written_where_nothing_differs(original: Path, tmp_path: Path) -> None:
    target = tmp_path / "bug.zip"
    done = invoke_script("diff", original, original, "--random-inputs", 0, "--report", target)
    assert done.exit_code == 0
    assert "nothing to report" in done.stderr
    assert not target.exists()


def test_equal_bytes(original: Path, tmp_path: Path) -> None:
    edit = Edit(original)
    edit.set("elu", alpha="2")
    other = edit.save(tmp_path / "changed.xml")
    report(tmp_path, original, other, name="one.zip")
    report(tmp_path, original, other, name="two.zip")
    assert (tmp_path / "one.zip").read_bytes() == (tmp_path / "two.zip").read_bytes()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--report", "bug.tar"], "--report bug.tar: the name must end with .zip"),
        (["--report", "there.zip"], "--report there.zip: the file exists (use --force)"),
        (["--report", "bug.zip", "--verdict", "never"], "--report needs the verdict"),
        (["--strip-weights"], "--strip-weights requires --report FILE.zip"),
        (["--report", "bug.zip", "--bisect", "--command", "x"], "--report does not go with"),
    ],
)
def test_refusals(
    options: list[str],
    message: str,
    original: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("there.zip").write_bytes(b"")
    second = [] if "--bisect" in options else [original]
    done = invoke_script("diff", original, *second, "--random-inputs", 0, *options)
    assert done.exit_code == 2
    assert message in done.stderr
    assert not Path("bug.zip").exists()


def test_a_folder_that_does_not_exist(original: Path, tmp_path: Path) -> None:
    edit = Edit(original)
    edit.set("elu", alpha="2")
    other = edit.save(tmp_path / "changed.xml")
    target = tmp_path / "none" / "bug.zip"
    done = invoke_script("diff", original, other, "--random-inputs", 0, "--report", target)
    assert done.exit_code == 2
    assert "cannot write the report" in done.stderr


def test_weights_of_dumps_cannot_be_stripped(original: Path, tmp_path: Path) -> None:
    edit = Edit(original)
    edit.set("elu", alpha="2")
    wrong = deconv_ir.load(edit.save(tmp_path / "changed.xml"))
    (tmp_path / "d").mkdir()
    np.save(tmp_path / "d" / "elu.npy", wrong.run(X, outputs=["elu"])["elu"])
    options = ["--against", tmp_path / "d", "--report", tmp_path / "bug.zip", "--strip-weights"]
    done = invoke_script("diff", original, "--input", tmp_path / "x.npy", *options)
    assert done.exit_code == 2
    assert "weights cannot be stripped" in done.stderr
    assert not (tmp_path / "bug.zip").exists()
