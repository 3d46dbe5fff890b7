"""MatMul of quantised data and weights is summed in integers, and rounded once.

The oracle evaluates MatMul-1 and FakeQuantize-1 ("Detailed description") in float64.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from plan_rows import rows_of
from quantized_layers import RNG, Network, fake_quantize

import deconv_ir

RANGE, POSITIVE = (-1.28, 1.27), (0.0, 2.55)


def multiply(net: Network, a: Any, b: Any, ta: bool = False, tb: bool = False, **names: str) -> Any:
    """Add a MatMul."""
    turns = {"transpose_a": str(ta).lower(), "transpose_b": str(tb).lower()}
    return net.ir.layer("MatMul", [a, b], turns, **names)


def nearly(result: Any, expected: Any) -> None:
    """Require results that are rounded once; a tie of a level may change a row."""
    rounded = expected.astype(np.float32)
    assert result.shape == rounded.shape
    assert (result == rounded).mean() > 0.95
    assert np.quantile(np.abs(result - rounded), 0.95) <= np.spacing(np.abs(rounded).max())


def draw(net: Network, kind: str, k: int, n: int, transposed: bool) -> tuple[Any, Any]:
    """Add weights of a kind, and return them with their values."""
    shape, axis = ((n, k), 0) if transposed else ((k, n), 1)
    if kind == "integers":
        return net.weights(*shape, axis=axis)
    if kind == "zero point":
        return net.weights(*shape, axis=axis, zero_point=20)
    if kind == "one scale":
        codes = RNG.integers(-100, 100, shape).astype(np.int8)
        wide = net.ir.layer("Convert", [net.ir.const(codes)], {"destination_type": "f32"})
        scaled = net.ir.layer("Multiply", [net.ir.const(np.float32(0.01)), wide])
        return scaled, codes * np.float64(np.float32(0.01))
    if kind == "leading ones":
        weights, values = net.weights(1, *shape, axis=axis + 1)
        return weights, values
    if kind == "Transpose":
        weights, values = net.weights(*shape[::-1], axis=1 - axis)
        order = net.ir.const(np.array([1, 0]))
        return net.ir.layer("Transpose", [weights, order]), values.T
    # A FakeQuantize with a range for each column, in f32.
    raw = RNG.uniform(-1, 1, shape).astype(np.float32)
    ends = RNG.uniform(0.5, 1, (n, 1) if transposed else (1, n)).astype(np.float32)
    consts = [net.ir.const(sign * ends) for sign in (-1, 1, -1, 1)]
    weights = net.ir.layer("FakeQuantize", [net.ir.const(raw), *consts], {"levels": "255"})
    return weights, fake_quantize(raw.astype(float), -ends, ends, 255)


KINDS = ["integers", "zero point", "one scale", "leading ones", "Transpose", "FakeQuantize"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("shape", "ta", "tb"),
    [((5, 37), False, True), ((2, 3, 37, 6), True, False), ((1, 197, 64), False, False)],
    ids=str,
)
@pytest.mark.parametrize("ends", [RANGE, POSITIVE], ids=["signed", "relu"])
def test_a_product_equals_the_definition_rounded_once(
    tmp_path: Any, kind: str, shape: tuple[int, ...], ta: bool, tb: bool, ends: Any
) -> None:
    net = Network(",".join(map(str, shape)))
    w, values = draw(net, kind, shape[-2 if ta else -1], 50, tb)
    made = multiply(net, net.quantize(net.x, *ends), w, ta, tb, name="y")
    bias = RNG.standard_normal(50).astype(np.float32)
    made = net.ir.layer("Add", [made, net.ir.const(bias)])
    net.ir.result(net.ir.layer("ReLU", [made]))
    x = RNG.standard_normal(shape, dtype=np.float32)
    (found,) = net.run(tmp_path, x)
    data = fake_quantize(x.astype(float), *ends)
    expected = (data.swapaxes(-1, -2) if ta else data) @ (
        values.swapaxes(-1, -2) if tb else values
    ) + bias
    nearly(found, np.maximum(expected, 0))
    row = rows_of(deconv_ir.load(tmp_path / "model.xml"), {"x": x})["y"]
    assert (row.precision, row.reason) == ("i8", None)


def data_row(net: Network) -> Any:
    """Return the first row of the data."""
    return net.ir.layer("Gather", [net.x, *(net.ir.const(np.int64(i)) for i in (0, 0))], {
        "batch_dims": "0"
    }, version="opset8")  # fmt: skip


def test_leading_ones_of_weights_are_axes_of_the_result(tmp_path: Any) -> None:
    net = Network("5,64")
    w, values = net.weights(1, 1, 64, 40, axis=3)
    net.ir.result(multiply(net, net.quantize(net.x, *RANGE), w))
    plain = RNG.standard_normal((1, 1, 64, 40)).astype(np.float32)
    net.ir.result(multiply(net, net.x, net.ir.const(plain)))
    row = net.ir.layer("Reshape", [data_row(net), net.ir.const(np.array([64]))], {
        "special_zero": "false"
    })  # fmt: skip
    net.ir.result(multiply(net, net.quantize(row, *RANGE), w))
    x = RNG.standard_normal((5, 64), dtype=np.float32)
    found, in_f32, of_row = net.run(tmp_path, x)
    assert of_row.shape == (1, 1, 40)
    assert np.array_equal(of_row[0, 0], found[0, 0, 0])
    nearly(found, fake_quantize(x.astype(float), *RANGE) @ values)
    assert in_f32.shape == (1, 1, 5, 40)
    assert np.allclose(in_f32, x @ plain, rtol=0, atol=1e-4)


def test_products_read_levels_through_other_layers(tmp_path: Any) -> None:
    """A quantised convolution, a MaxPool of its levels, a classifier, and a product of that."""
    net = Network("2,4,6,6")
    w, v = net.weights(32, 4, 1, 1)
    first, v1 = net.weights(32, 40, axis=1)
    second, v2 = net.weights(24, 40, axis=0)
    data = net.quantize(net.convolution(net.quantize(net.x, *RANGE), w, pad=0), *POSITIVE)
    window = {"kernel": "6,6", "strides": "6,6", "pads_begin": "0,0", "pads_end": "0,0"}
    pooled = net.ir.layer("MaxPool", [data], window | {"rounding_type": "floor"})
    flat = net.ir.layer("Reshape", [pooled, net.ir.const(np.array([2, 32]))], {
        "special_zero": "false"
    })  # fmt: skip
    sums = net.ir.layer(
        "Gelu", [multiply(net, flat, first)], {"approximation_mode": "ERF"}, version="opset7"
    )
    net.ir.result(multiply(net, net.quantize(sums, *RANGE, name="q"), second, tb=True))
    x = RNG.standard_normal((2, 4, 6, 6), dtype=np.float32)
    (found,) = net.run(tmp_path, x)
    shown = deconv_ir.load(tmp_path / "model.xml").run([x], outputs=["q"])["q"]
    nearly(found, fake_quantize(shown.astype(float), *RANGE) @ v2.T)
    a = np.einsum("ncyx,ocij->noyx", fake_quantize(x.astype(float), *RANGE), v)
    b = fake_quantize(a.astype(np.float32).astype(float), *POSITIVE).max(axis=(2, 3)) @ v1
    # The error function has the precision of f32.
    cdf = np.array([[0.5 * (1 + float(erf)) for erf in row] for row in _erf(b / np.sqrt(2))])
    assert np.abs(shown - fake_quantize(b * cdf, *RANGE)).max() < 0.0101


def _erf(values: Any) -> list[list[float]]:
    import math

    return [[math.erf(v) for v in row] for row in values]


def plan_of(tmp_path: Any, net: Network, inputs: dict[str, Any], **options: Any) -> Any:
    return rows_of(deconv_ir.load(net.ir.save(tmp_path), **options), inputs)


def refused(net: Network, why: str) -> Any:
    """Return a product that is computed in f32 for a reason."""
    data = net.quantize(net.x, *RANGE)
    if why == "both inputs are computed":
        return multiply(net, data, net.quantize(net.ir.layer("Tanh", [net.x]), *RANGE), tb=True)
    if why == "the constant is its first input":
        return multiply(net, net.weights(30, 48)[0], data)
    if why == "the weights are not quantised":
        return multiply(net, data, net.ir.const(RNG.standard_normal((48, 48)).astype(np.float32)))
    if why == "the weights are not a matrix":
        return multiply(net, data, net.weights(3, 48, 32)[0])
    if why == "the weights have no 8-bit codes with one scale for each output channel":
        return multiply(net, data, net.weights(48, 48, axis=0)[0])
    assert why == "the data have several ranges"
    ends = [net.ir.const(np.linspace(a, b, 48, dtype=np.float32).reshape(1, 48, 1))
            for a, b in ((-2, -1), (1, 2)) * 2]  # fmt: skip
    several = net.ir.layer("FakeQuantize", [net.x, *ends], {"levels": "256"})
    return multiply(net, several, net.weights(48, 48, axis=1)[0])


@pytest.mark.parametrize(
    "why",
    [
        "both inputs are computed",
        "the constant is its first input",
        "the weights are not quantised",
        "the weights are not a matrix",
        "the weights have no 8-bit codes with one scale for each output channel",
        "the data have several ranges",
    ],
)
def test_other_products_stay_in_f32_and_plans_say_why(tmp_path: Any, why: str) -> None:
    net = Network("3,48,48")
    net.ir.result(refused(net, why))
    x = RNG.standard_normal((3, 48, 48), dtype=np.float32)
    rows = plan_of(tmp_path, net, {"x": x})
    (row,) = (row for row in rows.values() if row.type.startswith("MatMul"))
    assert row.precision in ("f32", "f32 (i8 weights)")
    assert row.reason is not None
    assert row.reason.startswith(why)
    model = deconv_ir.load(tmp_path / "model.xml")
    direct = deconv_ir.load(tmp_path / "model.xml", accuracy="direct")
    (found,), (expected,) = (m.run([x]).values() for m in (model, direct))
    assert np.abs(found - expected).max() < 2e-4


def test_accuracy_direct_keeps_f32(tmp_path: Any) -> None:
    net = Network("9,64")
    net.ir.result(multiply(net, net.quantize(net.x, *RANGE), net.weights(64, 40, axis=1)[0]))
    rows = plan_of(tmp_path, net, {"x": np.zeros((9, 64), np.float32)}, accuracy="direct")
    assert all(row.precision.startswith("f32") and row.reason is None for row in rows.values())


@pytest.mark.parametrize("rows", [1, 40])
def test_equal_products_share_their_matrix_and_quantisers(tmp_path: Any, rows: int) -> None:
    """Queries, keys and values of one tensor; any number of rows."""
    net = Network("?,64")
    data = net.quantize(net.x, *RANGE)
    w, values = net.weights(64, 48, axis=1)
    for name in ("q", "k"):
        net.ir.result(multiply(net, data, w, name=name))
    net.ir.result(data)
    x = RNG.standard_normal((rows, 64), dtype=np.float32)
    first, second, levels = net.run(tmp_path, x)
    nearly(first, fake_quantize(x.astype(float), *RANGE) @ values)
    assert np.array_equal(first, second)
    assert np.array_equal(levels, fake_quantize(x.astype(float), *RANGE).astype(np.float32))
