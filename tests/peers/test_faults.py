"""Known faults of OpenVINO: the documents decide, and the oracle computes the expected values.

Each test also runs OpenVINO, and counts its behaviour for the summary at the end, so that a fault
which a later version has fixed is shown as "absent" and can be removed from `faults.FAULTS`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from support import IR

import deconv_ir

from .bare import OpenVINOLayer
from .faults import FAULTS, meet
from .oracle import openvino_window, transposed
from .problems import Problem, array, problems
from .runtimes import F32, assert_close, bfloat16, ops, ov, run
from .single import single_layer

pytestmark = pytest.mark.peers


def _note(
    fault: str, theirs: Callable[[], np.ndarray], right: np.ndarray, tolerance: float = 0.0
) -> None:
    """Note whether OpenVINO still has the fault; `tolerance` is absolute."""
    try:
        found = theirs()
    except RuntimeError:
        meet(fault, "refused")
        return
    agrees = found.shape == right.shape and np.allclose(
        found, right, rtol=0, atol=tolerance, equal_nan=right.dtype.kind == "f"
    )
    meet(fault, "absent" if agrees else "found")


def _binary(folder: Path, kind: str, element: str, a: np.ndarray) -> Path:
    inputs = {name: (element, str(len(a))) for name in "ab"}
    return single_layer(folder, kind, inputs, output=element)


_WRAPPED = [
    ("saturating", "i8", "Add", [100, -100], [100, -100], [-56, 56]),
    ("saturating", "i8", "Multiply", [100, -128], [100, -1], [16, -128]),
    ("saturating", "u8", "Add", [200, 255], [100, 1], [44, 0]),
    ("saturating", "u8", "Subtract", [5, 0], [10, 1], [251, 255]),
    ("i64-as-i32", "i64", "Add", [2**40, 2**53], [3, 1], [2**40 + 3, 2**53 + 1]),
    ("i64-as-i32", "i64", "Multiply", [2**40, 2**62], [3, 4], [3 * 2**40, 0]),
    ("i64-as-i32", "i64", "Subtract", [-(2**63), 0], [1, 2**40], [2**63 - 1, -(2**40)]),
]


@pytest.mark.parametrize(("fault", "element", "kind", "a", "b", "right"), _WRAPPED)
def test_integers_wrap(
    fault: str,
    element: str,
    kind: str,
    a: list[int],
    b: list[int],
    right: list[int],
    tmp_path: Path,
) -> None:
    """Two's complement, as in NumPy and for the other integer types of OpenVINO itself."""
    dtype = {"i8": np.int8, "u8": np.uint8, "i64": np.int64}[element]
    x, y, expected = (np.array(v, dtype) for v in (a, b, right))
    path = _binary(tmp_path, kind, element, x)
    (actual,) = deconv_ir.load(path).run([x, y]).values()
    np.testing.assert_array_equal(actual, expected)
    _note(fault, lambda: run(path, {"a": x, "b": y})[0], expected)


def test_relu_keeps_nan(tmp_path: Path) -> None:
    """NaN propagates as in IEEE arithmetic."""
    x = np.array([np.nan, -1, 2], np.float32)
    right = np.array([np.nan, 0, 2], np.float32)
    path = single_layer(tmp_path, "ReLU", {"x": ("f32", "3")})
    (actual,) = deconv_ir.load(path).run([x]).values()
    np.testing.assert_array_equal(actual, right)
    _note("relu-nan", lambda: run(path, {"x": x})[0], right)


def test_lowest_f8e8m0_is_no_zero(tmp_path: Path) -> None:
    """Code 0 is 2**-127 (OCP Microscaling Formats, E8M0), a denormal number of f32."""
    right = np.array([2.0**-127, 2.0**-126], np.float32)
    ir = IR()
    constant = ir.raw_const(bytes([0, 1]), "f8e8m0", (2,))
    ir.result(ir.layer("Convert", [constant], {"destination_type": "f32"}))
    path = ir.save(tmp_path)
    (actual,) = deconv_ir.load(path).run({}).values()
    np.testing.assert_array_equal(actual, right)
    _note("denormals", lambda: run(path, {})[0], right)


