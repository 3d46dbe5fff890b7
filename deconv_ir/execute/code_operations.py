"""Operations on codes of 8 bits, which `coded.py` puts in place of others."""

from __future__ import annotations

import abc
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from deconv_ir.ir.dtypes import F32, I8, U32, Array
from deconv_ir.ir.operation import Context, Infos, LayerPlan, Operation, TensorInfo
from deconv_ir.ir.quantization import CodeLayout, Levels
from deconv_ir.ir.record import field
from deconv_ir.ir.shapes import element_count, is_static, static
from deconv_ir.kernels.activation import Activation
from deconv_ir.kernels.copies import contiguous
from deconv_ir.kernels.quantized.codes import (
    bind_average,
    bind_combine,
    bind_pool,
    bind_quantize,
    bind_quantize_plain,
    coded_shape,
)
from deconv_ir.kernels.runtime.memory import empty

Call = Callable[[], object]
Shape = tuple[int, ...]

CODE_TYPES = {CodeLayout.FOURS: U32, CodeLayout.PLAIN: I8}
"""The element types of codes."""


def stored_shape(shape: Shape, layout: CodeLayout) -> Shape:
    """Return the shape of the codes of a tensor."""
    return coded_shape(shape) if layout is CodeLayout.FOURS else shape


class _OnCodes(Operation, abc.ABC):
    """An operation that reads or writes codes, those of four channels unless it has a layout."""

    checks_values = False
    taken = 1
    """Number of inputs that are read."""

    @abc.abstractmethod
    def made(self, *shapes: Shape) -> tuple[Shape, CodeLayout | None]:
        """Return the shape of the output, and the layout of its codes; None: numbers."""

    @abc.abstractmethod
    def call(self, inputs: Sequence[Array], out: Array) -> Call:
        """Return a call that computes contiguous arrays."""

    def accepts_out(self, inputs: Infos, output: TensorInfo) -> bool:
        """Write to an array."""
        return True

    def execute(self, inputs: Sequence[Array], context: Context) -> Sequence[Array]:
        """Compute."""
        shape, layout = self.made(*(array.shape for array in inputs[: self.taken]))
        out = empty(shape, F32.numpy() if layout is None else CODE_TYPES[layout].numpy())
        self.execute_into(inputs, context, out)
        return (out,)

    def execute_into(self, inputs: Sequence[Array], context: Context, out: Array) -> None:
        """Compute."""
        if out.size:
            self.call([contiguous(array) for array in inputs[: self.taken]], out)()

    def plan(self, inputs: Infos, outputs: Infos, context: Context) -> LayerPlan:
        """Plan calls that are made once."""
        return _CodesPlan(self, context)


class _CodesPlan(LayerPlan):
    def __init__(self, operation: _OnCodes, context: Context) -> None:
        super().__init__(operation.bind_any(context))
        self._operation = operation

    def bind(self, inputs: Sequence[Any], out: Any) -> Call | None:
        taken = inputs[: self._operation.taken]
        if not (out.size and all(array.flags.c_contiguous for array in (*taken, out))):
            return None
        return self._operation.call(taken, out)


class ToCodes(_OnCodes):
    """FakeQuantize, as codes."""

    levels: Levels = field()
    layout: CodeLayout = field(default=CodeLayout.FOURS)

    def made(self, *shapes: Shape) -> tuple[Shape, CodeLayout | None]:
        """Return the shape of the codes."""
        return stored_shape(shapes[0], self.layout), self.layout

    def call(self, inputs: Sequence[Array], out: Array) -> Call:
        """Quantise."""
        if self.layout is CodeLayout.PLAIN:
            return bind_quantize_plain(inputs[0], out, self.levels)
        return bind_quantize(inputs[0], out, self.levels)


class MaxOfCodes(_OnCodes):
    """MaxPool, of codes."""

    pool: Any = field()

    def made(self, *shapes: Shape) -> tuple[Shape, CodeLayout | None]:
        """Return the shape of the windows."""
        places = self.pool.geometry(shapes[0][2:])
        return (*shapes[0][:2], *(one.output for one in places)), CodeLayout.FOURS

    def call(self, inputs: Sequence[Array], out: Array) -> Call:
        """Pool."""
        pool = self.pool
        rows = zip(pool.kernel, pool.axes(), pool.geometry(inputs[0].shape[2:]), strict=True)
        windows = [(k, axis.stride, axis.dilation, one.pad_begin) for k, axis, one in rows]
        return bind_pool(inputs[0], out, windows)


class CombinedCodes(_OnCodes):
    """Add or Multiply, of codes: in f32, or, with an activation, as codes."""

    taken = 2

    given: tuple[Levels, Levels] = field()
    channels: int = field()
    multiplies: bool = field()
    levels: Levels | None = field(default=None)
    activation: Any = field(default=None)

    def made(self, *shapes: Shape) -> tuple[Shape, CodeLayout | None]:
        """Return the shape of the results."""
        shape = np.broadcast_shapes(*shapes)
        if self.levels is None:
            return (shape[0], self.channels, *shape[2:]), None
        return shape, CodeLayout.FOURS

    def call(self, inputs: Sequence[Array], out: Array) -> Call:
        """Add or multiply."""
        (first, second), given = inputs, self.given
        if first.size < second.size:
            first, second, given = second, first, given[::-1]
        activation = self.activation or Activation()

        def bound(first: Array, second: Array) -> Call:
            return bind_combine(
                first, second, out, given, self.levels, activation, multiplies=self.multiplies
            )

        one = (*first.shape[:2], *(1 for _ in first.shape[2:]))
        if second.shape in (first.shape, one):
            return bound(first, second)

        def broadcast() -> None:
            bound(*map(contiguous, np.broadcast_arrays(first, second)))()

        return broadcast

    def work(self, inputs: Infos, output: TensorInfo) -> int | None:
        """Count a sum or product for each element, and its activation."""
        steps = 1 if self.activation is None else 2
        return steps * element_count(static(output.shape)) if is_static(output.shape) else None


class AverageOfCodes(_OnCodes):
    """ReduceMean, ReduceSum or AvgPool of all positions, of codes: in f32."""

    given: Levels = field()
    channels: int = field()
    mean: bool = field()
    keeps_axes: bool = field()

    def made(self, *shapes: Shape) -> tuple[Shape, CodeLayout | None]:
        """Return the shape of the results."""
        ones = (1 for _ in shapes[0][2:]) if self.keeps_axes else ()
        return (shapes[0][0], self.channels, *ones), None

    def call(self, inputs: Sequence[Array], out: Array) -> Call:
        """Sum codes."""
        return bind_average(inputs[0], out, self.given, mean=self.mean)

    def work(self, inputs: Infos, output: TensorInfo) -> int | None:
        """Count a sum for each element."""
        shape = inputs[0].shape
        return 4 * element_count(static(shape)) if is_static(shape) else None
