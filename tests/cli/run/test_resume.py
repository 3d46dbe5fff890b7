"""deconv-run --resume: results of another model, other options or older inputs are not kept."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import Result
from support import IR, invoke

RECORD = Path("out/.deconv-run.json")
RNG = np.random.default_rng(0)


def save_model(folder: Path, scale: float = 2.0, kind: str = "Multiply") -> None:
    ir = IR()
    x, b = ir.parameter("x", "?,3"), ir.parameter("b", "1")
    scaled = ir.layer(kind, [x, ir.const(np.full(1, scale, "f4"))], name="scaled")
    ir.result(ir.layer("Add", [scaled, b], names="y"))
    ir.save(folder)


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model (y = 2 x + b), three frames, and their results."""
    monkeypatch.chdir(tmp_path)
    save_model(tmp_path)
    Path("frames").mkdir()
    for i in range(3):
        np.save(f"frames/f{i}.npy", np.full((1, 3), i, "f4"))
    np.save("b.npy", np.ones(1, "f4"))
    assert run().exit_code == 0
    assert values() == [1, 3, 5]
    return tmp_path


def run(*more: str, model: str = "model.xml") -> Result:
    return invoke(model, "--input", "x=frames", "--input", "b=b.npy", "--output", "out", *more)


def values() -> list[float]:
    return [float(np.load(f"out/f{i}.npy").flat[0]) for i in range(3)]


def resumed(*more: str, redone: int, because: str = "") -> Result:
    """Resume a run; `redone` results must be computed again, for the reason `because`."""
    done = run("--resume", *more)
    assert done.exit_code == 0, done.stderr
    counts = {"done": redone, "skipped": 3 - redone}
    words = [f"{n} {status}" for status, n in counts.items() if n]
    assert sorted(done.stderr.splitlines()[-1].split("files: ")[1].split("  ")[0].split(", ")) == (
        sorted(words)
    )
    notes = [line for line in done.stderr.splitlines() if line.startswith("note: ")]
    if because:
        assert len(notes) == 1, notes
        assert notes[0].startswith("note: out/f")
        assert notes[0].endswith(f"will be computed again: {because}"), notes
    else:
        assert not notes
    return done


def test_results_that_match_are_kept() -> None:
    before = [os.stat(f"out/f{i}.npy").st_mtime_ns for i in range(3)]  # noqa: PTH116
    resumed(redone=0)
    assert [os.stat(f"out/f{i}.npy").st_mtime_ns for i in range(3)] == before  # noqa: PTH116


def test_missing_results_are_computed_silently() -> None:
    Path("out/f1.npy").unlink()
    resumed(redone=1)
    assert values() == [1, 3, 5]


def test_another_model(here: Path) -> None:
    save_model(here, kind="Divide")
    done = resumed(redone=3, because="the model has changed")
    assert "note: out/f0.npy (and 2 more) will" in done.stderr
    assert values() == [1, 1.5, 2]
    resumed(redone=0)


def test_other_weights(here: Path) -> None:
    """The .xml is the same, byte for byte."""
    before = Path("model.xml").read_bytes()
    save_model(here, scale=3)
    assert Path("model.xml").read_bytes() == before
    resumed(redone=3, because="the weights have changed")
    assert values() == [1, 4, 7]


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (["--semantics", "openvino"], "--semantics"),
        (["--accuracy", "direct"], "--accuracy"),
        (["--cast"], "--cast"),
        (["--batch"], "--batch"),
        (["--output-layer", "y"], "--output-layer"),
    ],
)
def test_other_options(options: list[str], named: str) -> None:
    resumed(*options, redone=3, because=f"other options were given ({named})")
    resumed(*options, redone=0)


def test_options_that_change_no_result() -> None:
    resumed("--threads", "1", "--fail-fast", "--memory-limit", "1GiB", "-v", redone=0)


def test_a_model_through_a_pipe(here: Path) -> None:
    arguments = [sys.executable, "-m", "deconv_cli.run.command", "-", "--weights", "model.bin",
                 "--input", "x=frames", "--input", "b=b.npy", "--output", "out",
                 "--resume"]  # fmt: skip

    def pipe() -> str:
        xml = Path("model.xml").read_bytes()
        return subprocess.run(arguments, input=xml, capture_output=True, check=True).stderr.decode()

    assert "3 done" in pipe()
    assert "3 skipped" in pipe()
    save_model(here, kind="Divide")
    assert "3 done" in pipe()


def test_an_input_that_is_newer() -> None:
    np.save("frames/f1.npy", np.full((1, 3), 7, "f4"))
    resumed(redone=1, because="an input has changed")
    assert values() == [1, 15, 5]


def test_an_input_that_is_older_but_another() -> None:
    np.save("frames/new.npy", np.full((1, 3), 7, "f4"))
    os.utime("frames/new.npy", (1, 1))
    Path("frames/new.npy").rename("frames/f1.npy")
    resumed(redone=1, because="an input has changed")
    assert values() == [1, 15, 5]


def test_an_input_that_all_runs_have() -> None:
    np.save("b.npy", np.full(1, 10, "f4"))
    resumed(redone=3, because="an input of all runs has changed")
    assert values() == [10, 12, 14]


def test_random_inputs_of_another_seed() -> None:
    arguments = ["model.xml", "--input", "x=frames", "--output", "out", "--resume"]
    assert "3 done" in invoke(*arguments, "--random-inputs", "1").stderr
    assert "3 skipped" in invoke(*arguments, "--random-inputs", "1").stderr
    assert "3 done" in invoke(*arguments, "--random-inputs", "2").stderr


