"""OpenVINO's sums of rows of tables: EmbeddingBag* of opset3 and 15, EmbeddingSegmentsSum-3."""

from __future__ import annotations

import abc
import enum
import math
from typing import TYPE_CHECKING, Any

from deconv_ir.errors import InputError, ShapeError
from deconv_ir.ir.dtypes import Array
from deconv_ir.ir.geometry import UNKNOWN, Dim
from deconv_ir.ir.operation import Arrays, Context, Infos, Operation, TensorInfo
from deconv_ir.ir.shapes import element_count, is_static, size_error, static
from deconv_ir.ops.base import attribute, choice, operation
from deconv_ir.ops.checks import (
    check_integers,
    check_least,
    check_least_rank,
    check_shape,
    check_single,
    merged_type,
    misfit,
    only,
)
from deconv_ir.ops.numeric import narrow, np, widen
from deconv_ir.ops.values import as_dim

if TYPE_CHECKING:
    from deconv_ir.ops.allowance import Bounds, Case


class BagReduction(enum.Enum):
    """The value of a bag."""

    SUM = "sum"
    MEAN = "mean"


class _Embedding(Operation, abc.ABC):
    """Rows of a table, summed in bags."""

    scratch_ratios = (0.25, 2.25)

    reduction: BagReduction = BagReduction.SUM

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        named = dict(zip(self.inputs, inputs, strict=False))
        table, indices = inputs[:2]
        check_least_rank(table, "emb_table", 1)
        of_type, names = [table], ["emb_table"]
        rank = 2 if "Packed" in self.type else 1
        check_integers(indices, "indices", rank)
        if "per_sample_weights" in named:
            of_type.append(named["per_sample_weights"])
            names.append("per_sample_weights")
            shape = indices.shape or (UNKNOWN,) * rank
            check_shape(named["per_sample_weights"], "per_sample_weights", shape)
            if self.reduction is BagReduction.MEAN:
                must = "be sum with per_sample_weights"
                raise misfit("attribute-value", "reduction", must, "mean", "sum", "reduction")
        element_type = merged_type(of_type, names, "numeric")
        if "default_index" in named:
            check_single(named["default_index"], "default_index", "integer")
        bags = self.bags(named)
        found = None if table.shape is None else (bags, *table.shape[1:])
        return (TensorInfo(found, element_type),)

    def allowance(self, case: Case) -> Bounds | None:
        from deconv_ir.ops.allowance import sums

        named = dict(enumerate(self.inputs[: len(case.inputs)]))
        values = [i for i, name in named.items() if name in ("emb_table", "per_sample_weights")]
        return sums(case, case.inputs[1].size, values)

    @abc.abstractmethod
    def bags(self, named: dict[str, TensorInfo]) -> Dim:
        """Check the inputs that define bags, and return their number."""

    def scratch(self, inputs: Infos, outputs: Infos, context: Context) -> int:
        shapes = inputs[0].shape, inputs[1].shape
        if not all(map(is_static, shapes)):
            return 0
        row = element_count(static(shapes[0])[1:])
        made = 2 * element_count(static(shapes[1])) * row * 8
        return made + super().scratch(inputs, outputs, context)

    def rows(self, inputs: Arrays) -> Array:
        """Return the row of each index, times its weight."""
        named = dict(zip(self.inputs, inputs, strict=False))
        rows = _rows_at(widen(inputs[0]), inputs[1], "indices")
        weights = named.get("per_sample_weights")
        if weights is not None:
            trailing = (1,) * (rows.ndim - weights.ndim)
            rows = rows * widen(weights).reshape(*weights.shape, *trailing)
        return rows

    def summed(self, inputs: Arrays, starts: Array, lengths: Array) -> Arrays:
        """Sum bags of consecutive indices; bags without any have the default row, or zeros."""
        table, rows = widen(inputs[0]), self.rows(inputs)
        output = np.zeros((len(starts), *table.shape[1:]), rows.dtype)
        (filled,) = np.nonzero(lengths)
        if len(filled):
            last = starts[filled[-1]] + lengths[filled[-1]]
            with np.errstate(all="ignore"):
                sums = np.add.reduceat(rows[:last], starts[filled], axis=0)
            if self.reduction is BagReduction.MEAN:
                counts = lengths[filled].reshape(-1, *(1,) * (rows.ndim - 1))
                sums = sums / counts if sums.dtype.kind == "f" else _truncated(sums, counts)
            output[filled] = sums
        given = dict(zip(self.inputs, inputs, strict=False)).get("default_index")
        default = -1 if given is None else int(only(given, "default_index"))
        if default != -1 and len(filled) < len(starts):
            output[lengths == 0] = _rows_at(table, np.array(default), "default_index")
        return (narrow(output, inputs[0].dtype),)


class _Offsets(_Embedding):
    """Bags of consecutive indices, which begin at offsets."""

    def bags(self, named: dict[str, TensorInfo]) -> Dim:
        offsets = named["offsets"]
        check_integers(offsets, "offsets", 1)
        return offsets.shape[0] if offsets.shape else UNKNOWN

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        starts = inputs[2].astype(np.int64)
        count = len(inputs[1])
        lengths = np.diff(starts, append=count)
        if len(starts) and (int(starts[0]) < 0 or bool((lengths < 0).any())):
            must = f"be sorted, from 0 to {count}"
            raise misfit("index", "offsets", must, tuple(starts[:8].tolist()), must)
        return self.summed(inputs, starts, lengths)


_OFFSETS = "emb_table, indices, offsets, default_index?, per_sample_weights?"


