"""The gradient of Interpolate, of oneDNN Graph."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from deconv_ir.errors import ShapeError
from deconv_ir.ir.operation import Arrays, Context, Infos, Operation, TensorInfo
from deconv_ir.ir.shapes import compatible, element_count, format_shape, is_static, static
from deconv_ir.ops.base import attribute, choice, integers, numbers
from deconv_ir.ops.checks import check_least_rank, merged_type
from deconv_ir.ops.convolution.dims import check_output_shape
from deconv_ir.ops.convolution.onednn import DATA_FORMAT, DataFormat
from deconv_ir.ops.numeric import narrow, widen
from deconv_ir.ops.onednn.decomposition import kind
from deconv_ir.ops.onednn.normalization import (
    CoordinateMode,
    Interpolation,
    check_sizes,
    scaled,
    settings,
)
from deconv_ir.ops.resample.resample import taps_along
from deconv_ir.ops.values import actual

if TYPE_CHECKING:
    from deconv_ir.ir.dtypes import Array
    from deconv_ir.ir.geometry import Dim

_ROUNDING: Final = 1e-5
"""The relative rounding of a number that is written with six digits."""


@kind("InterpolateBackward", ("src", "diff_dst", "sizes"), 2)
class InterpolateBackward(Operation):
    """diff_dst distributed over the elements of src from which it was interpolated."""

    mode: Interpolation = attribute(choice(Interpolation, fold=False))
    coordinate_transformation_mode: CoordinateMode = attribute(
        choice(CoordinateMode, fold=False), CoordinateMode.HALF_PIXEL
    )
    sizes: tuple[int, ...] | None = attribute(integers(1), None)
    scales: tuple[float, ...] | None = attribute(numbers(), None)
    data_format: DataFormat = attribute(DATA_FORMAT, DataFormat.NXC)

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        """Check that interpolating src gives the shape of diff_dst, and return that of src."""
        element_type = merged_type(inputs[:2], self.inputs, "float")
        for info, name in zip(inputs, self.inputs[:2], strict=False):
            check_least_rank(info, name, 3)
        shape, grad = inputs[0].shape, inputs[1].shape
        if shape is not None:
            wanted = list(shape)
            wanted[self._spatial(len(shape))] = self._sizes(inputs)
            if not compatible(tuple(wanted), grad):
                raise ShapeError(
                    f"diff_dst must have shape {format_shape(tuple(wanted))}, "
                    f"found {format_shape(grad)}",
                    expected=format_shape(tuple(wanted)),
                    actual=format_shape(grad),
                    rule="window",
                )
        return (TensorInfo(shape, element_type),)

    def _spatial(self, rank: int) -> slice:
        return slice(1, rank - 1) if self.data_format is DataFormat.NXC else slice(2, rank)

    def _sizes(self, inputs: Infos) -> tuple[Dim, ...]:
        """Return the spatial extents of dst, from the input, or else from sizes or scales.

        Files write scales with six digits, 21 / 17 as 1.23529: extents of diff_dst are accepted if
        they equal the product up to this rounding; oneDNN accepts any.
        """
        shape, grad = inputs[0].shape, inputs[1].shape
        assert shape is not None, "called with a known rank"
        extents = shape[self._spatial(len(shape))]
        if len(inputs) > 2:
            return check_output_shape(inputs[2], "sizes", len(extents))
        check_sizes(self.sizes, self.scales, len(extents))
        if self.sizes:
            return self.sizes
        found = extents if grad is None else grad[self._spatial(len(grad))]
        if not is_static(extents):
            return found
        scales, known = self.scales or (), static(extents)
        sizes = scaled(known, scales)
        if not is_static(found) or len(found) != len(sizes):
            return sizes
        rows = zip(known, scales, sizes, static(found), strict=True)
        return tuple(y if abs(x * s - y) <= _ROUNDING * y else size for x, s, size, y in rows)

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        """Sum the taps of each axis, in f32; only the shape of src is used."""
        import numpy as np

        (info,) = self.infer(list(map(actual, inputs)), context)
        shape, found = static(info.shape), widen(inputs[1])
        if 0 in (*shape, *found.shape):
            return (np.zeros(shape, inputs[1].dtype),)
        axes = range(len(shape))[self._spatial(len(shape))]
        scales = {axis: found.shape[axis] / shape[axis] for axis in axes}
        how = settings(self.mode, self.coordinate_transformation_mode)
        for axis, (index, *weights) in taps_along(how, shape, found.shape, scales).items():
            found = _gather(found, index, weights[0] if weights else None, axis, shape[axis])
        return (narrow(found, inputs[1].dtype),)

    def scratch(self, inputs: Infos, outputs: Infos, context: Context) -> int:
        """Count two arrays with the greater extent of each axis, in 4 bytes each."""
        shapes = [static(info.shape) for info in inputs[:2] if is_static(info.shape)]
        return 8 * element_count([max(extents) for extents in zip(*shapes, strict=True)])


def _gather(grad: Array, index: Array, weight: Array | None, axis: int, extent: int) -> Array:
    """Sum, along one axis, the gradients of all outputs that an element of src contributes to."""
    import numpy as np

    moved = np.moveaxis(grad, axis, 0)
    result = np.zeros((extent, *moved.shape[1:]), grad.dtype)
    if weight is None:
        index, weight = index[:, None], np.ones((len(index), 1))
    for position, tap in np.argwhere(weight):
        share = grad.dtype.type(weight[position, tap])
        result[index[position, tap]] += share * moved[position]
    return np.moveaxis(result, 0, axis)
