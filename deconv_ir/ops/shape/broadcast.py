"""OpenVINO Broadcast-1, Broadcast-3 and Tile-1: repeated arrays."""

from __future__ import annotations

import enum
import itertools

from deconv_ir.errors import ShapeError
from deconv_ir.ir.boxes import Boxes, LayerTile, box_shape, sole
from deconv_ir.ir.geometry import Dim
from deconv_ir.ir.operation import Arrays, Context, Infos, Operation, Sharing, TensorInfo
from deconv_ir.ir.record import field
from deconv_ir.ir.shapes import (
    Shape,
    element_count,
    format_shape,
    intersect_dims,
    is_static,
    static,
)
from deconv_ir.ops.base import attribute, choice, choice_of, operation
from deconv_ir.ops.checks import (
    VALUE_LIMIT,
    axis_count,
    check_integers,
    check_least,
    check_lists,
    integers,
    known_integers,
    product,
    shape_misfit,
    unknown_shape,
)
from deconv_ir.ops.elementwise.broadcasting import BroadcastRule, broadcast_shapes
from deconv_ir.ops.numeric import np
from deconv_ir.ops.tile_rules import wrapped_tile
from deconv_ir.ops.values import as_dims, unknown_dims


class BroadcastMode(enum.Enum):
    """The mapping of the axes of the data to those of the output."""

    NUMPY = "numpy"
    EXPLICIT = "explicit"
    BIDIRECTIONAL = "bidirectional"


class Spread(Operation):
    """The data with inserted axes of extent 1, repeated to fill a shape."""

    sharing = Sharing.PART
    checks_values = False

    spread: tuple[int, ...] = field()
    shape: tuple[int, ...] = field()

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        return (np.broadcast_to(inputs[0].reshape(self.spread), self.shape),)


class _Broadcast(Operation):
    """The data repeated to fill a shape."""

    sharing = Sharing.PART

    mode: BroadcastMode = BroadcastMode.NUMPY

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        data, target = inputs[:2]
        mode = self.mode
        if mode is not BroadcastMode.EXPLICIT:
            # OpenVINO writes a third input for version 1 in any mode.
            inputs = inputs[:2]
        check_lists(inputs[1:], self.inputs[1:], 1)
        if mode is BroadcastMode.EXPLICIT and len(inputs) < 3:
            message = "mode explicit needs the input axes_mapping"
            raise ShapeError(message, attribute="mode", actual=len(inputs), rule="input-count")
        if target.value is None:
            shape = unknown_shape(target)
            if mode is BroadcastMode.BIDIRECTIONAL:
                shape = (
                    None
                    if data.shape is None
                    else broadcast_shapes(data.shape, shape, BroadcastRule.NUMPY)
                )
            return (TensorInfo(shape, data.element_type),)
        mapping = known_integers(inputs[2]) if len(inputs) == 3 else None
        shape = self.resolve(data.shape, as_dims(target.value), mapping)
        value = None
        if data.value is not None and len(data.value) == 1 and is_static(shape):
            count = element_count(static(shape))
            value = data.value * count if count <= VALUE_LIMIT else None
        elif data.value is not None and shape == data.shape:
            value = data.value
        return (TensorInfo(shape, data.element_type, value),)

    def resolve(
        self, data: Shape, target: tuple[Dim, ...], mapping: tuple[int, ...] | None
    ) -> Shape:
        """Check that the data can fill the target, and return the shape of the output."""
        check_least(target, "target_shape", 0, "broadcast")
        mode = self.mode
        if data is None:
            return None if mode is BroadcastMode.BIDIRECTIONAL else target
        if mode is BroadcastMode.BIDIRECTIONAL:
            return broadcast_shapes(data, target, BroadcastRule.NUMPY)
        if mode is BroadcastMode.NUMPY:
            first = len(target) - len(data)
            if first < 0:
                raise self._misfit(data, target)
            mapping = tuple(range(first, len(target)))
        elif mapping is None:
            return target
        self._check_mapping(data, target, mapping)
        return target

    def _check_mapping(
        self, data: tuple[Dim, ...], target: tuple[Dim, ...], mapping: tuple[int, ...]
    ) -> None:
        if (
            len(mapping) != len(data)
            or any(not 0 <= axis < len(target) for axis in mapping)
            or any(a >= b for a, b in itertools.pairwise(mapping))
        ):
            raise ShapeError(
                f"axes_mapping {format_shape(mapping)} must name, in rising order, an axis of "
                f"target_shape {format_shape(target)} for each of data {format_shape(data)}",
                expected=len(data),
                actual=format_shape(mapping),
                rule="broadcast",
            )
        for dim, axis in zip(data, mapping, strict=True):
            wanted = target[axis]
            # Whether it is 1 is asked last: a symbolic size then stands for 1.
            if dim != 1 and intersect_dims(dim, wanted) is None and intersect_dims(dim, 1) is None:
                raise self._misfit(data, target)

    def _misfit(self, data: Shape, target: Shape) -> ShapeError:
        mode = f" (mode={self.mode.value})"
        return shape_misfit("broadcast", "data", data, "cannot fill target_shape", target, mode)

    def explain(self, inputs: Infos, context: Context, output: int, axis: int) -> str | None:
        value = inputs[1].value
        wanted = "a shape that is not known" if value is None else format_shape(value)
        return f"data {format_shape(inputs[0].shape)} broadcast to {wanted}"

    def tile(self, boxes: Boxes, inputs: Infos, outputs: Infos, context: Context) -> LayerTile:
        box, data = sole(boxes), static(inputs[0].shape)
        if self.mode is not BroadcastMode.EXPLICIT:
            axes = tuple(range(len(box) - len(data), len(box)))
        elif (mapping := known_integers(inputs[2])) is not None:
            axes = mapping
        else:
            return super().tile(boxes, inputs, outputs, context)
        spans = tuple((0, 1) if n == 1 else box[a] for a, n in zip(axes, data, strict=True))
        spread = [1] * len(box)
        for axis, (start, stop) in zip(axes, spans, strict=True):
            spread[axis] = stop - start
        part = Spread(spread=tuple(spread), shape=box_shape(box))
        return LayerTile((spans, *(None,) * (len(inputs) - 1)), part)

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        """Repeat the data (a view)."""
        data, target = inputs[:2]
        explicit = self.mode is BroadcastMode.EXPLICIT
        mapping = integers(inputs[2]) if explicit else None
        shape = static(self.resolve(data.shape, integers(target), mapping))
        if mapping is not None:
            spread = [1] * len(shape)
            for axis, extent in zip(mapping, data.shape, strict=True):
                spread[axis] = extent
            data = data.reshape(spread)
        return (np.broadcast_to(data, shape),)


