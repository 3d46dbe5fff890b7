"""Properties that every rule must have: its code, its fragment, its row in the table, its page."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

import deconv_ir
from deconv_ir.linter.catalogue import FALLBACK, RULES, rule_for, select_rules
from deconv_ir.linter.context import LintContext
from deconv_ir.linter.releases import parse_target
from deconv_ir.linter.rule import FAMILIES, Rule
from deconv_ir.operations import integers

from .conftest import EVERYTHING, check_text
from .network import complete, weights_bytes

ROOT = Path(__file__).parents[2]
PACKAGE = Path(deconv_ir.__file__).parent
every_rule = pytest.mark.parametrize("rule", RULES.values(), ids=lambda rule: rule.name)

GIVEN = """
IR101 file-unreadable error
IR102 xml-not-well-formed error
IR103 wrong-root error
IR104 unsupported-ir-version error
IR105 missing-element error
IR106 unknown-element warning
IR107 unknown-attribute warning
IR108 missing-attribute error
IR109 not-a-number error
IR110 unknown-precision error
IR111 too-large error
IR112 repeated-element error
IR113 useless-suppression warning
IR114 refused-by-openvino error
IR115 execution-graph error
IR116 invalid-pre-process error
IR201 duplicate-layer-id error
IR202 duplicate-layer-name warning
IR203 edge-to-missing-layer error
IR204 edge-to-missing-port error
IR205 two-edges-into-port error
IR206 input-without-edge error
IR207 cycle error
IR208 unneeded-layer warning
IR209 edge-dims-differ error fix
IR210 edge-precision-differs error fix
IR211 no-result warning
IR212 duplicate-port-id error
IR213 wrong-number-of-ports error
IR214 unknown-operation error
IR215 body-does-not-fit error
IR301 attribute-missing error
IR302 required-attribute-left-out warning fix
IR303 attribute-out-of-range error
IR304 float-in-integer-list error fix
IR305 unknown-auto-pad error fix
IR306 invalid-attribute-value error
IR307 wrong-list-length error
IR308 auto-pad-refused warning fix
IR309 pads-ignored warning
IR310 pads-ignored-with-output-shape info
IR311 output-padding-too-large info
IR312 attribute-refused-by-openvino error
IR313 outputs-without-input info
IR314 mask-ignored warning
IR315 window-does-not-fit error
IR401 declared-dims-differ error fix
IR402 intervals-do-not-meet error fix
IR403 declared-precision-differs error fix
IR404 rank-mismatch error
IR405 channels-differ error
IR406 groups-do-not-divide error
IR407 output-shape-length error
IR408 output-shape-type error
IR409 output-shape-value error
IR410 element-types-differ error
IR411 impossible-extent error
IR412 broadcast-mismatch error
IR413 reshape-mismatch error
IR414 bias-mismatch error
IR415 inputs-do-not-fit error
IR416 layer-contradicted error fix
IR417 no-size-fits error
IR418 sizes-never-equal error
IR419 sizes-sometimes-equal info
IR501 weights-missing error
IR502 constant-past-end error
IR503 constant-size error fix
IR504 overlapping-constants error
IR505 misaligned-constant info
IR506 unused-weights warning
IR507 weights-not-finite error
IR508 zero-filter warning deep
IR509 zero-output-channels info deep
IR510 saturated-weights warning deep
IR511 index-out-of-range error
IR512 index-gives-zeros warning
IR601 profiles-differ info
IR602 negative-pads info
IR603 zero-extent info
IR604 rank-above-5 info
IR605 pad-before-strided info
IR606 odd-total-padding info
IR607 bare-layer-refused info
IR608 f32-in-openvino info
IR609 ranges-misread warning
IR611 target-refuses error
IR612 target-not-known info
IR701 json-not-well-formed error
IR702 tensor-produced-twice error
IR703 strides-do-not-cover-shape error
IR704 dtype-not-allowed error
IR705 scales-do-not-fit error
IR706 port-names-no-tensor warning
IR707 unknown-kind error
IR801 uneven-overlap info
IR802 same-without-output-shape info
IR803 wrong-quantization-axis warning
IR804 input-range-reversed warning
IR805 output-range-reversed info
IR806 bias-along-width warning
IR807 constant-output-shape info
IR808 constant-batch info
IR809 unlike-siblings info
IR810 output-shape-crops-inputs warning
IR811 detection-contradicted info
IR812 range-contradicted info
IR813 name-contradicted info
IR901 normalization-not-folded info
IR902 repeated-activation info
IR903 transposes-cancel info
"""
"""Codes occur in users' settings, comments and baselines, so a published code never changes.

