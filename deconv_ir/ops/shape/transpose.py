"""OpenVINO Transpose-1."""

from __future__ import annotations

from deconv_ir.errors import ShapeError
from deconv_ir.ir.operation import Arrays, Call, Context, Infos, Sharing, TensorInfo
from deconv_ir.ir.shapes import format_shape
from deconv_ir.ops.base import operation
from deconv_ir.ops.binding import Lists, OfLists
from deconv_ir.ops.checks import axis_count, check_rank, check_type, integers, known_integers
from deconv_ir.ops.values import unknown_dims


@operation(
    "Transpose",
    "opset1",
    inputs=("arg", "input_order"),
    examples=("f32[2,3,4], i64[3]{0,2,1} -> f32[2,4,3]", "f32[2,3,4], i64[0]{} -> f32[4,3,2]"),
)
class Transpose(OfLists):
    """The axes of an array in another order; an empty `input_order`: backwards."""

    sharing = Sharing.PART

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        data, order_info = inputs
        check_type(order_info, "input_order", "integer")
        check_rank(order_info, "input_order", 1)
        if data.shape is None:
            count = axis_count(order_info)
            return (TensorInfo(unknown_dims(count) if count else None, data.element_type),)
        order = known_integers(order_info)
        if order is None:
            self._check_count(len(data.shape), axis_count(order_info))
            return (TensorInfo(unknown_dims(len(data.shape)), data.element_type),)
        axes = self.axes(order, len(data.shape))
        value = data.value if len(data.shape) < 2 else None
        return (TensorInfo(tuple(data.shape[a] for a in axes), data.element_type, value),)

    def _check_count(self, rank: int, count: int | None) -> None:
        if count is not None and count not in (0, rank):
            raise ShapeError(
                f"input_order must have {rank} elements, found {count}",
                expected=rank,
                actual=count,
                rule="transpose",
            )

    def axes(self, order: tuple[int, ...], rank: int) -> tuple[int, ...]:
        """Return the axes of the data in the order of the output.

        Raises
        ------
        ShapeError
            The order is no permutation of the axes.
        """
        if not order:
            return tuple(range(rank))[::-1]
        if sorted(order) != list(range(rank)):
            raise ShapeError(
                f"input_order {format_shape(order)} is no permutation of {rank} axes",
                expected=f"a permutation of 0..{rank - 1}",
                actual=format_shape(order),
                rule="transpose",
            )
        return order

    def explain(self, inputs: Infos, context: Context, output: int, axis: int) -> str | None:
        order = known_integers(inputs[1])
        data = inputs[0].shape
        if order is None or data is None:
            return None
        source = self.axes(order, len(data))[axis]
        return f"axis {source} of data {format_shape(data)}"

    def bind_known(self, shape: tuple[int, ...], lists: Lists, outputs: Infos) -> Call:
        order = self.axes(lists[0], len(shape))
        return lambda arrays, out: (arrays[0].transpose(order),)

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        """Reorder the axes (a view)."""
        return (inputs[0].transpose(self.axes(integers(inputs[1]), inputs[0].ndim)),)
