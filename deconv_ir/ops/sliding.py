"""Poolings on arrays: a window's elements are combined one axis after the other."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from ..dtypes import Array
    from ..geometry import Axis, AxisGeometry

# Elements that a thread makes at once, where a plane is no larger: they stay in its cache.
_BLOCK = 1 << 16


class Window(NamedTuple):
    """What a window does on one axis.

    Attributes
    ----------
    output : int
        Number of windows.
    cells : tuple of (slice, slice)
        For each element of the window, where it reads and where that goes.
    empty : tuple of int
        The windows without any element.
    """

    output: int
    cells: tuple[tuple[slice, slice], ...]
    empty: tuple[int, ...]


def window(axis: Axis, geometry: AxisGeometry, data: int, kernel: int) -> Window:
    """Find the elements of the windows on an axis of `data` elements."""
    cells = []
    reached: set[int] = set()
    for tap in range(kernel):
        shift = axis.dilation * tap - geometry.pad_begin
        low = max(0, -(shift // axis.stride))
        high = min(geometry.output, (data - 1 - shift) // axis.stride + 1)
        if high > low:
            first = low * axis.stride + shift
            last = (high - 1) * axis.stride + shift + 1
            cells.append((slice(first, last, axis.stride), slice(low, high)))
            reached.update(range(low, high))
    empty = tuple(i for i in range(geometry.output) if i not in reached)
    return Window(geometry.output, tuple(cells), empty)


def _part(along: Window, start: int, stop: int) -> tuple[slice, Window]:
    """Return which elements some of the windows on an axis read, and what they do with these."""
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
    return slice(begin, end), Window(stop - start, moved, ())


class _Jobs(NamedTuple):
    """How the work is cut.

    Attributes
    ----------
    planes : int
        Planes of a job.
    rows : int
        Outputs of the first axis of a job: all of them, unless a plane alone is too much.
    elements : int
        What a job makes on the way to its results.
    """

    planes: int
    rows: int
    elements: int


def _cut(
    planes: int, extents: Sequence[int], outputs: Sequence[int], casts: bool, elements: int
) -> _Jobs:
    """Cut the work into jobs that make about so many elements on the way."""
    # All but the last axis leave an array of its own: the first the largest.
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
    """Return the bytes that `slide` takes for what comes and goes.

    Parameters
    ----------
    planes : int
        N * C.
    extents, outputs : sequence of int
        The X and the Y.
    dtypes : tuple of dtype
        Of the data, and in which it is computed.
    scratch_bytes : int
        As of `slide`.
    """
    from ..kernels import get_threads

    if not planes or 0 in outputs:
        return 0
    data, dtype = dtypes
    elements = _elements(dtype, scratch_bytes)
    jobs = _cut(planes, extents, outputs, data != dtype, elements)
    count = -(-planes // jobs.planes) * -(-outputs[0] // jobs.rows)
    return int(jobs.elements * min(count, get_threads()) * dtype.itemsize)


def _elements(dtype: Any, scratch_bytes: int) -> int:
    from ..kernels import get_threads

    return max(1, min(_BLOCK, scratch_bytes // (get_threads() * int(dtype.itemsize))))


def slide(
    combine: Callable[..., Any],
    start: Any,
    data: Array,
    windows: Sequence[Window],
    dtype: Any,
    scratch_bytes: int,
) -> Array:
    """Combine the elements under each window.

    Parameters
    ----------
    combine : callable
        An associative, commutative ufunc.
    start : scalar
        What changes nothing when it is combined, and the result of empty windows.
    data : ndarray
        ``[N, C, *X]``.
    windows : sequence of Window
        One for each X.
    dtype : dtype
        In which it is computed.
    scratch_bytes : int
        Bound on what comes and goes, where a row is no larger.

    Returns
    -------
    ndarray
        ``[N, C, *Y]``, of `dtype`.
    """
    import numpy as np

    from ..kernels import get_threads
    from ..kernels.memory import empty
    from ..kernels.parallel import run_jobs

    planes = data.reshape(-1, *data.shape[2:])
    outputs = tuple(w.output for w in windows)
    result = empty((len(planes), *outputs), dtype)
    if result.size:
        casts, elements = data.dtype != dtype, _elements(dtype, scratch_bytes)
        cut = _cut(len(planes), data.shape[2:], outputs, casts, elements)
        starts = range(0, outputs[0], cut.rows)
        parts = [_part(windows[0], at, min(at + cut.rows, outputs[0])) for at in starts]

        def do(job: int) -> None:
            plane, row = divmod(job, len(parts))
            some = slice(plane * cut.planes, (plane + 1) * cut.planes)
            reads, first = parts[row]
            target = result[some, starts[row] : starts[row] + cut.rows]
            axes = (first, *windows[1:])
            with np.errstate(all="ignore"):
                wide = planes[some, reads].astype(dtype, copy=False)
                for i, axis in enumerate(axes, 1):
                    out = target if i == len(axes) else None
                    wide = _along(np, combine, start, wide, i, axis, out)

        run_jobs(lambda: do, -(-len(planes) // cut.planes) * len(parts), get_threads())
    return result.reshape(*data.shape[:2], *result.shape[1:])


def _along(
    np: Any,
    combine: Callable[..., Any],
    start: Any,
    data: Array,
    axis: int,
    along: Window,
    out: Array | None,
) -> Array:
    """Combine the elements of the windows on one axis."""
    if out is None:
        out = np.empty((*data.shape[:axis], along.output, *data.shape[axis + 1 :]), data.dtype)
    before = (slice(None),) * axis
    full = [source for source, target in along.cells if target == slice(0, along.output)]
    rest = [cell for cell in along.cells if cell[1] != slice(0, along.output)]
    if len(full) > 1:
        combine(data[(*before, full[0])], data[(*before, full[1])], out=out)
    elif full:
        np.copyto(out, data[(*before, full[0])])
    else:
        out[...] = start
    for source in full[2:]:
        combine(out, data[(*before, source)], out=out)
    for source, target in rest:
        part = out[(*before, target)]
        combine(part, data[(*before, source)], out=part)
    return out
