"""Conversion of oneDNN Graph files to IRs and back: the results stay the same."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onednn_forms import ZEROS, as_bytes, attention, deconvolution, op, tensor, windows
from onednn_kinds import EVERY_KIND, graph_of
from support import IR

import deconv_ir
from deconv_ir.errors import InputError, UnsupportedError
from deconv_ir.formats.conversion import convert
from deconv_ir.formats.onednn_json import ONEDNN_JSON
from deconv_ir.formats.openvino_xml import OPENVINO_XML
from deconv_ir.linter.engine import check_bytes, check_file
from deconv_ir.linter.options import choose

MVN = {"normalize_variance": "true", "eps": "0.01", "eps_mode": "inside_sqrt"}
RNG = np.random.default_rng(24)


def arrays_for(model: deconv_ir.Model) -> dict[str, Any]:
    """Return arrays for all inputs."""
    found = {}
    for name, port in model.inputs.items():
        assert port.shape is not None
        assert port.element_type is not None
        values = (
            RNG.integers(-9, 9, port.shape)
            if port.element_type.is_integer
            else (RNG.uniform(0.2, 1.5, port.shape))
        )
        found[name] = np.asarray(
            abs(values) if port.element_type.kind == "uint" else values
        ).astype(port.element_type.numpy())
    return found


def pattern() -> list[dict[str, Any]]:
    """Return an int8 pattern with zero points and scales for each channel."""
    x, w, y = [2, 4, 5, 5], [4, 3, 3, 3], [2, 3, 9, 11]
    return [
        op(
            7,
            "Dequantize",
            [tensor(0, x, "u8")],
            [tensor(1, x)],
            scales=[0.5],
            zps=[3],
            qtype="per_tensor",
        ),
        op(
            8,
            "Dequantize",
            [tensor(2, w, "s8")],
            [tensor(3, w)],
            scales=[0.25, 1.0, 2.0],
            zps=[0, 1, 0],
            qtype="per_channel",
            axis=1,
        ),
        op(
            9,
            "ConvTranspose",
            [tensor(1, x), tensor(3, w), tensor(20, [3])],
            [tensor(4, y)],
            **windows([2, 2], [1, 0], [1, 0], weights_format="IOX", output_padding=ZEROS),
        ),
        op(10, "Square", [tensor(4, y)], [tensor(5, y)]),
        op(
            11,
            "Quantize",
            [tensor(5, y)],
            [tensor(6, y, "u8")],
            scales=[4.0],
            zps=[7],
            qtype="per_tensor",
        ),
    ]


def gradient() -> dict[str, Any]:
    return op(
        0,
        "ConvTransposeBackwardData",
        [tensor(0, [1, 7, 6, 4]), tensor(1, [3, 2, 2, 6])],
        [tensor(2, [1, 3, 3, 6])],
        **windows([2, 2], [0, 1], [0, 0], data_format="NXC", weights_format="XOI", groups=2),
    )


LOWERED: dict[str, list[dict[str, Any]]] = {
    "int8": pattern(),
    "nxc in groups": [
        op(
            0,
            "ConvTranspose",
            [tensor(0, [1, 4, 4, 6]), tensor(1, [3, 2, 2, 6])],
            [tensor(2, [1, 8, 8, 4])],
            **windows(
                [2, 2],
                [0, 0],
                [1, 0],
                data_format="NXC",
                weights_format="XOI",
                groups=2,
                output_padding=[0, 0],
            ),
        )
    ],
    "same lower": [
        deconvolution([1, 2, 4], [2, 3, 4], [1, 3, 12], strides=[3], auto_pad="SAME_LOWER")
    ],
    "an output that begins with zeros": [
        deconvolution([1, 2, 4], [2, 3, 2], [1, 3, 16], strides=[4], auto_pad="SAME_UPPER")
    ],
    "zeros before and behind, with a bias": [
        op(
            0,
            "ConvTranspose",
            [tensor(0, [1, 3, 3, 2]), tensor(1, [2, 4, 2, 1]), tensor(2, [4])],
            [tensor(3, [1, 12, 9, 4])],
            **windows([4, 3], [0, 0], [0, 0], weights_format="IOX")
            | {"auto_pad": "SAME_LOWER", "data_format": "NXC", "output_padding": ZEROS},
        )
    ],
    "weights in groups": [
        op(
            0,
            "ConvTransposeBackwardWeights",
            [tensor(0, [2, 3, 4, 6]), tensor(1, [2, 7, 8, 4])],
            [tensor(2, [3, 2, 2, 6])],
            **windows([2, 2], [0, 1], [0, 0], data_format="NXC", weights_format="XOI", groups=2),
            weights_shape=[3, 2, 2, 6],
        )
    ],
    "dilated weights": [
        op(
            0,
            "ConvolutionBackwardWeights",
            [tensor(0, [2, 3, 11], "bf16"), tensor(1, [2, 4, 3], "bf16")],
            [tensor(2, [4, 3, 3], "bf16")],
            **windows([3], [1], [0], [2], weights_format="OIX", weights_shape=[4, 3, 3]),
        )
    ],
    "dst_shape": [
        op(
            0,
            "ConvolutionBackwardData",
            [tensor(0, [1, 4, 3]), tensor(1, [4, 2, 3])],
            [tensor(2, [1, 2, 8])],
            **windows([2], [0], [0], weights_format="OIX", dst_shape=[1, 2, 8]),
        )
    ],
    "bf16": [deconvolution([1, 2, 4], [2, 3, 3], [1, 3, 6], "bf16")],
    "norm and gelu": [
        op(
            0,
            "LayerNorm",
            [tensor(0, [2, 6]), tensor(1, [6]), tensor(2, [6])],
            [tensor(3, [2, 6])],
            keep_stats=False,
        ),
        op(1, "GELU", [tensor(3, [2, 6])], [tensor(4, [2, 6])]),
        op(2, "LeakyReLU", [tensor(4, [2, 6])], [tensor(5, [2, 6])], alpha=0.25),
    ],
    "gradients": [
        op(
            0,
            "BatchNormTrainingBackward",
            [tensor(0, [2, 3, 4]), tensor(1, [2, 3, 4]), *(tensor(i, [3]) for i in (2, 3, 4))],
            [tensor(5, [2, 3, 4]), tensor(6, [3]), tensor(7, [3])],
            epsilon=0.5,
            data_format="NCX",
        ),
        op(
            1,
            "GELUBackward",
            [tensor(0, [2, 3, 4]), tensor(5, [2, 3, 4])],
            [tensor(8, [2, 3, 4])],
        ),
    ],
    "training": [
        op(
            0,
            "BatchNormForwardTraining",
            [tensor(0, [2, 3, 4]), *(tensor(i, [3]) for i in (1, 2))],
            [tensor(3, [2, 3, 4]), *(tensor(i, [3]) for i in (4, 5, 6, 7))],
            epsilon=0.5,
            data_format="NCX",
        ),
    ],
    "softmax": [
        op(
            0,
            "SoftMax",
            [tensor(0, [2, 3, 4])],
            [tensor(1, [2, 3, 4], "bf16"), tensor(2, [2, 1, 4])],
            mode="inf_as_zero",
        ),
        op(1, "GenIndex", [tensor(2, [2, 1, 4])], [tensor(3, [2, 1, 4], "s32")], axis=2),
    ],
    "attention": attention(),
    "groups": [
        op(
            0,
            "Dequantize",
            [tensor(0, [4, 6, 3], "s8")],
            [tensor(1, [4, 6, 3])],
            scales=[0.5, 1.0, 2.0, 0.25] * 3,
            zps=[0, 1, 2, 3] * 3,
            qtype="per_group",
            group_shape=[2, 3, 1],
        ),
        op(
            1,
            "DynamicQuantize",
            [tensor(1, [4, 6, 3]), tensor(2, [6]), tensor(3, [1], "u8")],
            [tensor(4, [4, 6, 3], "u8")],
            qtype="per_channel",
        ),
    ],
    "same array": [op(0, "Reorder", [tensor(0, [2, 3])], [tensor(1, [2, 3])])],
    "pool": [
        op(
            0,
            "MaxPool",
            [tensor(0, [1, 6, 6, 2])],
            [tensor(1, [1, 3, 3, 2])],
            strides=[2, 2],
            kernel=[2, 2],
            pads_begin=[0, 0],
            pads_end=[0, 0],
            data_format="NXC",
        ),
    ],
}


@pytest.mark.parametrize("name", [*LOWERED, "gradient"])
def test_an_ir_of_a_graph_computes_the_same(name: str, tmp_path: Path) -> None:
    """The IR has the same names of inputs and outputs."""
    operations = LOWERED.get(name) or [gradient()]
    data = as_bytes(*operations)
    if name == "gradient":  # oneDNN infers its extents, whatever is declared
        operations[0]["outputs"][0]["shape"] = []
        data = as_bytes(*operations)
    model = deconv_ir.load(data, warn=False)  # pads that the library clamps are reported
    convert(data, tmp_path / "model.xml", OPENVINO_XML)
    again = deconv_ir.load(tmp_path / "model.xml")
    assert list(again.inputs) == list(model.inputs)
    assert list(again.outputs) == list(model.outputs)
    given = arrays_for(model)
    for name_, found in again.run(given).items():
        wanted = model.run(given)[name_]
        assert found.dtype == wanted.dtype
        np.testing.assert_allclose(
            found.astype(float), wanted.astype(float), 1e-5, 1 if found.dtype == np.uint8 else 1e-5
        )


# What oneDNN Graph has no operations for, after it was written as layers.
NOT_BACK = {
    "gradients": "Erf has no counterpart",
    "weights in groups": "Slice has no counterpart",
    "softmax": "a constant as output has no counterpart",
    "GenIndex": "a constant as output has no counterpart",
    "attention": "Convert of i32 to f32 has no counterpart",
    "DynamicQuantize": "Convert of i32 to f32 has no counterpart",
}
NO_IR = {"AvgPoolBackward", "Dropout", "InterpolateBackward", "MaxPoolBackward"}


@pytest.mark.parametrize("name", [*LOWERED, *sorted(set(EVERY_KIND) - NO_IR)])
def test_an_ir_of_a_graph_comes_back(name: str, tmp_path: Path) -> None:
    """The graph that is written from the IR computes what the IR does."""
    data = as_bytes(*LOWERED[name]) if name in LOWERED else json.dumps(graph_of(name)).encode()
    convert(data, tmp_path / "model.xml", OPENVINO_XML)
    if name in NOT_BACK:
        with pytest.raises(UnsupportedError, match=NOT_BACK[name]):
            convert(tmp_path / "model.xml", tmp_path / "graph.json", ONEDNN_JSON)
        assert not (tmp_path / "graph.json").exists()
        return
    convert(tmp_path / "model.xml", tmp_path / "graph.json", ONEDNN_JSON)
    model = deconv_ir.load(tmp_path / "model.xml", warn=False)
    again = deconv_ir.load(tmp_path / "graph.json", warn=False)
    beside = tmp_path / "graph.npz"
    constants = dict(np.load(beside)) if beside.exists() else {}
    given = arrays_for(model)
    names = [name_ for name_ in again.inputs if name_ not in constants]
    read = {source[0] for row in model.graph.topology.sources for source in row if source}
    wanted_inputs = [
        layer.name
        for i, layer in enumerate(model.graph.layers)
        if i in read and layer.name in given
    ]
    arrays = constants | dict(zip(names, (given[n] for n in wanted_inputs), strict=True))
    found, wanted = again.run(arrays).values(), model.run(given).values()
    for a, b in zip(found, wanted, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a.astype(float), b.astype(float), 1e-5, 1e-5)


SPECIAL = np.array([0, 1, -1, np.nan, np.inf, -np.inf, 2.5, -2.5], np.float32)


@pytest.mark.parametrize(
    ("kind", "attributes"),
    [
        *((kind, {}) for kind in ("Equal", "NotEqual", "Greater", "GreaterEqual", "Less")),
        ("LessEqual", {}),
    ],
)
def test_comparisons_there_and_back(kind: str, attributes: dict[str, str], tmp_path: Path) -> None:
    """All pairs of special numbers, by NumPy's comparison; logic on the results."""
    ir = IR()
    x, y = ir.parameter("x", "8,1"), ir.parameter("y", "1,8")
    first = ir.layer(kind, [x, y], attributes, precision="BOOL")
    second = ir.layer(
        "GreaterEqual", [ir.layer("Add", [x, y]), ir.const(np.float32([[0]]))], precision="BOOL"
    )
    for logic in ("LogicalAnd", "LogicalOr", "LogicalXor"):
        ir.result(ir.layer(logic, [first, second], precision="BOOL"))
    ir.result(ir.layer("LogicalNot", [first], precision="BOOL"))
    ir.save(tmp_path)
    convert(tmp_path / "model.xml", tmp_path / "graph.json", ONEDNN_JSON)
    model = deconv_ir.load(tmp_path / "graph.json")
    constants = dict(np.load(tmp_path / "graph.npz"))
    names = [name for name in model.inputs if name not in constants]
    arrays = constants | dict(zip(names, (SPECIAL[:, None], SPECIAL[None]), strict=True))
    compare = {"Equal": np.equal, "NotEqual": np.not_equal, "Greater": np.greater}
    compare |= {"GreaterEqual": np.greater_equal, "Less": np.less, "LessEqual": np.less_equal}
    with np.errstate(invalid="ignore"):
        a, b = compare[kind](SPECIAL[:, None], SPECIAL), SPECIAL[:, None] + SPECIAL >= 0
    for found, wanted in zip(model.run(arrays).values(), (a & b, a | b, a ^ b, ~a), strict=True):
        assert np.array_equal(found, wanted)


