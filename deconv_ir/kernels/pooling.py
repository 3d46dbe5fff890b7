"""Compiled pooling of f32 over one to three axes, and means of any windows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from deconv_ir.ir.dtypes import Array
from deconv_ir.kernels.copies import contiguous
from deconv_ir.kernels.runtime import interface
from deconv_ir.kernels.runtime.cpu import isa_number
from deconv_ir.kernels.runtime.extension import compiled_module
from deconv_ir.kernels.runtime.memory import empty
from deconv_ir.kernels.runtime.threads import get_threads

_MOST_PADDED = 1024


class Pooler(NamedTuple):
    """Pools ``[N, C, *X]`` into ``[N, C, *Y]``, both f32."""

    takes: Callable[[Sequence[int], Sequence[int]], bool]
    """Whether extents X and Y are supported; NumPy handles others."""
    run: Callable[[Array, Array], None]
    """Pools the data into the contiguous output."""


def pooler(
    windows: Sequence[tuple[int, int, int, int]], divisors: Sequence[Array] | None
) -> Pooler | None:
    """Return a pooler over one to three axes; None if the extension was not built.

    Each axis has a window: kernel, stride, dilation, and padding before the data.  The product of
    the divisors, a sequence for each axis, divides the sum under a window; without them, the result
    is the maximum, NaN if an element is NaN, -inf for an empty window.
    """
    module, rank = compiled_module(), len(windows)
    if module is None or not 1 <= rank <= interface.AXES:
        return None
    missing = interface.AXES - rank
    blank = (1,) * missing
    kernel, strides, dilations, pads = zip(*((1, 1, 1, 0),) * missing, *windows, strict=True)
    lists: list[Array | None] = [None] * interface.AXES
    if divisors is not None:
        ones = [np.ones(1, np.float32)] * missing
        lists = [*ones, *(np.ascontiguousarray(d, np.float32) for d in divisors)]
    pool = module.pool
    fields = interface.pool_fields(
        isa=isa_number(),
        pooled=interface.POOLED_MAX if divisors is None else interface.POOLED_SUM,
        kernel=kernel,
        strides=strides,
        dilations=dilations,
        pads_begin=pads,
        threads=get_threads(),
    )

    def takes(extents: Sequence[int], outputs: Sequence[int]) -> bool:
        # Rows are padded, but not if they would be mostly padding.
        sane = all(
            pad >= 0 and pad + y * stride + kernel * dilation < 4 * (x + y) + _MOST_PADDED
            for (kernel, stride, dilation, pad), x, y in zip(windows, extents, outputs, strict=True)
        )
        return sane and all(n > 0 for n in (*extents, *outputs))

    def run(data: Array, out: Array) -> None:
        planes = data.shape[0] * data.shape[1]
        rows = np.ascontiguousarray(data).reshape(planes, *blank, *data.shape[2:])
        pool(rows, out.reshape(planes, *blank, *out.shape[2:]), *lists, fields)

    return Pooler(takes, run)


def average_windows(data: Array, windows: Sequence[Sequence[tuple[int, int]]]) -> Array | None:
    """Return the means of windows of ``[N, C, *X]``: ``[N, C, *Y]``.

    Each axis has Y windows: the positions, within X, where they begin and end.  The sum of a window
    is that of its rows, in their order, then of the columns.  Returns None if the extension was not
    built, or data are empty, not of f32 or of more than three axes.
    """
    module, missing = compiled_module(), interface.AXES - len(windows)
    if module is None or data.dtype != np.float32 or not data.size or missing < 0:
        return None
    planes, blank = data.shape[0] * data.shape[1], (1,) * missing
    out = empty((*data.shape[:2], *map(len, windows)), data.dtype)
    if out.size:
        tables = [np.array([[0, 1]])] * missing + [np.array(w, np.int64) for w in windows]
        rows = contiguous(data).reshape(planes, *blank, *data.shape[2:])
        fields = interface.average_windows_fields(isa=isa_number(), threads=get_threads())
        module.average_windows(rows, out.reshape(planes, *blank, *out.shape[2:]), *tables, fields)
    return out
