"""OpenVINO Squeeze-1, Squeeze-15 and Unsqueeze-1: axes of extent 1 removed and inserted."""

from __future__ import annotations

from deconv_ir.errors import ShapeError
from deconv_ir.ir.boxes import Boxes, LayerTile
from deconv_ir.ir.geometry import Dim
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
from deconv_ir.ir.shapes import (
    Shape,
    format_shape,
    intersect_dims,
    is_static,
    is_symbolic,
    static,
)
from deconv_ir.ops.base import attribute, boolean, operation
from deconv_ir.ops.binding import Lists, OfLists, reshaped
from deconv_ir.ops.checks import (
    axis_count,
    check_integers,
    integers,
    known_integers,
    normalize_axis,
)
from deconv_ir.ops.tile_rules import StaticSlices, reshape_tile
from deconv_ir.ops.values import unknown_dims


@operation(
    "Squeeze-1(data, axes?)",
    "f32[1,3,1,2] -> f32[3,2]",
    "f32[1,3,1,2], i64[1]{-2} -> f32[1,3,2]",
)
class Squeeze1(OfLists):
    """Axes of extent 1 removed; default `axes`: all."""

    formula = "data {shape[data]} without axes of extent 1"
    sharing = Sharing.AXES

    allow_axis_skip: bool = False
    """Whether an axis of another extent is kept instead of being an error."""

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        data = inputs[0]
        axes: tuple[int, ...] | None = ()
        if len(inputs) > 1:
            check_integers(inputs[1], "axes", 0, 1)
            axes = known_integers(inputs[1])
        shape = self._shape(data.shape, axes, given=len(inputs) > 1)
        return (TensorInfo(shape, data.element_type, data.value, data.reals),)

    def _shape(self, shape: Shape, axes: tuple[int, ...] | None, *, given: bool) -> Shape:
        if shape is None or (given and axes is None):
            return None
        if not axes:
            # An empty list is the same as an absent one.
            return tuple(d for d in shape if d != 1) if is_static(shape) else self._open(shape)
        taken = {normalize_axis(axis, len(shape), "axes") for axis in axes}
        for axis in sorted(taken):
            if self.allow_axis_skip and is_symbolic(shape[axis]):
                return None
            if intersect_dims(shape[axis], 1) is None:
                if self.allow_axis_skip:
                    taken.discard(axis)
                    continue
                message = f"axis {axis} of {format_shape(shape)} is not 1"
                raise ShapeError(message, expected=1, actual=shape[axis], rule="squeeze")
            if self.allow_axis_skip and shape[axis] != 1:
                return None
        return tuple(d for axis, d in enumerate(shape) if axis not in taken)

    def on_fours(self, inputs: Infos, outputs: Infos, element: ElementOf) -> Operation | None:
        shape, axes = inputs[0].shape, known_integers(inputs[1]) if len(inputs) > 1 else ()
        if shape is None or axes is None or len(shape) < 2:
            return None
        if axes:
            return self if min(normalize_axis(a, len(shape), "axes") for a in axes) > 1 else None
        # An element may hold all channels.
        if not is_static(shape) or 1 in shape[:2]:
            return None
        return StaticSlices(index=(tuple(0 if d == 1 else (None, None, 1) for d in shape),))

    @staticmethod
    def _open(shape: tuple[Dim, ...]) -> Shape:
        """Squeeze every 1: the rank is known only if no unknown dim can be one."""
        if any(d != 1 and intersect_dims(d, 1) is not None for d in shape):
            return None
        return tuple(d for d in shape if d != 1)

    def bind_known(self, shape: tuple[int, ...], lists: Lists, outputs: Infos) -> Call:
        return reshaped(outputs[0])

    def tile(self, boxes: Boxes, inputs: Infos, outputs: Infos, context: Context) -> LayerTile:
        return reshape_tile(boxes, inputs, outputs)

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        """Remove the axes (a view)."""
        data = inputs[0]
        axes = integers(inputs[1]) if len(inputs) > 1 else ()
        shape = self._shape(data.shape, axes, given=len(inputs) > 1)
        return (data.reshape(static(shape)),)


@operation(
    "Squeeze-15(data, axes?)",
    "f32[1,3,1,2], i64[2]{0,1} -> f32[3,1,2] | allow_axis_skip=true",
)
class Squeeze15(Squeeze1):
    """Axes of extent 1 removed; default `axes`: all."""

    allow_axis_skip: bool = attribute(boolean(), False)


@operation("Unsqueeze-1(data, axes)", "f32[3,2], i64[2]{0,-1} -> f32[1,3,2,1]")
class Unsqueeze(OfLists):
    """Inserts axes of extent 1, at their positions in the output."""

    formula = "data {shape[data]} with axes {value[axes]} put in"
    sharing = Sharing.AXES

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        data, axes_info = inputs
        check_integers(axes_info, "axes", 0, 1)
        axes = known_integers(axes_info)
        shape: Shape = None
        if data.shape is not None and axes is not None:
            shape = self._shape(data.shape, axes)
        elif data.shape is not None:
            count = axis_count(axes_info)
            # Some of several axes may be equal.
            if count is not None and count < 2:
                shape = unknown_dims(len(data.shape) + count)
        return (TensorInfo(shape, data.element_type, data.value, data.reals),)

    @staticmethod
    def _shape(shape: tuple[Dim, ...], axes: tuple[int, ...]) -> tuple[Dim, ...]:
        # A repeated axis is inserted once, as in OpenVINO.
        rank = len(shape) + len(set(axes))
        taken = {normalize_axis(axis, rank, "axes") for axis in axes}
        if len(taken) < len(set(axes)):
            shown = format_shape(axes)
            raise ShapeError(f"axes {shown} has an axis twice", actual=shown, rule="axis")
        rest = iter(shape)
        return tuple(1 if axis in taken else next(rest) for axis in range(rank))

    def on_fours(self, inputs: Infos, outputs: Infos, element: ElementOf) -> Operation | None:
        shape, axes = inputs[0].shape, known_integers(inputs[1])
        if shape is None or axes is None or len(shape) < 2:
            return None
        rank = len(shape) + len(set(axes))
        return self if min((normalize_axis(a, rank, "axes") for a in axes), default=2) > 1 else None

    def bind_known(self, shape: tuple[int, ...], lists: Lists, outputs: Infos) -> Call:
        return reshaped(outputs[0])

    def tile(self, boxes: Boxes, inputs: Infos, outputs: Infos, context: Context) -> LayerTile:
        return reshape_tile(boxes, inputs, outputs)

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        """Insert the axes (a view)."""
        shape = self._shape(inputs[0].shape, integers(inputs[1]))
        return (inputs[0].reshape(static(shape)),)
