"""deconv-lint: arguments, the files that are checked, and the contents of the cache."""

from __future__ import annotations

import importlib
import io
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from deconv_ir.linter.catalogue import RULES

from .conftest import Done, Lint

FIXTURES = Path(__file__).parents[1] / "fixtures/ir"


def test_clean_file(lint: Lint, good: Path) -> None:
    done = lint(str(good))
    notes = "Not shown: 1 note; --severity info shows it."
    assert done == Done(0, f"No problem found in 1 file. {notes}\n", "")


def test_statistics(lint: Lint, bad: Path) -> None:
    out = lint(str(bad), "--statistics").out.splitlines()
    assert sorted(out) == ["1  IR209  edge-dims-differ", "1  IR401  declared-dims-differ"]


def test_list_rules_and_explain(lint: Lint) -> None:
    listed = lint("--list-rules").out
    assert all(code in listed for code in RULES)
    assert len(json.loads(lint("--list-rules", "--format", "json").out)) == len(RULES)
    shown = lint("--explain", "declared-dims-differ").out
    assert shown.startswith(
        "IR401 declared-dims-differ\n\nThe declared dims of an output differ from"
    )
    assert "\nSeverity: error. Family: shapes. --fix declares the computed dims.\n" in shown
    assert shown.endswith(
        "\nFails:\n\n"
        "    <output>\n"
        '        <port id="2" precision="FP32">'
        "<dim>1</dim><dim>6</dim><dim>10</dim><dim>11</dim></port>\n"
        "    </output>\n"
    )
    assert max(map(len, shown.split("Fails")[0].splitlines())) < 80
    assert "\nFails (with a .bin of ones 900):\n" in lint("--explain", "unused-weights").out
    assert lint("--explain", "IR999").code == 2


def test_semantics(lint: Lint) -> None:
    path = str(FIXTURES / "oshape_const_fp32.xml")
    for word in ("spec", "openvino"):
        out = lint(path, "--semantics", word, "--severity", "info").out
        assert f"this run uses {word}" in out


def test_reshape(lint: Lint, good: Path) -> None:
    assert lint(str(good), "--shape", "x=1,4,7,6").code == 0, "declared dims are not compared"
    done = lint(str(good), "--shape", "x=1,5,7,6", "--format", "json")
    assert lint(str(good), "--reshape", "x=1,5,7,6", "--format", "json").out == done.out
    (found,) = json.loads(done.out)["findings"]
    assert (found["code"], found["expected"], found["actual"]) == ("IR405", 4, 5)
    tall = good.read_text().replace('pads_begin="1, 1"', 'pads_begin="9, 1"')
    good.write_text(tall)
    assert "IR411" in lint(str(good), "--shape", "x=1,4,2,6").out


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no FIFOs")
@pytest.mark.parametrize("name", ["deconv-lint.toml", "pyproject.toml"])
@pytest.mark.parametrize(
    "make",
    [
        Path.mkdir,
        os.mkfifo,
        lambda path: path.symlink_to(path.name),
        lambda path: path.symlink_to("nowhere"),
        lambda path: path.symlink_to("/dev/zero"),
        lambda path: path.write_bytes(b"#" * ((4 << 20) + 1)),
    ],
    ids=["folder", "fifo", "looping link", "dangling link", "device", "oversize"],
)
def test_settings_that_cannot_be_read(
    make: Callable[[Path], object], name: str, lint: Lint, good: Path
) -> None:
    """They are not passed over: the user's settings would be ignored."""
    make(good.parent / name)
    done = lint(str(good))
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"error: {(good.parent / name).absolute()}:")
    assert done.err.count("\n") == 1
    assert lint(str(good), "--isolated").code == 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--shape", "q=1"], "there is no input 'q'"),
        (["--shape", "x"], "expected NAME=SHAPE"),
        (["--shape", "x=1,a"], "invalid dim 'a'"),
        (["--shape", "x=1", "--fix"], "cannot be combined with --shape"),
        (["--fix", "--diff"], "--fix and --diff cannot be combined"),
        (["--update-baseline"], "--update-baseline requires --baseline FILE"),
        (["--config", "none.toml"], "cannot read the settings"),
        (["--weights", "a.bin", "."], "--weights requires a single IR file"),
    ],
)
def test_mistakes_in_options(lint: Lint, good: Path, options: list[str], message: str) -> None:
    done = lint(str(good), *options)
    assert done.code == 2
    assert message in done.err
    assert done.out == ""


