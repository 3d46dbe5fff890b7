"""Compiled standardisation and row sums against NumPy's, and against sums in f64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kernels.cases import without_extension
from support import batches

from deconv_ir.ir.dtypes import parse_element_type
from deconv_ir.kernels import normalization, set_threads
from deconv_ir.kernels.runtime import interface
from deconv_ir.kernels.runtime.extension import compiled_module
from deconv_ir.operations import Context, TensorInfo, find_operation
from deconv_ir.ops.normalization.standardizing import EpsMode, Standardizing, standardizer

pytestmark = pytest.mark.skipif(
    compiled_module() is None, reason="the compiled kernel was not built here"
)
F32 = np.dtype(np.float32)


def both(how: Standardizing, data: Any) -> tuple[Any, Any]:
    """Return the results of C and NumPy; C writes into a given array."""
    with np.errstate(all="ignore"):
        found = standardizer(data.shape, F32, how, 1 << 20)(data, np.empty(data.shape, F32))
        with without_extension():
            expected = standardizer(data.shape, F32, how, 1 << 20)(data, None)
    return found, expected


@pytest.mark.parametrize("seeds", batches(120, 40), ids=str)
def test_random_axes(seeds: range) -> None:
    for seed in seeds:
        rng = np.random.default_rng(seed)
        rank = int(rng.integers(1, 5))
        shape = (*map(int, rng.integers(1, 9, rank - 1)), int(rng.choice([1, 7, 64, 5000])))
        axes = tuple(i for i in range(rank) if rng.integers(2)) or (rank - 1,)
        mode, divides = list(EpsMode)[seed % 2], bool(rng.integers(5))
        data = (rng.standard_normal(shape) * 3 + rng.integers(-5, 5)).astype(F32)
        if seed % 3 == 0:
            data = data[..., ::-1]
        how = Standardizing(axes, 1e-5, mode, divides)
        found, expected = both(how, data)
        assert found.shape == expected.shape
        wide = data.astype(np.float64)
        centred = wide - wide.mean(axes, keepdims=True)
        spread = centred.var(axes, keepdims=True)
        inside = mode is EpsMode.INSIDE_SQRT
        root = np.sqrt(spread + 1e-5) if inside else np.sqrt(spread) + 1e-5
        oracle = centred / root if divides else centred
        # A mean in f32 has an error in its last bit, which matters where elements are nearly equal.
        allowed = 2e-6 * (1 + np.abs(wide).max() * (1 / root if divides else 1))
        for result in (found, expected):
            assert (np.abs(result - oracle) <= allowed + 1e-5 * np.abs(oracle)).all()


@pytest.mark.parametrize("eps", [0.0, 1e-9])
def test_numbers_that_are_not_usual(eps: float) -> None:
    data = np.random.default_rng(1).standard_normal((7, 40)).astype(F32)
    for row, odd in enumerate((np.nan, np.inf, -np.inf, 1e-42, -0.0)):
        data[row, 5] = odd
    data[5], data[6] = 3.0, np.array([1e-40, 3e-40] * 20)
    found, expected = both(Standardizing((1,), eps), data)
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("shape", [(2, 6, 5, 7), (1, 4, 3), (3, 8, 70, 90), (2, 4)])
def test_groups(shape: tuple[int, ...]) -> None:
    rng = np.random.default_rng(2)
    data = rng.standard_normal(shape).astype(F32)
    scale, bias = (rng.standard_normal(shape[1]).astype(F32) for _ in range(2))
    layer = find_operation("GroupNormalization")(num_groups=2, epsilon=1e-5)
    (found,) = layer.execute([data, scale, bias], Context())
    grouped = data.reshape(shape[0], 2, -1).astype(np.float64)
    centred = grouped - grouped.mean(2, keepdims=True)
    expected = centred / np.sqrt(centred.var(2, keepdims=True) + 1e-5)
    channel = (-1,) + (1,) * (len(shape) - 2)
    expected = expected.reshape(shape) * scale.reshape(channel) + bias.reshape(channel)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-5)


def sums_of(data: np.ndarray, *, mean: bool) -> np.ndarray:
    found, out = normalization.row_sums(mean=mean), np.full(len(data), np.nan, F32)
    assert found is not None
    found(data, out)
    return out


@pytest.mark.parametrize("rows", [1, 3, 1000])
@pytest.mark.parametrize("length", [1, 15, 64, 4099, 100_000])
def test_sums(rows: int, length: int) -> None:
    data = (np.random.default_rng(3).standard_normal((min(rows, 3), length)) + 1).astype(F32)
    for mean, expected in ((False, data.sum(1, dtype="f8")), (True, data.mean(1, dtype="f8"))):
        np.testing.assert_allclose(sums_of(data, mean=mean), expected, rtol=1e-6)


def test_reductions_of_the_last_axes() -> None:
    data = np.random.default_rng(4).standard_normal((3, 5, 40, 50)).astype(F32)
    for kind, expected in (("ReduceMean", data.mean((2, 3))), ("ReduceSum", data.sum((2, 3)))):
        layer, axes = find_operation(kind)(), np.array([-1, 2])
        (found,) = layer.execute([data, axes], Context())
        np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)
        f32, i64 = parse_element_type("f32"), parse_element_type("i64")
        infos = [TensorInfo(data.shape, f32), TensorInfo((2,), i64, (-1, 2))]
        output = TensorInfo(found.shape, f32)
        out = np.full_like(found, np.nan)
        assert layer.accepts_out(infos, output)
        assert layer.bind(infos, [output], Context())([data, axes], out)[0] is out
        np.testing.assert_array_equal(out, found)


def test_bits_do_not_depend_on_threads() -> None:
    data = np.random.default_rng(5).standard_normal((40, 3000)).astype(F32)
    found = []
    try:
        for threads in (1, 2, 5):
            set_threads(threads)
            out = np.empty_like(data)
            normalization.standardize(data, out, 3000, eps=1e-5)
            found.append((out, sums_of(data, mean=False)))
    finally:
        set_threads(None)
    for out, sums in found[1:]:
        np.testing.assert_array_equal(out, found[0][0])
        np.testing.assert_array_equal(sums, found[0][1])


def test_c_refuses_what_does_not_fit() -> None:
    module = compiled_module()
    assert module is not None
    data, out, two = (np.zeros(n, F32) for n in (12, 12, 2))
    for bad in ((data, out[:6], None, None, 3, 3), (data, out, None, None, 5, 5),
                (data, out, None, None, 6, 4), (data, out, two, two[:1], 6, 3),
                (data, out, None, None, 0, 1),
                (data.astype("f8"), out, None, None, 6, 6)):  # fmt: skip
        *arrays, row, inner = bad
        how = {"row": row, "inner": inner, "eps": 1e-5, "inside": True, "divides": True}
        fields = interface.standardize_fields(isa=0, threads=1, **how)
        with pytest.raises(ValueError, match="fit"):
            module.standardize(*arrays, fields)
    for pair in ((data, out[:5]), (data, out[:0]), (data.astype("f8"), out)):
        with pytest.raises(ValueError, match="fit"):
            module.sum_rows(*pair, interface.sum_rows_fields(isa=0, mean=False, threads=1))
