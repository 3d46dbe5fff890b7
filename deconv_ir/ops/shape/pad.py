"""OpenVINO Pad-1 and Pad-12."""

from __future__ import annotations

import enum
import functools
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from deconv_ir.errors import ShapeError
from deconv_ir.ir.boxes import Boxes, LayerTile, nearest_element, whole_box
from deconv_ir.ir.dtypes import Array
from deconv_ir.ir.geometry import Dim, bounds, interval
from deconv_ir.ir.operation import Arrays, Call, Context, ElementOf, Infos, Operation, TensorInfo
from deconv_ir.ir.quantization import FOUR
from deconv_ir.ir.record import field
from deconv_ir.ir.shapes import element_count, static
from deconv_ir.ops.base import attribute, choice, operation
from deconv_ir.ops.binding import known_lists
from deconv_ir.ops.checks import (
    axis_count,
    check_integers,
    check_rank,
    integers,
    merged_type,
    misfit,
    only,
)
from deconv_ir.ops.elementwise.blocks import is_small
from deconv_ir.ops.numeric import np
from deconv_ir.ops.values import ANY, ends, unknown_dims, whole


class PadValues(enum.Enum):
    """The values of the new elements."""

    CONSTANT = "constant"
    EDGE = "edge"
    REFLECT = "reflect"
    SYMMETRIC = "symmetric"


