"""MatMul with a constant matrix, which is packed once, against NumPy's product."""

from __future__ import annotations

import numpy as np
import pytest

from deconv_ir.kernels.runtime.extension import compiled_module
from deconv_ir.operations import Context, Epilogue, find_operation
from deconv_ir.ops.linear_algebra.matmul import MatMul

pytestmark = pytest.mark.skipif(
    compiled_module() is None, reason="the compiled kernel was not built here"
)
RNG = np.random.default_rng(0)
MATRIX = RNG.standard_normal((70, 90)).astype(np.float32)


@pytest.mark.parametrize("shape", [(70,), (1, 70), (0, 70), (5, 70), (2, 3, 70), (2, 0, 3, 70)])
@pytest.mark.parametrize("transposed", [False, True])
def test_rows(shape: tuple[int, ...], transposed: bool) -> None:
    a = RNG.standard_normal(shape).astype(np.float32)
    layer = find_operation("MatMul")(transpose_b=transposed)
    kernel = layer.prepare([None, MATRIX.T.copy() if transposed else MATRIX], Context())
    assert kernel is not None
    assert kernel.packed_bytes is not None
    assert kernel.packed_bytes >= MATRIX.nbytes
    (found,) = kernel([a, None])
    expected = a.astype(np.float64) @ MATRIX.astype(np.float64)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


def test_a_transposed_left_side() -> None:
    a = RNG.standard_normal((3, 70, 11)).astype(np.float32)
    kernel = MatMul(transpose_a=True).prepare([None, MATRIX], Context())
    assert kernel is not None
    (found,) = kernel([a, None])
    np.testing.assert_allclose(found, a.swapaxes(1, 2) @ MATRIX, rtol=1e-4, atol=1e-4)


def test_columns_of_a_tile() -> None:
    a = RNG.standard_normal((6, 70)).astype(np.float32)
    layer = MatMul()
    kernel = layer.prepare([None, MATRIX], Context())
    assert kernel is not None
    whole = kernel([a, None])[0]
    part = kernel.tiled(layer.replace(columns=(20, 61)))([a[2:5], None])[0]
    np.testing.assert_array_equal(part, whole[2:5, 20:61])


@pytest.mark.parametrize("addend", [(), (90,), (1, 90), (1, 1, 1, 90), (1,), (1, 1)])
@pytest.mark.parametrize("shape", [(70,), (5, 70), (2, 3, 70)])
def test_an_addend_of_the_columns_is_where_sums_begin(
    addend: tuple[int, ...], shape: tuple[int, ...]
) -> None:
    a, bias = (np.float32(RNG.standard_normal(s)) for s in (shape, addend))
    kernel = MatMul().prepare_fused([None, MATRIX], Epilogue(np.asarray(bias), None, ()), Context())
    assert kernel is not None
    (found,) = kernel([a, None])
    expected = a @ MATRIX.astype(np.float64) + bias
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)
    part = kernel.tiled(MatMul(columns=(20, 61)))([a, None])[0]
    np.testing.assert_array_equal(part, found[..., 20:61])


@pytest.mark.parametrize("addend", [(3, 1), (3, 90), (2, 1, 90)])
def test_an_addend_of_rows_is_left_to_its_layer(addend: tuple[int, ...]) -> None:
    epilogue = Epilogue(np.ones(addend, np.float32), None, ())
    assert MatMul().prepare_fused([None, MATRIX], epilogue, Context()) is None


@pytest.mark.parametrize(
    "matrix", [MATRIX.astype(np.float64), MATRIX[:3, :4], np.stack([MATRIX] * 2)]
)
def test_matrices_that_are_not_packed(matrix: np.ndarray) -> None:
    assert MatMul().prepare([None, matrix], Context()) is None
    assert MatMul().prepare([MATRIX, matrix], Context()) is None
