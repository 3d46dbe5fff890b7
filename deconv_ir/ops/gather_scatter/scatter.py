"""Elements written to an array: Scatter(ND|Elements)Update by indices, SliceScatter by a slice."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from deconv_ir.errors import InputError, ShapeError
from deconv_ir.ir.dtypes import Array
from deconv_ir.ir.geometry import Dim, bounds
from deconv_ir.ir.operation import Arrays, Context, Infos, Operation, TensorInfo
from deconv_ir.ir.shapes import Shape, compatible, format_shape
from deconv_ir.ops.base import attribute, boolean, choice_of, operation
from deconv_ir.ops.checks import (
    check_least_rank,
    check_rank,
    check_type,
    first_float_type,
    known_integer,
    merged_type,
    misfit,
    normalize_axis,
    only,
    shape_misfit,
)
from deconv_ir.ops.numeric import highest, lowest, narrow, np, widen
from deconv_ir.ops.shape.slicing import Slice

if TYPE_CHECKING:
    from deconv_ir.ops.allowance import Bounds, Case


class ScatterReduction(enum.Enum):
    """The function that combines an update with the old element."""

    NONE = "none"
    SUM = "sum"
    SUB = "sub"
    PROD = "prod"
    MIN = "min"
    MAX = "max"
    MEAN = "mean"


_ND_REDUCTIONS = {r.value: r for r in ScatterReduction if r is not ScatterReduction.MEAN}
_ELEMENTS_REDUCTIONS = {r.value: r for r in ScatterReduction if r is not ScatterReduction.SUB}


def wrap_indices(indices: Array, extent: int, what: str) -> Array:
    """Count negative indices from the end."""
    wide = indices.astype(np.int64, copy=False)
    wide = np.where(wide < 0, wide + extent, wide)
    outside = (wide < 0) | (wide >= extent)
    if outside.any():
        raise InputError(
            f"index {int(indices[outside][0])} is outside {what} of {extent} elements",
            rule="index-range",
        )
    return wide


def scatter(target: Array, where: Any, updates: Array, reduction: ScatterReduction) -> None:
    """Write updates into an array, in place, one after the other."""
    if reduction is ScatterReduction.NONE:
        target[where] = updates
        return
    functions: dict[ScatterReduction, Any] = {
        ScatterReduction.SUM: np.add,
        ScatterReduction.SUB: np.subtract,
        ScatterReduction.PROD: np.multiply,
        ScatterReduction.MIN: np.minimum,
        ScatterReduction.MAX: np.maximum,
    }
    if target.dtype == bool and reduction in (ScatterReduction.SUM, ScatterReduction.PROD):
        functions |= {ScatterReduction.SUM: np.logical_or, ScatterReduction.PROD: np.logical_and}
    functions[reduction].at(target, where, updates)


class _Scatter(Operation):
    """Data with some elements replaced: the shape is that of the data."""

    formula = "the shape of data, {shape[data]}"

    @property
    def moves(self) -> tuple[int, ...]:
        """Data and updates, unless they are combined."""
        return (
            (0, 2)
            if getattr(self, "reduction", ScatterReduction.NONE) is ScatterReduction.NONE
            else ()
        )

    def allowance(self, case: Case) -> Bounds | None:
        from deconv_ir.ops.allowance import composed, moved, sums

        reduction = getattr(self, "reduction", ScatterReduction.NONE)
        if reduction is ScatterReduction.PROD:
            return composed(case)
        if reduction in (ScatterReduction.SUM, ScatterReduction.SUB, ScatterReduction.MEAN):
            inputs = list(case.inputs)
            if reduction is ScatterReduction.SUB:  # the magnitudes of a difference
                inputs[2] = -np.abs(inputs[2])
            return sums(case._replace(inputs=inputs), inputs[2].size, values=(0,))
        return moved(case)


def _misfit(updates: Shape, wanted: Shape) -> ShapeError:
    shown = format_shape(wanted)
    return misfit("input-shape", "updates", f"have shape {shown}", updates, shown)


def _axis(data: TensorInfo, indices: TensorInfo, axis: TensorInfo) -> int | None:
    """Check indices and axis; return the axis counted from the start, if it is known."""
    check_type(indices, "indices", "integer")
    check_type(axis, "axis", "integer")
    found = known_integer(axis, "axis")
    if data.shape is None or found is None:
        return found
    return normalize_axis(found, len(data.shape))


@operation(
    "ScatterUpdate-3(data, indices, updates, axis)",
    "f32[4,5], i64[2,1]{3,0}, f32[4,2,1], i64[]{1} -> f32[4,5]",
)
class ScatterUpdate(_Scatter):
    """Slices of the data along an axis replaced."""

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        data, indices, updates, axis_info = inputs
        element_type = merged_type([data, updates], ["data", "updates"])
        axis = _axis(data, indices, axis_info)
        if data.shape is not None and axis is not None and indices.shape is not None:
            wanted = (*data.shape[:axis], *indices.shape, *data.shape[axis + 1 :])
            if not compatible(updates.shape, wanted):
                raise _misfit(updates.shape, wanted)
        return (TensorInfo(data.shape, element_type),)

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        data, indices, updates, axis_array = inputs
        axis = normalize_axis(int(only(axis_array, "axis")), data.ndim)
        found = wrap_indices(indices, data.shape[axis], f"axis {axis}")
        result = data.copy()
        where: tuple[Any, ...] = (*(slice(None),) * axis, found.ravel())
        result[where] = updates.reshape(*data.shape[:axis], found.size, *data.shape[axis + 1 :])
        return (result,)


@operation(
    "ScatterNDUpdate-3(data, indices, updates)",
    "f32[4,5,6], i64[2,2]{0,1,3,4}, f32[2,6] -> f32[4,5,6]",
)
class ScatterNDUpdate3(_Scatter):
    """Slices of the data at tuples of indices replaced."""

    scratch_ratios = (0, 1)

    reduction: ScatterReduction = ScatterReduction.NONE

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        data, indices, updates = inputs
        element_type = merged_type([data, updates], ["data", "updates"])
        check_type(indices, "indices", "integer")
        check_least_rank(indices, "indices", 1)
        if data.shape is not None and indices.shape is not None:
            depth = indices.shape[-1]
            if isinstance(depth, int):
                check_depth(depth, data.shape)
                wanted = (*indices.shape[:-1], *data.shape[depth:])
                if not compatible(updates.shape, wanted):
                    raise _misfit(updates.shape, wanted)
        return (TensorInfo(data.shape, element_type),)

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        data, indices, updates = inputs
        where = index_tuples(indices, data.shape, 0)
        result = widen(data).copy()
        scatter(result, where, widen(updates), self.reduction)
        return (narrow(result, data.dtype),)


def check_depth(depth: int, data: Sequence[Dim]) -> None:
    """Require a tuple of indices not to have more elements than the data has axes."""
    if depth > len(data):
        message = f"indices name {depth} axes, the data has {len(data)}"
        raise ShapeError(message, expected=f"<= {len(data)}", actual=depth, rule="rank")


def index_tuples(indices: Array, shape: Sequence[int], first: int) -> tuple[Array, ...]:
    """Split the tuples of indices into one array for each axis, from axis `first` on."""
    return tuple(
        wrap_indices(indices[..., i], shape[first + i], f"axis {first + i}")
        for i in range(indices.shape[-1])
    )


@operation(
    "ScatterNDUpdate-15(data, indices, updates)",
    "f32[4], i64[3,1]{0,1,0}, f32[3] -> f32[4] | reduction=sum",
)
class ScatterNDUpdate15(ScatterNDUpdate3):
    """Slices of the data at tuples of indices replaced or combined with updates."""

    reduction: ScatterReduction = attribute(choice_of(_ND_REDUCTIONS), ScatterReduction.NONE)


@operation(
    "ScatterElementsUpdate-3(data, indices, updates, axis)",
    "f32[4,5], i64[2,2]{0,1,2,3}, f32[2,2], i64[]{1} -> f32[4,5]",
)
class ScatterElementsUpdate3(_Scatter):
    """Elements of the data replaced at indices along an axis."""

    scratch_ratios = (0, 1)

    reduction: ScatterReduction = ScatterReduction.NONE
    use_init_val: bool = True

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        data, indices, updates, axis_info = inputs
        element_type = merged_type([data, updates], ["data", "updates"])
        axis = _axis(data, indices, axis_info)
        if data.shape is not None and indices.shape is not None:
            check_rank(indices, "indices", len(data.shape))
            for i, (there, asked) in enumerate(zip(data.shape, indices.shape, strict=True)):
                most = bounds(there)[1]
                if axis is not None and i != axis and most is not None and bounds(asked)[0] > most:
                    raise ShapeError(
                        f"indices {format_shape(indices.shape)} reach beyond axis {i} of data "
                        f"{format_shape(data.shape)}",
                        expected=f"<= {there}",
                        actual=asked,
                        rule="input-shape",
                    )
        if not compatible(indices.shape, updates.shape):
            raise _misfit(updates.shape, indices.shape)
        return (TensorInfo(data.shape, element_type),)

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        data, indices, updates, axis_array = inputs
        axis = normalize_axis(int(only(axis_array, "axis")), data.ndim)
        grid: list[Any] = list(np.indices(indices.shape, sparse=True))
        grid[axis] = wrap_indices(indices, data.shape[axis], f"axis {axis}")
        where = tuple(grid)
        reduction = self.reduction
        result, values = widen(data).copy(), widen(updates)
        with np.errstate(all="ignore"):
            if reduction is not ScatterReduction.NONE and not self.use_init_val:
                result[where] = _neutral(reduction, result.dtype)
            if reduction is ScatterReduction.MEAN:
                return (narrow(self._mean(result, where, values), data.dtype),)
            scatter(result, where, values, reduction)
        return (narrow(result, data.dtype),)

    def _mean(self, result: Array, where: Any, values: Array) -> Array:
        count = np.zeros(result.shape, np.int64)
        np.add.at(count, where, 1)
        np.add.at(result, where, values)
        total = np.maximum(count + self.use_init_val, 1)
        if result.dtype.kind == "f":
            return result / total.astype(result.dtype)  # type: ignore[no-any-return]
        return np.floor_divide(result, total).astype(result.dtype)


def _neutral(reduction: ScatterReduction, dtype: Any) -> Any:
    """Return the neutral element of a reduction."""
    if reduction is ScatterReduction.PROD:
        return 1
    if reduction not in (ScatterReduction.MIN, ScatterReduction.MAX):
        return 0
    if dtype.kind == "b":
        return reduction is ScatterReduction.MIN
    return highest(dtype) if reduction is ScatterReduction.MIN else lowest(dtype)


@operation(
    "ScatterElementsUpdate-12(data, indices, updates, axis)",
    "f32[4,5], i64[2,2]{0,0,2,3}, f32[2,2], i64[]{1} -> f32[4,5]"
    " | reduction=mean use_init_val=false",
)
class ScatterElementsUpdate12(ScatterElementsUpdate3):
    """Elements of the data replaced or combined with updates."""

    scratch_ratios = (4, 4)

    reduction: ScatterReduction = attribute(choice_of(_ELEMENTS_REDUCTIONS), ScatterReduction.NONE)
    use_init_val: bool = attribute(boolean(), True)


@operation(
    "SliceScatter-15(data, updates, start, stop, step, axes?)",
    "f32[2,5], f32[2,2], i64[1]{1}, i64[1]{-1}, i64[1]{2}, i64[1]{1} -> f32[2,5]",
    "i32[4,3], i32[2,3], i64[1]{3}, i64[1]{1}, i64[1]{-1} -> i32[4,3]",
)
class SliceScatter(Operation):
    """The data with a slice replaced by updates; default `axes`: the first ones."""

    formula = "the shape of data, {shape[data]}"

    @property
    def moves(self) -> tuple[int, ...]:
        """Data and updates."""
        return 0, 1

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        data, updates, *lists = inputs
        element_type = first_float_type(inputs[:2], self.inputs)
        (part,) = Slice().infer([data, *lists], context)
        if not compatible(part.shape, updates.shape):
            raise _slice_misfit(part.shape, updates.shape)
        return (TensorInfo(data.shape, element_type),)

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        data, updates, *lists = inputs
        result = data.copy()
        (part,) = Slice().execute([result, *lists], context)
        if part.shape != updates.shape:
            raise _slice_misfit(part.shape, updates.shape)
        part[...] = updates
        return (result,)


def _slice_misfit(part: Shape, updates: Shape) -> ShapeError:
    return shape_misfit("slice", "updates", updates, "must have the shape of the slice", part)
