"""OpenVINO Range-1 and Range-4."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from deconv_ir.errors import ShapeError
from deconv_ir.ir.dtypes import Array, ElementType
from deconv_ir.ir.geometry import UNKNOWN, Dim, interval
from deconv_ir.ir.operation import Arrays, Context, Infos, Operation, TensorInfo
from deconv_ir.ops.base import attribute, operation, result_type
from deconv_ir.ops.checks import VALUE_LIMIT, check_single, check_type, merged_type, only
from deconv_ir.ops.numeric import np
from deconv_ir.ops.values import ends, wrap

if TYPE_CHECKING:
    from deconv_ir.ops.allowance import Bounds, Case


def steps(start: float, stop: float, step: float) -> int:
    """Return the length of a range."""
    if step == 0 or not all(math.isfinite(v) for v in (start, stop, step)):
        raise ShapeError(
            f"a range from {start} to {stop} by {step} has no end", actual=step, rule="range"
        )
    if isinstance(start, int) and isinstance(stop, int) and isinstance(step, int):
        return max(0, -((start - stop) // step))
    return max(0, math.ceil((stop - start) / step))


@operation("Range-1(start, stop, step)", "i64[]{2}, i64[]{9}, i64[]{3} -> i64[3]")
class Range1(Operation):
    """Numbers from start to stop (excluded), by step."""

    output_type: ElementType | None = None
    """None: the common type of the inputs."""

    def allowance(self, case: Case) -> Bounds | None:
        from deconv_ir.ops.allowance import ULPS

        if case.outputs[0].dtype.kind != "f":
            return [0.0]
        # Multiples of the step may also be added up one by one.
        largest = max((float(np.abs(end).max(initial=0)) for end in case.inputs[:2]), default=0.0)
        count = case.outputs[0].size
        return [np.full(count, (ULPS + count / 2) * case.precision.result * largest)]

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        for info, name in zip(inputs, self.inputs, strict=True):
            check_single(info, name)
        for info, name in zip(inputs, self.inputs, strict=True):
            check_type(info, name, "numeric")
        found = self.output_type or merged_type(inputs, self.inputs)
        whole = found is not None and found.is_integer
        scalars = [_scalar(info, whole) for info in inputs]
        numbers = [s for s in scalars if isinstance(s, int | float)]
        if len(numbers) == 3:
            count = steps(*numbers)
            value = None
            start, _, step = numbers
            if count <= VALUE_LIMIT and isinstance(start, int) and isinstance(step, int):
                value = tuple(wrap(start + i * step, found) for i in range(count))
            return (TensorInfo((count,), found, value),)
        return (TensorInfo((self._bound(inputs),), found),)

    @staticmethod
    def _bound(inputs: Infos) -> Dim:
        """Bound the length by the ends of partly known integers."""
        values = [info.value for info in inputs]
        if any(v is None or len(v) != 1 for v in values):
            return UNKNOWN
        start, stop, step = (v[0] for v in values if v is not None)
        if not isinstance(step, int) or not step:
            return UNKNOWN
        (start_low, start_high), (stop_low, stop_high) = ends(start), ends(stop)
        near, far = stop_low - start_high, stop_high - start_low
        if step < 0:
            near, far = start_low - stop_high, start_high - stop_low
        low = 0 if math.isinf(near) else max(0, -(-int(near) // abs(step)))
        high = None if math.isinf(far) else max(0, -(-int(far) // abs(step)))
        return interval(low, high)

    def explain(self, inputs: Infos, context: Context, output: int, axis: int) -> str | None:
        shown = []
        for info, name in zip(inputs, self.inputs, strict=True):
            known = info.value or info.reals
            shown.append(f"{name} {known[0] if known else '?'}")
        return "the numbers from " + ", ".join(shown)

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        dtype = self.output_type.numpy() if self.output_type else inputs[0].dtype
        start, stop, step = (
            _number(a, name, dtype) for a, name in zip(inputs, self.inputs, strict=True)
        )
        count = steps(start, stop, step)
        if dtype.kind in "iu":
            # Modulo 2^64, for any start and step.
            first, width = np.uint64(start % 2**64), np.uint64(step % 2**64)
            numbers: Array = np.arange(count, dtype=np.uint64) * width + first
        else:
            numbers = np.arange(count) * float(step) + float(start)
        return (numbers.astype(dtype),)


def _scalar(info: TensorInfo, whole: bool) -> float | Dim | None:
    """Return the only element; a float is truncated for an integer range."""
    known = info.value or info.reals
    if not known or len(known) != 1:
        return None
    number = known[0]
    if whole and isinstance(number, float) and math.isfinite(number):
        return int(number)
    return number


def _number(array: Array, name: str, dtype: Any) -> Any:
    number = only(array, name).item()
    if dtype.kind in "iu" and isinstance(number, float) and math.isfinite(number):
        return int(number)
    return number


@operation(
    "Range-4(start, stop, step)",
    "i64[]{9}, i64[]{2}, i64[]{-3} -> f32[3] | output_type=f32",
)
class Range4(Range1):
    """Numbers from start to stop (excluded), by step."""

    output_type: ElementType = attribute(result_type())
