"""The choice of the kernel for a problem, and its description."""

from __future__ import annotations

import contextlib
import gc
import subprocess
import sys
import threading

import numpy as np
import pytest
from kernels.cases import without_extension

from deconv_ir import kernels
from deconv_ir.kernels import Activation, ActivationType, naive, pack_deconvolution
from deconv_ir.kernels.algorithm import Algorithm
from deconv_ir.kernels.native import supports
from deconv_ir.kernels.problem import Problem
from deconv_ir.kernels.runtime.extension import compiled_module

needs_compiled = pytest.mark.skipif(
    compiled_module() is None, reason="the compiled kernel was not built"
)


def problem(kernel=(3, 3), strides=(2, 2), groups=1, channels_in=8, channels_out=8):
    return Problem(groups, channels_in, channels_out, kernel, strides, (1,) * len(kernel))


F32, F16, I8 = np.dtype(np.float32), np.dtype(np.float16), np.dtype(np.int8)


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize(
    ("layer", "dtype", "supported"),
    [
        (problem(), F32, True),
        (problem(), F16, True),
        (problem(), I8, True),
        # four axes, or too many sub-convolutions for tables
        (problem((1,) * 4, (1,) * 4), F32, False),
        (problem((3, 3), (1000, 1000)), F32, False),
    ],
)
def test_numpy_computes_what_is_not_compiled(layer, dtype, compiled, supported, monkeypatch):
    if compiled_module() is None and compiled:
        pytest.skip("no compiled kernel")
    if not compiled:
        monkeypatch.setenv("DECONV_IR_KERNEL", "numpy")
    weights = np.ones((layer.channels_in, layer.channels_out, *layer.kernel), dtype)
    kernel = pack_deconvolution(weights, strides=layer.strides, dilations=layer.dilations)
    assert (kernel.algorithm is Algorithm.COMPILED) == (compiled and supported)


def test_supports_rejects_what_has_no_c_form():
    assert not supports(problem(), np.dtype(bool))
    assert not supports(problem((1,) * 4, (1,) * 4), F32)


@needs_compiled
@pytest.mark.parametrize("isa", compiled_module().isas() if compiled_module() else [])
def test_every_instruction_set_computes_the_same(draw_case, monkeypatch, isa, dtype):
    monkeypatch.setenv("DECONV_IR_ISA", isa)
    for seed in range(4):
        case = draw_case(seed, dtype, 2)
        case.check(case.actual(algorithm="compiled"))


@pytest.mark.parametrize("wanted", ["im2col", "gemm_col2im"])
def test_environment_forces_a_kernel(monkeypatch, wanted):
    monkeypatch.setenv("DECONV_IR_KERNEL", wanted)
    kernel = pack_deconvolution(np.ones((1, 1, 2), np.float32), strides=(1,), dilations=(1,))
    assert kernel.algorithm.value == wanted
    assert kernels.kernel_info().kernel == wanted


def test_unknown_kernel_in_the_environment(monkeypatch):
    monkeypatch.setenv("DECONV_IR_KERNEL", "magic")
    with pytest.raises(ValueError, match="DECONV_IR_KERNEL: unknown algorithm 'magic'"):
        kernels.kernel_info()


@needs_compiled
def test_unknown_instruction_set_in_the_environment(monkeypatch):
    monkeypatch.setenv("DECONV_IR_ISA", "mmx")
    with pytest.raises(ValueError, match="DECONV_IR_ISA is 'mmx'; available here: baseline"):
        kernels.kernel_info()


