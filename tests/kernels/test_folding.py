"""Layers with few output channels: sub-convolutions of the last axis become channels."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from kernels.cases import ISAS
from support import IR

import deconv_ir
from deconv_ir.kernels import naive_convolution, pack_convolution, pack_deconvolution
from deconv_ir.kernels.native import fold_filter
from deconv_ir.kernels.problem import Problem
from deconv_ir.kernels.runtime.extension import compiled_module

needs_compiled = pytest.mark.skipif(
    compiled_module() is None, reason="the compiled kernel was not built"
)


def test_folded_filter():
    # Taps 0 to 4 of stride 2: shifts of sub-convolution 0 are taps 0, 2, 4; those of 1 are 1, 3.
    weights = np.arange(1.0, 11.0).reshape(1, 2, 5)
    problem = Problem(1, 1, 2, (5,), (2,), (1,))
    folded = fold_filter(problem, weights)
    assert folded.tolist() == [[[1, 3, 5], [6, 8, 10], [2, 4, 0], [7, 9, 0]]]


# Kernel, stride and output channels.
FOLDED = [
    *[(4, 2, 1), (4, 2, 2), (9, 4, 1), (8, 4, 2), (16, 8, 1), (7, 3, 1), (3, 3, 2)],
    *[(3, 4, 1), (5, 2, 1), (6, 4, 2), (11, 6, 2)],
]
GEOMETRIES = list(itertools.product(FOLDED, [-3, 0, 1, 2, 5, 11], [1, 2, 3]))


COMPUTERS = list(itertools.product(ISAS, ["float32", "float64", "float16", "int16"]))


@needs_compiled
@pytest.mark.parametrize(("isa", "element"), COMPUTERS)
def test_against_oracle(draw_case, random_values, monkeypatch, isa, element):
    """Each element type on each instruction set takes every fourth geometry, others in turn."""
    monkeypatch.setenv("DECONV_IR_ISA", isa)
    rng = np.random.default_rng(0)
    dtype = np.dtype(element)
    turn = COMPUTERS.index((isa, element))
    for seed, ((kernel, stride, outs), pad, axes) in list(enumerate(GEOMETRIES))[turn % 4 :: 4]:
        case = draw_case(
            seed,
            dtype,
            axes,
            kernel=(1 + seed // 5 % 2,) * (axes - 1) + (kernel,),
            strides=(2,) * (axes - 1) + (stride,),
            dilations=(1,) * axes,
            pads_begin=(1,) * (axes - 1) + (pad,),
        )
        groups = 1 + seed % 2
        extents = case.data.shape[2:]
        case.groups = groups
        case.data = random_values(rng, (1 + seed % 3, 5 * groups, *extents), dtype)
        case.filter = random_values(rng, (5 * groups, outs, *case.filter.shape[2:]), dtype)
        case.bias = random_values(rng, (outs * groups,), dtype) if seed % 3 else None
        for scratch_bytes in (64 << 20, 20_000):
            arguments = {"scratch_bytes": scratch_bytes, "algorithm": "compiled"}
            folded = pack_deconvolution(case.filter, **case.static, **arguments)
            plan = folded.plan(case.data.shape, case.pads_begin, case.output)
            if case.data.size and 0 not in case.output:
                assert plan.details["fold"] == stride
            case.check(plan.run([case.data])[0])


@needs_compiled
@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_data_that_are_not_finite_do_not_meet_added_zeros(draw_case, value):
    rng = np.random.default_rng(0)
    weights = rng.integers(1, 5, (6, 1, 9, 9)).astype(np.float32)
    data = rng.integers(1, 5, (1, 6, 5, 7)).astype(np.float32)
    kernel = pack_deconvolution(weights, strides=(4, 4), dilations=(1, 1), algorithm="compiled")
    assert kernel.plan(data.shape, (4, 4), (20, 28)).details["fold"] == 4
    plain = pack_deconvolution(weights, strides=(4, 4), dilations=(1, 1), algorithm="im2col")
    for _ in range(2):
        data[0, 2, 3, 4] = value
        expected = plain.run(data, (4, 4), (20, 28))
        assert not np.isfinite(expected).all()
        np.testing.assert_array_equal(kernel.run(data, (4, 4), (20, 28)), expected)
        data[0, 2, 3, 4] = 1
        expected = plain.run(data, (4, 4), (20, 28))
        np.testing.assert_array_equal(kernel.run(data, (4, 4), (20, 28)), expected)


@pytest.mark.parametrize(("kernel", "stride", "outs"), [(4, 2, 2), (8, 4, 1), (9, 4, 1)])
def test_a_convolution_has_nothing_to_fold(kernel: int, stride: int, outs: int) -> None:
    """The same kernel and stride fold a transposed convolution."""
    rng = np.random.default_rng(kernel)
    weights = rng.standard_normal((outs, 16, 3, kernel), dtype=np.float32)
    data = rng.standard_normal((2, 16, 5, 41), dtype=np.float32)
    static = {"strides": (1, stride), "dilations": (1, 1), "groups": 1}
    output = (3, (41 - kernel) // stride + 1)
    expected = naive_convolution(data, weights, pads_begin=(0, 0), output=output, **static)
    found = pack_convolution(weights, **static).run(data, (0, 0), output)
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-4)


@needs_compiled
@pytest.mark.parametrize("kernel", [8, 9])
def test_compressed_filters_are_folded_as_well(tmp_path, kernel: int) -> None:
    """They are unpacked once, and results have the bits of filters in f32."""
    rng = np.random.default_rng(kernel)
    weights = (rng.standard_normal((64, 1, kernel, kernel)) / 8).astype(np.float16)
    data = rng.standard_normal((1, 64, 12, 16), dtype=np.float32)
    attributes = {"strides": "4,4", "dilations": "1,1", "pads_begin": "2,2", "pads_end": "2,2"}
    results = []
    for compressed in (True, False):
        ir = IR()
        x = ir.parameter("x", "1,64,12,16")
        filter_ = ir.const(weights if compressed else weights.astype(np.float32))
        if compressed:
            filter_ = ir.layer("Convert", [filter_], {"destination_type": "f32"})
        ir.result(ir.layer("ConvolutionBackpropData", [x, filter_], attributes))
        bound = deconv_ir.load(ir.save(tmp_path)).bind([data])
        assert not bound.plan.precisions
        results += bound.run().values()
    np.testing.assert_array_equal(*results)
