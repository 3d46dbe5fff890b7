"""One record for one problem: load's error has the finding that the linter reports."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

import deconv_ir
from deconv_ir import Advice, Finding, Fix, GraphLocation, Hint, TextSpan
from deconv_ir.linter.catalogue import RULES

from .conftest import EVERYTHING, check_text
from .network import complete, weights_bytes

RULES_OF_FILES = [RULES[code] for code in RULES if code[2] in "123" and code != "IR215"]
"""Rules about the file, its graph and attributes: most of their problems prevent loading."""


def refusal(path: Path, weights: bytes) -> deconv_ir.DeconvError | None:
    """Return the error of `load`, if it refuses the file."""
    try:
        deconv_ir.load(path, weights=weights)
    except deconv_ir.DeconvError as error:
        return error
    return None


@pytest.mark.filterwarnings("ignore::deconv_ir.IRWarning")
def test_load_and_the_linter_give_the_same_findings(tmp_path: Path) -> None:
    refused = 0
    for rule in RULES_OF_FILES:
        weights = weights_bytes(rule.weights) or b""
        result = check_text(complete(rule.fragment), tmp_path, weights, EVERYTHING)
        error = refusal(tmp_path / "model.xml", weights)
        if error is not None:
            refused += 1
            assert without_place(error.finding) in map(without_place, result.findings), rule.code
        for finding in result.findings:
            assert isinstance(finding.location, GraphLocation | TextSpan | None)
            assert isinstance(finding.hint, Advice | None)
            assert isinstance(finding.fix, Fix | None)
            assert finding.line is None or finding.line > 0
    assert refused > 20


def without_place(finding: Finding) -> tuple[Any, ...]:
    """Return the problem; the linter's line is that of the attribute, load's that of the layer."""
    return finding.message, finding.file, finding.expected, finding.actual, finding.hint


def test_an_error_is_its_finding() -> None:
    span = TextSpan(3, 8)
    error = deconv_ir.IRError("wrong", line=3, location=span, hint=Hint.CAST(), rule="xml")
    assert error.finding == Finding("wrong", span, line=3, hint=Hint.CAST(), rule="xml")
    error.locate(file="a.xml", line=7, layer="'up'")
    assert (error.finding.file, error.finding.line, error.finding.layer) == ("a.xml", 3, "'up'")
    error.line = 9
    assert str(error) == str(error.finding) == "a.xml:9: layer 'up': wrong (cast=True converts it)"
    assert pickle.loads(pickle.dumps(error)).finding == error.finding


def test_a_plugin_may_give_a_text_as_hint() -> None:
    hint: Any = "use {curly} braces"
    error = deconv_ir.ShapeError("wrong", hint=hint)
    assert str(error) == "wrong (use {curly} braces)"
    assert isinstance(error.hint, Advice)
    assert error.hint.command == hint


def test_a_hint_has_a_wording_for_the_library_and_one_for_the_commands() -> None:
    hint = Hint.BOTH(Hint.DID_YOU_MEAN("x"), Hint.OTHER_SEMANTICS("onednn"))
    assert hint == "did you mean 'x'?; semantics='spec' or 'onednn' chooses"
    assert hint.command == "did you mean 'x'?; --semantics spec|onednn chooses"
    copy = pickle.loads(pickle.dumps(hint))
    assert (copy, copy.command, copy.member) == (hint, hint.command, Hint.BOTH)