@operation(
    "Pad-1(data, pads_begin, pads_end, pad_value?)",
    "f32[2,3], i64[2]{0,1}, i64[2]{2,1} -> f32[4,5] | pad_mode=constant",
    "f32[2,3], i64[2]{0,1}, i64[2]{2,1} -> f32[4,5] | pad_mode=edge",
)
class Pad1(Operation):
    """Elements added around an array."""

    scratch_ratios = (1.5, 1.5)
    crops: ClassVar[bool] = False
    """Whether pads may be negative."""

    pad_mode: PadValues = attribute(choice(PadValues))

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        data, begin, end = inputs[:3]
        element_type = merged_type([data, *inputs[3:]], ["data", "pad_value"])
        for info, name in ((begin, "pads_begin"), (end, "pads_end")):
            check_integers(info, name, 1)
            if data.shape is not None and axis_count(info) not in (None, len(data.shape)):
                rank = len(data.shape)
                must = f"have {rank} elements, one for each axis"
                raise misfit("pad", name, must, info.shape, rank)
        if len(inputs) > 3:
            check_rank(inputs[3], "pad_value", 0)
        if data.shape is None:
            lengths = [n for n in map(axis_count, (begin, end)) if n is not None]
            return (TensorInfo(unknown_dims(lengths[0]) if lengths else None, element_type),)
        unknown = (ANY,) * len(data.shape)
        dims = [
            self._dim(axis, *each)
            for axis, each in enumerate(
                zip(data.shape, begin.value or unknown, end.value or unknown, strict=True)
            )
        ]
        return (TensorInfo(tuple(dims), element_type),)

    def _dim(self, axis: int, dim: Dim, begin: Dim, end: Dim) -> Dim:
        """Add the pads of one axis, which must be valid."""
        for name, pad in (("pads_begin", begin), ("pads_end", end)):
            if isinstance(pad, int):
                self._check(axis, dim, name, pad)
        (begin_low, begin_high), (end_low, end_high) = ends(begin), ends(end)
        low, high = bounds(dim)
        least = max(0, low + begin_low + end_low)
        most = float("inf") if high is None else high + begin_high + end_high
        if most < 0:
            message = f"pads {begin} and {end} cut more of axis {axis} than its {dim} elements"
            raise ShapeError(
                message, expected=">= 0", actual=f"{dim} + {begin} + {end}", rule="pad"
            )
        return interval(whole(least), None if most == float("inf") else whole(most))

    def _check(self, axis: int, dim: Dim, name: str, pad: int) -> None:
        if pad < 0 and not self.crops:
            message = f"{name} must not be negative, found {pad} on axis {axis}"
            raise ShapeError(message, expected=">= 0", actual=pad, rule="pad")
        high = bounds(dim)[1]
        reach = {PadValues.REFLECT: -1, PadValues.SYMMETRIC: 0}.get(self.pad_mode)
        beyond = reach is not None and high is not None and pad > 0 and pad > high + reach
        if beyond or (self.pad_mode is PadValues.EDGE and pad > 0 and dim == 0):
            raise ShapeError(
                f"mode {self.pad_mode.value} cannot pad axis {axis} of {dim} elements by {pad}",
                attribute="pad_mode",
                expected=f"<= {dim}" if reach == 0 else f"< {dim}",
                actual=pad,
                rule="pad",
            )

    def explain(self, inputs: Infos, context: Context, output: int, axis: int) -> str | None:
        begin, end, shape = inputs[1].value, inputs[2].value, inputs[0].shape
        if shape is None or begin is None or end is None:
            return None
        return f"pads_begin + dim + pads_end = {begin[axis]} + {shape[axis]} + {end[axis]}"

    def bind(self, inputs: Infos, outputs: Infos, context: Context) -> Call:
        known = known_lists(inputs[1:3])
        shape = static(outputs[0].shape)
        if known is None or not is_small(element_count(shape)):
            return super().bind(inputs, outputs, context)
        pads = tuple(zip(*known, strict=True))
        data = static(inputs[0].shape)
        if self.pad_mode is PadValues.CONSTANT:
            return _bound_constant(inputs[0], shape, pads)
        taken = (_origins(self.pad_mode, x, b, e) for x, (b, e) in zip(data, pads, strict=True))
        index = np.ravel_multi_index(np.ix_(*taken), data)
        # With `clip`, NumPy does not copy `out`; all indices are valid.
        return lambda arrays, out: (arrays[0].reshape(-1).take(index, None, out, "clip"),)

    def on_fours(self, inputs: Infos, outputs: Infos, element: ElementOf) -> Operation | None:
        shape, pads = inputs[0].shape, known_lists(inputs[1:3])
        if shape is None or pads is None or len(shape) < 2:
            return None
        begin, end = (of_axes[1] for of_axes in pads)
        if begin or end:
            channels = shape[1]
            if self.pad_mode is not PadValues.CONSTANT or not isinstance(channels, int):
                return None
            if begin % FOUR or end % FOUR or (end and channels % FOUR):
                return None
            pads = [(one[0], one[1] // FOUR, *one[2:]) for one in pads]
        if self.pad_mode is not PadValues.CONSTANT:
            return self
        number = 0.0
        if len(inputs) > 3:
            if inputs[3].reals is None or len(inputs[3].reals) != 1:
                return None
            number = inputs[3].reals[0]
        value = element(number)
        return None if value is None else _PadWith(pads=tuple(zip(*pads, strict=True)), value=value)

    def scratch(self, inputs: Infos, outputs: Infos, context: Context) -> int:
        """Count copies of all axes if elements are removed from mirrored data, else of an edge."""
        known = known_lists(inputs[1:3])
        crops = known is None or any(pad < 0 for pads in known for pad in pads)
        most = super().scratch(inputs, outputs, context)
        return most if crops and self.pad_mode is not PadValues.CONSTANT else most // 10

    def accepts_out(self, inputs: Infos, output: TensorInfo) -> bool:
        return output.element_type is not None and output.element_type.kind != "string"

    def tile(self, boxes: Boxes, inputs: Infos, outputs: Infos, context: Context) -> LayerTile:
        (box,), known = boxes, known_lists(inputs[1:3])
        if box is None or known is None:
            return super().tile(boxes, inputs, outputs, context)
        data = static(inputs[0].shape)
        spans, index = [], []
        for extent, begin, end, (start, stop) in zip(data, *known, box, strict=True):
            if self.pad_mode is PadValues.CONSTANT:
                origins = np.arange(start - begin, stop - begin)
            else:
                origins = _origins(self.pad_mode, extent, begin, end)[start:stop]
            there = origins[(origins >= 0) & (origins < extent)]
            span = nearest_element((start - begin, stop - begin), extent)
            if there.size:
                span = int(there.min()), int(there.max()) + 1
            origins = np.where((origins >= 0) & (origins < extent), origins - span[0], -1)
            spans.append(span)
            index.append(tuple(map(int, origins)))
        others = tuple(whole_box(static(info.shape)) for info in inputs[3:])
        operation = PadTile(index=tuple(index))
        return LayerTile((tuple(spans), None, None, *others), operation)

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        pads = zip(inputs[0].shape, integers(inputs[1]), integers(inputs[2]), strict=True)
        # Invalid pads, which are checked below, may give a negative extent.
        shape = [max(0, dim + begin + end) for dim, begin, end in pads]
        out = np.empty(shape, inputs[0].dtype)
        self.execute_into(inputs, context, out)
        return (out,)

    def execute_into(self, inputs: Arrays, context: Context, out: Array) -> None:
        data = inputs[0]
        pads = tuple(zip(integers(inputs[1]), integers(inputs[2]), strict=True))
        _check_pads(self, data.shape, pads)
        if self.pad_mode is PadValues.CONSTANT:
            value = only(inputs[3], "pad_value") if len(inputs) > 3 else data.dtype.type(0)
            kept, target = _kept(data.shape, out.shape, pads)
            _surround(data[kept], target, out, lambda axis, begins, side: value)
        elif any(pad < 0 for pair in pads for pad in pair):
            for axis, (begin, end) in enumerate(pads):
                origins = _origins(self.pad_mode, data.shape[axis], begin, end)
                last = axis == data.ndim - 1
                data = np.take(data, origins, axis, out if last else None, "clip")
        else:
            _, target = _kept(data.shape, out.shape, pads)
            _surround(data, target, out, lambda *at: _mirrored(self.pad_mode, target, *at))


class _PadWith(Operation):
    """Elements around an array, all with one value, or removed by negative pads."""

    checks_values = False

    pads: tuple[tuple[int, int], ...] = field()
    value: int = field()

    def accepts_out(self, inputs: Infos, output: TensorInfo) -> bool:
        return True

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        pairs = zip(inputs[0].shape, self.pads, strict=True)
        out = np.empty([dim + begin + end for dim, (begin, end) in pairs], inputs[0].dtype)
        self.execute_into(inputs, context, out)
        return (out,)

    def execute_into(self, inputs: Arrays, context: Context, out: Array) -> None:
        kept, target = _kept(inputs[0].shape, out.shape, self.pads)
        _surround(inputs[0][kept], target, out, lambda axis, begins, side: self.value)


class PadTile(Operation):
    """A box of a padded array: for each axis, the element of the data; -1: the pad value."""

    checks_values = False

    index: tuple[tuple[int, ...], ...] = field()

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        data = inputs[0]
        value = only(inputs[1], "pad_value") if len(inputs) > 1 else data.dtype.type(0)
        result = np.full([len(row) for row in self.index], value, data.dtype)
        there = [[i for i, origin in enumerate(row) if origin >= 0] for row in self.index]
        if all(there):
            taken = [[origin for origin in row if origin >= 0] for row in self.index]
            result[np.ix_(*there)] = data[np.ix_(*taken)]
        return (result,)


@functools.lru_cache(maxsize=512)
def _check_pads(pad: Pad1, shape: tuple[int, ...], pads: tuple[tuple[int, int], ...]) -> None:
    """Require that the pads of an actual array are valid."""
    for axis, (dim, pair) in enumerate(zip(shape, pads, strict=True)):
        pad._dim(axis, dim, *pair)


def _origins(mode: PadValues, extent: int, begin: int, end: int) -> Any:
    """Return the index of the element of the data for each element of the output on an axis."""
    index = np.arange(-begin, extent + end)
    if mode is PadValues.EDGE:
        return np.clip(index, 0, extent - 1)
    turn = 1 if mode is PadValues.SYMMETRIC else 0
    index = np.where(index < 0, -index - turn, index)
    return np.where(index >= extent, 2 * (extent - 1) + turn - index, index)


Filling = Callable[[int, bool, slice], Any]
"""A function of an axis, whether the side is before the data, and the side's slice; returns the
contents of the side: a number, or a slice of the axis."""


def _surround(data: Array, target: tuple[slice, ...], out: Array, filling: Filling) -> None:
    """Copy an array, then fill the elements around it, axis by axis."""
    out[target] = data
    filled = list(target)
    for axis, (middle, extent) in enumerate(zip(target, out.shape, strict=True)):
        for begins, side in (True, slice(0, middle.start)), (False, slice(middle.stop, extent)):
            if side.start < side.stop:
                at, found = (*filled[:axis], side, *filled[axis + 1 :]), filling(axis, begins, side)
                if isinstance(found, slice):
                    found = out[(*filled[:axis], found, *filled[axis + 1 :])]
                out[at] = found
        filled[axis] = slice(0, extent)


def _mirrored(
    mode: PadValues,
    target: tuple[slice, ...],
    axis: int,
    begins: bool,
    side: slice,
) -> slice:
    """Return the elements that fill a side, in their order."""
    edge, inward = (target[axis].start, 1) if begins else (target[axis].stop - 1, -1)
    if mode is PadValues.EDGE:
        return slice(edge, edge + 1)
    near = edge if mode is PadValues.SYMMETRIC else edge + inward
    far = near + inward * (side.stop - side.start - 1)
    # The slice runs backwards: from the far end before the data, from the near end after it.
    first, last = (far, near) if begins else (near, far)
    return slice(first, last - 1 if last else None, -1)


def _kept(
    data: Sequence[int], shape: Sequence[int], pads: Sequence[tuple[int, int]]
) -> tuple[tuple[slice, ...], tuple[slice, ...]]:
    """Return the index of the elements that are kept, and that of their place in the output."""
    kept, target = [], []
    for dim, extent, (begin, _) in zip(data, shape, pads, strict=True):
        low, high = max(0, -begin), min(dim, extent - begin)
        kept.append(slice(low, max(low, high)))
        target.append(slice(low + begin, max(low, high) + begin))
    return tuple(kept), tuple(target)


def _bound_constant(
    data: TensorInfo, shape: tuple[int, ...], pads: Sequence[tuple[int, int]]
) -> Call:
    """Return a call that pads arrays of one shape with one value."""
    assert data.element_type is not None, "a layer is bound where it is known"
    dtype = data.element_type.numpy()
    kept, target = _kept(static(data.shape), shape, pads)

    def call(arrays: Arrays, out: Array | None) -> Arrays:
        result = np.empty(shape, dtype) if out is None else out
        result.fill(only(arrays[3], "pad_value") if len(arrays) > 3 else 0)
        result[target] = arrays[0][kept]
        return (result,)

    return call


@operation(
    "Pad-12(data, pads_begin, pads_end, pad_value?)",
    "f32[4,3], i64[2]{-1,2}, i64[2]{2,-1} -> f32[5,4] | pad_mode=reflect",
    "f32[4,3], i64[2]{-1,2}, i64[2]{2,-1}, f32[] -> f32[5,4] | pad_mode=constant",
)
class Pad12(Pad1):
    """Elements added around an array, or removed by negative pads."""

    crops = True
