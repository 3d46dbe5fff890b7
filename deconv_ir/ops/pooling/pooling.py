"""Poolings: MaxPool-1, -8, -14 and AvgPool-1, -14, -16."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from deconv_ir.ir.dtypes import I64, ElementType
from deconv_ir.ir.geometry import UNKNOWN, Axis, AxisGeometry, PadMode, Rounding, pooling_axis
from deconv_ir.ir.operation import Call, Context, Kernel, Operation, TensorInfo
from deconv_ir.ir.scratchpad import ScratchpadBudget
from deconv_ir.ir.shapes import element_count, static
from deconv_ir.ops.base import (
    attribute,
    boolean,
    choice,
    choice_of,
    element_type,
    integer,
    integers,
    operation,
)
from deconv_ir.ops.checks import check_rank, check_type, normalize_axis
from deconv_ir.ops.pooling.sliding import Window, slide, slide_bytes, window
from deconv_ir.ops.windows import (
    AUTO_PAD,
    check_length,
    explain_window,
    static_geometry,
    window_axes,
    window_extent,
)

if TYPE_CHECKING:
    from deconv_ir.ir.dtypes import Array

Pool = Callable[[Any], Any]
"""Takes data of one shape, returns what they are pooled to."""

ROUNDING = choice_of({"floor": Rounding.FLOOR, "ceil": Rounding.CEIL})
ROUNDING_TORCH = choice(Rounding)


class _Pooling(Operation):
    """Attributes and shape rule of every pooling."""

    strides: tuple[int, ...] | None = attribute(integers(1, per_axis=True), None, required=True)
    pads_begin: tuple[int, ...] | None = attribute(integers(0, per_axis=True), None, required=True)
    pads_end: tuple[int, ...] | None = attribute(integers(0, per_axis=True), None, required=True)
    kernel: tuple[int, ...] = attribute(integers(1, per_axis=True))
    auto_pad: PadMode = attribute(AUTO_PAD, PadMode.EXPLICIT)

    def rounding(self) -> Rounding:
        """Tell how windows that do not fit whole are counted."""
        raise NotImplementedError

    def window_dilations(self) -> tuple[int, ...] | None:
        """Tell the distance between elements of a window."""
        return None

    def rule(self, axis: Axis, data: int, kernel: int) -> AxisGeometry:
        """Find pads and extent of an axis."""
        return pooling_axis(axis, data, kernel, self.auto_pad, self.rounding())

    def axes(self) -> tuple[Axis, ...]:
        """Return the attributes, axis by axis."""
        return window_axes(
            len(self.kernel),
            strides=self.strides,
            dilations=self.window_dilations(),
            pads_begin=self.pads_begin,
            pads_end=self.pads_end,
        )

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

    def infer(self, inputs: Sequence[TensorInfo], context: Context) -> tuple[TensorInfo, ...]:
        """Compute the shape of the output; see `geometry.pooling_axis`."""
        return (self.pooled(inputs[0]),)

    def explain(
        self, inputs: Sequence[TensorInfo], context: Context, output: int, axis: int
    ) -> str | None:
        """Tell by which formula a dim of the output is found."""
        data = inputs[0].shape
        if data is None:
            return None
        if axis < 2:
            return f"{'NC'[axis]} of data = {data[axis]}"
        return explain_window(self.axes()[axis - 2], data[axis], self.kernel[axis - 2], self.rule)

    def geometry(self, extents: tuple[int, ...]) -> tuple[AxisGeometry, ...]:
        """Return pads and extents for actual extents."""
        return static_geometry(self.axes(), extents, self.kernel, self.auto_pad, self.rule)

    def slide_bytes(
        self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo], context: Context
    ) -> int:
        """Count what `slide` takes, and its result where that is then rounded."""
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
        """Tell in which dtype windows are combined."""
        from deconv_ir.ops.numeric import working_dtype

        return working_dtype(dtype)

    def scratch(
        self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo], context: Context
    ) -> int:
        """Count what `slide` takes."""
        return self.slide_bytes(inputs, outputs, context)

    def windows(self, extents: tuple[int, ...]) -> tuple[Window, ...]:
        """Return what the windows do on actual extents, axis by axis."""
        return _windows(self, extents)

    def pool(self, shape: tuple[int, ...], dtype: Any, scratch_bytes: int) -> Pool:
        """Return what pools arrays of a shape; to be called without NumPy's warnings."""
        raise NotImplementedError

    def bind(
        self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo], context: Context
    ) -> Call:
        """Find the elements of the windows once."""
        return _pool_one(self, inputs[0], context.scratch_bytes)

    def execute(self, inputs: Sequence[Array], context: Context) -> Sequence[Array]:
        """Pool."""
        import numpy as np

        data = inputs[0]
        with np.errstate(all="ignore"):
            return (self.pool(data.shape, data.dtype, context.scratch_bytes)(data),)


