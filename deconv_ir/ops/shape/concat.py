"""OpenVINO Concat-1, Split-1 and VariadicSplit-1: arrays joined and split along an axis."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence

from deconv_ir.errors import ShapeError
from deconv_ir.ir.boxes import Box, Boxes, LayerTile, sole
from deconv_ir.ir.dtypes import Array
from deconv_ir.ir.geometry import UNKNOWN, Dim, bounds, interval
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
from deconv_ir.ir.quantization import FOUR, fours
from deconv_ir.ir.shapes import Shape, element_count, format_shape, intersect_dims, static
from deconv_ir.ops.base import attribute, integer, operation
from deconv_ir.ops.binding import Lists, OfLists, cut_along
from deconv_ir.ops.checks import (
    VALUE_LIMIT,
    add,
    check_type,
    known_integer,
    list_length,
    merged_type,
    normalize_axis,
    only,
    shape_misfit,
)
from deconv_ir.ops.numeric import np
from deconv_ir.ops.tile_rules import StaticSlices, parts_tile
from deconv_ir.ops.values import ANY, unknown_dims

MAX_PARTS = 1 << 16
"""Maximum number of splits: each is an output with a declared port."""


@operation("Concat-1(data...)", "f32[1,2,4], f32[1,3,4], f32[1,1,4] -> f32[1,6,4] | axis=-2")
class Concat(Operation):
    """Arrays joined along an axis."""

    axis: int = attribute(integer())

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        if not inputs:
            raise ShapeError(
                "Concat takes at least one input", expected=">= 1", actual=0, rule="input-count"
            )
        element_type = merged_type(inputs, [f"input {i}" for i in range(len(inputs))])
        shapes = [info.shape for info in inputs]
        known = [shape for shape in shapes if shape is not None]
        if not known:
            return (TensorInfo(None, element_type),)
        rank = len(known[0])
        axis = normalize_axis(self.axis, rank)
        dims = list(known[0])
        for i, shape in enumerate(shapes):
            if shape is None:
                continue
            merged = [
                x if k == axis else intersect_dims(x, y)
                for k, (x, y) in enumerate(zip(dims, shape, strict=False))
            ]
            if len(shape) != rank or None in merged:
                beside, there = f" except on axis {axis}", tuple(dims)
                raise shape_misfit("concat", f"input {i}", shape, "does not fit", there, beside)
            dims = [d for d in merged if d is not None]
        dims[axis] = add(*(UNKNOWN if shape is None else shape[axis] for shape in shapes))
        return (
            TensorInfo(tuple(dims), element_type, self._value(inputs, rank), _reals(inputs, rank)),
        )

    @staticmethod
    def _value(inputs: Infos, rank: int) -> tuple[Dim, ...] | None:
        """Join lists; unknown elements of a short list are `ANY`."""
        if rank != 1 or all(info.value is None for info in inputs):
            return None
        joined: list[Dim] = []
        for info in inputs:
            length = list_length(info)
            if length is None or len(joined) + length > VALUE_LIMIT:
                return None
            joined += (ANY,) * length if info.value is None else info.value
        return tuple(joined)

    def explain(self, inputs: Infos, context: Context, output: int, axis: int) -> str | None:
        ranks = [len(info.shape) for info in inputs if info.shape is not None]
        if not ranks or normalize_axis(self.axis, ranks[0]) != axis:
            return f"the same dim in all inputs: {', '.join(format_shape(i.shape) for i in inputs)}"
        parts = ["?" if info.shape is None else str(info.shape[axis]) for info in inputs]
        return f"sum of the inputs along axis {axis}: {' + '.join(parts)}"

    def plan(self, inputs: Infos, outputs: Infos, context: Context) -> LayerPlan:
        return _ConcatPlan(normalize_axis(self.axis, len(static(outputs[0].shape))))

    def accepts_out(self, inputs: Infos, output: TensorInfo) -> bool:
        return output.element_type is not None and output.element_type.kind != "string"

    def on_fours(self, inputs: Infos, outputs: Infos, element: ElementOf) -> Operation | None:
        shapes = [info.shape for info in inputs]
        if any(shape is None for shape in shapes):
            return None
        known = [shape for shape in shapes if shape is not None]
        if normalize_axis(self.axis, len(known[0])) != 1:
            return self
        # Channels that are not known are an Interval.
        whole = (isinstance(shape[1], int) and shape[1] % FOUR == 0 for shape in known)
        return self if all(whole) else None

    def distances(self, inputs: Infos, output: TensorInfo) -> tuple[int, ...]:
        shape = static(output.shape)
        axis = normalize_axis(self.axis, len(shape))
        if element_count(shape[:axis]) != 1 or output.element_type is None:
            return ()
        width = output.element_type.numpy().itemsize
        sizes = (element_count(static(info.shape)) * width for info in inputs)
        return tuple(itertools.accumulate(sizes, initial=0))[:-1]

    def execute_into(self, inputs: Arrays, context: Context, out: Array) -> None:
        _ConcatPlan(normalize_axis(self.axis, out.ndim)).run(inputs, out)

    def tile(self, boxes: Boxes, inputs: Infos, outputs: Infos, context: Context) -> LayerTile:
        box = sole(boxes)
        axis, start = normalize_axis(self.axis, len(box)), 0
        found: list[Box | None] = []
        for info in inputs:
            extent = static(info.shape)[axis]
            low, high = max(box[axis][0] - start, 0), min(box[axis][1] - start, extent)
            span = (low, high)
            found.append((*box[:axis], span, *box[axis + 1 :]) if low < high else None)
            start += extent
        return LayerTile(tuple(found), self)

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        return (np.concatenate(inputs, normalize_axis(self.axis, inputs[0].ndim)),)


class _ConcatPlan(LayerPlan):
    def __init__(self, axis: int) -> None:
        self._axis = axis
        super().__init__(self._join)

    def _join(self, inputs: Arrays, out: Array | None) -> Arrays:
        if out is None:
            return (np.concatenate(inputs, self._axis),)
        self.bind(inputs, out)()
        return (out,)

    def bind(self, inputs: Arrays, out: Array) -> Callable[[], object]:
        """Return a call that copies inputs unless they lie in `out`, transposed ones in blocks."""
        from deconv_ir.kernels.copies import bind_copy

        copies, start, before = [], 0, (slice(None),) * self._axis
        for array in inputs:
            end = start + array.shape[self._axis]
            part = out[(*before, slice(start, end))]
            if array.ctypes.data != part.ctypes.data:
                copies.append(bind_copy(array, part))
            start = end
        if len(copies) == len(inputs) and all(array.flags.c_contiguous for array in inputs):
            return functools.partial(np.concatenate, inputs, self._axis, out)

        def copy() -> None:
            for call in copies:
                call()

        return copies[0] if len(copies) == 1 else copy


def _reals(inputs: Infos, rank: int) -> tuple[float, ...] | None:
    if rank != 1:
        return None
    joined: list[float] = []
    for info in inputs:
        if info.reals is None:
            return None
        joined += info.reals
    return tuple(joined) if len(joined) <= VALUE_LIMIT else None


class _AnySplit(OfLists):
    """Parts of an array along an axis."""

    sharing = Sharing.PART

    def on_fours(self, inputs: Infos, outputs: Infos, element: ElementOf) -> Operation | None:
        shape, axis = inputs[0].shape, known_integer(inputs[1], "axis")
        if shape is None or axis is None:
            return None
        if normalize_axis(axis, len(shape)) != 1:
            return self
        parts = [None if info.shape is None else info.shape[1] for info in outputs]
        lengths = [part for part in parts if isinstance(part, int)]
        if len(lengths) < len(parts):
            return None
        ends = list(itertools.accumulate(lengths, initial=0))
        found = [fours(*span, ends[-1]) for span in itertools.pairwise(ends)]
        every = (None, None, 1)
        spans = tuple((every, (*span, 1)) for span in found if span is not None)
        return StaticSlices(index=spans) if len(spans) == len(found) else None

    def bind_known(self, shape: tuple[int, ...], lists: Lists, outputs: Infos) -> Call:
        return cut_along(normalize_axis(lists[0][0], len(shape)), outputs)

    def tile_known(self, boxes: Boxes, inputs: Infos, outputs: Infos, lists: Lists) -> LayerTile:
        axis, start = normalize_axis(lists[0][0], len(static(inputs[0].shape))), 0
        found: list[Box | None] = []
        for box, info in zip(boxes, outputs, strict=True):
            if box is not None:
                span = (box[axis][0] + start, box[axis][1] + start)
                box = (*box[:axis], span, *box[axis + 1 :])
            found.append(box)
            start += static(info.shape)[axis]
        return parts_tile(found, len(inputs))


@operation(
    "Split-1(data, axis)",
    "f32[2,6], i64[]{1} -> f32[2,2], f32[2,2], f32[2,2] | num_splits=3",
)
class Split(_AnySplit):
    """Equal parts of an array along an axis."""

    formula = "data {shape[data]} in {self.num_splits} parts along axis {element[axis]}"

    num_splits: int = attribute(integer(1))

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        data, axis_info = inputs
        check_type(axis_info, "axis", "integer")
        axis = known_integer(axis_info, "axis")
        if self.num_splits > MAX_PARTS:
            raise ShapeError(
                f"num_splits is {self.num_splits}: more than {MAX_PARTS} parts are not supported",
                attribute="num_splits",
                expected=f"<= {MAX_PARTS}",
                actual=self.num_splits,
                rule="split",
            )
        if data.shape is None or axis is None:
            shape = None if data.shape is None else unknown_dims(len(data.shape))
            return (TensorInfo(shape, data.element_type),) * self.num_splits
        axis = normalize_axis(axis, len(data.shape))
        part = self._part(data.shape[axis])
        if part is None:
            raise ShapeError(
                f"axis {axis} of data {format_shape(data.shape)} is not a multiple of "
                f"num_splits {self.num_splits}",
                attribute="num_splits",
                expected=f"a divisor of {data.shape[axis]}",
                actual=self.num_splits,
                rule="split",
            )
        shape = _replace(data.shape, axis, part)
        values: list[tuple[Dim, ...] | None] = [None] * self.num_splits
        if data.value is not None and len(data.shape) == 1 and isinstance(part, int):
            values = [data.value[i * part : (i + 1) * part] for i in range(self.num_splits)]
        return tuple(TensorInfo(shape, data.element_type, value) for value in values)

    def _part(self, extent: Dim) -> Dim | None:
        if isinstance(extent, int):
            return None if extent % self.num_splits else extent // self.num_splits
        low, high = bounds(extent)
        return interval(-(-low // self.num_splits), high and high // self.num_splits)

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        """Split the array (views)."""
        axis = normalize_axis(int(only(inputs[1], "axis")), inputs[0].ndim)
        return tuple(np.split(inputs[0], self.num_splits, axis))


@operation(
    "VariadicSplit-1(data, axis, split_lengths)",
    "f32[2,6], i64[]{1}, i64[3]{1,-1,2} -> f32[2,1], f32[2,3], f32[2,2]",
)
class VariadicSplit(_AnySplit):
    """Parts of given lengths of an array along an axis.

    One length may be -1: what the others leave.
    """

    formula = "data {shape[data]} cut in lengths {value[split_lengths]}, part {output}"

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        data, axis_info, lengths = inputs
        check_type(axis_info, "axis", "integer")
        check_type(lengths, "split_lengths", "integer")
        axis = known_integer(axis_info, "axis")
        count = list_length(lengths)
        if count is None:
            message = "the number of outputs is not known: split_lengths is of unknown length"
            shown = format_shape(lengths.shape)
            raise ShapeError(message, expected="a static length", actual=shown, rule="split")
        if data.shape is None or axis is None:
            shape: Shape = None if data.shape is None else unknown_dims(len(data.shape))
            return (TensorInfo(shape, data.element_type),) * count
        axis = normalize_axis(axis, len(data.shape))
        if lengths.value is None:
            shape = _replace(data.shape, axis, UNKNOWN)
            return (TensorInfo(shape, data.element_type),) * count
        parts = self.resolve(data.shape[axis], lengths.value)
        values: list[tuple[Dim, ...] | None] = [None] * count
        if data.value is not None and len(data.shape) == 1:
            values = _cut(data.value, parts)
        return tuple(
            TensorInfo(_replace(data.shape, axis, part), data.element_type, value)
            for part, value in zip(parts, values, strict=True)
        )

    def resolve(self, extent: Dim, lengths: Sequence[Dim]) -> tuple[Dim, ...]:
        """Replace -1 by the rest, and check the sum."""
        text = format_shape(tuple(lengths))
        if any(isinstance(n, int) and n < -1 for n in lengths) or list(lengths).count(-1) > 1:
            message = f"split_lengths {text} must be 0 or greater, but for one -1"
            raise ShapeError(message, actual=text, rule="split")
        # An unknown element may be the -1.
        given = [n if isinstance(n, int) or n.min >= 0 else UNKNOWN for n in lengths if n != -1]
        total = add(0, *given)
        low, high = bounds(total)
        extent_low, extent_high = bounds(extent)
        may_have_rest = len(given) < len(lengths) or any(
            not isinstance(n, int) and n.min < 0 for n in lengths
        )
        if may_have_rest:
            misfit = extent_high is not None and low > extent_high
        else:
            misfit = intersect_dims(total, extent) is None
        if misfit:
            message = f"split_lengths {text} add up to {total}, the axis has {extent}"
            raise ShapeError(message, expected=extent, actual=total, rule="split")
        rest_low = 0 if high is None else max(0, extent_low - high)
        rest = interval(rest_low, None if extent_high is None else extent_high - low)
        parts = iter(given)
        return tuple(rest if n == -1 else next(parts) for n in lengths)

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        """Split the array (views)."""
        data = inputs[0]
        axis = normalize_axis(int(only(inputs[1], "axis")), data.ndim)
        parts = self.resolve(data.shape[axis], [int(n) for n in inputs[2].ravel()])
        ends = list(itertools.accumulate(p for p in parts if isinstance(p, int)))
        before = (slice(None),) * axis
        return tuple(
            data[(*before, slice(start, end))] for start, end in zip([0, *ends], ends, strict=False)
        )


def _cut(value: tuple[Dim, ...], parts: Sequence[Dim]) -> list[tuple[Dim, ...] | None]:
    """Split a list as far as the lengths are known."""
    found: list[tuple[Dim, ...] | None] = []
    at: int | None = 0
    for part in parts:
        if at is None or not isinstance(part, int):
            at = None
            found.append(None)
        else:
            found.append(value[at : at + part])
            at += part
    return found


def _replace(shape: tuple[Dim, ...], axis: int, dim: Dim) -> tuple[Dim, ...]:
    return (*shape[:axis], dim, *shape[axis + 1 :])
