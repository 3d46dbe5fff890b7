"""What holds for every rule: its docstring's examples, its codes, its page."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import deconv_ir
from deconv_ir.linter.catalogue import RULES, Entry, load_rule, rule_for, select_rules
from deconv_ir.linter.documentation import Fragment, explain
from deconv_ir.linter.rule import FAMILIES

from .conftest import check_text, weights_bytes

ROOT = Path(__file__).parents[2]
PACKAGE = Path(deconv_ir.__file__).parent
every_rule = pytest.mark.parametrize("entry", RULES.values(), ids=lambda entry: entry.name)


def codes_of(fragment: Fragment, folder: Path) -> set[str]:
    weights = weights_bytes(fragment.weights) if fragment.weights else None
    return {f.code for f in check_text(fragment.xml, folder, weights).findings}


@every_rule
def test_failing_fragment_fails(entry: Entry, tmp_path: Path) -> None:
    fragment = explain(entry.code).fails
    if entry.name == "file-unreadable":
        pytest.skip("its example is no XML; tests/linter/cases has a folder")
    assert entry.code in codes_of(fragment, tmp_path)


@every_rule
def test_passing_fragment_passes(entry: Entry, tmp_path: Path) -> None:
    found = codes_of(explain(entry.code).passes, tmp_path)
    assert entry.code not in found
    assert {code for code in found if RULES[code].severity.value == "error"} == set()


@every_rule
def test_is_documented(entry: Entry) -> None:
    told = explain(entry.code)
    assert told.summary.endswith(".")
    assert len(told.why) > 60
    assert f"### {entry.code} {entry.name}\n" in (ROOT / "docs/rules.md").read_text("utf-8")


@every_rule
def test_index_agrees_with_the_class(entry: Entry) -> None:
    rule = load_rule(entry.code)
    assert (rule.code, rule.name, rule.severity, rule.slugs, rule.types, rule.when) == (
        entry.code,
        entry.name,
        entry.severity,
        entry.slugs,
        entry.types,
        entry.when,
    )
    assert (rule.deep, rule.fix) == (entry.deep, entry.fix)


@every_rule
def test_name_and_code_are_well_formed(entry: Entry) -> None:
    assert re.fullmatch(r"IR[1-6]\d\d", entry.code)
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+|cycle", entry.name)
    assert entry.module == entry.name.replace("-", "_")
    assert entry.family in FAMILIES.values()


def test_codes_are_stable() -> None:
    """Codes are written into settings and comments: one that is given stays given."""
    given = dict(re.findall(r"### (IR\d+) (\S+)", (ROOT / "docs/rules.md").read_text("utf-8")))
    assert given == {entry.code: entry.name for entry in RULES.values()}


def errors_in_the_library() -> set[str]:
    """Return all values of ``rule=`` in the modules that the linter reads with."""
    found: set[str] = set()
    folders = ("ir", "formats", "ops")
    modules = [path for folder in folders for path in (PACKAGE / folder).rglob("*.py")]
    for path in [*PACKAGE.glob("*.py"), *modules]:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if not (isinstance(node, ast.keyword) and node.arg == "rule"):
                continue
            if isinstance(node.value, ast.Constant) and isinstance(node.value.value, str):
                found.add(node.value.value)
    return found


@pytest.mark.parametrize("slug", sorted(errors_in_the_library()))
def test_every_error_of_the_library_has_a_rule(slug: str) -> None:
    """An error whose name no rule claims is filed under inputs-do-not-fit."""
    error = deconv_ir.DeconvError("", rule=slug, expected="whole numbers", actual="1")
    assert rule_for(slug, error) in RULES


@pytest.mark.parametrize(
    ("words", "some", "count"),
    [
        (["IR401"], "IR401", 1),
        (["ir401"], "IR401", 1),
        (["declared-dims-differ"], "IR401", 1),
        (["IR40"], "IR409", 9),
        (["weights"], "IR507", 7),
        (["IR401", "weights"], "IR401", 8),
        (["ALL"], "IR101", len(RULES)),
    ],
)
def test_select_rules(words: list[str], some: str, count: int) -> None:
    chosen = select_rules(words)
    assert some in chosen
    assert len(chosen) == count


def test_select_rules_names_the_nearest() -> None:
    with pytest.raises(deconv_ir.DeconvError, match="declared-dims-differ"):
        select_rules(["declared-dim-differs"])
