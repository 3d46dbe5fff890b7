"""AdaptiveAvgPool-8 and AdaptiveMaxPool-8: windows that divide the data evenly."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

from deconv_ir.errors import ShapeError
from deconv_ir.ir.dtypes import I64, Array, ElementType
from deconv_ir.ir.geometry import UNKNOWN
from deconv_ir.ir.operation import Arrays, Context, Infos, Operation, TensorInfo
from deconv_ir.ir.shapes import Shape, format_shape
from deconv_ir.ops.base import attribute, operation, result_type
from deconv_ir.ops.checks import (
    axis_count,
    check_count,
    check_integers,
    check_least,
    check_rank,
    check_type,
    integers,
)
from deconv_ir.ops.numeric import narrow, np, widen
from deconv_ir.ops.values import as_dims


class _AdaptivePool(Operation):
    """Output element i of Y stands for the data from floor(i*X/Y) to ceil((i+1)*X/Y)."""

    formula = "data {shape[data]}, output_shape {value[output_shape]}"

    def pooled(self, inputs: Infos) -> Shape:
        """Put the requested extents in the place of the spatial ones."""
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

    @staticmethod
    def windows(data: Array, target: Sequence[int]) -> tuple[list[list[slice]], list[list[int]]]:
        """Return the different windows of each axis, and which of them each position has.

        An axis of X elements has fewer than 2 X of them, however many positions are asked for.
        """
        different, used = [], []
        for x, y in zip(data.shape[2:], target, strict=True):
            ends = [(i * x // y, -(-(i + 1) * x // y)) for i in range(y)]
            places = {pair: at for at, pair in enumerate(dict.fromkeys(ends))}
            different.append([slice(*pair) for pair in places])
            used.append([places[pair] for pair in ends])
        return different, used

    @staticmethod
    def cells(axes: Sequence[Sequence[slice]]) -> Iterator[tuple[Any, Any]]:
        """Yield where each window stands among the different ones, and its data."""
        for cell in itertools.product(*map(enumerate, axes)):
            yield (..., *(at for at, _ in cell)), (..., *(window for _, window in cell))

    @staticmethod
    def spread(pooled: Array, used: Sequence[Sequence[int]]) -> Array:
        """Put the result of its window at each position."""
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


@operation(
    "AdaptiveAvgPool",
    "opset8",
    inputs=("data", "output_shape"),
    examples=("f32[1,2,5,7], i64[2]{3,2} -> f32[1,2,3,2]",),
)
class AdaptiveAvgPool(_AdaptivePool):
    """Means over windows that divide the data evenly."""

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        element_type = check_type(inputs[0], "data", "float")
        return (TensorInfo(self.pooled(inputs), element_type),)

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        data, target = widen(inputs[0]), self.target(inputs)
        different, used = self.windows(data, target)
        result = np.empty((*data.shape[:2], *map(len, different)), data.dtype)
        axes = tuple(range(2, data.ndim))
        for where, window in self.cells(different):
            result[where] = np.mean(data[window], axis=axes)
        return (self.spread(narrow(result, inputs[0].dtype), used),)


@operation(
    "AdaptiveMaxPool",
    "opset8",
    inputs=("data", "output_shape"),
    examples=("f32[1,2,5], i64[1]{3} -> f32[1,2,3], i32[1,2,3] | index_element_type=i32",),
)
class AdaptiveMaxPool(_AdaptivePool):
    """Greatest elements of windows that divide the data evenly, and where they stand."""

    index_element_type: ElementType = attribute(result_type(), I64)

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        element_type = check_type(inputs[0], "data", "float")
        shape = self.pooled(inputs)
        return (TensorInfo(shape, element_type), TensorInfo(shape, self.index_element_type))

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        data, target = widen(inputs[0]), self.target(inputs)
        places = np.arange(int(np.prod(data.shape[2:]))).reshape(data.shape[2:])
        different, used = self.windows(data, target)
        shape = (*data.shape[:2], *map(len, different))
        result, index = np.empty(shape, data.dtype), np.empty(shape, np.int64)
        for where, window in self.cells(different):
            cells = data[window]
            flat = cells.reshape(*data.shape[:2], math.prod(cells.shape[2:]))
            best = np.argmax(flat, axis=-1)
            result[where] = np.take_along_axis(flat, best[..., None], -1)[..., 0]
            index[where] = places[window].ravel()[best]
        index = index.astype(self.index_element_type.numpy())
        return self.spread(narrow(result, inputs[0].dtype), used), self.spread(index, used)
