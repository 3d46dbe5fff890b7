"""Compiled SoftMax and LogSoftmax against NumPy's in f64, and against the form without C."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kernels.cases import without_extension
from support import batches

from deconv_ir.kernels import normalization, set_threads
from deconv_ir.kernels.runtime.extension import compiled_module
from deconv_ir.operations import Context, find_operation

pytestmark = pytest.mark.skipif(
    compiled_module() is None, reason="the compiled kernel was not built here"
)
F32 = np.float32
ISAS = compiled_module().isas() if compiled_module() else []


def exact(data: Any, axis: int, logarithm: bool) -> Any:
    wide = data.astype(np.float64)
    shifted = wide - wide.max(axis, keepdims=True)
    result = shifted - np.log(np.exp(shifted).sum(axis, keepdims=True))
    return result if logarithm else np.exp(result)


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("logarithm", [False, True])
@pytest.mark.parametrize("seeds", batches(15, 15), ids=str)
def test_random_axes(
    seeds: range, logarithm: bool, isa: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in seeds:
        monkeypatch.setenv("DECONV_IR_ISA", isa)
        rng = np.random.default_rng(seed)
        shape = [int(n) for n in rng.choice([1, 2, 5, 17, 40], rng.integers(1, 4))]
        axis = int(rng.integers(len(shape)))
        shape[axis] = int(rng.choice([1, 3, 16, 100, 1000]))
        data = (rng.standard_normal(shape) * 10 ** rng.uniform(-2, 2)).astype(F32)
        if seed % 3 == 0:
            data = data[..., ::-1]
        found = normalization.softmax(data, axis, logarithm=logarithm)
        assert found is not None
        expected = exact(data, axis, logarithm)
        # The difference from the maximum is rounded, and the result: the error is relative to both.
        size = np.maximum(np.abs(data - data.max(axis, keepdims=True)), 4)
        if logarithm:
            size = np.maximum(size, np.abs(expected))
        allowed = 2.0**-23 * size * (1 if logarithm else expected) + 2.0**-140
        assert (np.abs(found - expected) <= allowed).all()


@pytest.mark.parametrize("kind", ["SoftMax-8", "LogSoftmax-5"])
@pytest.mark.parametrize("axis", [0, 1])
def test_numbers_that_are_not_usual(kind: str, axis: int) -> None:
    rows = [np.arange(20.0)] * 9
    for row, odd in enumerate((np.nan, np.inf, -np.inf, 1e-42, -0.0, 3e38, -3e38)):
        rows[row] = np.where(np.arange(20) == 13, odd, rows[row])
    data = np.array([*rows, np.full(20, -np.inf), np.full(20, np.inf)], F32)
    data = data if axis else np.ascontiguousarray(data.T)
    name, version = kind.split("-")
    layer = find_operation(name, f"opset{version}")(axis=axis)
    (found,) = layer.execute([data], Context())
    with without_extension():
        (expected,) = layer.execute([data], Context())
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-38)


@pytest.mark.parametrize("logarithm", [False, True])
def test_bits_do_not_depend_on_the_place_of_a_list_or_on_threads(logarithm: bool) -> None:
    """Rows and columns are computed alone and among others, which changes the tiles."""
    data = np.random.default_rng(3).standard_normal((37, 2000)).astype(F32)
    try:
        set_threads(1)
        rows = normalization.softmax(data, 1, logarithm=logarithm)
        set_threads(2)
        columns = normalization.softmax(np.ascontiguousarray(data.T), 0, logarithm=logarithm)
        again = normalization.softmax(data, 1, logarithm=logarithm)
    finally:
        set_threads(None)
    assert rows is not None
    assert columns is not None
    alone = [normalization.softmax(row, 0, logarithm=logarithm) for row in data]
    for other in (columns.T, again, np.array(alone)):
        np.testing.assert_array_equal(rows, other)


def test_empty_arrays_are_left_to_numpy() -> None:
    assert normalization.softmax(np.zeros((3, 0), F32), 1, logarithm=False) is None
    assert normalization.softmax(np.zeros((3, 2)), 1, logarithm=False) is None