@operation(
    f"EmbeddingBagOffsetsSum-3({_OFFSETS})",
    "f32[5,2], i64[4]{0,2,3,4}, i64[3]{0,2,2}, i64[]{0}, f32[4] -> f32[3,2]",
    "i32[5,2], i32[4]{0,2,3,4}, i32[3]{0,2,2} -> i32[3,2]",
)
class EmbeddingBagOffsetsSum(_Offsets):
    """Sums of rows of a table, in bags that begin at offsets of the list of indices."""

    formula = "offsets {shape[offsets]}, rows of emb_table {shape[emb_table]}"


@operation(
    f"EmbeddingBagOffsets-15({_OFFSETS})",
    "f32[5,2], i64[4]{0,2,3,4}, i64[3]{0,2,2}, i64[]{-1} -> f32[3,2] | reduction=mean",
    "f32[5,2,3], i32[4]{0,2,3,4}, i32[3]{0,2,2}, i32[]{1}, f32[4] -> f32[3,2,3]",
)
class EmbeddingBagOffsets(_Offsets):
    """Sums or means of rows of a table, in bags that begin at offsets of the list of indices."""

    formula = "offsets {shape[offsets]}, rows of emb_table {shape[emb_table]}"

    reduction: BagReduction = attribute(choice(BagReduction), BagReduction.SUM)


class _Packed(_Embedding):
    """Bags of equal numbers of indices."""

    def bags(self, named: dict[str, TensorInfo]) -> Dim:
        shape = named["indices"].shape
        return UNKNOWN if shape is None else shape[0]

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        rows = self.rows(inputs)
        with np.errstate(all="ignore"):
            sums = rows.sum(axis=1, dtype=rows.dtype)
            if self.reduction is BagReduction.MEAN:
                count = np.array(rows.shape[1])
                sums = sums / count if sums.dtype.kind == "f" else _truncated(sums, count)
        return (narrow(sums, inputs[0].dtype),)


_PACKED = "emb_table, indices, per_sample_weights?"


@operation(
    f"EmbeddingBagPackedSum-3({_PACKED})",
    "f32[5,2], i64[3,2]{0,2,1,2,3,4}, f32[3,2] -> f32[3,2]",
    "i32[5,2], i32[3,2]{0,2,1,2,3,4} -> i32[3,2]",
)
class EmbeddingBagPackedSum(_Packed):
    """Sums of the rows of a table whose indices a row lists."""

    formula = "indices {shape[indices]}, rows of emb_table {shape[emb_table]}"


@operation(
    f"EmbeddingBagPacked-15({_PACKED})",
    "f32[5,2], i64[3,2]{0,2,1,2,3,4} -> f32[3,2] | reduction=mean",
    "f32[5,2,3], i32[3,2]{0,2,1,2,3,4}, f32[3,2] -> f32[3,2,3]",
)
class EmbeddingBagPacked(_Packed):
    """Sums or means of the rows of a table whose indices a row lists."""

    formula = "indices {shape[indices]}, rows of emb_table {shape[emb_table]}"

    reduction: BagReduction = attribute(choice(BagReduction), BagReduction.SUM)


@operation(
    "EmbeddingSegmentsSum-3(emb_table, indices, segment_ids, num_segments, default_index?, "
    "per_sample_weights?)",
    "f32[5,2], i64[4]{0,2,3,4}, i64[4]{0,0,2,2}, i64[]{3}, i64[]{0}, f32[4] -> f32[3,2]",
    "i32[5,2], i32[4]{0,2,3,4}, i32[4]{0,0,2,2}, i32[]{4} -> i32[4,2]",
)
class EmbeddingSegmentsSum(_Embedding):
    """Sums of rows of a table, in segments whose numbers are listed."""

    formula = "num_segments {value[num_segments]}, rows of emb_table {shape[emb_table]}"

    def bags(self, named: dict[str, TensorInfo]) -> Dim:
        check_integers(named["segment_ids"], "segment_ids", 1)
        check_shape(named["segment_ids"], "segment_ids", named["indices"].shape or (UNKNOWN,))
        check_single(named["num_segments"], "num_segments", "integer")
        value = named["num_segments"].value
        if value is None:
            return UNKNOWN
        check_least(value, "num_segments", 0, "input-value")
        return as_dim(value[0])

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        ids = inputs[2].astype(np.int64)
        count = int(only(inputs[3], "num_segments"))
        row = math.prod(inputs[0].shape[1:])
        check_least((count,), "num_segments", 0, "input-value")
        error = size_error((count, row), 64)
        if error:
            raise ShapeError(f"num_segments {count} gives {error}", rule="oversize")
        if ids.size and not 0 <= int(ids.min()) <= int(ids.max()) < count:
            must = f"be from 0 to {count - 1}"
            wrong = int(ids.min()) if ids.min() < 0 else int(ids.max())
            raise misfit("index", "segment_ids", must, wrong, must)
        if (np.diff(ids) < 0).any():
            order = np.argsort(ids, kind="stable")
            ids = ids[order]
            inputs = [
                array[order] if name in ("indices", "per_sample_weights") else array
                for array, name in zip(inputs, self.inputs, strict=False)
            ]
        lengths = np.bincount(ids, minlength=count)
        return self.summed(inputs, np.cumsum(lengths) - lengths, lengths)


def _rows_at(table: Array, indices: Array, name: str) -> Array:
    """Return rows of a table by indices from 0."""
    places = indices.astype(np.int64)
    wrong = (places < 0) | (places >= len(table))
    if wrong.any():
        found = int(places[wrong].ravel()[0])
        message = f"index {found} of {name} is outside emb_table of {len(table)} rows"
        raise InputError(message, rule="index-range")
    return np.asarray(table[places])


def _truncated(sums: Any, counts: Any) -> Any:
    """Divide integers, rounding toward 0 as C does."""
    return np.where(counts == 0, 0, np.trunc(sums / np.maximum(counts, 1))).astype(sums.dtype)
