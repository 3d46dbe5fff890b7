"""Who is right, with real runtimes: their own faults, and differences that are nobody's fault.

The exact values are worked out by hand, or follow from IEEE arithmetic on the arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from support import IR, Out

import deconv_ir

from .single import single_layer

pytest.importorskip("openvino", reason="OpenVINO cannot be imported: install the `peers` extra")
pytestmark = pytest.mark.peers

NAN, INF = np.nan, np.inf
POOL = {"kernel": "2,2", "strides": "2,2", "pads_begin": "0,0", "pads_end": "0,0"}
LINE = {"strides": "1", "dilations": "1", "pads_begin": "0", "pads_end": "0"}


def f32(*values: float) -> np.ndarray:
    return np.array(values, np.float32)


class Case(NamedTuple):
    """A layer, its arrays, and what OpenVINO gives for an element, with the exact value."""

    kind: str
    inputs: Mapping[str, tuple[str, str]]
    arrays: list[np.ndarray]
    value: float
    exact: float
    attributes: Mapping[str, str] = {}
    output: str = "f32"


def unary(kind: str, x: list[float], value: float, exact: float, **attributes: str) -> Case:
    return Case(kind, {"x": ("f32", str(len(x)))}, [f32(*x)], value, exact, attributes)


def binary(
    kind: str, element: str, a: list[Any], b: list[Any], value: float, exact: float, to: str = ""
) -> Case:
    dtype = {"f32": np.float32, "f64": np.float64, "i8": np.int8, "u8": np.uint8}.get(
        element, np.int64
    )
    inputs = {name: (element, str(len(a))) for name in "ab"}
    arrays = [np.array(v, dtype) for v in (a, b)]
    return Case(kind, inputs, arrays, value, exact, {}, to or element)


LOWEST = float(np.finfo(np.float32).min)
FAULTS = {
    "MaxPool of -inf": Case(
        "MaxPool", {"x": ("f32", "1,1,2,2")}, [np.full((1, 1, 2, 2), -INF, np.float32)],
        LOWEST, -INF, POOL,
    ),
    "MaxPool of padding alone": Case(
        "MaxPool", {"x": ("f32", "1,1,2,2")}, [np.ones((1, 1, 2, 2), np.float32)],
        LOWEST, -INF, POOL | {"pads_begin": "2,2"},
    ),
    "ReLU of NaN": unary("ReLU", [NAN, -1, 2], 0, NAN),
    "Clamp of NaN": unary("Clamp", [NAN, 0, 2], -1, NAN, min="-1", max="1"),
    "Exp of NaN": unary("Exp", [1, NAN], INF, NAN),
    "Maximum of NaN": binary("Maximum", "f32", [NAN, 1], [1, 1], 1, NAN),
    "Minimum of NaN": binary("Minimum", "f32", [NAN, 1], [1, 1], 1, NAN),
    "Greater than NaN": binary("Greater", "f32", [1.0, 5.0], [NAN, 1.0], True, False, "boolean"),
    "ReduceMax of NaN": Case(
        "ReduceMax", {"x": ("f32", "1,4"), "axes": ("i64", "1")},
        [f32(1, NAN, 3, 2)[None], np.array([1])], 3, NAN, {"keep_dims": "true"},
    ),
    "TopK of NaN": Case(
        "TopK", {"x": ("f32", "1,6"), "k": ("i64", "")},
        [f32(1, NAN, 3, NAN, 5, 2)[None], np.array(3)], 5, NAN,
        {"axis": "1", "mode": "max", "sort": "value"},
    ),
    "SoftMax of an infinity": Case(
        "SoftMax", {"x": ("f32", "1,3")}, [f32(1, INF, 2)[None]], 0, NAN, {"axis": "1"}
    ),
    "i8 saturates": binary("Add", "i8", [100], [100], 127, -56),
    "u8 saturates": binary("Subtract", "u8", [5], [10], 0, 251),
    "i64 in 32 bits": binary("Add", "i64", [2**40], [3], 3, 2**40 + 3),
    "f64 in f32": binary("Multiply", "f64", [2.0**24 + 1], [1], 2**24, 2**24 + 1),
    "i32 beyond 2**24 in f32": Case(
        "ConvolutionBackpropData", {"data": ("i32", "1,1,1"), "filter": ("i32", "1,1,1")},
        [np.full((1, 1, 1), 2**24 + 1, np.int32), np.ones((1, 1, 1), np.int32)],
        2**24, 2**24 + 1, LINE, "i32",
    ),
    "f64 convolution in f32": Case(
        "Convolution", {"data": ("f64", "1,1,1"), "filter": ("f64", "1,1,1")},
        [np.full((1, 1, 1), 2.0**24 + 1), np.ones((1, 1, 1))], 2**24, 2**24 + 1, LINE, "f64",
    ),
}  # fmt: skip


def judge(
    path: Path, arrays: list[np.ndarray], **options: Any
) -> tuple[deconv_ir.ModelDifference, deconv_ir.ModelVerdict]:
    found = deconv_ir.diff(path, None, arrays, against="openvino", verdict=True, **options)
    assert found.verdict is not None
    return found, found.verdict


@pytest.mark.parametrize("case", FAULTS.values(), ids=FAULTS.keys())
def test_openvino_is_wrong(case: Case, tmp_path: Path) -> None:
    path = single_layer(tmp_path, case.kind, case.inputs, case.attributes, case.output)
    _, verdict = judge(path, case.arrays)
    assert verdict.wrong_sides == ("openvino",), verdict.sentence
    assert verdict.first is not None
    found = verdict.first.b
    np.testing.assert_array_equal([found.value, found.exact], [case.value, case.exact])
    assert verdict.sentence.startswith("openvino is wrong in layer ")
    assert verdict.sentence.endswith("deconv_ir is right.")
    f32_alone = next(s for s in verdict.settings if s.name == "f32")
    assert f32_alone.verdict.right is False


@pytest.mark.parametrize("pad", [1, 2])
def test_a_pad_that_is_fused_into_a_deconvolution_with_a_stride(pad: int, tmp_path: Path) -> None:
    """With the output of Pad as an output of the network, OpenVINO fuses nothing, and is right.

    The result has 3 * (4 + 2 * pad - 1) + 4 - 4 elements, by the formula of the specification.
    """
    rng = np.random.default_rng(0)
    ir = IR()
    x = ir.parameter("x", "1,1,4")
    pads = [ir.const(np.array([0, 0, pad])) for _ in range(2)]
    padded = ir.layer(
        "Pad", [x, *pads, ir.const(np.float32(0))], {"pad_mode": "constant"}, name="pad"
    )
    weights = ir.const(rng.standard_normal((1, 1, 4)).astype(np.float32))
    window = {"strides": "3", "dilations": "1", "pads_begin": "2", "pads_end": "2"}
    ir.result(ir.layer("ConvolutionBackpropData", [padded, weights], window, name="up"))
    data = rng.standard_normal((1, 1, 4)).astype(np.float32)
    found, verdict = judge(ir.save(tmp_path), [data])
    assert not found.equal
    assert verdict.wrong_sides == ("openvino",)
    assert verdict.first is not None
    assert verdict.first.layer_name == "up"
    assert "fuses 'pad' with the layer" in verdict.sentence
    assert f"exact [1, 1, {3 * (4 + 2 * pad - 1)}]" in verdict.sentence


def test_a_pad_value_that_is_given_at_run_time(tmp_path: Path) -> None:
    """OpenVINO pads with 0 where the value is an input and the pads are constants."""
    ir = IR()
    x, value = ir.parameter("x", "1,2"), ir.parameter("value", "")
    pads = [ir.const(np.array(pad)) for pad in ([0, 1], [0, 0])]
    ir.result(ir.layer("Pad", [x, *pads, value], {"pad_mode": "constant"}, name="pad"))
    _, verdict = judge(ir.save(tmp_path), [f32(1, 2)[None], f32(0.5).reshape(())])
    assert verdict.sentence == (
        "openvino is wrong in layer 'pad' (Pad, line 32): 0, exact 0.5. deconv_ir is right."
    )


def noise(layers: int) -> Callable[[IR, Out], Out]:
    """Products with matrices of norm about 1, and functions between them."""

    def build(ir: IR, x: Out) -> Out:
        rng = np.random.default_rng(3)
        for k in range(layers):
            if k % 2:
                x = ir.layer("Tanh", [x])
            else:
                w = rng.standard_normal((16, 16)) * 0.5
                x = ir.layer("MatMul", [x, ir.const(w.astype(np.float32))])
        return x

    return build


def cancelling(ir: IR, x: Out) -> Out:
    """A sum whose terms cancel up to 1e-6 of their magnitudes."""
    rng = np.random.default_rng(4)
    w = rng.standard_normal((16, 8)) * 1e6
    w[8:] = -w[:8] + rng.standard_normal((8, 8))
    doubled = ir.layer("Concat", [x, x], {"axis": "1"})
    return ir.layer(
        "MatMul", [doubled, ir.const(np.concatenate([w, -w * (1 + 1e-6)]).astype(np.float32))]
    )


def exponentials(ir: IR, x: Out) -> Out:
    """exp(80 x): an error of one eps of the argument is 80 of the result."""
    large = ir.layer("Multiply", [x, ir.const(f32(80).reshape(1, 1))])
    product = ir.layer("MatMul", [large, ir.const(np.eye(16, dtype=np.float32) * np.float32(0.3))])
    return ir.layer("Exp", [product], name="exp")


NOBODYS = {
    "200 layers of noise": noise(200),
    "ill-conditioned sums": cancelling,
    "exp of large arguments": exponentials,
}


@pytest.mark.parametrize("hint", ["f32", "bf16", "f16"])
@pytest.mark.parametrize("build", NOBODYS.values(), ids=NOBODYS.keys())
def test_nobody_is_wrong(build: Callable[[IR, Out], Out], hint: str, tmp_path: Path) -> None:
    ir = IR()
    ir.result(build(ir, ir.parameter("x", "2,16")))
    data = np.random.default_rng(1).standard_normal((2, 16)).astype(np.float32)
    found, verdict = judge(ir.save(tmp_path), [data], settings={"INFERENCE_PRECISION_HINT": hint})
    assert verdict.wrong_sides == (), verdict.sentence
    # On some processors both sides add the terms of f32 in the same order.
    same = ("Both are right: every tensor is equal",) if hint == "f32" else ()
    assert verdict.sentence.startswith(("Neither is wrong: ", *same))
    if hint != "f32" and not found.equal:
        assert hint in verdict.sentence


@pytest.mark.parametrize("sort", ["value", "index", "none"])
@pytest.mark.parametrize("mode", ["max", "min"])
def test_any_of_equal_elements_is_right(mode: str, sort: str, tmp_path: Path) -> None:
    """Whole numbers from -3 to 3, of which many are equal: the indices need not be the same."""
    inputs = {"x": ("f32", "4,40"), "k": ("i64", "")}
    path = single_layer(tmp_path, "TopK", inputs, {"axis": "1", "mode": mode, "sort": sort})
    data = np.random.default_rng(2).integers(-3, 4, (4, 40)).astype(np.float32)
    _, verdict = judge(path, [data, np.array(9)])
    assert verdict.wrong_sides == (), verdict.sentence


def test_both_follow_their_documents(tmp_path: Path) -> None:
    """Pads and output_shape: the specification ignores the pads, the runtime keeps them."""
    ir = IR()
    x = ir.parameter("x", "1,1,3")
    weights = ir.const(f32(1, 10, 100, 1000).reshape(1, 1, 4))
    window = {"strides": "2", "dilations": "1", "pads_begin": "1", "pads_end": "0"}
    shape = ir.const(np.array([7]))
    ir.result(ir.layer("ConvolutionBackpropData", [x, weights, shape], window, name="up"))
    found, verdict = judge(ir.save(tmp_path), [f32(1, 2, 3).reshape(1, 1, 3)])
    assert not found.equal
    assert verdict.wrong_sides == ()
    assert verdict.first is None
    assert verdict.sentence.startswith("Both follow their documents in layer 'up' (")
    assert "pads_begin 0" in verdict.sentence
    assert [layer.b.semantics for layer in verdict.layers] == ["openvino"]


def test_a_difference_from_onnx_may_be_that_of_the_conversion(tmp_path: Path) -> None:
    """The ONNX model has another slope than the IR: no tensor tells which of them is meant."""
    import onnx
    from onnx import TensorProto, helper

    node = helper.make_node("LeakyRelu", ["x"], ["y"], alpha=0.5)
    info = [helper.make_tensor_value_info(n, TensorProto.FLOAT, [3]) for n in "xy"]
    graph = helper.make_graph([node], "net", info[:1], info[1:])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 16)], ir_version=8)
    onnx.save(model, tmp_path / "net.onnx")
    ir = IR()
    slope = ir.const(f32(0.25))
    ir.result(ir.layer("PReLU", [ir.parameter("x", "3"), slope], name="y"))
    found = deconv_ir.diff(
        ir.save(tmp_path),
        tmp_path / "net.onnx",
        [f32(-1, 0, 1)],
        against="onnxruntime",
        verdict=True,
    )
    assert found.verdict is not None
    assert found.verdict.wrong_sides == ("onnxruntime",)
    assert "-0.5, exact -0.25" in found.verdict.sentence
    assert found.verdict.notes == (
        "The layer is judged by the IR: its conversion from ONNX may be wrong instead.",
    )