def _deconvolution(folder: Path, problem: Problem, kind: str) -> Path:
    """Build a deconvolution with data and filter as inputs, of any element type."""
    lists = ("strides", "dilations", "pads_begin", "pads_end", "output_padding")
    attributes = {n: ",".join(map(str, getattr(problem, n))) for n in lists}
    inputs = {
        name: (kind, ",".join(map(str, shape)))
        for name, shape in (("data", problem.data_shape), ("filter", problem.filter_shape))
    }
    return single_layer(folder, "ConvolutionBackpropData", inputs, attributes, kind)


_PLAIN = [p for p in problems(60, first=30_000) if p.groups == 1][:12]


def _exact(problem: Problem, data: np.ndarray, filters: np.ndarray) -> np.ndarray:
    """Return the exact sum, in Python's integers."""
    window = openvino_window(problem, "spec")
    output = np.zeros((problem.batch, problem.outputs, *(y for _, y in window)), object)
    for x in np.ndindex(*problem.extents):
        for k in np.ndindex(*problem.kernel):
            y = tuple(
                i * s + j * d - begin
                for i, j, s, d, (begin, _) in zip(
                    x, k, problem.strides, problem.dilations, window, strict=True
                )
            )
            if all(0 <= p < extent for p, (_, extent) in zip(y, window, strict=True)):
                terms = np.einsum(
                    "nc,co->no",
                    data[(slice(None), slice(None), *x)].astype(object),
                    filters[(slice(None), slice(None), *k)].astype(object),
                )
                output[(slice(None), slice(None), *y)] += terms
    return output