def _pool_one(operation: _Pooling, data: TensorInfo, scratch_bytes: int) -> Call:
    """Bind a pooling that has one output."""
    assert data.element_type is not None, "a layer is bound where it is known"
    pool = operation.pool(static(data.shape), data.element_type.numpy(), scratch_bytes)
    return lambda arrays, out: (pool(arrays[0]),)


@functools.lru_cache(maxsize=512)
def _windows(operation: _Pooling, extents: tuple[int, ...]) -> tuple[Window, ...]:
    geometry = operation.geometry(extents)
    return tuple(map(window, operation.axes(), geometry, extents, operation.kernel))


class _MaxPool(_Pooling):
    """The greatest element under a window; NaN if one is."""

    def pool(self, shape: tuple[int, ...], dtype: Any, scratch_bytes: int) -> Pool:
        """Return what computes the greatest elements."""
        import numpy as np

        from deconv_ir.ops.numeric import narrow, working_dtype

        windows, wide = self.windows(shape[2:]), working_dtype(dtype)
        largest = slide(np.maximum, _lowest(wide), shape, windows, (dtype, wide), scratch_bytes)
        if not any(along.empty for along in windows) and dtype == wide:
            return largest

        def pool(data: Array) -> Array:
            result = largest(data)
            self.fill_empty(result, windows)
            return narrow(result, dtype)

        return pool

    def fill_empty(self, result: Array, windows: Sequence[Window]) -> None:
        """Give windows without any element the lowest finite number, as OpenVINO does."""
        import numpy as np

        if result.dtype.kind == "f":
            for axis, along in enumerate(windows, 2):
                if along.empty:
                    lowest = np.finfo(result.dtype).min
                    np.moveaxis(result, axis, 0)[list(along.empty)] = lowest


def _lowest(dtype: Any) -> Any:
    import numpy as np

    return -np.inf if dtype.kind == "f" else np.iinfo(dtype).min


@operation(
    "MaxPool",
    "opset1",
    inputs=("data",),
    examples=(
        "f32[1,2,5,6] -> f32[1,2,3,3] | kernel=2,2 strides=2,2 pads_begin=0,0 pads_end=0,0"
        " rounding_type=ceil",
    ),
)
class MaxPool1(_MaxPool):
    """The greatest element under a window; NaN if one is.

    Source: OpenVINO operation specification, MaxPool-1.

    Attributes
    ----------
    strides, kernel : tuple of int
        Positive, one for each spatial axis.
    pads_begin, pads_end : tuple of int
        Non-negative, one for each spatial axis; ignored with any `auto_pad`
        but explicit.
    rounding_type : Rounding
        floor or ceil.
    auto_pad : PadMode
        explicit, same_upper, same_lower or valid.
    """

    rounding_type: Rounding = attribute(ROUNDING, Rounding.FLOOR)

    def rounding(self) -> Rounding:
        """Tell how windows that do not fit whole are counted."""
        return self.rounding_type


