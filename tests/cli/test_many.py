"""deconv-run on many files: where outputs go, what a bad file does, batches, taking up again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from support import IR, invoke

RNG = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model that takes any batch, its weights, and three frames."""
    ir = IR()
    x = ir.parameter("x", "?,2,4,5")
    w = ir.const(normal(2, 3, 3, 3))
    up = ir.layer("ConvolutionBackpropData", [x, w], {"strides": "2,2"}, name="up", names="y")
    ir.result(up)
    ir.save(tmp_path)
    monkeypatch.chdir(tmp_path)
    Path("frames").mkdir()
    for i in range(3):
        np.save(f"frames/f{i}.npy", normal(1, 2, 4, 5))
    return tmp_path


def tree(folder: str) -> list[str]:
    return sorted(str(p.relative_to(folder)) for p in Path(folder).rglob("*.npy"))


def test_each_file_gives_what_it_gives_alone() -> None:
    done = invoke("model.xml", "--input", "frames/*.npy", "--output", "out")
    assert (done.exit_code, done.stdout) == (0, "out\n"), done.stderr
    assert "3 files: 3 done" in done.stderr
    assert tree("out") == ["f0.npy", "f1.npy", "f2.npy"]
    for i in range(3):
        alone = invoke("model.xml", "--input", f"frames/f{i}.npy", "--output", "y.npy", "--force")
        assert alone.exit_code == 0
        assert np.array_equal(np.load("y.npy"), np.load(f"out/f{i}.npy"))
    assert "\x1b" not in done.stderr, "a progress bar is for terminals"


def test_folders_below_the_pattern_are_kept() -> None:
    for name in ("a", "b/c"):
        Path("frames", name).mkdir(parents=True)
        np.save(f"frames/{name}/f0.npy", normal(1, 2, 4, 5))
    done = invoke("model.xml", "--input", "x=frames/**/*.npy", "--output", "out/")
    assert done.exit_code == 0, done.stderr
    assert tree("out") == ["a/f0.npy", "b/c/f0.npy", "f0.npy", "f1.npy", "f2.npy"]


def test_several_outputs_have_their_names_in_the_files() -> None:
    done = invoke("model.xml", "--input", "frames/f[01].npy", "--output", "out",
                  "--output-layer", "x", "--output-layer", "y")  # fmt: skip
    assert done.exit_code == 0, done.stderr
    assert tree("out") == ["f0.x.npy", "f0.y.npy", "f1.x.npy", "f1.y.npy"]
    assert np.array_equal(np.load("out/f1.x.npy"), np.load("frames/f1.npy"))


def bad_frames() -> None:
    np.save("frames/f1.npy", normal(1, 2, 4, 6))
    Path("frames/f2.npy").write_text("no array")
    np.save("frames/f3.npy", normal(1, 2, 4, 5))


@pytest.mark.parametrize("batch", [(), ("--batch",), ("--batch", "2")])
def test_a_bad_file_does_not_stop_the_others(batch: tuple[str, ...]) -> None:
    bad_frames()
    done = invoke("model.xml", "--input", "frames/*.npy", "--output", "out", *batch)
    assert done.exit_code == 2
    assert tree("out") == ["f0.npy", "f3.npy"]
    assert "4 files: 2 done, 2 failed" in done.stderr
    assert "f1.npy: " in done.stderr
    assert "takes shape [?,2,4,5], the array has [1,2,4,6]" in done.stderr
    assert "frames/f2.npy: not a .npy file" in done.stderr


def test_fail_fast() -> None:
    bad_frames()
    done = invoke("model.xml", "--input", "frames/*.npy", "--output", "out", "--fail-fast")
    assert done.exit_code == 2
    assert "4 files: 1 done, 1 failed, 2 not run" in done.stderr
    assert tree("out") == ["f0.npy"]


@pytest.mark.parametrize("number", [None, "1", "2", "3", "7"])
def test_batches_give_what_the_files_give(number: str | None) -> None:
    np.save("frames/f1.npy", normal(2, 2, 4, 5))  # a file may hold several
    batch = ["--batch"] if number is None else ["--batch", number]
    for folder, more in (("out", []), ("batched", batch)):
        done = invoke(*more, "model.xml", "--input", "frames/*.npy", "--output", folder)
        assert done.exit_code == 0, done.stderr
    assert tree("batched") == tree("out")
    for name in tree("out"):
        found, expected = np.load(f"batched/{name}"), np.load(f"out/{name}")
        assert found.shape == expected.shape
        np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-6)


def test_a_batch_is_one_run(monkeypatch: pytest.MonkeyPatch) -> None:
    report = json.loads(
        invoke("model.xml", "--input", "frames/*.npy", "--output", "out", "--json").stdout
    )
    assert [f["status"] for f in report["files"]] == ["done"] * 3
    from deconv_ir import Model

    batches: list[int] = []
    run = Model.run

    def watch(self: Model, inputs: dict[str, np.ndarray], **options: object) -> object:
        batches.append(len(inputs["x"]))
        return run(self, inputs, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Model, "run", watch)
    for number, expected in (("2", [2, 1]), ("", [3]), ("1", [1, 1, 1])):
        batches.clear()
        done = invoke("model.xml", "--input", "frames/*.npy", "--output", "out", "--force",
                      f"--batch={number}")  # fmt: skip
        assert done.exit_code == 0, done.stderr
        assert batches == expected


