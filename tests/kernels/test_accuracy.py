"""The numerical contract of docs/numerics.md: error bounds, exact zeros, the bias, locality."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from support import in_turn

from deconv_ir import kernels
from deconv_ir.ir.dtypes import Array
from deconv_ir.kernels import naive, pack_convolution, pack_deconvolution
from deconv_ir.kernels.runtime.extension import compiled_module

pytestmark = pytest.mark.skipif(
    compiled_module() is None, reason="the compiled kernel was not built"
)
ISAS = compiled_module().isas() if compiled_module() else []
EPSILON = float(np.finfo(np.float32).eps)


# Kind, data, filter, stride, dilation, pad, output: two taps a sub-convolution, three, and more.
LAYERS: dict[str, tuple[Any, ...]] = {
    "k4s2": (pack_deconvolution, (2, 16, 20, 23), (16, 12, 4, 4), 2, 1, 1, (40, 46)),
    "k3s1": (pack_deconvolution, (1, 24, 21, 30), (24, 16, 3, 3), 1, 1, 1, (21, 30)),
    "k3s1d2": (pack_convolution, (1, 16, 22, 19), (16, 16, 3, 3), 1, 2, 2, (22, 19)),
    "k4s2d3": (pack_deconvolution, (1, 9, 17, 26), (9, 8, 4, 4), 2, 3, 2, (38, 56)),
    "k3s2": (pack_deconvolution, (1, 16, 14, 19), (16, 8, 3, 3), 2, 1, 1, (28, 38)),
    "k7s1": (pack_convolution, (1, 12, 18, 18), (10, 12, 7, 7), 1, 1, 3, (18, 18)),
    "1d": (pack_deconvolution, (1, 32, 700), (32, 16, 4), 2, 1, 1, (1400,)),
    "1d k16s8": (pack_deconvolution, (1, 32, 90), (32, 16, 16), 8, 1, 4, (720,)),
    "3d": (pack_deconvolution, (1, 12, 7, 8, 9), (12, 8, 4, 4, 4), 2, 1, 1, (14, 16, 18)),
}


def spotted(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Draw normal values, and a few finite outliers of 1e3 to 1e12."""
    values = rng.standard_normal(shape)
    for size in np.logspace(3, 12, 8):
        values.reshape(-1)[rng.integers(values.size)] = size * rng.choice([-1, 1])
    return values


def scaled(rng: np.random.Generator, shape: tuple[int, ...]) -> Array:
    """Draw normal values, scaled for each channel by another factor."""
    values = rng.standard_normal(shape)
    sizes = np.exp(rng.uniform(-9, 9, (shape[1], *(1,) * (len(shape) - 2))))
    return values * sizes


DISTRIBUTIONS: dict[str, Callable[[np.random.Generator, tuple[int, ...]], Array]] = {
    "normal": lambda rng, shape: rng.standard_normal(shape),
    "relu": lambda rng, shape: np.maximum(rng.standard_normal(shape), 0),
    "sparse": lambda rng, shape: rng.standard_normal(shape) * (rng.random(shape) < 0.05),
    "spotted": spotted,
    "sparse and spotted": lambda rng, shape: spotted(rng, shape) * (rng.random(shape) < 0.3),
    "lognormal": lambda rng, shape: rng.lognormal(0, 3, shape) * rng.choice([-1, 1], shape),
    "scaled": scaled,
}


def exactly(layer: str, data: Array, weights: Array, groups: int = 1) -> Array:
    """Return the result in float64, computed tap by tap as in the documents."""
    kind, _, _, stride, dilation, pad, output = LAYERS[layer]
    return tap_by_tap(kind, data, weights, stride, dilation, pad, output, groups)


