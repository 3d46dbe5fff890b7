"""Fixtures of the kernels' tests; `cases.py` is their harness."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from kernels.cases import DTYPES, Case, draw, draw_odd, random_array

from deconv_ir.kernels.runtime.extension import compiled_module
from deconv_ir.kernels.runtime.threads import set_threads


@pytest.fixture(autouse=True)
def _threads_as_before() -> Iterator[None]:
    """Restore the number of threads after each test."""
    yield
    set_threads(None)


@pytest.fixture
def draw_odd_case() -> Callable[..., Case]:
    """Return the function that draws odd problems."""
    return draw_odd


@pytest.fixture
def draw_case() -> Callable[..., Case]:
    """Return the function that draws problems."""
    return draw


@pytest.fixture
def random_values() -> Callable[..., Any]:
    """Return the function that draws arrays of any dtype."""
    return random_array


@pytest.fixture(params=list(DTYPES))
def dtype(request: pytest.FixtureRequest) -> np.dtype[Any]:
    """Run the test for each element type."""
    return DTYPES[request.param]


@pytest.fixture(params=["direct", "winograd", "im2col", "gemm_col2im"])
def algorithm(request: pytest.FixtureRequest) -> str:
    """Run the test for each algorithm that is available."""
    if request.param in ("direct", "winograd") and compiled_module() is None:
        pytest.skip("the compiled kernel was not built")
    return str(request.param)


@pytest.fixture
def dtype_of() -> Callable[[str], np.dtype[Any]]:
    """Return a function from the name of a type to its dtype, NumPy's or not."""
    return DTYPES.__getitem__
