"""Attributes, shape rule and windows of every pooling."""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from deconv_ir.ir.dtypes import Array
from deconv_ir.ir.geometry import (
    UNKNOWN,
    Axis,
    AxisGeometry,
    PadMode,
    Rounding,
    pooling_axis,
    window_reach,
)
from deconv_ir.ir.operation import Arrays, Call, Context, Infos, Operation, TensorInfo
from deconv_ir.ir.options import Semantics
from deconv_ir.ir.record import field
from deconv_ir.ir.shapes import element_count, static
from deconv_ir.ops.base import attribute, choice, choice_of, integers
from deconv_ir.ops.checks import check_rank, check_type
from deconv_ir.ops.numeric import np, working_dtype
from deconv_ir.ops.windows import (
    AUTO_PAD,
    check_length,
    explain_window,
    static_geometry,
    window_axes,
    window_extent,
)

if TYPE_CHECKING:
    from deconv_ir.ir.boxes import Box, Boxes, LayerTile
    from deconv_ir.ops.pooling.sliding import AxisWindows

Pool = Callable[[Any, Any], Any]
"""A function of data of one shape, and an array for the result or None; returns the result."""

ROUNDING = choice_of({"floor": Rounding.FLOOR, "ceil": Rounding.CEIL})
ROUNDING_TORCH = choice(Rounding)


