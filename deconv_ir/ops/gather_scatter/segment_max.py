"""OpenVINO SegmentMax-16: the greatest row of each segment."""

from __future__ import annotations

import enum
import itertools
from typing import TYPE_CHECKING

from deconv_ir.ir.geometry import UNKNOWN, Dim
from deconv_ir.ir.operation import Arrays, Context, Infos, Operation, TensorInfo
from deconv_ir.ops.base import attribute, choice, operation
from deconv_ir.ops.checks import (
    check_least_rank,
    check_shape,
    check_single,
    check_type,
    known_integers,
    misfit,
    only,
)
from deconv_ir.ops.numeric import narrow, np, widen
from deconv_ir.ops.values import as_dim

if TYPE_CHECKING:
    from deconv_ir.ops.allowance import Bounds, Case


class Fill(enum.Enum):
    """The value of a segment without rows."""

    ZERO = "zero"
    LOWEST = "lowest"


@operation(
    "SegmentMax-16(data, segment_ids, num_segments?)",
    "f32[5,2], i64[5]{0,0,2,2,3} -> f32[4,2] | fill_mode=zero",
    "i32[3], i64[3]{0,0,1}, i64[]{4} -> i32[4] | fill_mode=lowest",
)
class SegmentMax(Operation):
    """Maximum over the rows of each segment; segment ids are sorted."""

    scratch_ratios = (1, 2)

    formula = "data {shape[data]}, segment_ids {value[segment_ids]}"

    fill_mode: Fill = attribute(choice(Fill))

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        data = inputs[0]
        element_type = check_type(data, "data", "numeric")
        check_least_rank(data, "data", 1)
        check_type(inputs[1], "segment_ids", "integer")
        check_shape(inputs[1], "segment_ids", (UNKNOWN if data.shape is None else data.shape[0],))
        count: Dim = UNKNOWN
        ids = known_integers(inputs[1])
        if ids is not None and any(a > b for a, b in itertools.pairwise(ids)):
            raise misfit("index", "segment_ids", "be sorted", ids, "sorted")
        if len(inputs) > 2:
            check_single(inputs[2], "num_segments", "integer")
            count = as_dim(inputs[2].value[0]) if inputs[2].value else UNKNOWN
        elif ids is not None:
            count = max(ids, default=-1) + 1
        shape = None if data.shape is None else (count, *data.shape[1:])
        return (TensorInfo(shape, element_type),)

    def allowance(self, case: Case) -> Bounds | None:
        from deconv_ir.ops.allowance import monotone

        return monotone(case)

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        data, ids = widen(inputs[0]), inputs[1].astype(np.int64)
        if ids.size and (int(ids[0]) < 0 or bool((np.diff(ids) < 0).any())):
            raise misfit("index", "segment_ids", "be sorted, from 0", tuple(ids[:8]), "sorted")
        count = int(ids[-1]) + 1 if ids.size else 0
        if len(inputs) > 2:
            count = int(only(inputs[2], "num_segments"))
        fill = 0
        if self.fill_mode is Fill.LOWEST:
            dtype = inputs[0].dtype
            fill = np.iinfo(dtype).min if dtype.kind in "iu" else np.finfo(dtype).min
        output = np.full((count, *data.shape[1:]), fill, data.dtype)
        kept = ids < count  # other segments are dropped
        firsts = np.flatnonzero(np.diff(ids[kept], prepend=-1))
        if len(firsts):
            output[ids[firsts]] = np.maximum.reduceat(data[kept], firsts, axis=0)
        return (narrow(output, inputs[0].dtype),)