class _MaxPoolWithIndices(_MaxPool):
    """MaxPool with a second output: where the greatest elements stand."""

    dilations: tuple[int, ...] | None = attribute(integers(1, per_axis=True), None)
    index_element_type: ElementType | None = attribute(element_type(), I64)
    axis: int = attribute(integer(), 0)

    def window_dilations(self) -> tuple[int, ...] | None:
        """Tell the distance between elements of a window."""
        return self.dilations

    def infer(self, inputs: Sequence[TensorInfo], context: Context) -> tuple[TensorInfo, ...]:
        """Compute the shape of the outputs; see `geometry.pooling_axis`."""
        pooled = self.pooled(inputs[0])
        if inputs[0].shape is not None:
            normalize_axis(self.axis, len(inputs[0].shape))
        return (pooled, TensorInfo(pooled.shape, self.index_element_type))

    def prepare_first(self, context: Context) -> Kernel:
        """Leave out the positions, which are most of the work."""
        return _WithoutIndices(self, context)

    def bind(
        self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo], context: Context
    ) -> Call:
        """Compute the positions as well: nothing is small about that."""
        return Operation.bind(self, inputs, outputs, context)

    def scratch(
        self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo], context: Context
    ) -> int:
        """Count the positions, and what is compared, where they are wanted."""
        if len(outputs) == 1:
            return self.slide_bytes(inputs, outputs, context)
        data, result = (element_count(static(i.shape)) for i in (inputs[0], outputs[0]))
        # Positions of 8 bytes; of each result, its index, a flag, and three arrays of a cell.
        return 8 * data + (8 + 1 + 3 * 8) * result

    def execute(self, inputs: Sequence[Array], context: Context) -> Sequence[Array]:
        """Compute the greatest elements, and where they stand.

        An index is that of the element in the data, flattened from `axis` on;
        of equal elements the first counts.
        """
        import numpy as np

        from deconv_ir.ops.numeric import narrow, widen

        data = inputs[0]
        windows = self.windows(data.shape[2:])
        wide = widen(data)
        positions = np.arange(data.size).reshape(data.shape)
        shape = (*data.shape[:2], *(w.output for w in windows))
        result = np.full(shape, _lowest(wide.dtype), wide.dtype)
        index = np.zeros(shape, np.int64)
        untouched = np.ones(shape, bool)
        for cells in itertools.product(*(w.cells for w in windows)):
            source, target = ((..., *side) for side in zip(*cells, strict=True))
            part, found = result[target], wide[source]
            better = (found > part) | untouched[target]
            if wide.dtype.kind == "f":
                better |= np.isnan(found) & ~np.isnan(part)
            np.copyto(part, found, where=better)
            np.copyto(index[target], positions[source], where=better)
            untouched[target] = False
        self.fill_empty(result, windows)
        axis = normalize_axis(self.axis, data.ndim)
        span = int(np.prod(data.shape[axis:]))
        assert self.index_element_type is not None
        if span:
            index %= span
        return narrow(result, data.dtype), index.astype(self.index_element_type.numpy())


class _WithoutIndices(Kernel):
    """A MaxPool of which nothing needs the second output."""

    def __init__(self, operation: _MaxPoolWithIndices, context: Context) -> None:
        self._operation = operation
        self._context = context

    def __call__(
        self,
        inputs: Sequence[Array],
        out: Array | None = None,
        room: ScratchpadBudget | None = None,
    ) -> Sequence[Array]:
        """Compute the greatest elements."""
        bound = self._context.scratch_bytes if room is None else room.scratch_bytes
        return _Pooling.execute(
            self._operation, inputs, self._context._replace(scratch_bytes=bound)
        )

    def bind(self, inputs: Sequence[TensorInfo], room: ScratchpadBudget) -> Call:
        """Find the elements of the windows once."""
        return _pool_one(self._operation, inputs[0], room.scratch_bytes)


