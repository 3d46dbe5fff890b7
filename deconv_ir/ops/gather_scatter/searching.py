"""OpenVINO Bucketize-3, SearchSorted-15 and Unique-10: search in sorted values."""

from __future__ import annotations

from typing import Literal

from deconv_ir.ir.dtypes import I64, Array, ElementType
from deconv_ir.ir.geometry import UNKNOWN, Dim, bounds, interval
from deconv_ir.ir.operation import Arrays, Context, Infos, Operation, TensorInfo
from deconv_ir.ir.shapes import Shape, compatible, element_count, intersect, static
from deconv_ir.ops.base import attribute, boolean, operation, result_type
from deconv_ir.ops.checks import (
    check_rank,
    check_single,
    check_type,
    known_integer,
    merged_type,
    normalize_axis,
    only,
    product,
    shape_misfit,
)
from deconv_ir.ops.numeric import np, widen


@operation("Bucketize-3(data, buckets)", "f32[2,3], f32[4] -> i32[2,3] | output_type=i32")
class Bucketize(Operation):
    """Index of the bucket that contains each element."""

    scratch_ratios = (1.25, 1.75)

    formula = "the shape of data, {shape[data]}"

    output_type: ElementType = attribute(result_type(), I64)
    with_right_bound: bool = attribute(boolean(), True)

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        for info, name in zip(inputs, self.inputs, strict=True):
            check_type(info, name, "numeric")
        check_rank(inputs[1], "buckets", 1)
        return (TensorInfo(inputs[0].shape, self.output_type),)

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        data, buckets = map(widen, inputs)
        side: Literal["left", "right"] = "left" if self.with_right_bound else "right"
        return (np.searchsorted(buckets, data, side).astype(self.output_type.numpy()),)


@operation(
    "SearchSorted-15(sorted_sequence, values)",
    "f32[2,5], f32[2,3] -> i64[2,3]",
    "i32[5], i32[2,3] -> i32[2,3] | right_mode=true output_type=i32",
)
class SearchSorted(Operation):
    """Indices at which values would be inserted into sorted rows."""

    scratch_ratios = (1, 1.5)

    formula = "the shape of values, {shape[values]}"

    right_mode: bool = attribute(boolean(), False)
    output_type: ElementType = attribute(result_type(), I64)

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        merged_type(inputs, self.inputs, "numeric")
        rows, values = inputs[0].shape, inputs[1].shape
        if rows is not None and len(rows) != 1:
            wanted = (*rows[:-1], values[-1] if values else UNKNOWN)
            if not rows or not compatible(wanted, values):
                must = "must have the rows of sorted_sequence"
                raise shape_misfit("input-shape", "values", values, must, rows)
            values = intersect(wanted, values)
        return (TensorInfo(values, self.output_type),)

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        rows, values = map(widen, inputs)
        side: Literal["left", "right"] = "right" if self.right_mode else "left"
        dtype = self.output_type.numpy()
        if rows.ndim == 1:
            return (np.searchsorted(rows, values, side).astype(dtype),)
        found = np.empty(values.shape, dtype)
        for index in np.ndindex(rows.shape[:-1]):
            found[index] = np.searchsorted(rows[index], values[index], side)
        return (found,)


@operation(
    "Unique-10(data, axis?)",
    "i32[4]{5,3,5,5} -> i32[1..4], i64[1..4], i64[4], i64[1..4]",
    "f32[3,2], i64[]{0} -> f32[1..3,2], i64[1..3], i64[3], i64[1..3] | sorted=false",
)
class Unique(Operation):
    """Distinct elements, or slices along an axis, with first indices, inverse and counts."""

    sorted: bool = attribute(boolean(), True)
    index_element_type: ElementType = attribute(result_type(), I64)
    count_element_type: ElementType = attribute(result_type(), I64)

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        data = inputs[0]
        shape = data.shape
        for info in inputs[1:]:
            check_single(info, "axis", "integer")
        axis = known_integer(inputs[1], "axis") if len(inputs) > 1 else None
        count: Dim = UNKNOWN
        every: Dim = UNKNOWN
        found: Shape = None
        if shape is not None and len(inputs) == 1:
            every = product(*shape)
            count = self._count(every)
            found = (count,)
        elif shape is not None and axis is not None:
            axis = normalize_axis(axis, len(shape))
            every = shape[axis]
            count = self._count(every)
            found = (*shape[:axis], count, *shape[axis + 1 :])
        indices = self.index_element_type
        return (
            TensorInfo(found, data.element_type),
            TensorInfo((count,), indices),
            TensorInfo((every,), indices),
            TensorInfo((count,), self.count_element_type),
        )

    def scratch(self, inputs: Infos, outputs: Infos, context: Context) -> int:
        """Count rows and sorted rows, and what NumPy needs to sort by each column and of each row.

        A column takes 3.3 KB in `numpy.lexsort`.
        """
        size, rows = element_count(static(inputs[0].shape)), element_count(static(outputs[2].shape))
        element_type, columns = inputs[0].element_type, size // max(1, rows)
        width = 8 if element_type is None else max(4, int(element_type.numpy().itemsize))
        return 3 * width * size + 3400 * columns + 64 * rows

    @staticmethod
    def _count(every: Dim) -> Dim:
        low, high = bounds(every)
        return interval(min(low, 1), high)

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        data = widen(inputs[0])
        axis = None
        if len(inputs) > 1:
            axis = normalize_axis(int(only(inputs[1], "axis")), data.ndim)
        rows = data.ravel()[:, None]
        if axis is not None:
            rows = np.moveaxis(data, axis, 0).reshape(data.shape[axis], -1)
        first, inverse, counts = _unique_rows(rows)
        if not self.sorted:
            order = np.argsort(first, kind="stable")
            place = np.empty_like(order)
            place[order] = np.arange(len(order))
            first, inverse, counts = first[order], place[inverse], counts[order]
        values = inputs[0].ravel()[first] if axis is None else np.take(inputs[0], first, axis)
        index, count = self.index_element_type.numpy(), self.count_element_type.numpy()
        return (values, first.astype(index), inverse.astype(index), counts.astype(count))


def _unique_rows(rows: Array) -> tuple[Array, Array, Array]:
    """Return first index, inverse and count of each different row, in lexicographic order."""
    if not rows.size:
        first = np.arange(min(len(rows), 1))
        return first, np.zeros(len(rows), np.int64), np.full(len(first), len(rows))
    order = np.lexsort(rows.T[::-1])
    ordered = rows[order]
    fresh = np.ones(len(rows), bool)
    fresh[1:] = (ordered[1:] != ordered[:-1]).any(axis=1)
    group = np.cumsum(fresh) - 1
    inverse = np.empty(len(rows), np.int64)
    inverse[order] = group
    return order[fresh], inverse, np.bincount(group)
