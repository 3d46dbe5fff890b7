"""OpenVINO Reshape-1, ShapeOf-1 and ShapeOf-3."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from deconv_ir.errors import ShapeError
from deconv_ir.ir.boxes import Boxes, LayerTile
from deconv_ir.ir.dtypes import I64, Array, ElementType
from deconv_ir.ir.geometry import UNKNOWN, Dim, Interval, bounds, interval
from deconv_ir.ir.lazy_tensor import LazyTensor
from deconv_ir.ir.operation import (
    Arrays,
    Call,
    Context,
    ElementOf,
    Infos,
    LayerPlan,
    Operation,
    Sharing,
    TensorInfo,
)
from deconv_ir.ir.quantization import FOUR
from deconv_ir.ir.record import field
from deconv_ir.ir.shapes import (
    Shape,
    element_count,
    format_shape,
    intersect_dims,
    is_static,
    static,
)
from deconv_ir.ops.base import attribute, boolean, operation, result_type
from deconv_ir.ops.binding import known_lists, reshaped
from deconv_ir.ops.checks import (
    check_type,
    integers,
    known_integers,
    misfit,
    product,
    unknown_shape,
)
from deconv_ir.ops.elementwise.blocks import is_small
from deconv_ir.ops.numeric import np
from deconv_ir.ops.tile_rules import reshape_tile
from deconv_ir.ops.values import wrap

# A last axis up to this length is copied along the other axes.
_FEW = 16


@operation(
    "Reshape-1(data, shape)",
    "f32[2,3,4], i64[2]{0,-1} -> f32[2,12] | special_zero=true",
    "f32[0,4], i64[2]{3,0} -> f32[3,0] | special_zero=false",
)
class Reshape(Operation):
    """The same elements in another shape."""

    sharing = Sharing.WHOLE

    special_zero: bool = attribute(boolean())

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        data, target = inputs
        check_type(target, "shape", "integer")
        if target.shape is not None and len(target.shape) > 1:
            raise misfit("rank", "shape", "be a list", target.shape, "rank 1")
        if target.value is None:
            return (TensorInfo(unknown_shape(target), data.element_type, data.value, data.reals),)
        resolved = self.resolve(data.shape, target.value)
        return (TensorInfo(resolved, data.element_type, data.value, data.reals),)

    def resolve(self, data: Shape, target: tuple[Dim, ...]) -> tuple[Dim, ...]:
        """Replace 0 and -1 by numbers."""
        dims: list[Dim | None] = []
        copied: set[int] = set()
        for i, dim in enumerate(target):
            if dim == 0 and self.special_zero:
                if data is not None and i >= len(data):
                    raise self._misfit(data, target, f"element {i} is 0, the data has no axis {i}")
                dims.append(UNKNOWN if data is None else data[i])
                copied.add(i)
            elif dim == -1:
                dims.append(None)
            elif isinstance(dim, int) and dim < -1:
                raise self._misfit(data, target, f"element {i} is {dim}")
            elif isinstance(dim, Interval) and dim.min < 0:
                # An unknown element may be -1 and then stand for any dim.
                dims.append(UNKNOWN)
            else:
                dims.append(dim)
        if dims.count(None) > 1:
            raise self._misfit(data, target, "more than one -1")
        rest: Dim = UNKNOWN
        if data is not None:
            # A copied dim is a factor of both element counts, even if it is unknown.
            others = tuple(d for i, d in enumerate(data) if i not in copied)
            fixed = [d for i, d in enumerate(dims) if d is not None and i not in copied]
            rest = self._left_over(data, others, target, fixed)
        if data is not None and None not in dims:
            total, taken = product(*data), product(*(d for d in dims if d is not None))
            if intersect_dims(total, taken) is None:
                raise self._misfit(data, target, f"{total} elements do not fill {taken}")
        return tuple(rest if d is None else d for d in dims)

    def _left_over(
        self,
        data: tuple[Dim, ...],
        others: tuple[Dim, ...],
        target: tuple[Dim, ...],
        known: list[Dim],
    ) -> Dim:
        """Find the dim for -1: the quotient of the products of `others` and `known`."""
        left, right = _cancel(others, known)
        total, taken = product(*left), product(*right)
        if taken == 0:
            if bounds(total)[0]:
                raise self._misfit(data, target, "the numbers of elements differ")
            return 1
        if isinstance(taken, int) and isinstance(total, int):
            if total % taken:
                raise self._misfit(data, target, f"{total} elements are not a multiple of {taken}")
            return total // taken
        if isinstance(taken, int) and taken > 0:
            low, high = bounds(total)
            return interval(-(-low // taken), None if high is None else high // taken)
        return UNKNOWN

    def _misfit(self, data: Shape, target: Shape, why: str) -> ShapeError:
        message = f"data {format_shape(data)} cannot take shape {format_shape(target)}: {why}"
        return ShapeError(
            message, expected=format_shape(data), actual=format_shape(target), rule="reshape"
        )

    def explain(self, inputs: Infos, context: Context, output: int, axis: int) -> str | None:
        value = inputs[1].value
        asked = "a shape that is not known" if value is None else format_shape(value)
        return f"data {format_shape(inputs[0].shape)} reshaped to {asked}"

    def on_fours(self, inputs: Infos, outputs: Infos, element: ElementOf) -> Operation | None:
        data, shape, target = inputs[0].shape, outputs[0].shape, known_integers(inputs[1])
        if data is None or shape is None or target is None or min(len(data), len(shape)) < 2:
            return None
        channels = data[1]
        if not isinstance(channels, int) or not channels or shape[1] != channels:
            return None
        # With the first axis, too, the elements of each channel are the same.
        copied = target[0] == 0 and self.special_zero
        behind = data[2:] if is_static(data[2:]) and is_static(shape[2:]) else None
        same = behind is not None and math.prod(behind) == math.prod(static(shape[2:])) != 0
        if not (copied or same or (isinstance(data[0], int) and data[0] == shape[0] != 0)):
            return None
        asked = (target[0], -(-channels // FOUR), *target[2:])
        return _ReshapedTo(special_zero=self.special_zero, target=asked)

    def bind(self, inputs: Infos, outputs: Infos, context: Context) -> Call:
        """Resolve the shape once, if it is known."""
        if known_lists(inputs[1:]) is None or not is_small(element_count(static(outputs[0].shape))):
            return super().bind(inputs, outputs, context)
        view = reshaped(outputs[0])

        def call(arrays: Arrays, out: Array | None) -> Arrays:
            if out is None:
                return view(arrays, None)
            self.execute_into(arrays, context, out)
            return (out,)

        return call

    def plan(self, inputs: Infos, outputs: Infos, context: Context) -> LayerPlan:
        return _ReshapePlan(self.bind(inputs, outputs, context))

    def accepts_out(self, inputs: Infos, output: TensorInfo) -> bool:
        return output.element_type is not None and output.element_type.kind != "string"

    def execute_into(self, inputs: Arrays, context: Context, out: Array) -> None:
        """Copy the elements in order, where no view has the shape."""
        from deconv_ir.kernels.copies import reshape_into

        reshape_into(inputs[0], out)

    def tile(self, boxes: Boxes, inputs: Infos, outputs: Infos, context: Context) -> LayerTile:
        return reshape_tile(boxes, inputs, outputs)

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        """Reshape (a view where possible)."""
        data, target = inputs
        shape = self.resolve(data.shape, integers(target))
        if data.ndim and data.strides[-1] != data.itemsize and 1 < data.shape[-1] <= _FEW:
            from deconv_ir.kernels.copies import contiguous

            data = contiguous(data)
        return (data.reshape(static(shape)),)

    def as_lazy_tensor(self, inputs: Sequence[LazyTensor], context: Context) -> LazyTensor | None:
        data, target = inputs
        return data.reshape(*static(self.resolve(data.shape, integers(target.whole()))))


class _ReshapedTo(Operation):
    """A Reshape to a given shape."""

    sharing = Sharing.WHOLE
    checks_values = False

    special_zero: bool = field()
    target: tuple[int, ...] = field()

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        shape = Reshape(special_zero=self.special_zero).resolve(inputs[0].shape, self.target)
        return (inputs[0].reshape(static(shape)),)


class _ReshapePlan(LayerPlan):
    """A plan of a Reshape, which copies if it is given an array."""

    def bind(self, inputs: Arrays, out: Array) -> Callable[[], object]:
        from deconv_ir.kernels.copies import bind_copy

        return bind_copy(inputs[0], out.reshape(inputs[0].shape))


def _cancel(a: Sequence[Dim], b: Sequence[Dim]) -> tuple[list[Dim], list[Dim]]:
    """Remove the dims that both lists have."""
    left, right = list(a), []
    for dim in b:
        if isinstance(dim, int) and dim and dim in left:
            left.remove(dim)
        else:
            right.append(dim)
    return left, right


@operation("ShapeOf-1(data)", "f32[2,3,4] -> i64[3]")
class ShapeOf1(Operation):
    """The shape as i64."""

    output_type: ElementType = I64

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        shape = inputs[0].shape
        length = UNKNOWN if shape is None else len(shape)
        element_type = self.output_type
        value = shape and tuple(
            wrap(dim, element_type) if isinstance(dim, int) else dim for dim in shape
        )
        return (TensorInfo((length,), element_type, value),)

    def explain(self, inputs: Infos, context: Context, output: int, axis: int) -> str | None:
        return f"the rank of the input {inputs[0]}"

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        return (np.array(inputs[0].shape, np.int64).astype(self.output_type.numpy()),)


@operation("ShapeOf-3(data)", "f32[2,3,4] -> i32[3] | output_type=i32")
class ShapeOf3(ShapeOf1):
    """The shape as i64 or i32."""

    output_type: ElementType = attribute(result_type(), I64)