@operation(
    "MaxPool",
    "opset8",
    inputs=("data",),
    examples=(
        "f32[1,2,5,6] -> f32[1,2,3,4], i32[1,2,3,4] | kernel=2,2 strides=1,1 dilations=2,2"
        " pads_begin=0,0 pads_end=0,0 index_element_type=i32 axis=2",
    ),
)
class MaxPool8(_MaxPoolWithIndices):
    """The greatest element under a window, NaN if one is, and where it stands.

    Source: OpenVINO operation specification, MaxPool-8.

    Attributes
    ----------
    strides, dilations, kernel : tuple of int
        Positive, one for each spatial axis.
    pads_begin, pads_end : tuple of int
        Non-negative, one for each spatial axis; ignored with any `auto_pad`
        but explicit.
    rounding_type : Rounding
        floor or ceil.
    auto_pad : PadMode
        explicit, same_upper, same_lower or valid.
    index_element_type : ElementType
        Type of the second output.
    axis : int
        Indices count elements from this axis on.
    """

    rounding_type: Rounding = attribute(ROUNDING, Rounding.FLOOR)

    def rounding(self) -> Rounding:
        """Tell how windows that do not fit whole are counted."""
        return self.rounding_type


@operation(
    "MaxPool",
    "opset14",
    inputs=("data",),
    examples=(
        "f32[1,2,5,7] -> f32[1,2,3,3], i64[1,2,3,3] | kernel=2,2 strides=2,3"
        " pads_begin=0,0 pads_end=0,0 rounding_type=ceil_torch",
    ),
)
class MaxPool14(_MaxPoolWithIndices):
    """The greatest element under a window, NaN if one is, and where it stands.

    Source: OpenVINO operation specification, MaxPool-14.

    Attributes
    ----------
    strides, dilations, kernel, pads_begin, pads_end, auto_pad, index_element_type, axis
        As of `MaxPool8`.
    rounding_type : Rounding
        floor, ceil or ceil_torch.
    """

    rounding_type: Rounding = attribute(ROUNDING_TORCH, Rounding.FLOOR)

    def rounding(self) -> Rounding:
        """Tell how windows that do not fit whole are counted."""
        return self.rounding_type


