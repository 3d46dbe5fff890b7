"""Matrix products on several threads, against NumPy's on one thread."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import scipy.special
from kernels.cases import lazy_tensor
from support import batches

from deconv_ir.kernels import Activation, ActivationType, set_threads
from deconv_ir.kernels.pointwise import operation_number
from deconv_ir.kernels.products import matmul, pack_matrix
from deconv_ir.kernels.runtime import interface
from deconv_ir.kernels.runtime.extension import compiled_module

EPILOGUE = {"activation": 0, "low": 0.0, "high": 0.0, "slope": 0.0, "function": -1}
EPILOGUE |= {"scale": 1.0, "offset": -0.0}
SHAPES = [
    pytest.param((300, 200), (200, 100), id="rows"),
    pytest.param((100, 200), (200, 300), id="columns"),
    pytest.param((1, 2000), (2000, 1001), id="one row"),
    pytest.param((2000, 1), (1, 1001), id="one inner element"),
    pytest.param((64, 40, 40), (64, 40, 40), id="stack"),
    pytest.param((64, 40, 40), (40, 40), id="stack by matrix"),
    pytest.param((1, 40, 40), (64, 40, 40), id="broadcast stack"),
    pytest.param((5, 1, 60, 70), (7, 70, 80), id="two stacks"),
    pytest.param((3, 4), (4, 5), id="small"),
    pytest.param((0, 4), (4, 5), id="empty"),
    pytest.param((3, 0), (0, 5), id="no inner element"),
    pytest.param((200,), (200, 3), id="list by matrix"),
    pytest.param((3, 200), (200,), id="matrix by list"),
    pytest.param((3,), (3,), id="lists"),
]


@pytest.mark.parametrize("threads", [1, 2, 3])
@pytest.mark.parametrize("dtype", [np.float32, np.int32])
@pytest.mark.parametrize(("left", "right"), SHAPES)
def test_products(left: tuple[int, ...], right: tuple[int, ...], dtype: type, threads: int) -> None:
    # Small integers: every order of summation gives the same float.
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-8, 9, shape).astype(dtype) for shape in (left, right))
    set_threads(threads)
    try:
        product = matmul(a, b)
    finally:
        set_threads(None)
    assert product.dtype == dtype
    np.testing.assert_array_equal(product, np.matmul(a.astype(np.int64), b.astype(np.int64)))


@pytest.mark.parametrize("right", [(5, 4), (2, 3, 5)])
def test_shapes_that_do_not_fit(right: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"mismatch|shape"):
        matmul(np.zeros((3, 3, 3)), np.zeros(right))


def test_nothing_is_said_about_infinities(recwarn: pytest.WarningsRecorder) -> None:
    a = np.full((400, 100), np.inf, np.float32)
    with np.errstate(all="ignore"):
        assert np.isnan(matmul(a, np.zeros((100, 400), np.float32))).all()
    assert not recwarn.list


@pytest.mark.parametrize("shape", [(611, 67, 435), (70, 320, 254), (1, 6400, 738), (76, 3584, 15)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_bits_do_not_depend_on_threads(shape: tuple[int, int, int], dtype: type) -> None:
    m, k, n = shape
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((m, k)).astype(dtype), rng.standard_normal((k, n)).astype(dtype)
    products = []
    try:
        for threads in (1, 2, 3, 7, 32):
            set_threads(threads)
            products.append(matmul(a, b))
    finally:
        set_threads(None)
    np.testing.assert_allclose(products[0], a @ b, rtol=1e-4, atol=1e-3)
    for product in products[1:]:
        np.testing.assert_array_equal(product, products[0])


def test_a_blas_of_one_thread_is_not_asked_for_its_threads() -> None:
    """Importing threadpoolctl would take longer than a small network."""
    name = np.show_config(mode="dicts")["Build Dependencies"]["blas"]["name"]
    if "openblas" not in name:
        pytest.skip("only OpenBLAS reads its number of threads from that variable")
    code = """if True:
        import sys
        import numpy as np
        from deconv_ir.kernels.products import matmul
        assert (matmul(np.ones((300, 300)), np.ones((300, 300))) == 300).all()
        assert "threadpoolctl" not in sys.modules
    """
    environment = os.environ | {"OPENBLAS_NUM_THREADS": "1"}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment)


module = compiled_module()
compiled = pytest.mark.skipif(module is None, reason="the compiled kernel was not built here")
ISAS = [] if module is None else module.isas()
EXTENTS = (1, 2, 5, 7, 8, 9, 13, 31, 48, 49, 64, 100, 384, 385, 450)


def strided(rng: np.random.Generator, shape: tuple[int, ...]) -> Any:
    """Draw an array with one of many memory layouts."""
    kind = rng.integers(6)
    if kind == 1:
        return np.swapaxes(strided(rng, (*shape[:-2], shape[-1], shape[-2])), -1, -2)
    if kind == 2:
        wide = (*shape[:-2], shape[-2] * 2, shape[-1] * 3)
        return rng.standard_normal(wide).astype(np.float32)[..., ::2, 1::3]
    array = rng.standard_normal(shape).astype(np.float32)
    if kind == 3:
        return array[..., ::-1, ::-1]
    if kind == 4:
        return np.broadcast_to(array[..., :1, :], shape)
    return array


@compiled
@pytest.mark.parametrize("seeds", batches(150, 30), ids=str)
def test_random_products(seeds: range, monkeypatch: pytest.MonkeyPatch) -> None:
    for seed in seeds:
        rng = np.random.default_rng(seed)
        m, k, n = (int(rng.choice(EXTENTS)) for _ in range(3))
        a, b = strided(rng, (m, k)), strided(rng, (k, n))
        monkeypatch.setenv("DECONV_IR_ISA", ISAS[seed % len(ISAS)])
        expected = a.astype(np.float64) @ b.astype(np.float64)
        allowed = 6e-8 * (k + 2) * (1e-6 + np.abs(a).astype(np.float64) @ np.abs(b))
        packed = pack_matrix(b)
        for product in (matmul(a, b), *([packed.multiply(a)] if packed else [])):
            assert (np.abs(product - expected) <= allowed).all()
        if packed:
            bias = rng.standard_normal(n).astype(np.float32)
            allowed += 6e-8 * (k + 2) * np.abs(bias)
            assert (np.abs(packed.multiply(a, bias) - (expected + bias)) <= allowed).all()


@compiled
@pytest.mark.parametrize("seeds", batches(30, 30), ids=str)
def test_random_stacks(seeds: range) -> None:
    for seed in seeds:
        rng = np.random.default_rng(seed)
        shapes = [[int(rng.integers(1, 4)) if rng.integers(2) else 1] for _ in range(2)]
        stack = np.broadcast_shapes((shapes[0][0], 1), (1, shapes[1][0]))
        a = strided(rng, (shapes[0][0], 1, 20, 70))
        b = strided(rng, (shapes[1][0], 70, 60))
        product = matmul(a, b)
        assert product.shape == (*stack, 20, 60)
        np.testing.assert_allclose(product, a.astype("f8") @ b.astype("f8"), rtol=1e-4, atol=1e-4)


@compiled
@pytest.mark.parametrize("part_bytes", [1, 3000, 1 << 16])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("isa", ISAS)
def test_a_matrix_that_is_read_in_parts(
    isa: str, transposed: bool, part_bytes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Parts end within panels of columns, and have more rows than are packed at once."""
    monkeypatch.setenv("DECONV_IR_ISA", isa)
    rng = np.random.default_rng(4)
    for k, n in ((1, 1030), (41, 66), (800, 17), (385, 130)):
        a, b = (rng.standard_normal(s).astype(np.float32) for s in ((9, k), (k, n)))
        matrix = np.ascontiguousarray(b.T) if transposed else b
        packed = pack_matrix(lazy_tensor(matrix, part_bytes), transposed=transposed)
        if packed is None:  # columns that would be padding
            assert k == 800
            continue
        magnitude = np.abs(a).astype(np.float64) @ np.abs(b)
        error = np.abs(packed.multiply(a) - a.astype(np.float64) @ b)
        assert (error <= 6e-8 * (k + 2) * magnitude).all()


