"""OpenVINO MatMul-1 and Inverse-14."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from deconv_ir.errors import ShapeError
from deconv_ir.ir.boxes import Box, Boxes, LayerTile, Span, partial_axes, sole
from deconv_ir.ir.dtypes import F32, F64, I8, Array
from deconv_ir.ir.geometry import Dim
from deconv_ir.ir.lazy_tensor import Constant, LazyTensor
from deconv_ir.ir.operation import (
    Arrays,
    Call,
    Context,
    Epilogue,
    Infos,
    Kernel,
    LayerPlan,
    Operation,
    TensorInfo,
)
from deconv_ir.ir.options import Accuracy
from deconv_ir.ir.record import field
from deconv_ir.ir.shapes import (
    Shape,
    element_count,
    format_shape,
    intersect_dims,
    is_static,
    static,
)
from deconv_ir.ops.base import attribute, boolean, operation
from deconv_ir.ops.checks import check_least_rank, check_type, merged_type
from deconv_ir.ops.convolution.fusing import as_kernel_epilogue
from deconv_ir.ops.elementwise.broadcasting import BroadcastRule, broadcast_shapes
from deconv_ir.ops.numeric import narrow, np, widen
from deconv_ir.ops.tile_rules import broadcast_box

if TYPE_CHECKING:
    from deconv_ir.ir.quantization import LayerQuantization
    from deconv_ir.ir.scratchpad import ScratchpadBudget
    from deconv_ir.kernels.activation import Activation
    from deconv_ir.kernels.products import RightFactor
    from deconv_ir.ops.allowance import Bounds, Case


@operation(
    "MatMul-1(a, b)",
    "f32[5,1,2,3], f32[4,7,3] -> f32[5,4,2,7] | transpose_b=true",
    "f32[3], f32[3,4] -> f32[4]",
    "f32[3], f32[3] -> f32[] | transpose_a=true",
)
class MatMul(Operation):
    """Product of matrices or of stacks of matrices.

    A list on the left is a row, on the right a column; that axis is not in
    the output, and the list is not transposed.
    """

    transpose_a: bool = attribute(boolean(), False)
    transpose_b: bool = attribute(boolean(), False)

    takes_lazy = (1,)
    scratch_ratios = (0, 1.75)
    keeps_codes = True

    # The columns of a tile; None: all.
    columns: Span | None = field(default=None)

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        element_type = merged_type(inputs, self.inputs, "numeric")
        for info, name in zip(inputs, self.inputs, strict=True):
            check_least_rank(info, name, 1)
        return (TensorInfo(self._shape(inputs[0].shape, inputs[1].shape), element_type),)

    def _shape(self, a: Shape, b: Shape) -> Shape:
        if a is None or b is None:
            return None
        rows: tuple[Dim, ...]
        columns: tuple[Dim, ...]
        if len(a) == 1:
            rows, inner_a = (), a[0]
        else:
            row, inner_a = (a[-1], a[-2]) if self.transpose_a else (a[-2], a[-1])
            rows = (row,)
        if len(b) == 1:
            columns, inner_b = (), b[0]
        else:
            inner_b, column = (b[-1], b[-2]) if self.transpose_b else (b[-2], b[-1])
            columns = (column,)
        if intersect_dims(inner_a, inner_b) is None:
            message = (
                f"inner dims differ: a {format_shape(a)} has {inner_a}, "
                f"b {format_shape(b)} has {inner_b} "
                f"(transpose_a={self.transpose_a}, transpose_b={self.transpose_b})"
            )
            raise ShapeError(message, expected=inner_a, actual=inner_b, rule="matmul")
        try:
            stack = broadcast_shapes(a[:-2], b[:-2], BroadcastRule.NUMPY)
        except ShapeError as error:
            raise ShapeError(
                f"batch dims of a {format_shape(a)} and b {format_shape(b)} do not broadcast",
                rule="matmul",
            ) from error
        assert stack is not None, "both ranks are known"
        return (*stack, *rows, *columns)

    def explain(self, inputs: Infos, context: Context, output: int, axis: int) -> str | None:
        a, b = inputs
        return (
            f"a {format_shape(a.shape)}{' transposed' if self.transpose_a else ''} times "
            f"b {format_shape(b.shape)}{' transposed' if self.transpose_b else ''}"
        )

    def work(self, inputs: Infos, output: TensorInfo) -> int | None:
        """Count two operations for each output element and inner index."""
        a = inputs[0].shape
        if a is None or not is_static(a) or not is_static(output.shape):
            return None
        inner = static(a)[-2 if self.transpose_a and len(a) > 1 else -1]
        return 2 * element_count(static(output.shape)) * inner

    def bind(self, inputs: Infos, outputs: Infos, context: Context) -> Call:
        from deconv_ir.kernels.products import LEAST_FOR_THREADS

        a, b = (static(info.shape) for info in inputs)
        shape = static(outputs[0].shape)
        small = element_count(shape) * a[-1] < LEAST_FOR_THREADS if a else False
        floats = all(info.element_type in (F32, F64) for info in inputs)
        if not small or not floats or len(a) < 2 or len(b) != 2 or self.transpose_a:
            return super().bind(inputs, outputs, context)
        rows = element_count(a[:-1]), a[-1]
        turned = self.transpose_b

        def call(arrays: Arrays, out: Array | None) -> Arrays:
            left, right = arrays
            return ((left.reshape(rows) @ (right.T if turned else right)).reshape(shape),)

        return call

    def allowance(self, case: Case) -> Bounds | None:
        from deconv_ir.ops.allowance import sums

        shape, axis = case.inputs[0].shape, -2 if self.transpose_a else -1
        return sums(case, shape[axis if len(shape) > 1 else -1])

    def tile(self, boxes: Boxes, inputs: Infos, outputs: Infos, context: Context) -> LayerTile:
        box = sole(boxes)
        a, b = (static(info.shape) for info in inputs)
        spans = list(box)
        column = spans.pop() if len(b) > 1 else None
        row = spans.pop() if len(a) > 1 else None
        inner = (0, a[-2] if self.transpose_a and len(a) > 1 else a[-1])
        found: list[Box] = []
        for shape, outer, turned in (
            (a, row, self.transpose_a),
            (b, column, not self.transpose_b),
        ):
            if outer is None:
                found.append((inner,))
            else:
                matrix = (inner, outer) if turned else (outer, inner)
                found.append((*broadcast_box(tuple(spans), shape[:-2]), *matrix))
        # The order of BLAS's sums depends on the extents.
        exact = context.accuracy.is_direct
        blocked = partial_axes(box, static(outputs[0].shape)) if exact else ()
        tile = self
        if column is not None and column != (0, static(outputs[0].shape)[-1]):
            tile = self.replace(columns=column)
        return LayerTile(tuple(found), tile, blocked)

    def prepare(self, constants: Sequence[Constant | None], context: Context) -> Kernel | None:
        """Pack a constant matrix on the right."""
        return self.prepare_fused(constants, Epilogue(None, None, ()), context)

    def prepare_fused(
        self, constants: Sequence[Constant | None], epilogue: Epilogue, context: Context
    ) -> Kernel | None:
        """Pack a constant matrix on the right; sums begin with one number per column.

        An activation is applied while the sums are in cache.
        """
        from deconv_ir.kernels.bf16 import pack_rounded
        from deconv_ir.kernels.compressed import compressed_matrix
        from deconv_ir.kernels.products import pack_matrix

        found = self._fused(constants, epilogue)
        if found is None:
            return None
        factor: RightFactor | None = None
        if isinstance(found.matrix, LazyTensor):
            factor = compressed_matrix(found.matrix, transposed=self.transpose_b)
        if factor is None and context.accuracy is Accuracy.BF16:
            factor = pack_rounded(found.matrix, transposed=self.transpose_b)
        if factor is None:
            factor = pack_matrix(found.matrix, transposed=self.transpose_b)
        return None if factor is None else _Product(self, factor, found)

    def prepare_quantized(
        self,
        constants: Sequence[Constant | None],
        quantization: LayerQuantization,
        epilogue: Epilogue,
        context: Context,
    ) -> Kernel | str | None:
        """Pack the codes of a constant matrix on the right, with a scale for each column."""
        from deconv_ir.kernels.quantized.product import quantize_matrix

        b = constants[1]
        if b is not None and (b.ndim < 2 or element_count(b.shape[:-2]) != 1):
            return "the weights are not a matrix"
        found = self._fused(constants, epilogue)
        if found is None or not found.matrix.size:
            return None
        weights = quantization.weights
        scales, zero_points = (one.reshape((1, 1, *one.shape)[-2:]) for one in weights[:2])
        weights = weights._replace(scales=scales, zero_points=zero_points)
        factor = quantize_matrix(found.matrix, weights, quantization.levels, self.transpose_b)
        return factor if isinstance(factor, str) else _Product(self, factor, found)

    def _fused(self, constants: Sequence[Constant | None], epilogue: Epilogue) -> _Fused | None:
        """Return what a product with a constant matrix needs; None if that is not possible."""
        from deconv_ir.kernels.products import IDENTITY

        a, b = constants
        if a is not None or b is None or b.ndim < 2 or element_count(b.shape[:-2]) != 1:
            return None
        matrix = b.reshape(*b.shape[-2:])
        columns = matrix.shape[0 if self.transpose_b else 1]
        axes = 1 if epilogue.addend is None else max(1, epilogue.addend.ndim)
        fused = as_kernel_epilogue(epilogue, axes, axes - 1, columns, b.dtype)
        if epilogue.adds or fused is None:
            return None
        bias, activation = fused
        return _Fused(matrix, b.ndim - 2, bias, axes, activation or IDENTITY)

    def accepts_out(self, inputs: Infos, output: TensorInfo) -> bool:
        """Write products with a packed matrix to an array."""
        return True

    def scratch(self, inputs: Infos, outputs: Infos, context: Context) -> int:
        """Count the packed blocks of all threads, and copies of narrow floats."""
        from deconv_ir.kernels.products import scratch_bytes

        a, b = static(inputs[0].shape), inputs[1].shape
        inner = a[-2 if self.transpose_a and len(a) > 1 else -1]
        # The shape of a packed matrix is unknown here.
        columns = 1 if b is not None and len(b) == 1 else static(outputs[0].shape)[-1]
        codes = outputs[0].element_type == I8
        rows = element_count(a) // max(1, inner)
        packed = scratch_bytes(rows, inner, columns, writes_codes=codes)
        return packed + super().scratch(inputs, outputs, context)

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        """Multiply; integers wrap."""
        from deconv_ir.kernels.products import matmul

        a, b = map(widen, inputs)
        if self.transpose_a and a.ndim > 1:
            a = np.swapaxes(a, -1, -2)
        if self.transpose_b and b.ndim > 1:
            b = np.swapaxes(b, -1, -2)
        with np.errstate(all="ignore"):
            return (narrow(matmul(a, b), inputs[0].dtype),)


class _Fused(NamedTuple):
    """A product with a constant matrix, and the layers that follow."""

    matrix: Constant
    leading: int
    """Axes of the constant before those of the matrix, of extent 1."""
    bias: Array | None
    axes: int
    """Axes of the addend."""
    activation: Activation


class _Product(Kernel):
    """A product with a constant matrix."""

    def __init__(self, operation: MatMul, factor: RightFactor, fused: _Fused) -> None:
        self._operation = operation
        self._factor = factor
        # The matrix is packed.
        _, self._leading, self._bias, self._axes, self._activation = fused

    @property
    def packed_bytes(self) -> int:
        """Bytes of the matrix, in all forms that are kept."""
        return self._factor.nbytes + (0 if self._bias is None else self._bias.nbytes)

    @property
    def precision(self) -> str:
        """The types of its products."""
        return self._factor.precision

    @property
    def kernel(self) -> RightFactor:
        """The kernel with the matrix."""
        return self._factor

    def with_kernel(self, factor: RightFactor) -> _Product:
        """Return the product with another factor of the same matrix."""
        found = copy.copy(self)
        found._factor = factor
        return found

    def tiled(self, operation: Operation) -> Kernel:
        """Return the same matrix for the columns of a tile."""
        assert isinstance(operation, MatMul), "a tile of one is one"
        tile = copy.copy(self)
        tile._operation = operation
        return tile

    def plan(self, inputs: Infos, budget: ScratchpadBudget) -> LayerPlan:
        if self._operation.transpose_a or self._operation.columns is not None:
            return super().plan(inputs, budget)
        rows = element_count(static(inputs[0].shape)[:-1])
        multiply = self._factor.multiplier(self._bias, self._activation, rows)
        return _ProductPlan(self, multiply, self._factor.shape[1])

    def __call__(
        self, inputs: Arrays, out: Array | None = None, budget: ScratchpadBudget | None = None
    ) -> Arrays:
        """Multiply all rows at once."""
        a = inputs[0]
        if self._operation.transpose_a and a.ndim > 1:
            a = np.swapaxes(a, -1, -2)
        rows, width = a.reshape(-1, a.shape[-1]), self._factor.shape[1]
        columns = self._operation.columns
        if out is not None and columns is None and out.flags.c_contiguous:
            self._factor.multiply(rows, self._bias, self._activation, out.reshape(-1, width))
            return (out,)
        product = self._factor.multiply(rows, self._bias, self._activation)
        # The addend, or the constant, may have more axes than the data.
        more = max(0, self._axes - a.ndim, self._leading - max(0, a.ndim - 2))
        product = product.reshape(*(1,) * more, *a.shape[:-1], width)
        if columns is not None:
            product = product[..., slice(*columns)]
        if out is None:
            return (product,)
        out[...] = product
        return (out,)


class _ProductPlan(LayerPlan):
    """A plan of a product."""

    def __init__(
        self, product: _Product, multiply: Callable[[Array, Array], object], width: int
    ) -> None:
        super().__init__(product)
        self._multiply = multiply
        self._width = width

    def run(self, inputs: Arrays, out: Array | None) -> Arrays:
        call = None if out is None else self.bind(inputs, out)
        if call is None or out is None:
            return super().run(inputs, out)
        call()
        return (out,)

    def bind(self, inputs: Arrays, out: Array) -> Callable[[], object] | None:
        """Bind the product of contiguous rows."""
        a = inputs[0]
        if not (a.flags.carray and out.flags.carray and out.size):
            return None
        rows = a.reshape(-1, a.shape[-1])
        return functools.partial(self._multiply, rows, out.reshape(-1, self._width))


@operation(
    "Inverse-14(data)",
    "f32[2,3,3]{4,1,0,1,4,1,0,1,4,5,0,1,0,5,1,1,0,5} -> f32[2,3,3] | adjoint=false",
)
class Inverse(Operation):
    """Inverse of each matrix; with `adjoint`, of its transpose."""

    formula = "the shape of data, {shape[data]}"

    adjoint: bool = attribute(boolean(), False)

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        element_type = check_type(inputs[0], "data", "float")
        check_least_rank(inputs[0], "data", 2)
        shape = inputs[0].shape
        if shape is not None:
            side = intersect_dims(shape[-2], shape[-1])
            if side is None:
                message = f"data must hold square matrices, found {format_shape(shape)}"
                raise ShapeError(message, actual=format_shape(shape), rule="input-shape")
            shape = (*shape[:-2], side, side)
        return (TensorInfo(shape, element_type),)

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        data = widen(inputs[0])
        try:
            found = np.linalg.inv(data)
        except np.linalg.LinAlgError:
            raise ShapeError(
                "a matrix of data is singular and has no inverse", rule="singular"
            ) from None
        if self.adjoint:
            found = np.swapaxes(found, -1, -2)
        return (narrow(found, inputs[0].dtype),)
