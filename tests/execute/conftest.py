"""Fixtures of the tests of execution."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import plan_rows
import pytest
import quantized_layers

import deconv_ir


@pytest.fixture(autouse=True)
def _own_generator(monkeypatch: pytest.MonkeyPatch) -> None:
    """Reset the generators, so that each test draws the same arrays in any order."""
    monkeypatch.setattr(plan_rows, "RNG", np.random.default_rng(0))
    # Modules have this generator under names of their own.
    quantized_layers.RNG.bit_generator.state = np.random.default_rng(48).bit_generator.state


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
