"""OpenVINO Gather-1, -7 and -8."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from deconv_ir.errors import InputError, ShapeError
from deconv_ir.ir.boxes import Box, Boxes, LayerTile, as_slices, whole_box
from deconv_ir.ir.dtypes import Array
from deconv_ir.ir.geometry import Dim
from deconv_ir.ir.lazy_tensor import Constant, LazyTensor, whole
from deconv_ir.ir.operation import (
    Arrays,
    Call,
    Context,
    ElementOf,
    Infos,
    Kernel,
    Operation,
    TensorInfo,
)
from deconv_ir.ir.record import field
from deconv_ir.ir.shapes import (
    Shape,
    element_count,
    format_shape,
    intersect_dims,
    is_static,
    static,
)
from deconv_ir.ops.base import attribute, integer, operation
from deconv_ir.ops.binding import indexed
from deconv_ir.ops.checks import check_type, known_integer, known_integers, normalize_axis, only
from deconv_ir.ops.numeric import np
from deconv_ir.ops.tile_rules import FixedArrays
from deconv_ir.ops.values import ANY, unknown_dims

if TYPE_CHECKING:
    from deconv_ir.ir.scratchpad import ScratchpadBudget
    from deconv_ir.kernels.compressed import CompressedRows


def batch_grids(extents: Sequence[int], rank: int) -> tuple[Array, ...]:
    """Return index grids of the batch axes, for indices of this rank."""
    return tuple(
        np.arange(extent).reshape((-1,) + (1,) * (rank - 1 - i)) for i, extent in enumerate(extents)
    )


class _Picked(Operation):
    """Slices of the data along an axis, at known positions."""

    checks_values = False

    axis: int = field()
    places: FixedArrays = field()
    box: Box = field()
    """The part of the data that is the input."""

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        """Pick the slices."""
        return (np.take(inputs[0], self.places[0], axis=self.axis),)


@operation("Gather-1(data, indices, axis)", "f32[4,5], i64[2,3], i64[]{1} -> f32[4,2,3]")
class Gather1(Operation):
    """Slices of the data along an axis."""

    formula = "data {shape[data]}, indices {shape[indices]} in place of axis {element[axis]}"

    takes_lazy = (0,)
    keeps_codes = True

    # The part of the data that a tile needs; None: all.
    box: Box | None = field(default=None)

    negative: ClassVar[bool] = False
    """Whether an index may be negative and count from the end."""

    batch_dims: int = 0
    """Leading axes that data and indices share."""

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        data, indices, axis_info = inputs
        check_type(indices, "indices", "integer")
        check_type(axis_info, "axis", "integer")
        axis = known_integer(axis_info, "axis")
        shape = self._shape(data.shape, indices.shape, axis)
        return (TensorInfo(shape, data.element_type, self._value(data, indices)),)

    def _shape(self, data: Shape, indices: Shape, axis: int | None) -> Shape:
        if data is None or indices is None:
            return None
        batch = self.batch_of(indices)
        last = normalize_axis(-1 if axis is None else axis, len(data))
        if batch > last:
            message = f"batch_dims is {batch}, greater than the axis {last}"
            raise ShapeError(
                message, attribute="batch_dims", expected=f"<= {last}", actual=batch, rule="axis"
            )
        if axis is None:
            # With an unknown axis, only the rank is known.
            return unknown_dims(len(data) + len(indices) - 1 - batch)
        axis = last
        shared: list[Dim] = []
        for i in range(batch):
            common = intersect_dims(data[i], indices[i])
            if common is None:
                message = (
                    f"batch axis {i} differs: data {format_shape(data)}, "
                    f"indices {format_shape(indices)}"
                )
                raise ShapeError(message, expected=data[i], actual=indices[i], rule="batch")
            shared.append(common)
        return (*shared, *data[batch:axis], *indices[batch:], *data[axis + 1 :])

    def batch_of(self, indices: Sequence[Dim]) -> int:
        """Return `batch_dims`, counted from the start."""
        rank, batch = len(indices), self.batch_dims
        if not -rank <= batch <= rank:
            raise ShapeError(
                f"batch_dims {batch} is outside the rank {rank} of indices",
                attribute="batch_dims",
                expected=f"{-rank}..{rank}",
                actual=batch,
                rule="axis",
            )
        return batch + rank if batch < 0 else batch

    def _value(self, data: TensorInfo, indices: TensorInfo) -> tuple[Dim, ...] | None:
        """Pick the elements of a list."""
        picked = known_integers(indices)
        if data.value is None or picked is None or data.shape is None or len(data.shape) != 1:
            return None
        if indices.shape is None or self.batch_of(indices.shape):
            return None
        count = len(data.value)
        low = -count if self.negative else 0
        return tuple(data.value[i] if low <= i < count else ANY for i in picked)

    def on_fours(self, inputs: Infos, outputs: Infos, element: ElementOf) -> Operation | None:
        shape, axis = inputs[0].shape, known_integer(inputs[2], "axis")
        if shape is None or axis is None:
            return None
        return self if normalize_axis(axis, len(shape)) > 1 else None

    def tile(self, boxes: Boxes, inputs: Infos, outputs: Infos, context: Context) -> LayerTile:
        (box,), chosen = boxes, known_integer(inputs[2], "axis")
        if box is None or chosen is None:
            return super().tile(boxes, inputs, outputs, context)
        data, indices = static(inputs[0].shape), static(inputs[1].shape)
        axis, batch = normalize_axis(chosen, len(data)), self.batch_of(indices)
        behind = axis + len(indices) - batch
        known = known_integers(inputs[1])
        if known is not None and not batch:
            places = np.array(known, np.int64).reshape(indices)[as_slices(box[axis:behind])]
            places = np.where(places < 0, places + data[axis], places) if self.negative else places
            if places.size and places.min() >= 0 and places.max() < data[axis]:
                first, last = int(places.min()), int(places.max())
                needed = (*box[:axis], (first, last + 1), *box[behind:])
                operation = _Picked(axis=axis, places=FixedArrays(places - first), box=needed)
                return LayerTile((needed, None, None), operation)
        # Any element along the axis may be picked.
        spans = (*box[:axis], (0, data[axis]), *box[behind:])
        picked = (*box[:batch], *box[axis:behind])
        tile = self if spans == whole_box(data) else self.replace(box=spans)
        return LayerTile((spans, picked, whole_box(static(inputs[2].shape))), tile)

    def scratch(self, inputs: Infos, outputs: Infos, context: Context) -> int:
        """Count copies of the indices."""
        shape = inputs[1].shape
        return 18 * element_count(static(shape)) if is_static(shape) else 0

    @property
    def in_order(self) -> bool:
        """With `batch_dims`, axes are moved after the slices are picked."""
        return not self.batch_dims

    def bind(self, inputs: Infos, outputs: Infos, context: Context) -> Call:
        """Check the indices once, if they are known: a single one is a view."""
        chosen, known = known_integer(inputs[2], "axis"), known_integers(inputs[1])
        data, indices = static(inputs[0].shape), static(inputs[1].shape)
        if chosen is None or not known or self.batch_of(indices):
            return super().bind(inputs, outputs, context)
        axis = normalize_axis(chosen, len(data))
        extent = data[axis]
        places = [i + extent if self.negative and i < 0 else i for i in known]
        if min(places) < 0 or max(places) >= extent:
            return super().bind(inputs, outputs, context)
        if not indices:
            return indexed((*(slice(None),) * axis, places[0], ...))
        picked = np.array(places).reshape(indices)
        return lambda arrays, out: (arrays[0].take(picked, axis),)

    def prepare(self, constants: Sequence[Constant | None], context: Context) -> Kernel | None:
        """Keep embeddings as they are stored, and compute the rows that are picked."""
        from deconv_ir.kernels.compressed import compressed_rows

        data, indices, axis = constants
        if not isinstance(data, LazyTensor) or indices is not None or axis is None:
            return None
        if normalize_axis(int(only(whole(axis), "axis")), data.ndim) or self.batch_dims:
            return None
        rows = compressed_rows(data)
        return None if rows is None else _StoredRows(self, rows)

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        """Pick the slices."""
        data, indices, axis_array = inputs
        axis = normalize_axis(int(only(axis_array, "axis")), data.ndim)
        return (self.pick(data, indices, axis),)

    def pick(self, data: Array | CompressedRows, indices: Array, axis: int) -> Array:
        """Pick slices along an axis."""
        extent = data.shape[axis]
        indices = indices.astype(np.int64, copy=False)
        if self.negative:
            indices = np.where(indices < 0, indices + extent, indices)
        outside = (indices < 0) | (indices >= extent)
        some_outside = bool(outside.any())
        if some_outside and not self.negative:
            raise InputError(
                f"index {int(indices[outside][0])} is outside axis {axis} of {extent} elements",
                rule="index-range",
            )
        safe = np.where(outside, 0, indices) if some_outside else indices
        batch = self.batch_of(indices.shape)
        if some_outside and not extent:
            shape = (*data.shape[:axis], *indices.shape[batch:], *data.shape[axis + 1 :])
            return np.full(shape, _blank(data.dtype), data.dtype)
        result = self._take(data, safe, axis, batch)
        if some_outside:
            # Gather-8, 'Detailed description': such slices are zeros.
            mask = outside.reshape(
                *indices.shape[:batch],
                *(1,) * (axis - batch),
                *indices.shape[batch:],
                *(1,) * (data.ndim - axis - 1),
            )
            result = np.where(mask, _blank(data.dtype), result)
        return result

    @staticmethod
    def _take(data: Array | CompressedRows, indices: Array, axis: int, batch: int) -> Array:
        if not isinstance(data, np.ndarray):
            return data.take(indices)
        if not batch:
            return np.take(data, indices, axis=axis)
        # Number the batch axes, and let the axes between them and `axis` follow the indices.
        rank = indices.ndim
        grids = batch_grids(data.shape[:batch], rank)
        moved = np.moveaxis(data, axis, batch)
        picked = moved[(*grids, indices)]
        between = axis - batch
        source = range(rank, rank + between)
        return np.moveaxis(picked, tuple(source), tuple(range(batch, batch + between)))


class _StoredRows(Kernel):
    """Slices along the first axis of data that stay as they are stored."""

    def __init__(self, operation: Operation, rows: CompressedRows) -> None:
        self._operation = operation
        self._rows = rows

    @property
    def packed_bytes(self) -> int:
        """Bytes of the data as they are stored."""
        return self._rows.nbytes

    @property
    def precision(self) -> str:
        """The types of its elements."""
        return self._rows.precision

    def tiled(self, operation: Operation) -> Kernel:
        """Return the same rows for the part of them that a tile needs."""
        return _StoredRows(operation, self._rows)

    def __call__(
        self, inputs: Arrays, out: Array | None = None, budget: ScratchpadBudget | None = None
    ) -> Arrays:
        """Pick rows, and compute their elements."""
        operation = self._operation
        if isinstance(operation, _Picked):
            result = self._rows.take(operation.places[0] + operation.box[0][0])
        else:
            assert isinstance(operation, Gather1), "a tile of one is one"
            result = operation.pick(self._rows, inputs[1], 0)
        if operation.box is not None:
            before = result.ndim - len(operation.box) + 1
            result = result[(slice(None),) * before + as_slices(operation.box[1:])]
        return (result,)


def _blank(dtype: Any) -> Any:
    """Return the element of slices that do not exist: 0, or the empty string."""
    return "" if dtype.hasobject else dtype.type(0)


@operation(
    "Gather-7(data, indices, axis)",
    "f32[2,4,5], i64[2,3], i64[]{1} -> f32[2,3,5] | batch_dims=1",
)
class Gather7(Gather1):
    """Slices of the data along an axis, for each batch."""

    batch_dims: int = attribute(integer(), 0)


@operation(
    "Gather-8(data, indices, axis)",
    "f32[2,4,5], i64[2,3], i64[]{-1} -> f32[2,4,3] | batch_dims=-1",
    "i64[4], i64[2]{-2,-1}, i64[]{0} -> i64[2]",
)
class Gather8(Gather1):
    """Slices of the data along an axis; negative indices count from the end.

    Indices out of range give zeros.
    """

    negative = True

    batch_dims: int = attribute(integer(), 0)