@pytest.mark.parametrize(
    ("kind", "version", "constants", "attributes", "words"),
    [
        ("Convert", "opset1", [], {"destination_type": "i8"}, "Convert of f32 to i8"),
        ("MVN", "opset6", [np.int64([1])], MVN, "MVN over other axes than the last ones"),
        ("MVN", "opset6", [np.int64([2, 3])], MVN | {"eps_mode": "outside_sqrt"}, "outside"),
        ("Power", "opset1", [np.float32([1, 2, 3, 1, 2, 3])], {}, "not one constant number"),
        ("Pad", "opset1", [np.int64([0, 0, 1, 0])] * 2, {"pad_mode": "reflect"}, "in this mode"),
    ],
)
def test_forms_that_a_graph_cannot_express(
    kind: str, version: str, constants: Any, attributes: Any, words: str, tmp_path: Path
) -> None:
    ir = IR()
    inputs = [ir.parameter("x", "1,4,6,6"), *map(ir.const, constants)]
    ir.result(ir.layer(kind, inputs, attributes, version=version, precision="UNSPECIFIED"))
    ir.save(tmp_path)
    with pytest.raises(UnsupportedError, match=words):
        convert(tmp_path / "model.xml", tmp_path / "graph.json", ONEDNN_JSON)


@pytest.mark.parametrize(
    ("low", "high", "fits"), [(-128, 127, True), (0.5, 9, False), (0, 200, False)]
)
def test_conversions_to_i8_must_be_of_its_levels(
    low: float, high: float, fits: bool, tmp_path: Path
) -> None:
    """Convert truncates and wraps, Quantize rounds and saturates: 0.5 stays in a Clamp of Round."""
    ir = IR()
    y = ir.layer("Round", [ir.parameter("x", "8")], {"mode": "half_to_even"}, version="opset5")
    y = ir.layer("Clamp", [y], {"min": str(low), "max": str(high)})
    ir.result(ir.layer("Convert", [y], {"destination_type": "i8"}, precision="I8"))
    ir.save(tmp_path)
    if not fits:
        with pytest.raises(UnsupportedError, match="Convert of f32 to i8"):
            convert(tmp_path / "model.xml", tmp_path / "graph.json", ONEDNN_JSON)
        return
    convert(tmp_path / "model.xml", tmp_path / "graph.json", ONEDNN_JSON)
    x = np.float32([-200, -1.5, -0.4, 0, 0.5, 2.5, 99.6, 300])
    (found,) = deconv_ir.load(tmp_path / "graph.json").run([x]).values()
    assert found.tolist() == [-128, -2, 0, 0, 0, 2, 100, 127]


