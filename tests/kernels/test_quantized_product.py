"""Products of codes are exact, for any extents, instruction set and number of threads."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from deconv_ir.ir.lazy_tensor import LazyTensor
from deconv_ir.ir.quantization import Levels, WeightLevels
from deconv_ir.kernels.activation import Activation, ActivationType
from deconv_ir.kernels.quantized.filter import MOST_TERMS
from deconv_ir.kernels.quantized.product import QuantizedMatrix, quantize_matrix
from deconv_ir.kernels.runtime.cpu import MACHINES
from deconv_ir.kernels.runtime.extension import compiled_module
from deconv_ir.kernels.runtime.threads import set_threads

ISAS = compiled_module().isas() if compiled_module() else [""]
# A machine of each set without the instruction for products of bytes.
PLAIN = {"avx2": "zen3", "avx512": "skylake-x"}
# Codes and numbers are the same.
CODES = Levels(256, (0.0,), (255.0,), (0.0,), (255.0,))
SIGNED = Levels(255, (-1.27,), (1.27,), (-1.27,), (1.27,))


@pytest.fixture(params=[(isa, plain) for isa in ISAS for plain in (False, isa in PLAIN)])
def isa(request: Any, monkeypatch: pytest.MonkeyPatch) -> str:
    name, plain = request.param
    if name:
        monkeypatch.setenv("DECONV_IR_ISA", name)
    if plain:
        monkeypatch.setenv("DECONV_IR_MACHINE", PLAIN[name])
        assert not MACHINES[PLAIN[name]].has_dots
    return str(name)


# No whole groups of rows, elements of terms, vectors of columns; several blocks of terms.
EXTENTS = [
    (1, 1, 1), (1, 2051, 70), (3, 64, 16), (15, 30, 129), (16, 33, 48), (67, 1537, 33),
    (250, 514, 20), (7, 4096, 5),
]  # fmt: skip


@pytest.mark.parametrize("extents", EXTENTS, ids=str)
def test_sums_are_exact(isa: str, extents: tuple[int, int, int]) -> None:
    m, k, n = extents
    rng = np.random.default_rng(k)
    set_threads(1 + m % 3)
    data, weights = rng.integers(0, 256, (m, k)), rng.integers(-128, 128, (k, n))
    matrix = QuantizedMatrix(weights.astype(np.int8), np.ones(n), CODES)
    found = matrix.multiply(data.astype(np.float32))
    assert np.array_equal(found, (data @ weights).astype(np.float32))


@pytest.mark.parametrize("extents", EXTENTS, ids=str)
@pytest.mark.parametrize("kind", ["whole", "between", "beside"])
def test_zero_points_of_weights_are_exact(
    isa: str, extents: tuple[int, int, int], kind: str
) -> None:
    m, k, n = extents
    rng = np.random.default_rng(k)
    data, weights = rng.integers(0, 255, (m, k)), rng.integers(-128, 128, (k, n))
    deltas = {
        "whole": rng.integers(-128, 129, n).astype(float),
        "between": rng.uniform(-128, 128, n),
        "beside": rng.uniform(-1e-5, 1e-5, n),
    }[kind]
    scales, bias = rng.uniform(0.001, 0.01, n), rng.standard_normal(n).astype(np.float32)
    matrix = QuantizedMatrix(weights.astype(np.int8), scales, SIGNED, deltas)
    x = ((data - 127) / 100).astype(np.float32)
    found = matrix.multiply(x, bias)
    expected = (data / 254 * (1.27 - -1.27) - 1.27) @ ((weights + deltas) * scales) + bias
    rounded = expected.astype(np.float32)
    assert np.abs(found - rounded).max() <= np.spacing(np.abs(rounded).max())


@pytest.mark.parametrize("terms", [33000, MOST_TERMS])
def test_the_greatest_sums_with_zero_points(isa: str, terms: int) -> None:
    """With weights of nine bits they do not all have 32."""
    deltas = np.array([127.0, -128.0, 0.5])
    matrix = QuantizedMatrix(np.full((terms, 3), 127, np.int8), np.ones(3), CODES, deltas)
    found = matrix.multiply(np.full((2, terms), 255, np.float32))
    assert np.array_equal(found, np.float32([255.0 * terms * (127 + deltas)] * 2))


@pytest.mark.parametrize("code", [-128, 127])
@pytest.mark.parametrize("rows", [1, 20])
def test_the_greatest_sums_have_32_bits(isa: str, code: int, rows: int) -> None:
    """Pairs of 16 bits would overflow, sums of `MOST_TERMS` products just do not."""
    weights = np.full((MOST_TERMS, 3), code, np.int8)
    weights[:, 1] = 0
    matrix = QuantizedMatrix(weights, np.ones(3), CODES)
    found = matrix.multiply(np.full((rows, MOST_TERMS), 255, np.float32))
    assert np.array_equal(found, np.float32([[255.0 * code * MOST_TERMS, 0] * 2] * rows)[:, :3])


@pytest.mark.parametrize("kind", ["none", "relu", "clamp", "tanh"])
@pytest.mark.parametrize("threads", [1, 3])
def test_results_are_rounded_once_then_activated(isa: str, kind: str, threads: int) -> None:
    set_threads(threads)
    rng = np.random.default_rng(48)
    activation = {
        "none": Activation(),
        "relu": Activation(ActivationType.RELU),
        "clamp": Activation(ActivationType.CLAMP, low=-1.0, high=2.5),
        "tanh": Activation(ActivationType.FUNCTION, function="tanh", in_numpy=np.tanh),
    }[kind]
    weights, scales = rng.integers(-127, 128, (100, 37)), rng.uniform(0.001, 0.01, 37)
    bias = rng.standard_normal(37).astype(np.float32)
    x = rng.standard_normal((2 * 130, 100)).astype(np.float32)[::2]
    level = np.rint((np.clip(x.astype(float), -1.27, 1.27) + 1.27) / 2.54 * 254)
    expected = (level / 100 - 1.27) @ (weights * scales) + bias
    rounded = activation.apply(expected.astype(np.float32))
    matrix = QuantizedMatrix(weights.astype(np.int8), scales, SIGNED)
    found = matrix.multiply(x, bias, activation)
    assert (found == rounded).mean() > 0.99 or kind == "tanh"
    assert np.abs(found - rounded).max() <= 2 * np.spacing(np.float32(4))
    # Rows do not depend on their number.
    for first, count in ((0, 1), (3, 15), (100, 17)):
        some = matrix.multiply(x[first : first + count], bias, activation)
        assert np.array_equal(some, found[first : first + count])


ACTIVATIONS = {
    "none": Activation(),
    "relu": Activation(ActivationType.RELU),
    "clamp": Activation(ActivationType.CLAMP, low=-1.0, high=2.5),
    "leaky": Activation(ActivationType.LEAKY_RELU, slope=0.25),
    "tanh": Activation(ActivationType.FUNCTION, function="tanh", in_numpy=np.tanh),
}


@pytest.mark.skipif(compiled_module() is None, reason="codes are for compiled kernels")
@pytest.mark.parametrize("extents", [*EXTENTS, (40, 2600, 100)], ids=str)
@pytest.mark.parametrize("kind", ACTIVATIONS)
def test_results_become_codes(isa: str, extents: tuple[int, int, int], kind: str) -> None:
    """Those of the definition, but near the middle of two levels; zero may be such a number."""
    m, k, n = extents
    rng = np.random.default_rng(k)
    set_threads(1 + k % 3)
    data, weights = rng.integers(0, 255, (m, k)), rng.integers(-128, 128, (k, n))
    deltas = rng.choice([0.0, 20.0, 0.37], n)
    scales = rng.uniform(0.5, 2, n) / (100 * np.sqrt(k))
    bias = rng.standard_normal(n).astype(np.float32)
    matrix = QuantizedMatrix(weights.astype(np.int8), scales, SIGNED, deltas)
    steps = (data / 254 * (1.27 - -1.27) - 1.27) @ ((weights + deltas) * scales) + bias
    numbers = ACTIVATIONS[kind].apply(steps.astype(np.float32)).astype(float)
    ends = {"relu": (-3.0, 3.0), "none": (-1.28, 1.27)}.get(kind, (-0.7, 2.2))
    for number in (256, 255, 16):
        levels = Levels(number, *((end,) for end in ends * 2))
        places = (np.clip(numbers, *ends) - ends[0]) / (ends[1] - ends[0]) * (number - 1)
        rest = np.abs(places - np.floor(places) - 0.5)
        # Zeros of ReLU are exact.
        known = (rest > 1e-4) | (numbers == 0)
        writer = matrix.coded(reads=True, writes=levels)
        found = writer.multiply((data - 128).astype(np.int8), bias, ACTIVATIONS[kind])
        assert found.dtype == np.int8
        codes = found.astype(int) + 128
        assert np.array_equal(codes[known], np.rint(places)[known])
        assert np.abs(codes - places).max() < 0.501
        # Codes of numbers are those of the data.
        same = matrix.coded(reads=False, writes=levels)
        x = ((data - 127) / 100).astype(np.float32)
        assert np.array_equal(same.multiply(x, bias, ACTIVATIONS[kind]), found)
    numbers_of_codes = matrix.coded(reads=True, writes=None)
    assert np.array_equal(
        numbers_of_codes.multiply((data - 128).astype(np.int8), bias), matrix.multiply(x, bias)
    )


def test_numbers_that_are_not_finite(isa: str) -> None:
    """Infinities are the ends of the range, and NaN the lower one."""
    matrix = QuantizedMatrix(np.eye(40, dtype=np.int8), np.ones(40), CODES)
    x = np.tile(np.array([np.inf, -np.inf, np.nan, 300, -3], np.float32), (30, 8))
    assert np.array_equal(matrix.multiply(x), np.tile([255, 0, 0, 255, 0], (30, 8)))


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("lazy", [False, True])
def test_codes_are_found_in_parts(transposed: bool, lazy: bool) -> None:
    rng = np.random.default_rng(3)
    codes, scales = rng.integers(-128, 128, (70, 300)), rng.uniform(0.01, 0.02, (1, 300))
    weights = (codes * scales).astype(np.float32)
    if transposed:
        weights, scales = np.ascontiguousarray(weights.T), scales.T
    given: Any = weights
    if lazy:
        flat = weights.reshape(-1)
        given = LazyTensor(weights.shape, flat.dtype, lambda i, j: flat[i:j], part_bytes=5000)
    matrix = quantize_matrix(given, WeightLevels(scales, np.zeros((1, 1))), CODES, transposed)
    assert isinstance(matrix, QuantizedMatrix)
    x = rng.integers(0, 256, (5, 70)).astype(np.float32)
    expected = (x.astype(float) @ (codes * scales.reshape(1, -1))).astype(np.float32)
    assert np.abs(matrix.multiply(x) - expected).max() <= np.spacing(np.abs(expected).max())


@pytest.mark.parametrize(
    ("weights", "scales", "levels", "reason"),
    [
        (np.ones((MOST_TERMS + 1, 1)), 1.0, CODES, "sums of 65794 products of codes"),
        (np.full((4, 4), 0.4), 1.0, CODES, "the weights have no 8-bit codes"),
        (np.full((4, 4), 128.0), 1.0, CODES, "the weights have no 8-bit codes"),
        (np.ones((4, 4)), np.linspace(1, 2, 4)[:, None], CODES, "no 8-bit codes with one scale"),
        (np.ones((4, 4)), np.inf, CODES, "no 8-bit codes with one scale"),
        (np.ones((4, 4)), 1.0, Levels(256, *((0.0, 1.0), (2.0, 3.0)) * 2), "several ranges"),
    ],
)
def test_other_weights_are_refused_with_a_reason(
    weights: Any, scales: Any, levels: Levels, reason: str
) -> None:
    given = np.broadcast_to(scales, weights.shape) if np.ndim(scales) else np.full((1, 1), scales)
    own = WeightLevels(given, np.zeros((1, 1)))
    found = quantize_matrix(weights.astype(np.float32), own, levels, transposed=False)
    assert isinstance(found, str)
    assert reason in found
