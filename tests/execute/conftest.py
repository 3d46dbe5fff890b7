"""Fixtures of the tests of execution."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import plan_rows
import pytest

import deconv_ir


@pytest.fixture(autouse=True)
def _own_generator(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each test draws the same arrays, in whatever order tests run."""
    monkeypatch.setattr(plan_rows, "RNG", np.random.default_rng(0))


@pytest.fixture
def plain_memory() -> Iterator[None]:
    """Results are NumPy's own arrays, which it reports to tracemalloc."""
    deconv_ir.set_memory_pool_limit(0)
    yield
    deconv_ir.set_memory_pool_limit(192 << 20)
