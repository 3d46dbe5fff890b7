"""TopK-1, -3, -11 and NonZero-3: indices that depend on values."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING

from deconv_ir.errors import ShapeError
from deconv_ir.ir.dtypes import I32, I64, Array, ElementType
from deconv_ir.ir.geometry import UNKNOWN, Dim, bounds, interval
from deconv_ir.ir.operation import Arrays, Context, Infos, Operation, TensorInfo
from deconv_ir.ir.shapes import element_count, static
from deconv_ir.ops.base import attribute, boolean, choice, integer, operation, result_type
from deconv_ir.ops.checks import check_single, check_type, normalize_axis, only, product
from deconv_ir.ops.numeric import narrow, np, widen
from deconv_ir.ops.values import as_dim

if TYPE_CHECKING:
    from deconv_ir.ops.allowance import Bounds, Case


class Extreme(enum.Enum):
    """The elements that are selected."""

    MAX = "max"
    MIN = "min"


class Order(enum.Enum):
    """The order of the selected elements."""

    NONE = "none"
    INDEX = "index"
    VALUE = "value"


_EXAMPLE = "f32[2,5], i64[]{3} -> f32[2,3], %s[2,3] | axis=1 mode=%s sort=%s%s"


@operation("TopK-1(data, k)", _EXAMPLE % ("i32", "max", "value", ""))
class TopK1(Operation):
    """The k greatest or smallest elements along an axis, and their indices."""

    scratch_ratios = (3, 4.5)

    # The first of equal elements is considered the greater, or the smaller; NaN is considered
    # greater than any number.

    formula = "data {shape[data]}, k {element[k]} in place of axis {self.axis}"

    axis: int = attribute(integer())
    mode: Extreme = attribute(choice(Extreme))
    sort: Order = attribute(choice(Order))

    index_element_type: ElementType = attribute(result_type(), I32)

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        data, k_info = inputs
        element_type = check_type(data, "data", "numeric")
        check_single(k_info, "k", "integer")
        if data.shape is None:
            return (TensorInfo(None, element_type), TensorInfo(None, self.index_element_type))
        axis = normalize_axis(self.axis, len(data.shape))
        k = k_info.value[0] if k_info.value else UNKNOWN
        shape = (*data.shape[:axis], self._count(data.shape[axis], k), *data.shape[axis + 1 :])
        return (TensorInfo(shape, element_type), TensorInfo(shape, self.index_element_type))

    def allowance(self, case: Case) -> Bounds | None:
        from deconv_ir.ops.allowance import hull

        return [hull(case, 0), 0.0]

    def valid(self, case: Case, output: int, array: Array) -> Array | None:
        """Accept any of equal elements; without an order, any order."""
        data, exact = case.inputs[0], case.outputs[0]
        axis = normalize_axis(self.axis, data.ndim)
        if self.sort is not Order.VALUE and output == 0:
            # The chosen elements, in the order of their indices or in any.
            same = _equal(np.sort(array, axis), np.sort(exact, axis))
            whole: Array = np.broadcast_to(same.all(axis, keepdims=True), exact.shape)
            return whole
        if output == 0 or not array.size:
            return None
        inside = (array >= 0) & (array < data.shape[axis])
        once = np.sort(array, axis)
        different = (np.diff(once, axis=axis) != 0).all(axis, keepdims=True)
        chosen = np.take_along_axis(data, np.where(inside, array, 0).astype(np.int64), axis)
        if self.sort is Order.NONE:
            right = _equal(np.sort(chosen, axis), np.sort(exact, axis)).all(axis, keepdims=True)
        elif self.sort is Order.INDEX:
            ordered = (np.diff(array, axis=axis) > 0).all(axis, keepdims=True)
            right = _equal(np.sort(chosen, axis), np.sort(exact, axis)).all(axis, keepdims=True)
            right = right & ordered
        else:
            right = _equal(chosen, exact)
            if getattr(self, "stable", False):
                right = right & (array == case.outputs[1])
        delta = case.perturbation(0, 0)
        if delta is not None:
            slack = 2 * np.take_along_axis(delta, np.where(inside, array, 0).astype(np.int64), axis)
            right = right | (np.abs(chosen - exact) <= slack)
        valid: Array = inside & different & right
        return valid

    @staticmethod
    def _count(extent: Dim, k: Dim) -> Dim:
        high = bounds(extent)[1]
        if isinstance(k, int) and (k < 0 or (high is not None and k > high)):
            message = f"k is {k}, the axis has {extent} elements"
            raise ShapeError(message, expected=f"0..{extent}", actual=k, rule="top-k")
        if isinstance(k, int):
            return k
        low, most = bounds(as_dim(k))
        if high is not None:
            most = high if most is None else min(high, most)
        return interval(min(low, most) if most is not None else low, most)

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        """Select k elements; NumPy's sort is used only where they are many."""
        from deconv_ir.kernels.selection import select

        data = inputs[0]
        k = int(only(inputs[1], "k"))
        axis = normalize_axis(self.axis, data.ndim)
        self._count(data.shape[axis], k)
        smallest, by_index = self.mode is Extreme.MIN, self.sort is Order.INDEX
        values, index = select(
            widen(data), axis, k,
            smallest=smallest, by_index=by_index, index_type=self.index_element_type.numpy(),
        )  # fmt: skip
        return narrow(values, data.dtype), index


def _equal(a: Array, b: Array) -> Array:
    """Whether elements are equal, or both NaN."""
    same: Array = (a == b) | ((a != a) & (b != b))
    return same


@operation("TopK-3(data, k)", _EXAMPLE % ("i64", "min", "index", " index_element_type=i64"))
class TopK3(TopK1):
    """The k greatest or smallest elements along an axis, and their indices."""


@operation("TopK-11(data, k)", _EXAMPLE % ("i32", "max", "value", " stable=true"))
class TopK11(TopK1):
    """The k greatest or smallest elements along an axis, and their indices."""

    stable: bool = attribute(boolean(), False)


@operation("NonZero-3(data)", "f32[2,3] -> i64[2,0..6] | output_type=i64")
class NonZero(Operation):
    """Indices of the elements that are not 0, one row per axis."""

    formula = "rank and number of elements of data {shape[data]}"

    output_type: ElementType = attribute(result_type(), I64)

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        shape = inputs[0].shape
        if shape is None:
            return (TensorInfo((UNKNOWN, UNKNOWN), self.output_type),)
        most = bounds(product(*shape))[1]
        return (TensorInfo((len(shape), interval(0, most)), self.output_type),)

    def scratch(self, inputs: Infos, outputs: Infos, context: Context) -> int:
        """Count the indices element by element, and axis by axis in i64."""
        shape = static(inputs[0].shape)
        copies = 1 if self.output_type is I64 else 2
        return 8 * copies * len(shape) * element_count(shape)

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        data = inputs[0]
        if not data.ndim:
            # A scalar has no axes, but one column if it is not 0.
            return (np.zeros((0, int(data != 0)), self.output_type.numpy()),)
        return (np.stack(np.nonzero(data)).astype(self.output_type.numpy()),)
