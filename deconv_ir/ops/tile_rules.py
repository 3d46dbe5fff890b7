"""Rules of tiles that operations share: boxes of broadcast inputs, parts of arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from deconv_ir.ir.boxes import (
    Box,
    Boxes,
    LayerTile,
    Span,
    box_shape,
    hull,
    inside,
    nearest_element,
    partial_axes,
    sole,
    whole_box,
)
from deconv_ir.ir.dtypes import Array
from deconv_ir.ir.operation import Arrays, Call, Context, Infos, Operation, Sharing, TensorInfo
from deconv_ir.ir.record import field
from deconv_ir.ir.shapes import element_count, static


class FixedArrays(tuple[Any, ...]):
    """Immutable arrays that are compared by their elements."""

    __slots__ = ()

    def __new__(cls, *arrays: Array) -> FixedArrays:
        return super().__new__(cls, arrays)

    def __getnewargs__(self) -> tuple[Any, ...]:
        return tuple(self)

    def _key(self) -> tuple[Any, ...]:
        return tuple((array.shape, array.dtype.str, array.tobytes()) for array in self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FixedArrays) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())


class StaticSlices(Operation):
    """Parts of an array, one for each output, given by slices and new axes."""

    sharing = Sharing.PART
    checks_values = False

    index: tuple[tuple[tuple[int | None, int | None, int] | int | None, ...], ...] = field()
    """For each output, for each axis: start, stop and step; an index; None: a new axis."""

    def bind(self, inputs: Infos, outputs: Infos, context: Context) -> Call:
        indices = self.indices()
        return lambda arrays, out: [arrays[0][index] for index in indices]

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        return [inputs[0][index] for index in self.indices()]

    def indices(self) -> list[tuple[Any, ...]]:
        """Return the indices of the parts."""
        return [
            tuple(slice(*one) if isinstance(one, tuple) else one for one in index)
            for index in self.index
        ]


class Regrouped(Operation):
    """A slice of an array whose axes are merged in runs, then reshaped."""

    sharing = Sharing.PART
    checks_values = False

    flat: tuple[int, ...] = field()
    """Extents of the runs of axes."""
    spans: tuple[Span, ...] = field()
    """The slice of each run that is kept."""
    shape: tuple[int, ...] = field()

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        runs = inputs[0].reshape(self.flat)
        return (runs[tuple(slice(*span) for span in self.spans)].reshape(self.shape),)


class Crop(Operation):
    """A copy of a box of an array."""

    checks_values = False

    box: tuple[Span, ...] = field()

    def accepts_out(self, inputs: Infos, output: TensorInfo) -> bool:
        return True

    def execute_into(self, inputs: Arrays, context: Context, out: Array) -> None:
        out[...] = inputs[0][tuple(slice(*span) for span in self.box)]

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        return (inputs[0][tuple(slice(*span) for span in self.box)].copy(),)


class Wrapped(Operation):
    """A box of an array that wraps around: the first element follows the last."""

    checks_values = False

    places: tuple[tuple[int, int], ...] = field()
    """For each axis of the output: first index and number of elements."""

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        import numpy as np

        data = inputs[0].reshape((1,) * (len(self.places) - inputs[0].ndim) + inputs[0].shape)
        for axis, (first, count) in enumerate(self.places):
            if (first, count) != (0, data.shape[axis]):
                data = np.take(data, range(first, first + count), axis, mode="wrap")
        return (data.copy() if data.base is not None else data,)


class Cropped(Operation):
    """An operation on its zero-padded input, and the box of its output that is kept."""

    checks_values = False

    inner: Operation = field()
    pads: tuple[tuple[int, int], ...] = field()
    box: tuple[Span, ...] = field()

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        import numpy as np

        data = np.pad(inputs[0], self.pads) if any(map(any, self.pads)) else inputs[0]
        (found,) = self.inner.execute((data,), context)
        return (found[tuple(slice(*span) for span in self.box)],)

    def scratch(self, inputs: Infos, outputs: Infos, context: Context) -> int:
        """Estimate the padded input and the full output."""
        element_type = outputs[0].element_type
        width = 8 if element_type is None else element_type.numpy().itemsize
        shape = static(inputs[0].shape)
        padded = [extent + sum(pads) for extent, pads in zip(shape, self.pads, strict=True)]
        return 2 * element_count(padded) * int(width)


def broadcast_box(box: Box, shape: Sequence[int]) -> Box:
    """Return the box of an input that is broadcast, by NumPy's rule, to an output.

    Examples
    --------
    >>> from deconv_ir.ops.tile_rules import broadcast_box
    >>> broadcast_box(((0, 1), (2, 5), (4, 8)), (1, 16))
    ((0, 1), (4, 8))
    """
    spans = box[len(box) - len(shape) :]
    return tuple((0, 1) if extent == 1 else span for span, extent in zip(spans, shape, strict=True))


def elementwise_tile(
    operation: Operation,
    boxes: Boxes,
    inputs: Infos,
    aligned: Sequence[tuple[int, ...]] | None = None,
) -> LayerTile:
    """Return the tile of an operation that works element by element, inputs broadcast.

    `aligned` has the shapes of the inputs, with ones inserted so that NumPy broadcasts them as the
    operation does.
    """
    box = sole(boxes)
    shapes = [static(info.shape) for info in inputs]
    found = []
    for own, shape in zip(shapes, aligned or shapes, strict=True):
        if all(extent == 1 for extent in own):
            found.append(whole_box(own))
            continue
        starts = range(len(shape))
        start = next(i for i in starts if own[: len(shape) - i] == shape[i : i + len(own)])
        spans = broadcast_box(box, shape)[start : start + len(own)]
        found.append(spans + ((0, 1),) * (len(own) - len(spans)))
    return LayerTile(tuple(found), operation)


def along_axes(
    operation: Operation,
    boxes: Boxes,
    axes: Sequence[int],
    inputs: Infos,
    outputs: Infos,
) -> LayerTile:
    """Return the tile of an operation that needs some axes of its first input whole.

    The output has the shape of that input; further inputs are needed whole.
    """
    box = sole(boxes)
    data = static(inputs[0].shape)
    spans = tuple(
        (0, e) if a in axes else span for a, (span, e) in enumerate(zip(box, data, strict=True))
    )
    others = tuple(whole_box(static(info.shape)) for info in inputs[1:])
    partial = partial_axes(box, static(outputs[0].shape))
    blocked = tuple(sorted(axes)) if set(partial).intersection(axes) else ()
    return LayerTile((spans, *others), operation, blocked)


def parts_tile(boxes: Boxes, count: int) -> LayerTile:
    """Return the tile of an operation whose outputs are boxes of its first input."""
    outer = hull([box for box in boxes if box is not None])
    index = tuple(
        () if box is None else tuple((s.start, s.stop, 1) for s in inside(box, outer))
        for box in boxes
    )
    return LayerTile((outer, *(None,) * (count - 1)), StaticSlices(index=index))


def index_tile(
    index: Sequence[slice | int | None], shape: Sequence[int], box: Box, count: int
) -> LayerTile:
    """Return the tile of an operation that indexes the first of its `count` inputs.

    `index` has a slice or a number for the axes of the data; None: a new axis of the output.
    """
    spans: list[Span] = []
    kept: list[tuple[int | None, int | None, int] | int | None] = []
    wanted = iter(box)
    extents = iter(shape)
    for one in index:
        if one is None:
            next(wanted)
            kept.append(None)
            continue
        extent = next(extents)
        if isinstance(one, int):
            spans.append((one % extent, one % extent + 1))
            kept.append(0)
            continue
        start, _, step = one.indices(extent)
        first, stop = next(wanted)
        ends = (start + step * first, start + step * (stop - 1))
        if first < stop:
            spans.append((min(ends), max(ends) + 1))
            kept.append((None, None, step))
        else:
            spans.append(nearest_element((start, start), extent))
            kept.append((0, 0, 1))
    return LayerTile((tuple(spans), *(None,) * (count - 1)), StaticSlices(index=(tuple(kept),)))


def reshape_tile(boxes: Boxes, inputs: Infos, outputs: Infos) -> LayerTile:
    """Return the tile of an operation that gives its first input another shape.

    Axes that are unchanged may be partial; axes that are merged with others are needed whole.
    """
    box = sole(boxes)
    data, output = static(inputs[0].shape), static(outputs[0].shape)
    spans, computed = list(whole_box(data)), list(whole_box(output))
    flat, kept = [], []
    for sources, axes in axis_runs(data, output):
        first, stop = 0, element_count([output[axis] for axis in axes])
        if sources and axes:
            # The first axis of an output's run may be partial: a range of elements.
            step = element_count([output[axis] for axis in axes[1:]])
            computed[axes[0]] = box[axes[0]]
            first, stop = (step * index for index in box[axes[0]])
        extents = [data[axis] for axis in sources]
        needed, before = _around(first, stop, extents)
        for axis, span in zip(sources, needed, strict=True):
            spans[axis] = span
        flat.append(element_count(box_shape(needed)))
        kept.append((first - before, stop - before))
    blocked = tuple(a for a, span in enumerate(box) if span != computed[a])
    operation = Regrouped(
        flat=tuple(flat), spans=tuple(kept), shape=tuple(stop - start for start, stop in computed)
    )
    return LayerTile((tuple(spans), *(None,) * (len(inputs) - 1)), operation, blocked)


def _around(first: int, stop: int, extents: Sequence[int]) -> tuple[Box, int]:
    """Return the smallest box around a range of elements, and the offset of the range in it."""
    spans = list(whole_box(extents))
    before = 0
    for axis, extent in enumerate(extents):
        inner = element_count(extents[axis + 1 :])
        if not inner or not extent:
            break
        low, high = (first - before) // inner, -(-(stop - before) // inner)
        spans[axis] = low, high
        before += low * inner
        if high - low != 1:  # the range crosses from one row to the next
            break
    return tuple(spans), before


def wrapped_tile(box: Box, inputs: Infos, shifts: Sequence[int]) -> LayerTile:
    """Return the tile of an operation that repeats or rotates its first input.

    Element i of an axis is element i - shift of the input, modulo its extent.
    """
    data = static(inputs[0].shape)
    extents = (1,) * (len(box) - len(data)) + data
    spans: list[Span] = []
    places = []
    for (start, stop), extent, shift in zip(box, extents, shifts, strict=True):
        first, count = (start - shift) % extent if extent else 0, stop - start
        fits = first + count <= extent
        spans.append((first, first + count) if fits else (0, extent))
        places.append((0 if fits else first, count))
    operation = Wrapped(places=tuple(places))
    others = (None,) * (len(inputs) - 1)
    return LayerTile((tuple(spans[len(box) - len(data) :]), *others), operation)


Run = tuple[tuple[int, ...], tuple[int, ...]]


def axis_runs(data: Sequence[int], output: Sequence[int]) -> list[Run]:
    """Return the shortest runs of axes of two shapes that have equally many elements each.

    Examples
    --------
    >>> from deconv_ir.ops.tile_rules import axis_runs
    >>> axis_runs((2, 12, 8, 8), (2, 3, 4, 1, 64))
    [((0,), (0,)), ((1,), (1, 2)), ((), (3,)), ((2, 3), (4,))]
    """
    if 0 in data or 0 in output:
        return [(tuple(range(len(data))), tuple(range(len(output))))]
    found: list[Run] = []
    i = j = 0
    while i < len(data) or j < len(output):
        if i < len(data) and data[i] == 1:
            found.append(((i,), ()))
            i += 1
        elif j < len(output) and output[j] == 1:
            found.append(((), (j,)))
            j += 1
        else:
            start = i, j
            left, right = data[i], output[j]
            i, j = i + 1, j + 1
            while left != right:
                if left < right:
                    left, i = left * data[i], i + 1
                else:
                    right, j = right * output[j], j + 1
            found.append((tuple(range(start[0], i)), tuple(range(start[1], j))))
    return found
