"""Normalisation and resampling of oneDNN Graph."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from onednn_forms import as_bytes, op, tensor
from onednn_oracle import close, floats, last, run

import deconv_ir


def _softmax(x: Any, axis: int) -> Any:
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def test_layer_norm_returns_its_statistics() -> None:
    """keep_stats: mean and variance of the last axes are outputs."""
    x, gamma, beta = floats(2, 3, 8), floats(8), floats(8)
    graph = op(
        0,
        "LayerNorm",
        [tensor(0, [2, 3, 8]), tensor(1, [8]), tensor(2, [8])],
        [tensor(3, [2, 3, 8]), tensor(4, [2, 3]), tensor(5, [2, 3])],
        keep_stats=True,
    )
    found = run(graph, arrays=[x, gamma, beta])
    wide = x.astype(float)
    mean, variance = wide.mean(-1), wide.var(-1)
    normal = (wide - mean[..., None]) / np.sqrt(variance + 1e-5)[..., None] * gamma + beta
    for one, wanted in zip(found, (normal, mean, variance), strict=True):
        close(one, wanted)


def test_rms_norm() -> None:
    """x / sqrt(mean of squares + epsilon) * gamma."""
    x, gamma = floats(2, 3, 8), floats(8)
    graph = op(
        0, "RMSNorm", [tensor(0, [2, 3, 8]), tensor(1, [8])], [tensor(3, [2, 3, 8])], epsilon=1e-3
    )
    (found,) = run(graph, arrays=[x, gamma])
    wide = x.astype(float)
    close(found, wide / np.sqrt((wide**2).mean(-1, keepdims=True) + 1e-3) * gamma)


@pytest.mark.parametrize("kind", ["SoftMax", "LogSoftmax"])
def test_softmax_along_its_default_axis(kind: str) -> None:
    """SoftMax: axis 1; LogSoftmax: axis -1."""
    x = floats(2, 3, 4)
    graph = op(0, kind, [tensor(0, [2, 3, 4])], [tensor(1, [2, 3, 4])])
    (found,) = run(graph, arrays=[x])
    wide = x.astype(float)
    close(found, _softmax(wide, 1) if kind == "SoftMax" else np.log(_softmax(wide, -1)))


@pytest.mark.parametrize("coordinates", ["half_pixel", "align_corners"])
@pytest.mark.parametrize("mode", ["nearest", "bilinear"])
def test_interpolation(mode: str, coordinates: str) -> None:
    """Coordinates follow the document; of two neighbours, nearest takes the upper one."""
    x = floats(1, 2, 4, 6)
    height, width = 6, 3

    def position(y: int, size: int, extent: int) -> float:
        if coordinates == "half_pixel":
            return (y + 0.5) * extent / size - 0.5
        return y * (extent - 1) / (size - 1)

    def weights(y: int, size: int, extent: int) -> dict[int, float]:
        at = position(y, size, extent)
        if mode == "nearest":
            return {min(extent - 1, max(0, math.floor(at + 0.5))): 1.0}
        low = math.floor(at)
        found: dict[int, float] = {}
        for index, share in ((low, 1 - (at - low)), (low + 1, at - low)):
            inside = min(extent - 1, max(0, index))
            found[inside] = found.get(inside, 0) + share
        return found

    wanted = np.zeros((1, 2, height, width))
    for i, j in np.ndindex(height, width):
        for (a, u), (b, v) in itertools.product(
            weights(i, height, 4).items(), weights(j, width, 6).items()
        ):
            wanted[:, :, i, j] += u * v * x[:, :, a, b]
    for extra in ({"sizes": [height, width]}, {"scales": [1.5, 0.5]}):
        graph = op(
            0,
            "Interpolate",
            [tensor(0, x.shape)],
            [tensor(1, [1, 2, height, width])],
            mode=mode,
            coordinate_transformation_mode=coordinates,
            data_format="NCX",
            **extra,
        )
        (found,) = run(graph, arrays=[x])
        close(found, wanted)


@pytest.mark.parametrize(
    ("extent", "scale", "wanted"),
    [(100, 0.29, 29), (17, 1.23529, 20), (3, 1.66667, 5), (41, 0.7, 28), (1000, 2.99999998, 3000)],
)
def test_extents_are_scaled_in_f32_as_in_onednn(extent: int, scale: float, wanted: int) -> None:
    """Both factors and the product are rounded to f32, and the product then down."""
    assert int(np.float32(extent) * np.float32(scale)) == wanted, "the arithmetic of C"
    sizes = {"mode": "nearest", "data_format": "NCX", "scales": [scale]}
    graph = op(0, "Interpolate", [tensor(0, [1, 1, extent])], [tensor(1, [1, 1, wanted])], **sizes)
    assert deconv_ir.load(as_bytes(graph)).infer_shapes()["1"] == (1, 1, wanted)


def test_softmax_with_the_logarithm_of_its_sum() -> None:
    """stats = max + log(sum(exp(x - max))); no NaN where inf_as_zero meets only -inf."""
    x = floats(2, 3, 4) * 50
    x[0, :, 1] = -np.inf
    x[1, 0, 2] = -np.inf
    outputs = [tensor(1, [2, 3, 4], "bf16"), tensor(2, [2, 1, 4])]
    graph = op(0, "SoftMax", [tensor(0, [2, 3, 4])], outputs, axis=1, mode="inf_as_zero")
    y, stats = run(graph, arrays=[x])
    wide = x.astype(float)
    rest = np.ones(8, bool).reshape(2, 1, 4)
    rest[0, 0, 1] = False
    with np.errstate(all="ignore"):
        wanted = np.where(rest, _softmax(wide, 1), 0)
        close(y, wanted, 2**-8)
        total = np.log(np.exp(wide - wide.max(1, keepdims=True)).sum(1, keepdims=True))
        close(stats[rest], (wide.max(1, keepdims=True) + total)[rest])
    assert stats[0, 0, 1] == -np.inf


@pytest.mark.parametrize("affine", [False, True])
@pytest.mark.parametrize("layout", ["NCX", "NXC"])
def test_batch_normalisation_in_training(layout: str, affine: bool) -> None:
    """Statistics of the batch, and running ones: momentum * old + (1 - momentum) * new."""
    x, mean, variance = floats(2, 3, 4, 5), floats(3), np.abs(floats(3))
    gamma, beta = floats(3), floats(3)
    data = last(x) if layout == "NXC" else x
    count = 5 if affine else 3
    inputs = [tensor(0, data.shape), *(tensor(i, [3]) for i in range(1, count))]
    outputs = [tensor(9, data.shape), *(tensor(i, [3]) for i in range(10, 14))]
    graph = op(
        0,
        "BatchNormForwardTraining",
        inputs,
        outputs,
        epsilon=1e-3,
        momentum=0.75,
        data_format=layout,
    )
    found = run(graph, arrays=[data, mean, variance, gamma, beta][:count])
    wide = x.astype(float)
    batch = wide.mean((0, 2, 3)), wide.var((0, 2, 3))
    normal = (wide - batch[0].reshape(-1, 1, 1)) / np.sqrt(batch[1] + 1e-3).reshape(-1, 1, 1)
    if affine:
        normal = normal * gamma.reshape(-1, 1, 1) + beta.reshape(-1, 1, 1)
    close(found[0], last(normal) if layout == "NXC" else normal)
    for i, old in enumerate((mean, variance)):
        close(found[1 + i], 0.75 * old.astype(float) + 0.25 * batch[i])
        close(found[3 + i], batch[i])


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_indices_along_an_axis(axis: int) -> None:
    graph = op(0, "GenIndex", [tensor(0, [2, 3, 4])], [tensor(1, [2, 3, 4], "s32")], axis=axis)
    (found,) = run(graph, arrays=[floats(2, 3, 4)])
    assert found.dtype == np.int32
    np.testing.assert_array_equal(found, np.indices((2, 3, 4))[axis])


@pytest.mark.parametrize("kind", ["GroupNorm", "BatchNormForwardTraining", "Interpolate"])
def test_data_without_channels_are_an_error(kind: str) -> None:
    attributes = {"groups": 1, "epsilon": 0.5, "mode": "nearest", "sizes": [2]}
    inputs = [tensor(i, [3]) for i in range(5 if kind.startswith("Batch") else 1)]
    with pytest.raises(deconv_ir.ShapeError, match="src must have rank 2 or greater"):
        deconv_ir.load(as_bytes(op(0, kind, inputs, [tensor(9, [3])], **attributes)))


@pytest.mark.parametrize("given", [{"sizes": [5, 6, 7]}, {"scales": [2.0]}, {}])
def test_an_interpolation_needs_one_size_for_each_axis(given: dict[str, object]) -> None:
    attributes = {"mode": "nearest", "data_format": "NCX"} | given
    graph = op(0, "Interpolate", [tensor(0, [1, 1, 3, 4])], [tensor(1, [1, 1, 5, 6])], **attributes)
    with pytest.raises(deconv_ir.ShapeError, match=r"sizes|scales"):
        deconv_ir.load(as_bytes(graph))
