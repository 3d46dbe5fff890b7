"""Elements in another order: Transpose, Reverse, ReverseSequence, Roll; and CumSum, OneHot."""

from __future__ import annotations

import enum
import math
from typing import TYPE_CHECKING, Any

from deconv_ir.errors import InputError, ShapeError
from deconv_ir.ir.boxes import Boxes, LayerTile, sole, whole_box
from deconv_ir.ir.geometry import UNKNOWN
from deconv_ir.ir.operation import (
    Arrays,
    Call,
    Context,
    ElementOf,
    Infos,
    Operation,
    Sharing,
    TensorInfo,
)
from deconv_ir.ir.shapes import format_shape, intersect_dims, static
from deconv_ir.ops.base import attribute, boolean, choice, integer, operation
from deconv_ir.ops.binding import Lists, OfLists
from deconv_ir.ops.checks import (
    axis_count,
    check_count,
    check_integers,
    check_least_rank,
    check_lists,
    check_rank,
    check_single,
    check_type,
    integers,
    known_integer,
    known_integers,
    merged_type,
    misfit,
    normalize_axes,
    normalize_axis,
    only,
)
from deconv_ir.ops.numeric import narrow, np, widen
from deconv_ir.ops.tile_rules import wrapped_tile
from deconv_ir.ops.values import as_dim, unknown_dims

if TYPE_CHECKING:
    from deconv_ir.ops.allowance import Bounds, Case


class _SameShape(Operation):
    """An operation that keeps the shape of the data."""

    formula = "the shape of data, {shape[data]}"


class ReverseMode(enum.Enum):
    """The meaning of the input `reversed_axes`."""

    INDEX = "index"
    MASK = "mask"


@operation(
    "Reverse-1(data, reversed_axes)",
    "f32[2,3], i64[1]{-1} -> f32[2,3] | mode=index",
    "f32[2,3], boolean[2]{0,1} -> f32[2,3] | mode=mask",
)
class Reverse(_SameShape):
    """The data reversed along axes."""

    sharing = Sharing.PART

    mode: ReverseMode = attribute(choice(ReverseMode))

    @property
    def moves(self) -> tuple[int, ...]:
        """The data."""
        return (0,)

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        data, axes_info = inputs
        by_index = self.mode is ReverseMode.INDEX
        check_type(axes_info, "reversed_axes", "integer" if by_index else "boolean")
        check_rank(axes_info, "reversed_axes", 1)
        if data.shape is not None and by_index:
            axes = known_integers(axes_info)
            if axes is not None:
                normalize_axes(axes, len(data.shape), "reversed_axes")
        elif data.shape is not None and axis_count(axes_info) not in (None, len(data.shape)):
            rank = len(data.shape)
            raise misfit("input-shape", "the mask", f"have {rank} elements", axes_info.shape, rank)
        return (TensorInfo(data.shape, data.element_type),)

    def tile(self, boxes: Boxes, inputs: Infos, outputs: Infos, context: Context) -> LayerTile:
        (box,), chosen = boxes, known_integers(inputs[1])
        if box is None or chosen is None or self.mode is ReverseMode.MASK:
            return super().tile(boxes, inputs, outputs, context)
        shape = static(inputs[0].shape)
        axes = normalize_axes(chosen, len(shape), "reversed_axes")
        spans = tuple(
            (extent - stop, extent - start) if axis in axes else (start, stop)
            for axis, ((start, stop), extent) in enumerate(zip(box, shape, strict=True))
        )
        return LayerTile((spans, whole_box(static(inputs[1].shape))), self)

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        """Reverse the axes (a view)."""
        data, chosen = inputs
        if self.mode is ReverseMode.MASK:
            axes = tuple(int(i) for i in np.flatnonzero(chosen))
        else:
            axes = normalize_axes(integers(chosen), data.ndim, "reversed_axes")
        return (np.flip(data, axes),)


@operation(
    "ReverseSequence-1(data, seq_lengths)",
    "f32[2,5,3], i64[2]{3,5} -> f32[2,5,3] | batch_axis=0 seq_axis=1",
)
class ReverseSequence(_SameShape):
    """The first elements of each batch reversed along an axis; their number differs per batch."""

    batch_axis: int = attribute(integer(), 0)
    seq_axis: int = attribute(integer(), 1)

    @property
    def moves(self) -> tuple[int, ...]:
        """The data."""
        return (0,)

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        data, lengths = inputs
        check_type(lengths, "seq_lengths", "numeric")
        check_rank(lengths, "seq_lengths", 1)
        check_least_rank(data, "data", 2)
        shape = data.shape
        if shape is not None:
            batch = normalize_axis(self.batch_axis, len(shape), "batch_axis")
            if batch == normalize_axis(self.seq_axis, len(shape), "seq_axis"):
                message = f"batch_axis and seq_axis are both {batch}"
                raise ShapeError(message, attribute="seq_axis", actual=self.seq_axis, rule="axis")
            if lengths.shape is not None:
                common = intersect_dims(shape[batch], lengths.shape[0])
                if common is None:
                    must = f"have {shape[batch]} elements"
                    found = lengths.shape[0]
                    raise misfit("input-shape", "seq_lengths", must, found, shape[batch])
                shape = (*shape[:batch], common, *shape[batch + 1 :])
        return (TensorInfo(shape, data.element_type),)

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        data, lengths = inputs
        batch = normalize_axis(self.batch_axis, data.ndim, "batch_axis")
        axis = normalize_axis(self.seq_axis, data.ndim, "seq_axis")
        result = data.copy()
        target, source = (np.moveaxis(a, (batch, axis), (0, 1)) for a in (result, data))
        for n, found in enumerate(integers(lengths)):
            length = int(found) if math.isfinite(found) else -1
            if not 0 <= length <= data.shape[axis]:
                raise InputError(
                    f"seq_lengths[{n}] is {found}, the axis has {data.shape[axis]} elements",
                    rule="index-range",
                )
            target[n, :length] = source[n, :length][::-1]
        return (result,)