@compiled
def test_numbers_that_are_not_usual() -> None:
    a = np.random.default_rng(1).standard_normal((19, 300)).astype(np.float32)
    b = np.random.default_rng(2).standard_normal((300, 77)).astype(np.float32)
    for row, odd in enumerate((np.nan, np.inf, -np.inf, 1e-42, -0.0)):
        a[row, 280] = b[290, row] = odd
    packed = pack_matrix(b)
    assert packed is not None
    with np.errstate(all="ignore"):
        expected = a.astype(np.float64) @ b.astype(np.float64)
    for found in (matmul(a, b), packed.multiply(a)):
        np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
        np.testing.assert_allclose(found, expected, rtol=1e-3, atol=1e-4)


@compiled
def test_a_row_has_the_same_bits_alone_and_among_others() -> None:
    rng = np.random.default_rng(3)
    a, b = (rng.standard_normal(shape).astype(np.float32) for shape in ((500, 600), (600, 90)))
    packed = pack_matrix(b)
    assert packed is not None
    together = packed.multiply(a)
    for first, last in ((0, 1), (3, 8), (239, 500)):
        np.testing.assert_array_equal(packed.multiply(a[first:last]), together[first:last])
    np.testing.assert_array_equal(matmul(a, b), together)


ACTIVATIONS = {
    "relu": (Activation(ActivationType.RELU), lambda x: np.where(x < 0, 0, x)),
    "slope": (
        Activation(ActivationType.LEAKY_RELU, slope=0.25),
        lambda x: np.where(x < 0, 0.25 * x, x),
    ),
    "clamp": (Activation(ActivationType.CLAMP, -1.5, 2.0), lambda x: np.clip(x, -1.5, 2)),
    "gelu": (
        Activation(ActivationType.FUNCTION, function="gelu"),
        lambda x: x * 0.5 * (1 + scipy.special.erf(x / math.sqrt(2))),
    ),
    "elu": (
        Activation(ActivationType.FUNCTION, 0.75, function="elu"),
        lambda x: np.where(x < 0, 0.75 * np.expm1(x), x),
    ),
}


