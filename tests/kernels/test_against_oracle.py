"""The kernels against loops over the definition, in every dimension of the problem."""

from __future__ import annotations

import numpy as np
import pytest
from support import in_turn

from deconv_ir.errors import UnsupportedError
from deconv_ir.kernels import naive, pack_deconvolution


def test_random_problems(draw_case, algorithm, dtype):
    for axes in [1, 2, 3, 4]:
        case = draw_case(1000 * axes + dtype.num, dtype, axes)
        case.check(case.actual(algorithm=algorithm), algorithm)


@pytest.mark.parametrize("element", ["float32", "float64", "float16", "int8", "int64"])
def test_many_channels(draw_case, algorithm, element):
    for seed in range(3):
        case = draw_case(seed, np.dtype(element), 1, channels=150)
        case.check(
            case.actual(algorithm=algorithm, scratch_bytes=(64 << 20, 200_000)[seed % 2]), algorithm
        )


@pytest.mark.parametrize(
    "fixed",
    [
        {"strides": (1, 1), "dilations": (1, 1)},
        {"kernel": (2, 2), "strides": (2, 2), "dilations": (1, 1), "pads_begin": (0, 0)},
        {"kernel": (1, 1), "strides": (3, 2)},
        {"kernel": (3, 3), "strides": (1, 1), "dilations": (2, 3)},
        {"kernel": (4, 4), "strides": (2, 2), "dilations": (2, 2)},
        {"kernel": (5, 2), "strides": (7, 5)},
        {"pads_begin": (-9, -1)},
        {"pads_begin": (40, 0)},
        {"output": (0, 3)},
        {"output": (60, 50)},
        {"output": (1, 1), "pads_begin": (3, 2)},
    ],
    ids=str,
)
def test_named_problems(draw_case, algorithm, fixed):
    for seed in range(3):
        case = draw_case(seed, np.dtype(np.float32), 2, **fixed)
        case.check(case.actual(algorithm=algorithm), algorithm)


def test_tiling_does_not_change_the_result(draw_case, dtype, algorithm):
    for scratch_bytes in [1, 500, 20_000]:
        case = draw_case(scratch_bytes % 3, dtype)
        case.check(case.actual(algorithm=algorithm, scratch_bytes=scratch_bytes), algorithm)


def test_one_filter_serves_all_extents(draw_case, algorithm):
    first = draw_case(3, np.dtype(np.float32), 2)
    kernel = pack_deconvolution(first.filter, **first.static, algorithm=algorithm)
    rng = np.random.default_rng(0)
    for extents in [(1, 1), (9, 2), (2, 9), (30, 31)]:
        first.data = rng.standard_normal((2, first.data.shape[1], *extents)).astype(np.float32)
        first.output = tuple(3 * e + 5 for e in extents)
        first.answer = first.magnitude = None
        first.check(kernel.run(first.data, first.pads_begin, first.output), algorithm)


VIEWS = ["transposed", "reversed", "strided", "broadcast", "channels"]


@pytest.mark.parametrize(
    ("view", "element"), in_turn(VIEWS, ["float32", "float64", "bfloat16", "int8", "uint64"], 3)
)
def test_data_of_any_strides(draw_case, dtype_of, element, algorithm, view):
    dtype = dtype_of(element)
    case = draw_case(5, dtype, 2, dilations=(1, 2))
    rng = np.random.default_rng(1)
    n, c = 2, case.data.shape[1]
    make = {
        "transposed": lambda a: a((n, 5, 6, c)).transpose(0, 3, 1, 2),
        "reversed": lambda a: a((n, c, 5, 6))[..., ::-1, ::-1],
        "strided": lambda a: a((n, c, 10, 12))[..., ::2, ::2],
        "broadcast": lambda a: np.broadcast_to(a((1, c, 1, 6)), (n, c, 5, 6)),
        "channels": lambda a: a((n, 2 * c, 5, 6))[:, ::-2],
    }[view]
    case.data = make(lambda shape: rng.integers(0, 100, shape).astype(dtype))
    case.output = (11, 14)
    case.check(case.actual(algorithm=algorithm), algorithm)


def test_result_goes_where_it_is_told(draw_case, algorithm):
    case = draw_case(8, np.dtype(np.float32), 2)
    kernel = pack_deconvolution(case.filter, **case.static, algorithm=algorithm)
    shape = case.expected().shape
    out = np.full(tuple(2 * s for s in shape), 7, np.float32)[tuple(slice(0, s) for s in shape)]
    assert kernel.run(case.data, case.pads_begin, case.output, out) is out
    case.check(out, algorithm)


def test_oracle_by_hand():
    # full = 1 10 102 1020 203 2030 300 3000: the probe of the semantics table.
    data = np.array([[[1.0, 2.0, 3.0]]])
    kernel = np.array([[[1.0, 10.0, 100.0, 1000.0]]])
    result = naive(
        data, kernel, strides=(2,), dilations=(1,), groups=1, pads_begin=(-1,), output=(10,)
    )
    assert result.ravel().tolist() == [0, 1, 10, 102, 1020, 203, 2030, 300, 3000, 0]


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"strides": (1,)}, ValueError, "strides must have 2 entries"),
        ({"strides": (0, 1)}, ValueError, "strides must be at least 1"),
        ({"dilations": (1, -1)}, ValueError, "dilations must be at least 1"),
        ({"groups": 3}, ValueError, "4 input channels do not make 3 groups"),
        ({"filter": np.ones((4, 2), np.float32)}, ValueError, "rank 3 or greater"),
        ({"filter": np.ones((4, 2, 0, 1), np.float32)}, ValueError, "must be positive"),
        ({"filter": np.ones((4, 2, 3, 3), bool)}, UnsupportedError, "bool"),
        ({"filter": np.ones((4, 2, 3, 3), complex)}, UnsupportedError, "complex"),
        ({"bias": np.ones(3, np.float32)}, ValueError, r"bias must have shape \[2\]"),
        ({"bias": np.ones(2)}, TypeError, "bias is float64"),
        ({"algorithm": "nothing"}, ValueError, "unknown algorithm"),
    ],
)
def test_rejects_on_packing(change, error, message):
    arguments = {
        "filter": np.ones((4, 2, 3, 3), np.float32),
        "strides": (1, 1),
        "dilations": (1, 1),
    }
    with pytest.raises(error, match=message):
        pack_deconvolution(**arguments | change)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"data": np.ones((1, 4, 5), np.float32)}, ValueError, "data must have rank 4"),
        ({"data": np.ones((1, 3, 5, 5), np.float32)}, ValueError, "must have 4 channels, not 3"),
        ({"data": np.ones((1, 4, 5, 5))}, TypeError, "data is float64, filter float32"),
        ({"pads_begin": (0,)}, ValueError, "pads_begin must have 2"),
        ({"output": (-1, 3)}, ValueError, "output must be at least 0"),
        ({"out": np.ones((1, 2, 6, 7), np.float32)}, ValueError, "out must be float32"),
    ],
)
def test_rejects_on_running(change, error, message):
    kernel = pack_deconvolution(np.ones((4, 2, 3, 3), np.float32), strides=(1, 1), dilations=(1, 1))
    arguments = {
        "data": np.ones((1, 4, 5, 5), np.float32),
        "pads_begin": (0, 0),
        "output": (7, 7),
    }
    with pytest.raises(error, match=message):
        kernel.run(**arguments | change)
