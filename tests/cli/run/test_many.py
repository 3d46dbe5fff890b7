"""deconv-run on many files: output paths, bad files, batches, resumed runs."""

from __future__ import annotations

import json
import os
import re
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


def test_repeated_runs_of_many_files() -> None:
    arguments = ("model.xml", "--input", "frames/*.npy", "--no-output", "--repeat", "5")
    done = invoke(*arguments, "--profile")
    assert done.exit_code == 0, done.stderr
    assert "3 files: 3 done" in done.stderr
    assert "(15 runs; " in done.stderr
    assert "in 15 runs" in done.stderr
    assert tree(".") == sorted(tree("frames") and [f"frames/{name}" for name in tree("frames")])
    latency = json.loads(invoke(*arguments, "--json").stdout)["latency"]
    assert (latency["repeat"], latency["warmup"]) == (15, 1)
    assert json.loads(invoke(*arguments[:4], "--json").stdout)["latency"] is None


def test_files_that_agree_are_counted_as_such() -> None:
    assert invoke("model.xml", "--input", "frames/*.npy", "--output", "refs").exit_code == 0
    done = invoke("model.xml", "--input", "frames/*.npy", "--expect", "refs/")
    assert (done.exit_code, "3 files: 3 agree" in done.stderr) == (0, True), done.stderr
    np.save("refs/f1.npy", np.load("refs/f1.npy") + 1)
    done = invoke("model.xml", "--input", "frames/*.npy", "--expect", "refs/")
    assert (done.exit_code, "3 files: 2 agree, 1 differs" in done.stderr) == (1, True), done.stderr


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
    np.save("frames/f1.npy", normal(2, 2, 4, 5))  # a file may contain several images
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
    bind = Model.bind

    def watch(self: Model, inputs: dict[str, np.ndarray], **options: object) -> object:
        batches.append(len(inputs["x"]))
        return bind(self, inputs, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(Model, "bind", watch)
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


def test_an_output_that_cannot_be_divided(here: Path) -> None:
    ir = IR()
    x = ir.parameter("x", "?,2,4,5")
    axes = ir.const(np.array([0]))
    ir.result(ir.layer("ReduceMean", [x, axes], {"keep_dims": "false"}, name="mean"))
    ir.save(here)
    done = invoke("model.xml", "--input", "frames/*.npy", "--output", "out", "--batch")
    assert done.exit_code == 2
    assert "output 'mean' of shape [2, 4, 5] cannot be divided among a batch of 3" in done.stderr
    assert "run without --batch" in done.stderr


def test_two_inputs(here: Path) -> None:
    """Patterns are matched in order; an input without a pattern is the same for all files."""
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
    assert "no array for input 'b' f32[2], 'c' f32[2]" in done.stderr


def test_resume_takes_up_what_is_not_complete() -> None:
    arguments = ["model.xml", "--input", "frames/*.npy", "--output", "out"]
    assert invoke(*arguments).exit_code == 0
    refused = invoke(*arguments)
    assert refused.exit_code == 2
    assert "error: out/f0.npy (and 2 more) already exists (use --force to overwrite, --resume" in (
        refused.stderr
    )
    expected = {name: Path("out", name).read_bytes() for name in tree("out")}
    Path("out/f0.npy").unlink()
    Path("out/f1.npy").write_bytes(expected["f1.npy"][:200])  # as a full disk leaves the file
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
        (["--input", "frames/*.npy"], "(name a folder with --output DIR)"),
        (["--input", "frames/*.npy", "--output", "-"], "--output DIR"),
        (
            ["--input", "frames/*.npy", "--output", "model.xml"],
            "model.xml is one file, --input frames/*.npy stands",
        ),
        (["--input", "none/*.npy", "--output", "o"], "none/*.npy: no file matches"),
        (["--input", "z=frames/*.npy", "--output", "o"], "the model has no 'z'; it has 'x'"),
        (
            ["--input", "frames/*.npy", "--output", "o", "--expect", "x.npy"],
            "x.npy is one reference, the inputs are many",
        ),
        (["--input", "frames/f0.npy", "--resume"], "--resume requires many input files"),
        (["--input", "frames/f0.npy", "--batch", "2"], "--batch joins many input files"),
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
    assert "frames/f0.npy and frames/f0.npz would have the same output" in done.stderr


def test_a_name_that_looks_like_a_pattern_is_a_file() -> None:
    Path("frames/f0.npy").rename("x[0].npy")
    done = invoke("model.xml", "--input", "x[0].npy", "--output", "y.npy")
    assert done.exit_code == 0, done.stderr


@pytest.mark.parametrize(
    "output", ["out.npy", "new.npz", "frames/f0.npy"], ids=["new npy", "new npz", "a file"]
)
def test_many_outputs_are_no_file(output: str) -> None:
    done = invoke("model.xml", "--input", "frames/*.npy", "--output", output, "--force")
    assert done.exit_code == 2
    assert f"--output {output} is one file, --input frames/*.npy stands for many" in done.stderr
    assert not Path("out.npy").exists()


def test_a_folder_that_is_called_like_a_file() -> None:
    done = invoke("model.xml", "--input", "frames/*.npy", "--output", "out.npy/")
    assert done.exit_code == 0, done.stderr
    assert tree("out.npy") == ["f0.npy", "f1.npy", "f2.npy"]


def test_a_folder_stands_for_its_files() -> None:
    Path("frames/a/.hidden").mkdir(parents=True)
    for name in ("a/f0.npy", "a/.hidden/f9.npy", ".f8.npy"):
        np.save(f"frames/{name}", normal(1, 2, 4, 5))
    Path("frames/notes.txt").write_text("no array")
    for given in ("frames", "frames/", "x=frames"):
        done = invoke("model.xml", "--input", given, "--output", "out", "--force")
        assert done.exit_code == 0, done.stderr
        assert tree("out") == ["a/f0.npy", "f0.npy", "f1.npy", "f2.npy"]
    Path("empty").mkdir()
    done = invoke("model.xml", "--input", "empty", "--output", "o")
    assert (done.exit_code, done.stderr) == (
        2,
        "error: --input empty: the folder has no .npy file or image\n",
    )


@pytest.mark.parametrize("first", ["frames/f0.npy", "x=frames/f0.npy"])
@pytest.mark.parametrize("joined", [True, False])
def test_a_pattern_that_the_shell_has_expanded(first: str, joined: bool) -> None:
    option = [f"--input={first}"] if joined else ["--input", first]
    done = invoke(*option, "frames/f1.npy", "frames/f2.npy", "model.xml", "--output", "out")
    assert done.exit_code == 0, done.stderr
    assert tree("out") == ["f0.npy", "f1.npy", "f2.npy"]


def test_expanded_folders_are_kept() -> None:
    for name in ("a", "b"):
        Path("frames", name).mkdir()
        np.save(f"frames/{name}/f.npy", normal(1, 2, 4, 5))
    done = invoke("model.xml", "--input", "frames/a/f.npy", "frames/b/f.npy", "--output", "out")
    assert done.exit_code == 0, done.stderr
    assert tree("out") == ["a/f.npy", "b/f.npy"]


def test_arrays_that_no_option_takes_are_explained() -> None:
    done = invoke("model.xml", "frames/f0.npy", "frames/f1.npy", "--output", "out")
    assert done.exit_code == 2
    assert "extra arguments (frames/f0.npy frames/f1.npy) (arrays go after --input)" in done.stderr


def test_several_files_are_no_several_inputs(here: Path) -> None:
    ir = IR()
    ir.result(ir.layer("Add", [ir.parameter("a", "2"), ir.parameter("b", "2")], names="y"))
    ir.save(here)
    done = invoke("model.xml", "--input", "frames/f0.npy", "frames/f1.npy", "--output", "out")
    assert done.exit_code == 2
    assert "no array for input 'b' (each input has an --input of its own)" in done.stderr


def test_failures_are_errors_where_they_happen() -> None:
    """Each failure is one line on standard error, before the summary, and is not repeated there."""
    bad_frames()
    done = invoke("model.xml", "--input", "frames", "--output", "out")
    assert done.exit_code == 2
    first, second, last = done.stderr.splitlines()
    assert first.startswith("error: frames/f1.npy: model.xml: input 'x' takes shape ")
    assert second == "error: frames/f2.npy: not a .npy file: the magic bytes are missing"
    assert last.startswith("4 files: 2 done, 2 failed")
    shown = invoke("model.xml", "--input", "frames", "--output", "out", "--force", "--json", "-q")
    assert shown.stderr.splitlines() == [first, second]
    report = json.loads(shown.stdout)
    assert [f["error"] for f in report["files"]] == [None, first[7:], second[7:], None]


def references(folder: str, label: str = "") -> None:
    """Compute the outputs of the frames one by one."""
    Path(folder).mkdir()
    for i in range(3):
        done = invoke("model.xml", "--input", f"frames/f{i}.npy", "--output", "one.npy", "--force")
        assert done.exit_code == 0
        Path("one.npy").rename(f"{folder}/f{i}{label}.npy")


@pytest.mark.parametrize(
    "expect", [["refs"], ["refs/*.npy"], ["y=refs/"], ["refs/f0.npy", "refs/f1.npy", "refs/f2.npy"]]
)
@pytest.mark.parametrize("batch", [(), ("--batch",)])
def test_references_are_paired_by_name(expect: list[str], batch: tuple[str, ...]) -> None:
    references("refs")
    before = tree(".")
    arguments = ["model.xml", "--input", "frames", "--expect", *expect, "--rtol", "1e-4", *batch]
    done = invoke(*arguments)
    assert done.exit_code == 0, done.stderr
    assert "3 files: 3 agree" in done.stderr
    assert tree(".") == before  # a comparison does not write outputs
    changed = np.load("refs/f1.npy")
    changed[0, 0, 0, 0] += 1
    np.save("refs/f1.npy", changed)
    done = invoke(*arguments, "--output", "out")
    assert done.exit_code == 1
    assert "3 files: 2 agree, 1 differs" in done.stderr
    assert "error: frames/f1.npy: y: DIFFERS: largest absolute error 1 at [0,0,0,0]" in done.stderr
    assert tree("out") == ["f0.npy", "f1.npy", "f2.npy"]
    report = json.loads(invoke(*arguments, "--json").stdout)
    within = [c["within_tolerance"] for f in report["files"] for c in f["comparisons"]]
    assert within == [True, False, True]


def test_references_of_several_outputs() -> None:
    arguments = ["model.xml", "--input", "frames", "--output-layer", "x", "--output-layer", "y"]
    assert invoke(*arguments, "--output", "refs").exit_code == 0
    assert invoke(*arguments, "--expect", "refs").exit_code == 0
    assert invoke(*arguments, "--expect", "y=refs/*.y.npy").exit_code == 0
    assert invoke(*arguments, "--expect", "y=refs").exit_code == 0
    assert invoke(*arguments, "--expect", "x=frames").exit_code == 0
    swapped = invoke(*arguments, "--expect", "y=frames")
    assert swapped.exit_code == 1
    assert "the reference has [1, 2, 4, 5]" in swapped.stderr


def test_references_of_one_run_are_called_as_the_outputs() -> None:
    arguments = ["model.xml", "--input", "frames/f0.npy", "--output-layer", "x", "--output-layer",
                 "y"]  # fmt: skip
    assert invoke(*arguments, "--output", "refs/").exit_code == 0
    assert tree("refs") == ["x.npy", "y.npy"]
    for expect in (["refs"], ["refs/*.npy"], ["x=refs", "y=refs/*"], ["refs/x.npy", "refs/y.npy"]):
        done = invoke(*arguments, *(f"--expect={reference}" for reference in expect))
        assert done.exit_code == 0, done.stderr
        assert done.stderr.count("agrees") == 2
    np.save("refs/x.npy", np.load("frames/f1.npy"))
    assert invoke(*arguments, "--expect", "refs").exit_code == 1
    Path("refs/x.npy").unlink()
    done = invoke(*arguments, "--expect", "refs")
    assert done.stderr == "error: --expect refs: no reference is called x.npy\n"


def test_references_that_do_not_pair() -> None:
    references("refs")
    Path("refs/f1.npy").rename("refs/g1.npy")
    done = invoke("model.xml", "--input", "frames", "--expect", "refs")
    assert done.exit_code == 2
    assert done.stderr == "error: --expect refs: no reference is called f1.npy\n"
    done = invoke("model.xml", "--input", "frames/f[02].npy", "--expect", "refs")
    assert done.exit_code == 0
    assert "1 reference has no input (the first is refs/g1.npy)" in done.stderr
    assert invoke("model.xml", "--input", "frames", "--expect", "z=refs").exit_code == 2
    done = invoke("model.xml", "--input", "frames", "--expect", "refs", "--resume")
    assert (done.exit_code, "--resume requires --output DIR" in done.stderr) == (2, True)


@pytest.mark.parametrize("file", ["model.xml", "model.bin", "frames/f0.npy", "refs/f0.npy"])
def test_outputs_never_overwrite_what_is_read(file: str) -> None:
    references("refs")
    before = Path(file).read_bytes()
    Path("out").mkdir()
    Path("out/f0.npy").hardlink_to(file)
    done = invoke("model.xml", "--input", "frames", "--expect", "refs", "--output", "out",
                  "--force")  # fmt: skip
    assert done.exit_code == 2
    assert "error: --output out/f0.npy would overwrite " in done.stderr
    assert Path(file).read_bytes() == before
    done = invoke("model.xml", "--input", "frames", "--output", "frames", "--force")
    assert "would overwrite the input frames/f0.npy" in done.stderr
    done = invoke("model.xml", "--input", "frames", "--output", "new", "--profile", file, "--force")
    assert done.exit_code == 2
    assert Path(file).read_bytes() == before


def test_a_progress_bar_on_a_terminal() -> None:
    Path("frames/f1.npy").write_text("no array")
    import pty

    leader, follower = pty.openpty()
    command = [sys.executable, "-m", "deconv_cli.run.command", "model.xml"]
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
    assert process.wait() == 2
    assert b"3/3" in shown
    assert b"\r\x1b[Kerror: frames/f1.npy: not a .npy file" in re.sub(
        rb"\x1b\[[0-9;]*m", b"", shown
    )
    assert b"3 files: 2 done, 1 failed" in shown
