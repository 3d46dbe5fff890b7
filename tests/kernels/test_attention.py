"""Compiled attention against NumPy's in f64."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from support import batches, traced_peak

from deconv_ir.ir.dtypes import from_numpy
from deconv_ir.kernels import set_threads
from deconv_ir.kernels.products import attend, bind_attention
from deconv_ir.kernels.runtime import interface
from deconv_ir.kernels.runtime.extension import compiled_module
from deconv_ir.operations import Context, TensorInfo, find_operation

module = compiled_module()
pytestmark = pytest.mark.skipif(module is None, reason="the compiled kernel was not built here")
ISAS = [] if module is None else module.isas()
EXTENTS = (8, 9, 16, 17, 47, 48, 49, 100, 241, 400)


def expected(query: Any, key: Any, value: Any, scale: float, mask: Any = None) -> Any:
    q, k, v = (x.astype(np.float64) for x in (query, key, value))
    scores = scale * q @ k.swapaxes(-1, -2) + (0 if mask is None else mask)
    weights = np.exp(scores - scores.max(-1, keepdims=True))
    return weights / weights.sum(-1, keepdims=True) @ v


def drawn(rng: np.random.Generator, *shape: int) -> Any:
    """Draw an array whose last axes have one of several memory layouts."""
    array = rng.standard_normal((*shape[:-2], shape[-1], shape[-2])).astype(np.float32)
    kind = rng.integers(4)
    if kind == 1:
        return array.swapaxes(-1, -2)
    array = array.reshape(shape)
    if kind == 2:
        return array[..., ::-1, :]
    return np.moveaxis(np.moveaxis(array, -2, 0).copy(), 0, -2) if kind == 3 else array


@pytest.mark.parametrize("seeds", batches(100, 20), ids=str)
def test_random_shapes(seeds: range, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in seeds:
        rng = np.random.default_rng(seed)
        monkeypatch.setenv("DECONV_IR_ISA", ISAS[seed % len(ISAS)])
        queries, keys = (int(rng.choice(EXTENTS)) for _ in range(2))
        width, mixed = (int(rng.choice((1, 5, 16, 33, 64, 400))) for _ in range(2))
        stacks: Any = [[int(rng.choice((1, n))) for n in (2, 3)] for _ in range(3)]
        query = drawn(rng, *stacks[0], queries, width)
        key, value = drawn(rng, *stacks[1], keys, width), drawn(rng, *stacks[2], keys, mixed)
        mask = None
        if seed % 2:
            most = np.broadcast_shapes(*map(tuple, stacks))
            shape = [int(rng.choice((1, n))) for n in (*most, queries, keys)]
            mask = drawn(rng, *shape)[(0,) * int(rng.integers(3))]
        found = attend(query, key, value, 0.3, mask)
        assert found is not None or queries * width * keys < 1 << 15
        if found is not None:
            right = expected(query, key, value, 0.3, mask)
            assert found.shape == right.shape
            np.testing.assert_allclose(found, right, rtol=1e-4, atol=3e-5)


@pytest.mark.parametrize("masked", [False, True])
def test_bits_depend_on_neither_threads_nor_other_queries(masked: bool) -> None:
    rng = np.random.default_rng(0)
    query, key, value = (drawn(rng, 2, 500, 64) for _ in range(3))
    mask = drawn(rng, 500, 500) if masked else None
    found = []
    try:
        for threads in (1, 2, 7):
            set_threads(threads)
            found.append(attend(query, key, value, 0.125, mask))
    finally:
        set_threads(None)
    for other in found[1:]:
        np.testing.assert_array_equal(other, found[0])
    rows = mask[30:170] if masked else None
    part = attend(query[1:, 30:170], key[1:], value[1:], 0.125, rows)
    np.testing.assert_array_equal(part, found[0][1:, 30:170])


def test_numbers_that_are_not_usual() -> None:
    rng = np.random.default_rng(1)
    query, key, value = (rng.standard_normal((64, 40)).astype(np.float32) for _ in range(3))
    query[3, 5] = np.nan
    key[7] = 1e-42
    value[:, 2], value[9, 4] = -0.0, np.inf
    with np.errstate(all="ignore"):
        right, found = expected(query, key, value, 1.0), attend(query, key, value, 1.0)
    assert found is not None
    np.testing.assert_allclose(found, right, rtol=1e-4, atol=1e-5)
    # The largest scores neither overflow nor vanish.
    large = attend(query[4:] * 1e4, key, value, 1.0)
    assert large is not None
    assert np.isfinite(np.delete(large, 4, axis=1)).all()


def test_masks_of_numbers_that_are_not_usual() -> None:
    # Oracle: NumPy's operations in f64; all keys of the last row are masked.
    rng = np.random.default_rng(4)
    query, key, value = (rng.standard_normal((2, 64, 40)).astype(np.float32) for _ in range(3))
    mask = rng.standard_normal((64, 64)).astype(np.float32)
    mask[:32, 9:], mask[1, 3], mask[2, 4] = -np.inf, np.nan, np.inf
    mask[5, :5], mask[6, :7], mask[7], mask[63] = -0.0, 1e-42, -1e4, -np.inf
    with np.errstate(all="ignore"):
        right, found = expected(query, key, value, 1.0, mask), attend(query, key, value, 1.0, mask)
    assert found is not None
    for row in (1, 2, 63):
        assert np.isnan(found[:, row]).all()
    np.testing.assert_allclose(found, right, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("kind", ["a bias of heads", "booleans", "narrow", "causal"])
def test_a_layer_with_a_mask(kind: str) -> None:
    rng = np.random.default_rng(5)
    dtype = np.float16 if kind == "narrow" else np.float32
    query, key, value = (rng.standard_normal((2, 3, 50, 32)).astype(dtype) for _ in range(3))
    mask: Any = rng.standard_normal((3, 50, 50)).astype(dtype)
    added = mask
    if kind == "booleans":
        mask = mask < 1
        added = np.where(mask, 0, -np.inf)
    elif kind == "causal":
        added = np.where(np.tri(50) > 0, 0, -np.inf)
    layer = find_operation("ScaledDotProductAttention")(causal=kind == "causal")
    inputs = [query, key, value, *([] if kind == "causal" else [mask])]
    (found,) = layer.execute(inputs, Context())
    right = expected(query, key, value, 32**-0.5, added)
    tolerance = 2e-3 if kind == "narrow" else 1e-5
    np.testing.assert_allclose(found, right, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("odd", [np.nan, np.inf, -np.inf, 1e38])
@pytest.mark.parametrize("causal", [False, True])
def test_excluded_scores_need_not_be_finite(causal: bool, odd: float) -> None:
    """ScaledDotProductAttention-13: an excluded pair has the score -inf, whatever it was."""
    rng = np.random.default_rng(6)
    query, key, value = (rng.standard_normal((2, 50, 32)).astype(np.float32) for _ in range(3))
    allowed = np.tri(50, dtype=bool)
    key[:, 40] = odd
    layer = find_operation("ScaledDotProductAttention")(causal=causal)
    (found,) = layer.execute([query, key, value, *([] if causal else [allowed])], Context())
    # Queries before the odd key do not see it, so that another key gives the same result.
    key[:, 40] = 1
    right = expected(query, key, value, 32**-0.5, np.where(allowed, 0, -np.inf))
    np.testing.assert_allclose(found[:, :40], right[:, :40], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("causal", [False, True])
def test_excluded_scores_are_computed_again_in_parts(causal: bool) -> None:
    """The scores of all heads would take 16 MiB; those of each part are within the scratchpad."""
    rng = np.random.default_rng(7)
    query, key, value = (rng.standard_normal((4, 1024, 32)).astype(np.float32) for _ in range(3))
    allowed = np.tri(1024, dtype=bool)
    key[1, 1000] = np.nan
    layer = find_operation("ScaledDotProductAttention")(causal=causal)
    inputs = [query, key, value, *([] if causal else [allowed])]
    infos = [TensorInfo(array.shape, from_numpy(array.dtype)) for array in inputs]
    (found,) = layer.execute(inputs, Context())
    assert np.isnan(found[1, 1000:]).all()
    assert not np.isnan(found[1, :1000]).any()
    key[1, 1000] = 1
    right = expected(query, key, value, 32**-0.5, np.where(allowed, 0, -np.inf))
    assert not np.isnan(np.delete(found, 1, axis=0)).any()
    np.testing.assert_allclose(found[1, :1000], right[1, :1000], rtol=1e-4, atol=1e-5)
    key[1, 1000] = np.nan
    told = layer.scratch(infos, layer.infer(infos, Context()), Context())
    taken = traced_peak(lambda: layer.execute(inputs, Context()))
    assert taken <= told + found.nbytes < 16 << 20


@pytest.mark.parametrize(
    "mask", [np.zeros((), np.float32), None, np.ones(1, bool), np.zeros(1, bool)]
)
def test_a_layer_with_masks_of_one_element(mask: Any) -> None:
    rng = np.random.default_rng(2)
    query, key, value = (rng.standard_normal((2, 50, 32)).astype(np.float32) for _ in range(3))
    layer = find_operation("ScaledDotProductAttention")(causal=False)
    inputs = [query, key, value, *([] if mask is None else [mask])]
    (found,) = layer.execute(inputs, Context())
    if mask is not None and mask.dtype == bool and not mask.any():
        assert np.isnan(found).all()
    else:
        right = expected(query, key, value, 32**-0.5)
        np.testing.assert_allclose(found, right, rtol=1e-4, atol=1e-5)


def test_c_refuses_what_does_not_fit() -> None:
    assert module is not None
    q, k, v, out = (np.zeros((2, 9, 4), np.float32) for _ in range(4))
    fields = interface.attend_fields(isa=0, scale=1.0, threads=1)
    for bad in ((q[:1], k, v, out), (q, k[..., :3], v, out), (q, k[:, :8], v, out),
                (q[0], k, v, out), (q, k, v, out[:, :8].copy()), (q, k, v, out[..., :3].copy()),
                (q, k.astype("f8"), v, out), (q[:, :0], k, v, out[:, :0].copy()),
                (q, k, v[..., :0], out[..., :0].copy())):  # fmt: skip
        with pytest.raises(ValueError, match="fit"):
            module.attend(*bad[:3], None, bad[3], fields)
    for mask in (np.zeros((2, 9, 8), "f4"), np.zeros((1, 9, 9), "f4"), np.zeros((9, 9), "f4"),
                 np.zeros((2, 9, 9)), np.zeros((2, 8, 9), "f4")):  # fmt: skip
        with pytest.raises(ValueError, match="fit"):
            module.attend(q, k, v, mask, out, fields)
    with pytest.raises(ValueError, match="fit"):
        module.attend(q, k, v, None, out, interface.attend_fields(isa=9, scale=1.0, threads=1))


def test_only_a_contiguous_array_is_written_to() -> None:
    query, key, value = (np.full((2, 50, 32), x, np.float32) for x in (1, 2, 3))
    for given, is_used in (
        (np.zeros((2, 50, 32), np.float32), True),
        (np.zeros((2, 50, 64), np.float32)[..., ::2], False),
        (np.zeros((2, 50, 32)), False),
    ):
        bound = bind_attention(query, key, value, 1.0, out=given)
        assert bound is not None
        out, call = bound
        call()
        assert (out is given) == is_used
        np.testing.assert_allclose(out, 3, rtol=1e-6)  # the mean of equal values
