"""Fixtures of the tests of execution."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import deconv_ir


@pytest.fixture
def plain_memory() -> Iterator[None]:
    """Results are NumPy's own arrays, which it reports to tracemalloc."""
    deconv_ir.set_memory_pool_limit(0)
    yield
    deconv_ir.set_memory_pool_limit(192 << 20)
