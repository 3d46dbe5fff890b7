"""deconv-spec check and fix, as a user calls them."""

from __future__ import annotations

import errno
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from lxml import etree
from spec_forms import XML
from support import invoke_script

WRONG = XML.replace("11", "12")
DOCUMENTS = Path(__file__).parent / "documents"


def invoke(*arguments: object, stdin: bytes | None = None):
    return invoke_script("spec", *arguments, stdin=stdin)


@pytest.fixture
def doc(tmp_path: Path) -> Path:
    path = tmp_path / "doc.md"
    path.write_text(f"{XML}{WRONG}")
    return path


FORMULA = (
    "Y = stride*(X - 1) + ((K - 1)*dilation + 1) - pad_begin - pad_end + output_padding = "
    "2*(5 - 1) + ((3 - 1)*2 + 1) - 1 - 1 + 0 = 11"
)
MESSAGE = f"output 0, axis 3: declared 12, computed 11: {FORMULA}"


def test_check_reports_each_example(doc: Path) -> None:
    result = invoke("check", doc)
    assert result.exit_code == 1
    assert result.stdout.splitlines() == [
        f"{doc}:1: right: 'up' (ConvolutionBackpropData, id 5): output 0 [1,10,7,11]",
        f"{doc}:47:18: SE101 error: {MESSAGE} [declared-dims]",
        " 47 | <dim>12</dim>",
        "    |      ^^",
        "    = layer 'up' (ConvolutionBackpropData, id 5)",
        "    = hint: deconv-spec fix writes the computed dim",
        "2 examples: 1 right, 1 wrong, 0 undecided",
    ]
    assert result.stderr == ""


def test_check_verbose_shows_formulas_and_quiet_only_what_is_wrong(doc: Path) -> None:
    assert "2*(4 - 1) + ((3 - 1)*1 + 1)" in invoke("check", "-v", doc).stdout.splitlines()[0]
    quiet = invoke("check", "-q", doc).stdout.splitlines()
    assert len(quiet) == 5
    assert ": SE101 error: " in quiet[0]


def test_the_five_documents_are_clean() -> None:
    result = invoke("check", *sorted(DOCUMENTS.glob("*.txt")))
    assert result.exit_code == 0
    assert result.stdout.count(": right: ") == 5
    assert result.stdout.count("info: no XML layer example was found") == 2
    assert result.stdout.count("the specification gives pads_begin -112,-112") == 1
    assert result.stdout.endswith("5 examples: 5 right, 0 wrong, 0 undecided\n")


UNDECIDED = '<layer type="Nowhere"><output><port/></output></layer>\n'


@pytest.mark.parametrize(
    ("text", "severity", "code"),
    [
        (XML, "info", 0),
        (WRONG, "error", 1),
        (WRONG, "warning", 1),
        (UNDECIDED, "error", 0),
        (UNDECIDED, "warning", 0),
        (UNDECIDED, "info", 1),
        ("no example", "warning", 0),
        ("no example", "info", 1),
    ],
)
def test_severity_decides_the_exit_code(
    tmp_path: Path, text: str, severity: str, code: int
) -> None:
    path = tmp_path / "doc.md"
    path.write_text(text)
    assert invoke("check", path, "--severity", severity).exit_code == code
    assert invoke("check", path, "--severity", severity, "--exit-zero").exit_code == 0


def test_json(doc: Path) -> None:
    with doc.open("a") as stream:
        stream.write(UNDECIDED)
    result = invoke("check", doc, "--format", "json")
    assert result.exit_code == 1
    report = json.loads(result.stdout)
    assert report["tool"] == "deconv-spec"
    wrong, untold = report["findings"]
    assert wrong == {
        "code": "SE101",
        "rule": "declared-dims",
        "family": "examples",
        "severity": "error",
        "message": MESSAGE,
        "file": str(doc),
        "line": 47,
        "column": 18,
        "end_column": 20,
        "layer": "'up' (ConvolutionBackpropData, id 5)",
        "expected": 11,
        "actual": 12,
        "hint": "deconv-spec fix writes the computed dim",
        "fixable": True,
    }
    assert (untold["code"], untold["line"], untold["fixable"]) == ("SE301", 51, False)
    assert [(e["line"], e["verdict"], e["computed"]) for e in report["examples"]] == [
        (1, "right", ["[1,10,7,11]"]),
        (26, "wrong", ["[1,10,7,11]"]),
        (51, "untold", []),
    ]


def test_sarif(doc: Path) -> None:
    (run,) = json.loads(invoke("check", doc, "--format", "sarif").stdout)["runs"]
    driver = run["tool"]["driver"]
    assert driver["name"] == "deconv-spec"
    assert [(r["id"], r["defaultConfiguration"]["level"]) for r in driver["rules"]] == [
        ("SE101", "error")
    ]
    assert [a["mimeType"] for a in run["artifacts"]] == ["text/markdown"]
    (result,) = run["results"]
    assert list(result["partialFingerprints"]) == ["deconvSpec/v2"]
    region = result["locations"][0]["physicalLocation"]["region"]
    assert (region["startLine"], region["startColumn"], region["endColumn"]) == (47, 18, 20)
    assert region["snippet"]["text"].strip() == "<dim>12</dim>"


def test_github(doc: Path) -> None:
    lines = invoke("check", doc, "--format", "github").stdout.splitlines()
    assert lines[0].startswith(
        f"::error title=SE101 declared-dims,file={doc},line=47,col=18,endColumn=20::layer 'up' "
    )
    assert lines[-1] == "2 examples: 1 right, 1 wrong, 0 undecided"