def test_an_output_that_another_program_wrote() -> None:
    np.save("out/f2.npy", np.zeros((1, 3), "f4"))
    resumed(redone=1, because="another program has changed it")
    assert values() == [1, 3, 5]


def test_another_version_of_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    from deconv_ir.version import __version__

    monkeypatch.setattr("deconv_cli.run.manifest.__version__", "99")
    resumed(redone=3, because=f"version {__version__} of deconv-ir computed it")


def test_results_without_a_record() -> None:
    RECORD.unlink()
    resumed(redone=3, because="no earlier run has recorded it")
    resumed(redone=0)


@pytest.mark.parametrize(
    "content",
    [
        b"", b"\x00" * 100, b"{", b"[]", b"null", b'{"format": 1}', b'{"format": 99}', b"[" * 9999,
        b'{"format": 1, "runs": [], "files": {}}', b'{"format": 1, "runs": {}, "files": []}',
        b'{"format": 1, "runs": {}, "files": {"f0.npy": 3}}',
        b'{"format": 1, "runs": {}, "files": {"f0.npy": {"run": "a"}}}',
        b'{"format": 1, "runs": {"a": 1}, "files": {}}',
        b'{"format": 1, "runs": {"a": {}}, "files": {"f0.npy": {"run": "a"}}}',
        b'{"format": 1, "runs": {}, "files": {"f0.npy": {"run": []}}}',
    ],
)  # fmt: skip
def test_a_record_that_is_damaged(content: bytes) -> None:
    RECORD.write_bytes(content)
    done = resumed(redone=3, because="no earlier run has recorded it")
    assert "warning: out/.deconv-run.json: the record is damaged and is not used: " in done.stderr
    resumed(redone=0)


def test_a_record_cut_anywhere_is_damaged_or_whole() -> None:
    whole = RECORD.read_bytes()
    for end in range(0, len(whole), 37):
        RECORD.write_bytes(whole[:end])
        resumed(redone=3, because="no earlier run has recorded it")


def test_a_record_that_cannot_be_written_costs_no_result() -> None:
    RECORD.unlink()
    RECORD.mkdir()
    done = run("--force")
    assert done.exit_code == 0, done.stderr
    assert "warning: out/.deconv-run.json: cannot write the record: " in done.stderr
    assert "--resume will compute these results again" in done.stderr


def test_after_a_failure_the_rest_is_recorded() -> None:
    for i in range(3):
        np.save(f"frames/f{i}.npy", np.full((1, 3), 9, "f4"))
    Path("frames/f1.npy").write_text("no array")
    assert run("--force").exit_code == 2
    np.save("frames/f1.npy", np.full((1, 3), 4, "f4"))
    resumed(redone=1, because="an input has changed")
    assert values() == [19, 9, 19]


def test_a_run_that_is_stopped_has_recorded_what_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    from deconv_ir import BoundModel

    compute = BoundModel.run
    runs: list[int] = []

    def stop(self: BoundModel, *arguments: object, **options: object) -> object:
        runs.append(1)
        if len(runs) == 2:
            raise KeyboardInterrupt
        return compute(self, *arguments, **options)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(BoundModel, "run", stop)
        assert run("--force", "--semantics", "openvino").exit_code == 130
    assert len(json.loads(RECORD.read_text())["runs"]) == 2
    resumed("--semantics", "openvino", redone=2, because="other options were given (--semantics)")


def test_processes_that_write_to_one_folder() -> None:
    """Each process has its own frames; no record gets lost."""
    command = [sys.executable, "-m", "deconv_cli.run.command", "model.xml", "--input", "b=b.npy",
               "--output", "out", "--force"]  # fmt: skip
    for i in range(12):
        Path(f"many/{i}").mkdir(parents=True)
        np.save(f"many/{i}/g{i}.npy", np.full((1, 3), i, "f4"))
    processes = [
        subprocess.Popen([*command, "--input", f"x=many/{i}"], stderr=subprocess.DEVNULL,
                         stdout=subprocess.DEVNULL)
        for i in range(12)
    ]  # fmt: skip
    assert [process.wait() for process in processes] == [0] * 12
    record = json.loads(RECORD.read_text())
    assert sorted(record["files"]) == sorted(
        [f"f{i}.npy" for i in range(3)] + [f"g{i}.npy" for i in range(12)]
    )
    assert [p.name for p in Path("out").iterdir() if p.name.startswith(".")] == [RECORD.name]


def test_the_record_may_move_with_inputs_and_outputs(
    here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Path("project").mkdir()
    for name in ("model.xml", "model.bin", "b.npy", "frames", "out"):
        Path(name).rename(f"project/{name}")
    monkeypatch.chdir(here / "project")
    resumed(redone=0)


def test_every_option_is_known_to_change_results_or_not() -> None:
    """A new option is listed here, and in `CHANGE_NO_RESULT` if no result depends on it."""
    from deconv_cli.run.manifest import CHANGE_NO_RESULT
    from deconv_cli.run.request import RunRequest

    change = {"semantics", "accuracy", "rounded", "layer", "until", "output_layers", "cast"}
    change |= {"batch", "in_shapes", "op_attrs", "op_kind", "mb", "dt", "physical", "two_pass"}
    change |= {"layout", "reverse_channels", "mean", "scale", "input_type"}
    assert change.isdisjoint(CHANGE_NO_RESULT)
    assert set(RunRequest.fields) == change | CHANGE_NO_RESULT
