"""Layers of codes, drawn, and their results by definition."""

from __future__ import annotations

from typing import Any

import numpy as np

from deconv_ir.ir.quantization import Levels
from deconv_ir.kernels.activation import Activation, ActivationType
from deconv_ir.kernels.problem import Problem
from deconv_ir.kernels.quantized.kernel import QuantizedKernel
from deconv_ir.kernels.runtime.extension import compiled_module

ISAS = compiled_module().isas() if compiled_module() else [""]
# With Winograd, where it is possible.
ALGORITHMS = ["", "winograd"] if compiled_module() else [""]
# A machine of each set without the instruction for products of bytes.
PLAIN = {"avx2": "zen3", "avx512": "skylake-x"}
ZERO_POINTS = ["whole", "between", "beside", "far"]


def draw(seed: int) -> tuple[Problem, tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Draw a problem, extents of data, pads and extents of the output."""
    rng = np.random.default_rng(seed)
    axes = int(rng.integers(1, 4))
    groups, inputs = [(1, 1), (1, 7), (2, 4), (4, 1), (3, 3), (4, 2)][seed % 6]
    most = 700 if axes == 1 else 12

    def pick(low: int, high: int) -> tuple[int, ...]:
        return tuple(map(int, rng.integers(low, high, axes)))

    # Blocks of rows of a micro-kernel, of four channels, and parts of these.
    outputs = (1, 3, 4, 8, 12, 21)[int(rng.integers(6))]
    forward = bool(seed % 2)
    problem = Problem(groups, inputs, outputs, pick(1, 4), pick(1, 4), pick(1, 3), forward)
    # One position of data has code of its own; so have positions without gaps.
    extents = pick(1, most) if rng.random() < 0.8 else (1,) * axes
    if rng.random() < 0.2:
        ones = (1,) * axes
        return problem._replace(kernel=ones, strides=ones), extents, (0,) * axes, extents
    return problem, extents, pick(-1, 4), pick(1, most)


def definition(problem: Problem, x: Any, w: Any, pads: Any, output: Any) -> Any:
    """Return the sums of products by loops, in exact integers or float64."""
    out = np.zeros((x.shape[0], problem.groups * problem.channels_out, *output))
    for y in np.ndindex(*output):
        for k in np.ndindex(*problem.kernel):
            at: list[int] = []
            for i, (one, tap) in enumerate(zip(y, k, strict=True)):
                place = problem.dilations[i] * tap
                if problem.forward:
                    at.append(problem.strides[i] * one + place - pads[i])
                else:
                    from_, rest = divmod(one + pads[i] - place, problem.strides[i])
                    at.append(-1 if rest else from_)
            if not all(0 <= p < n for p, n in zip(at, x.shape[2:], strict=True)):
                continue
            data = x[(..., *at)].reshape(x.shape[0], problem.groups, problem.channels_in)
            taps = w[(..., *k)]
            if problem.forward:
                taps = taps.reshape(problem.groups, problem.channels_out, problem.channels_in)
            else:
                taps = taps.reshape(problem.groups, problem.channels_in, -1).swapaxes(1, 2)
            out[(..., *y)] += np.einsum("ngi,goi->ngo", data, taps).reshape(x.shape[0], -1)
    return out


def made(
    seed: int,
    *,
    adds: bool = False,
    activation: Activation | None = None,
    bias_scale: float = 1,
    zero_points: str = "",
    scratch_bytes: int = 1 << 26,
) -> tuple[Any, ...]:
    """Draw a kernel, its data, and the result by definition, without activation."""
    problem, extents, pads, output = draw(seed)
    rng = np.random.default_rng(seed)
    ends = (((0.0,), (2.55,)) if seed % 3 else ((-1.3,), (2.1,))) * 2
    if problem.channels_in == 1 and problem.groups == 4:
        ends = (tuple(rng.uniform(-2, -1, 4)), tuple(rng.uniform(1, 2, 4))) * 2
    levels = Levels((256, 255, 16)[seed % 3], *ends)
    outputs = problem.groups * problem.channels_out
    sides = (outputs, problem.channels_in)
    if not problem.forward:
        sides = (problem.groups * problem.channels_in, problem.channels_out)
    codes = rng.integers(-128, 128, (*sides, *problem.kernel)).astype(np.int8)
    scales = rng.uniform(0.001, 0.1, outputs)
    bias = bias_scale * rng.standard_normal(outputs)
    deltas = {
        "": lambda: np.zeros(outputs),
        "whole": lambda: rng.integers(-128, 129, outputs).astype(float),
        "between": lambda: rng.uniform(-128, 128, outputs),
        "beside": lambda: rng.uniform(-1e-5, 1e-5, outputs),
        "far": lambda: rng.uniform(-1e7, 1e7, outputs),
    }[zero_points]()
    kernel = QuantizedKernel(
        problem,
        codes,
        scales,
        levels,
        bias.astype(np.float32),
        activation or Activation(ActivationType.RELU),
        deltas=deltas,
        adds=adds,
        scratch_bytes=scratch_bytes,
    )
    data = (2, problem.groups * problem.channels_in, *extents)
    x = (2 * rng.standard_normal(data)).astype(np.float32)
    ones = (None,) * problem.axes
    low, high = (np.array(end)[(..., *ones)] for end in (levels.low, levels.high))
    level = np.rint(
        (np.clip(x.astype(float), low, high) - low) / (high - low) * (levels.number - 1)
    )
    values = level * ((high - low) / (levels.number - 1)) + low
    shape = (problem.groups, problem.channels_in, problem.channels_out)
    if problem.forward:
        own = [one[(..., None, *ones)] for one in (scales, deltas)]
    else:
        own = [
            np.broadcast_to(one.reshape(problem.groups, 1, -1), shape).reshape(
                -1, problem.channels_out, *(1 for _ in ones)
            )
            for one in (scales, deltas)
        ]
    weights = (codes + own[1]) * own[0]
    expected = definition(problem, values, weights, pads, output)
    expected += bias.astype(np.float32)[(..., *ones)]
    return kernel, x, pads, output, expected


def require_one_rounding(found: Any, expected: Any) -> None:
    rounded = expected.astype(np.float32)
    assert np.abs(found - rounded).max(initial=0) <= np.spacing(np.abs(rounded).max(initial=1))


def activation_of(kind: str, channels: int) -> Activation:
    slopes = tuple(np.linspace(-0.5, 1.5, channels).astype(np.float32).tolist())
    return {
        "none": Activation(),
        "relu": Activation(ActivationType.RELU),
        "clamp": Activation(ActivationType.CLAMP, low=-1.0, high=2.5),
        "leaky": Activation(ActivationType.LEAKY_RELU, slope=0.125),
        "slopes": Activation(ActivationType.LEAKY_RELU, slopes=slopes),
        "tanh": Activation(ActivationType.FUNCTION, function="tanh", in_numpy=np.tanh),
        "hswish": Activation(ActivationType.FUNCTION, function="hswish"),
    }[kind]
