"""Fixtures of the tests of execution."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import plan_rows
import pytest

import deconv_ir


@pytest.fixture(autouse=True)
def _own_generator(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reset the generator, so that each test draws the same arrays in any order."""
    monkeypatch.setattr(plan_rows, "RNG", np.random.default_rng(0))


@pytest.fixture(autouse=True)
def _pool() -> None:
    """Reset the pool: a command that ran in this process has turned it off."""
    deconv_ir.set_memory_pool_limit(192 << 20)


@pytest.fixture
def plain_memory() -> Iterator[None]:
    """Allocate results as NumPy's own arrays, which tracemalloc counts."""
    deconv_ir.set_memory_pool_limit(0)
    yield
    deconv_ir.set_memory_pool_limit(192 << 20)
