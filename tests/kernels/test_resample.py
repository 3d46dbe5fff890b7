"""Compiled interpolation of the last two axes against NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from kernels.cases import without_extension
from support import batches

from deconv_ir.kernels.runtime import interface
from deconv_ir.kernels.runtime.extension import compiled_module
from deconv_ir.ops.resample.resample import (
    Coordinates,
    InterpolationSettings,
    Mode,
    Nearest,
    resampler,
    taps_along,
)

compiled = compiled_module()
pytestmark = pytest.mark.skipif(compiled is None, reason="the compiled kernel was not built here")
SHAPES = [
    ((2, 3, 4, 5), (2, 3, 8, 10)), ((1, 1, 1, 1), (1, 1, 3, 7)), ((1, 2, 9, 33), (1, 2, 9, 70)),
    ((3, 40, 50), (3, 17, 50)), ((5, 7), (11, 3)), ((1, 2, 60, 90), (1, 2, 240, 361)),
]  # fmt: skip
LINEAR = [Mode.LINEAR, Mode.LINEAR_ONNX, Mode.CUBIC, Mode.BILINEAR_PILLOW]


def both(how: InterpolationSettings, data: Any, output: tuple[int, ...]) -> tuple[Any, Any]:
    """Return the results of C and of NumPy."""
    pairs = zip(data.shape, output, strict=True)
    scales = {axis: y / x for axis, (x, y) in enumerate(pairs) if x != y}
    assert scales, "something changes"
    taps = taps_along(how, data.shape, output, scales)
    found = resampler(how, data.shape, output, taps, 1 << 20)(data, None)
    with without_extension():
        expected = resampler(how, data.shape, output, taps, 1 << 20)(data, None)
    return found, expected


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ["f4", "f2", "f8", "u1", "i8"])
def test_nearest_has_the_bits_of_the_data(dtype: str, shapes: Any) -> None:
    values = np.random.default_rng(1).standard_normal(shapes[0]) * 50
    data = (np.abs(values) if dtype.startswith("u") else values).astype(dtype)
    if data.dtype.kind == "f":
        data.flat[0] = np.nan
    how = InterpolationSettings(
        Mode.NEAREST, Coordinates.HALF_PIXEL, Nearest.ROUND_PREFER_FLOOR, False, 0.0
    )
    found, expected = both(how, data, shapes[1])
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == data.dtype


@pytest.mark.parametrize("shapes", SHAPES, ids=str)
@pytest.mark.parametrize("mode", LINEAR)
@pytest.mark.parametrize("antialias", [False, True])
def test_weighted_sums(antialias: bool, mode: Mode, shapes: Any) -> None:
    data = np.random.default_rng(2).standard_normal(shapes[0], np.float32)
    how = InterpolationSettings(mode, Coordinates.HALF_PIXEL, Nearest.SIMPLE, antialias, -0.75)
    found, expected = both(how, data, shapes[1])
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("isa", [] if compiled is None else compiled.isas())
@pytest.mark.parametrize("seeds", batches(60, 30), ids=str)
def test_random_extents(seeds: range, isa: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DECONV_IR_ISA", isa)
    for seed in seeds:
        rng = np.random.default_rng(seed)
        planes, *inputs = map(int, rng.choice([1, 2, 3, 7, 15, 16, 17, 33, 50], 3))
        factors = rng.choice([0.3, 0.5, 1.3, 2, 2.7, 8], 2)
        outputs = tuple(int(x * f) + 1 for x, f in zip(inputs, factors, strict=True))
        if outputs == tuple(inputs):
            outputs = (outputs[0], outputs[1] + 1)
        data = rng.standard_normal((planes, *inputs), np.float32)
        data.flat[rng.integers(0, data.size, 2)] = np.nan, -0.0
        how = InterpolationSettings(
            list(Mode)[seed % 6], rng.choice(list(Coordinates)), rng.choice(list(Nearest)),
            bool(rng.integers(2)), -0.75,
        )  # fmt: skip
        with np.errstate(all="ignore"):
            found, expected = both(how, data, (planes, *outputs))
        if how.mode is Mode.NEAREST:
            np.testing.assert_array_equal(found.view("u4"), expected.view("u4"))
        else:
            np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
            np.testing.assert_allclose(found, expected, rtol=1e-5, atol=2e-6)


def test_a_view_of_the_data_and_numbers_that_are_not_finite() -> None:
    data = np.random.default_rng(3).standard_normal((2, 30, 40), np.float32)[:, ::2, ::-1]
    data[0, 3, 4], data[1, 5, 6] = np.nan, np.inf
    how = InterpolationSettings(
        Mode.LINEAR_ONNX, Coordinates.ALIGN_CORNERS, Nearest.SIMPLE, False, -0.75
    )
    with np.errstate(all="ignore"):
        found, expected = both(how, data, (2, 31, 79))
    np.testing.assert_array_equal(np.isnan(found), np.isnan(expected))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("mode", [Mode.NEAREST, Mode.CUBIC])
@pytest.mark.parametrize("output", [(2, 9, 11), (3, 5, 7), (2, 5, 7)])
def test_the_result_goes_where_it_is_told(mode: Mode, output: tuple[int, ...]) -> None:
    data = np.random.default_rng(4).standard_normal((2, 5, 7), np.float32)
    how = InterpolationSettings(mode, Coordinates.HALF_PIXEL, Nearest.SIMPLE, False, -0.75)
    scales = {axis: y / x for axis, (x, y) in enumerate(zip(data.shape, output, strict=True))}
    run = resampler(how, data.shape, output, taps_along(how, data.shape, output, scales), 1 << 20)
    expected = run(data, None)
    for out in (np.empty(output, np.float32), np.empty(output[::-1], np.float32).T):
        assert run(data, out) is out
        np.testing.assert_array_equal(out, expected)


def test_c_refuses_taps_outside_of_the_data() -> None:
    module = compiled_module()
    assert module is not None
    data, out = np.zeros((1, 2, 2), np.float32), np.zeros((1, 2, 2), np.float32)
    good, bad = np.array([0, 1]), np.array([0, 2])
    one, two = np.ones(1, np.float32), np.ones(2, np.float32)
    fields = interface.resample_fields(isa=0, threads=1)
    for rows, columns in (((bad, None), (good, None)), ((good, None), (-good, None)),
                          ((good, two), (good, None)), ((good, one), (good, two))):  # fmt: skip
        with pytest.raises(ValueError, match="invalid"):
            module.resample(data, out, *rows, *columns, fields)
    with pytest.raises(ValueError, match="do not fit"):
        module.resample(data[0], out, good, None, good, None, fields)
