"""OpenVINO runs IRs that were converted from oneDNN Graph files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onednn_forms import ZEROS, as_bytes, op, tensor, windows

import deconv_ir
from deconv_ir.formats.conversion import convert
from deconv_ir.formats.openvino_xml import OPENVINO_XML

openvino = pytest.importorskip(
    "openvino", reason="OpenVINO cannot be imported: install the `peers` extra"
)

pytestmark = pytest.mark.peers

RNG = np.random.default_rng(7)
X, SUM = [2, 6, 5, 4], [6]
LAYOUT = {"data_format": "NCX"}
POOL = {"strides": [2, 2], "kernel": [3, 3], "pads_begin": [1, 1], "pads_end": [1, 0]} | LAYOUT
ONE = {"qtype": "per_tensor", "axis": 1}

CASES: list[tuple[str, list[Any], list[Any], dict[str, Any]]] = [
    ("ConvTranspose", [X, [6, 2, 3, 2]], [[2, 4, 10, 5]], {"output_padding": [1, 0, *ZEROS[2:]]}),
    ("ConvTransposeBackwardData", [[2, 4, 9, 5], [6, 2, 3, 2]], [[2, 6, 5, 4]], {}),
    ("ConvTranspose", [X, [6, 2, 1, 1]], [[2, 4, 10, 4]], {"auto_pad": "SAME_UPPER"}),
    (
        "ConvTransposeBackwardWeights",
        [X, [2, 4, 9, 5]],
        [[6, 2, 3, 2]],
        {"weights_shape": [6, 2, 3, 2]},
    ),
    (
        "ConvolutionBackwardWeights",
        [[2, 4, 10, 6], [2, 6, 3, 2]],
        [[6, 2, 2, 3]],
        windows([3, 2], [1, 0], [0, 0], [2, 1], groups=2, weights_format="OIX")
        | {"weights_shape": [6, 2, 2, 3]},
    ),
    ("AvgPool", [X], [[2, 6, 3, 2]], POOL | {"exclude_pad": True}),
    ("MaxPool", [X], [[2, 6, 3, 2]], POOL),
    ("GroupNorm", [X, SUM, SUM], [X, [2, 3], [2, 3]], LAYOUT | {"groups": 3}),
    ("LayerNorm", [X, [4], [4]], [X, X[:3], X[:3]], {"keep_stats": True}),
    ("RMSNorm", [X, [4]], [X], {}),
    ("BatchNormForwardTraining", [X, SUM, SUM], [X, *[SUM] * 4], LAYOUT | {"epsilon": 0.1}),
    ("BatchNormTrainingBackward", [X, X, *[SUM] * 3], [X, SUM, SUM], LAYOUT | {"epsilon": 0.1}),
    ("LayerNormBackward", [X, X, X[:3], X[:3], [4], [4]], [X, [4], [4]], {}),
    ("PReLUBackward", [X, SUM, X], [X, SUM], LAYOUT),
    ("BiasAddBackward", [X], [SUM], LAYOUT),
    ("SoftMaxBackward", [X, X], [X], {"axis": 2}),
    ("LogSoftmaxBackward", [X, X], [X], {}),
    ("Interpolate", [X], [[2, 6, 8, 3]], LAYOUT | {"mode": "linear", "sizes": [8, 3]}),
    ("SoftMax", [X], [X, [2, 1, 5, 4]], {"mode": "inf_as_zero"}),
    ("Pow", [X], [X], {"beta": 1.5}),
    *((f"{kind}Backward", [X, X], [X], {}) for kind in ("Abs", "GELU", "HardSwish", "Mish")),
    *((f"{kind}Backward", [X, X], [X], {}) for kind in ("ReLU", "Sigmoid", "Sqrt", "Tanh")),
    ("GELUBackward", [X, X], [X], {"mode": "gelu_tanh"}),
    ("EluBackward", [X, X], [X], {"alpha": 0.5, "use_dst": False}),
    ("ClampBackward", [X, X], [X], {"min": 0.3, "max": 1.0}),
    ("HardSigmoidBackward", [X, X], [X], {"alpha": 0.9, "beta": -0.3}),
    ("SoftPlusBackward", [X, X], [X], {"beta": 2.0}),
]


@pytest.mark.parametrize(("kind", "inputs", "outputs", "attributes"), CASES)
def test_openvino_agrees(
    kind: str, inputs: Any, outputs: Any, attributes: Any, tmp_path: Path
) -> None:
    """The opset layers of each kind compute the same in OpenVINO as here."""
    if kind.startswith("ConvTranspose"):
        window = windows([2, 1], [1, 0], [1, 0], groups=2, weights_format="IOX")
        attributes = window | attributes
    tensors = [tensor(i, shape) for i, shape in enumerate(inputs)]
    results = [tensor(len(inputs) + i, shape) for i, shape in enumerate(outputs)]
    data = as_bytes(op(0, kind, tensors, results, **attributes))
    model = deconv_ir.load(data, strict=True)
    given = [RNG.uniform(0.2, 1.5, shape).astype(np.float32) for shape in inputs]
    wanted = model.run(given)
    convert(data, tmp_path / "model.xml", OPENVINO_XML)
    compiled = openvino.compile_model(
        tmp_path / "model.xml", "CPU", {"INFERENCE_PRECISION_HINT": "f32"}
    )
    found = compiled({str(i): array for i, array in enumerate(given)})
    assert len(compiled.outputs) == len(outputs)
    for port in compiled.outputs:
        np.testing.assert_allclose(found[port], wanted[port.any_name], 2e-5, 2e-5)


def test_openvino_is_the_other_side_of_a_graph_file() -> None:
    """deconv-diff passes the IR that is made of the graph to OpenVINO."""
    path = Path(__file__).parents[2] / "samples" / "onednn" / "int8.json"
    arrays = dict(np.load(path.with_suffix(".npz")))
    found = deconv_ir.diff(path, None, arrays, against="openvino")
    assert found.equal
    assert [tensor.name for tensor in found.tensors] == ["1", "3", "4", "5", "6"]


def test_operations_of_one_name_are_told_apart() -> None:
    """A graph's tensors are identified by the converted layer, not by an operation's name."""
    x = [2, 3]
    tensors = [tensor(i, x) for i in range(5)]
    chain = [
        op(i, kind, tensors[i : i + 1], tensors[i + 1 : i + 2])
        for i, kind in enumerate(("Exp", "Sqrt", "Square", "Abs"))
    ]
    data = as_bytes(*({**step, "name": "step"} for step in chain))
    given = {"0": RNG.uniform(0.2, 1.5, x).astype(np.float32)}
    found = deconv_ir.diff(deconv_ir.load(data), None, given, against="openvino")
    assert [tensor.name for tensor in found.tensors] == ["1", "2", "3", "4"]
    assert found.equal


@pytest.mark.parametrize("dtype", ["bf16", "f8_e4m3"])
def test_types_that_numpy_lacks_are_compared(dtype: str) -> None:
    """OpenVINO's Python arrays hold the bytes of such tensors under other types."""
    x = [2, 5]
    cast, sums, back = tensor(1, x), tensor(3, x), tensor(4, x, dtype)
    data = as_bytes(
        op(0, "TypeCast", [tensor(0, x, dtype)], [cast]),
        op(1, "Add", [cast, tensor(2, x)], [sums]),
        op(2, "TypeCast", [sums], [back]),
    )
    model = deconv_ir.load(data)
    (element_type, _) = (port.element_type for port in model.inputs.values())
    assert element_type is not None
    # Sums without rounding: on processors with AVX2 alone the CPU plugin truncates to bf16.
    given = {
        "0": (RNG.integers(-7, 8, x) / 4).astype(element_type.numpy()),
        "2": (RNG.integers(-7, 8, x) / 4).astype(np.float32),
    }
    found = deconv_ir.diff(model, None, given, against="openvino")
    assert [tensor.name for tensor in found.tensors] == ["1", "3", "4"]
    assert found.equal


@pytest.mark.parametrize("dtype", ["s4", "u4"])
def test_four_bits_are_compared(dtype: str) -> None:
    """OpenVINO's arrays pack two such elements into a byte; ours do not."""
    x, groups = [3, 5], [3, 1]
    tensors = [tensor(0, x, dtype), tensor(1, groups), tensor(2, groups, dtype)]
    grouped = {"qtype": "per_group", "group_shape": [1, 5], "axis": 1}
    data = as_bytes(op(0, "DynamicDequantize", tensors, [tensor(3, x)], **grouped))
    model = deconv_ir.load(data)
    element_type = model.inputs["0"].element_type
    assert element_type is not None
    low = -8 if dtype == "s4" else 0
    given = {
        "0": RNG.integers(low, low + 16, x).astype(element_type.numpy()),
        "1": RNG.uniform(0.2, 1.5, groups).astype(np.float32),
        "2": RNG.integers(low, low + 16, groups).astype(element_type.numpy()),
    }
    found = deconv_ir.diff(model, None, given, against="openvino")
    assert [t.name for t in found.tensors] == ["3"]
    assert found.equal
