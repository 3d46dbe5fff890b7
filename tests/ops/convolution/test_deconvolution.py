"""The four operations: shapes, errors, layouts, execution."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pytest

from deconv_ir import ShapeError
from deconv_ir.ir.dtypes import parse_element_type
from deconv_ir.ir.geometry import Interval, PadMode
from deconv_ir.ir.operation import Context, Operation, TensorInfo
from deconv_ir.ir.options import Semantics
from deconv_ir.ir.shapes import format_shape, parse_shape
from deconv_ir.kernels import naive
from deconv_ir.ops import find_operation
from deconv_ir.ops.base import parse_attributes

CONTEXT = Context()


def make(kind: str, **attributes: str) -> Operation:
    cls = find_operation(kind)
    assert cls is not None
    operation, errors = parse_attributes(cls, attributes)
    assert not errors
    assert operation is not None
    return operation


def infer(
    operation: Operation, *inputs: str | TensorInfo, semantics: Semantics = Semantics.SPEC
) -> str:
    infos = [i if isinstance(i, TensorInfo) else TensorInfo(parse_shape(i)) for i in inputs]
    (info,) = operation.infer(infos, Context(semantics))
    return format_shape(info.shape)


def shape_input(*values: int | Interval) -> TensorInfo:
    return TensorInfo((len(values),), parse_element_type("i64"), values)


CONV, GROUP = "ConvolutionBackpropData", "GroupConvolutionBackpropData"
S2P1 = {"strides": "2,2", "pads_begin": "1,1", "pads_end": "1,1"}
P0 = {"strides": "2,2"}


# Shapes inferred by OpenVINO 2026.4 (closed intervals), unless the row states otherwise.
@pytest.mark.parametrize(
    ("kind", "attributes", "data", "filter_", "expected"),
    [
        (CONV, S2P1, "1,4,5,6", "4,6,3,3", "[1,6,9,11]"),
        (CONV, S2P1, "?,4,5,6", "4,6,3,3", "[?,6,9,11]"),
        (CONV, S2P1, "1,?,5,6", "4,6,3,3", "[1,6,9,11]"),
        (CONV, S2P1, "1,4,?,6", "4,6,3,3", "[1,6,1..,11]"),
        (CONV, S2P1, "2..5,4,2..5,1..", "4,6,3,3", "[2..5,6,3..9,1..]"),
        (CONV, S2P1, "1,4,..3,..1", "4,6,3,3", "[1,6,1..5,1]"),
        (CONV, P0, "1,4,..3,..1", "4,6,3,3", "[1,6,3..7,3]"),
        (CONV, S2P1, "...", "4,6,3,3", "[?,6,1..,1..]"),
        (CONV, S2P1, "1,4,5,6", "4,6,?,3", "[1,6,7..,11]"),
        (CONV, S2P1, "1,4,5,6", "4,2..6,1..3,2..", "[1,2..6,7..9,10..]"),
        (CONV, S2P1, "1,4,5,6", "...", "[1,?,7..,9..]"),
        (CONV, S2P1, "...", "...", "[?,?,?,?]"),
        (CONV, {"strides": "2,2", "pads_begin": "2,2", "pads_end": "2,2"},
         "1,4,1..9,5", "4,6,3,3", "[1,6,..15,7]".replace("..15", "0..15")),
        (CONV, {"strides": "1,3", "dilations": "2,3", "pads_begin": "1,1", "pads_end": "1,1"},
         "1,4,5,?", "4,6,3,3", "[1,6,7,5..]"),
        (CONV, {"strides": "2,2", "pads_begin": "1,1", "pads_end": "1,1",
                "output_padding": "1,3"}, "1,4,5,2..6", "4,6,3,3", "[1,6,10,6..14]"),
        (CONV, S2P1 | {"auto_pad": "same_upper"}, "1,4,5,2..6", "4,6,3,3", "[1,6,11,5..13]"),
        (CONV, {"strides": "2"}, "0,4,5", "4,6,3", "[0,6,11]"),
        (CONV, {"strides": "2,2,2,2"}, "1,4,2,2,2,2", "4,6,1,2,3,4", "[1,6,3,4,5,6]"),  # 4-D: S0
        (CONV, {}, "1,4,5,6", "4,6,3,3", "[1,6,7,8]"),  # absent attributes: 1, 1, 0
        (CONV, P0, "1,4,0,5", "4,6,3,3", "[1,6,1,11]"),  # semantics: 2*(0-1) + 3
        (GROUP, S2P1, "1,4,5,6", "2,2,3,3,3", "[1,6,9,11]"),
        (GROUP, S2P1, "1,4,5,6", "?,2,3,3,3", "[1,6,9,11]"),
        (GROUP, S2P1, "1,?,5,6", "?,2,3,3,3", "[1,?,9,11]"),
        (GROUP, S2P1, "1,?,5,6", "2,?,3,3,3", "[1,6,9,11]"),
        (GROUP, S2P1, "1,4..9,5,6", "1..3,2,3,3,3", "[1,6..9,9,11]"),
        (GROUP, S2P1, "1,2..6,5,6", "?,2,3,3,3", "[1,3..9,9,11]"),
        (GROUP, S2P1, "...", "2,2,3,3,3", "[?,6,1..,1..]"),
        (GROUP, S2P1, "...", "...", "[?,?,?,?]"),
    ],
)  # fmt: skip
def test_shapes_from_pads(
    kind: str, attributes: dict[str, str], data: str, filter_: str, expected: str
) -> None:
    assert infer(make(kind, **attributes), data, filter_) == expected


@pytest.mark.parametrize("auto_pad", ["explicit", "same_upper", "same_lower", "valid"])
@pytest.mark.parametrize(
    ("output_shape", "expected"),
    [
        (shape_input(9, 12), "[1,6,9,12]"),
        (shape_input(Interval(2, 8), 9), "[1,6,2..8,9]"),
        (shape_input(0, 12), "[1,6,0,12]"),
        (TensorInfo((2,), parse_element_type("i32")), "[1,6,?,?]"),
        (TensorInfo((Interval(),), None), "[1,6,?,?]"),
        (TensorInfo(None, None), "[1,6,?,?]"),
    ],
)
def test_output_shape_decides(auto_pad: str, output_shape: TensorInfo, expected: str) -> None:
    operation = make(CONV, **(S2P1 | {"auto_pad": auto_pad, "output_padding": "1,1"}))
    for semantics in Semantics:
        assert (
            infer(operation, "1,4,2..8,?", "4,6,3,3", output_shape, semantics=semantics) == expected
        )


ANY = parse_element_type("f32")


@pytest.mark.parametrize(
    ("kind", "attributes", "inputs", "rule", "words"),
    [
        (CONV, {}, ["1,4", "4,6"], "rank", "data must have rank 3 or greater, found [1,4]"),
        (CONV, {}, ["...", "4,6"], "rank", "filter must have rank 3 or greater, found [4,6]"),
        (GROUP, {}, ["...", "4,6,3"], "rank", "filter must have rank 4 or greater"),
        (CONV, {}, ["1,4,5", "4,6,3,3"], "rank", "filter must have rank 3, found [4,6,3,3]"),
        (GROUP, {}, ["1,4,5,5", "4,6,3,3"], "rank", "filter must have rank 5"),
        (CONV, {}, ["1,5,5,6", "4,6,3,3"], "channels", "data has 5, filter takes 4"),
        (CONV, {}, ["1,5..7,5,6", "4,6,3,3"], "channels", "data has 5..7, filter takes 4"),
        (GROUP, {}, ["1,4,5,6", "2,3,3,3,3"], "channels", "takes 2 groups * 3 = 6"),
        (GROUP, {}, ["1,4,5,6", "?,3,3,3,3"], "channels", "data has 4"),
        (GROUP, {}, ["1,8,5,6", "1..3,2,3,3,3"], "channels", "data has 8"),
        (CONV, {}, ["1,4,5,5", "4,6,0,3"], "empty-kernel", "empty on spatial axis 0"),
        (CONV, {"strides": "2"}, ["1,4,5,5", "4,6,3,3"], "attribute-length",
         "strides must have 2 elements, one for each spatial axis, found 1: 2"),
        (CONV, {"dilations": "1,1,1"}, ["1,4,5,5", "4,6,3,3"], "attribute-length", "dilations"),
        (CONV, {"pads_begin": "1"}, ["1,4,5,5", "4,6,3,3"], "attribute-length", "pads_begin"),
        (CONV, {"pads_end": "1"}, ["1,4,5,5", "4,6,3,3"], "attribute-length", "pads_end"),
        (CONV, {"output_padding": "1"}, ["1,4,5,5", "4,6,3,3"], "attribute-length", "output_p"),
        (CONV, {"pads_begin": "9,0"}, ["1,4,5,5", "4,6,3,3"], "negative-extent",
         "negative extent on spatial axis 0"),
        (CONV, {}, ["1,4,5,5", "4,6,3,3", shape_input(9, -2)], "output-shape-value",
         "output_shape must not be negative, found [9,-2]"),
        (CONV, {}, ["1,4,5,5", "4,6,3,3", shape_input(9, 9, 9)], "output-shape-length",
         "output_shape must have shape [2], found [3]"),
        (CONV, {}, ["1,4,5,5", "4,6,3,3", TensorInfo((2, 1), None)], "output-shape-length",
         "[2,1]"),
        (CONV, {}, ["1,4,5,5", "4,6,3,3", TensorInfo((), None)], "output-shape-length", "[]"),
        (CONV, {}, ["1,4,5,5", "4,6,3,3", TensorInfo((2,), ANY)], "output-shape-type", "integer"),
        (CONV, {}, [TensorInfo((1, 4, 5), ANY), TensorInfo((4, 6, 3), parse_element_type("f16"))],
         "element-type", "element types differ: data is f32, filter is f16"),
        (CONV, {}, [TensorInfo((1, 4, 5), parse_element_type("boolean")), "4,6,3"],
         "element-type", "numeric type, found boolean"),
        ("ConvTranspose", {}, [TensorInfo((1, 5, 4), parse_element_type("i32")), "3,6,4"],
         "element-type", "f32, bf16 or f16, found i32"),
        ("ConvTranspose", {"groups": "3"}, ["1,5,4", "3,6,4"], "groups",
         "4 input channels, which groups=3 does not divide"),
        ("ConvTranspose", {}, ["1,5,4", "3,6,5"], "channels", "data has 4, filter takes 5"),
        ("ConvTranspose", {}, ["1,5,4", "3,6,4", "5"], "bias-shape", "must have shape [6]"),
        ("ConvTranspose", {}, ["1,5,4", "3,6,4", "1,6"], "bias-shape", "found [1,6]"),
        ("ConvTranspose", {"output_padding": "1"}, ["1,5,5,4", "3,3,6,4"], "attribute-length",
         "output_padding"),
        ("ConvolutionBackwardData", {}, ["1,5,4", "3,6,4"], "attribute-missing",
         "dst_shape is missing"),
        ("ConvolutionBackwardData", {"dst_shape": "7,6"}, ["1,5,4", "3,6,4"],
         "output-shape-length", "must have 3 elements (batch and channels included), found 2: 7,6"),
        ("ConvolutionBackwardData", {"dst_shape": "2,7,6"}, ["1,5,4", "3,6,4"],
         "output-shape-value", "batch 2, the inputs give 1"),
        ("ConvolutionBackwardData", {"dst_shape": "1,7,5"}, ["1,5,4", "3,6,4"],
         "output-shape-value", "channels 5, the inputs give 6"),
    ],
)  # fmt: skip
def test_inputs_that_do_not_fit(
    kind: str, attributes: dict[str, str], inputs: list, rule: str, words: str
) -> None:
    with pytest.raises(ShapeError) as caught:
        infer(make(kind, **attributes), *inputs)
    assert caught.value.rule == rule
    assert words in caught.value.message


@pytest.mark.parametrize(
    ("attributes", "data", "filter_", "expected"),
    [
        # S3: NXC and XOI are the defaults; Y = 2*(5-1) + 3 - 1 - 0 + 1 = 11
        ({"strides": "2,2", "pads_begin": "1,1", "output_padding": "1,1"},
         "1,5,6,4", "3,3,8,4", "[1,11,13,8]"),
        ({"strides": "2,2", "data_format": "NCX"}, "1,4,5,6", "3,3,8,4", "[1,8,11,13]"),
        ({"strides": "2,2", "filter_format": "IOX"}, "1,5,6,4", "4,8,3,3", "[1,11,13,8]"),
        ({"strides": "2", "groups": "2"}, "1,5,4", "3,8,4", "[1,11,16]"),
        ({"strides": "2", "auto_pad": "SAME_UPPER", "pads_begin": "7"}, "1,5,4", "3,8,4",
         "[1,10,8]"),
        ({"strides": "2", "auto_pad": "SAME_LOWER", "output_padding": "1"}, "1,5,4", "3,8,4",
         "[1,11,8]"),
        ({"strides": "2", "auto_pad": "VALID", "pads_begin": "7"}, "1,5,4", "3,8,4", "[1,11,8]"),
        ({"strides": "2", "auto_pad": "None"}, "?,5..6,4", "3,8,4", "[?,11..13,8]"),
        # serialised graphs write 12 elements; the surplus is ignored
        ({"strides": "2", "output_padding": "1,0,0,0,0,0,0,0,0,0,0,0"}, "1,5,4", "3,8,4",
         "[1,12,8]"),
        ({"strides": "2"}, "...", "3,8,4", "[?,3..,8]"),
    ],
)  # fmt: skip
def test_conv_transpose_shapes(
    attributes: dict[str, str], data: str, filter_: str, expected: str
) -> None:
    assert infer(make("ConvTranspose", **attributes), data, filter_) == expected


def test_dst_shape_input_wins_over_the_attribute() -> None:
    operation = make("ConvolutionBackwardData", strides="2", dst_shape="1,11,6")
    assert infer(operation, "1,5,4", "3,6,4") == "[1,11,6]"
    assert infer(operation, "1,5,4", "3,6,4", shape_input(1, 12, 6)) == "[1,12,6]"
    unknown = TensorInfo((3,), parse_element_type("i32"))
    assert infer(operation, "1,5,4", "3,6,4", unknown) == "[1,?,6]"


@pytest.mark.parametrize("axis", range(4))
@pytest.mark.parametrize(
    ("kind", "data", "filter_", "words"),
    [
        (CONV, "1,4,5,6", "4,8,3,3",
         ["N of data = 1", "C_OUTPUT of filter = 8", "2*(5 - 1)", "2*(6 - 1)"]),
        (GROUP, "1,4,5,6", "2,2,8,3,3",
         ["N of data = 1", "2 * 8 = 16", "2*(5 - 1)", "2*(6 - 1)"]),
        ("ConvTranspose", "1,5,6,4", "3,3,8,4",
         ["N of data = 1", "2*(5 - 1)", "2*(6 - 1)", "C_OUTPUT of filter = 8"]),
        (CONV, "1,4,?,2..6", "4,8,3,3",
         ["N of data", "C_OUTPUT", "at least: Y = ", "from Y = "]),
    ],
)  # fmt: skip
def test_explanations_name_the_formula_of_each_axis(
    axis: int, kind: str, data: str, filter_: str, words: list[str]
) -> None:
    operation = make(kind, strides="2,2")
    infos = [TensorInfo(parse_shape(data)), TensorInfo(parse_shape(filter_))]
    explained = operation.explain(infos, CONTEXT, 0, axis)
    assert explained is not None
    assert words[axis] in explained


def run(operation: Operation, *inputs: np.ndarray, semantics: str = "spec") -> np.ndarray:
    context = Context(Semantics(semantics))
    (result,) = operation.execute(inputs, context)
    # a constant filter is packed in advance: the results are the same
    constants = [None, *inputs[1:]]
    prepared = operation.prepare(constants, context)
    assert prepared is not None
    (again,) = prepared([inputs[0], *[None] * (len(inputs) - 1)])
    assert np.array_equal(result, again)
    return result


def test_prepare_waits_until_the_filter_is_constant() -> None:
    operation = make("ConvTranspose", strides="2")
    filter_ = np.ones((3, 8, 4), np.float32)
    assert operation.prepare([None, None], CONTEXT) is None
    assert operation.prepare([None, filter_, None], CONTEXT) is None  # the bias is not constant
    assert operation.prepare([None, filter_], CONTEXT) is not None


LAYOUTS = list(itertools.product(["NXC", "NCX"], [False, True], [1, 2], [1, 2, 3], [False, True]))


@pytest.mark.parametrize(("data_format", "spatial_first", "groups", "spatial", "biased"), LAYOUTS)
def test_onednn_layouts_bias_and_groups(
    data_format: str, spatial_first: bool, groups: int, spatial: int, biased: bool
) -> None:
    rng = np.random.default_rng([spatial, groups])
    x = rng.integers(-4, 5, (2, 4, *range(3, 3 + spatial))).astype(np.float32)
    w = rng.integers(-4, 5, (4, 3, *range(2, 2 + spatial))).astype(np.float32)
    bias = rng.integers(-9, 10, 3 * groups).astype(np.float32) if biased else None
    strides, dilations, begin, end = (2, 1, 3)[:spatial], (1, 2, 1)[:spatial], 1, 0
    output = tuple(
        s * (n - 1) + (k - 1) * d + 1 - begin - end
        for n, k, s, d in zip(x.shape[2:], w.shape[2:], strides, dilations, strict=True)
    )
    expected = naive(
        x,
        w,
        strides=strides,
        dilations=dilations,
        groups=groups,
        pads_begin=(begin,) * spatial,
        output=output,
        bias=bias,
    )
    attributes = {
        "strides": ",".join(map(str, strides)),
        "dilations": ",".join(map(str, dilations)),
        "pads_begin": ",".join([str(begin)] * spatial),
        "pads_end": ",".join([str(end)] * spatial),
        "groups": str(groups),
        "data_format": data_format,
    }
    data = np.moveaxis(x, 1, -1) if data_format == "NXC" else x
    filter_ = np.moveaxis(w, (0, 1), (-1, -2)) if spatial_first else w
    wanted = np.moveaxis(expected, 1, -1) if data_format == "NXC" else expected
    forward = make("ConvTranspose", **attributes, filter_format="XOI" if spatial_first else "IOX")
    found = run(forward, *([data, filter_] if bias is None else [data, filter_, bias]))
    assert np.array_equal(found, wanted)
    if bias is None:
        backward = make(
            "ConvolutionBackwardData",
            **attributes,
            weights_format="XIO" if spatial_first else "OIX",
        )
        found = run(backward, data, filter_, np.array(wanted.shape, np.int32))
        assert np.array_equal(found, wanted)


@pytest.mark.parametrize("auto_pad", ["explicit", "same_upper", "same_lower", "valid"])
@pytest.mark.parametrize("output", [None, (4, 3), (13, 9), (40, 2)])
@pytest.mark.parametrize("groups", [1, 2])
@pytest.mark.parametrize("dtype", ["float32", "int16"])
def test_openvino_operations_run(
    auto_pad: str, output: tuple[int, int] | None, groups: int, dtype: str
) -> None:
    rng = np.random.default_rng(7)
    x = rng.integers(-4, 5, (2, 4, 5, 4)).astype(dtype)
    w = rng.integers(-4, 5, (4, 3, 3, 2)).astype(dtype)
    attributes = {
        "strides": "2,1", "dilations": "1,3", "pads_begin": "1,0", "pads_end": "0,2",
        "output_padding": "1,0", "auto_pad": auto_pad,
    }  # fmt: skip
    # F = 2*(5-1) + 3 = 11 and 1*(4-1) + (2-1)*3 + 1 = 7
    natural, padding, begin, end = (11, 7), (1, 0), (1, 0), (0, 2)
    pads: Sequence[int]
    if output is None:
        explicit = auto_pad == "explicit"
        pads = begin if explicit else (0, 0)
        ends = end if explicit else (0, 0)
        extents = tuple(
            f - b - e + p for f, b, e, p in zip(natural, pads, ends, padding, strict=True)
        )
    else:
        totals = [f - y + p for f, y, p in zip(natural, output, padding, strict=True)]
        upper = auto_pad == "same_upper"
        pads = [t - t // 2 if upper else t // 2 for t in totals]
        extents = output
    expected = naive(
        x, w, strides=(2, 1), dilations=(1, 3), groups=groups, pads_begin=pads, output=extents
    )
    inputs = [x, w if groups == 1 else w.reshape(2, 2, 3, 3, 2)]
    if output is not None:
        inputs.append(np.array(output, np.int64))
    operation = make(CONV if groups == 1 else GROUP, **attributes)
    assert np.array_equal(run(operation, *inputs), expected)


def test_empty_batch() -> None:
    operation = make(CONV, strides="2")
    found = run(operation, np.zeros((0, 4, 5), np.float32), np.ones((4, 6, 3), np.float32))
    assert found.shape == (0, 6, 11)


def test_auto_pad_is_one_enum_for_all() -> None:
    assert make("ConvTranspose", strides="1", auto_pad="None").auto_pad is PadMode.EXPLICIT


def test_types_without_arithmetic_are_told() -> None:
    from deconv_ir import UnsupportedError

    f8 = parse_element_type("f8e4m3").numpy()
    with pytest.raises(UnsupportedError, match="float8_e4m3fn"):
        run(make(CONV, strides="2"), np.ones((1, 2, 3), f8), np.ones((2, 2, 3), f8))