@pytest.mark.parametrize("kind", ["i32", "i64", "u64"])
@pytest.mark.parametrize("problem", _PLAIN, ids=str)
def test_integer_deconvolution_is_exact(problem: Problem, kind: str, tmp_path: Path) -> None:
    """Results are exact modulo 2**bits; sums exceed 2**53 and, in i32, 2**31."""
    dtype = np.dtype({"i32": "int32", "i64": "int64", "u64": "uint64"}[kind])
    limits = np.iinfo(dtype)
    rng = np.random.default_rng(problem.seed)
    data = rng.integers(limits.min // 2, limits.max // 2, problem.data_shape, dtype)
    filters = rng.integers(limits.min // 2, limits.max // 2, problem.filter_shape, dtype)
    exact = _exact(problem, data, filters) & ((1 << 8 * dtype.itemsize) - 1)
    right = exact.astype(np.uint64).astype(dtype)
    path = _deconvolution(tmp_path, problem, kind)
    (actual,) = deconv_ir.load(path).run([data, filters]).values()
    assert actual.dtype == dtype
    np.testing.assert_array_equal(actual, right)
    _note(
        "int-as-f32",
        lambda: run(path, {"data": data, "filter": filters})[0],
        right,
    )


@pytest.mark.parametrize("problem", _PLAIN, ids=str)
def test_f64_is_computed_in_f64(problem: Problem, tmp_path: Path) -> None:
    data, filters = problem.tensors("float64")
    right = transposed(problem, data, filters, openvino_window(problem, "spec"))
    path = _deconvolution(tmp_path, problem, "f64")
    (actual,) = deconv_ir.load(path).run([data, filters]).values()
    assert actual.dtype == np.float64
    assert_close(actual, right, 1e-13)
    _note(
        "f64-as-f32",
        lambda: run(path, {"data": data, "filter": filters})[0],
        right,
    )


@pytest.mark.parametrize("kind", ["f16", "bf16"])
@pytest.mark.parametrize("problem", _PLAIN, ids=str)
def test_half_types_are_rounded_once(problem: Problem, kind: str, tmp_path: Path) -> None:
    """Sums accumulate in f32: the error is at most half a unit plus the error of f32."""
    dtype = np.dtype(np.float16) if kind == "f16" else bfloat16
    data, filters = problem.tensors(dtype)
    exact = transposed(problem, data, filters, openvino_window(problem, "spec"))
    right = exact.astype(dtype)
    path = _deconvolution(tmp_path, problem, kind)
    (actual,) = deconv_ir.load(path).run([data, filters]).values()
    assert actual.dtype == dtype
    half = 2.0**-11 if kind == "f16" else 2.0**-8
    scale = np.abs(exact).max()
    error = np.abs(actual.astype(np.float64) - exact)
    assert np.all(error <= half * np.abs(exact) * (1 + 1e-3) + 1e-6 * scale)
    assert np.mean(actual == right) > 0.99
    if kind == "bf16":
        _note(
            "bf16",
            lambda: run(path, {"data": data, "filter": filters})[0].astype(np.float32),
            right.astype(np.float32),
        )


@pytest.mark.parametrize("pad", [1, 2])
def test_pad_before_a_strided_deconvolution(pad: int) -> None:
    """Zeros around the data, stride 3: OpenVINO takes them out of pads_begin, once not thrice.

    The zeros are put into the data by hand.
    """
    problem = Problem(1, 1, 1, 1, 1, (4 + 2 * pad,), (4,), (3,), (1,), (2,), (2,), (0,))
    data = array(1, (1, 1, 4))
    padded = np.pad(data, ((0, 0), (0, 0), (pad, pad)))
    filters = array(2, problem.filter_shape)
    right = transposed(problem, padded, filters, openvino_window(problem, "spec"))
    actual = deconv_ir.conv_transpose(padded, filters, strides=3, pads_begin=2, pads_end=2)
    assert_close(actual, right)

    def theirs() -> np.ndarray:
        node = ops.parameter([1, 1, 4], np.float32, name="x")
        node.output(0).set_names({"x"})
        pads = (ops.constant(np.array([0, 0, pad])) for _ in range(2))
        before = ops.pad(node, *pads, "constant", ops.constant(np.float32(0)))
        result = ops.convolution_backprop_data(
            before, ops.constant(filters), [3], None, [2], [2], [1]
        )
        return run(ov.Model([ops.result(result)], [node], "pad"), {"x": data})[0]

    _note("pad-fusion", theirs, right, F32)


@pytest.mark.parametrize("extents", [(5,), (4, 6), (3, 2, 4)])
def test_kernel_of_one_element_with_pads(extents: tuple[int, ...], tmp_path: Path) -> None:
    """One pad on each side, and output_padding 2: the data, shifted by one, and zeros."""
    n = len(extents)
    ones, twos = (1,) * n, (2,) * n
    problem = Problem(1, 1, 1, 2, 3, extents, ones, ones, ones, ones, ones, twos)
    test_layer = OpenVINOLayer(problem, grouped=False)
    assert test_layer.fault == "pointwise"
    right = test_layer.expected("openvino")
    (actual,) = deconv_ir.load(test_layer.save(tmp_path)).run(test_layer.inputs()).values()
    assert_close(actual, right)
    network = test_layer.save_network(tmp_path)
    _note("pointwise", lambda: run(network, test_layer.inputs())[0], actual, F32)


@pytest.mark.parametrize("extents", [(0,), (0, 4), (3, 0)])
def test_a_spatial_extent_of_zero(extents: tuple[int, ...], tmp_path: Path) -> None:
    """F = s * (X - 1) + E by the formula of S0 to S2, and every output element is an empty sum."""
    n = len(extents)
    ones, zeros = (1,) * n, (0,) * n
    problem = Problem(1, 2, 1, 3, 2, extents, (4,) * n, (2,) * n, ones, zeros, zeros, zeros)
    right = np.zeros((2, 2, *problem.natural), np.float32)
    test_layer = OpenVINOLayer(problem, grouped=False)
    path = test_layer.save(tmp_path)
    (actual,) = deconv_ir.load(path).run(test_layer.inputs()).values()
    np.testing.assert_array_equal(actual, right)
    meet("zero-extent", "avoided")


def test_every_fault_is_met_somewhere() -> None:
    """Every fault in the table must be named by a test."""
    texts = "".join(p.read_text() for p in Path(__file__).parent.glob("*.py"))
    for fault in FAULTS:
        assert texts.count(f'"{fault}"') + texts.count(f"(FAULTS: {fault})") > 1, fault