def tap_by_tap(
    kind: Any,
    data: Array,
    weights: Array,
    stride: int,
    dilation: int,
    pad: int,
    output: tuple[int, ...],
    groups: int = 1,
) -> Array:
    extents, kernel = data.shape[2:], weights.shape[2:]
    x = data.astype(np.float64).reshape(data.shape[0], groups, -1, *extents)
    w = weights.astype(np.float64).reshape(groups, -1, *weights.shape[1:])
    if kind is pack_convolution:
        w = np.moveaxis(w, 1, 2)  # [group, in, out, *K]
    whole = [
        stride * (e - 1) + dilation * (k - 1) + 1 for e, k in zip(extents, kernel, strict=True)
    ]
    if kind is pack_convolution:
        # The positions where windows begin, including those that begin in the padding.
        reach = [dilation * (k - 1) for k in kernel]
        assert stride == 1
        whole = [e + r for e, r in zip(extents, reach, strict=True)]
    full = np.zeros((data.shape[0], groups, w.shape[2], *whole))
    for tap in np.ndindex(*kernel):
        products = np.einsum("ngi...,gio->ngo...", x, w[(..., *tap)])
        first = [dilation * k for k in tap]
        if kind is pack_convolution:
            first = [r - f for r, f in zip(reach, first, strict=True)]
        where = tuple(
            slice(f, f + stride * (e - 1) + 1, stride) for f, e in zip(first, extents, strict=True)
        )
        full[(..., *where)] += products
    first_output = [
        pad if kind is pack_deconvolution else r - pad for r in reach_of(kind, full, extents)
    ]
    result = np.zeros((data.shape[0], groups * w.shape[2], *output))
    full = full.reshape(data.shape[0], -1, *whole)
    taken = [
        range(max(0, -f), min(y, n - f))
        for f, y, n in zip(first_output, output, whole, strict=True)
    ]
    to = tuple(slice(r.start, r.stop) for r in taken)
    of = tuple(slice(r.start + f, r.stop + f) for r, f in zip(taken, first_output, strict=True))
    result[(..., *to)] = full[(..., *of)]
    return result


def reach_of(kind: Any, full: Array, extents: tuple[int, ...]) -> list[int]:
    """Return how far windows reach beyond the data."""
    return [n - e for n, e in zip(full.shape[3:], extents, strict=True)]


def prepared(
    layer: str, weights: Array, algorithm: str, bias: Array = None
) -> Callable[[Array], Array]:
    kind, _, _, stride, dilation, pad, output = LAYERS[layer]
    axes = len(output)
    kernel = kind(
        weights,
        strides=(stride,) * axes,
        dilations=(dilation,) * axes,
        bias=bias,
        algorithm=algorithm,
    )
    return lambda data: kernel.run(data, (pad,) * axes, output)


# Taps of very different magnitude are summed directly; others may be transformed.
WEIGHTS: dict[str, Callable[[np.random.Generator, tuple[int, ...]], Array]] = {
    **{name: DISTRIBUTIONS[name] for name in ("normal", "scaled", "sparse", "lognormal")},
    "half are zeros": lambda rng, shape: rng.standard_normal(shape) * (rng.random(shape) < 0.5),
    "taps of many sizes": lambda rng, shape: (
        rng.standard_normal(shape) * 4 ** rng.uniform(0, 1, shape[2:])
    ),
}


def largest_around(sums: Array, step: int, far: tuple[int, ...]) -> Array:
    """Return the largest sum of the same sub-convolution that is at most `far` away."""
    for axis, most in enumerate(far, 2):
        padding = [(0, 0)] * sums.ndim
        padding[axis] = (most * step, most * step)
        wider = np.pad(sums, padding)
        places = [range(i * step, i * step + sums.shape[axis]) for i in range(2 * most + 1)]
        sums = np.max([wider.take(place, axis) for place in places], axis=0)
    return sums