def test_repeated_names_are_told_apart(tmp_path: Path) -> None:
    """Public graphs repeat names; only ids distinguish operations of graph files."""
    operations = attention()
    for operation in operations:
        operation["name"] = operation["kind"].lower()
    data = as_bytes(*operations)
    assert not check_bytes(data, "g.json", choose(severity="info")).findings
    convert(data, tmp_path / "model.xml", OPENVINO_XML)
    names = [layer.name for layer in deconv_ir.load(tmp_path / "model.xml").graph.layers]
    assert len(set(names)) == len(names)
    assert {"matmul", "matmul_2"} <= set(names)
    assert not check_file(tmp_path / "model.xml", choose()).findings


def test_only_opsets_are_written(tmp_path: Path) -> None:
    """The IR does not contain layers of oneDNN's own types."""
    convert(as_bytes(*pattern()), tmp_path / "model.xml", OPENVINO_XML)
    graph = deconv_ir.load(tmp_path / "model.xml").graph
    assert all((layer.version or "").startswith("opset") for layer in graph.layers)
    assert not graph.of_type("ConvTranspose")
    assert graph.of_type("ConvolutionBackpropData")


def test_what_an_ir_cannot_express_is_named_and_nothing_written(tmp_path: Path) -> None:
    """All operations without a counterpart are named, in one line."""
    x = [1, 2, 4]
    window: dict[str, Any] = {"strides": [1], "kernel": [2], "pads_begin": [0], "pads_end": [0]}
    pool = window | {"data_format": "NCX"}
    data = as_bytes(
        op(0, "MaxPoolBackward", [tensor(0, x), tensor(1, [1, 2, 3])], [tensor(2, x)], **pool),
        op(1, "Wildcard", [tensor(2, x)], [tensor(3, x)]),
    )
    with pytest.raises(UnsupportedError, match=r"MaxPoolBackward has no.*Wildcard"):
        convert(data, tmp_path / "model.xml", OPENVINO_XML)
    assert not list(tmp_path.iterdir())


