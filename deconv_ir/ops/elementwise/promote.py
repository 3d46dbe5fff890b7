"""OpenVINO ConvertPromoteTypes-14: two tensors in one element type that holds both."""

from __future__ import annotations

from deconv_ir.errors import ShapeError
from deconv_ir.ir.dtypes import F32, ElementType, parse_element_type
from deconv_ir.ir.operation import Arrays, Context, Infos, Operation, TensorInfo
from deconv_ir.ops.base import attribute, boolean, operation, result_type
from deconv_ir.ops.elementwise.convert import convert
from deconv_ir.ops.numeric import np
from deconv_ir.ops.values import actual


@operation(
    "ConvertPromoteTypes-14(a, b)",
    "i32[2,3], f64[4] -> f64[2,3], f64[4]",
    "i8[2], u8[3] -> i16[2], i16[3] | promote_unsafe=true",
)
class ConvertPromoteTypes(Operation):
    """Both inputs converted to the smallest element type that represents the values of both."""

    scratch_ratios = (1, 1)

    promote_unsafe: bool = attribute(boolean(), False)
    pytorch_scalar_promotion: bool = attribute(boolean(), False)
    u64_integer_promotion_target: ElementType = attribute(result_type(), F32)

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        found = self._common(*inputs)
        return tuple(TensorInfo(info.shape, found) for info in inputs)

    def _common(self, a: TensorInfo, b: TensorInfo) -> ElementType | None:
        one, other = a.element_type, b.element_type
        if one is None or other is None:
            return None
        if self.pytorch_scalar_promotion:
            if a.shape is None or b.shape is None:
                return one if one is other else None
            if (a.shape == ()) is not (b.shape == ()):
                scalar, tensor = (one, other) if a.shape == () else (other, one)
                return scalar if _category(scalar) > _category(tensor) else tensor
        found = self._promoted(one, other)
        if not self.promote_unsafe and not _is_safe(one, other, found):
            message = f"{one} and {other} have the common type {found} only with promote_unsafe"
            raise ShapeError(
                message, attribute="promote_unsafe", expected=one, actual=other, rule="element-type"
            )
        return found

    def _promoted(self, one: ElementType, other: ElementType) -> ElementType:
        small, large = sorted((one, other), key=lambda t: (_category(t), t.bits))
        if _category(small) != _category(large) or small is large:
            return large
        if large.is_float:
            return large if small.bits < large.bits else F32
        if small.kind == large.kind or (large.kind == "int" and small.bits < large.bits):
            return large
        unsigned = small if small.kind == "uint" else large
        if unsigned.bits == 64:
            return self.u64_integer_promotion_target
        return parse_element_type(f"i{max(2 * unsigned.bits, small.bits, large.bits)}")

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        found = self._common(*map(actual, inputs))
        assert found is not None, "arrays have element types"
        return [np.array(convert(array, found)) for array in inputs]


def _category(element_type: ElementType) -> int:
    """Order the kinds: booleans, integers, numbers with fractions."""
    return 2 if element_type.is_float else int(element_type.is_integer)


def _is_safe(one: ElementType, other: ElementType, found: ElementType) -> bool:
    """Whether the common type is one of the two, and wider than the integers it replaces."""
    if found is not one and found is not other:
        return False
    rest = other if found is one else one
    return not (found.is_float and rest.is_integer and rest.bits >= found.bits)
