"""Reductions along axes.

Sources: OpenVINO operation specifications, ReduceSum-1, ReduceMean-1,
ReduceMax-1, ReduceMin-1, ReduceProd-1, ReduceL1-4, ReduceL2-4,
ReduceLogicalAnd-1, ReduceLogicalOr-1.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Collection, Sequence
from typing import TYPE_CHECKING, Any, ClassVar

from deconv_ir.ir.boxes import Boxes, LayerTile, Span, Statistic, whole_box
from deconv_ir.ir.dtypes import Array
from deconv_ir.ir.geometry import Dim
from deconv_ir.ir.operation import Arrays, Call, Context, Infos, Operation, TensorInfo
from deconv_ir.ir.shapes import Shape, element_count, is_static, static
from deconv_ir.ops.axis_statistics import UfuncReduction
from deconv_ir.ops.base import attribute, boolean, operation
from deconv_ir.ops.checks import check_axes, check_type, integers, known_integers, normalize_axes
from deconv_ir.ops.numeric import highest, keeps_type, lowest, narrow, np, widen
from deconv_ir.ops.values import (
    ADD,
    FLOOR_DIVIDE,
    MAXIMUM,
    MINIMUM,
    MULTIPLY,
    OnValues,
    unknown_dims,
)

if TYPE_CHECKING:
    from deconv_ir.ops.allowance import Bounds, Case

Function = Callable[..., Any]
Reduce = Callable[[Array, "Array | None"], Array]


class Reduction(Operation):
    """A reduction along some axes; without axes, the data is unchanged."""

    formula = "data {shape[data]} reduced along axes {value[axes]}, keep_dims={self.keep_dims}"
    compute: ClassVar[Function]
    family: ClassVar[str] = "numeric"
    on_values: ClassVar[OnValues | None] = None
    mean: ClassVar[bool] = False
    adds: ClassVar[bool] = False

    keep_dims: bool = attribute(boolean(), False)

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        data, axes_info = inputs
        element_type = check_type(data, "data", self.family)
        axes = check_axes(axes_info, data.shape)
        if data.shape is None:
            return (TensorInfo(None, element_type),)
        if axes is None:
            shape: Shape = unknown_dims(len(data.shape)) if self.keep_dims else None
            return (TensorInfo(shape, element_type),)
        dims = self._kept(data.shape, axes)
        value = self._value(data, len(set(axes)))
        return (TensorInfo(dims, element_type, value),)

    def _kept(self, data: tuple[Dim, ...], axes: Collection[int]) -> tuple[Dim, ...]:
        """Return the shape of the output."""
        if self.keep_dims:
            return tuple(1 if i in axes else d for i, d in enumerate(data))
        return tuple(d for i, d in enumerate(data) if i not in axes)

    def _value(self, data: TensorInfo, taken: int) -> tuple[Dim, ...] | None:
        """Reduce a list of known integers."""
        rule = self.on_values
        if rule is None or not data.value or data.shape is None or len(data.shape) != 1:
            return None
        if not taken:
            return data.value
        total = functools.reduce(lambda a, b: rule(a, b, data.element_type), data.value)
        if self.mean:
            total = FLOOR_DIVIDE(total, len(data.value), data.element_type)
        return (total,)

    def accepts_out(self, inputs: Infos, output: TensorInfo) -> bool:
        """Write sums and means of the last axes in f32."""
        known, element_type = known_integers(inputs[1]), inputs[0].element_type
        if known is None or element_type is None or not is_static(inputs[0].shape):
            return False
        return self._sums_rows(static(inputs[0].shape), element_type.numpy(), known)

    def _sums_rows(self, data: tuple[int, ...], dtype: Any, axes: Sequence[int]) -> bool:
        taken = normalize_axes(axes, len(data))
        last = min(taken, default=0) == len(data) - len(taken)
        return self.adds and last and 0 not in data and bool(dtype == np.float32)

    def bind(self, inputs: Infos, outputs: Infos, context: Context) -> Call:
        """Find the axes once, if they are known."""
        known = known_integers(inputs[1])
        if known is None or not inputs[0].element_type or not keeps_type(inputs[0].element_type):
            return super().bind(inputs, outputs, context)
        found = self.function(static(inputs[0].shape), inputs[0].element_type.numpy(), known)
        return lambda arrays, out: (found(arrays[0], out),)

    def execute_into(self, inputs: Arrays, context: Context, out: Array) -> None:
        data = inputs[0]
        found = self.function(data.shape, data.dtype, integers(inputs[1]))(data, out)
        if found is not out:
            out[...] = found

    def function(self, data: tuple[int, ...], dtype: Any, axes: Sequence[int]) -> Reduce:
        """Return a function that reduces data of a shape and dtype, into an array if given."""
        taken = normalize_axes(axes, len(data))
        if self._sums_rows(data, dtype, axes):
            from deconv_ir.kernels.normalization import row_sums

            sums, shape = row_sums(mean=self.mean), self._kept(data, taken)
            if sums is not None:

                def write(x: Array, out: Array | None) -> Array:
                    out = np.empty(shape, np.float32) if out is None else out
                    sums(x, out)
                    return out

                return write
        reduce = functools.partial(type(self).compute, axis=taken, keepdims=self.keep_dims)
        return lambda x, out: narrow(reduce(x), dtype)

    def tile(self, boxes: Boxes, inputs: Infos, outputs: Infos, context: Context) -> LayerTile:
        (box,), axes = boxes, known_integers(inputs[1])
        if box is None or axes is None:
            return super().tile(boxes, inputs, outputs, context)
        data = static(inputs[0].shape)
        taken = set(normalize_axes(axes, len(data)))
        kept = iter(box)
        spans: list[Span] = []
        for axis, extent in enumerate(data):
            if axis in taken:
                spans.append((0, extent))
                if self.keep_dims:
                    next(kept)
            else:
                spans.append(next(kept))
        whole = whole_box(static(inputs[1].shape))
        seen = tuple(axis for axis in sorted(taken) if data[axis] > 1)
        return LayerTile((tuple(spans), whole), self, (), seen)

    def allowance(self, case: Case) -> Bounds | None:
        from deconv_ir.ops.allowance import SUM_ULPS, monotone, moved, relative, sums

        taken = case.inputs[0].size / max(1, case.outputs[0].size)
        if self.adds or self.type == "ReduceL1":
            return sums(case, taken, values=(0,))
        if self.type in ("ReduceMax", "ReduceMin"):
            return monotone(case)
        if self.type in ("ReduceProd", "ReduceL2"):
            return relative(case, SUM_ULPS + taken**0.5)
        return moved(case)

    def statistic(self, inputs: Infos, outputs: Infos) -> Statistic | None:
        axes, element_type = known_integers(inputs[1]), inputs[0].element_type
        if axes is None or element_type is None or not element_type.is_float:
            return None
        taken = normalize_axes(axes, len(static(inputs[0].shape)))
        count = math.prod(static(inputs[0].shape)[axis] for axis in taken)
        folds: dict[str, tuple[Any, Function, Function]] = {
            "ReduceSum": (np.add, _same, _same),
            "ReduceMean": (np.add, _same, lambda total: total / count),
            "ReduceL1": (np.add, np.abs, _same),
            "ReduceL2": (np.add, np.square, np.sqrt),
            "ReduceMax": (np.maximum, _same, _same),
            "ReduceMin": (np.minimum, _same, _same),
        }
        found = folds.get(self.type)
        return None if found is None else UfuncReduction(inputs[0], outputs[0], taken, *found)

    def scratch(self, inputs: Infos, outputs: Infos, context: Context) -> int:
        """Count squares in f64, and quotients in i64, of integers."""
        taken, element_type = super().scratch(inputs, outputs, context), inputs[0].element_type
        if element_type is None or not element_type.is_integer:
            return taken
        if self.type == "ReduceL2":
            return taken + 8 * element_count(static(inputs[0].shape))
        return taken + 5 * 8 * self.mean * element_count(static(outputs[0].shape))

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        data = widen(inputs[0])
        reduce = self.function(data.shape, data.dtype, integers(inputs[1]))
        with np.errstate(all="ignore"):
            return (narrow(reduce(data, None), inputs[0].dtype),)


def _same(x: Any) -> Any:
    return x


def _mean(x: Any, **how: Any) -> Any:
    """Mean; truncated toward zero for integers."""
    if x.dtype.kind == "f":
        count = math.prod(x.shape[axis] for axis in how["axis"])
        return np.add.reduce(x, **how) / x.dtype.type(count)
    total = np.sum(x, dtype=np.int64 if x.dtype.kind == "i" else np.uint64, **how)
    count = max(1, x.size // max(1, total.size))
    cut = np.abs(total) // count if x.dtype.kind == "i" else total // count
    return (np.sign(total) * cut if x.dtype.kind == "i" else cut).astype(x.dtype)


def _sum(x: Any, **how: Any) -> Any:
    return np.sum(x, dtype=x.dtype, **how)


def _l2(x: Any, **how: Any) -> Any:
    """Root of the sum of squares; truncated for integers."""
    if x.dtype.kind == "f":
        return np.sqrt(np.sum(x * x, dtype=x.dtype, **how))
    wide = x.astype(np.float64)
    np.square(wide, out=wide)
    return np.sqrt(np.sum(wide, **how)).astype(x.dtype)


def reduction(
    type_name: str,
    compute: Function,
    doc: str,
    *,
    version: str = "opset1",
    family: str = "numeric",
    on_values: OnValues | None = None,
    mean: bool = False,
) -> type[Reduction]:
    """Register a reduction; see `elementwise.register`.

    `compute` takes the array, and `axis` and `keepdims` like NumPy's reductions; with `mean`, the
    result on known values is divided by the number of elements.
    """
    number = version.removeprefix("opset")
    element = "boolean" if family == "boolean" else "f32"
    made = type(
        f"{type_name}{number}",
        (Reduction,),
        {
            "__doc__": f"{doc}\n\n"
            f"Source: OpenVINO operation specification, {type_name}-{number}.\n",
            "__module__": __name__,
            "compute": staticmethod(compute),
            "family": family,
            "on_values": on_values,
            "mean": mean,
            "adds": compute in (_sum, _mean),
            # Absolute values or squares are an array of their own.
            "scratch_ratios": (1.25, 2) if type_name in ("ReduceL1", "ReduceL2") else (0, 1.25),
        },
    )
    examples = (
        f"{element}[2,3,4], i64[2]{{0,-1}} -> {element}[3]",
        f"{element}[2,3,4], i64[1]{{1}} -> {element}[2,1,4] | keep_dims=true",
    )
    return operation(f"{type_name}-{number}(data, axes)", *examples)(made)


reduction("ReduceSum", _sum, "Sum; integers wrap.", on_values=ADD)
reduction(
    "ReduceProd",
    lambda x, **how: np.prod(x, dtype=x.dtype, **how),
    "Product; integers wrap.",
    on_values=MULTIPLY,
)
reduction(
    "ReduceMax",
    lambda x, **how: np.max(x, initial=lowest(x.dtype), **how),
    "Maximum; NaN if one element is.",
    on_values=MAXIMUM,
)
reduction(
    "ReduceMin",
    lambda x, **how: np.min(x, initial=highest(x.dtype), **how),
    "Minimum; NaN if one element is.",
    on_values=MINIMUM,
)
reduction(
    "ReduceMean", _mean, "Mean; integer means are truncated toward zero.", on_values=ADD, mean=True
)
reduction(
    "ReduceL1",
    lambda x, **how: np.sum(np.abs(x), dtype=x.dtype, **how),
    "Sum of absolute values; integers wrap.",
    version="opset4",
)
reduction("ReduceL2", _l2, "Square root of the sum of squares.", version="opset4")
reduction(
    "ReduceLogicalAnd",
    lambda x, **how: np.all(x, **how),
    "Whether all elements are true.",
    family="boolean",
)
reduction(
    "ReduceLogicalOr",
    lambda x, **how: np.any(x, **how),
    "Whether any element is true.",
    family="boolean",
)