_MODES_1 = {
    "numpy": BroadcastMode.NUMPY,
    "explicit": BroadcastMode.EXPLICIT,
    # OpenVINO's spelling of `explicit` in version 1.
    "none": BroadcastMode.EXPLICIT,
}


@operation(
    "Broadcast-1(data, target_shape, axes_mapping?)",
    "f32[3,1], i64[3]{2,3,4} -> f32[2,3,4]",
    "f32[3], i64[3]{2,3,4}, i64[1]{1} -> f32[2,3,4] | mode=explicit",
)
class Broadcast1(_Broadcast):
    """The data repeated to fill a shape."""

    mode: BroadcastMode = attribute(choice_of(_MODES_1), BroadcastMode.NUMPY)


@operation(
    "Broadcast-3(data, target_shape, axes_mapping?)",
    "f32[3,1], i64[3]{2,1,4} -> f32[2,3,4] | mode=bidirectional",
)
class Broadcast3(_Broadcast):
    """The data repeated to fill a shape."""

    mode: BroadcastMode = attribute(
        choice(BroadcastMode, none=BroadcastMode.EXPLICIT), BroadcastMode.NUMPY
    )


@operation(
    "Tile-1(data, repeats)",
    "f32[2,3], i64[3]{2,1,2} -> f32[2,2,6]",
    "f32[2,3], i64[1]{2} -> f32[2,6]",
)
class Tile(Operation):
    """The data repeated along its axes."""

    formula = "data {shape[data]} repeated {value[repeats]} times"

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        data, repeats = inputs
        check_integers(repeats, "repeats", 0, 1)
        count = axis_count(repeats)
        if data.shape is None or count is None:
            return (TensorInfo(None, data.element_type),)
        rank = max(len(data.shape), count)
        if repeats.value is None:
            return (TensorInfo(unknown_dims(rank), data.element_type),)
        dims = (1,) * (rank - len(data.shape)) + data.shape
        # A negative repeat is treated as 0, as in OpenVINO.
        times = (1,) * (rank - count) + tuple(
            max(0, r) if isinstance(r, int) else r for r in as_dims(repeats.value)
        )
        shape = tuple(map(product, dims, times))
        value = None
        if data.value is not None and rank == 1 and isinstance(times[0], int):
            repeated = data.value * times[0] if len(data.value) * times[0] <= VALUE_LIMIT else None
            value = repeated
        return (TensorInfo(shape, data.element_type, value),)

    def tile(self, boxes: Boxes, inputs: Infos, outputs: Infos, context: Context) -> LayerTile:
        box = sole(boxes)
        return wrapped_tile(box, inputs, (0,) * len(box))

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        data, repeats = inputs[0], [max(0, r) for r in integers(inputs[1])]
        rank = max(data.ndim, len(repeats))
        shape = [1] * (rank - data.ndim) + list(data.shape)
        repeats = [1] * (rank - len(repeats)) + repeats
        # NumPy's tile needs an array for each axis.
        found = np.empty([r * dim for r, dim in zip(repeats, shape, strict=True)], data.dtype)
        axes = [(r, dim) if r > 1 else (dim,) for r, dim in zip(repeats, shape, strict=True)]
        if found.size:
            split = found.reshape([extent for axis in axes for extent in axis])
            split[...] = data.reshape(
                [n for axis in axes for n in (1,) * (len(axis) - 1) + axis[-1:]]
            )
        return (found,)
