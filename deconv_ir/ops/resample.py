"""Interpolation of arrays, one axis after the other; `kernels/resampling.py` has the weights."""

from __future__ import annotations

import enum
import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

from ..shapes import element_count

if TYPE_CHECKING:
    from ..dtypes import Array

# Of an element, in f32: the sum, what is added to it, and what it is made of.
_ELEMENT_BYTES = 12
# Elements beyond which a thread's arrays leave its cache.
_MOST_AT_ONCE = 1 << 16
# Elements from which on it is work for more than one thread.
_WORTH_A_THREAD = 1 << 18


class Mode(enum.Enum):
    """Kind of interpolation."""

    NEAREST = "nearest"
    LINEAR = "linear"
    LINEAR_ONNX = "linear_onnx"
    CUBIC = "cubic"
    BILINEAR_PILLOW = "bilinear_pillow"
    BICUBIC_PILLOW = "bicubic_pillow"


class Coordinates(enum.Enum):
    """How a coordinate in the output becomes one in the data."""

    HALF_PIXEL = "half_pixel"
    PYTORCH_HALF_PIXEL = "pytorch_half_pixel"
    ASYMMETRIC = "asymmetric"
    TF_HALF_PIXEL_FOR_NN = "tf_half_pixel_for_nn"
    ALIGN_CORNERS = "align_corners"


class Nearest(enum.Enum):
    """How a coordinate becomes an index."""

    ROUND_PREFER_FLOOR = "round_prefer_floor"
    ROUND_PREFER_CEIL = "round_prefer_ceil"
    FLOOR = "floor"
    CEIL = "ceil"
    SIMPLE = "simple"


@dataclass(frozen=True, slots=True)
class Settings:
    """How to interpolate, in terms of versions 4 and 11."""

    mode: Mode
    coordinates: Coordinates
    nearest: Nearest
    antialias: bool
    cube_coeff: float


class _Cut(NamedTuple):
    """How many rows a thread computes at once, and how many threads there are."""

    rows: int
    threads: int


def _cut(output: Sequence[int], lead: int, scratch_bytes: int) -> _Cut:
    """Cut the work: the axes before the first that changes are independent."""
    from ..kernels import get_threads

    threads = get_threads() if element_count(output) >= _WORTH_A_THREAD else 1
    elements = min(scratch_bytes // (threads * _ELEMENT_BYTES), _MOST_AT_ONCE)
    return _Cut(max(1, elements // max(1, element_count(output[lead:]))), threads)


def resample_bytes(data: Sequence[int], output: Sequence[int], scratch_bytes: int) -> int:
    """Return about the bytes that `resample` takes for what comes and goes."""
    changed = [i for i, (x, y) in enumerate(zip(data, output, strict=True)) if x != y]
    lead = min(changed, default=len(output))
    cut = _cut(output, lead, scratch_bytes)
    rows = min(element_count(output[:lead]), cut.rows * cut.threads)
    return _ELEMENT_BYTES * rows * element_count(output[lead:])


def resample(
    how: Settings,
    data: Array,
    output: Sequence[int],
    scales: Mapping[int, float],
    scratch_bytes: int,
) -> Array:
    """Interpolate to other extents.

    Parameters
    ----------
    how : Settings
    data : ndarray
        Not empty.
    output : sequence of int
        Extents of the output.
    scales : mapping
        Axis -> output extent over data extent, or what the model states in its place.
    scratch_bytes : int
        Bound on what comes and goes, where a row of the axes that change takes no more.

    Returns
    -------
    ndarray
        Of the dtype of the data.
    """
    scales = {a: s for a, s in scales.items() if s != 1 or data.shape[a] != output[a]}
    lead = min(scales, default=data.ndim)
    from ..kernels.memory import empty
    from ..kernels.parallel import run_jobs

    rows = data.reshape(-1, *data.shape[lead:])
    result = empty((len(rows), *output[lead:]), data.dtype)
    cut = _cut(output, lead, scratch_bytes)
    moved = {axis - lead + 1: scale for axis, scale in scales.items()}

    def do(job: int) -> None:
        some = slice(job * cut.rows, (job + 1) * cut.rows)
        result[some] = _resample(how, rows[some], (0, *output[lead:]), moved)

    run_jobs(lambda: do, -(-len(rows) // cut.rows), cut.threads)
    return result.reshape(output)


def _resample(
    how: Settings, data: Array, output: Sequence[int], scales: Mapping[int, float]
) -> Array:
    """Interpolate along some axes; `output` has their extents."""
    import numpy as np

    from ..kernels import resampling
    from .numeric import widen

    if how.mode is Mode.NEAREST:
        for axis, scale in scales.items():
            extent = data.shape[axis]
            at = resampling.coordinates(how.coordinates.value, scale, extent, output[axis])
            index = resampling.nearest(how.nearest.value, at, scale, extent)
            data = np.take(data, index, axis=axis)
        return data
    wide = widen(data)
    if wide.dtype.kind in "iu":
        wide = wide.astype(np.float64)
    shrinks = how.antialias and any(scale < 1 for scale in scales.values())
    with np.errstate(all="ignore"):
        for axis, scale in scales.items():
            extent = wide.shape[axis]
            slope = scale if shrinks else 1.0
            taps = _taps(how, scale, slope, extent, output[axis])
            wide = resampling.weigh(wide, taps, axis)
        return _rounded(wide, data.dtype)


@functools.lru_cache(maxsize=64)
def _taps(how: Settings, scale: float, slope: float, data: int, output: int) -> Any:
    """Return which elements an output element is made of, along one axis."""
    from ..kernels import resampling

    if how.mode is Mode.BILINEAR_PILLOW:
        return resampling.pillow(data, output, None)
    if how.mode is Mode.BICUBIC_PILLOW:
        return resampling.pillow(data, output, how.cube_coeff)
    at = resampling.coordinates(how.coordinates.value, scale, data, output)
    if how.mode is Mode.CUBIC:
        return resampling.cubic(at, how.cube_coeff, data)
    if how.mode is Mode.LINEAR_ONNX:
        return resampling.linear_onnx(at, data)
    return resampling.linear(at, scale, slope, data)


def _rounded(array: Array, dtype: Any) -> Array:
    """Return a result in the type of the data: integers are rounded, and kept in range."""
    import numpy as np

    from .numeric import narrow

    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        array = np.clip(np.rint(array), float(info.min), float(info.max))
    return narrow(array, dtype)
