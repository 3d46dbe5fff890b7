"""Poolings on arrays: a window's elements are combined one axis after the other."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from deconv_ir.ir.dtypes import Array
from deconv_ir.ir.geometry import Axis, AxisGeometry
from deconv_ir.ops.numeric import np

# Elements that a thread computes at once, so that they stay in cache.
_BLOCK = 1 << 16


class AxisWindows(NamedTuple):
    """The windows on an axis: their number, and which are empty.

    `cells` has, for each element of a window, a slice of the input and one of the output.
    """

    output: int
    cells: tuple[tuple[slice, slice], ...]
    empty: tuple[slice, ...]


def window(axis: Axis, geometry: AxisGeometry, data: int, kernel: int) -> AxisWindows:
    """Find the elements of the windows on an axis of `data` elements."""
    cells = []
    for tap in _taps(axis, geometry, data, kernel):
        shift = axis.dilation * tap - geometry.pad_begin
        low = max(0, -(shift // axis.stride))
        high = min(geometry.output, (data - 1 - shift) // axis.stride + 1)
        if high > low:
            first = low * axis.stride + shift
            last = (high - 1) * axis.stride + shift + 1
            cells.append((slice(first, last, axis.stride), slice(low, high)))
    empty, end = [], 0
    for start, stop in sorted((to.start, to.stop) for _, to in cells):
        if start > end:
            empty.append(slice(end, start))
        end = max(end, stop)
    if end < geometry.output:
        empty.append(slice(end, geometry.output))
    return AxisWindows(geometry.output, tuple(cells), tuple(empty))


def _taps(axis: Axis, geometry: AxisGeometry, data: int, kernel: int) -> Sequence[int]:
    """Return the taps that read data in any window; the kernel may be of any extent."""

    def reach(first: int, last: int) -> range:
        """Return the taps that read data in windows that begin from `first` to `last`."""
        begin = -((first - geometry.pad_begin) // axis.dilation)
        end = (geometry.pad_begin + data - 1 - last) // axis.dilation
        return range(max(0, begin), min(kernel, end + 1))

    every = reach((geometry.output - 1) * axis.stride, 0)
    if len(every) <= data * geometry.output:
        return every
    starts = range(0, geometry.output * axis.stride, axis.stride)
    return sorted({tap for start in starts for tap in reach(start, start)})


def _part(along: AxisWindows, start: int, stop: int) -> tuple[slice, AxisWindows]:
    """Return the input slice of some of the windows on an axis, and the windows relative to it."""
    if stop - start == along.output:
        return slice(None), along
    cells = []
    for source, target in along.cells:
        low, high = max(target.start, start), min(target.stop, stop)
        if low < high:
            first = source.start + (low - target.start) * source.step
            last = source.start + (high - 1 - target.start) * source.step + 1
            cells.append((slice(first, last, source.step), slice(low - start, high - start)))
    begin = min((source.start for source, _ in cells), default=0)
    end = max((source.stop for source, _ in cells), default=0)
    moved = tuple((slice(c.start - begin, c.stop - begin, c.step), to) for c, to in cells)
    return slice(begin, end), AxisWindows(stop - start, moved, ())


class _Jobs(NamedTuple):
    """The size of a job: planes, outputs of the first axis, and intermediate elements.

    A job has all outputs of that axis, unless a single plane is too large.
    """

    planes: int
    rows: int
    elements: int


def _cut(
    planes: int, extents: Sequence[int], outputs: Sequence[int], casts: bool, elements: int
) -> _Jobs:
    """Cut the work into jobs of about `elements` intermediate elements."""
    # Each axis but the last produces an intermediate array; the first is the largest.
    made, extent = 0, list(extents)
    for axis, output in enumerate(outputs[:-1]):
        extent[axis] = output
        made += math.prod(extent)
    plane = max(1, made + (math.prod(extents) if casts else 0))
    if plane <= elements:
        count = min(planes, elements // plane)
        return _Jobs(max(1, count), outputs[0], plane * max(1, count))
    rows = max(1, outputs[0] * elements // plane)
    return _Jobs(1, rows, -(-plane * rows // outputs[0]))


def slide_bytes(
    planes: int,
    extents: Sequence[int],
    outputs: Sequence[int],
    dtypes: tuple[Any, Any],
    scratch_bytes: int,
) -> int:
    """Return the scratch bytes of `slide`, for N * C planes, their extents X and outputs Y."""
    from deconv_ir.kernels import get_threads

    if not planes or 0 in outputs:
        return 0
    data, dtype = dtypes
    elements = _elements(dtype, scratch_bytes)
    jobs = _cut(planes, extents, outputs, data != dtype, elements)
    count = -(-planes // jobs.planes) * -(-outputs[0] // jobs.rows)
    return int(jobs.elements * min(count, get_threads()) * dtype.itemsize)


def _elements(dtype: Any, scratch_bytes: int) -> int:
    from deconv_ir.kernels import get_threads

    return max(1, min(_BLOCK, scratch_bytes // (get_threads() * int(dtype.itemsize))))


class _Pass(NamedTuple):
    """The windows on one axis, as indices of arrays.

    `cells`, in the order of the windows' elements: indices of the input and of the output (None:
    all of it); `gaps`: outputs that the first cell does not cover.  The order does not depend on
    the extents, so that a window's result does not depend on the others.
    """

    axis: int
    output: int
    cells: tuple[tuple[tuple[slice, ...], tuple[slice, ...] | None], ...]
    gaps: tuple[tuple[slice, ...], ...]


def _pass(axis: int, along: AxisWindows) -> _Pass:
    before, every = (slice(None),) * axis, slice(0, along.output)
    cells = tuple(
        ((*before, source), None if target == every else (*before, target))
        for source, target in along.cells
    )
    first = along.cells[0][1] if along.cells else slice(0, 0)
    gaps = (slice(0, first.start), slice(first.stop, along.output))
    found = tuple((*before, gap) for gap in gaps if gap.start < gap.stop)
    return _Pass(axis, along.output, cells, found)


def slide(
    combine: Callable[..., Any],
    start: Any,
    shape: tuple[int, ...],
    windows: Sequence[AxisWindows],
    dtypes: tuple[Any, Any],
    scratch_bytes: int,
) -> Callable[..., Array]:
    """Return a function that combines the elements under each window, into `out` if given.

    Parameters
    ----------
    combine : callable
        An associative, commutative ufunc.
    start : scalar
        The neutral element, and the result of empty windows.
    shape : tuple of int
        Shape of the data, ``[N, C, *X]``, with one `AxisWindows` for each X.
    dtypes : tuple of dtype
        Types of the data, and of the result and computation.
    scratch_bytes : int
        Bound on temporary arrays, unless a row is larger.
    """
    from deconv_ir.kernels import get_threads
    from deconv_ir.kernels.runtime.memory import empty
    from deconv_ir.kernels.runtime.parallel import run_jobs

    dtype = dtypes[1]
    planes = shape[0] * shape[1]
    outputs = tuple(w.output for w in windows)
    result_shape = (*shape[:2], *outputs)
    if 0 in result_shape:
        return lambda data, out=None: empty(result_shape, dtype) if out is None else out
    elements = _elements(dtype, scratch_bytes)
    cut = _cut(planes, shape[2:], outputs, dtypes[0] != dtype, elements)
    starts = range(0, outputs[0], cut.rows)
    parts = [_part(windows[0], at, min(at + cut.rows, outputs[0])) for at in starts]
    passes = [
        [_pass(axis, along) for axis, along in enumerate((first, *windows[1:]), 1)]
        for _, first in parts
    ]
    jobs = -(-planes // cut.planes) * len(parts)

    def run(data: Array, out: Array | None = None) -> Array:
        made = empty(result_shape, dtype) if out is None else out
        result = made.reshape(planes, *outputs)
        flat = data.reshape(planes, *shape[2:])

        def do(job: int) -> None:
            plane, row = divmod(job, len(parts))
            some = slice(plane * cut.planes, (plane + 1) * cut.planes)
            target = result[some, starts[row] : starts[row] + cut.rows]
            wide = flat[some, parts[row][0]].astype(dtype, copy=False)
            last = passes[row][-1]
            for one in passes[row]:
                wide = _combine(combine, start, wide, one, target if one is last else None)

        if jobs == 1:
            do(0)
        else:
            run_jobs(lambda: do, jobs, get_threads())
        return made

    return run


def _combine(
    combine: Callable[..., Any], start: Any, data: Array, one: _Pass, out: Array | None
) -> Array:
    """Combine the elements of the windows on one axis."""
    if out is None:
        out = np.empty(
            (*data.shape[: one.axis], one.output, *data.shape[one.axis + 1 :]), data.dtype
        )
    cells = one.cells
    if len(cells) > 1 and cells[0][1] is cells[1][1] is None:
        combine(data[cells[0][0]], data[cells[1][0]], out=out)
        cells = cells[2:]
    elif cells:
        source, target = cells[0]
        np.copyto(out if target is None else out[target], data[source])
        cells = cells[1:]
    for gap in one.gaps:
        out[gap] = start
    for source, target in cells:
        part = out if target is None else out[target]
        combine(part, data[source], out=part)
    return out
