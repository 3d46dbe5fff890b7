"""Boxes as two corners x, y, x, y: the best scores, and greedy non-maximum suppression."""

from __future__ import annotations

from typing import Any

from deconv_ir.ir.dtypes import Array
from deconv_ir.ops.numeric import np

_BLOCK = 256
"""Candidates that are compared with each other at once."""
_PAIRS = 1 << 18
"""Largest number of pairs of boxes in one step, which bounds the memory."""


def best(scores: Array, most: int | None = None) -> Array:
    """Return the indices of the `most` greatest scores, in falling order, equal ones in order."""
    if most is None or most >= len(scores):
        return np.argsort(-scores, kind="stable")
    if most <= 0:
        return np.empty(0, np.intp)
    least = np.partition(scores, len(scores) - most)[len(scores) - most]
    (candidates,) = np.nonzero(~(scores < least))  # NaN is last in falling order, as in argsort
    return candidates[np.argsort(-scores[candidates], kind="stable")][:most]


def suppress(boxes: Array, limit: float, most: int | None = None, offset: float = 0.0) -> Array:
    """Return the indices of the boxes that overlap no better box which is kept.

    Parameters
    ----------
    boxes : ndarray
        [count, 4], by falling score.
    limit : float
        Largest intersection over union of two boxes that are kept.
    most : int, optional
        Largest number of boxes that are kept.
    offset : float
        Added to widths and heights: 1 for corners that are the first and the last pixel.
    """
    columns = _Columns(boxes, offset)
    kept: list[Any] = []
    most = len(boxes) if most is None else most
    least = as_real(limit, boxes)
    for start in range(0, len(boxes), _BLOCK):
        rows = np.arange(start, min(start + _BLOCK, len(boxes)))
        step = _PAIRS // _BLOCK
        for first in range(0, len(kept), step):
            better = np.array(kept[first : first + step])
            rows = rows[~(columns.shares(better, rows) > least).any(axis=0)]
        dead = np.zeros(len(rows), bool)
        overlaps = columns.shares(rows, rows) > least
        for place, row in enumerate(rows):
            if len(kept) >= most:
                return np.array(kept, np.intp)
            if not dead[place]:
                kept.append(row)
                dead |= overlaps[place]
    return np.array(kept, np.intp)


def suppress_adaptively(
    boxes: Array, limit: float, eta: float, most: int, offset: float = 0.0
) -> Array:
    """Do as `suppress`, with a limit that each kept box lowers by a factor while above 1/2."""
    columns = _Columns(boxes, offset)
    kept: list[int] = []
    for row in range(len(boxes)):
        if len(kept) >= most:
            break
        overlaps = columns.shares(np.array(kept, np.intp), np.array([row]))
        if not (overlaps > as_real(limit, boxes)).any():
            kept.append(row)
            limit = limit * eta if limit > 0.5 else limit
    return np.array(kept, np.intp)


def refine(boxes: Array, deltas: Array, offset: float, most: float | None = None) -> Array:
    """Move the centers of boxes by shares of their sizes, and scale the sizes.

    Parameters
    ----------
    boxes, deltas : ndarray
        [..., 4]: corners; moves right and down, and logarithms of the factors.
    offset : float
        Added to widths and heights; the corners that are returned are exclusive.
    most : float, optional
        Largest logarithm.
    """
    size = boxes[..., 2:] - boxes[..., :2] + as_real(offset, boxes)
    half = as_real(0.5, boxes)
    center = deltas[..., :2] * size + (boxes[..., :2] + half * size)
    factors = deltas[..., 2:]
    if most is not None:
        factors = np.minimum(factors, as_real(most, boxes))
    size = half * (np.exp(factors) * size)
    return np.concatenate([center - size, center + size], axis=-1)


def clip(boxes: Array, width: Any, height: Any) -> Array:
    """Clip corners to an image."""
    most = np.array([width, height, width, height], boxes.dtype)
    return np.asarray(np.maximum(np.minimum(boxes, most), 0))


class _Columns:
    """The coordinates and areas of boxes, contiguous."""

    def __init__(self, boxes: Array, offset: float) -> None:
        self.offset = boxes.dtype.type(offset)
        self.low_x, self.low_y, self.high_x, self.high_y = np.ascontiguousarray(boxes.T)
        width = self.high_x - self.low_x + self.offset
        self.areas = width * (self.high_y - self.low_y + self.offset)

    def shares(self, one: Array, other: Array) -> Any:
        """Return intersection over union of each box of `one` with each of `other`."""
        a, b = one[:, None], other
        width = np.minimum(self.high_x[a], self.high_x[b])
        width -= np.maximum(self.low_x[a], self.low_x[b])
        height = np.minimum(self.high_y[a], self.high_y[b])
        height -= np.maximum(self.low_y[a], self.low_y[b])
        apart = (width < 0) | (height < 0)
        width += self.offset
        height += self.offset
        common = np.where(apart | (width <= 0) | (height <= 0), 0, width * height)
        union = self.areas[a] + self.areas[b] - common
        return np.divide(common, union, out=np.zeros_like(common), where=common != 0)


def as_real(value: float, like: Array) -> Any:
    """Return an attribute in the precision of the numbers with which it is compared."""
    return like.dtype.type(value)
