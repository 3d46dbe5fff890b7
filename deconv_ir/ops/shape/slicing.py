"""OpenVINO Slice-8 and StridedSlice-1: parts of an array, by begin, end and step."""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Any, NamedTuple

from deconv_ir.errors import ShapeError
from deconv_ir.ir.boxes import Boxes, LayerTile, sole
from deconv_ir.ir.geometry import Dim, Interval, bounds, interval
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
from deconv_ir.ir.quantization import fours
from deconv_ir.ir.shapes import format_shape, is_symbolic, larger, smaller, static
from deconv_ir.ops.base import attribute, flags, operation
from deconv_ir.ops.binding import Lists, OfLists, indexed, known_lists
from deconv_ir.ops.checks import (
    axis_count,
    check_lists,
    known_integers,
    normalize_axes,
)
from deconv_ir.ops.checks import integers as elements
from deconv_ir.ops.tile_rules import StaticSlices, index_tile
from deconv_ir.ops.values import ANY, ends

_FAR = 2**62
_BEYOND = 2**64
_EXHAUSTIVE = 4096
_ALL = 2**31 - 1
"""Exporters write it, or more, for the end of an axis of any extent."""


def sliced(extent: Dim, begin: Dim | None, end: Dim | None, step: Dim) -> Dim:
    """Return the extent of a slice, by Python's rule; the step is not 0."""
    low, high = bounds(extent)
    if not isinstance(step, int):
        return interval(0, high)
    if begin is None:
        begin = 0 if step > 0 else _FAR
    if end is None:
        end = _FAR if step > 0 else -_FAR
    if isinstance(extent, int) and isinstance(begin, int) and isinstance(end, int):
        return _count(extent, begin, end, step)
    if isinstance(begin, int) and isinstance(end, int):
        # If one end counts from the start and the other from the end, the slice grows with the axis
        # at first, and then shrinks.  Ends that are out of reach are clipped.
        turns = (begin < 0) == (step > 0) and (begin < 0) != (end < 0)
        if turns and max(abs(begin), abs(end)) < _FAR:
            return _between_turns(low, high, begin, end, step)
    corner = _corners(begin, end, step)
    if corner is None:
        return interval(0, high)
    (begin_short, end_short), (begin_long, end_long) = corner
    shortest = _count(low, begin_short, end_short, step)
    longest = _count(_FAR if high is None else high, begin_long, end_long, step)
    return interval(shortest, None if longest > _FAR // 2 // abs(step) else longest)


def _count(extent: int, begin: int, end: int, step: int) -> int:
    if is_symbolic(extent) or is_symbolic(begin) or is_symbolic(end):
        return _symbolic_count(extent, begin, end, step)
    return len(range(*slice(begin, end, step).indices(extent)))


def _symbolic_count(extent: int, begin: int, end: int, step: int) -> int:
    """Count as `slice.indices` does, with arithmetic that symbolic sizes record.

    Only the ends that are out of reach in the direction of the step are clipped: a slice that
    begins or ends beyond the other side is empty without it.
    """
    clip = (larger, smaller) if step > 0 else (smaller, larger)
    reach = (0, extent) if step > 0 else (extent - 1, -1)
    places = []
    for at, take, limit in zip((begin, end), clip, reach, strict=True):
        if not is_symbolic(at) and abs(at) >= _ALL:
            places.append(extent if at > 0 else -1)
        else:
            places.append(at + extent if at < 0 else at)
        places[-1] = take(places[-1], limit)
    return max(0, -((places[0] - places[1]) // step))


def _between_turns(low: int, high: int | None, begin: int, end: int, step: int) -> Dim:
    """Bound a slice that counts one end from the start, the other from the end.

    Its extent grows with the axis at first, and then shrinks.
    """
    reach = abs(begin) + abs(end) + 2
    last = low + reach if high is None else min(high, max(low, reach) + 1)
    if last - low <= _EXHAUSTIVE:
        counts = [_count(n, begin, end, step) for n in range(low, last + 1)]
        if high is not None and high > last:
            counts.append(_count(high, begin, end, step))
        if high is None:
            counts.append(_count(_FAR, begin, end, step))
        return interval(min(counts), max(counts))
    most = -(-(min(abs(begin), abs(end)) + 1) // abs(step))
    return interval(0, most if high is None else min(high, most))


Corners = tuple[tuple[int, int], tuple[int, int]]


def _corners(begin: Dim, end: Dim, step: int) -> Corners | None:
    """Return the (begin, end) of the shortest and of the longest slice; None if unclear."""
    found = []
    for value in (begin, end):
        low, high = ends(value)
        if low < 0 <= high:
            return None
        found.append(tuple(int(max(-_BEYOND, min(_BEYOND, v))) for v in (low, high)))
    (begin_low, begin_high), (end_low, end_high) = found
    if step > 0:
        return (begin_high, end_low), (begin_low, end_high)
    return (begin_low, end_high), (begin_high, end_low)


def _check_step(step: Dim, index: int) -> None:
    if step == 0:
        raise ShapeError(f"step {index} is 0", expected="not 0", actual=0, rule="step")


def _too_many(count: int, rank: int) -> ShapeError:
    message = f"{count} axes are sliced, the data has {rank}"
    return ShapeError(message, expected=f"<= {rank}", actual=count, rule="slice")


def channels_at(index: Sequence[Any]) -> int | None:
    """Return where an index has axis 1 of the data, if that is axis 1 of the result; else None."""
    axis = made = 0
    for at, one in enumerate(index):
        if axis == 1 and one is not None:
            return at if made == 1 and isinstance(one, slice) else None
        axis += one is not None
        made += one is None or isinstance(one, slice)
    return len(index) if axis == made <= 1 else None


class _Sliced(OfLists, abc.ABC):
    """Part of an array, given by lists: `index` computes it from them and the shape."""

    formula = "data {shape[data]}, {lists}"
    sharing = Sharing.PART

    @abc.abstractmethod
    def index(self, shape: Sequence[Dim], *lists: Sequence[int]) -> tuple[Any, ...]:
        """Return the index of the array."""

    def on_fours(self, inputs: Infos, outputs: Infos, element: ElementOf) -> Operation | None:
        shape, lists = inputs[0].shape, known_lists(inputs[1:])
        if shape is None or lists is None:
            return None
        # Only the rank and the channels are looked at.
        index = list(self.index(shape, *lists))
        at = channels_at(index)
        if at is None:
            return None
        if at < len(index):
            channels = shape[1]
            if not isinstance(channels, int):
                return self if index[at] in (slice(None), slice(None, None, 1)) else None
            start, stop, step = index[at].indices(channels)
            span = fours(start, max(start, stop), channels) if step == 1 else None
            if span is None:
                return None
            index[at] = slice(*span)
        return StaticSlices(
            index=(
                tuple(
                    (one.start, one.stop, one.step or 1) if isinstance(one, slice) else one
                    for one in index
                ),
            )
        )

    def bind_known(self, shape: tuple[int, ...], lists: Lists, outputs: Infos) -> Call:
        return indexed(self.index(shape, *lists))

    def tile_known(self, boxes: Boxes, inputs: Infos, outputs: Infos, lists: Lists) -> LayerTile:
        shape = static(inputs[0].shape)
        return index_tile(self.index(shape, *lists), shape, sole(boxes), len(inputs))

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        """Slice the array (a view)."""
        data = inputs[0]
        return (data[self.index(data.shape, *map(elements, inputs[1:]))],)


@operation(
    "Slice-8(data, start, stop, step, axes?)",
    "f32[2,8], i64[1]{1}, i64[1]{-1}, i64[1]{2}, i64[1]{1} -> f32[2,3]",
    "f32[5], i64[1]{9}, i64[1]{-9}, i64[1]{-1} -> f32[5]",
)
class Slice(_Sliced):
    """Part of an array along some axes, as in Python; default `axes`: the first ones."""

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        data, *lists = inputs
        check_lists(lists, self.inputs[1:], 1)
        lengths = {n for info in lists if (n := axis_count(info)) is not None}
        if len(lengths) > 1:
            found = ", ".join(
                f"{name} {format_shape(info.shape)}"
                for info, name in zip(lists, self.inputs[1:], strict=False)
            )
            raise ShapeError(f"the lists must have one length: {found}", actual=found, rule="slice")
        if data.shape is None:
            return (TensorInfo(None, data.element_type),)
        rank = len(data.shape)
        axes = self._axes(lists, rank, lengths)
        if axes is None:
            shape = tuple(interval(0, bounds(d)[1]) for d in data.shape)
            return (TensorInfo(shape, data.element_type),)
        unknown = (ANY,) * len(axes)
        start, stop, step = (info.value or unknown for info in lists[:3])
        dims = list(data.shape)
        for i, axis in enumerate(axes):
            _check_step(step[i], i)
            dims[axis] = sliced(dims[axis], start[i], stop[i], step[i])
        value = None
        if data.value is not None and rank == 1 and len(axes) == 1:
            value = _slice_value(data.value, start[0], stop[0], step[0])
        return (TensorInfo(tuple(dims), data.element_type, value),)

    @staticmethod
    def _axes(lists: Infos, rank: int, lengths: set[int]) -> tuple[int, ...] | None:
        """Return the axes that are sliced; None if they are not known."""
        if len(lists) > 3:
            axes = known_integers(lists[3])
            return None if axes is None else normalize_axes(axes, rank)
        if not lengths:
            return None
        count = lengths.copy().pop()
        if count > rank:
            raise _too_many(count, rank)
        return tuple(range(count))

    def index(self, shape: Sequence[Dim], *lists: Sequence[int]) -> tuple[Any, ...]:
        start, stop, step, *axes = lists
        index = [slice(None)] * len(shape)
        chosen = normalize_axes(axes[0] if axes else range(len(start)), len(shape))
        for axis, triple in zip(chosen, zip(start, stop, step, strict=True), strict=True):
            _check_step(triple[2], axis)
            index[axis] = slice(*triple)
        return tuple(index)


def _slice_value(
    value: tuple[Dim, ...], begin: Dim | None, end: Dim | None, step: Dim
) -> tuple[Dim, ...] | None:
    if isinstance(begin, Interval) or isinstance(end, Interval) or isinstance(step, Interval):
        return None
    return value[begin:end:step]


class _AxisSlice(NamedTuple):
    """The effect of one element of begin, end and stride on an axis."""

    effect: str
    """``slice``, ``new``, ``shrink`` or ``keep``."""
    begin: Dim | None = None
    end: Dim | None = None
    step: Dim = 1


_MASK = flags()


@operation(
    "StridedSlice-1(data, begin, end, stride?)",
    "f32[2,8], i64[2]{0,1}, i64[2]{0,7}, i64[2]{1,3} -> f32[2,2] | begin_mask=0,0 end_mask=1,0",
    "f32[2,3,4], i64[2]{0,-1}, i64[2]{0,0} -> f32[2,3]"
    " | begin_mask=0,0 end_mask=0,0 shrink_axis_mask=0,1 ellipsis_mask=1,0",
    "f32[3,4], i64[2]{0,2}, i64[2]{0,0} -> f32[1,1,4]"
    " | begin_mask=0,0 end_mask=0,1 new_axis_mask=1,0",
)
class StridedSlice(_Sliced):
    """Part of an array, with masks; default `stride`: 1."""

    begin_mask: tuple[int, ...] = attribute(_MASK)
    end_mask: tuple[int, ...] = attribute(_MASK)
    new_axis_mask: tuple[int, ...] = attribute(_MASK, ())
    shrink_axis_mask: tuple[int, ...] = attribute(_MASK, ())
    ellipsis_mask: tuple[int, ...] = attribute(_MASK, ())

    def items(
        self, rank: int, begin: Sequence[Dim], end: Sequence[Dim], stride: Sequence[Dim] | None
    ) -> list[_AxisSlice]:
        """Return the effect on the axes of the data, item by item."""
        count = len(begin)
        if len(end) != count or (stride is not None and len(stride) != count):
            raise ShapeError("begin, end and stride must have one length", rule="slice")
        if sum(map(bool, self.ellipsis_mask[:count])) > 1:
            raise ShapeError(
                "ellipsis_mask may hold a single 1", attribute="ellipsis_mask", rule="slice"
            )
        items: list[_AxisSlice] = []
        ellipsis = None
        for i in range(count):
            if _bit(self.ellipsis_mask, i):
                ellipsis = len(items)
            elif _bit(self.new_axis_mask, i):
                items.append(_AxisSlice("new"))
            elif _bit(self.shrink_axis_mask, i):
                items.append(_AxisSlice("shrink", begin[i]))
            else:
                step: Dim = 1 if stride is None else stride[i]
                _check_step(step, i)
                first = None if _bit(self.begin_mask, i) else begin[i]
                last = None if _bit(self.end_mask, i) else end[i]
                items.append(_AxisSlice("slice", first, last, step))
        taken = sum(item.effect != "new" for item in items)
        if taken > rank:
            raise _too_many(taken, rank)
        at = len(items) if ellipsis is None else ellipsis
        items[at:at] = [_AxisSlice("keep")] * (rank - taken)
        return items

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        data, *lists = inputs
        check_lists(lists, self.inputs[1:], 1)
        lengths = [n for info in lists if (n := axis_count(info)) is not None]
        if data.shape is None or not lengths:
            return (TensorInfo(None, data.element_type),)
        unknown = (ANY,) * lengths[0]
        begin, end = (info.value or unknown for info in lists[:2])
        stride = (lists[2].value or unknown) if len(lists) > 2 else None
        rank = len(data.shape)
        items = self.items(rank, begin, end, stride)
        dims: list[Dim] = []
        axis = 0
        for item in items:
            if item.effect == "new":
                dims.append(1)
                continue
            extent = data.shape[axis]
            if item.effect == "keep":
                dims.append(extent)
            elif item.effect == "slice":
                dims.append(sliced(extent, item.begin, item.end, item.step))
            else:
                _check_index(item.begin, extent, axis)
            axis += 1
        value = None
        if data.value is not None and rank == 1:
            value = _item_value(data.value, items)
        return (TensorInfo(tuple(dims), data.element_type, value),)

    def index(self, shape: Sequence[Dim], *lists: Sequence[int]) -> tuple[Any, ...]:
        begin, end, *stride = lists
        index: list[Any] = []
        axis = 0
        for item in self.items(len(shape), begin, end, stride[0] if stride else None):
            if item.effect == "new":
                index.append(None)
                continue
            if item.effect == "shrink":
                _check_index(item.begin, shape[axis], axis)
                index.append(item.begin)
            elif item.effect == "keep":
                index.append(slice(None))
            else:
                index.append(slice(item.begin, item.end, item.step))
            axis += 1
        return tuple(index)


def _bit(mask: tuple[int, ...], index: int) -> bool:
    return index < len(mask) and mask[index] != 0


def _check_index(index: Dim | None, extent: Dim, axis: int) -> None:
    """Require a known index to be inside an axis."""
    high = bounds(extent)[1]
    if isinstance(index, int) and high is not None and not -high <= index < high:
        message = f"index {index} is outside axis {axis} of {extent} elements"
        raise ShapeError(message, expected=f"{-high}..{high - 1}", actual=index, rule="index-range")


def _item_value(value: tuple[Dim, ...], items: Sequence[_AxisSlice]) -> tuple[Dim, ...] | None:
    """Slice a list."""
    for item in items:
        if item.effect == "shrink":
            index = item.begin
            return (value[index],) if isinstance(index, int) else (ANY,)
        if item.effect == "slice":
            return _slice_value(value, item.begin, item.end, item.step)
    return value
