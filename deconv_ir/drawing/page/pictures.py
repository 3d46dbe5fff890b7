"""Tensors as small pictures: feature maps side by side, slices of volumes, signals as lines."""

from __future__ import annotations

import base64
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from deconv_ir.drawing.palette import DIVERGING, SEQUENTIAL, mixed
from deconv_ir.drawing.png import indexed_png
from deconv_ir.drawing.text import number
from deconv_ir.ir.dtypes import Array

SHADES = 254
GRID, ODD = 254, 255
"""Palette entries of the lines between maps, and of NaN and infinities."""

MAX_POINTS = 300
MAX_LINES = 6
WIDTH = 320
"""Width of a picture on the page, in pixels."""


class Detail(NamedTuple):
    """The detail of a picture: elements of a side, and number of maps."""

    side: int
    maps: int


DETAILS = (Detail(96, 36), Detail(64, 36), Detail(48, 16), Detail(32, 9), Detail(16, 4))


def pictures_of(
    array: Array, most_bytes: int, title: str = "value", *, signed: bool = False
) -> list[Any]:
    """Draw an array in at most `most_bytes`, for the page's `figureOf`; empty if it does not fit.

    Only the first element of a batch is drawn: [N, C, H, W], [N, C, D, H, W] and [N, C, L] by the
    number of axes.  With `signed`, for differences, zero is white.
    """
    import numpy as np

    if array.dtype.kind in "OSUc" or not array.size:
        return []
    notes = []
    if array.ndim > 1 and array.shape[0] > 1:
        notes.append(f"the first of {array.shape[0]}")
    values = np.asarray(array[0] if array.ndim > 1 else array)
    # Only the picture, not the whole tensor, is converted to double precision.
    low, high = _range(values)
    found: dict[str, Any] = {"title": title, "low": number(low), "high": number(high)}
    if values.ndim < 3:
        rows = values.reshape(-1, values.shape[-1]) if values.ndim else values
        found |= _lines(rows, _digits(low, high), notes)
        return [_noted(found, notes)] if len(str(found)) <= most_bytes else []
    if values.ndim > 4:
        return []
    bound = max(abs(low), abs(high))
    span = (-bound, bound) if signed else (low, high)
    for detail in DETAILS:
        indices, more = _maps(values, detail, span)
        image = indexed_png(indices, colours(DIVERGING if signed else SEQUENTIAL))
        source = "data:image/png;base64," + base64.b64encode(image).decode()
        if len(source) + 200 <= most_bytes:
            scale = max(1, WIDTH // indices.shape[1])
            found |= {"source": source, "width": indices.shape[1] * scale}
            found["height"] = indices.shape[0] * scale
            return [_noted(found, [*notes, *more])]
    return []


def _noted(found: dict[str, Any], notes: list[str]) -> dict[str, Any]:
    return found | {"note": ", ".join(notes)} if notes else found


def _range(values: Array) -> tuple[float, float]:
    import numpy as np

    if values.dtype.kind in "biu":
        return float(values.min()), float(values.max())
    good = values[np.isfinite(values)]
    return (float(good.min()), float(good.max())) if good.size else (math.nan, math.nan)


def _digits(low: float, high: float) -> int:
    """Return the significant digits that tell apart a thousand values of a range."""
    most, span = max(abs(low), abs(high)), high / 2 - low / 2  # which does not overflow
    return 4 + max(0, math.floor(math.log10(most / span))) if 0 < span < most else 4


def _lines(values: Array, digits: int, notes: list[str]) -> dict[str, Any]:
    """Reduce signals to points: each bucket keeps its minimum and maximum."""
    rows = values.reshape(-1, values.shape[-1] if values.ndim else 1)
    if len(rows) > MAX_LINES:
        notes.append(f"{MAX_LINES} of {len(rows)} channels")
    return {"line": [_points(row, digits) for row in rows[:MAX_LINES]]}


def _points(row: Array, digits: int) -> list[float | None]:
    import numpy as np

    row = row.astype(np.float64)
    if len(row) > MAX_POINTS:
        buckets = np.array_split(row, MAX_POINTS // 2)
        row = np.array([end for b in buckets for end in (b.min(), b.max())])
    return [float(f"{v:.{digits}g}") if math.isfinite(v) else None for v in row.tolist()]


def _maps(values: Array, detail: Detail, span: tuple[float, float]) -> tuple[Array, list[str]]:
    """Arrange maps in a grid of palette entries."""
    import numpy as np

    notes = []
    if values.ndim == 4:  # a volume: slices of each channel, one channel per row
        channels, depth = values.shape[:2]
        rows = min(channels, max(1, detail.maps // 6))
        columns = min(depth, 6)
        at = np.linspace(0, depth - 1, columns).round().astype(int)
        maps = values[:rows][:, at].reshape(-1, *values.shape[2:])
        notes.append(f"slices {', '.join(map(str, at))} of {depth}; {rows} of {channels} channels")
    else:
        maps = values[: detail.maps]
        columns = math.ceil(math.sqrt(len(maps)))
        rows = -(-len(maps) // columns)
        if len(maps) < len(values):
            notes.append(f"{len(maps)} of {len(values)} channels")
    step = max(1, -(-max(maps.shape[1:]) // detail.side))
    if step > 1:
        maps = maps[:, ::step, ::step]
        notes.append(f"1 in {step} rows and columns")
    shades = _shades(maps.astype(np.float64), span)
    height, width = shades.shape[1:]
    grid = np.full((rows * (height + 1) + 1, columns * (width + 1) + 1), GRID, np.uint8)
    for k, one in enumerate(shades):
        y, x = 1 + k // columns * (height + 1), 1 + k % columns * (width + 1)
        grid[y : y + height, x : x + width] = one
    return grid, notes


def _shades(values: Array, span: tuple[float, float]) -> Array:
    import numpy as np

    low, high = span
    odd = ~np.isfinite(values)
    scaled = np.zeros(values.shape)
    if high > low:
        # Computed with halves, since the range may exceed that of a double.
        scaled = (np.where(odd, low, values) / 2 - low / 2) / (high / 2 - low / 2)
    shades = (scaled * (SHADES - 1)).round().astype(np.uint8)
    shades[odd] = ODD
    found: Array = shades
    return found


def colours(anchors: Sequence[str]) -> list[tuple[int, int, int]]:
    """Return the palette of a picture: shades, and the colours of `GRID` and `ODD`."""
    found = []
    for shade in range(SHADES):
        at = shade * (len(anchors) - 1) / (SHADES - 1)
        k = min(int(at), len(anchors) - 2)
        found.append(mixed(anchors[k], anchors[k + 1], at - k))
    return [*found, (0x80, 0x80, 0x80), (0xFF, 0x00, 0xFF)]
