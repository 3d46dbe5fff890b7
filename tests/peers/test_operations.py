"""Every operation against OpenVINO: outputs, and shapes inferred of dynamic inputs."""

from __future__ import annotations

import importlib
import itertools
from pathlib import Path

import pytest

from .operations.harness import Case, compare_outputs, compare_shapes

pytestmark = pytest.mark.peers

TABLES = ("elementwise", "movement", "networks", "indexing", "others")
CASES = list(
    itertools.chain.from_iterable(
        importlib.import_module(f"{__package__}.operations.{table}").cases() for table in TABLES
    )
)


@pytest.mark.parametrize("case", CASES, ids=str)
def test_outputs(case: Case, tmp_path: Path) -> None:
    compare_outputs(case, tmp_path)


@pytest.mark.parametrize("case", [c for c in CASES if c.dynamic], ids=str)
def test_shapes(case: Case, tmp_path: Path) -> None:
    different = [d for seed in range(6) if (d := compare_shapes(case, tmp_path, seed))]
    assert not different, "\n".join(different)
