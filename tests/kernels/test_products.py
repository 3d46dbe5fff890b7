"""Matrix products on several threads, against NumPy's own on one."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from deconv_ir.kernels import set_threads
from deconv_ir.kernels.products import matmul

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
    """The import of threadpoolctl takes longer than a small network."""
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
