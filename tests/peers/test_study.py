"""The verdicts in tests/linter/study.json are those of the installed OpenVINO and the oracle."""

from __future__ import annotations

import itertools
import json

import pytest
from linter.study import FROZEN, mistakes, mutants

pytest.importorskip("openvino", reason="OpenVINO cannot be imported: install the `peers` extra")

pytestmark = pytest.mark.peers


PARTS = 24
"""Enough for `--one-in` to leave some out."""


@pytest.mark.parametrize("part", range(PARTS))
def test_mistakes_are_as_frozen(part: int) -> None:
    drawn = list(itertools.islice(mutants(), part, None, PARTS))
    names = {name for name, _, _ in drawn}
    frozen = json.loads(FROZEN.read_text())["mistakes"]
    assert mistakes(drawn) == [name for name in frozen if name in names]


def test_only_mutants_are_frozen() -> None:
    assert {name for name, _, _ in mutants()} >= set(json.loads(FROZEN.read_text())["mistakes"])
