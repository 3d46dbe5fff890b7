"""Run a model in tiles, and compare the result with a run of the whole."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from deconv_ir import Model
from deconv_ir.ir.boxes import as_slices
from deconv_ir.kernels import kernel_info
from deconv_ir.tiling.grid import Grid, fit_tile


def in_tiles(
    model: Model, arrays: dict[str, np.ndarray], tile: Sequence[int], output: str | None = None
) -> np.ndarray:
    """Compute the output of a model tile by tile, each from copies of the boxes that it needs."""
    run = model.tiled({name: array.shape for name, array in arrays.items()}, output=output)
    run.require_tileable(fit_tile(run.shape, tile))
    whole = np.empty(run.shape, run.info.element_type.numpy())
    written = np.zeros(run.shape, np.uint8)
    for box in Grid(run.shape, fit_tile(run.shape, tile)).boxes():
        found = run.run(run.tile(box), lambda name, b: arrays[name][as_slices(b)].copy())
        assert found.shape == whole[as_slices(box)].shape
        whole[as_slices(box)] = found
        written[as_slices(box)] += 1
    assert (written == 1).all()
    return whole


def whole(model: Model, arrays: dict[str, np.ndarray]) -> np.ndarray:
    """Compute the whole output of a model at once."""
    (result,) = model.run(arrays).values()
    return result


def is_exact(a: np.ndarray, b: np.ndarray) -> bool:
    """Return whether two arrays have the same bits, except in NaNs.

    Without the compiled kernel, they must be equal up to rounding.
    """
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.dtype.kind not in "f":
        return a.tobytes() == b.tobytes()
    if not kernel_info().available:
        # Some extents make matrix products multiply zeros with infinities.
        finite = np.isfinite(a) & np.isfinite(b)
        scale = np.abs(b[finite]).max(initial=1e-30)
        return np.allclose(a[finite], b[finite], rtol=0, atol=1e-6 * scale)
    nan = np.isnan(a)
    return (
        bool((nan == np.isnan(b)).all())
        and np.where(nan, 0, a).tobytes() == np.where(nan, 0, b).tobytes()
    )