class _AvgPool(_Pooling):
    """The mean of the elements under a window."""

    exclude_pad: bool = attribute(boolean(), name="exclude-pad")

    def sum_dtype(self, dtype: Any) -> Any:
        """Add integers in i64."""
        import numpy as np

        from deconv_ir.ops.numeric import working_dtype

        wide = working_dtype(dtype)
        return np.dtype(np.int64) if wide.kind in "iu" else wide

    def scratch(
        self, inputs: Sequence[TensorInfo], outputs: Sequence[TensorInfo], context: Context
    ) -> int:
        """Count what `slide` takes, and by what the sums of a plane are divided."""
        plane = element_count(static(outputs[0].shape)[2:])
        return self.slide_bytes(inputs, outputs, context) + 16 * plane

    def pool(self, shape: tuple[int, ...], dtype: Any, scratch_bytes: int) -> Pool:
        """Return what computes the means."""
        import numpy as np

        from deconv_ir.ops.numeric import narrow

        wide = self.sum_dtype(dtype)
        add = slide(np.add, 0, shape, self.windows(shape[2:]), (dtype, wide), scratch_bytes)
        count = self._counts(shape[2:])
        divisor = np.maximum(count, 1) if wide.kind in "iu" else count.astype(wide)

        def pool(data: Array) -> Array:
            total = add(data)
            if wide.kind in "iu":
                return narrow(np.sign(total) * (np.abs(total) // divisor), dtype)
            total /= divisor
            return narrow(total, dtype)

        return pool

    def _counts(self, extents: tuple[int, ...]) -> Array:
        """Return by what each sum is divided: the product of counts along the axes.

        The document leaves open what a window that reaches beyond the padding
        is divided by: here, as in torch and ONNX, by what is within it.
        OpenVINO does so too where there are no pads, and divides by the whole
        window where there are.
        """
        import numpy as np

        count = np.ones((), np.int64)
        geometry = self.geometry(extents)
        for axis, geo, x, k in zip(self.axes(), geometry, extents, self.kernel, strict=True):
            starts = np.arange(geo.output)[:, None] * axis.stride - geo.pad_begin
            at = starts + np.arange(k) * axis.dilation
            if self.exclude_pad:
                inside = ((at >= 0) & (at < x)).sum(axis=1)
            else:
                inside = (at < x + geo.pad_end).sum(axis=1)
            count = count[..., None] * inside
        return count


@operation(
    "AvgPool",
    "opset1",
    inputs=("data",),
    examples=(
        "f32[1,2,5,6] -> f32[1,2,3,4] | kernel=2,2 strides=2,2 pads_begin=0,1 pads_end=0,1"
        " exclude-pad=true rounding_type=ceil",
    ),
)
class AvgPool1(_AvgPool):
    """The mean of the elements under a window; of integers, cut toward zero.

    Source: OpenVINO operation specification, AvgPool-1.

    Attributes
    ----------
    strides, kernel : tuple of int
        Positive, one for each spatial axis.
    pads_begin, pads_end : tuple of int
        Non-negative, one for each spatial axis; ignored with any `auto_pad`
        but explicit.
    exclude_pad : bool
        Zeros of the padding do not count (written `exclude-pad`).
    rounding_type : Rounding
        floor or ceil.
    auto_pad : PadMode
        explicit, same_upper, same_lower or valid.
    """

    rounding_type: Rounding = attribute(ROUNDING, Rounding.FLOOR)

    def rounding(self) -> Rounding:
        """Tell how windows that do not fit whole are counted."""
        return self.rounding_type


@operation(
    "AvgPool",
    "opset14",
    inputs=("data",),
    examples=(
        "f32[1,2,5,7] -> f32[1,2,3,3] | kernel=2,2 strides=2,3 pads_begin=0,0 pads_end=0,0"
        " exclude-pad=false rounding_type=ceil_torch",
    ),
)
class AvgPool14(_AvgPool):
    """The mean of the elements under a window; of integers, cut toward zero.

    Source: OpenVINO operation specification, AvgPool-14.

    Attributes
    ----------
    strides, kernel, pads_begin, pads_end, exclude_pad, auto_pad
        As of `AvgPool1`.
    rounding_type : Rounding
        floor, ceil or ceil_torch.
    """

    rounding_type: Rounding = attribute(ROUNDING_TORCH, Rounding.FLOOR)

    def rounding(self) -> Rounding:
        """Tell how windows that do not fit whole are counted."""
        return self.rounding_type


@operation(
    "AvgPool",
    "opset16",
    inputs=("data",),
    examples=(
        "f32[1,2,5,7] -> f32[1,2,3,5] | kernel=2,2 strides=1,1 dilations=2,2 pads_begin=0,0"
        " pads_end=0,0 exclude-pad=false",
    ),
)
class AvgPool16(_AvgPool):
    """The mean of the elements under a window; of integers, cut toward zero.

    Source: OpenVINO operation specification, AvgPool-16.

    Attributes
    ----------
    strides, dilations, kernel : tuple of int
        Positive, one for each spatial axis.
    pads_begin, pads_end, exclude_pad, auto_pad
        As of `AvgPool1`.
    rounding_type : Rounding
        floor, ceil or ceil_torch.
    """

    dilations: tuple[int, ...] | None = attribute(integers(1, per_axis=True), None)
    rounding_type: Rounding = attribute(ROUNDING_TORCH, Rounding.FLOOR)

    def rounding(self) -> Rounding:
        """Tell how windows that do not fit whole are counted."""
        return self.rounding_type

    def window_dilations(self) -> tuple[int, ...] | None:
        """Tell the distance between elements of a window."""
        return self.dilations