def test_works_without_the_extension():
    script = (
        "import sys; sys.modules['deconv_ir.kernels._compiled'] = None\n"
        "import numpy as np\n"
        "from deconv_ir import kernels\n"
        "k = kernels.pack_deconvolution(np.ones((1, 1, 2), 'f'), strides=(2,), dilations=(1,))\n"
        "print(k.algorithm.value, k.run(np.ones((1, 1, 2), 'f'), (0,), (4,)).ravel().tolist())\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert done.stdout == "gemm_col2im [1.0, 1.0, 1.0, 1.0]\n", done.stderr


@pytest.mark.parametrize("threads", [1, 2, 5])
def test_threads_do_not_change_the_result(algorithm, threads):
    rng = np.random.default_rng(0)
    data = rng.standard_normal((3, 20, 17, 19), dtype=np.float32)
    weights = rng.standard_normal((20, 9, 4, 4), dtype=np.float32)
    kernel = pack_deconvolution(weights, strides=(2, 2), dilations=(1, 1), algorithm=algorithm)
    before = kernels.get_threads()
    try:
        kernels.set_threads(threads)
        assert kernels.get_threads() == threads
        actual = kernel.run(data, (1, 1), (34, 38))
    finally:
        kernels.set_threads(before)
    expected = naive(
        data,
        weights,
        strides=(2, 2),
        dilations=(1, 1),
        groups=1,
        pads_begin=(1, 1),
        output=(34, 38),
    )
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-4)


def test_no_threads_are_refused():
    with pytest.raises(ValueError, match="at least 1"):
        kernels.set_threads(0)


def test_callers_in_several_threads(algorithm):
    rng = np.random.default_rng(0)
    data = rng.standard_normal((2, 8, 30, 30), dtype=np.float32)
    weights = rng.standard_normal((8, 8, 3, 3), dtype=np.float32)
    kernel = pack_deconvolution(weights, strides=(2, 2), dilations=(1, 1), algorithm=algorithm)
    expected = kernel.run(data, (1, 1), (59, 59))
    results: list[np.ndarray] = []
    callers = [
        threading.Thread(target=lambda: results.append(kernel.run(data, (1, 1), (59, 59))))
        for _ in range(6)
    ]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert len(results) == 6
    for result in results:
        np.testing.assert_array_equal(result, expected)


@pytest.mark.parametrize(
    ("activation", "function"),
    [
        (Activation(ActivationType.RELU), lambda v: np.maximum(v, 0)),
        (Activation(ActivationType.LEAKY_RELU, slope=0.25), lambda v: np.where(v < 0, v / 4, v)),
        (Activation(ActivationType.CLAMP, low=-2, high=3), lambda v: np.clip(v, -2, 3)),
    ],
    ids=lambda value: getattr(getattr(value, "kind", None), "name", ""),
)
@pytest.mark.parametrize("element", ["float32", "float16", "int32"])
def test_activation_follows_the_bias(algorithm, activation, function, element):
    if activation.type is ActivationType.LEAKY_RELU and element == "int32":
        pytest.skip("a slope of 1/4 has no integer form")
    rng = np.random.default_rng(0)
    data = rng.integers(-3, 4, (1, 3, 5, 6)).astype(element)
    weights = rng.integers(-3, 4, (3, 2, 3, 3)).astype(element)
    bias = np.array([-7, 5]).astype(element)
    arguments = {"strides": (2, 3), "dilations": (1, 1), "bias": bias}
    # The output extends beyond the data, where it is the activated bias.
    plain = naive(data, weights, groups=1, pads_begin=(-2, -1), output=(15, 20), **arguments)
    kernel = pack_deconvolution(weights, activation=activation, algorithm=algorithm, **arguments)
    actual = kernel.run(data, (-2, -1), (15, 20))
    np.testing.assert_array_equal(actual, function(plain).astype(element))


@pytest.mark.parametrize(
    "extension",
    [pytest.param(contextlib.nullcontext, marks=needs_compiled, id="compiled"), without_extension],
)
def test_large_memory_is_used_again(extension):
    with extension():
        large_memory_is_used_again()


def large_memory_is_used_again():
    shape, dtype = (3, 1 << 20), np.dtype(np.float32)
    first = kernels.empty(shape, dtype)
    address = first.ctypes.data
    part = first[1, 5:9]
    del first
    gc.collect()
    # A view keeps the memory in use.
    assert kernels.empty(shape, dtype).ctypes.data != address
    part[...] = 1
    del part
    gc.collect()
    taken = [kernels.empty(shape, dtype) for _ in range(5)]
    assert address in [array.ctypes.data for array in taken]
    assert len({array.ctypes.data for array in taken}) == 5
    assert all(a.flags.writeable and a.flags.c_contiguous for a in taken)
