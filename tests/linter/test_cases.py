"""The cases of every rule: each section of a file in cases/ is a test.

In a case that fails, a comment ``<!-- expect: IR401 -->`` names the finding of its line.  Findings
and their lines must be exactly the expected ones: a case also fails when another rule reports
something.
"""

from __future__ import annotations

import codecs
from pathlib import Path

import pytest

from deconv_ir.findings import Finding, Severity
from deconv_ir.linter.catalogue import RULES
from deconv_ir.linter.engine import check_file

from .conftest import ALL_CASES, EVERYTHING, MOST, Case, check_text, expected_in, found_in

FAILING = [case for case in ALL_CASES if case.fails]
PASSING = [case for case in ALL_CASES if not case.fails]
# The cases of these rules are not text, and stand below; oneDNN's are in test_onednn.py, whole
# networks of blocks in test_siblings.py, targets in test_targets.py.
NOT_TEXT = {"file-unreadable", "xml-not-well-formed", "unlike-siblings"} | {
    entry.name for entry in RULES.values() if entry.family == "onednn" or entry.target
}

PERVASIVE = {"uneven-overlap", "f32-in-openvino"}
"""Rules of severity info that many cases of others fail."""


def _findings(case: Case, path: Path) -> list[Finding]:
    """Check a case, completed by the network, which has a kernel of 3 and a stride of 2."""
    found = check_file(path, EVERYTHING).findings
    return [f for f in found if f.rule not in PERVASIVE or f.rule in case.rules]


@pytest.mark.parametrize("case", FAILING, ids=str)
def test_failing_cases_are_found_in_their_lines(case: Case, tmp_path: Path) -> None:
    path = case.write(tmp_path)
    findings = _findings(case, path)
    assert set(case.rules) <= {f.rule for f in findings}
    assert found_in(findings) == expected_in(path.read_text("utf-8"))


@pytest.mark.parametrize("case", PASSING, ids=str)
def test_passes(case: Case, tmp_path: Path) -> None:
    found = _findings(case, case.write(tmp_path))
    assert {f.rule for f in found}.isdisjoint(case.rules)
    assert [f for f in found if f.severity is not Severity.INFO] == []


def test_network_has_no_findings(block: str, block_weights: bytes, tmp_path: Path) -> None:
    """The network that completes fragments passes all rules."""
    findings = check_text(block, tmp_path, block_weights).findings
    assert [f.code for f in findings] == ["IR801"]


def test_every_rule_has_a_failing_case() -> None:
    tested = {rule for case in FAILING for rule in case.rules}
    assert tested | NOT_TEXT == {entry.name for entry in RULES.values()}


def test_file_unreadable(tmp_path: Path) -> None:
    (tmp_path / "folder.xml").mkdir()
    for name in ("folder.xml", "missing.xml"):
        assert [f.code for f in check_file(tmp_path / name, EVERYTHING).findings] == ["IR101"]


@pytest.mark.parametrize(
    ("old", "new", "line"),
    [
        ("</edges>\n\t<rt_info />\n</net>\n", "", 123),
        ("<net", "<!DOCTYPE net>\n<net", 2),
        ("</dim>\n\t\t\t\t</port>", "</port>\n\t\t\t\t</dim>", 11),
    ],
    ids=["cut short", "doctype", "tags crossed"],
)
def test_xml_not_well_formed(
    block: str, block_weights: bytes, tmp_path: Path, old: str, new: str, line: int
) -> None:
    assert old in block
    text = block.replace(old, new, 1)
    findings = check_text(text, tmp_path, block_weights, MOST).findings
    assert found_in(findings) == {(line, "IR102")}


@pytest.mark.parametrize(
    ("encoding", "mark"),
    [("utf-8", codecs.BOM_UTF8), ("iso-8859-1", b""), ("utf-16", b"")],
    ids=["byte order mark", "Latin-1", "UTF-16"],
)
def test_encodings_are_read(
    block: str, block_weights: bytes, tmp_path: Path, encoding: str, mark: bytes
) -> None:
    text = block.replace("?>", f' encoding="{encoding}"?>', 1).replace('name="act"', 'name="é"')
    data = mark + text.encode(encoding)
    assert check_text(data, tmp_path, block_weights, MOST).findings == []
