"""`conv_transpose` and ConvTranspose layers against onnxruntime's ConvTranspose."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

import deconv_ir

from .problems import Problem, array, problems
from .runtimes import F32, assert_close, onnxruntime_conv_transpose

pytestmark = pytest.mark.peers


def _onnx_problem(problem: Problem) -> Problem:
    """Change the problem to one that onnxruntime accepts: output_padding below the stride."""
    extra = tuple(
        min(o, s - 1) for o, s in zip(problem.output_padding, problem.strides, strict=True)
    )
    return replace(problem, output_padding=extra)


_PROBLEMS = [_onnx_problem(p) for p in problems(100, first=8000)]


@pytest.mark.parametrize("problem", _PROBLEMS, ids=str)
def test_explicit_pads(problem: Problem) -> None:
    data, filters = problem.tensors()
    bias = array(problem.seed + 2, (problem.channels,))
    expected = onnxruntime_conv_transpose(
        problem,
        {"pads": [*problem.pads_begin, *problem.pads_end]},
        data,
        filters,
        bias,
    )
    actual = deconv_ir.conv_transpose(
        data,
        filters,
        bias,
        strides=problem.strides,
        dilations=problem.dilations,
        pads_begin=problem.pads_begin,
        pads_end=problem.pads_end,
        output_padding=problem.output_padding,
        groups=problem.groups,
    )
    assert_close(actual, expected, F32, str(problem))


def _shaped(problem: Problem) -> Problem:
    """Add an output_shape that is not wider than the natural extent."""
    rng = random.Random(problem.seed)
    shape = tuple(
        rng.randint(1, f + o) for f, o in zip(problem.natural, problem.output_padding, strict=True)
    )
    auto_pad = rng.choice(("explicit", "same_upper", "same_lower"))
    return replace(problem, output_shape=shape, auto_pad=auto_pad)


@pytest.mark.parametrize("problem", [_shaped(p) for p in _PROBLEMS[:60]], ids=str)
def test_output_shape(problem: Problem) -> None:
    """ONNX splits total_padding as S0 does, which quotes it.

    There is one difference: in ONNX the larger half of an odd total lies at the end for SAME_UPPER,
    and at the beginning otherwise; by S0 to S2 it is the other way round. The test therefore asks
    ONNX for the other mode.
    """
    assert problem.output_shape is not None
    data, filters = problem.tensors()
    other = "SAME_LOWER" if problem.auto_pad == "same_upper" else "SAME_UPPER"
    expected = onnxruntime_conv_transpose(
        problem, {"auto_pad": other, "output_shape": list(problem.output_shape)}, data, filters
    )
    actual = deconv_ir.conv_transpose(
        data,
        filters,
        strides=problem.strides,
        dilations=problem.dilations,
        output_padding=problem.output_padding,
        groups=problem.groups,
        auto_pad=problem.auto_pad,
        output_shape=problem.output_shape,
    )
    assert_close(actual, expected, F32, str(problem))


def test_an_odd_total_by_hand() -> None:
    """F = 8, output_shape 5, so the total is 3: 1 and 2, or 2 and 1."""
    data = np.array([[[1, 2, 3]]], np.float32)
    filters = np.array([[[1, 10, 100, 1000]]], np.float32)
    problem = replace(
        problems(1, spatial=1)[0],
        groups=1,
        strides=(2,),
        dilations=(1,),
        output_padding=(0,),
    )
    outputs = {
        word: onnxruntime_conv_transpose(
            problem, {"auto_pad": word, "output_shape": [5]}, data, filters
        )
        .ravel()
        .tolist()
        for word in ("SAME_UPPER", "SAME_LOWER")
    }
    assert outputs == {
        "SAME_UPPER": [10, 102, 1020, 203, 2030],
        "SAME_LOWER": [102, 1020, 203, 2030, 300],
    }
