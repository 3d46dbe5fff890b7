"""Shape rules for dynamic inputs, and their errors, over all families."""

from __future__ import annotations

import pytest

from deconv_ir.errors import ShapeError

# type, inputs, attributes -> shape of the (first) output.
SHAPES = [
    ("Gather-8", ("f32[?,3,5..7]", "i64[2,?]", 2), {}, "[?,3,2,?]"),
    ("Gather-8", ("f32[?,3]", "i64[2]", "i64[]"), {}, "[?,?]"),
    ("Gather-7", ("f32[2..5,3]", "i64[4..9,6]", 1), {"batch_dims": "1"}, "[4..5,6]"),
    ("Concat", ("f32[?,2..3]", "f32[4,1..]"), {"axis": "1"}, "[4,3..]"),
    ("Concat", ("f32[...]", "f32[4,1]"), {"axis": "1"}, "[4,1..]"),
    ("Split", ("f32[2,4..9]", 1), {"num_splits": "2"}, "[2,2..4] [2,2..4]"),
    ("VariadicSplit", ("f32[4..9]", 0, [1, -1]), {}, "[1] [3..8]"),
    ("Slice-8", ("f32[?,5..9]", [1, -2], [3, 99], [1, 1]), {}, "[0..2,2]"),
    ("Slice-8", ("f32[?]", [-5], [7], [1]), {}, "[0..5]"),
    ("Slice-8", ("f32[4..]", [6], [-(2**63)], [-1]), {}, "[4..7]"),
    ("Slice-8", ("f32[3,4]", "i64[1]", "i64[1]", [1], [1]), {}, "[3,0..4]"),
    ("Squeeze", ("f32[?,1,3]", [0]), {}, "[1,3]"),
    ("Squeeze", ("f32[?,1,3]",), {}, "[...]"),
    ("Squeeze", ("f32[2..,1,3]",), {}, "[2..,3]"),
    ("Squeeze-15", ("f32[?,1,3]", [0]), {"allow_axis_skip": "true"}, "[...]"),
    ("Unsqueeze", ("f32[?,3]", [1]), {}, "[?,1,3]"),
    ("Broadcast-3", ("f32[?]", "i64[2]"), {}, "[?,?]"),
    ("Tile", ("f32[2..3]", [2, 3]), {}, "[2,6..9]"),
    ("Transpose", ("f32[1,2..3,?]", [2, 0, 1]), {}, "[?,1,2..3]"),
    ("Transpose", ("f32[1,2]", "i64[2]"), {}, "[?,?]"),
    ("ReduceSum", ("f32[2,?,4]", [1]), {}, "[2,4]"),
    ("ReduceSum", ("f32[2,?,4]", "i64[1]"), {"keep_dims": "true"}, "[?,?,?]"),
    ("ReduceSum", ("f32[2,?,4]", "i64[1]"), {}, "[...]"),
    ("Range-4", ("i64[]", 5, 1), {"output_type": "i64"}, "[?]"),
    ("Pad-12", ("f32[2..5,?]", [1, -1], [0, 3]), {"pad_mode": "constant"}, "[3..6,2..]"),
    ("NonZero-3", ("f32[2..5,3]",), {}, "[2,0..15]"),
    ("Reshape", ("f32[2..6,4]", [-1, 2]), {"special_zero": "false"}, "[4..12,2]"),
    ("Eye-9", (0, 3, 0), {"output_type": "f32"}, "[0,3]"),
    (
        "TopK-11",
        ("f32[2,5]", "i64[]"),
        {"axis": "1", "mode": "max", "sort": "value"},
        "[2,0..5] [2,0..5]",
    ),
    ("TopK-11", ("f32[2,5..9]", 3), {"axis": "1", "mode": "max", "sort": "value"}, "[2,3] [2,3]"),
    ("OneHot", ("i64[?]", 5, "f32[]", "f32[]"), {"axis": "0"}, "[5,?]"),
    ("DepthToSpace", ("f32[1,8..9,?,3]",), {"block_size": "2", "mode": "depth_first"}, "[1,2,?,6]"),
    ("GatherND-8", ("f32[2..4,3,5]", "i64[3..,7,1]"), {"batch_dims": "1"}, "[3..4,7,5]"),
    ("Convolution", ("f32[?,3,2..9]", "f32[4,3,3]"), {"strides": "2"}, "[?,4,1..4]"),
    (
        "Convolution",
        ("f32[1,?,8]", "f32[4,3,?]"),
        {"pads_begin": "1", "pads_end": "1"},
        "[1,4,1..10]",
    ),
    ("Convolution", ("f32[...]", "f32[4,3,3,3]"), {}, "[?,4,1..,1..]"),
    (
        "Convolution",
        ("f32[1,3,?]", "f32[4,3,?]"),
        {"strides": "2", "auto_pad": "same_upper"},
        "[1,4,?]",
    ),
    ("GroupConvolution", ("f32[1,4,8]", "f32[2,3,2,3]"), {}, "[1,6,6]"),
    ("MaxPool", ("f32[1,2,?]",), {"kernel": "2", "strides": "2"}, "[1,2,1..]"),
    (
        "AvgPool",
        ("f32[1,2,7]",),
        {"kernel": "2", "strides": "2", "rounding_type": "ceil", "exclude-pad": "true"},
        "[1,2,4]",
    ),
    (
        "SpaceToDepth",
        ("f32[1,2,5..9,6]",),
        {"block_size": "2", "mode": "blocks_first"},
        "[1,8,3..4,3]",
    ),
    ("MatMul", ("f32[?,2,3]", "f32[4,3,5]"), {}, "[4,2,5]"),
    ("MatMul", ("f32[2..4,3]", "f32[3]"), {}, "[2..4]"),
    (
        "Interpolate-11",
        ("f32[1,2,3..5,?]", [1.5, 2.0], [2, 3]),
        {"mode": "nearest", "shape_calculation_mode": "scales"},
        "[1,2,4..7,?]",
    ),
    (
        "Interpolate-11",
        ("f32[1,2,3..5,?]", [7, 9], [2, 3]),
        {"mode": "cubic", "shape_calculation_mode": "sizes"},
        "[1,2,7,9]",
    ),
    (
        "GroupNormalization-12",
        ("f32[1,6,?]", "f32[6]", "f32[6]"),
        {"num_groups": "3", "epsilon": "0"},
        "[1,6,?]",
    ),
    (
        "GRUCell-3",
        ("f32[?,3]", "f32[2,4]", "f32[12,3]", "f32[12,4]", "f32[12]"),
        {"hidden_size": "4"},
        "[2,4]",
    ),
]


