"""Interpolation of arrays, one axis after the other; `coordinates.py` has the weights."""

from __future__ import annotations

import enum
import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from deconv_ir.ir.dtypes import F64, Array, ElementType
from deconv_ir.ir.shapes import element_count
from deconv_ir.ops.numeric import narrow, np, widen
from deconv_ir.ops.tile_rules import FixedArrays

# Temporary bytes of an element: sum, addend, input and widened input, in f32.
_ELEMENT_BYTES = 16
# Bytes of a tap: index and weight, their copies for the compiled kernel, and five of their terms.
_TAP_BYTES = 64
# Maximum number of elements of a thread's arrays that stay in cache.
_MOST_AT_ONCE = 1 << 16
# Minimum number of elements for more than one thread.
_WORTH_A_THREAD = 1 << 18


class Mode(enum.Enum):
    """Kind of interpolation."""

    NEAREST = "nearest"
    LINEAR = "linear"
    LINEAR_ONNX = "linear_onnx"
    CUBIC = "cubic"
    BILINEAR_PILLOW = "bilinear_pillow"
    BICUBIC_PILLOW = "bicubic_pillow"


_PILLOW = (Mode.BILINEAR_PILLOW, Mode.BICUBIC_PILLOW)
# The taps of an element; the kernels of other modes reach two elements to each side, stretched.
_TAPS = {Mode.NEAREST: 1, Mode.LINEAR_ONNX: 2, Mode.CUBIC: 4}


class Coordinates(enum.Enum):
    """The mapping of coordinates in the output to coordinates in the data."""

    HALF_PIXEL = "half_pixel"
    PYTORCH_HALF_PIXEL = "pytorch_half_pixel"
    ASYMMETRIC = "asymmetric"
    TF_HALF_PIXEL_FOR_NN = "tf_half_pixel_for_nn"
    ALIGN_CORNERS = "align_corners"


class Nearest(enum.Enum):
    """The rounding of a coordinate to an index."""

    ROUND_PREFER_FLOOR = "round_prefer_floor"
    ROUND_PREFER_CEIL = "round_prefer_ceil"
    FLOOR = "floor"
    CEIL = "ceil"
    SIMPLE = "simple"


class InterpolationSettings(NamedTuple):
    """Settings of an interpolation, in terms of versions 4 and 11."""

    mode: Mode
    coordinates: Coordinates
    nearest: Nearest
    antialias: bool
    cube_coeff: float
    in_f32: bool = False
    """Whether coordinates of `nearest` are rounded to f32, as the OpenVINO runtime does."""


class _Cut(NamedTuple):
    """The division of work: rows before the first axis that changes, and lines of that axis.

    `elements` is the size of the largest temporary array of a job.
    """

    rows: int
    lines: int
    threads: int
    elements: int


