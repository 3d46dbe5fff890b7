"""AdaptiveAvgPool-8 and AdaptiveMaxPool-8: windows that divide the data evenly."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

from deconv_ir.errors import ShapeError
from deconv_ir.ir.boxes import Boxes, LayerTile, Span, Statistic
from deconv_ir.ir.dtypes import I64, Array, ElementType
from deconv_ir.ir.geometry import UNKNOWN
from deconv_ir.ir.operation import Arrays, Context, Infos, Operation, TensorInfo
from deconv_ir.ir.record import field
from deconv_ir.ir.shapes import Shape, format_shape, static
from deconv_ir.ops.axis_statistics import Folded
from deconv_ir.ops.base import attribute, operation, result_type
from deconv_ir.ops.checks import (
    axis_count,
    check_count,
    check_integers,
    check_least,
    check_rank,
    check_type,
    integers,
    known_integers,
)
from deconv_ir.ops.numeric import narrow, np, widen
from deconv_ir.ops.values import as_dims


def window_ends(x: int, y: int, positions: Sequence[int]) -> list[Span]:
    """Return the windows of positions of an axis of X elements that is pooled to Y."""
    return [(i * x // y, -(-(i + 1) * x // y)) for i in positions]


class AdaptiveTile(Operation):
    """A box of the output of an adaptive pool."""

    checks_values = False

    layer: Any = field()
    """The operation of the whole layer."""
    windows: tuple[tuple[Span, ...], ...] = field()
    """For each axis, the window of each position of the box."""

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        found: Arrays = self.layer.pool(inputs[0], self.windows)
        return found


class _AdaptivePool(Operation):
    """A pooling whose window i of Y is the data from floor(i*X/Y) to ceil((i+1)*X/Y)."""

    formula = "data {shape[data]}, output_shape {value[output_shape]}"

    def pooled(self, inputs: Infos) -> Shape:
        """Replace the spatial extents by the requested ones."""
        data, target = inputs
        check_rank(data, "data", 3, 4, 5)
        check_integers(target, "output_shape", 1)
        if data.shape is None:
            return None
        spatial = len(data.shape) - 2
        check_count(axis_count(target), "output_shape", spatial, "output-shape-length")
        if target.value is None:
            return (*data.shape[:2], *(UNKNOWN,) * spatial)
        check_least(target.value, "output_shape", 1, "output-shape-value")
        return (*data.shape[:2], *as_dims(target.value))

    def tile(self, boxes: Boxes, inputs: Infos, outputs: Infos, context: Context) -> LayerTile:
        box, target = boxes[0], known_integers(inputs[1])
        # Positions of the maxima are relative to the whole data.
        if box is None or target is None or any(boxes[1:]):
            return super().tile(boxes, inputs, outputs, context)
        spans, windows = list(box[:2]), []
        for (first, last), x, y in zip(box[2:], static(inputs[0].shape)[2:], target, strict=True):
            ends = window_ends(x, y, range(first, last))
            start = ends[0][0] if ends else 0
            spans.append((start, ends[-1][1] if ends else min(1, x)))
            windows.append(tuple((low - start, high - start) for low, high in ends))
        seen = tuple(
            a
            for a, (x, y) in enumerate(zip(static(inputs[0].shape)[2:], target, strict=True), 2)
            if y == 1 < x
        )
        operation = AdaptiveTile(layer=self, windows=tuple(windows))
        return LayerTile((tuple(spans), None), operation, (), seen)

    def pool(self, data: Array, windows: Sequence[Sequence[Span]]) -> Arrays:
        """Pool the windows of each axis."""
        raise NotImplementedError

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        extents = zip(inputs[0].shape[2:], self.target(inputs), strict=True)
        return self.pool(inputs[0], [window_ends(x, y, range(y)) for x, y in extents])

    @staticmethod
    def windows(
        asked: Sequence[Sequence[Span]],
    ) -> tuple[list[list[slice]], list[list[int]]]:
        """Return the distinct windows of each axis, and the index of each position's window.

        An axis of X elements has fewer than 2 X distinct windows for any number of positions.
        """
        different, used = [], []
        for ends in asked:
            places = {pair: at for at, pair in enumerate(dict.fromkeys(ends))}
            different.append([slice(*pair) for pair in places])
            used.append([places[pair] for pair in ends])
        return different, used

    @staticmethod
    def cells(axes: Sequence[Sequence[slice]]) -> Iterator[tuple[Any, Any]]:
        """Yield the index of each distinct window, and the index of its data."""
        for cell in itertools.product(*map(enumerate, axes)):
            yield (..., *(at for at, _ in cell)), (..., *(window for _, window in cell))

    @staticmethod
    def spread(pooled: Array, used: Sequence[Sequence[int]]) -> Array:
        """Copy the result of each window to its positions."""
        for axis, places in enumerate(used, 2):
            pooled = pooled.take(places, axis=axis)
        return pooled

    def target(self, inputs: Arrays) -> tuple[int, ...]:
        """Check the requested extents, and return them."""
        asked = integers(inputs[1])
        self.pooled([TensorInfo(inputs[0].shape), TensorInfo(inputs[1].shape, None, asked)])
        if 0 in inputs[0].shape[2:]:
            shown = format_shape(inputs[0].shape)
            raise ShapeError(f"there is nothing to pool in {shown}", actual=shown, rule="window")
        return asked


@operation("AdaptiveAvgPool-8(data, output_shape)", "f32[1,2,5,7], i64[2]{3,2} -> f32[1,2,3,2]")
class AdaptiveAvgPool(_AdaptivePool):
    """Mean of each of `output_size` windows that divide the data evenly."""

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        element_type = check_type(inputs[0], "data", "float")
        return (TensorInfo(self.pooled(inputs), element_type),)

    def statistic(self, inputs: Infos, outputs: Infos) -> Statistic | None:
        data = static(inputs[0].shape)
        if any(extent != 1 for extent in static(outputs[0].shape)[2:]):
            return None
        count, axes = math.prod(data[2:]), tuple(range(2, len(data)))
        return Folded(inputs[0], outputs[0], axes, np.add, lambda x: x, lambda total: total / count)

    def pool(self, data: Array, windows: Sequence[Sequence[Span]]) -> Arrays:
        """Return the means."""
        wide = widen(data)
        different, used = self.windows(windows)
        result = np.empty((*wide.shape[:2], *map(len, different)), wide.dtype)
        axes = tuple(range(2, wide.ndim))
        for where, window in self.cells(different):
            # The order in which NumPy sums depends on gaps between rows.
            result[where] = np.mean(np.ascontiguousarray(wide[window]), axis=axes)
        return (self.spread(narrow(result, data.dtype), used),)


@operation(
    "AdaptiveMaxPool-8(data, output_shape)",
    "f32[1,2,5], i64[1]{3} -> f32[1,2,3], i32[1,2,3] | index_element_type=i32",
)
class AdaptiveMaxPool(_AdaptivePool):
    """Maximum of each window that divides the data evenly, and its index."""

    index_element_type: ElementType = attribute(result_type(), I64)

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        element_type = check_type(inputs[0], "data", "float")
        shape = self.pooled(inputs)
        return (TensorInfo(shape, element_type), TensorInfo(shape, self.index_element_type))

    def pool(self, data: Array, windows: Sequence[Sequence[Span]]) -> Arrays:
        """Return the maxima and their positions."""
        wide = widen(data)
        places = np.arange(int(np.prod(wide.shape[2:]))).reshape(wide.shape[2:])
        different, used = self.windows(windows)
        shape = (*wide.shape[:2], *map(len, different))
        result, index = np.empty(shape, wide.dtype), np.empty(shape, np.int64)
        for where, window in self.cells(different):
            cells = wide[window]
            flat = cells.reshape(*wide.shape[:2], math.prod(cells.shape[2:]))
            best = np.argmax(flat, axis=-1)
            result[where] = np.take_along_axis(flat, best[..., None], -1)[..., 0]
            index[where] = places[window].ravel()[best]
        index = index.astype(self.index_element_type.numpy())
        return self.spread(narrow(result, data.dtype), used), self.spread(index, used)
