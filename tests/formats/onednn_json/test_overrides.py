"""Overrides of oneDNN Graph files, as benchdnn's options describe them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from onednn_forms import as_bytes, attention, deconvolution, op, tensor, windows

import deconv_ir
from deconv_ir import InputError, Overrides
from deconv_ir.ir.shapes import static

FILE = as_bytes(
    deconvolution(
        [1, 32, 28, 28], [32, 128, 3, 3], [1, 128, 16, 16], strides=[2, 2], pads_end=[41, 41]
    )
)
"""The structure of the public file of one ConvTranspose."""


def shapes(data: bytes = FILE, **options: Any) -> Any:
    """Return the shape of the output after overrides."""
    (found,) = deconv_ir.load(data, overrides=Overrides(**options)).infer_shapes().values()
    return found


@pytest.mark.parametrize(
    ("options", "wanted"),
    [
        # Extents worked out by hand: 2*27 + 3 = 57 less pads.
        ({"op_attrs": "0:auto_pad:SAME_UPPER"}, (1, 128, 56, 56)),
        ({"op_attrs": "0:auto_pad:VALID"}, (1, 128, 57, 57)),
        ({"op_attrs": "0:output_padding:1x1"}, (1, 128, 17, 17)),
        ({"in_shapes": "0:1x28x28x32", "op_attrs": "0:data_format:NXC"}, (1, 16, 16, 128)),
        ({"in_shapes": "1:3x3x128x32", "op_attrs": "0:weights_format:XOI"}, (1, 128, 16, 16)),
        (
            {
                "in_shapes": "0:2x8x5x5x5*acdeb+1:8x4x2x2x2*abcde",
                "op_attrs": "0:strides:1x1x1*dilations:1x1x1*pads_begin:1x1x1*pads_end:0x0x0",
            },
            (2, 4, 5, 5, 5),
        ),
        ({"mb": 5}, (5, 128, 16, 16)),
        ({"mb": 5, "in_shapes": "0:2x32x30x30"}, (5, 128, 20, 20)),
        ({"op_attrs": "0:pads_end:undef"}, (1, 128, 57, 57)),
    ],
)
def test_shapes_are_inferred_again(options: Any, wanted: Any) -> None:
    """Declared shapes of outputs no longer count after an override."""
    assert shapes(**options) == wanted


def test_a_tag_and_strides_change_the_layout() -> None:
    """The layout of an output can change too, since it is a boundary tensor."""
    model = deconv_ir.load(FILE, overrides=Overrides(in_shapes="0:*acdb+2:1x128x16x16*acdb"))
    (port,) = model.graph.layers[0].outputs
    assert dict(port.extras[0].attributes)["stride"] == "25088,1,896,32"
    up = model.graph.find("CONVTRANSPOSE_0")
    assert up is not None
    assert dict(up.outputs[0].extras[0].attributes)["stride"] == "32768,1,2048,128"


def test_element_types_change() -> None:
    """All floating-point tensors change, or some of them."""
    for dt, wanted in (("bf16", ["bf16"] * 2), ("0:f16+1:f16+2:f16", ["f16"] * 2)):
        model = deconv_ir.load(FILE, overrides=Overrides(dt=dt))
        assert [str(port.element_type) for port in model.inputs.values()] == wanted


def types(data: bytes, dt: str) -> dict[str, str]:
    """Return the element types of all tensors by their ids."""
    graph = deconv_ir.load(data, overrides=Overrides(dt=dt)).graph
    return {
        name: str(port.element_type)
        for layer in graph.layers
        for port in layer.outputs
        for name in port.names
    }


def ids(first: int, *shapes: list[int], dtypes: str = "") -> list[Any]:
    """Return tensors with consecutive ids from `first`."""
    found = dtypes.split() or ["f32"] * len(shapes)
    pairs = zip(shapes, found, strict=True)
    return [tensor(first + i, shape, dtype) for i, (shape, dtype) in enumerate(pairs)]


@pytest.mark.parametrize(
    ("kind", "inputs", "outputs", "attributes", "changed"),
    [
        # The tensors that change are those of benchdnn's flex_rewrite.cpp and of the documents.
        ("Add", [[2], [2]], [[2]], {}, "0 1 2"),
        (
            "BatchNormInference",
            [[1, 2, 3], *[[2]] * 4],
            [[1, 2, 3]],
            {"epsilon": 1e-5, "data_format": "NCX"},
            "0 5",
        ),
        (
            "BatchNormForwardTraining",
            [[1, 2, 3], *[[2]] * 4],
            [[1, 2, 3], *[[2]] * 4],
            {"epsilon": 1e-5, "data_format": "NCX"},
            "0 5",
        ),
        (
            "BatchNormTrainingBackward",
            [[1, 2, 3], [1, 2, 3], *[[2]] * 3],
            [[1, 2, 3], [2], [2]],
            {"epsilon": 1e-5, "data_format": "NCX"},
            "0 1 5",
        ),
        ("LayerNorm", [[2, 3], [3], [3]], [[2, 3], [2], [2]], {}, "0 3"),
        (
            "LayerNormBackward",
            [[2, 3]] * 2 + [[2]] * 2 + [[3]] * 2,
            [[2, 3], [3], [3]],
            {},
            "0 1 6",
        ),
        (
            "GroupNorm",
            [[1, 2, 3], [2], [2]],
            [[1, 2, 3], [1, 1], [1, 1]],
            {"groups": 1, "data_format": "NCX"},
            "0 3",
        ),
        ("RMSNorm", [[2, 3], [3]], [[2, 3]], {}, "0 1 2"),
        ("SoftMax", [[2, 3]], [[2, 3], [2, 1]], {"axis": 1}, "0 1"),
    ],
)
@pytest.mark.parametrize("dt", ["bf16", "f16"])
def test_parameters_of_normalizations_stay_f32(
    kind: str, inputs: Any, outputs: Any, attributes: Any, changed: str, dt: str
) -> None:
    """Parameters stay f32, as oneDNN requires and as in benchdnn; the linter reports nothing."""
    operation = op(0, kind, ids(0, *inputs), ids(len(inputs), *outputs), **attributes)
    found = types(as_bytes(operation), dt)
    assert " ".join(name for name, dtype in found.items() if dtype == dt) == changed
    assert {dtype for name, dtype in found.items() if name not in changed.split()} <= {"f32"}


def test_a_tensor_that_is_a_statistic_somewhere_stays_f32() -> None:
    """Other operations with the tensor read it as f32; integer tensors are not changed."""
    norm = op(0, "LayerNorm", ids(0, [2, 3], [3], [3]), ids(3, [2, 3]), keep_stats=False)
    double = op(1, "Multiply", ids(1, [3], [3]), ids(7, [3]))
    index = op(2, "GenIndex", ids(3, [2, 3]), ids(8, [2, 3], dtypes="s32"), axis=0)
    found = types(as_bytes(norm, double, index), "bf16")
    assert found == {"0": "bf16", "1": "f32", "2": "f32", "3": "bf16", "7": "bf16", "8": "i32"}


@pytest.mark.parametrize(
    ("kind", "dtypes", "attributes"),
    [
        ("TypeCast", ("f32", "bf16"), {}),
        ("Quantize", ("f32", "u8"), {"scales": [1.0], "zps": [0]}),
        ("Dequantize", ("u8", "f32"), {"scales": [1.0], "zps": [0]}),
    ],
)
def test_one_type_for_all_does_not_fit_conversions(kind: str, dtypes: Any, attributes: Any) -> None:
    """benchdnn refuses one type for conversions; single tensors can be changed."""
    one = op(4, kind, [tensor(0, [2], dtypes[0])], [tensor(1, [2], dtypes[1])], **attributes)
    with pytest.raises(InputError, match=rf"\({kind}, id 4\): dt: one element type for all"):
        deconv_ir.load(as_bytes(one), overrides=Overrides(dt="f16"))
    changed = 0 if dtypes[0] == "f32" and kind == "TypeCast" else 1
    if kind != "Quantize":
        assert types(as_bytes(one), f"{changed}:f16")[str(changed)] == "f16"


def test_kinds_change() -> None:
    """Add becomes Maximum; the shape of a scalar is written as - or scalar."""
    data = as_bytes(op(3, "Add", [tensor(0, [2]), tensor(1, [2])], [tensor(2, [2])]))
    for scalar in ("-", "scalar"):
        changes = Overrides(op_kind="3:Maximum", in_shapes=f"0:4+1:{scalar}")
        found = deconv_ir.load(data, overrides=changes).run(
            [np.array([1, 2, 3, 4], np.float32), np.float32(2.5)]
        )
        assert found["2"].tolist() == [2.5, 2.5, 3, 4]


def test_the_batch_of_a_quantized_pattern_leaves_weights_alone() -> None:
    """Weights are recognised by the property constant."""
    x, w, y = [2, 4, 5, 5], [4, 4, 1, 1], [2, 4, 5, 5]
    scale = {"scales": [1.0], "zps": [0], "qtype": "per_tensor"}
    data = as_bytes(
        op(0, "Dequantize", [tensor(0, x, "u8")], [tensor(1, x)], **scale),
        op(
            1, "Dequantize", [tensor(2, w, "s8", property_type="constant")], [tensor(3, w)], **scale
        ),
        deconvolution(x, w, y, first=10)
        | {"id": 2, "inputs": [tensor(1, x), tensor(3, w)], "outputs": [tensor(4, y)]},
        op(3, "Quantize", [tensor(4, y)], [tensor(5, y, "s8")], **scale),
    )
    assert shapes(data, mb=7) == (7, 4, 5, 5)


def test_the_batch_leaves_scales_and_what_is_broadcast_alone() -> None:
    """Only tensors of the full rank have a batch."""
    model = deconv_ir.load(as_bytes(*attention()), overrides=Overrides(mb=3))
    found = {name: port.shape for name, port in model.inputs.items()}
    alone = {name for name, shape in found.items() if shape is not None and shape[0] != 3}
    assert alone == {"6", "9", "13", "14"}
    assert model.outputs["16"].shape == (3, 2, 3, 4)


def test_the_batch_leaves_the_second_matrix_alone() -> None:
    data = as_bytes(op(0, "MatMul", [tensor(0, [4, 4]), tensor(1, [4, 4])], [tensor(2, [4, 4])]))
    assert shapes(data, mb=7) == (7, 4)


@pytest.mark.parametrize(
    ("kind", "inputs", "output", "wanted"),
    [
        ("ConvolutionBackwardData", [[2, 3, 5], [3, 4, 2]], [2, 4, 6], [5, 4, 6]),
        ("ConvolutionBackwardWeights", [[2, 3, 5], [2, 4, 4]], [4, 3, 2], [4, 3, 2]),
        ("AvgPoolBackward", [[2, 3, 4]], [2, 3, 5], [5, 3, 5]),
    ],
)
@pytest.mark.parametrize("stated", [True, False])
def test_shapes_that_only_the_output_states_hold_under_other_types_and_batches(
    kind: str, inputs: Any, output: Any, wanted: Any, stated: bool
) -> None:
    """Public files state such shapes; the batch is the first dim of tensors other than weights."""
    settings = windows([1], [0], [0], weights_format="OIX")
    if kind == "AvgPoolBackward":
        del settings["dilations"], settings["groups"], settings["weights_format"]
        settings |= {"kernel": [2], "exclude_pad": False}
    if stated:
        name = {"AvgPoolBackward": "src_shape", "ConvolutionBackwardData": "dst_shape"}
        settings[name.get(kind, "weights_shape")] = output
    data = as_bytes(op(0, kind, ids(0, *inputs), ids(9, output), **settings))
    assert shapes(data, dt="bf16") == tuple(output)
    assert shapes(data, mb=5) == tuple(wanted)
    assert not deconv_ir.load(data, overrides=Overrides(mb=5)).findings


def dequantized(axis: int, **members: Any) -> bytes:
    """Return a Dequantize of [2, 3], per channel."""
    scales = [0.5, 2.0, 4.0][: (2, 3)[axis]]
    zps = [1, 0, -1][: (2, 3)[axis]]
    given = {"qtype": "per_channel", "axis": axis, "scales": scales, "zps": zps, **members}
    data = tensor(0, [2, 3], "s8")
    return as_bytes(op(0, "Dequantize", [data], [tensor(1, [2, 3])], **given))


@pytest.mark.parametrize(
    ("axis", "options", "scales", "zps"),
    [
        (1, {"in_shapes": "0:2x7"}, [0.5, 2, 4, 0.5, 2, 4, 0.5], [1, 0, -1, 0, 0, 0, 0]),
        (-1, {"in_shapes": "0:4x2"}, [0.5, 2], [1, 0]),
        (0, {"in_shapes": "0:5x3"}, [0.5, 2, 0.5, 2, 0.5], [1, 0, 0, 0, 0]),
        (1, {"in_shapes": "0:2x0"}, [], []),
        (1, {"op_attrs": "0:scales:2"}, [2, 2, 2], [1, 0, -1]),
        (1, {"op_attrs": "0:axis:0"}, [0.5, 2], [1, 0]),
        (1, {"in_shapes": "0:1x4", "op_attrs": "0:zps:3"}, [0.5, 2, 4, 0.5], [3, 0, 0, 0]),
        (1, {"in_shapes": "0:1x4", "op_attrs": "0:zps:undef"}, [0.5, 2, 4, 0.5], [0] * 4),
    ],
)
def test_parameters_per_channel_fit_the_new_shape(
    axis: int, options: Any, scales: list[float], zps: list[int]
) -> None:
    """Scales repeat and zero points end in 0, as in benchdnn's sources."""
    model = deconv_ir.load(dequantized(axis), overrides=Overrides(**options))
    shape = static(model.inputs["0"].shape)
    data = np.arange(-5, np.prod(shape) - 5, dtype=np.int8).reshape(shape)
    (found,) = model.run({"0": data}).values()
    along = 0 if axis == 0 or options.get("op_attrs") == "0:axis:0" else 1
    wide = [-1 if d == along else 1 for d in range(2)]
    wanted = (data - np.array(zps, float).reshape(wide)) * np.array(scales, float).reshape(wide)
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize(
    ("options", "shape"),
    [
        ({}, [1, 3, 2]),
        ({"in_shapes": "1:5x4"}, [1, 5, 2]),
        ({"in_shapes": "1:2x4"}, [1, 2, 2]),
        ({"op_attrs": "0:shape:1x6x1"}, [1, 6, 1]),
    ],
)
@pytest.mark.parametrize("direct", [True, False])
def test_parameters_per_channel_fit_inner_tensors(
    options: Any, shape: list[int], direct: bool, tmp_path: Path
) -> None:
    """Two quantizations, of which the second is known once the first is."""
    given = {"qtype": "per_channel", "axis": -2, "scales": [0.5, 2.0, 4.0], "zps": [1, 0, -1]}
    data = as_bytes(
        op(3, "MatMul", ids(1, [3, 4], [4, 2]), ids(3, [3, 2])),
        op(
            0,
            "StaticReshape",
            ids(3, [3, 2]),
            ids(4, [1, 3, 2]),
            shape=[1, -1, 2],
            special_zero=False,
        ),
        op(1, "Quantize", ids(4, [1, 3, 2]), ids(5, [1, 3, 2], dtypes="s8"), **given),
        op(2, "Dequantize", ids(5, [1, 3, 2], dtypes="s8"), ids(6, [1, 3, 2]), **given),
    )
    model = deconv_ir.load(data, overrides=Overrides(**options))
    if not direct:
        deconv_ir.save(model, tmp_path / "saved.xml")
        model = deconv_ir.load(tmp_path / "saved.xml")
    rng = np.random.default_rng(5)
    arrays = {
        name: rng.integers(-9, 9, static(port.shape)).astype(np.float32)
        for name, port in model.inputs.items()
    }
    channels = shape[1]
    scales = np.resize([0.5, 2.0, 4.0], channels)[:, None]
    zps = np.pad([1, 0, -1], (0, 9))[:channels, None]
    product = (arrays["1"] @ arrays["2"]).reshape(shape)
    wanted = (np.clip(np.rint(product / scales + zps), -128, 127) - zps) * scales
    (found,) = model.run(arrays).values()
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"in_shapes": "0:1x99999999999999"}, "scales must have 99999999999999 elements"),
        ({"op_attrs": "0:axis:2"}, "axis"),
        ({"mb": 2}, "scales must have 3 elements"),
    ],
)
def test_parameters_that_do_not_fit_are_refused(options: Any, message: str) -> None:
    """Parameters are refused if they exceed the memory limit, or if the file is already invalid."""
    with pytest.raises(deconv_ir.DeconvError, match=message):
        deconv_ir.load(
            dequantized(1, scales=[1.0, 2.0]), overrides=Overrides(**options)
        ).infer_shapes()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"in_shapes": "9:1x2"}, "no tensor 9"),
        ({"op_attrs": "4:strides:1x1"}, "no operation 4"),
        ({"dt": "9:f16"}, "no tensor 9"),
        ({"op_kind": "4:Add"}, "no operation 4"),
        ({"in_shapes": "0"}, "expected ID:VALUE"),
        ({"in_shapes": "0:axb*"}, "numbers joined by x"),
        ({"in_shapes": "0:1x2*aab"}, "permutation"),
        ({"in_shapes": "0:1x2*abc"}, "2 dims, found tag 'abc'"),
        ({"in_shapes": "0:*1x2"}, "4 dims, found 2 strides"),
        ({"in_shapes": "0:1+0:2"}, "operation or tensor 0 is given twice"),
        ({"op_attrs": "0:strides"}, "expected ID:NAME:VALUE"),
        ({"dt": "f33"}, "unknown element type 'f33'"),
        ({"dt": "s8"}, "dt: expected f32, bf16 or f16 for all tensors, found 's8'"),
        ({"mb": -1}, "mb: expected a batch size, found -1"),
        ({"mb": "4"}, "mb: expected a batch size, found '4'"),
    ],
)
def test_overrides_that_do_not_fit_are_refused(options: Any, message: str) -> None:
    """The error names the option."""
    with pytest.raises(InputError, match=message.replace("*", r"\*")):
        deconv_ir.load(FILE, overrides=Overrides(**options))


def test_irs_have_no_overrides() -> None:
    """IRs accept none of these options."""
    with pytest.raises(InputError, match="not a oneDNN Graph file"):
        deconv_ir.load("samples/block/block.xml", overrides=Overrides(mb=2))
