"""Depthwise layers, one channel a group: rows shorter and longer than vectors, any stride."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from kernels.cases import DTYPES, ISAS, KINDS, OTHERS, Case, Layer, check_direct_sums
from support import in_turn

from deconv_ir.kernels import pack_convolution
from deconv_ir.kernels.activation import Activation, ActivationType

pytestmark = pytest.mark.skipif(not ISAS, reason="the compiled kernel was not built")

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
    Activation(ActivationType.RELU): lambda x: np.maximum(x, 0),
    Activation(ActivationType.LEAKY_RELU, slope=0.25): lambda x: np.where(x < 0, x * 0.25, x),
    Activation(ActivationType.CLAMP, low=-0.5, high=1.0): lambda x: np.clip(x, -0.5, 1),
}
# Too few channels for vectors, and a number that leaves some lanes of one vector empty.
CHANNELS = [5, 13]


def case(geometry: str, channels: int, kind: str, element: str = "float32") -> Case:
    return Layer(channels, 1, 1, *GEOMETRIES[geometry]).case(kind, DTYPES[element], 4)


# Every geometry in f32, and in two of the other element types in turn; channels and kinds in turn.
LAYERS = in_turn(GEOMETRIES, list(itertools.product(CHANNELS, KINDS)), 3)


@pytest.mark.parametrize(
    ("row", "element"),
    [*((row, "float32") for row in LAYERS), *in_turn(LAYERS[::2], OTHERS, 1)],
    ids=lambda v: v if isinstance(v, str) else "-".join(map(str, (v[0], *v[1]))),
)
def test_against_loops(row, element, monkeypatch) -> None:
    geometry, (channels, kind) = row
    check_direct_sums(case(geometry, channels, kind, element), monkeypatch)


@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_values_that_are_not_finite_stay_in_their_windows(geometry, monkeypatch) -> None:
    """A NaN in one channel affects the same outputs as in the loops, and no bit of the others."""
    for (channels, kind), isa in in_turn(itertools.product(CHANNELS, KINDS), ISAS, 1):
        monkeypatch.setenv("DECONV_IR_ISA", isa)
        layer = case(geometry, channels, kind)
        clean = layer.actual(algorithm="direct")
        last = (-1,) * (layer.data.ndim - 2)
        layer.data[(0, 2, *last)] = np.nan
        layer.data[(1, 3, *last)] = np.inf
        finite = np.isfinite(layer.expected())
        found = layer.actual(algorithm="direct")
        np.testing.assert_array_equal(np.isfinite(found), finite)
        np.testing.assert_array_equal(found[finite], clean[finite])


@pytest.mark.parametrize("geometry", GEOMETRIES)
def test_activations(geometry, monkeypatch) -> None:
    layer = case(geometry, 13, "convolution")
    layer.data[0, 3].flat[0] = np.nan
    for isa in ISAS:
        monkeypatch.setenv("DECONV_IR_ISA", isa)
        sums = layer.actual(algorithm="direct")
        for activation, function in ACTIVATIONS.items():
            found = layer.actual(algorithm="direct", activation=activation)
            np.testing.assert_array_equal(found, function(sums))


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
