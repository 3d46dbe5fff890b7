"""Elements read from an array by indices: GatherElements-6, GatherND-5 and -8."""

from __future__ import annotations

from typing import ClassVar

from deconv_ir.errors import ShapeError
from deconv_ir.ir.geometry import Dim
from deconv_ir.ir.operation import Arrays, Context, Infos, Operation, Sharing, TensorInfo
from deconv_ir.ir.shapes import Shape, format_shape, intersect_dims, static
from deconv_ir.ops.base import attribute, integer, operation
from deconv_ir.ops.checks import (
    check_least_rank,
    check_type,
    normalize_axis,
    product,
    shape_misfit,
)
from deconv_ir.ops.gather_scatter.gather import batch_grids
from deconv_ir.ops.gather_scatter.scatter import check_depth, index_tuples, wrap_indices
from deconv_ir.ops.numeric import np
from deconv_ir.ops.values import unknown_dims


@operation(
    "GatherElements-6(data, indices)",
    "f32[4,5], i64[4,2]{0,1,2,3,4,0,1,2} -> f32[4,2] | axis=1",
)
class GatherElements(Operation):
    """Elements of the data at indices along an axis."""

    formula = "data {shape[data]}, indices {shape[indices]}"

    axis: int = attribute(integer())

    @property
    def moves(self) -> tuple[int, ...]:
        """The data."""
        return (0,)

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        data, indices = inputs
        check_type(indices, "indices", "integer")
        check_least_rank(data, "data", 1)
        shape = indices.shape
        if data.shape is None:
            return (TensorInfo(shape, data.element_type),)
        axis = normalize_axis(self.axis, len(data.shape))
        if shape is None:
            shape = unknown_dims(len(data.shape))
        if len(shape) != len(data.shape):
            raise _rank_misfit(data.shape, shape)
        dims: list[Dim] = []
        for i, (dim, index) in enumerate(zip(data.shape, shape, strict=True)):
            common = index if i == axis else intersect_dims(dim, index)
            if common is None:
                raise _rank_misfit(data.shape, shape)
            dims.append(common)
        return (TensorInfo(tuple(dims), data.element_type),)

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        data, indices = inputs
        axis = normalize_axis(self.axis, data.ndim)
        found = wrap_indices(indices, data.shape[axis], f"axis {axis}")
        return (np.take_along_axis(data, found, axis),)


def _rank_misfit(data: Shape, indices: Shape) -> ShapeError:
    beside = " except on the axis"
    return shape_misfit("input-shape", "indices", indices, "do not fit data", data, beside)


@operation(
    "GatherND-8(data, indices)",
    "f32[2,3,4], i64[2,3,1]{0,1,2,3,0,1} -> f32[2,3] | batch_dims=2",
)
class GatherND8(Operation):
    """Slices of the data at tuples of indices."""

    formula = "data {shape[data]}, indices {shape[indices]}, batch_dims {self.batch_dims}"
    sharing = Sharing.PART
    joins_batch: ClassVar[bool] = False
    """Whether the batch axes are merged in the output."""

    batch_dims: int = attribute(integer(0), 0)

    @property
    def moves(self) -> tuple[int, ...]:
        """The data."""
        return (0,)

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        data, indices = inputs
        check_type(indices, "indices", "integer")
        check_least_rank(data, "data", 1)
        check_least_rank(indices, "indices", 1)
        return (TensorInfo(self._shape(data.shape, indices.shape), data.element_type),)

    def _shape(self, data: Shape, indices: Shape) -> Shape:
        batch = self.batch_dims
        if data is None or indices is None:
            return None
        if batch >= len(indices) or batch > len(data):
            message = (
                f"batch_dims {batch} must be less than the ranks of indices "
                f"{format_shape(indices)} and data {format_shape(data)}"
            )
            raise ShapeError(message, attribute="batch_dims", actual=batch, rule="axis")
        shared: list[Dim] = []
        for x, y in zip(data[:batch], indices[:batch], strict=True):
            common = intersect_dims(x, y)
            if common is None:
                raise _rank_misfit(data, indices)
            shared.append(common)
        depth = indices[-1]
        if not isinstance(depth, int):
            return None
        check_depth(depth, data[batch:])
        if self.joins_batch and batch > 1:
            shared = [product(*shared)]
        return (*shared, *indices[batch:-1], *data[batch + depth :])

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        data, indices = inputs
        shape = self._shape(data.shape, indices.shape)
        batch = self.batch_dims
        rank = indices.ndim - 1
        grids = batch_grids(data.shape[:batch], rank)
        found = index_tuples(indices, data.shape, batch)
        picked = (
            data[grids + found]
            if grids or found
            else np.broadcast_to(data, (*indices.shape[:-1], *data.shape))
        )
        return (picked.reshape(static(shape)),)


@operation(
    "GatherND-5(data, indices)",
    "f32[2,3,4], i64[2,3,1]{0,1,2,3,0,1} -> f32[6] | batch_dims=2",
)
class GatherND5(GatherND8):
    """Slices of the data at tuples of indices; the batch axes are joined."""

    joins_batch = True