class Pooling(Operation, abc.ABC):
    """Attributes and shape rule of every pooling."""

    strides: tuple[int, ...] | None = attribute(integers(1, per_axis=True), None, required=True)
    pads_begin: tuple[int, ...] | None = attribute(integers(0, per_axis=True), None, required=True)
    pads_end: tuple[int, ...] | None = attribute(integers(0, per_axis=True), None, required=True)
    kernel: tuple[int, ...] = attribute(integers(1, per_axis=True))
    auto_pad: PadMode = attribute(AUTO_PAD, PadMode.EXPLICIT)

    rounding_type: Rounding = Rounding.FLOOR
    dilations: tuple[int, ...] | None = None

    placed: tuple[AxisGeometry, ...] | None = field(default=None)
    """Geometry of a tile's windows; None: given by the attributes."""

    def rule(self, axis: Axis, data: int, kernel: int) -> AxisGeometry:
        """Find pads and extent of an axis."""
        return pooling_axis(axis, data, kernel, self.auto_pad, self.rounding_type)

    def axes(self) -> tuple[Axis, ...]:
        """Return the attributes, axis by axis."""
        return window_axes(self, len(self.kernel))

    def pooled(self, data: TensorInfo) -> TensorInfo:
        """Compute the shape of the output."""
        family_type = check_type(data, "data", "numeric")
        check_rank(data, "data", 3, 4, 5)
        shape = data.shape
        if shape is None:
            shape = (UNKNOWN,) * (len(self.kernel) + 2)
        check_length("kernel", self.kernel, len(shape) - 2)
        extents = [
            window_extent(i, axis, x, k, self.auto_pad, self.rule)
            for i, (axis, x, k) in enumerate(zip(self.axes(), shape[2:], self.kernel, strict=True))
        ]
        return TensorInfo((*shape[:2], *extents), family_type)

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        """Compute the shape of the output; see `geometry.pooling_axis`."""
        return (self.pooled(inputs[0]),)

    def explain(self, inputs: Infos, context: Context, output: int, axis: int) -> str | None:
        data = inputs[0].shape
        if data is None:
            return None
        if axis < 2:
            return f"{'NC'[axis]} of data = {data[axis]}"
        return explain_window(self.axes()[axis - 2], data[axis], self.kernel[axis - 2], self.rule)

    def geometry(self, extents: tuple[int, ...]) -> tuple[AxisGeometry, ...]:
        """Return pads and extents for actual extents."""
        if self.placed is not None:
            return self.placed
        return static_geometry(self.axes(), extents, self.kernel, self.auto_pad, self.rule)

    def slide_bytes(self, inputs: Infos, outputs: Infos, context: Context) -> int:
        """Count the temporary arrays of `slide`, and its result if that is then rounded."""
        from deconv_ir.ops.pooling.sliding import slide_bytes

        element_type = inputs[0].element_type
        if element_type is None:
            return 0
        dtype = element_type.numpy()
        wide = self.sum_dtype(dtype)
        data, result = static(inputs[0].shape), static(outputs[0].shape)
        taken = slide_bytes(
            data[0] * data[1], data[2:], result[2:], (dtype, wide), context.scratch_bytes
        )
        return taken + (element_count(result) * int(wide.itemsize) if wide != dtype else 0)

    def sum_dtype(self, dtype: Any) -> Any:
        """Return the dtype in which windows are combined."""
        return working_dtype(dtype)

    def scratch(self, inputs: Infos, outputs: Infos, context: Context) -> int:
        return self.slide_bytes(inputs, outputs, context)

    def surely_full(self, extents: tuple[int, ...]) -> bool:
        """Whether the first and the last window, without gaps, reach the data; they may anyway."""
        placed = zip(self.axes(), self.geometry(extents), extents, self.kernel, strict=True)
        return all(
            axis.dilation == 1
            and extent > 0
            and at.pad_begin < kernel
            and (at.output - 1) * axis.stride - at.pad_begin < extent
            for axis, at, extent, kernel in placed
        )

    def windows(self, extents: tuple[int, ...]) -> tuple[AxisWindows, ...]:
        """Return the windows on actual extents, axis by axis."""
        from deconv_ir.ops.pooling.sliding import window

        return tuple(map(window, self.axes(), self.geometry(extents), extents, self.kernel))

    @abc.abstractmethod
    def pool(self, shape: tuple[int, ...], dtype: Any, context: Context) -> Pool:
        """Return a function that pools arrays of a shape; called without NumPy's warnings."""

    def sliding(
        self, slide: Pool, shape: tuple[int, ...], dtype: Any, divisors: Sequence[Array] | None
    ) -> tuple[Pool, bool]:
        """Return the function that pools the windows: a compiled one, or else `slide`.

        Divisors are those of `kernels.pooling.pooler`.  The second result is whether the function
        is compiled: if so, it divides the sums as well.
        """
        from deconv_ir.kernels import empty
        from deconv_ir.kernels.pooling import pooler

        if dtype != np.float32 or 0 in shape:
            return slide, False
        geometry = self.geometry(shape[2:])
        axes = zip(self.kernel, self.axes(), geometry, strict=True)
        windows = [(k, axis.stride, axis.dilation, geo.pad_begin) for k, axis, geo in axes]
        compiled = pooler(windows, divisors)
        output = (*shape[:2], *(geo.output for geo in geometry))
        if compiled is None or 0 in output or not compiled.takes(shape[2:], output[2:]):
            return slide, False
        run = compiled.run

        def pool(data: Array, out: Array | None) -> Array:
            result = empty(output, dtype) if out is None else out
            run(data, result)
            return result

        return pool, True

    def bind(self, inputs: Infos, outputs: Infos, context: Context) -> Call:
        return pool_one(self, inputs[0], context)

    def accepts_out(self, inputs: Infos, output: TensorInfo) -> bool:
        """Write to an array unless the result must be rounded."""
        found = output.element_type
        return found is not None and self.sum_dtype(found.numpy()) == found.numpy()

    def execute_into(self, inputs: Arrays, context: Context, out: Array) -> None:
        data = inputs[0]
        with np.errstate(all="ignore"):
            self.pool(data.shape, data.dtype, context)(data, out)

    def tile(self, boxes: Boxes, inputs: Infos, outputs: Infos, context: Context) -> LayerTile:
        from deconv_ir.ir.boxes import LayerTile, nearest_element

        box = boxes[0]
        assert box is not None, "the second output is not computed in tiles"
        shape = static(inputs[0].shape)
        geometry = self.geometry(shape[2:])
        spans, placed = [], []
        parts = zip(self.axes(), geometry, shape[2:], self.kernel, box[2:], strict=True)
        for axis, geo, extent, kernel, (start, stop) in parts:
            found = window_reach(axis, geo.pad_begin, extent, kernel, (start, stop))
            span = nearest_element((start, stop), extent) if found is None else found
            spans.append(span)
            begin = geo.pad_begin + span[0] - axis.stride * start
            placed.append(AxisGeometry(begin, 0, stop - start, "", ()))
        operation = self.placed_at(tuple(placed), shape[2:], box[2:], context.semantics)
        return LayerTile(((*box[:2], *spans),), operation)

    def placed_at(
        self,
        placed: tuple[AxisGeometry, ...],
        extents: tuple[int, ...],
        box: Box,
        semantics: Semantics,
    ) -> Pooling:
        """Return the operation of a box of the output, with windows placed explicitly.

        `extents` are those of the whole data; `box` is the spatial part of the output's box.
        """
        return self.replace(placed=placed)

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        data = inputs[0]
        with np.errstate(all="ignore"):
            return (self.pool(data.shape, data.dtype, context)(data, None),)


def pool_one(operation: Pooling, data: TensorInfo, context: Context) -> Call:
    """Bind a pooling with one output."""
    assert data.element_type is not None, "a layer is bound where it is known"
    pool = operation.pool(static(data.shape), data.element_type.numpy(), context)
    return lambda arrays, out: (pool(arrays[0], out),)