def network() -> IR:
    """Build an IR of operations that mostly exist in oneDNN Graph too."""
    ir = IR()
    x = ir.parameter("x", "1,4,6,6")
    w = ir.const(RNG.standard_normal((2, 2, 3, 3, 3)).astype(np.float32))
    up = ir.layer(
        "GroupConvolutionBackpropData",
        [x, w],
        {
            "strides": "2,2",
            "pads_begin": "1,0",
            "pads_end": "0,1",
            "dilations": "1,1",
            "output_padding": "1,0",
        },
    )
    biased = ir.layer("Add", [up, ir.const(RNG.standard_normal((1, 6, 1, 1)).astype(np.float32))])
    active = ir.layer("HSwish", [biased], version="opset4")
    order = ir.const(np.array([0, 2, 3, 1], np.int64))
    turned = ir.layer("Transpose", [active, order])
    mean = ir.layer(
        "ReduceMean", [turned, ir.const(np.array([1, 2], np.int64))], {"keep_dims": "true"}
    )
    flat = ir.layer(
        "Reshape", [mean, ir.const(np.array([1, -1], np.int64))], {"special_zero": "false"}
    )
    ir.result(ir.layer("SoftMax", [flat], {"axis": "1"}))
    return ir


def test_a_graph_of_an_ir_computes_the_same(tmp_path: Path) -> None:
    """Constants become inputs, whose arrays are written beside the file."""
    network().save(tmp_path)
    source = deconv_ir.load(tmp_path / "model.xml")
    written = convert(tmp_path / "model.xml", tmp_path / "graph.json", ONEDNN_JSON)
    assert written == [str(tmp_path / "graph.json"), str(tmp_path / "graph.npz")]
    model = deconv_ir.load(tmp_path / "graph.json", strict=True)
    given = arrays_for(source)
    constants = dict(np.load(tmp_path / "graph.npz"))
    (data,) = set(model.inputs) - set(constants)
    (wanted,) = source.run(given).values()
    (found,) = model.run({**constants, data: given["x"]}).values()
    np.testing.assert_allclose(found, wanted, 1e-6, 1e-7)
    assert {layer.type for layer in model.graph.layers} >= {"ConvTranspose", "HardSwish"}
    # And back: an IR that computes the same.
    convert(tmp_path / "graph.json", tmp_path / "again.xml", OPENVINO_XML)
    again = deconv_ir.load(tmp_path / "again.xml")
    (found,) = again.run({**constants, data: given["x"]}).values()
    np.testing.assert_allclose(found, wanted, 1e-6, 1e-7)


