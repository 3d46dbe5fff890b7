"""OpenVINO FakeConvert-13: values rounded to an 8-bit floating-point type."""

from __future__ import annotations

from deconv_ir.ir.dtypes import ElementType, parse_element_type
from deconv_ir.ir.operation import Arrays, Context, Infos, Operation, TensorInfo
from deconv_ir.ir.shapes import compatible, intersect
from deconv_ir.ops.base import Kind, attribute, one_of, operation
from deconv_ir.ops.checks import merged_type, shape_misfit
from deconv_ir.ops.elementwise.broadcasting import BroadcastRule, broadcast_shapes, not_broadcast
from deconv_ir.ops.numeric import narrow, np, widen

_LARGEST = {"f8e4m3": 448.0, "f8e5m2": 57344.0}


def _parse(text: str) -> ElementType:
    if text.strip() not in _LARGEST:
        raise ValueError(text)
    return parse_element_type(text.strip())


@operation(
    "FakeConvert-13(data, scale, shift?)",
    "f32[2,3], f32[3], f32[3] -> f32[2,3] | destination_type=f8e4m3",
)
class FakeConvert(Operation):
    """data * scale - shift rounded to 8 bits with saturation, then scaled back."""

    scratch_ratios = (1.75, 2.5)

    formula = "the shape of data, {shape[data]}"

    destination_type: ElementType = attribute(
        Kind(_parse, one_of(_LARGEST), lambda value: str(value.name))
    )

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        element_type = merged_type(inputs, self.inputs, "float")
        shape = inputs[0].shape
        for info, name in zip(inputs[1:], self.inputs[1:], strict=False):
            if not compatible(info.shape, inputs[1].shape):
                must, wanted = "must have the shape of scale", inputs[1].shape
                raise shape_misfit("input-shape", "shift", info.shape, must, wanted)
            both = broadcast_shapes(shape, info.shape, BroadcastRule.NUMPY, 0)
            if not compatible(both, shape):
                raise not_broadcast(name, info.shape, shape)
            shape = intersect(both, shape)
        return (TensorInfo(shape, element_type),)

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        data, scale, *rest = map(widen, inputs)
        shift = rest[0] if rest else scale.dtype.type(0)
        largest = _LARGEST[self.destination_type.name]
        scaled = np.clip(data * scale - shift, -largest, largest)
        rounded = scaled.astype(self.destination_type.numpy()).astype(data.dtype)
        return (narrow((rounded + shift) / scale, inputs[0].dtype),)