@operation("Roll-7(data, shift, axes)", "f32[2,5], i64[2]{1,-2}, i64[2]{0,-1} -> f32[2,5]")
class Roll(_SameShape):
    """Elements shifted cyclically along axes."""

    @property
    def moves(self) -> tuple[int, ...]:
        """The data."""
        return (0,)

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        data = inputs[0]
        check_lists(inputs[1:], self.inputs[1:], 0, 1)
        axes = known_integers(inputs[2])
        if axes is not None and data.shape is not None:
            for axis in axes:
                normalize_axis(axis, len(data.shape), "axes")
        count = axis_count(inputs[1])
        if axes is not None and count is not None:
            _check_shift(count, len(axes))
        return (TensorInfo(data.shape, data.element_type),)

    def tile(self, boxes: Boxes, inputs: Infos, outputs: Infos, context: Context) -> LayerTile:
        (box,), shift, axes = boxes, known_integers(inputs[1]), known_integers(inputs[2])
        if box is None or shift is None or axes is None:
            return super().tile(boxes, inputs, outputs, context)
        total = [0] * len(box)
        for axis, one in zip(axes, shift * len(axes) if len(shift) == 1 else shift, strict=True):
            total[axis] += one
        return wrapped_tile(box, inputs, total)

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        data, shift = inputs[0], integers(inputs[1])
        axes = tuple(normalize_axis(a, data.ndim, "axes") for a in integers(inputs[2]))
        _check_shift(len(shift), len(axes))
        if not axes:
            return (data.copy(),)
        return (np.roll(data, shift * len(axes) if len(shift) == 1 else shift, axes),)


def _check_shift(count: int, axes: int) -> None:
    if count not in (1, axes):
        must = f"have one element, or {axes} as axes has"
        raise misfit("input-shape", "shift", must, count, axes)


@operation(
    "CumSum-3(data, axis?)",
    "f32[2,5], i64[]{-1} -> f32[2,5] | exclusive=true reverse=true",
    "i32[3] -> i32[3]",
)
class CumSum(_SameShape):
    """Cumulative sum along an axis; default `axis`: 0."""

    scratch_ratios = (0.75, 1.5)

    exclusive: bool = attribute(boolean(), False)
    reverse: bool = attribute(boolean(), False)

    @property
    def in_order(self) -> bool:
        return not self.reverse

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        data = inputs[0]
        element_type = check_type(data, "data", "numeric")
        if len(inputs) > 1:
            check_single(inputs[1], "axis", "integer")
        axis = known_integer(inputs[1], "axis") if len(inputs) > 1 else 0
        if axis is not None and data.shape is not None:
            normalize_axis(axis, len(data.shape))
        return (TensorInfo(data.shape, element_type),)

    def allowance(self, case: Case) -> Bounds | None:
        from deconv_ir.ops.allowance import sums

        return sums(case, max(case.outputs[0].shape, default=1), values=(0,))

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        """Compute cumulative sums; integers wrap."""
        data = widen(inputs[0])
        axis = normalize_axis(int(only(inputs[1], "axis")) if len(inputs) > 1 else 0, data.ndim)
        moved = np.moveaxis(data, axis, 0)
        if self.reverse:
            moved = moved[::-1]
        with np.errstate(all="ignore"):
            total = np.cumsum(moved, axis=0, dtype=data.dtype)
        if self.exclusive and len(total):
            total = np.concatenate([np.zeros_like(total[:1]), total[:-1]])
        if self.reverse:
            total = total[::-1]
        return (narrow(np.moveaxis(total, 0, axis), inputs[0].dtype),)


class NegativeIndices(enum.Enum):
    """The meaning of a negative index."""

    IGNORE_NEGATIVE = "ignore_negative"
    NORMALIZE = "normalize"


