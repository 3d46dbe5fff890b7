"""AdaptiveAvgPool-8 and AdaptiveMaxPool-8: windows that divide the data evenly."""

from __future__ import annotations

import abc
import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from deconv_ir.errors import ShapeError
from deconv_ir.ir.boxes import Boxes, LayerTile, Span, Statistic
from deconv_ir.ir.dtypes import I64, Array, ElementType
from deconv_ir.ir.geometry import UNKNOWN
from deconv_ir.ir.operation import Arrays, Context, Infos, Operation, TensorInfo
from deconv_ir.ir.record import field
from deconv_ir.ir.shapes import Shape, element_count, format_shape, static
from deconv_ir.ops.axis_statistics import UfuncReduction
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
from deconv_ir.ops.numeric import narrow, np, numpy_width, widen
from deconv_ir.ops.values import as_dims

if TYPE_CHECKING:
    from deconv_ir.ops.allowance import Bounds, Case


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


class _AdaptivePool(Operation, abc.ABC):
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

    @abc.abstractmethod
    def pool(self, data: Array, windows: Sequence[Sequence[Span]]) -> Arrays:
        """Pool the windows of each axis."""

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

    scratch_ratios = (0.5, 3)

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        element_type = check_type(inputs[0], "data", "float")
        return (TensorInfo(self.pooled(inputs), element_type),)

    def allowance(self, case: Case) -> Bounds | None:
        from deconv_ir.ops.allowance import sums

        return sums(case, case.inputs[0].size / max(1, case.outputs[0].size), values=(0,))

    def scratch(self, inputs: Infos, outputs: Infos, context: Context) -> int:
        """Count copies with an axis in front, and sums, in NumPy."""
        counts = (element_count(static(info.shape)) for info in (inputs[0], outputs[0]))
        computed = 3 * numpy_width(inputs[0]) * sum(counts)
        return computed + super().scratch(inputs, outputs, context)

    def statistic(self, inputs: Infos, outputs: Infos) -> Statistic | None:
        data = static(inputs[0].shape)
        if any(extent != 1 for extent in static(outputs[0].shape)[2:]):
            return None
        count, axes = math.prod(data[2:]), tuple(range(2, len(data)))
        return UfuncReduction(
            inputs[0], outputs[0], axes, np.add, lambda x: x, lambda total: total / count
        )

    def pool(self, data: Array, windows: Sequence[Sequence[Span]]) -> Arrays:
        """Return the means."""
        from deconv_ir.kernels.pooling import average_windows

        means = average_windows(data, windows)
        if means is not None:
            return (means,)
        different, used = self.windows(windows)
        totals, counts = widen(data), np.ones((), np.float32)
        for axis, slices in enumerate(different, 2):
            # The order of the sums depends on the window alone, so that tiles have the same bits.
            rows = np.ascontiguousarray(np.moveaxis(totals, axis, 0))
            sums = np.empty((len(slices), *rows.shape[1:]), rows.dtype)
            for total, window in zip(sums, slices, strict=True):
                total[...] = rows[window.start]
                for row in rows[window.start + 1 : window.stop]:
                    total += row
            totals = np.moveaxis(sums, 0, axis)
            counts = np.multiply.outer(counts, [window.stop - window.start for window in slices])
        quotients = np.divide(totals, counts, dtype=totals.dtype, casting="same_kind")
        return (self.spread(narrow(quotients, data.dtype), used),)


@operation(
    "AdaptiveMaxPool-8(data, output_shape)",
    "f32[1,2,5], i64[1]{3} -> f32[1,2,3], i32[1,2,3] | index_element_type=i32",
)
class AdaptiveMaxPool(_AdaptivePool):
    """Maximum of each window that divides the data evenly, and its index."""

    scratch_ratios = (1.5, 2.5)

    index_element_type: ElementType = attribute(result_type(), I64)

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        element_type = check_type(inputs[0], "data", "float")
        shape = self.pooled(inputs)
        return (TensorInfo(shape, element_type), TensorInfo(shape, self.index_element_type))

    def allowance(self, case: Case) -> Bounds | None:
        from deconv_ir.ops.allowance import monotone

        return monotone(case)

    def valid(self, case: Case, output: int, array: Array) -> Array | None:
        if output == 0:
            return None
        from deconv_ir.ops.allowance import points_at

        return points_at(case, array, 2)

    def pool(self, data: Array, windows: Sequence[Sequence[Span]]) -> Arrays:
        """Return the maxima and their positions."""
        best = widen(data)
        index = np.arange(int(np.prod(best.shape[2:]))).reshape((1, 1, *best.shape[2:]))
        index = np.broadcast_to(index, best.shape)
        different, used = self.windows(windows)
        # From the last axis on, so that of equal maxima the first one in the data is kept.
        for axis, slices in reversed(list(enumerate(different, 2))):
            values, places = np.moveaxis(best, axis, -1), np.moveaxis(index, axis, -1)
            maxima = np.empty((*values.shape[:-1], len(slices)), values.dtype)
            found = np.empty(maxima.shape, np.int64)
            for at, window in enumerate(slices):
                first = values[..., window].argmax(-1)[..., None]  # of NaN, if there is one
                maxima[..., at] = np.take_along_axis(values[..., window], first, -1)[..., 0]
                found[..., at] = np.take_along_axis(places[..., window], first, -1)[..., 0]
            best, index = np.moveaxis(maxima, -1, axis), np.moveaxis(found, -1, axis)
        index = index.astype(self.index_element_type.numpy())
        return self.spread(narrow(best, data.dtype), used), self.spread(index, used)