LAYERS: list[tuple[str, str, list[Any], dict[str, str]]] = [
    ("SoftPlus", "opset4", [], {}),
    ("MVN", "opset6", [np.int64([-1, 2])], MVN),
    ("MVN", "opset2", [], {"across_channels": "true", "eps": "0.01"}),
    ("Power", "opset1", [np.float32(3)], {}),
    ("Sign", "opset1", [], {}),
    (
        "Pad",
        "opset1",
        [np.int64([0, 1, 0, 2]), np.int64([0, 0, 3, 1]), np.float32(7)],
        {"pad_mode": "constant"},
    ),
    ("Broadcast", "opset3", [np.int64([2, 4, 6, 6])], {"mode": "numpy"}),
    ("HardSigmoid", "opset1", [np.float32(0.3), np.float32(0.4)], {}),
    (
        "GroupNormalization",
        "opset12",
        [np.float32([1, 2, 3, 4]), np.float32([0, 1, 0, 2])],
        {"num_groups": "2", "epsilon": "0.01"},
    ),
    *(
        (
            "Interpolate",
            "opset4",
            [np.int64([5, 9]), np.float32([1, 1]), np.int64([2, 3])],
            {
                "mode": mode,
                "shape_calculation_mode": "sizes",
                "coordinate_transformation_mode": coordinates,
                "nearest_mode": "round_prefer_ceil",
            },
        )
        for mode in ("nearest", "linear_onnx")
        for coordinates in ("half_pixel", "align_corners")
    ),
]


