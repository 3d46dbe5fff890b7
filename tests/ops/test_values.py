"""Shapes computed in a graph: known elements are propagated, as intervals if dynamic."""

from __future__ import annotations

import itertools

import pytest
from operation_forms import make

from deconv_ir.ir.dtypes import F32, I32, I64
from deconv_ir.ir.geometry import Interval
from deconv_ir.ir.operation import Context, TensorInfo
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
