"""Poolings on arrays: a window's elements are combined one axis after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from ..dtypes import Array
    from ..geometry import Axis, AxisGeometry

# Elements that a thread works on at once, where a plane is no larger.
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


def slide(
    combine: Callable[..., Any], start: Any, data: Array, windows: Sequence[Window], dtype: Any
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
    result = empty((len(planes), *(w.output for w in windows)), dtype)
    if result.size:
        rows = max(1, _BLOCK // max(1, planes[0].size))

        def do(job: int) -> None:
            part = slice(job * rows, (job + 1) * rows)
            wide = planes[part].astype(dtype, copy=False)
            with np.errstate(all="ignore"):
                for i, axis in enumerate(windows):
                    last = i + 1 == len(windows)
                    wide = _along(
                        np, combine, start, wide, i + 1, axis, result[part] if last else None
                    )

        run_jobs(lambda: do, -(-len(planes) // rows), get_threads())
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
