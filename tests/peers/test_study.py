"""The verdicts in tests/linter/study.json are those of the installed OpenVINO and the oracle."""

from __future__ import annotations

import json

import pytest
from linter.study import FROZEN, judge_all

pytest.importorskip("openvino", reason="OpenVINO cannot be imported: install the `peers` extra")

pytestmark = pytest.mark.peers


def test_mistakes_are_as_frozen() -> None:
    assert judge_all() == json.loads(FROZEN.read_text())["mistakes"]
