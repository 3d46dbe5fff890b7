"""MaxPool-1, -8 and -14."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from deconv_ir.ir.dtypes import I64, Array, ElementType
from deconv_ir.ir.geometry import Rounding
from deconv_ir.ir.operation import (
    Arrays,
    Call,
    Context,
    Infos,
    Kernel,
    LayerPlan,
    Operation,
    TensorInfo,
)
from deconv_ir.ir.shapes import element_count, is_static, static
from deconv_ir.ops.base import attribute, integer, integers, operation, result_type
from deconv_ir.ops.checks import normalize_axis
from deconv_ir.ops.numeric import lowest, narrow, np, widen, working_dtype
from deconv_ir.ops.pooling.pooling import ROUNDING, ROUNDING_TORCH, Pool, Pooling, pool_one

if TYPE_CHECKING:
    from deconv_ir.ir.boxes import Boxes, LayerTile
    from deconv_ir.ir.expression import SemanticsDifference
    from deconv_ir.ir.scratchpad import ScratchpadBudget
    from deconv_ir.ops.allowance import Bounds, Case
    from deconv_ir.ops.pooling.sliding import AxisWindows


class _MaxPool(Pooling):
    """Maximum of a window; NaN if one element is."""

    def allowance(self, case: Case) -> Bounds | None:
        from deconv_ir.ops.allowance import monotone

        return monotone(case)

    def pool(self, shape: tuple[int, ...], dtype: Any, context: Context) -> Pool:
        """Return a function that computes the maxima."""
        from deconv_ir.ops.pooling.sliding import slide

        windows, wide = self.windows(shape[2:]), working_dtype(dtype)
        fills = self.follows_runtime(context)
        largest, _ = self.sliding(
            slide(np.maximum, lowest(wide), shape, windows, (dtype, wide), context.scratch_bytes),
            shape, dtype, None,
        )  # fmt: skip
        if (not any(along.empty for along in windows) or not fills) and dtype == wide:
            return largest

        def pool(data: Array, out: Array | None) -> Array:
            result = largest(data, out)
            self.fill_empty(result, windows, context)
            return narrow(result, dtype)

        return pool

    def compare_semantics(self, inputs: Infos, context: Context) -> SemanticsDifference | None:
        """Compare the results of windows of padding alone."""
        shape, element_type = inputs[0].shape, inputs[0].element_type
        if not is_static(shape) or (element_type is not None and not element_type.is_float):
            return None
        extents = static(shape)[2:]
        if self.surely_full(extents) or not any(along.empty for along in self.windows(extents)):
            return None
        from deconv_ir.ir.expression import SemanticsDifference

        return SemanticsDifference(
            "gives windows of padding alone -inf",
            "the lowest finite number",
            ("-inf",),
            ("lowest finite number",),
            is_fault=True,
        )

    def fill_empty(self, result: Array, windows: Sequence[AxisWindows], context: Context) -> None:
        """Set windows without any element to the lowest finite number, as OpenVINO does."""
        if result.dtype.kind == "f" and self.follows_runtime(context):
            for axis, along in enumerate(windows, 2):
                for gap in along.empty:
                    # OpenVINO computes f64 in f32.
                    dtype = np.float32 if result.dtype == np.float64 else result.dtype
                    result[(slice(None),) * axis + (gap,)] = np.finfo(dtype).min


@operation(
    "MaxPool-1(data)",
    "f32[1,2,5,6] -> f32[1,2,3,3]"
    " | kernel=2,2 strides=2,2 pads_begin=0,0 pads_end=0,0 rounding_type=ceil",
)
class MaxPool1(_MaxPool):
    """Maximum of a window; NaN if one element is."""

    rounding_type: Rounding = attribute(ROUNDING, Rounding.FLOOR)


class _MaxPoolWithIndices(_MaxPool):
    """MaxPool with a second output: the positions of the maxima."""

    dilations: tuple[int, ...] | None = attribute(integers(1, per_axis=True), None)
    index_element_type: ElementType = attribute(result_type(), I64)
    axis: int = attribute(integer(), 0)

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        """Compute the shape of the outputs; see `geometry.pooling_axis`."""
        pooled = self.pooled(inputs[0])
        if inputs[0].shape is not None:
            normalize_axis(self.axis, len(inputs[0].shape))
        return (pooled, TensorInfo(pooled.shape, self.index_element_type))

    def tile(self, boxes: Boxes, inputs: Infos, outputs: Infos, context: Context) -> LayerTile:
        if boxes[1] is not None:  # indices are relative to the whole data
            return Operation.tile(self, boxes, inputs, outputs, context)
        return super().tile(boxes, inputs, outputs, context)

    def prepare_first(self, context: Context) -> Kernel:
        """Skip the positions, which are most of the work."""
        return _WithoutIndices(self, context)

    def bind(self, inputs: Infos, outputs: Infos, context: Context) -> Call:
        """Compute the positions as well; there is no fast path for small tensors."""
        return self.bind_any(context)

    def valid(self, case: Case, output: int, array: Array) -> Array | None:
        if output == 0:
            return None
        from deconv_ir.ops.allowance import points_at

        return points_at(case, array, normalize_axis(self.axis, case.inputs[0].ndim))

    def scratch(self, inputs: Infos, outputs: Infos, context: Context) -> int:
        """Count the positions and the compared elements, if positions are needed."""
        if len(outputs) == 1:
            return self.slide_bytes(inputs, outputs, context)
        data, result = (element_count(static(i.shape)) for i in (inputs[0], outputs[0]))
        # Positions of 8 bytes; for each result its index, a flag, and three arrays of a cell.
        return 8 * data + (8 + 1 + 3 * 8) * result

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        """Compute the maxima and their positions.

        An index is relative to the data, flattened from `axis` on; among equal elements, the first
        one is chosen.
        """
        data = inputs[0]
        windows = self.windows(data.shape[2:])
        wide = widen(data)
        positions = np.arange(data.size).reshape(data.shape)
        shape = (*data.shape[:2], *(w.output for w in windows))
        result = np.full(shape, lowest(wide.dtype), wide.dtype)
        index = np.zeros(shape, np.int64)
        untouched = np.ones(shape, bool)
        for cells in itertools.product(*(w.cells for w in windows)):
            source, target = ((..., *side) for side in zip(*cells, strict=True))
            part, found = result[target], wide[source]
            better = (found > part) | untouched[target]
            if wide.dtype.kind == "f":
                better |= np.isnan(found) & ~np.isnan(part)
            np.copyto(part, found, where=better)
            np.copyto(index[target], positions[source], where=better)
            untouched[target] = False
        self.fill_empty(result, windows, context)
        axis = normalize_axis(self.axis, data.ndim)
        span = int(np.prod(data.shape[axis:]))
        if span:
            index %= span
        return narrow(result, data.dtype), index.astype(self.index_element_type.numpy())


class _WithoutIndices(Kernel):
    """A MaxPool whose second output is unused."""

    def __init__(self, operation: _MaxPoolWithIndices, context: Context) -> None:
        self._operation = operation
        self._context = context

    def __call__(
        self, inputs: Arrays, out: Array | None = None, budget: ScratchpadBudget | None = None
    ) -> Arrays:
        bound = self._context.scratch_bytes if budget is None else budget.scratch_bytes
        context, operation = self._context._replace(scratch_bytes=bound), self._operation
        if out is None:
            return Pooling.execute(operation, inputs, context)
        operation.execute_into(inputs, context, out)
        return (out,)

    def tiled(self, operation: Operation) -> Kernel:
        assert isinstance(operation, _MaxPoolWithIndices), "a tile of a MaxPool is one"
        return _WithoutIndices(operation, self._context)

    def plan(self, inputs: Infos, budget: ScratchpadBudget) -> LayerPlan:
        context = self._context._replace(scratch_bytes=budget.scratch_bytes)
        return LayerPlan(pool_one(self._operation, inputs[0], context))


@operation(
    "MaxPool-8(data)",
    "f32[1,2,5,6] -> f32[1,2,3,4], i32[1,2,3,4] | kernel=2,2 strides=1,1 dilations=2,2 "
    "pads_begin=0,0 pads_end=0,0 index_element_type=i32 axis=2",
)
class MaxPool8(_MaxPoolWithIndices):
    """Maximum of a window, NaN if one element is, and its index."""

    rounding_type: Rounding = attribute(ROUNDING, Rounding.FLOOR)


@operation(
    "MaxPool-14(data)",
    "f32[1,2,5,7] -> f32[1,2,3,3], i64[1,2,3,3]"
    " | kernel=2,2 strides=2,3 pads_begin=0,0 pads_end=0,0 rounding_type=ceil_torch",
)
class MaxPool14(_MaxPoolWithIndices):
    """Maximum of a window, NaN if one element is, and its index."""

    rounding_type: Rounding = attribute(ROUNDING_TORCH, Rounding.FLOOR)
