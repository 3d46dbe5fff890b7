"""OpenVINO SparseFillEmptyRows-16: an entry for each row of a sparse tensor that has none."""

from __future__ import annotations

from deconv_ir.ir.dtypes import BOOLEAN
from deconv_ir.ir.geometry import UNKNOWN, Dim, bounds, interval
from deconv_ir.ir.operation import Arrays, Context, Infos, Operation, TensorInfo
from deconv_ir.ops.base import operation
from deconv_ir.ops.checks import (
    check_count,
    check_integers,
    check_least,
    check_rank,
    check_shape,
    first_float_type,
    known_integers,
    list_length,
    merged_type,
    misfit,
    only,
)
from deconv_ir.ops.numeric import np
from deconv_ir.ops.values import as_dim


@operation(
    "SparseFillEmptyRows-16(values, dense_shape, indices, default_value)",
    "f32[4], i32[2]{5,6}, i32[4,2]{0,1,0,3,2,0,3,1}, f32[] -> i32[6,2], f32[6], boolean[5]",
    "i64[2], i64[2]{3,3}, i64[2,2]{2,2,0,0}, i64[] -> i64[3,2], i64[3], boolean[3]",
)
class SparseFillEmptyRows(Operation):
    """Indices and values in the order of rows, with a default in each empty row; which were empty.

    Inputs: `values` [M], `dense_shape` [2], `indices` [M, 2] of row and column, `default_value` [].
    """

    formula = "values {shape[values]} and the empty rows of dense_shape {value[dense_shape]}"

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        values, dense, indices, default = inputs
        element_type = first_float_type((values, default), ("values", "default_value"))
        index_type = merged_type((dense, indices), ("dense_shape", "indices"), "integer")
        check_rank(values, "values", 1)
        check_integers(dense, "dense_shape", 1)
        check_count(list_length(dense), "dense_shape", 2)
        check_rank(default, "default_value", 0)
        count = values.shape[0] if values.shape else UNKNOWN
        count = (check_shape(indices, "indices", (count, 2)) or (count,))[0]
        rows: Dim = UNKNOWN
        if dense.value is not None:
            check_least(dense.value, "dense_shape", 0, "input-value")
            rows = as_dim(dense.value[0])
        total = self._total(count, rows, known_integers(indices))
        return (
            TensorInfo((total, 2), index_type),
            TensorInfo((total,), element_type),
            TensorInfo((rows,), BOOLEAN),
        )

    @staticmethod
    def _total(count: Dim, rows: Dim, indices: tuple[int, ...] | None) -> Dim:
        """Return the number of entries: those given, and one for each empty row."""
        if indices is not None and isinstance(rows, int):
            return len(indices) // 2 + rows - len(set(indices[::2]) & set(range(rows)))
        (least, most), (low, high) = bounds(count), bounds(rows)
        total = interval(max(least, low), None if most is None or high is None else most + high)
        return rows if count == 0 else total

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        values, dense, indices, default = inputs
        rows, columns = (int(v) for v in dense)
        check_least((rows, columns), "dense_shape", 0, "input-value")
        for axis, extent in enumerate((rows, columns)):
            wrong = indices[(indices[:, axis] < 0) | (indices[:, axis] >= extent), axis]
            if len(wrong):
                must = f"be from 0 to {extent - 1} on axis {axis}"
                raise misfit("index", "indices", must, int(wrong[0]), must)
        empty = np.ones(rows, bool)
        empty[indices[:, 0]] = False
        (added,) = np.nonzero(empty)
        entries = np.stack([added, np.zeros_like(added)], 1).astype(indices.dtype)
        joined = np.concatenate([indices, entries])
        default = np.asarray(only(default, "default_value")).astype(values.dtype)
        filled = np.concatenate([values, np.repeat(default, len(added))])
        order = np.lexsort((joined[:, 1], joined[:, 0]))
        return joined[order], filled[order], empty
