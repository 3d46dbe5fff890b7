"""OpenVINO Convert-1."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from deconv_ir.ir.dtypes import Array, ElementType
from deconv_ir.ir.geometry import Dim
from deconv_ir.ir.lazy_tensor import Codes, LazyTensor
from deconv_ir.ir.operation import (
    Arrays,
    Context,
    Infos,
    Operands,
    Operation,
    Sharing,
    TensorInfo,
)
from deconv_ir.ir.shapes import element_count, static
from deconv_ir.ops.base import attribute, operation, result_type
from deconv_ir.ops.numeric import np
from deconv_ir.ops.values import rounded

if TYPE_CHECKING:
    from deconv_ir.ir.boxes import Boxes, LayerTile
    from deconv_ir.ir.expression import Expression
    from deconv_ir.ops.allowance import Bounds, Case


@operation("Convert-1(data)", "f16[2,3] -> f32[2,3] | destination_type=f32")
class Convert(Operation):
    """The same values in another element type."""

    formula = "the shape of the input, {shape[data]}"
    sharing = Sharing.WHOLE

    destination_type: ElementType = attribute(result_type())

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        data, to = inputs[0], self.destination_type
        value, reals = data.value, None
        if to is not None and to.is_float:
            reals = _as_reals(data, to)
        elif data.reals is not None and all(map(math.isfinite, data.reals)):
            value = tuple(map(int, data.reals))
        if value is not None and not _fits(value, to):
            value = None
        return (TensorInfo(data.shape, to, value, reals),)

    def allowance(self, case: Case) -> Bounds | None:
        from deconv_ir.ops.allowance import elementwise

        (allowed,) = elementwise(case, arguments=0, ulps=0)
        data, to = case.inputs[0], self.destination_type
        if data.dtype.kind == "f" and to.is_integer:
            # No document defines the result beyond the range.
            low, high = _range(to)
            allowed = np.where((data > low - 1) & (data < high + 1), allowed, np.inf)
        return [allowed]

    def tile(self, boxes: Boxes, inputs: Infos, outputs: Infos, context: Context) -> LayerTile:
        from deconv_ir.ops.tile_rules import elementwise_tile

        return elementwise_tile(self, boxes, inputs)

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        """Convert: integers wrap, floats are truncated toward zero for integers."""
        return (convert(inputs[0], self.destination_type),)

    def scratch(self, inputs: Infos, outputs: Infos, context: Context) -> int:
        """Count the numbers of f64, truncated and in range, through which floats get integers."""
        given, to = inputs[0].element_type, self.destination_type
        if given is None or not (given.is_float and to.is_integer):
            return 0
        return 20 * element_count(static(inputs[0].shape))

    def compile(self, expression: Expression, operands: Operands, inputs: Infos) -> int | None:
        (value,), to = operands, self.destination_type
        if to.kind == "bool":
            return expression.apply("not_equal", value, expression.constant(0.0))
        names = {"f32": "copy", "f16": "to_f16", "bf16": "to_bf16"}
        return expression.apply(names.get(to.name, ""), value)

    def as_lazy_tensor(self, inputs: Sequence[LazyTensor], context: Context) -> LazyTensor | None:
        (data,), to = inputs, self.destination_type
        if to is None or to.is_packed:
            return None
        return LazyTensor(
            data.shape,
            to.numpy(),
            lambda i, j: convert(data.read(i, j), to),
            codes=_converted(data, to),
        )


def _converted(data: LazyTensor, to: ElementType) -> Codes | None:
    """Return the codes of elements in f32, or of codes up to 8 bits in f16; None: other types."""
    codes = data.codes
    if codes is None or to.name == "f32":
        return codes
    plain = codes.scale is None and codes.zero is None and codes.element_type.bits <= 8
    return codes._replace(halves=True) if to.name == "f16" and plain else None


def _range(to: ElementType) -> tuple[float, float]:
    """Return the smallest and the largest number of an integer type."""
    if to.kind == "int":
        return -(2.0 ** (to.bits - 1)), 2.0 ** (to.bits - 1) - 1
    return 0.0, 2.0**to.bits - 1


def _as_reals(data: TensorInfo, to: ElementType) -> tuple[float, ...] | None:
    """Return the elements as floats, if all are known and the type holds them exactly."""
    if data.reals is not None:
        known: tuple[float, ...] = data.reals
    elif data.value is not None and all(isinstance(v, int) for v in data.value):
        known = tuple(float(v) for v in data.value if isinstance(v, int))
    else:
        return None
    return rounded(known, to)


def _fits(value: tuple[Dim, ...], element_type: ElementType | None) -> bool:
    if element_type is None or not element_type.is_integer:
        return False
    unsigned = element_type.kind == "uint"
    low = 0 if unsigned else -(2 ** (element_type.bits - 1))
    high = 2 ** (element_type.bits - (not unsigned)) - 1
    if unsigned and any(not isinstance(d, int) and d.min < 0 for d in value):
        return False
    return all(low <= d <= high for d in value if isinstance(d, int))


def convert(data: Array, to: ElementType) -> Array:
    """Convert an array to another element type, as OpenVINO's Convert-1 does."""
    if to.name == "u1":
        return data.astype(bool).astype(np.uint8)
    dtype = to.numpy()
    if data.dtype == dtype:
        return data
    with np.errstate(all="ignore"):
        if to.kind == "bool":
            return data.astype(bool)
        if to.is_integer and data.dtype.kind not in "iub":
            return _float_to_integer(data, to)
        return data.astype(dtype, "C")


def _float_to_integer(data: Array, to: ElementType) -> Array:
    """Truncate toward zero to i32 (i64 for the widest types), then wrap.

    Values that this type cannot hold, including NaN, become its smallest value on every machine, as
    on x86.
    """
    through = np.dtype(np.int64 if to.bits == 64 or to.name == "u32" else np.int32)
    wide = np.trunc(data.astype(np.float64))
    limit = 2.0 ** (through.itemsize * 8 - 1)
    inside = (wide >= -limit) & (wide < limit)
    wide = np.where(inside, wide, -limit)
    return wide.astype(through).astype(to.numpy(), copy=False)