@compiled
@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_an_activation_of_the_sums(name: str, seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    # Oracle: the product in f64, and the formula of the function.
    assert module is not None
    isas = module.isas()
    monkeypatch.setenv("DECONV_IR_ISA", isas[seed % len(isas)])
    rng = np.random.default_rng(seed)
    m, n = (int(rng.choice((1, 5, 16, 49, 100, 241))) for _ in range(2))
    n, k = n + 60, int(rng.choice((20, 384, 385, 900)))  # sums in one piece, and in several
    a, b, bias = (rng.standard_normal(s).astype(np.float32) for s in ((m, k), (k, n), (n,)))
    b /= math.sqrt(k)
    b[:, :3], bias[0], bias[1], bias[2] = 0, -0.0, np.inf, np.nan
    packed = pack_matrix(b)
    assert packed is not None
    activation, formula = ACTIVATIONS[name]
    found = []
    for threads in (1, 3):
        set_threads(threads)
        try:
            found.append(packed.multiply(a, bias, activation))
        finally:
            set_threads(None)
    out = np.full((m, n), 7, np.float32)
    assert packed.multiply(a, bias, activation, out) is out
    for other in (found[1], out):
        np.testing.assert_array_equal(other, found[0])
    expected = formula(a.astype(np.float64) @ b.astype(np.float64) + bias.astype(np.float64))
    np.testing.assert_allclose(found[0], expected, rtol=1e-5, atol=2e-5)


@compiled
def test_c_refuses_what_does_not_fit() -> None:
    assert module is not None
    a, b, out = (np.zeros(shape, np.float32) for shape in ((3, 4), (4, 5), (3, 5)))
    packed = np.zeros(4 * 16, np.float32)
    whole = {"isa": 0, "terms": 4, "columns": 5, "row": 0, "column": 0}

    def fields(**change: Any) -> bytes:
        how = {"isa": 0, "is_packed": False, "pairs": False, "threads": 1} | EPILOGUE
        return interface.multiply_fields(**how | change)

    for bad in ((a, b[:3], None, out, False), (a, b, None, out[:2], False),
                (a, b[None], None, out, False), (a[None], b, None, out, False),
                (a.astype("f8"), b, None, out, False), (a[0], b, None, out, False),
                (a[:0], b, None, out[:0], False), (a, packed[:15], None, out, True),
                (a, b, out[0, :4], out, False)):  # fmt: skip
        *arrays, is_packed = bad
        with pytest.raises(ValueError, match="fit"):
            module.multiply(*arrays, fields(is_packed=is_packed))
    with pytest.raises(ValueError, match="fit"):
        module.multiply(a, b, None, out, fields(isa=9))
    for activation, function in ((-1, -1), (5, 0), (4, -1), (4, 10_000),
                                 (4, operation_number("add"))):  # fmt: skip
        with pytest.raises(ValueError, match="fit"):
            module.multiply(a, b, None, out, fields(activation=activation, function=function))
    for pair in ((b, packed[:15]), (b[None], packed), (b.astype("f8"), packed), (b[:0], packed)):
        with pytest.raises(ValueError, match="fit"):
            module.pack_columns(*pair, interface.pack_columns_fields(**whole))
    for change in ({"isa": 9}, {"terms": 3}, {"terms": 9}, {"terms": 1 << 62}, {"columns": 4},
                   {"columns": 0}, {"columns": -1}, {"columns": 65}, {"columns": 1 << 62},
                   {"row": 1}, {"row": -1}, {"column": 1}, {"column": -1}):  # fmt: skip
        with pytest.raises(ValueError, match="fit"):
            module.pack_columns(b, packed, interface.pack_columns_fields(**whole | change))
