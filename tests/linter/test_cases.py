"""Every rule's pass/ and fail/ files; drop a file in, and it is a test.

In a fail/ file a comment ``<!-- expect: IR401 -->`` says what is wrong in its
line.  All findings of all rules must be those, in those lines: a case also
fails when another rule speaks up.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from deconv_ir.linter.catalogue import RULES
from deconv_ir.linter.engine import check_file

from .conftest import CASES, EVERYTHING, expected_in, found_in


def case_files(kind: str) -> list[Path]:
    return sorted(p for p in CASES.glob(f"*/{kind}/*.xml"))


def name_of(path: Path) -> str:
    return str(path.relative_to(CASES))


@pytest.mark.parametrize("path", case_files("fail"), ids=name_of)
def test_fail(path: Path) -> None:
    result = check_file(path, EVERYTHING)
    rule = path.parent.parent.name
    assert rule in {f.rule for f in result.findings}
    if path.is_file():
        assert found_in(result.findings) == expected_in(path.read_bytes())


@pytest.mark.parametrize("path", case_files("pass"), ids=name_of)
def test_pass(path: Path) -> None:
    found = check_file(path, EVERYTHING).findings
    rule = path.parent.parent.name
    assert rule not in {f.rule for f in found}
    assert [f for f in found if f.severity.value != "info"] == []


@pytest.mark.parametrize("entry", RULES.values(), ids=lambda entry: entry.name)
def test_every_rule_has_cases(entry) -> None:  # type: ignore[no-untyped-def]
    assert list((CASES / entry.name / "pass").iterdir())
    assert list((CASES / entry.name / "fail").iterdir())


def test_every_folder_is_a_rule() -> None:
    assert {p.name for p in CASES.iterdir()} == {entry.name for entry in RULES.values()}