@pytest.mark.parametrize(
    ("row", "of_weights"),
    in_turn(itertools.product(LAYERS, DISTRIBUTIONS), list(WEIGHTS), 2),
    ids=lambda v: v if isinstance(v, str) else "-".join(v),
)
def test_errors_are_those_of_the_sums_nearby(row: tuple[str, str], of_weights: str) -> None:
    layer, of_data = row
    rng = np.random.default_rng([len(layer), len(of_data), len(of_weights)])
    kind, data_shape, filter_shape, stride, dilation, pad, output = LAYERS[layer]
    data = DISTRIBUTIONS[of_data](rng, data_shape).astype(np.float32)
    weights = WEIGHTS[of_weights](rng, filter_shape).astype(np.float32)
    exact = exactly(layer, data, weights)
    sums = exactly(layer, np.abs(data), np.abs(weights))
    transformed = np.abs(prepared(layer, weights, "winograd")(data) - exact)
    direct = np.abs(prepared(layer, weights, "direct")(data) - exact)
    assert np.all(direct <= 64 * EPSILON * sums)

    axes = len(output)
    kernel = kind(
        weights, strides=(stride,) * axes, dilations=(dilation,) * axes, algorithm="winograd"
    )
    windows = kernel.plan(data.shape, (pad,) * axes, output).details.get("winograd")
    far = [outputs - 1 for outputs, _ in windows[-axes:]] if windows else [0] * axes
    step = dilation * (stride if kind is pack_deconvolution else 1)
    assert np.all(transformed <= 64 * EPSILON * largest_around(sums, step, tuple(far)))
    assert transformed.max() <= 4 * direct.max()


@pytest.mark.parametrize("layer", LAYERS)
def test_taps_of_very_different_size_are_summed_directly(layer: str) -> None:
    """Errors are relative to a window's largest tap, even in outputs that only see the smallest."""
    rng = np.random.default_rng(4)
    kind, data_shape, filter_shape, stride, dilation, pad, output = LAYERS[layer]
    axes = len(output)
    weights = rng.uniform(1, 1.1, filter_shape).astype(np.float32)
    algorithms = []
    for size in (1, 12, 18, 0):
        # The last tap of the last output channel, and the only other tap of its sub-convolution.
        others = weights.copy()
        where = (-1, slice(None)) if kind is pack_convolution else (slice(None), -1)
        others[(*where, *(-1,) * axes)] *= size
        kernel = kind(
            others, strides=(stride,) * axes, dilations=(dilation,) * axes, algorithm="winograd"
        )
        algorithms.append("winograd" in kernel.plan(data_shape, (pad,) * axes, output).details)
    assert algorithms == [True, True, False, False]


