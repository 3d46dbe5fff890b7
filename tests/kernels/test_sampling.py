"""GridSample against the document's formulas in Python's f64: compiled, and in NumPy."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from kernels.cases import computing_with, without_extension

from deconv_ir.kernels import set_threads
from deconv_ir.kernels.runtime import interface
from deconv_ir.kernels.runtime.extension import compiled_module
from deconv_ir.operations import Context
from deconv_ir.ops.resample.grid_sample import Beyond, GridSample, SampleMode

F32 = np.float32
ISAS: list[str | None] = [None, *(compiled_module().isas() if compiled_module() else ())]
"""The instruction sets; None: NumPy."""


def reflected(index: float, extent: int, align: bool) -> float:
    """Mirror at the ends until the index is inside, as OpenVINO's GridSample-9 describes it."""
    low, high = (0, extent - 1) if align else (-0.5, extent - 0.5)
    if low == high:
        return 0
    while not low <= index <= high:
        index = 2 * low - index if index < low else 2 * high - index
    return index


def element(plane: Any, row: float, column: float, how: GridSample) -> float:
    places = []
    for index, extent in ((row, plane.shape[0]), (column, plane.shape[1])):
        if how.padding_mode is Beyond.REFLECTION:
            index = reflected(index, extent, how.align_corners)
        if how.padding_mode is Beyond.ZEROS and not 0 <= index < extent:
            return 0.0
        places.append(int(min(max(index, 0), extent - 1)))
    return float(plane[tuple(places)])


def weights(index: float, mode: SampleMode) -> list[tuple[int, float]]:
    first = math.floor(index)
    t, a = index - first, -0.75
    if mode is SampleMode.BILINEAR:
        return [(first, 1 - t), (first + 1, t)]
    # The cubic convolution kernel by the distance of an element, 0 to 2.
    found = []
    for i in range(-1, 3):
        d = abs(t - i)
        near = (a + 2) * d**3 - (a + 3) * d**2 + 1
        found.append((first + i, near if d <= 1 else a * (d**3 - 5 * d**2 + 8 * d - 4)))
    return found


def sampled(data: Any, grid: Any, how: GridSample) -> Any:
    out = np.zeros((*data.shape[:2], *grid.shape[1:3]))
    for n, c, y, x in itertools.product(*map(range, out.shape)):
        places = []
        for at, extent in zip(grid[n, y, x].tolist(), data.shape[:1:-1], strict=True):
            index = (
                (at + 1) / 2 * (extent - 1) if how.align_corners else ((at + 1) * extent - 1) / 2
            )
            if how.padding_mode is Beyond.REFLECTION and how.mode is not SampleMode.BICUBIC:
                index = reflected(index, extent, how.align_corners)
            places.append(index)
        column, row = places
        if how.mode is SampleMode.NEAREST:
            out[n, c, y, x] = element(data[n, c], round(row), round(column), how)
            continue
        out[n, c, y, x] = sum(
            element(data[n, c], r, k, how) * wr * wk
            for r, wr in weights(row, how.mode)
            for k, wk in weights(column, how.mode)
        )
    return out


@pytest.mark.parametrize("isa", ISAS)
@pytest.mark.parametrize("mode", SampleMode)
@pytest.mark.parametrize("padding", Beyond)
@pytest.mark.parametrize("align", [False, True])
def test_formulas(align: bool, padding: Beyond, mode: SampleMode, isa: str | None) -> None:
    how = GridSample(align_corners=align, mode=mode, padding_mode=padding)
    rng = np.random.default_rng(1)
    for shape, points in (((2, 3, 5, 6), (4, 7)), ((1, 1, 1, 1), (1, 3)), ((1, 2, 8, 1), (5, 5))):
        data = rng.standard_normal(shape).astype(F32)
        # Multiples of 1/64 are exact in f32, so that nearest positions are those of f64.
        grid = (rng.integers(-160, 160, (shape[0], *points, 2)) / 64).astype(F32)
        with computing_with(isa):
            (found,) = how.execute([data, grid], Context())
        np.testing.assert_allclose(found, sampled(data, grid, how), rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("isa", ISAS[1:])
@pytest.mark.parametrize("mode", SampleMode)
@pytest.mark.parametrize("padding", Beyond)
@pytest.mark.parametrize("align", [False, True])
def test_numbers_that_are_not_usual(
    align: bool, padding: Beyond, mode: SampleMode, isa: str
) -> None:
    """Infinite, huge and missing positions, and data that padding must not meet: as in NumPy."""
    how = GridSample(align_corners=align, mode=mode, padding_mode=padding)
    rng = np.random.default_rng(2)
    data = rng.standard_normal((2, 3, 9, 20)).astype(F32)
    data[:, :, 0, 0] = np.nan
    data[:, :, 4, 5] = np.inf
    odd = np.array([np.nan, np.inf, -np.inf, 3e38, -3e38, 1e10, -0.0, -1, 1, 1e-42], F32)
    grid = rng.uniform(-1.3, 1.3, (2, 17, 37, 2)).astype(F32)
    grid[:, ::3, ::2] = rng.choice(odd, grid[:, ::3, ::2].shape)
    with np.errstate(all="ignore"):
        with computing_with(isa):
            (found,) = how.execute([data, grid], Context())
        with without_extension():
            (expected,) = how.execute([data, grid], Context())
    if mode is SampleMode.NEAREST:
        np.testing.assert_array_equal(found, expected)
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-5)


@pytest.mark.skipif(len(ISAS) == 1, reason="the compiled kernel was not built here")
def test_types_layouts_and_threads() -> None:
    rng = np.random.default_rng(3)
    how = GridSample()
    data = rng.standard_normal((2, 40, 30, 5)).astype(F32)
    grid = rng.uniform(-1, 1, (2, 2, 50, 60)).astype(F32)
    data, grid = data.transpose(0, 3, 1, 2), grid.transpose(0, 2, 3, 1)
    (expected,) = how.execute([data.copy(), grid.copy()], Context())
    try:
        for threads in (1, 2, 5):
            set_threads(threads)
            np.testing.assert_array_equal(how.execute([data, grid], Context())[0], expected)
    finally:
        set_threads(None)
    (halves,) = how.execute([data.astype(np.float16), grid], Context())
    assert halves.dtype == np.float16
    np.testing.assert_allclose(halves, expected, atol=4e-3)


def test_c_refuses_what_does_not_fit() -> None:
    module = compiled_module()
    if module is None:
        pytest.skip("the compiled kernel was not built here")
    data, grid = np.zeros((1, 2, 3, 4), F32), np.zeros((1, 5, 6, 2), F32)
    out = np.zeros((1, 2, 5, 6), F32)
    how = {"isa": 0, "mode": interface.BILINEAR, "beyond": 0, "align": False, "threads": 1}
    module.sample(data, grid, out, interface.sample_fields(**how))
    for bad in (
        (data[0], grid, out), (data, grid, out[:, :1]), (data, grid[..., :1].copy(), out),
        (data.astype("f8"), grid, out), (data[:0], grid[:0], out[:0]),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="arrays do not fit"):
            module.sample(*bad, interface.sample_fields(**how))
    for change in ({"isa": 9}, {"mode": 3}, {"mode": -1}, {"beyond": 3}, {"beyond": 1 << 32}):
        with pytest.raises(ValueError, match="arrays do not fit"):
            module.sample(data, grid, out, interface.sample_fields(**how | change))
