"""`conv_transpose` against torch's conv_transposeNd, including windows that torch lacks."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import deconv_ir

from .oracle import conv_transpose_window, openvino_window, transposed
from .problems import Problem, array, openvino_problem, problems
from .runtimes import F16, F32, assert_close, bfloat16, torch_conv_transpose

pytestmark = pytest.mark.peers

_TOLERANCE = {"float64": 1e-13, "float32": F32, "float16": F16, "bfloat16": F16}


def _torch_can(problem: Problem) -> bool:
    """Return whether torch accepts the problem: equal pads, and output_padding below the stride."""
    steps = map(max, problem.strides, problem.dilations)
    return problem.pads_begin == problem.pads_end and all(
        o < s for o, s in zip(problem.output_padding, steps, strict=True)
    )


def _symmetric(problem: Problem) -> Problem:
    """Change the problem to one that torch accepts."""
    pads = tuple(
        min(b, (f - 1) // 2) for b, f in zip(problem.pads_begin, problem.natural, strict=True)
    )
    steps = map(max, problem.strides, problem.dilations)
    extra = tuple(min(o, s - 1) for o, s in zip(problem.output_padding, steps, strict=True))
    return replace(problem, pads_begin=pads, pads_end=pads, output_padding=extra)


def _call(problem: Problem, data: np.ndarray, filters: np.ndarray, **more: object) -> np.ndarray:
    return deconv_ir.conv_transpose(
        data,
        filters,
        strides=problem.strides,
        dilations=problem.dilations,
        pads_begin=problem.pads_begin,
        pads_end=problem.pads_end,
        output_padding=problem.output_padding,
        groups=problem.groups,
        **more,
    )


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16"])
@pytest.mark.parametrize("problem", [_symmetric(p) for p in problems(60, first=2000)], ids=str)
def test_torch_gives_the_same(problem: Problem, dtype: str) -> None:
    assert _torch_can(problem)
    kind = bfloat16 if dtype == "bfloat16" else dtype
    data, filters = problem.tensors(kind)
    bias = array(problem.seed + 2, (problem.channels,), kind)
    expected = torch_conv_transpose(problem, data, filters, bias)
    actual = _call(problem, data, filters, bias=bias)
    assert actual.dtype == np.dtype(kind)
    assert_close(actual, expected, _TOLERANCE[dtype], str(problem))


@pytest.mark.parametrize("problem", problems(100, first=3000), ids=str)
def test_any_pads_and_output_padding(problem: Problem) -> None:
    data, filters = problem.tensors()
    expected = transposed(problem, data, filters, openvino_window(problem, "spec"))
    assert_close(_call(problem, data, filters), expected, F32, str(problem))


@pytest.mark.parametrize("semantics", ["spec", "openvino"])
@pytest.mark.parametrize("problem", [openvino_problem(s) for s in range(4000, 4080)], ids=str)
def test_auto_pad_and_output_shape(problem: Problem, semantics: str) -> None:
    data, filters = problem.tensors()
    actual = _call(
        problem,
        data,
        filters,
        auto_pad=problem.auto_pad,
        output_shape=problem.output_shape,
        semantics=semantics,
    )
    expected = transposed(problem, data, filters, openvino_window(problem, semantics))
    assert_close(actual, expected, F32, str(problem))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64", "uint64"])
@pytest.mark.parametrize("problem", problems(8, first=6000), ids=str)
def test_small_integers_are_exact(problem: Problem, dtype: str) -> None:
    """The float64 oracle is exact for small integers, and wraps as NumPy does."""
    data, filters = problem.tensors(dtype)
    expected = transposed(problem, data, filters, openvino_window(problem, "spec"))
    wrapped = expected.astype(np.int64).astype(dtype)
    actual = _call(problem, data, filters)
    assert actual.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(actual, wrapped)


def test_the_oracles_agree_where_the_documents_do() -> None:
    """Without auto_pad and output_shape all documents state one formula."""
    for problem in problems(50):
        assert openvino_window(problem, "spec") == conv_transpose_window(problem)