@operation(
    "OneHot-1(indices, depth, on_value, off_value)",
    "i64[3]{0,2,-1}, i64[]{4}, f32[], f32[] -> f32[3,4] | axis=-1",
)
class OneHot1(Operation):
    """`on_value` at each index and `off_value` elsewhere; other indices are ignored."""

    formula = "indices {shape[indices]}, depth {element[depth]}"

    axis: int = attribute(integer(), -1)

    negative_indices_mode: NegativeIndices = NegativeIndices.IGNORE_NEGATIVE

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        indices, depth = inputs[:2]
        check_type(indices, "indices", "integer")
        check_type(depth, "depth", "integer")
        element_type = merged_type(inputs[2:], self.inputs[2:])
        for info, name in zip(inputs[1:], self.inputs[1:], strict=True):
            check_single(info, name)
        if indices.shape is None:
            return (TensorInfo(None, element_type),)
        axis = normalize_axis(self.axis, len(indices.shape) + 1)
        extent = as_dim(depth.value[0]) if depth.value else UNKNOWN
        if isinstance(extent, int) and extent < 0:
            raise ShapeError(f"depth is {extent}", expected=">= 0", actual=extent, rule="depth")
        shape = (*indices.shape[:axis], extent, *indices.shape[axis:])
        return (TensorInfo(shape, element_type),)

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        indices, depth, on, off = inputs
        extent = int(only(depth, "depth"))
        axis = normalize_axis(self.axis, indices.ndim + 1)
        found = indices.astype(np.int64, copy=False)
        if self.negative_indices_mode is NegativeIndices.NORMALIZE:
            found = np.where(found < 0, found + extent, found)
        places: Any = np.arange(extent).reshape((-1,) + (1,) * (indices.ndim - axis))
        hot = np.expand_dims(found, axis) == places
        return (np.where(hot, only(on, "on_value"), only(off, "off_value")),)


@operation(
    "OneHot-16(indices, depth, on_value, off_value)",
    "i64[3]{0,2,-1}, i64[]{4}, f32[], f32[] -> f32[4,3] | axis=0 negative_indices_mode=normalize",
)
class OneHot16(OneHot1):
    """`on_value` at each index and `off_value` elsewhere; other indices are ignored."""

    negative_indices_mode: NegativeIndices = attribute(
        choice(NegativeIndices), NegativeIndices.IGNORE_NEGATIVE
    )


@operation(
    "Transpose-1(arg, input_order)",
    "f32[2,3,4], i64[3]{0,2,1} -> f32[2,4,3]",
    "f32[2,3,4], i64[0]{} -> f32[4,3,2]",
)
class Transpose(OfLists):
    """Axes of an array permuted; an empty `input_order` reverses them."""

    sharing = Sharing.PART

    @property
    def moves(self) -> tuple[int, ...]:
        """The data."""
        return (0,)

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        data, order_info = inputs
        check_integers(order_info, "input_order", 1)
        if data.shape is None:
            count = axis_count(order_info)
            return (TensorInfo(unknown_dims(count) if count else None, data.element_type),)
        order = known_integers(order_info)
        if order is None:
            count = axis_count(order_info)
            check_count(count or None, "input_order", len(data.shape), "transpose")
            return (TensorInfo(unknown_dims(len(data.shape)), data.element_type),)
        axes = self.axes(order, len(data.shape))
        value = data.value if len(data.shape) < 2 else None
        return (TensorInfo(tuple(data.shape[a] for a in axes), data.element_type, value),)

    def axes(self, order: tuple[int, ...], rank: int) -> tuple[int, ...]:
        """Return the axes of the data in the order of the output."""
        if not order:
            return tuple(range(rank))[::-1]
        if sorted(order) != list(range(rank)):
            raise ShapeError(
                f"input_order {format_shape(order)} is not a permutation of {rank} axes",
                expected=f"a permutation of 0..{rank - 1}",
                actual=format_shape(order),
                rule="transpose",
            )
        return order

    def explain(self, inputs: Infos, context: Context, output: int, axis: int) -> str | None:
        order = known_integers(inputs[1])
        data = inputs[0].shape
        if order is None or data is None:
            return None
        source = self.axes(order, len(data))[axis]
        return f"axis {source} of data {format_shape(data)}"

    def on_fours(self, inputs: Infos, outputs: Infos, element: ElementOf) -> Operation | None:
        shape, order = inputs[0].shape, known_integers(inputs[1])
        if shape is None or order is None or len(shape) < 2:
            return None
        return self if self.axes(order, len(shape))[1] == 1 else None

    def bind_known(self, shape: tuple[int, ...], lists: Lists, outputs: Infos) -> Call:
        order = self.axes(lists[0], len(shape))
        return lambda arrays, out: (arrays[0].transpose(order),)

    def tile_known(self, boxes: Boxes, inputs: Infos, outputs: Infos, lists: Lists) -> LayerTile:
        box = sole(boxes)
        axes = self.axes(lists[0], len(box))
        spans = tuple(box[axes.index(axis)] for axis in range(len(axes)))
        return LayerTile((spans, whole_box(static(inputs[1].shape))), self)

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        """Reorder the axes (a view)."""
        return (inputs[0].transpose(self.axes(integers(inputs[1]), inputs[0].ndim)),)
