"""OpenVINO FakeQuantize-1: values moved to one of a few levels."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from deconv_ir.ir.boxes import Boxes, LayerTile
from deconv_ir.ir.expression import Expression
from deconv_ir.ir.lazy_tensor import LazyTensor
from deconv_ir.ir.operation import Arrays, Context, Infos, Operands, TensorInfo
from deconv_ir.ir.shapes import compatible, static
from deconv_ir.ops.base import attribute, integer, operation
from deconv_ir.ops.checks import leading_type, misfit
from deconv_ir.ops.elementwise.broadcasting import WithBroadcast, not_broadcast
from deconv_ir.ops.numeric import narrow, np, widen
from deconv_ir.ops.tile_rules import elementwise_tile

if TYPE_CHECKING:
    from deconv_ir.ir.dtypes import Array
    from deconv_ir.ops.allowance import Bounds, Case


# A lazy tensor has at least this number of elements for each number of its ranges.
_LEAST_RATIO = 8
# Elements of its rows, which are the least that is computed at once, in f64.
_ROW = 1 << 14


@operation(
    "FakeQuantize-1(data, input_low, input_high, output_low, output_high)",
    "f32[1,3,4,5], f32[1,3,1,1], f32[1,3,1,1], f32[], f32[1] -> f32[1,3,4,5] | levels=256",
)
class FakeQuantize(WithBroadcast):
    """Rounded to equal levels of an input range, which are mapped to an output range."""

    scratch_ratios = (3, 4)

    formula = "the shape of data, {shape[data]}"

    levels: int = attribute(integer(1))

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        element_type = leading_type(inputs, self.inputs, "float")
        if self.levels < 2:
            raise misfit("levels", "levels", "be 2 or greater", self.levels, ">= 2", "levels")
        shape = inputs[0].shape
        for info, name in zip(inputs[1:], self.inputs[1:], strict=True):
            if not compatible(self.broadcast(shape, info.shape), shape):
                raise not_broadcast(name, info.shape, shape)
        return (TensorInfo(shape, element_type),)

    def compile(self, expression: Expression, operands: Operands, inputs: Infos) -> int | None:
        if self.realigns:
            return None
        apply, (data, low, high, output_low, output_high) = expression.apply, operands
        steps = expression.constant(float(self.levels - 1))
        ends = _numbers(info.reals for info in inputs[1:])
        if ends is not None:
            nearest = apply("nearest_level", data, steps, immediates=ends[:2])
            return apply("level_value", nearest, steps, immediates=ends[2:])
        last = (float(self.levels - 1),)
        level = apply("level_within", data, low, high, immediates=last)
        return apply("value_between", level, output_low, output_high, immediates=last)

    def allowance(self, case: Case) -> Bounds | None:
        from deconv_ir.ops.allowance import ARITHMETIC_ULPS, elementwise

        # Rounding errors of the share decide between two levels where it is near a boundary.
        (allowed,) = elementwise(case, arguments=8, ulps=ARITHMETIC_ULPS)
        ends = np.maximum(*(np.abs(a) for a in self.aligned(case.inputs)[3:]))
        return [allowed + 4 * case.precision.result * ends]

    def tile(self, boxes: Boxes, inputs: Infos, outputs: Infos, context: Context) -> LayerTile:
        shapes = self.aligned_shapes(*(static(info.shape) for info in inputs))
        return elementwise_tile(self, boxes, inputs, shapes)

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        ends = _numbers([float(x.reshape(()))] if x.size == 1 else None for x in inputs[1:])
        if ends is not None:
            return (narrow(self._by_range(widen(inputs[0]), ends), inputs[0].dtype),)
        data, *ranges = self.aligned([widen(x) for x in inputs])
        with np.errstate(all="ignore"):
            found = self._by_ranges(data, *(end.astype(np.float64) for end in ranges))
            return (narrow(found.astype(data.dtype), inputs[0].dtype),)

    def as_lazy_tensor(self, inputs: Sequence[LazyTensor], context: Context) -> LazyTensor | None:
        """Compute rows of the data, of its first axes, when they are read."""
        data, *ends = inputs
        fits = all(end.ndim <= data.ndim for end in ends) and not self.realigns
        if not fits or not data.size or sum(end.size for end in ends) * _LEAST_RATIO > data.size:
            return None
        shape = data.shape
        lead = next((i for i in range(1, data.ndim) if math.prod(shape[i:]) <= _ROW), data.ndim)
        row = math.prod(shape[lead:])
        arrays = [end.reshape(*(1,) * (data.ndim - end.ndim), *end.shape).whole() for end in ends]

        def read(start: int, stop: int) -> Array:
            first, last = start // row, -(-stop // row)
            rows = data.read(first * row, last * row).reshape(-1, *shape[lead:])
            places = np.unravel_index(np.arange(first, last), shape[:lead])
            own = (
                end[tuple(at if n > 1 else 0 for at, n in zip(places, end.shape, strict=False))]
                for end in arrays
            )
            (result,) = self.execute([rows, *own], context)
            return result.reshape(-1)[start - first * row : stop - first * row]

        return LazyTensor(shape, data.dtype, read)

    def _by_range(self, data: Array, ends: Sequence[float]) -> Array:
        """Return values of the levels of one range, computed in f64 and rounded once."""
        low, high, output_low, output_high = ends
        wide = np.clip(data, low, high).astype(np.float64)
        steps = self.levels - 1
        level = np.rint((wide - low) * (steps / (high - low)))
        found: Array = level * ((output_high - output_low) / steps) + output_low
        return found.astype(data.dtype)

    def _by_ranges(
        self, data: Array, low: Array, high: Array, output_low: Array, output_high: Array
    ) -> Array:
        """Return values of the levels of ranges in f64."""
        steps = self.levels - 1
        level = np.rint((data - low) * (steps / (high - low)))
        result = level * ((output_high - output_low) / steps) + output_low
        result = np.where(data <= np.minimum(low, high), output_low, result)
        found: Array = np.where(data > np.maximum(low, high), output_high, result)
        return found


def _numbers(ends: Iterable[Sequence[float] | None]) -> tuple[float, ...] | None:
    """Return the ends of the input range, in order, and the output range; None for others."""
    found = tuple(float(row[0]) for row in ends if row is not None and len(row) == 1)
    if len(found) < 4 or not all(map(math.isfinite, found)) or found[0] >= found[1]:
        return None
    return found