@pytest.mark.parametrize(
    ("row", "value"),
    in_turn(
        itertools.product(LAYERS, ("float32", "float16", "bfloat16"), ISAS),
        [2.0**14, np.inf, np.nan, 2.0**14, -np.inf],
        2,
    ),
    ids=lambda v: "-".join(v) if isinstance(v, tuple) else None,
)
def test_an_outlier_is_local_to_its_windows(
    monkeypatch: pytest.MonkeyPatch, row: tuple[str, str, str], value: float
) -> None:
    layer, element, isa = row
    monkeypatch.setenv("DECONV_IR_ISA", isa)
    dtype = np.dtype(getattr(np, element, None) or getattr(ml_dtypes, element))
    rng = np.random.default_rng(3)
    _, data_shape, filter_shape, stride, dilation, _, _ = LAYERS[layer]
    data = rng.standard_normal((2, *data_shape[1:])).astype(dtype)
    weights = (0.1 * rng.standard_normal(filter_shape)).astype(dtype)
    run = prepared(layer, weights, "winograd")
    plain = run(data)
    bad = data.copy()
    at = tuple(extent // 2 for extent in data_shape[2:])
    bad[(1, 4, *at)] = value
    with np.errstate(all="ignore"):
        result, exact = run(bad), exactly(layer, bad, weights)
        sees = exactly(layer, ~(np.abs(bad) < 2**13), weights != 0) > 0
    assert np.array_equal(result[0], plain[0]), "the other image"
    changed = np.argwhere(result != plain)[:, 2:]
    # The reach of the taps, plus two outputs: windows have three.
    far = stride * dilation * 4 + dilation * (filter_shape[2] - 1)
    centre = np.array(at) * (stride if LAYERS[layer][0] is pack_deconvolution else 1)
    assert np.all(np.abs(changed - centre) <= far)
    with np.errstate(all="ignore"):
        special = ~np.isfinite(exact)
        assert np.array_equal(result.astype(np.float64)[special], exact[special], equal_nan=True)
    # The error of outputs that do not see the value is not larger than without it.
    scale = np.abs(exactly(layer, data, weights)).max()
    unit = {"float32": EPSILON, "float16": 1e-3, "bfloat16": 8e-3}[element]
    error = np.abs(result.astype(np.float64)[~sees] - exact[~sees])
    assert error.max() <= 16 * unit * scale


def test_windows_of_outliers_are_summed_directly() -> None:
    """F(3, 2) adds data to outputs that do not depend on them, and subtracts them again."""
    rng = np.random.default_rng(0)
    data = rng.standard_normal((1, 64, 32, 32), dtype=np.float32)
    weights = rng.standard_normal((64, 32, 4, 4), dtype=np.float32)
    data[0, 17, 11, 13] = 1e9
    kernel = pack_deconvolution(weights, strides=(2, 2), dilations=(1, 1), algorithm="winograd")
    result = kernel.run(data, (1, 1), (64, 64))
    exact = tap_by_tap(pack_deconvolution, data, weights, 2, 1, 1, (64, 64))
    sees = np.abs(exact) > 1e6
    assert sees.sum() <= 32 * 16
    error = np.abs(result - exact)[~sees].max()
    assert error <= 16 * EPSILON * np.abs(exact[~sees]).max()


@pytest.mark.parametrize(
    ("kernel", "stride", "dilation", "pad", "extents"),
    [
        (4, 2, 3, 0, (9, 11)),
        (4, 2, 3, -5, (2, 9)),
        (6, 3, 2, 1, (7, 8)),
        (3, 1, 3, 0, (1, 2)),
        (2, 2, 1, -3, (6, 6)),
        (5, 1, 4, 3, (3, 12)),
    ],
)
def test_outputs_that_no_tap_reaches_are_their_bias(
    kernel: int, stride: int, dilation: int, pad: int, extents: tuple[int, int]
) -> None:
    for algorithm in ["direct", "winograd", "compiled"]:
        for bias in [None, 0.1]:
            rng = np.random.default_rng(1)
            data = rng.standard_normal((2, 12, *extents), dtype=np.float32)
            weights = rng.standard_normal((12, 9, kernel, kernel), dtype=np.float32)
            biases = None if bias is None else np.full(9, bias, np.float32)
            where = {"strides": (stride,) * 2, "dilations": (dilation,) * 2}
            output = tuple(stride * (x - 1) + dilation * (kernel - 1) + 6 - pad for x in extents)
            ones = np.ones_like(data), np.ones_like(weights)
            reached = tap_by_tap(pack_deconvolution, *ones, stride, dilation, pad, output)
            assert not np.all(reached)
            prepared_kernel = pack_deconvolution(weights, **where, bias=biases, algorithm=algorithm)
            result = prepared_kernel.run(data, (pad, pad), output)
            assert np.all(result[reached == 0] == np.float32(bias or 0))


@pytest.mark.parametrize("element", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("layer", LAYERS)
def test_outputs_that_see_only_zeros_are_their_bias(layer: str, element: str) -> None:
    """The data around them may be large: masked scores, sentinels, sparse data."""
    for density in [0.002, 0.01]:
        for bias in [None, -0.75]:
            dtype = np.dtype(getattr(np, element, None) or getattr(ml_dtypes, element))
            rng = np.random.default_rng(7)
            kind, data_shape, filter_shape, *_ = LAYERS[layer]
            data = np.where(rng.random(data_shape) < density, -3e4, 0).astype(dtype)
            data.reshape(-1)[:3] = -3e4
            weights = rng.standard_normal(filter_shape).astype(dtype)
            outs = filter_shape[1] if kind is pack_deconvolution else filter_shape[0]
            biases = None if bias is None else np.full(outs, bias, dtype)
            result = prepared(layer, weights, "winograd", biases)(data)
            sees = exactly(layer, data != 0, np.ones(filter_shape)) > 0
            assert np.count_nonzero(~sees) > 0
            assert np.all(result[~sees] == dtype.type(bias or 0))
            assert np.mean(result[sees] != dtype.type(bias or 0)) > 0.9


def test_the_smallest_numbers_are_no_zeros() -> None:
    """In a channel with small weights, data that are smaller still are not lost."""
    rng = np.random.default_rng(8)
    data = np.zeros((1, 16, 12, 12), np.float32)
    data[0, 3, 4:8, 4:8] = 1e-38
    data[0, 3, 4, 9] = 1e30
    weights = rng.uniform(0.5, 1, (16, 8, 4, 4)).astype(np.float32) * np.float32(2.0**39)
    weights[3] *= np.float32(2.0**-50)
    kernel = pack_deconvolution(weights, strides=(2, 2), dilations=(1, 1), algorithm="winograd")
    result = kernel.run(data, (1, 1), (24, 24))
    exact = tap_by_tap(pack_deconvolution, data, weights, 2, 1, 1, (24, 24))
    small = (exact > 0) & (exact < 1)
    assert small.sum() > 8
    assert np.all(np.abs(result - exact)[small] <= 1e-3 * exact[small])


@pytest.mark.parametrize(
    ("algorithm", "element"),
    [
        *(("direct", e) for e in ("float32", "float64", "float16", "bfloat16", "int32", "int8")),
        *(("winograd", e) for e in ("float32", "float16", "bfloat16")),
    ],
)
@pytest.mark.parametrize("layer", LAYERS)
def test_a_bias_is_added_last(layer: str, algorithm: str, element: str) -> None:
    """If the bias were the first value of the sums, each of them would be rounded: 20 to 48 ulp.

    Sums of f16 and bf16 are those of f32 layers with the same data, and are rounded once.
    Integer sums wrap, so their order does not matter.
    """
    dtype = np.dtype(getattr(np, element, None) or getattr(ml_dtypes, element))
    is_integer = dtype.kind == "i"
    rng = np.random.default_rng(2)
    _, data_shape, filter_shape, *_ = LAYERS[layer]
    scale = 40 if is_integer else 1
    data = (scale * rng.standard_normal(data_shape)).astype(dtype)
    weights = (scale * rng.standard_normal(filter_shape)).astype(dtype)
    outs = filter_shape[1] if LAYERS[layer][0] is pack_deconvolution else filter_shape[0]
    large = {"float16": 2e3, "int32": 2**31 - 5, "int8": 120}.get(element, 1e5)
    bias = np.full(outs, large).astype(dtype)
    result = prepared(layer, weights, algorithm, bias)(data)
    if element in ("float16", "bfloat16"):
        data, weights = data.astype(np.float32), weights.astype(np.float32)
        plain = prepared(layer, weights, algorithm)(data)
        expected = (plain + bias[0].astype(np.float32)).astype(dtype)
    else:
        plain = prepared(layer, weights, algorithm)(data)
        with np.errstate(over="ignore"):
            expected = plain + bias[0]
    assert np.array_equal(result, expected)


@pytest.mark.parametrize("algorithm", ["direct", "winograd", "compiled"])
@pytest.mark.parametrize("element", ["float32", "float64", "float16", "bfloat16"])
@pytest.mark.parametrize("size", [2, 3, 4])
def test_scaled_channels_leave_the_error_as_it_is(algorithm: str, element: str, size: int) -> None:
    """A channel is scaled by r and its weights by 1/r, as by folded batch normalisations."""
    for kind in [pack_deconvolution, pack_convolution]:
        for groups in [1, 2]:
            dtype = np.dtype(getattr(np, element, None) or getattr(ml_dtypes, element))
            rng = np.random.default_rng(size)
            ins, outs = 12, 10
            stride = 2 if size % 2 == 0 and kind is pack_deconvolution else 1
            data = rng.standard_normal((1, groups * ins, 12, 13)).astype(dtype)
            shape = (groups * ins, outs) if kind is pack_deconvolution else (groups * outs, ins)
            weights = rng.standard_normal((*shape, size, size)).astype(dtype)
            where = {"strides": (stride,) * 2, "dilations": (1, 1), "groups": groups}
            errors = []
            ratios = [1, 2.0**-20, 2.0**-10, 2.0**10, 2.0**20]  # 1e-6 to 1e6, exact in binary
            if element == "float16":
                ratios = [1, 2.0**-4, 2.0**-2, 2.0**2, 2.0**4]
            for ratio in ratios:
                some, others = data.copy(), weights.copy()
                some[:, 5] = (some[:, 5].astype(np.float64) * ratio).astype(dtype)
                if kind is pack_deconvolution:
                    others[5] = (others[5].astype(np.float64) / ratio).astype(dtype)
                else:
                    others[:outs, 5] = (others[:outs, 5].astype(np.float64) / ratio).astype(dtype)
                exact = tap_by_tap(kind, some, others, stride, 1, 1, (12, 13), groups)
                result = kind(others, **where, algorithm=algorithm).run(some, (1, 1), (12, 13))
                errors.append(np.abs(result.astype(np.float64) - exact).max())
            assert max(errors) <= 2 * errors[0]


@pytest.mark.parametrize("value", [np.inf, np.nan])
@pytest.mark.parametrize("element", ["float32", "float64"])
def test_infinities_meet_no_zeros_of_folded_sub_convolutions(value: float, element: str) -> None:
    """If kernel and stride leave zeros in the folded filter, other results keep their bits."""
    rng = np.random.default_rng(0)
    data = rng.standard_normal((2, 24, 9, 11)).astype(element)
    weights = rng.standard_normal((24, 1, 5, 7)).astype(element)
    where = {"strides": (2, 4), "dilations": (1, 1)}
    kernel = pack_deconvolution(weights, **where, algorithm="direct")
    output = (20, 44)
    assert kernel.plan(data.shape, (1, 1), output).details["fold"] == 4
    plain = kernel.run(data, (1, 1), output)
    data[1, 3, 4, 5] = value
    with np.errstate(all="ignore"):
        result = kernel.run(data, (1, 1), output)
        expected = naive(data, weights, **where, groups=1, pads_begin=(1, 1), output=output)
    bad = ~np.isfinite(expected)
    assert 0 < bad.sum() <= 5 * 7
    assert np.array_equal(result[bad], expected[bad], equal_nan=True)
    assert np.array_equal(result[~bad], plain[~bad])


@pytest.mark.parametrize("layer", LAYERS)
def test_bits_do_not_depend_on_threads_scratch_or_the_batch_where_windows_are_uneven(
    layer: str,
) -> None:
    rng = np.random.default_rng(5)
    _, data_shape, filter_shape, *_ = LAYERS[layer]
    data = spotted(rng, (3, *data_shape[1:])).astype(np.float32)
    weights = rng.standard_normal(filter_shape, dtype=np.float32)
    results = []
    run = prepared(layer, weights, "winograd")
    try:
        for threads in (1, 2, 5):
            kernels.set_threads(threads)
            results.append(run(data))
    finally:
        kernels.set_threads(None)
    results.append(np.concatenate([run(data[i : i + 1]) for i in range(3)]))
    for one, other in itertools.pairwise(results):
        assert np.array_equal(one, other)
    assert math.isfinite(float(results[0].max()))