def _cut(data: Sequence[int], output: Sequence[int], lead: int, scratch_bytes: int) -> _Cut:
    """Divide the work between shapes that differ from axis `lead` on."""
    from deconv_ir.kernels import get_threads

    threads = get_threads() if element_count(output) >= _WORTH_A_THREAD else 1
    most = min(scratch_bytes // (threads * _ELEMENT_BYTES), _MOST_AT_ONCE)
    if lead == len(output):
        return _Cut(max(1, most), 1, threads, max(1, most))
    line = max(
        1, element_count([max(*dims) for dims in zip(data, output, strict=True)][lead + 1 :])
    )
    # If the axis is downsampled, a line is computed from several.
    line *= max(1, -(-data[lead] // max(1, output[lead])))
    lines = min(output[lead], max(1, most // line))
    rows = max(1, most // (line * output[lead])) if lines == output[lead] else 1
    return _Cut(rows, lines, threads, rows * lines * line)


def resample_bytes(
    data: Sequence[int], output: Sequence[int], element_type: ElementType | None, scratch_bytes: int
) -> int:
    """Estimate the bytes of temporary arrays in a run of the function from `resampler`."""
    if 0 in output:
        return 0
    in_f64 = element_type is F64 or (element_type is not None and element_type.is_integer)
    element_bytes = _ELEMENT_BYTES * (1 + in_f64)
    changed = [i for i, (x, y) in enumerate(zip(data, output, strict=True)) if x != y]
    lead = min(changed, default=len(output))
    cut = _cut(data, output, lead, scratch_bytes)
    jobs = -(-element_count(output[:lead]) // cut.rows) * -(-(*output, 1)[lead] // cut.lines)
    whole = element_count([max(*dims) for dims in zip(data, output, strict=True)])
    return element_bytes * min(whole, min(jobs, cut.threads) * cut.elements)


def table_bytes(how: InterpolationSettings, data: Sequence[int], output: Sequence[int]) -> int:
    """Bound the bytes of the taps of all axes, with what it takes to find them."""
    taps = 0
    for extent, found in zip(data, output, strict=True):
        if extent != found:
            shrinks = how.antialias or how.mode in _PILLOW
            stretch = max(1.0, extent / max(1, found)) if shrinks else 1.0
            taps += found * _TAPS.get(how.mode, 4 * math.ceil(stretch) + 1)
    return _TAP_BYTES * taps


Taps = FixedArrays
"""The taps of the elements along an axis: indices and, unless all are 1, weights."""


def taps_along(
    how: InterpolationSettings,
    data: Sequence[int],
    output: Sequence[int],
    scales: Mapping[int, float],
) -> dict[int, Taps]:
    """Return the taps of output elements, for each axis that changes.

    `scales`: axis -> output extent over data extent, or the scale that the model gives.
    """
    scales = {a: s for a, s in sorted(scales.items()) if s != 1 or data[a] != output[a]}
    shrinks = how.antialias and any(scale < 1 for scale in scales.values())
    return {
        axis: Taps(*_taps_of(how, scale, data[axis], output[axis], shrinks))
        for axis, scale in scales.items()
    }


def resampler(
    how: InterpolationSettings,
    data: tuple[int, ...],
    output: Sequence[int],
    taps: Mapping[int, Taps],
    scratch_bytes: int,
) -> Callable[[Array, Array | None], Array]:
    """Return a function that interpolates arrays of one shape to other extents, in their dtype.

    The function takes an array, and an array for the result or None; it may return its input.

    `data` and `output` are extents, those of the data not 0.  `taps` is a result of `taps_along`.
    The bound on temporary arrays is exceeded if a line needs more.
    """
    from deconv_ir.kernels.runtime.memory import empty
    from deconv_ir.kernels.runtime.parallel import run_jobs

    lead = min(taps, default=len(data))
    cut = _cut(data, output, lead, scratch_bytes)
    count = element_count(data[:lead])
    starts = range(0, (*output, 1)[lead], cut.lines)
    axes = [(axis - lead + 1, found) for axis, found in taps.items()]
    jobs = -(-count // cut.rows) * len(starts)

    compiled = compiled_resampler(how, data, output, axes, lead)

    def run(array: Array, out: Array | None) -> Array:
        if not axes and out is None:
            return array.reshape(output)
        if out is not None and not out.flags.c_contiguous:
            out[...] = run(array, None)
            return out
        result = empty(output, array.dtype) if out is None else out
        if compiled is not None and (how.mode is Mode.NEAREST or array.dtype == np.float32):
            compiled(array, result)
            return result
        rows = array.reshape(count, *data[lead:])
        parts = result.reshape(count, *output[lead:])

        def do(job: int) -> None:
            row, line = divmod(job, len(starts))
            some = slice(row * cut.rows, (row + 1) * cut.rows)
            if not axes:
                parts[some] = rows[some]
                return
            lines = slice(starts[line], starts[line] + cut.lines)
            first, (index, *weights) = axes[0]
            near, far = int(index[lines].min()), int(index[lines].max()) + 1
            here = [(first, (index[lines] - near, *(w[lines] for w in weights))), *axes[1:]]
            parts[some, lines] = _resample(how, rows[some, near:far], here)

        run_jobs(lambda: do, jobs, cut.threads)
        return result

    return run


def compiled_resampler(
    how: InterpolationSettings,
    data: tuple[int, ...],
    output: Sequence[int],
    axes: Sequence[tuple[int, Any]],
    lead: int,
) -> Callable[[Array, Array], None] | None:
    """Return a function that interpolates the last two axes; None if others change, or none do."""
    from deconv_ir.kernels import get_threads
    from deconv_ir.kernels.copies import contiguous
    from deconv_ir.kernels.runtime import interface
    from deconv_ir.kernels.runtime.cpu import isa_number
    from deconv_ir.kernels.runtime.extension import compiled_module

    module, rank = compiled_module(), len(data)
    if module is None or not axes or rank < 2 or lead < rank - 2 or data[-1] >= 1 << 31:
        return None
    taps_of = {axis + lead - 1: taps for axis, taps in axes}
    taps: list[Array | None] = []
    for axis in (rank - 2, rank - 1):
        index, *weights = taps_of.get(axis, (np.arange(data[axis]),))
        if how.mode is Mode.NEAREST:
            weight = None
        elif weights:
            weight = np.ascontiguousarray(weights[0].T, np.float32)
        else:
            weight = np.ones(data[axis], np.float32)
        taps += [np.ascontiguousarray(index.T, np.int64), weight]
    shapes = (-1, *data[-2:]), (-1, *output[-2:])
    resample = module.resample
    fields = interface.resample_fields(isa=isa_number(), threads=get_threads())

    def run(array: Array, out: Array) -> None:
        bits = f"u{out.itemsize}"
        flat = contiguous(array).view(bits).reshape(shapes[0])
        resample(flat, out.view(bits).reshape(shapes[1]), *taps, fields)

    return run


def _resample(how: InterpolationSettings, data: Array, axes: Sequence[tuple[int, Any]]) -> Array:
    """Interpolate along some axes, one after the other."""
    from deconv_ir.ops.resample import coordinates as resampling

    if how.mode is Mode.NEAREST:
        for axis, (index,) in axes:
            data = np.take(data, index, axis=axis)
        return data
    wide = widen(data)
    if wide.dtype.kind in "iu":
        wide = wide.astype(np.float64)
    with np.errstate(all="ignore"):
        for axis, taps in axes:
            wide = resampling.weigh(wide, taps, axis)
        return _rounded(wide, data.dtype)


def _taps_of(
    how: InterpolationSettings, scale: float, data: int, output: int, shrinks: bool
) -> Any:
    """Return the taps of output elements along an axis: indices, and weights unless nearest."""
    from deconv_ir.ops.resample import coordinates as resampling

    if how.mode is Mode.NEAREST:
        find = resampling.nearest_in_f32 if how.in_f32 else resampling.nearest
        return (find(how.coordinates.value, how.nearest.value, scale, data, output),)
    return _taps(how, scale, scale if shrinks else 1.0, data, output)


@functools.lru_cache(maxsize=64)
def _taps(how: InterpolationSettings, scale: float, slope: float, data: int, output: int) -> Any:
    """Return indices and weights of the elements of each output element along an axis."""
    from deconv_ir.ops.resample import coordinates as resampling

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
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        array = np.clip(np.rint(array), float(info.min), float(info.max))
    return narrow(array, dtype)
