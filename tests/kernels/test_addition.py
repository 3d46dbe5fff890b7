"""Kernels add a tensor to their results as NumPy does, before the activation."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from kernels.cases import ISAS, KINDS
from kernels.test_depthwise import ACTIVATIONS, GEOMETRIES
from support import in_turn

from deconv_ir.kernels import pack_convolution, pack_deconvolution
from deconv_ir.kernels.activation import Activation
from deconv_ir.kernels.runtime.extension import compiled_module
from deconv_ir.kernels.runtime.threads import set_threads

pytestmark = pytest.mark.skipif(
    compiled_module() is None, reason="the compiled kernel was not built"
)
# Groups, input and output channels per group; the algorithm.
LAYERS = {
    "depthwise": (5, 1, 1, "direct"),
    "channel vectors": (13, 1, 1, "direct"),
    "groups": (2, 5, 3, "direct"),
    "direct sums": (1, 9, 11, "direct"),
    "output vectors": (1, 9, 64, "direct"),
    "Winograd": (1, 9, 11, "winograd"),
    "NumPy": (1, 9, 11, "numpy"),
}
MORE = {
    "points": ((16, 16), (1, 1), (1, 1), (1, 1), (0, 0), (16, 16)),
    "ragged points": ((7, 7), (1, 1), (1, 1), (1, 1), (0, 0), (7, 7)),
    "one position": ((1, 1), (1, 1), (1, 1), (1, 1), (0, 0), (1, 1)),
    "one position to a plane": ((1, 1), (3, 3), (1, 1), (1, 1), (2, 2), (3, 3)),
}


def spoilt(values: np.ndarray) -> np.ndarray:
    """Replace some elements by values that are special in an addition."""
    values.flat[:: max(1, values.size // 9)] = np.resize(
        np.array([np.nan, np.inf, -0.0, -np.inf, 1e-40], np.float32), values.flat[
            :: max(1, values.size // 9)].size
    )  # fmt: skip
    return values


def arrays(layer: str, kind: str, geometry: tuple[tuple[int, ...], ...], random_values: Any) -> Any:
    groups, inputs, outputs, _ = LAYERS[layer]
    extents, kernel, *_, output = geometry
    rng = np.random.default_rng(groups)
    first, second = (outputs, inputs) if kind == "convolution" else (inputs, outputs)
    shapes = (
        (2, groups * inputs, *extents), (groups * first, second, *kernel),
        (groups * outputs,), (2, groups * outputs, *output),
    )  # fmt: skip
    return [random_values(rng, shape, np.dtype(np.float32)) for shape in shapes]


@pytest.mark.parametrize(
    ("row", "geometry"),
    in_turn(itertools.product(LAYERS, KINDS, ISAS), list(GEOMETRIES | MORE), 7),
    ids=lambda v: v if isinstance(v, str) else "-".join(v),
)
def test_the_bits_are_those_of_numpy(row, geometry, random_values, monkeypatch) -> None:
    """Each layer meets every geometry, with the instruction sets in turn."""
    layer, kind, isa = row
    monkeypatch.setenv("DECONV_IR_ISA", isa)
    found = (GEOMETRIES | MORE)[geometry]
    how: dict[str, Any]
    _, _, strides, dilations, pads, output = found
    data, weights, bias, addend = arrays(layer, kind, found, random_values)
    spoilt(addend)
    groups, *_, algorithm = LAYERS[layer]
    how = {"strides": strides, "dilations": dilations, "groups": groups, "bias": bias}
    how["algorithm"] = algorithm
    make = pack_convolution if kind == "convolution" else pack_deconvolution
    for threads, scratch_bytes in ((1, 64 << 20), (3, 4096)):
        set_threads(threads)
        how["scratch_bytes"] = scratch_bytes
        expected = make(weights, **how).run(data, pads, output) + addend
        for activation, function in {Activation(): lambda x: x, **ACTIVATIONS}.items():
            kernel = make(weights, activation=activation, adds=True, **how)
            result = kernel.run(data, pads, output, addend=addend)
            np.testing.assert_array_equal(result, function(expected))


def points(**how: Any) -> pack_convolution:
    weights = np.arange(6, dtype=np.float32).reshape(2, 3, 1, 1) - 2
    return pack_convolution(weights, strides=(1, 1), dilations=(1, 1), adds=True, **how)


def test_any_strides_and_overlaps() -> None:
    data = np.random.default_rng(1).standard_normal((2, 3, 6, 7), np.float32)
    addend = np.random.default_rng(2).standard_normal((2, 2, 6, 7), np.float32)
    expected = points().run(data, (0, 0), (6, 7), addend=addend)
    turned = np.ascontiguousarray(addend.T).T
    np.testing.assert_array_equal(points().run(data, (0, 0), (6, 7), addend=turned), expected)
    assert points().run(data, (0, 0), (6, 7), addend, addend=addend) is addend
    np.testing.assert_array_equal(addend, expected)


def test_an_addend_of_another_shape_is_broadcast() -> None:
    data = np.ones((1, 3, 4, 5), np.float32)
    for shape in ((1, 2, 1, 1), (3, 2, 4, 5), (5,)):
        addend = np.arange(np.prod(shape), dtype=np.float32).reshape(shape)
        found = points().run(data, (0, 0), (4, 5), addend=addend)
        sums = np.array([-3, 6], np.float32).reshape(1, 2, 1, 1) + np.zeros((1, 2, 4, 5), "f")
        np.testing.assert_array_equal(found, sums + addend)


def test_weights_that_are_not_finite() -> None:
    weights = np.array([[[[np.inf]]], [[[1]]]], np.float32)
    kernel = pack_convolution(weights, strides=(1, 1), dilations=(1, 1), adds=True)
    found = kernel.run(
        np.ones((1, 1, 1, 2), "f"), (0, 0), (1, 2), addend=np.ones((1, 2, 1, 2), "f")
    )
    np.testing.assert_array_equal(found, [[[[np.inf] * 2], [[2, 2]]]])


def test_an_addend_of_another_type_is_an_error() -> None:
    with pytest.raises(TypeError, match="addend is float64, filter float32"):
        points().run(np.ones((1, 3, 1, 1), "f"), (0, 0), (1, 1), addend=np.ones((1, 2, 1, 1)))


def test_transposed_kernels_of_few_channels() -> None:
    """Sub-convolutions are folded into channels, and infinities are handled apart."""
    rng = np.random.default_rng(3)
    weights = rng.standard_normal((4, 2, 3, 3), np.float32)
    data = rng.standard_normal((1, 4, 5, 9), np.float32)
    data[0, 1, 2, 3] = np.inf
    addend = rng.standard_normal((1, 2, 9, 17), np.float32)
    how: dict[str, Any] = {"strides": (2, 2), "dilations": (1, 1)}
    expected = pack_deconvolution(weights, **how).run(data, (1, 1), (9, 17)) + addend
    found = pack_deconvolution(weights, adds=True, **how).run(data, (1, 1), (9, 17), addend=addend)
    np.testing.assert_array_equal(found, expected)


def test_an_addend_and_a_kernel_that_adds_go_together() -> None:
    data, weights = np.ones((1, 3, 2, 2), "f"), np.ones((2, 3, 1, 1), "f")
    plain = pack_convolution(weights, strides=(1, 1), dilations=(1, 1))
    with pytest.raises(ValueError, match="packed without `adds`"):
        plain.run(data, (0, 0), (2, 2), addend=np.ones((1, 2, 2, 2), "f"))
    adding = pack_convolution(weights, strides=(1, 1), dilations=(1, 1), adds=True)
    with pytest.raises(ValueError, match="the last input is an addend"):
        adding.run(data, (0, 0), (2, 2))


def test_an_array_with_channels_last_is_written_to() -> None:
    data, weights = np.ones((1, 2, 2, 3), "f"), np.ones((2, 3, 1, 1), "f")
    kernel = pack_convolution(weights, strides=(1, 1), dilations=(1, 1))
    plan = kernel.plan((1, 3, 2, 2), (0, 0), (2, 2), channels_last=True)
    out = np.zeros((1, 2, 2, 2), "f")
    (found,) = plan.run([data], out)
    assert found is out
    np.testing.assert_array_equal(out, 3)
    np.testing.assert_array_equal(plan.run([data])[0], 3)
