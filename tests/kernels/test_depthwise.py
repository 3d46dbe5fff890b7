"""Depthwise layers, one channel a group: rows shorter and longer than vectors, any stride."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from support import in_turn

from deconv_ir.kernels import naive, naive_convolution, pack_convolution, pack_deconvolution
from deconv_ir.kernels.activation import Activation, ActivationKind
from deconv_ir.kernels.runtime.extension import compiled_module
from deconv_ir.kernels.runtime.threads import set_threads

module = compiled_module()
pytestmark = pytest.mark.skipif(module is None, reason="the compiled kernel was not built")
ISAS = [] if module is None else module.isas()
KINDS = {
    "convolution": (pack_convolution, naive_convolution),
    "transposed": (pack_deconvolution, naive),
}

# Extents, kernel, strides, dilations, pads and output.
GEOMETRIES: dict[str, tuple[tuple[int, ...], ...]] = {
    "rows of a few positions": ((7, 7), (3, 3), (1, 1), (1, 1), (1, 1), (7, 7)),
    "rows of a vector": ((9, 16), (3, 3), (1, 1), (1, 1), (1, 1), (9, 16)),
    "rows of two vectors that overlap": ((11, 29), (5, 5), (1, 1), (1, 1), (2, 2), (11, 29)),
    "rows of nine vectors": ((2, 131), (1, 3), (1, 1), (1, 1), (0, 1), (2, 131)),
    "every other position": ((13, 37), (3, 3), (2, 2), (1, 1), (1, 1), (7, 19)),
    "every other of a few": ((8, 15), (5, 5), (2, 2), (1, 1), (2, 2), (4, 8)),
    "every other of two vectors": ((19, 70), (5, 5), (2, 2), (1, 1), (2, 2), (10, 35)),
    "every other of a vector": ((17, 32), (3, 3), (2, 2), (1, 1), (1, 1), (9, 16)),
    "square of a vector": ((10, 16), (5, 5), (1, 1), (1, 1), (2, 2), (10, 16)),
    "every third position": ((10, 20), (3, 4), (1, 3), (1, 1), (0, 2), (8, 7)),
    "far taps": ((12, 33), (3, 3), (1, 1), (2, 5), (2, 5), (12, 33)),
    "one axis": ((150,), (9,), (1,), (3,), (12,), (150,)),
    "one axis, every other": ((151,), (4,), (2,), (1,), (1,), (75,)),
    "volume": ((5, 6, 18), (3, 3, 3), (1, 1, 1), (1, 1, 1), (1, 1, 1), (5, 6, 18)),
    "volume, every other": ((5, 6, 18), (2, 3, 3), (2, 1, 2), (1, 1, 1), (0, 1, 1), (3, 6, 9)),
    "beyond the data": ((4, 20), (3, 3), (1, 1), (1, 1), (5, 9), (16, 44)),
}

ACTIVATIONS = {
    Activation(ActivationKind.RELU): lambda x: np.maximum(x, 0),
    Activation(ActivationKind.LEAKY_RELU, slope=0.25): lambda x: np.where(x < 0, x * 0.25, x),
    Activation(ActivationKind.CLAMP, low=-0.5, high=1.0): lambda x: np.clip(x, -0.5, 1),
}
# Too few channels for vectors, and a number that leaves some lanes of one vector empty.
CHANNELS = [5, 13]


def layer(
    geometry: str, channels: int, dtype: np.dtype[Any], random_values: Any, batch: int = 2
) -> Any:
    extents, kernel, *_ = GEOMETRIES[geometry]
    rng = np.random.default_rng(len(geometry))
    data = random_values(rng, (batch, channels, *extents), dtype)
    weights = random_values(rng, (channels, 1, *kernel), dtype)
    return data, weights, random_values(rng, (channels,), dtype)


def static(geometry: str, bias: Any) -> dict[str, Any]:
    _, _, strides, dilations, _, _ = GEOMETRIES[geometry]
    return {"strides": strides, "dilations": dilations, "groups": len(bias), "bias": bias}


# Every layer in f32, and in one of the other element types in turn.
LAYERS = list(itertools.product(GEOMETRIES, CHANNELS, KINDS))
TYPES = ["float64", "float16", "bfloat16"]
TYPES += [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]


@pytest.mark.parametrize(
    ("row", "element"),
    [*((row, "float32") for row in LAYERS), *in_turn(LAYERS, TYPES, 1)],
    ids=lambda v: v if isinstance(v, str) else "-".join(map(str, v)),
)
def test_against_loops(row, element, dtype_of, random_values, monkeypatch) -> None:
    (geometry, channels, kind), dtype = row, dtype_of(element)
    kernel, loops = KINDS[kind]
    *_, pads, output = GEOMETRIES[geometry]
    data, weights, bias = layer(geometry, channels, dtype, random_values)
    expected = loops(data, weights, pads_begin=pads, output=output, **static(geometry, bias))
    sums = np.float64 if dtype.kind not in "iu" else dtype
    magnitudes = loops(
        *(abs(a.astype(sums)) for a in (data, weights)),
        pads_begin=pads, output=output, **static(geometry, abs(bias.astype(sums))),
    )  # fmt: skip
    for isa in ISAS:
        monkeypatch.setenv("DECONV_IR_ISA", isa)
        got = kernel(weights, algorithm="direct", **static(geometry, bias)).run(data, pads, output)
        assert got.dtype == dtype
        if dtype.kind in "iu":
            np.testing.assert_array_equal(got, expected, isa)
            continue
        ulp = {"float32": 2e-6, "float64": 4e-15, "float16": 1e-3, "bfloat16": 8e-3}[dtype.name]
        difference = abs(got.astype(np.float64) - expected.astype(np.float64))
        assert np.all(difference <= ulp * magnitudes), isa


@pytest.mark.parametrize(
    ("row", "isa"),
    in_turn(LAYERS, ISAS, 1),
    ids=lambda v: v if isinstance(v, str) else "-".join(map(str, v)),
)
def test_nothing_around_the_data_is_read(row, isa, random_values, dtype_of, monkeypatch) -> None:
    """NaN surround the data; a NaN in one channel affects the same outputs as in the loops."""
    geometry, channels, kind = row
    monkeypatch.setenv("DECONV_IR_ISA", isa)
    kernel, loops = KINDS[kind]
    *_, pads, output = GEOMETRIES[geometry]
    data, weights, bias = layer(geometry, channels, dtype_of("float32"), random_values)
    packed = kernel(weights, algorithm="direct", **static(geometry, bias))
    expected = packed.run(data, pads, output)
    among = np.full([n + 2 for n in data.shape], np.nan, np.float32)
    inside = among[(slice(1, -1),) * data.ndim]
    inside[...] = data
    np.testing.assert_array_equal(packed.run(inside, pads, output), expected)
    apart = np.repeat(data, 2, axis=-1)[..., ::2]
    np.testing.assert_array_equal(packed.run(apart, pads, output), expected)
    last = (-1,) * (data.ndim - 2)
    data[(0, 2, *last)] = np.nan
    data[(1, 3, *last)] = np.inf
    with np.errstate(invalid="ignore"):
        reached = loops(data, weights, pads_begin=pads, output=output, **static(geometry, bias))
    got = packed.run(data, pads, output)
    np.testing.assert_array_equal(np.isfinite(got), np.isfinite(reached))
    np.testing.assert_array_equal(np.where(np.isfinite(got), got, 0),
                                  np.where(np.isfinite(got), expected, 0))  # fmt: skip


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_activations(geometry, isa, random_values, dtype_of, monkeypatch) -> None:
    monkeypatch.setenv("DECONV_IR_ISA", isa)
    *_, pads, output = GEOMETRIES[geometry]
    data, weights, bias = layer(geometry, 13, dtype_of("float32"), random_values)
    data[0, 3].flat[0] = np.nan
    sums = pack_convolution(weights, algorithm="direct", **static(geometry, bias)).run(
        data, pads, output
    )
    for activation, function in ACTIVATIONS.items():
        kernel = pack_convolution(weights, algorithm="direct", activation=activation,
                             **static(geometry, bias))  # fmt: skip
        np.testing.assert_array_equal(kernel.run(data, pads, output), function(sums))


@pytest.mark.parametrize("channels", CHANNELS)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_bits_depend_on_nothing_but_the_layer(
    kind, channels, geometry, random_values, dtype_of
) -> None:
    kernel, _ = KINDS[kind]
    *_, pads, output = GEOMETRIES[geometry]
    data, weights, bias = layer(geometry, channels, dtype_of("float32"), random_values, 9)
    set_threads(1)
    expected = kernel(weights, algorithm="direct", **static(geometry, bias)).run(data, pads, output)
    for threads, scratch_bytes in ((2, 64 << 20), (3, 4096)):
        set_threads(threads)
        other = kernel(weights, algorithm="direct", scratch_bytes=scratch_bytes,
                       **static(geometry, bias))  # fmt: skip
        np.testing.assert_array_equal(other.run(data, pads, output), expected)
        np.testing.assert_array_equal(other.run(data[3:4], pads, output), expected[3:4])


@pytest.mark.parametrize("channels", [16, 40])
def test_channels_that_are_neighbours_in_memory(channels: int) -> None:
    """Data with transposed axes give the same bits as contiguous data."""
    rng = np.random.default_rng(channels)
    data = rng.standard_normal((2, 30, 20, channels)).astype(np.float32).transpose(0, 3, 1, 2)
    weights = rng.standard_normal((channels, 1, 3, 3)).astype(np.float32)
    kernel = pack_convolution(weights, strides=(1, 1), dilations=(1, 1), groups=channels)
    found = kernel.run(data, (1, 1), (30, 20))
    expected = kernel.run(np.ascontiguousarray(data), (1, 1), (30, 20))
    np.testing.assert_array_equal(found, expected)


def test_plan_says_so() -> None:
    weights = np.ones((32, 1, 3, 3), np.float32)
    kernel = pack_convolution(
        weights, strides=(1, 1), dilations=(1, 1), groups=32, algorithm="direct"
    )
    plan = kernel.plan((1, 32, 40, 40), (1, 1), (40, 40))
    assert plan.details["depthwise"]
    assert str(plan).startswith("depthwise sums")
