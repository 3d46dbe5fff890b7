"""Compiled sampling of images at the positions of a grid, in f32."""

from __future__ import annotations

import numpy as np

from deconv_ir.ir.dtypes import Array
from deconv_ir.kernels.copies import contiguous
from deconv_ir.kernels.runtime import interface
from deconv_ir.kernels.runtime.cpu import isa_number
from deconv_ir.kernels.runtime.extension import compiled_module
from deconv_ir.kernels.runtime.memory import empty
from deconv_ir.kernels.runtime.threads import get_threads

MODES = ("nearest", "bilinear", "bicubic")
PADDINGS = ("zeros", "border", "reflection")
"""In the order of enum sampling_mode and enum sampling_beyond."""
_MOST_ELEMENTS, _MOST_EXTENT = (1 << 31) - 1, 1 << 24
"""Of a plane, whose indices have 32 bits; of an axis, whose indices f32 represents."""


def sample(data: Array, grid: Array, *, mode: str, padding: str, align: bool) -> Array | None:
    """Return ``[N, C, H', W']``: ``[N, C, H, W]`` sampled at a grid ``[N, H', W', 2]``.

    `mode` is one of `MODES`, `padding` one of `PADDINGS`.  Returns None if the extension was not
    built, or the arrays are empty or not of f32.
    """
    module, plane = compiled_module(), data.shape[2] * data.shape[3]
    is_plain = data.dtype == grid.dtype == np.float32 and data.size and grid.size
    if (
        module is None
        or not is_plain
        or plane > _MOST_ELEMENTS
        or max(data.shape[2:]) > _MOST_EXTENT
    ):
        return None
    out = empty((*data.shape[:2], *grid.shape[1:3]), data.dtype)
    fields = interface.sample_fields(
        isa=isa_number(),
        mode=MODES.index(mode),
        beyond=PADDINGS.index(padding),
        align=align,
        threads=get_threads(),
    )
    module.sample(contiguous(data), contiguous(grid), out, fields)
    return out