@pytest.mark.parametrize(("kind", "inputs", "attributes", "expected"), SHAPES)
def test_dynamic_shapes(infer, kind: str, inputs, attributes, expected: str) -> None:
    assert infer(kind, *inputs, **attributes) == expected


REJECTED = [
    ("Gather-8", ("f32[2,3]", "i64[2]", 2), {}, "axis 2 is outside a rank of 2"),
    ("Gather-7", ("f32[2,3]", "i64[4,1]", 1), {"batch_dims": "1"}, "batch axis 0 differs"),
    ("Gather-8", ("f32[2,3]", "f32[2]", 0), {}, "indices must be of an integer type"),
    ("Concat", ("f32[2,3]", "f32[3,3]"), {"axis": "1"}, r"input 1 \[3,3\] does not fit"),
    ("Concat", ("f32[2]", "i32[3]"), {"axis": "0"}, "element types differ"),
    ("Split", ("f32[5]", 0), {"num_splits": "2"}, "not a multiple of num_splits 2"),
    ("VariadicSplit", ("f32[5]", 0, [2, 2]), {}, "add up to 4, the axis has 5"),
    ("VariadicSplit", ("f32[5]", 0, [-1, -1]), {}, "but for one -1"),
    ("Slice-8", ("f32[5]", [0], [1], [0]), {}, "step 0 is 0"),
    ("Slice-8", ("f32[5]", [0, 0], [1], [1]), {}, "the lists must have one length"),
    ("Squeeze", ("f32[2,3]", [0]), {}, r"axis 0 of \[2,3\] is not 1"),
    ("Unsqueeze", ("f32[2,3]", [5]), {}, "axes 5 is outside a rank of 3"),
    ("Broadcast-3", ("f32[2]", [3]), {}, r"cannot fill target_shape \[3\]"),
    ("Broadcast-3", ("f32[2]", [-3]), {}, "must not be negative"),
    ("Broadcast-3", ("f32[2]", [3]), {"mode": "explicit"}, "needs the input axes_mapping"),
    ("Transpose", ("f32[2,3]", [0, 0]), {}, "not a permutation of 2 axes"),
    ("ReduceSum", ("f32[2,3]", [0, -2]), {}, "has an axis twice"),
    ("Range-4", (0, 5, 0), {"output_type": "i64"}, "has no end"),
    ("Pad", ("f32[3]", [-1], [0]), {"pad_mode": "edge"}, "must not be negative"),
    (
        "Pad-12",
        ("f32[3]", [3], [0]),
        {"pad_mode": "reflect"},
        "cannot pad axis 0 of 3 elements by 3",
    ),
    ("Pad-12", ("f32[3]", [-2], [-2]), {"pad_mode": "constant"}, "cut more of axis 0 than"),
    (
        "TopK",
        ("f32[3]", 4),
        {"axis": "0", "mode": "max", "sort": "none"},
        "the axis has 3 elements",
    ),
    ("ScatterNDUpdate-3", ("f32[3]", "i64[2,1]", "f32[3]"), {}, r"updates must have shape \[2\]"),
    (
        "ScatterUpdate-3",
        ("f32[3]", "f32[1]", "f32[1]", 0),
        {},
        "indices must be of an integer type",
    ),
    (
        "DepthToSpace",
        ("f32[1,6,2,2]",),
        {"block_size": "2", "mode": "depth_first"},
        "not a multiple of 4",
    ),
    ("CumSum-3", ("f32[3]", 1), {}, "axis 1 is outside a rank of 1"),
    ("ReverseSequence", ("f32[2,3]", "i64[3]"), {}, "seq_lengths must have 2 elements, found 3"),
    (
        "Convolution",
        ("f32[1,3,8]", "f32[4,2,3]"),
        {},
        "channels do not fit: data has 3, filter takes 2",
    ),
    ("Convolution", ("f32[1,3,8]", "f32[4,3,3,3]"), {}, "ranks do not fit"),
    (
        "Convolution",
        ("f32[1,3,2]", "f32[4,3,3]"),
        {},
        "the window does not fit the padded data on spatial axis 0",
    ),
    (
        "Convolution",
        ("f32[1,3,8]", "f32[4,3,3]"),
        {"strides": "1,1"},
        "strides must have 1 elements",
    ),
    ("GroupConvolution", ("f32[1,5,8]", "f32[2,3,2,3]"), {}, r"filter takes 2 groups \* 2 = 4"),
    ("MaxPool", ("f32[1,2,8]",), {"kernel": "2,2"}, "kernel must have 1 elements"),
    ("MatMul", ("f32[2,3]", "f32[4,5]"), {}, "inner dims differ"),
    (
        "MatMul",
        ("f32[2,4,3]", "f32[5,3,4]"),
        {},
        r"batch dims of a \[2,4,3\] and b \[5,3,4\] do not broadcast",
    ),
    (
        "GroupNormalization-12",
        ("f32[1,5]", "f32[5]", "f32[5]"),
        {"num_groups": "2", "epsilon": "0"},
        "5 channels do not make 2 groups",
    ),
    (
        "BatchNormInference-5",
        ("f32[1,5]", "f32[4]", "f32[5]", "f32[5]", "f32[5]"),
        {"epsilon": "0"},
        r"gamma must have shape \[5\]",
    ),
    (
        "LSTMCell-4",
        ("f32[2,3]", "f32[2,4]", "f32[2,4]", "f32[16,5]", "f32[16,4]", "f32[16]"),
        {"hidden_size": "4"},
        "W .* does not fit: 5 where 3 is needed",
    ),
    (
        "Interpolate-11",
        ("f32[1,2,3]", [2.0], [1, 2]),
        {"mode": "cubic", "shape_calculation_mode": "scales"},
        "2 axes, but 1 sizes or scales",
    ),
    (
        "Interpolate-11",
        ("f32[1,2,3]", [-2.0], [2]),
        {"mode": "cubic", "shape_calculation_mode": "scales"},
        "must be positive",
    ),
    (
        "FakeQuantize",
        ("f32[2]", "f32[]", "f32[]", "f32[]", "f32[]"),
        {"levels": "1"},
        "levels must be 2 or greater",
    ),
    ("Einsum-7", ("f32[2,3]", "f32[4,5]"), {"equation": "ij,jk->ik"}, "label 'j' is 3 and 4"),
]


@pytest.mark.parametrize(("kind", "inputs", "attributes", "message"), REJECTED)
def test_rejected(infer, kind: str, inputs, attributes, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        infer(kind, *inputs, **attributes)
