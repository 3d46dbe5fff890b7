"""Gradients of pooling, of oneDNN Graph."""

from __future__ import annotations

import abc
import itertools
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from deconv_ir.errors import ShapeError
from deconv_ir.ir.geometry import Axis, AxisGeometry, PadMode, convolution_axis
from deconv_ir.ir.operation import Arrays, Context, Infos, Operation, TensorInfo
from deconv_ir.ir.shapes import Shape, element_count, format_shape, is_static, static
from deconv_ir.ops.base import attribute, boolean, integers
from deconv_ir.ops.checks import check_least_rank, merged_type
from deconv_ir.ops.convolution.dims import check_output_shape, stated_shape
from deconv_ir.ops.convolution.onednn import AUTO_PAD, DATA_FORMAT, DataFormat
from deconv_ir.ops.numeric import narrow, widen, working_dtype
from deconv_ir.ops.onednn.decomposition import kind
from deconv_ir.ops.values import actual
from deconv_ir.ops.windows import static_geometry, window_axes

if TYPE_CHECKING:
    from deconv_ir.ir.dtypes import Array


class _PoolGradient(Operation, abc.ABC):
    """The gradient of src: for each element, the sum over its windows, tap by tap."""

    strides: tuple[int, ...] | None = attribute(integers(1, per_axis=True), None, required=True)
    pads_begin: tuple[int, ...] | None = attribute(integers(0, per_axis=True), None, required=True)
    pads_end: tuple[int, ...] | None = attribute(integers(0, per_axis=True), None, required=True)
    kernel: tuple[int, ...] = attribute(integers(1, per_axis=True))
    auto_pad: PadMode = attribute(AUTO_PAD, PadMode.EXPLICIT)
    data_format: DataFormat = attribute(DATA_FORMAT, DataFormat.NXC)
    dilations: tuple[int, ...] | None = None

    @abc.abstractmethod
    def source_shape(self, inputs: Infos) -> Shape:
        """Return the shape of src."""

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        """Check that pooling src gives the shape of diff_dst."""
        floats = [i for i, name in zip(inputs, self.inputs, strict=False) if name != "src_shape"]
        element_type = merged_type(floats, self.inputs, "float")
        shape = self.source_shape(inputs)
        grad = inputs[self.inputs.index("diff_dst")]
        check_least_rank(grad, "diff_dst", 3)
        if is_static(shape) and is_static(grad.shape):
            self._geometry(static(shape), static(grad.shape))
        return (TensorInfo(shape, element_type),)

    def _spatial(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        return shape[1:-1] if self.data_format is DataFormat.NXC else shape[2:]

    def _geometry(
        self, shape: tuple[int, ...], grad: tuple[int, ...]
    ) -> tuple[tuple[Axis, ...], tuple[AxisGeometry, ...]]:
        count = len(grad) - 2
        axes = window_axes(self, count)
        if len(self.kernel) != count or len(shape) != len(grad):
            raise ShapeError(
                f"kernel of {len(self.kernel)} elements, src {format_shape(shape)} and diff_dst "
                f"{format_shape(grad)} do not fit",
                attribute="kernel",
                rule="attribute-length",
            )
        found = static_geometry(axes, self._spatial(shape), self.kernel, self.auto_pad, self._rule)
        last = self.data_format is DataFormat.NXC
        extents = tuple(g.output for g in found)
        wanted = (shape[0], *extents, shape[-1]) if last else (*shape[:2], *extents)
        if wanted != grad:
            message = f"diff_dst must have shape {format_shape(wanted)}, found {format_shape(grad)}"
            raise ShapeError(
                message, expected=format_shape(wanted), actual=format_shape(grad), rule="window"
            )
        return axes, found

    def _rule(self, axis: Axis, data: int, kernel: int) -> AxisGeometry:
        return convolution_axis(axis, data, kernel, self.auto_pad)

    def taps(self, shape: tuple[int, ...], grad: tuple[int, ...]) -> Iterator[tuple[Any, Any]]:
        """Iterate over the taps that read data: the indices of windows and of elements of src."""
        axes, geometry = self._geometry(shape, grad)
        rows = [
            list(_taps(axis, g, k, x))
            for axis, g, k, x in zip(axes, geometry, self.kernel, self._spatial(shape), strict=True)
        ]
        for tap in itertools.product(*rows):
            yield (..., *(y for y, _ in tap)), (..., *(x for _, x in tap))

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        """Compute with the channels in front, in f32."""
        import numpy as np

        shape = static(self.infer(list(map(actual, inputs)), context)[0].shape)
        last = self.data_format is DataFormat.NXC
        arrays = [
            np.moveaxis(widen(array), -1, 1) if last else widen(array)
            for array, name in zip(inputs, self.inputs, strict=False)
            if name != "src_shape"
        ]
        grad = inputs[self.inputs.index("diff_dst")].shape
        extents = (shape[0], shape[-1], *shape[1:-1]) if last else shape
        found = self.sum(arrays, np.zeros(extents, arrays[-1].dtype), list(self.taps(shape, grad)))
        return (narrow(np.moveaxis(found, 1, -1) if last else found, inputs[0].dtype),)

    @abc.abstractmethod
    def sum(self, arrays: Arrays, result: Array, taps: Sequence[tuple[Any, Any]]) -> Array:
        """Add the gradients of the windows to `result`; all are [N, C, spatial...]."""

    def scratch(self, inputs: Infos, outputs: Infos, context: Context) -> int:
        """Count the sums, temporary arrays of `sum`, and copies in a wider type."""
        source = element_count(static(outputs[0].shape))
        grad = element_count(static(inputs[self.inputs.index("diff_dst")].shape))

        element_type = outputs[0].element_type
        assert element_type is not None, "a layer with arrays has a type"
        dtype = element_type.numpy()
        wide = working_dtype(dtype)
        copies = source + grad if wide != dtype else 0
        return int(wide.itemsize) * (source + copies) + grad * self.bytes_of_window(wide.itemsize)

    @abc.abstractmethod
    def bytes_of_window(self, itemsize: int) -> int:
        """Return the temporary bytes of each window, given the size of an element."""


def _taps(
    axis: Axis, geometry: AxisGeometry, kernel: int, extent: int
) -> Iterator[tuple[slice, slice]]:
    """Iterate over the taps of one axis that read data; most of a kernel may be in the pads."""
    stride, dilation, begin = axis.stride, axis.dilation, geometry.pad_begin
    met: set[int] = set()
    for y in range(geometry.output):
        first = stride * y - begin
        met.update(
            range(max(0, -(first // dilation)), min(kernel, (extent - 1 - first) // dilation + 1))
        )
    for tap in sorted(met):
        shift = dilation * tap - begin
        low = max(0, -(shift // stride))
        high = min(geometry.output, (extent - 1 - shift) // stride + 1)
        if low < high:
            at = low * stride + shift
            yield slice(low, high), slice(at, at + (high - low - 1) * stride + 1, stride)


@kind("MaxPoolBackward", ("src", "diff_dst"))
class MaxPoolBackward(_PoolGradient):
    """diff_dst at the first maximum of each window."""

    dilations: tuple[int, ...] | None = attribute(integers(1), None)

    def source_shape(self, inputs: Infos) -> Shape:
        """Return the shape of the first input."""
        return inputs[0].shape

    def _geometry(
        self, shape: tuple[int, ...], grad: tuple[int, ...]
    ) -> tuple[tuple[Axis, ...], tuple[AxisGeometry, ...]]:
        """Ignore dilations of more than the spatial axes: serialised graphs have 12."""
        spatial = len(grad) - 2
        if self.dilations and len(self.dilations) > spatial:
            shorter = self.replace(dilations=self.dilations[:spatial])
            return _PoolGradient._geometry(shorter, shape, grad)
        return _PoolGradient._geometry(self, shape, grad)

    def bytes_of_window(self, itemsize: int) -> int:
        """Count the maximum, the contribution of a tap, and flags."""
        return 2 * itemsize + 4

    def sum(self, arrays: Arrays, result: Array, taps: Sequence[tuple[Any, Any]]) -> Array:
        """Find the maxima, then the first tap that equals each."""
        import numpy as np

        data, grad = arrays
        most = np.full(grad.shape, -np.inf, data.dtype)
        for window, place in taps:
            np.maximum(most[window], data[place], out=most[window])
        open_ = np.ones(grad.shape, bool)
        for window, place in taps:
            hit = (data[place] == most[window]) & open_[window]
            result[place] += np.where(hit, grad[window], 0)
            open_[window] &= ~hit
        return result


@kind("AvgPoolBackward", ("diff_dst", "src_shape"), 1)
class AvgPoolBackward(_PoolGradient):
    """diff_dst distributed over each window."""

    exclude_pad: bool = attribute(boolean())
    src_shape: tuple[int, ...] | None = attribute(integers(0), None)
    declared_shape: tuple[int, ...] | None = attribute(integers(0), None)
    """The output's declared shape, used if no other shape is given."""

    def source_shape(self, inputs: Infos) -> Shape:
        """Return src_shape, from the input or else from the attribute."""
        if len(inputs) > 1:
            grad = inputs[0].shape
            return None if grad is None else check_output_shape(inputs[1], "src_shape", len(grad))
        return stated_shape("src_shape", "second", self.src_shape, self.declared_shape)

    def bytes_of_window(self, itemsize: int) -> int:
        """Count the quotient of a window."""
        return itemsize

    def sum(self, arrays: Arrays, result: Array, taps: Sequence[tuple[Any, Any]]) -> Array:
        """Divide by the elements of each window, with or without the pads."""
        import numpy as np

        (grad,) = arrays
        counts = np.zeros(grad.shape[2:], np.int64)
        for window, _ in taps:
            counts[window] += 1
        share = grad / np.asarray(
            np.maximum(counts, 1) if self.exclude_pad else math.prod(self.kernel), grad.dtype
        )
        for window, place in taps:
            result[place] += share[window]
        return result
