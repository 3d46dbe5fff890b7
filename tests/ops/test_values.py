"""Shapes computed in a graph: known elements are propagated, as intervals if dynamic."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from operation_forms import make
from support import IR

import deconv_ir
from deconv_ir.ir.dtypes import F32, I32, I64
from deconv_ir.ir.geometry import Interval
from deconv_ir.ir.graph import Layer
from deconv_ir.ir.infer import infer_layer
from deconv_ir.ir.operation import Context, TensorInfo
from deconv_ir.ir.shapes import element_count, is_static, static
from deconv_ir.ops import values

DIM = Interval(2, 8)
UNBOUNDED = Interval(3, None)


def value(kind: str, *inputs: TensorInfo, **attributes: str):
    return make(kind, **attributes).infer(inputs, Context())[0].value


def listed(*elements) -> TensorInfo:
    return TensorInfo((len(elements),), I64, elements)


SCALAR = TensorInfo((), I64, (0,))

CHAINS = [
    ("Gather-8", (listed(1, DIM, 5), listed(-2, 0), SCALAR), {}, (DIM, 1)),
    ("Gather-8", (listed(1, 2), listed(7), SCALAR), {}, (values.ANY,)),
    ("Gather-8", (listed(1, DIM), listed(1), SCALAR), {"batch_dims": "-1"}, (DIM,)),
    ("Concat", (listed(1, DIM), listed(7)), {"axis": "0"}, (1, DIM, 7)),
    ("Concat", (listed(DIM), TensorInfo((1,), I64)), {"axis": "0"}, (DIM, values.ANY)),
    ("Add", (listed(DIM), listed(3)), {}, (Interval(5, 11),)),
    ("Subtract", (listed(DIM, UNBOUNDED), listed(3)), {}, (Interval(-1, 5), Interval(0, None))),
    (
        "Multiply",
        (listed(DIM, UNBOUNDED), listed(-2)),
        {},
        (Interval(-16, -4), values.between(float("-inf"), -6)),
    ),
    (
        "Divide",
        (listed(DIM, UNBOUNDED, -7), listed(2)),
        {},
        (Interval(1, 4), Interval(1, None), -4),
    ),
    ("Divide", (listed(-7), listed(2)), {"m_pythondiv": "false"}, (-3,)),
    ("Divide", (listed(7), listed(0)), {}, (values.ANY,)),
    ("Maximum", (listed(DIM), listed(5)), {}, (Interval(5, 8),)),
    ("Minimum", (listed(DIM, UNBOUNDED), listed(5)), {}, (Interval(2, 5), Interval(3, 5))),
    ("FloorMod", (listed(DIM, 7), listed(3)), {}, (Interval(0, 2), 1)),
    ("Mod", (listed(-7), listed(3)), {}, (-1,)),
    ("Power", (listed(DIM), listed(2)), {}, (Interval(4, 64),)),
    ("Power", (listed(values.between(-2, 3)), listed(2)), {}, (values.ANY,)),
    ("Equal", (listed(DIM, -1, 3), listed(-1)), {}, (0, 1, 0)),
    ("ReduceProd", (listed(DIM, 3), listed(0)), {}, (Interval(6, 24),)),
    ("ReduceSum", (listed(DIM, UNBOUNDED), listed(0)), {"keep_dims": "true"}, (Interval(5, None),)),
    ("ReduceMax", (listed(DIM, 4), listed(0)), {}, (Interval(4, 8),)),
    ("ReduceMin", (listed(DIM, 4), listed(0)), {}, (Interval(2, 4),)),
    ("ReduceMean", (listed(DIM, 4), listed(0)), {}, (Interval(3, 6),)),
    ("Slice-8", (listed(1, DIM, 5, 6), listed(1), listed(-1), listed(1)), {}, (DIM, 5)),
    ("Unsqueeze", (TensorInfo((), I64, (DIM,)), listed(0)), {}, (DIM,)),
    ("Tile", (listed(1, DIM), listed(2)), {}, (1, DIM, 1, DIM)),
    ("Broadcast-3", (TensorInfo((), I64, (DIM,)), listed(2)), {}, (DIM, DIM)),
    (
        "Range-4",
        (SCALAR, TensorInfo((), I64, (3,)), TensorInfo((), I64, (1,))),
        {"output_type": "i64"},
        (0, 1, 2),
    ),
    ("Select", (TensorInfo((2,), None, (1, 0)), listed(1, 2), listed(8, DIM)), {}, (1, DIM)),
    ("Select", (TensorInfo((1,), None), listed(1), listed(9)), {}, (Interval(1, 9),)),
    ("Convert", (listed(DIM, 5),), {"destination_type": "i32"}, (DIM, 5)),
    ("Convert", (listed(300),), {"destination_type": "i8"}, None),
    ("Clamp", (listed(DIM, 9),), {"min": "3", "max": "6"}, (Interval(3, 6), 6)),
]


@pytest.mark.parametrize(("kind", "inputs", "attributes", "expected"), CHAINS)
def test_chain(kind: str, inputs, attributes, expected) -> None:
    assert value(kind, *inputs, **attributes) == expected


@pytest.mark.parametrize(
    "rule",
    [
        "ADD",
        "SUBTRACT",
        "MULTIPLY",
        "MAXIMUM",
        "MINIMUM",
        "FLOOR_DIVIDE",
        "TRUNCATE_DIVIDE",
        "FLOOR_MOD",
        "MOD",
        "POWER",
        "EQUAL",
        "NOT_EQUAL",
        "GREATER",
        "LESS_EQUAL",
    ],
)
def test_intervals_hold_every_result(rule: str) -> None:
    """For any two elements in the intervals, the result lies in the inferred interval."""
    function = getattr(values, rule)
    ends = (-3, -1, 0, 1, 2, 5)
    ranges = [Interval(a, b) for a, b in itertools.combinations(ends, 2)]
    for a, b in itertools.product(ranges, repeat=2):
        low, high = values.ends(function(a, b, None))
        for x, y in itertools.product(range(a.min, a.max + 1), range(b.min, b.max + 1)):
            exact = function.function(x, y)
            assert exact is None or low <= exact <= high, (a, b, x, y)


def test_a_split_shape_keeps_its_dims() -> None:
    """VariadicSplit-1; a part of unknown length is unknown, and so are those behind it."""
    dims = listed(DIM, 3, 5)
    parts = make("VariadicSplit").infer([dims, SCALAR, listed(1, -1)], Context())
    assert [part.value for part in parts] == [(DIM,), (3, 5)]
    parts = make("VariadicSplit").infer([dims, SCALAR, listed(1, values.ANY, 1)], Context())
    assert [part.value for part in parts] == [(DIM,), None, None]


def test_exact_results_wrap() -> None:
    assert values.ADD(2**31 - 1, 1, I32) == -(2**31)
    assert values.MULTIPLY(2**63 - 1, 2, I64) == -2


def test_a_dim_is_never_negative() -> None:
    assert values.as_dims((Interval(-3, 5), values.ANY, 4)) == (
        Interval(0, 5),
        Interval(0, None),
        4,
    )


def test_scales_travel() -> None:
    """ShapeOf -> Convert -> Multiply -> Floor -> Convert, as converters write sizes."""
    shape = listed(10, 7)
    (reals,) = make("Convert", destination_type="f32").infer([shape], Context())
    scale = TensorInfo((2,), F32, None, (1.5, 0.5))
    (scaled,) = make("Multiply").infer([reals, scale], Context())
    (floored,) = make("Floor").infer([scaled], Context())
    assert floored.reals == (15.0, 3.0)
    assert value("Convert", floored, destination_type="i64") == (15, 3)


def folded(kind: str, *inputs: TensorInfo, **attributes: str) -> tuple[TensorInfo, ...]:
    """Infer a layer as a graph does."""
    operation = make(kind, **attributes)
    return infer_layer(Layer(0, "layer", operation, operation.type), inputs, Context())


def reals(*elements: float) -> TensorInfo:
    return TensorInfo((len(elements),), F32, None, elements)


MATRIX = TensorInfo((2, 2), I64, (1, 2, 3, 4))
FOLDED = [
    # Constants, in any operation; values by hand.
    ("ScatterUpdate-3", (listed(0, 0, 0), listed(1, 2), listed(2, 8), SCALAR), {}, (0, 2, 8)),
    ("ScatterNDUpdate-3", (listed(1, 2, 3), TensorInfo((1, 1), I64, (2,)), listed(9)), {},
     (1, 2, 9)),
    ("ScatterElementsUpdate-12", (listed(1, 2), listed(0, 0), listed(5, 6), SCALAR),
     {"reduction": "sum"}, (12, 2)),
    ("CumSum-3", (listed(1, 2, 3), SCALAR), {}, (1, 3, 6)),
    ("Transpose", (MATRIX, listed(1, 0)), {}, (1, 3, 2, 4)),
    ("NonZero-3", (listed(0, 7, 5),), {"output_type": "i64"}, (1, 2)),
    ("OneHot", (listed(1), *(TensorInfo((), I64, (v,)) for v in (3, 1, 0))), {"axis": "-1"},
     (0, 1, 0)),
    ("Einsum-7", (listed(2, 3), listed(4, 5)), {"equation": "i,i->"}, (23,)),
    ("TopK-11", (listed(3, 9, 5), TensorInfo((), I64, (2,))),
     {"axis": "0", "mode": "max", "sort": "value", "index_element_type": "i64"}, (9, 5)),
    ("Ceiling", (reals(1.5, 2.0),), {}, (2.0, 2.0)),
    ("MatMul", (reals(2.0, 3.0), reals(4.0, 0.5)), {}, (9.5,)),
    ("Concat", (reals(2.0, 3.0), reals(4.5)), {"axis": "0"}, (2.0, 3.0, 4.5)),
    # Elements that are only moved may be unknown.
    ("ScatterUpdate-3", (listed(1, DIM, UNBOUNDED), listed(0), listed(7), SCALAR), {},
     (7, DIM, UNBOUNDED)),
    ("ScatterUpdate-3", (listed(1, 2, 3), listed(-1), listed(DIM), SCALAR), {}, (1, 2, DIM)),
    ("ScatterElementsUpdate-3", (listed(DIM, 2), listed(1), listed(4), SCALAR), {}, (DIM, 4)),
    ("SliceScatter-15", (listed(1, DIM, 3), listed(8), listed(0), listed(1), listed(1)), {},
     (8, DIM, 3)),
    ("GatherND-8", (listed(1, DIM), TensorInfo((1, 1), I64, (1,))), {}, (DIM,)),
    ("GatherElements-6", (listed(DIM, 2), listed(1, 0)), {"axis": "0"}, (2, DIM)),
    ("Roll-7", (listed(1, DIM, 3), listed(1), listed(0)), {}, (3, 1, DIM)),
    # Columns that are joined are not in the order of their inputs.
    ("Concat", (TensorInfo((2, 1), F32, None, (1.0, 2.0)),) * 2, {"axis": "1"}, None),
    # Combined elements, and an index that does not exist, are left unknown.
    ("ScatterElementsUpdate-12", (listed(DIM, 2), listed(1), listed(4), SCALAR),
     {"reduction": "sum"}, None),
    ("ScatterUpdate-3", (listed(1, 2), listed(9), listed(4), SCALAR), {}, None),
    ("ScatterUpdate-3", (listed(1, 2), listed(DIM), listed(4), SCALAR), {}, None),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "inputs", "attributes", "expected"), FOLDED)
def test_small_constants_are_folded(kind: str, inputs, attributes, expected) -> None:
    info = folded(kind, *inputs, **attributes)[0]
    assert (info.value if info.reals is None else info.reals) == expected
    if expected is not None:
        assert is_static(info.shape)
        assert element_count(static(info.shape)) == len(expected)


@pytest.mark.parametrize(
    ("kind", "inputs", "attributes"),
    [
        ("CumSum-3", (listed(*range(65)), SCALAR), {}),
        ("Sigmoid", (reals(*[0.5] * 17),), {}),
        # Pads of 2^40 elements, with a stride that leaves one.
        ("MaxPool", (TensorInfo((1, 1, 1), F32, None, (1.0,)),),
         {"kernel": "1", "strides": f"{1 << 41}", "pads_begin": f"{1 << 40}", "pads_end": "0"}),
        ("RandomUniform-8", (listed(2), reals(0.0), reals(1.0)),
         {"output_type": "f32", "global_seed": "0", "op_seed": "0"}),
    ],
)  # fmt: skip
def test_folding_is_bounded_and_repeatable(kind: str, inputs, attributes) -> None:
    info = folded(kind, *inputs, **attributes)[0]
    assert (info.value, info.reals) == (None, None)


def test_a_slice_ends_where_a_scatter_update_says(tmp_path) -> None:
    """The detector's export: the end of a StridedSlice is a ScatterUpdate of constants."""
    ir = IR()
    x = ir.parameter("x", "1,4,8")
    update = [ir.const(np.array(v, np.int64)) for v in ([0, 0, 0], [1], [2], 0)]
    end = ir.layer("ScatterUpdate", update, version="opset3", precision="I64")
    begin, step = (ir.const(np.array(v, np.int64)) for v in ([0, 0, 0], [1, 1, 1]))
    masks = {"begin_mask": "0,0,0", "end_mask": "1,0,1"}
    part = ir.layer("StridedSlice", [x, begin, end, step], masks, outputs=["1,3,8"])
    ir.result(part)
    model = deconv_ir.load(ir.save(tmp_path), warn=False)
    assert model.infer_shapes() == {"layer8": (1, 2, 8)}
    (finding,) = model.findings
    assert (finding.rule, finding.expected, finding.actual) == ("declared-dims", 2, 3)