@pytest.mark.parametrize(("kind", "version", "constants", "attributes"), LAYERS)
def test_one_layer_there_and_back(
    kind: str, version: str, constants: Any, attributes: Any, tmp_path: Path
) -> None:
    """The graph, and the IR that is converted back from it, compute the same as the layer."""
    ir = IR()
    inputs = [ir.parameter("x", "1,4,6,6"), *map(ir.const, map(np.asarray, constants))]
    ir.result(ir.layer(kind, inputs, attributes, version=version))
    ir.save(tmp_path)
    source = deconv_ir.load(tmp_path / "model.xml")
    given = arrays_for(source)
    (wanted,) = source.run(given).values()
    convert(tmp_path / "model.xml", tmp_path / "graph.json", ONEDNN_JSON)
    convert(tmp_path / "graph.json", tmp_path / "again.xml", OPENVINO_XML)
    for name in ("graph.json", "again.xml"):
        model = deconv_ir.load(tmp_path / name, strict=True)
        beside = tmp_path / "graph.npz"
        arrays = dict(np.load(beside)) if beside.exists() else {}
        (data,) = set(model.inputs) - set(arrays)
        (found,) = model.run({**arrays, data: given["x"]}).values()
        np.testing.assert_allclose(found, wanted, 1e-5, 1e-6)


def test_what_a_graph_cannot_express_is_named(tmp_path: Path) -> None:
    """All types without a counterpart are named."""
    ir = IR()
    x = ir.parameter("x", "1,4,6,6")
    ir.result(ir.layer("Erf", [ir.layer("Sinh", [x])]))
    ir.save(tmp_path)
    with pytest.raises(UnsupportedError, match="Sinh has no counterpart; Erf has no counterpart"):
        convert(tmp_path / "model.xml", tmp_path / "graph.json", ONEDNN_JSON)
    assert not (tmp_path / "graph.json").exists()


@pytest.mark.parametrize(
    ("shape", "kind", "constants", "attributes", "words"),
    [
        ("?,4,6,6", "Interpolate", [np.int64([5, 9]), np.float32([1, 1]), np.int64([2, 3])],
         {}, "of other axes than the spatial ones"),
        ("1,4,6,6", "Interpolate", [np.int64([8, 9]), np.float32([1, 1]), np.int64([1, 3])],
         {}, "of other axes than the spatial ones"),
        ("1,4,?,6", "ConvolutionBackpropData", [np.ones((4, 2, 3, 3), np.float32)],
         {"strides": "2,2"}, "shapes that are not static"),
    ],
)  # fmt: skip
def test_shapes_that_a_graph_cannot_express(
    shape: str, kind: str, constants: Any, attributes: Any, words: str, tmp_path: Path
) -> None:
    if kind == "Interpolate":
        attributes = {
            "mode": "linear_onnx",
            "shape_calculation_mode": "sizes",
            "coordinate_transformation_mode": "half_pixel",
        }
    ir = IR()
    inputs = [ir.parameter("x", shape), *map(ir.const, constants)]
    version = "opset4" if kind == "Interpolate" else "opset1"
    ir.result(ir.layer(kind, inputs, attributes, version=version))
    with pytest.raises(UnsupportedError, match=words):
        convert(ir.save(tmp_path), tmp_path / "graph.json", ONEDNN_JSON)


def test_each_direction_needs_the_other_format(tmp_path: Path) -> None:
    """A file is not converted to its own format."""
    with pytest.raises(InputError, match="an IR already"):
        convert("samples/block/block.xml", tmp_path / "model.xml", OPENVINO_XML)
    with pytest.raises(InputError, match="a oneDNN Graph file already"):
        convert("samples/onednn/int8.json", tmp_path / "graph.json", ONEDNN_JSON)
