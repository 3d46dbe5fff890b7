"""TopK against Python's sort: compiled for each instruction set, and in NumPy."""

from __future__ import annotations

import itertools

import ml_dtypes
import numpy as np
import pytest
from kernels.cases import computing_with
from support import batches

from deconv_ir.kernels import selection, set_threads
from deconv_ir.kernels.runtime import interface
from deconv_ir.kernels.runtime.extension import compiled_module
from deconv_ir.operations import Context
from deconv_ir.ops.gather_scatter.sorting import Extreme, Order, TopK11

F32 = np.float32
ISAS: list[str | None] = [None, *(compiled_module().isas() if compiled_module() else ())]
"""The instruction sets; None: NumPy."""
ODD = [np.nan, -np.nan, np.inf, -np.inf, 0.0, -0.0, 1e-45, -1e-45, 3e38, 1.5, 1.5]


def chosen(row: list[float], k: int, smallest: bool, by_index: bool) -> list[int]:
    """Sort stably; NaN is considered greater than any number."""
    sign = 1 if smallest else -1
    order = sorted(
        range(len(row)),
        key=lambda i: (sign, 0) if row[i] != row[i] else (0, sign * row[i]),
    )
    return sorted(order[:k]) if by_index else order[:k]


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("seeds", batches(40, 20), ids=str)
def test_random_axes(seeds: range, isa: str | None) -> None:
    for seed in seeds:
        rng = np.random.default_rng(seed)
        shape = [int(n) for n in rng.choice([1, 2, 5, 8, 17, 33], rng.integers(1, 4))]
        axis = int(rng.integers(len(shape)))
        shape[axis] = int(rng.choice([1, 2, 31, 40, 100]))
        k = int(rng.choice([0, 1, 5, 32, 33, 100]).clip(0, shape[axis]))
        kinds = [
            "f4",
            "f4",
            "f4",
            "f2",
            ml_dtypes.bfloat16,
            "f8",
            "i1",
            "u1",
            "i4",
            "u4",
            "i8",
            "u8",
        ]
        dtype = np.dtype(kinds[seed % len(kinds)])
        if dtype.kind in "iu":
            ends = np.iinfo(dtype)
            data = rng.choice(np.array([ends.min, ends.max, 0, 1, 2, 3], dtype), shape)
        else:
            data = rng.standard_normal(shape).astype(dtype)
            odd = rng.random(shape) < rng.choice([0, 0.1, 0.6])
            with np.errstate(over="ignore"):
                data = np.where(odd, rng.choice(ODD, shape).astype(dtype), data)
        if seed % 4 == 0:
            data = data[..., ::-1]
        smallest, by_index = bool(seed % 2), bool(seed // 2 % 2)
        layer = TopK11(
            axis=axis,
            mode=Extreme.MIN if smallest else Extreme.MAX,
            sort=Order.INDEX if by_index else Order.VALUE,
        )
        with computing_with(isa):
            values, indices = layer.execute([data, np.array(k)], Context())
        assert values.dtype == data.dtype
        assert indices.dtype == np.int32
        expected = np.empty(indices.shape, np.int64)
        for at in itertools.product(*(range(n) for i, n in enumerate(shape) if i != axis)):
            where = (*at[:axis], slice(None), *at[axis:])
            expected[where] = chosen(data[where].tolist(), k, smallest, by_index)
        np.testing.assert_array_equal(indices, expected)
        wide = data.dtype if data.dtype.kind in "iu" else np.float64  # NaN of bf16 equals no other
        taken = np.take_along_axis(data, expected, axis)
        np.testing.assert_array_equal(values.astype(wide), taken.astype(wide))


@pytest.mark.skipif(len(ISAS) == 1, reason="the compiled kernel was not built here")
@pytest.mark.parametrize("shape", [(300, 400), (3, 50, 700)])
def test_it_is_the_same_on_any_number_of_threads(shape: tuple[int, ...]) -> None:
    data = np.random.default_rng(0).integers(0, 40, shape).astype(F32)
    settings = {"smallest": False, "by_index": False, "index_type": np.dtype("i8")}
    expected = np.argsort(-data, axis=1, kind="stable")[:, :7]
    try:
        for threads in (1, 2, 5):
            set_threads(threads)
            np.testing.assert_array_equal(selection.select(data, 1, 7, **settings)[1], expected)
    finally:
        set_threads(None)


def test_c_refuses_what_does_not_fit() -> None:
    module = compiled_module()
    if module is None:
        pytest.skip("the compiled kernel was not built here")
    data, out = np.zeros((2, 40, 1), F32), np.zeros((2, 5, 1), F32)
    index = np.zeros((2, 5, 1), np.int32)
    fields = interface.select_fields(isa=0, smallest=False, by_index=False, threads=1)
    module.select(data, out, index, fields)
    for bad in (
        (data[0], out, index), (data.astype("f8"), out, index),
        (data, out[:1], index), (data, out, index[:, :4].copy()),
        (data, out, index.astype("i2")), (data[:, :4].copy(), out, index),
        (data, np.zeros((2, 33, 1), F32), np.zeros((2, 33, 1), np.int32)),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="arrays do not fit"):
            module.select(*bad, fields)
    other = interface.select_fields(isa=9, smallest=False, by_index=False, threads=1)
    with pytest.raises(ValueError, match="arrays do not fit"):
        module.select(data, out, index, other)


@pytest.mark.parametrize("index_type", ["u1", "i2", "u8", "f4", "i4", "i8"])
def test_indices_of_any_type(index_type: str) -> None:
    """Files may state types that the documents do not list."""
    data = np.array([[3, 1, 2], [0, 5, 4]], F32)
    values, indices = selection.select(
        data, 1, 2, smallest=False, by_index=False, index_type=np.dtype(index_type)
    )
    assert (values.tolist(), indices.tolist()) == ([[3, 2], [5, 4]], [[0, 2], [1, 2]])
    assert indices.dtype == np.dtype(index_type)