A new rule is a new line; a line never changes.
"""


def test_codes_are_stable() -> None:
    rules = list(RULES.values())
    lines = [
        f"{rule.code} {rule.name} {rule.severity.value}"
        + " fix" * bool(rule.fix)
        + " deep" * rule.deep
        for rule in rules
    ]
    assert lines == GIVEN.split("\n")[1:-1]


@every_rule
def test_failing_fragment_fails(rule: Rule, tmp_path: Path) -> None:
    if rule.name == "file-unreadable":
        pytest.skip("a FIFO or a folder has no XML; test_cases.py has a folder")
    targets = map(parse_target, [rule.target] if rule.target else [])
    options = EVERYTHING._replace(targets=tuple(targets))
    result = check_text(complete(rule.fragment), tmp_path, weights_bytes(rule.weights), options)
    assert rule.code in {f.code for f in result.findings}


@every_rule
def test_declaration(rule: Rule) -> None:
    """A rule has a number in its family, texts of one form, and something that reports it."""
    assert re.fullmatch(r"IR[1-9]\d\d", rule.code)
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)+|cycle", rule.name)
    assert rule.family == FAMILIES[rule.code[2]]
    assert not rule.when or hasattr(LintContext, rule.when)
    assert rule.has_check or rule.library_rules or rule.code == FALLBACK
    require_short_fragment(rule)
    require_plain_texts(rule)
    require_section_of_the_page(rule)


def require_short_fragment(rule: Rule) -> None:
    lines = RULES[rule.code].fragment.split("\n")
    assert len(lines) <= 26
    assert max(map(len, lines)) <= 100 or rule.name == "too-large"


def require_plain_texts(rule: Rule) -> None:
    """The title is one sentence that fits into a table; the reason consists of whole sentences."""
    assert rule.title.endswith(".")
    assert ". " not in rule.title
    assert len(rule.title) <= 90
    assert rule.why.endswith((".", ":"))
    assert rule.title not in rule.why
    for text in (rule.title, rule.why, rule.fix):
        assert text.count("``") % 2 == 0
        assert "  " not in text
    assert not rule.fix.endswith(".")


def require_section_of_the_page(rule: Rule) -> None:
    page = (ROOT / "docs/rules.md").read_text("utf-8")
    section = page.split(f"### {rule.code} {rule.name}\n")[1].split("\n### ")[0]
    words = f"{rule.title} {rule.why}".replace("``", "`")
    assert words in section.replace("\n", " ")
    has_fragment = rule.fragment in section
    assert has_fragment, "docs/rules.md is out of date: make regen"  # pytest's own diff is slow
    assert f"`--fix` {rule.fix}." in section.replace("\n", " ") or not rule.fix


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


def test_every_error_of_the_library_has_a_rule() -> None:
    """An error whose name no rule claims is filed under inputs-do-not-fit."""
    for name in errors_in_the_library():
        found = deconv_ir.Finding("", expected=integers(1).allowed, actual="1", rule=name)
        assert rule_for(name, found) in RULES, name


@pytest.mark.parametrize(
    ("words", "some", "count"),
    [
        (["IR401"], "IR401", 1),
        (["ir401"], "IR401", 1),
        (["declared-dims-differ"], "IR401", 1),
        (["IR40"], "IR409", 9),
        (["weights"], "IR507", 12),
        (["IR401", "weights"], "IR401", 13),
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


def test_a_finding_has_the_expression_of_a_dynamic_dim(tmp_path: Path) -> None:
    """The deconvolution of the network has 2*(H - 1) + 3 - 1 - 1 rows."""
    rule = RULES["IR402"]
    result = check_text(complete(rule.fragment), tmp_path, weights_bytes(rule.weights))
    (found,) = (f for f in result.findings if f.code == "IR402")
    assert "axis 2: declared 10, computed 1..9" in found.message
    assert found.message.endswith("; it is 2*H - 1")