def test_files_without_the_axis_of_the_batch_are_stacked() -> None:
    for i in range(3):
        np.save(f"frames/f{i}.npy", normal(2, 4, 5))
    done = invoke("model.xml", "--input", "frames/*.npy", "--output", "out", "--batch")
    assert done.exit_code == 0, done.stderr
    assert np.load("out/f2.npy").shape == (3, 9, 11)
    np.save("one.npy", np.load("frames/f2.npy")[None])
    invoke("model.xml", "--input", "one.npy", "--output", "y.npy")
    np.testing.assert_allclose(np.load("out/f2.npy"), np.load("y.npy")[0], rtol=1e-5, atol=1e-6)


def test_an_output_that_can_not_be_divided(here: Path) -> None:
    ir = IR()
    x = ir.parameter("x", "?,2,4,5")
    axes = ir.const(np.array([0]))
    ir.result(ir.layer("ReduceMean", [x, axes], {"keep_dims": "false"}, name="mean"))
    ir.save(here)
    done = invoke("model.xml", "--input", "frames/*.npy", "--output", "out", "--batch")
    assert done.exit_code == 2
    assert "output 'mean' of shape [2, 4, 5] can not be divided among a batch of 3" in done.stderr
    assert "run without --batch" in done.stderr


def test_two_inputs(here: Path) -> None:
    """Patterns go together in order; what is no pattern is the same for all."""
    ir = IR()
    a, b, c = (ir.parameter(name, "2") for name in "abc")
    ir.result(ir.layer("Add", [ir.layer("Multiply", [a, b]), c], names="y"))
    ir.save(here)
    Path("many").mkdir()
    for i in range(3):
        np.save(f"many/a{i}.npy", np.full(2, i, np.float32))
        np.save(f"many/b{i}.npy", np.full(2, 10 * i, np.float32))
    np.save("c.npy", np.full(2, 0.5, np.float32))
    arguments = ["model.xml", "--input", "a=many/a*.npy", "--input", "b=many/b*.npy"]
    done = invoke(*arguments, "--input", "c=c.npy", "--output", "out")
    assert done.exit_code == 0, done.stderr
    assert [np.load(f"out/a{i}.npy")[0] for i in range(3)] == [0.5, 10.5, 40.5]
    Path("many/b2.npy").unlink()
    done = invoke(*arguments, "--input", "c=c.npy", "--output", "other")
    assert done.exit_code == 2
    assert "'many/a*.npy' finds 3, 'many/b*.npy' finds 2" in done.stderr
    done = invoke(*arguments[:3], "--output", "other")
    assert "no array for input 'b' f32[2], 'c' f32[2] (" in done.stderr


def test_resume_takes_up_what_is_not_complete() -> None:
    arguments = ["model.xml", "--input", "frames/*.npy", "--output", "out"]
    assert invoke(*arguments).exit_code == 0
    refused = invoke(*arguments)
    assert refused.exit_code == 2
    assert "3 outputs are there already" in refused.stderr
    expected = {name: Path("out", name).read_bytes() for name in tree("out")}
    Path("out/f0.npy").unlink()
    Path("out/f1.npy").write_bytes(expected["f1.npy"][:200])  # as a full disk leaves it
    kept = os.stat("out/f2.npy").st_mtime_ns  # noqa: PTH116
    done = invoke(*arguments, "--resume")
    assert done.exit_code == 0, done.stderr
    assert "3 files: 2 done, 1 skipped" in done.stderr
    assert {name: Path("out", name).read_bytes() for name in tree("out")} == expected
    assert os.stat("out/f2.npy").st_mtime_ns == kept  # noqa: PTH116
    assert invoke(*arguments, "--force").exit_code == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--input", "frames/*.npy"], "--output DIR says where outputs go"),
        (["--input", "frames/*.npy", "--output", "-"], "--output DIR"),
        (["--input", "frames/*.npy", "--output", "model.xml"], "model.xml: is no directory"),
        (["--input", "none/*.npy", "--output", "o"], "none/*.npy: no file matches"),
        (["--input", "z=frames/*.npy", "--output", "o"], "the model has no 'z'; it has 'x'"),
        (["--input", "frames/*.npy", "--output", "o", "--expect", "x.npy"], "--expect compares"),
        (["--input", "frames/f0.npy", "--resume"], "--resume requires many input files"),
        (["--input", "frames/f0.npy", "--batch", "2"], "--batch requires many input files"),
        (["--input", "frames/f0.npy", "--batch=0"], "'0' is not a positive integer"),
    ],
)
def test_mistakes(arguments: list[str], words: str) -> None:
    done = invoke("model.xml", *arguments)
    assert done.exit_code == 2
    assert words in done.stderr
    assert "Traceback" not in done.stderr
    assert not Path("o").exists()


def test_outputs_that_would_meet() -> None:
    (Path("frames") / "f0.npz").write_bytes(Path("frames/f0.npy").read_bytes())
    done = invoke("model.xml", "--input", "frames/f0.*", "--output", "o")
    assert done.exit_code == 2
    assert "are both o/f0.npy" in done.stderr


def test_a_name_that_looks_like_a_pattern_is_a_file() -> None:
    Path("frames/f0.npy").rename("x[0].npy")
    done = invoke("model.xml", "--input", "x[0].npy", "--output", "y.npy")
    assert done.exit_code == 0, done.stderr


def test_a_progress_bar_on_a_terminal() -> None:
    import pty

    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "deconv_cli.run", "model.xml"]
    process = subprocess.Popen(
        [*command, "--input", "frames/*.npy", "--output", "out"],
        stdout=subprocess.DEVNULL,
        stderr=follower,
    )
    os.close(follower)
    shown = b""
    while True:
        try:
            chunk = os.read(leader, 4096)
        except OSError:
            break
        if not chunk:
            break
        shown += chunk
    os.close(leader)
    assert process.wait() == 0
    assert b"3/3" in shown
    assert b"3 files: 3 done" in shown