def test_standard_input(lint: Lint, bad: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def pipe() -> None:
        stream = io.TextIOWrapper(io.BytesIO(bad.read_bytes()))
        monkeypatch.setattr(sys, "stdin", stream)

    pipe()
    done = lint("-", "--weights", str(bad.with_suffix(".bin")))
    assert done.code == 1
    assert done.out.startswith("<stdin>:")
    pipe()
    assert lint("-", "--stdin-filename", "models/bad.xml").out.startswith("models/bad.xml:")
    pipe()
    assert "IR501" in lint("-").out


def test_folders_honour_ignore_files(lint: Lint, bad: Path, good: Path) -> None:
    assert lint("models").code == 1
    Path(".git").mkdir()
    (bad.parent / ".gitignore").write_text("b*.xml\n")
    assert lint("models").code == 0
    (bad.parent / ".gitignore").write_text("")
    Path(".gitignore").write_text("models/bad.xml\n")
    assert lint("models").code == 0
    assert lint(".").code == 0
    (bad.parent / ".ignore").write_text("!bad.xml\n")
    assert lint("models").code == 1, "the nearest one decides"
    Path(".gitignore").write_text("models/\n")
    assert (lint(".").code, lint(".").out) == (2, ""), "no file is left"
    assert lint(".", "--exit-zero-on-no-files").out.startswith("No problem found in 0 files.")
    assert lint("models/bad.xml").code == 1, "a file that is named is checked"


def test_patterns_and_repeated_paths(lint: Lint, bad: Path, good: Path) -> None:
    done = lint("mod*/*.xml", "models", str(Path("models/bad.xml")))
    assert "in 1 of 2 files." in done.out
    assert lint("nothing/*.xml").code == 2
    assert lint("nothing.xml").code == 2
    assert lint().out == lint(".").out


def test_one_broken_file_does_not_stop_the_others(lint: Lint, bad: Path) -> None:
    (bad.parent / "a.xml").write_bytes(b"<net")
    (bad.parent / "z.xml").write_bytes(b"\xff\xfe\x00")
    (bad.parent / "pom.xml").write_text("<project/>")
    done = lint("models")
    found = [line.split(":")[0] for line in done.out.splitlines() if ": IR" in line]
    assert found == ["models/a.xml", "models/bad.xml", "models/bad.xml", "models/z.xml"]
    assert "Skipped 1 XML file that is not an IR." in done.out
    assert "IR103" in lint("models/pom.xml").out, "a file that is named is checked"


def test_fifo_does_not_hang(lint: Lint, tmp_path: Path) -> None:
    os.mkfifo("model.xml")
    assert "IR101" in lint("model.xml").out


def test_many_processes_give_the_same_order(lint: Lint, bad: Path, good: Path) -> None:
    for i in range(12):
        (bad.parent / f"m{i:02}.xml").write_bytes((bad if i % 3 else good).read_bytes())
        (bad.parent / f"m{i:02}.bin").write_bytes(good.with_suffix(".bin").read_bytes())
    alone = lint("models", "--jobs", "1", "--no-cache")
    assert alone.code == 1
    assert lint("models", "--jobs", "3", "--no-cache") == alone


class TestCache:
    def test_second_run_reads_what_the_first_wrote(
        self, lint: Lint, bad: Path, good: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        first = lint("models", "--format", "json")
        runner = importlib.import_module("deconv_ir.linter.runner")
        monkeypatch.setattr(runner, "check_bytes", None)  # a call would fail
        assert lint("models", "--format", "json") == first

    @pytest.mark.parametrize("what", ["xml", "bin", "no bin", "option"])
    def test_a_change_is_noticed(self, lint: Lint, bad: Path, good: Path, what: str) -> None:
        shape = FIXTURES / "oshape_const_fp32.xml"
        model = bad.parent / "shape.xml"
        model.write_bytes(shape.read_bytes())
        weights = model.with_suffix(".bin")
        weights.write_bytes(shape.with_suffix(".bin").read_bytes())
        assert "shape.xml" not in lint("models").out
        if what == "xml":
            model.write_text(model.read_text().replace("<dim>9</dim>", "<dim>8</dim>"))
        elif what == "bin":  # the file contains the requested output shape, an i64
            data = weights.read_bytes()
            nine = data.index((9).to_bytes(8, "little"))
            weights.write_bytes(data[:nine] + (8).to_bytes(8, "little") + data[nine + 8 :])
        elif what == "no bin":
            weights.unlink()
        options = ["--severity", "info"] if what == "option" else []
        assert "models/shape.xml:" in lint("models", *options).out

    def test_the_linters_own_files_are_listed_once(
        self, lint: Lint, bad: Path, good: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """For each checked file again, that would take longer than reading a cached result."""
        cache = importlib.import_module("deconv_ir.linter.cache")
        package, walk, walks = Path(cache.__file__).parents[1], os.walk, []
        monkeypatch.setattr(os, "walk", lambda top: walks.append(top) or walk(top))
        lint("models", "--jobs", "1")
        assert len(list(Path("models").glob("*.xml"))) > 1
        assert walks.count(package) <= 1  # none if an earlier test has listed them
