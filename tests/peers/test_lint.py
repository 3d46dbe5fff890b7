"""Precision: the linter has no finding in a valid IR that OpenVINO saved."""

from __future__ import annotations

from pathlib import Path

import pytest

import deconv_ir

from .blocks import blocks

pytestmark = pytest.mark.peers


@pytest.mark.parametrize("start", range(0, 200, 20))
def test_saved_blocks_have_no_finding(start: int, tmp_path: Path) -> None:
    for i, block in enumerate(blocks(20, start)):
        folder = tmp_path / str(i)
        folder.mkdir()
        # Drawn output shapes may crop whole rows, which IR810 is about.
        found = [f for f in deconv_ir.lint(block.save(folder)) if f.code != "IR810"]
        assert found == [], repr(block)