def test_junit(tmp_path: Path, doc: Path) -> None:
    (tmp_path / "right.md").write_text(XML)
    target = tmp_path / "report.xml"
    result = invoke("check", tmp_path / "right.md", doc, "--format", "junit", "--output", target)
    assert (result.exit_code, result.output) == (1, "")
    root = etree.parse(target).getroot()
    assert (root.get("name"), root.get("tests"), root.get("failures")) == ("deconv-spec", "2", "1")
    assert [c.get("name") for c in root.iter("testcase")] == [
        str(tmp_path / "right.md"),
        f"{doc}:47: SE101 declared-dims",
    ]


def test_a_report_that_cannot_be_written(tmp_path: Path, doc: Path) -> None:
    result = invoke("check", doc, "--output", tmp_path / "none" / "report")
    assert result.exit_code == 2
    assert "cannot write the report: No such file or directory" in result.stderr


def test_a_folder_stands_for_its_documents(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    for name in ("b.rst", "a/c.html", "d.MD", "e.py"):
        (tmp_path / name).write_text(XML)
    lines = invoke("check", tmp_path).stdout.splitlines()
    assert [line.split(":")[0] for line in lines] == [
        str(tmp_path / "b.rst"),
        str(tmp_path / "d.MD"),
        str(tmp_path / "a/c.html"),
        "3 examples",
    ]


@pytest.mark.parametrize("action", ["check", "fix"])
def test_a_folder_without_documents_is_a_mistake(tmp_path: Path, action: str) -> None:
    (tmp_path / "model.xml").write_text(XML)
    result = invoke(action, tmp_path)
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.startswith(f"error: {tmp_path}: this folder has no document (.md, ")


def test_one_broken_document_stops_no_other(tmp_path: Path, doc: Path) -> None:
    (tmp_path / "image.txt").write_bytes(b"\0\1")
    result = invoke("check", tmp_path / "image.txt", tmp_path / "none.md", doc)
    assert result.exit_code == 2
    assert result.stderr.splitlines() == [
        f"error: {tmp_path}/image.txt: not a text file: it has NUL bytes",
        f"error: {tmp_path}/none.md: cannot read the file: No such file or directory",
    ]
    assert "2 examples: 1 right, 1 wrong" in result.stdout


def test_fix_in_place_keeps_links_and_permissions(tmp_path: Path, doc: Path) -> None:
    doc.chmod(0o640)
    link = tmp_path / "link.md"
    link.symlink_to(doc)
    result = invoke("fix", link)
    assert (result.exit_code, result.stdout) == (0, f"{link}: 1 place fixed\n")
    assert link.is_symlink()
    assert doc.read_text() == XML * 2
    assert doc.stat().st_mode & 0o777 == 0o640
    assert sorted(p.name for p in tmp_path.iterdir()) == ["doc.md", "link.md"]
    assert invoke("fix", link).stdout == ""


@pytest.mark.skipif(not shutil.which("patch"), reason="needs the command patch")
def test_fix_diff_shows_a_patch_and_changes_nothing(tmp_path: Path, doc: Path) -> None:
    before = doc.read_bytes()
    with doc.open("ab") as stream:
        stream.write(b"\xe9 no line end")
    before = doc.read_bytes()
    result = invoke("fix", "--diff", doc)
    assert result.exit_code == 1
    assert doc.read_bytes() == before
    patch = tmp_path / "patch"
    patch.write_bytes(result.stdout_bytes)
    subprocess.run(["patch", "-s", str(doc), str(patch)], check=True)
    assert doc.read_bytes() == before.replace(b">12<", b">11<")
    assert invoke("fix", "--diff", doc).exit_code == 0


def test_fix_tells_what_is_left(tmp_path: Path) -> None:
    doc = tmp_path / "doc.md"
    doc.write_text(XML.replace('strides="2,2"', 'strides="2"'))
    result = invoke("fix", doc)
    assert result.exit_code == 1
    assert result.stderr == (
        f"{doc}:1: not fixed: 'up' (ConvolutionBackpropData, id 5): strides must have 2 elements, "
        "one for each spatial axis, found 1: 2\n"
    )


def test_standard_input(doc: Path) -> None:
    assert "<stdin>:22:18: SE101 error" in invoke("check", "-", stdin=WRONG.encode()).stdout
    fixed = invoke("fix", "--unsafe-fixes", "-", stdin=WRONG.encode())
    assert (fixed.exit_code, fixed.stdout) == (0, XML)


def test_fix_leaves_a_document_it_cannot_write(doc: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(path: Path) -> object:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("deconv_ir.formats.files.replace_file", full)
    before = doc.read_bytes()
    result = invoke("fix", doc)
    assert result.exit_code == 2
    assert result.stderr == (f"error: {doc}: cannot write the document: No space left on device\n")
    assert doc.read_bytes() == before


def test_the_check_needs_no_numpy(doc: Path) -> None:
    code = (
        "import sys; sys.argv = ['deconv-spec', 'check', '-q', sys.argv[1]]\n"
        "from deconv_cli.spec.command import command\n"
        "command.main(standalone_mode=False)\n"
        "sys.exit('numpy' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code, str(doc)], check=True, capture_output=True)


@pytest.mark.parametrize(
    "arguments", [["check"], ["fix"], ["nothing"], ["check", "--semantics", "x", "d"]]
)
def test_wrong_usage_is_exit_code_2(arguments: list[str]) -> None:
    result = invoke(*arguments)
    assert result.exit_code == 2
    assert "Traceback" not in result.output
