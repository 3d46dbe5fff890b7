"""OpenVINO StringTensorPack-15 and StringTensorUnpack-15: strings from bytes, and to bytes."""

from __future__ import annotations

from deconv_ir.ir.dtypes import I32, STRING, U8
from deconv_ir.ir.geometry import UNKNOWN
from deconv_ir.ir.operation import Arrays, Context, Infos, Operation, TensorInfo
from deconv_ir.ir.shapes import Shape, element_count, intersect, static
from deconv_ir.ops.base import operation
from deconv_ir.ops.checks import check_shape, merged_type, misfit
from deconv_ir.ops.numeric import np


@operation(
    "StringTensorPack-15(begins, ends, symbols)",
    "i64[2]{0,2}, i64[2]{2,3}, u8[3]{65,66,67} -> string[2]",
    "i32[2,1]{1,0}, i32[2,1]{1,3}, u8[3]{65,66,67} -> string[2,1]",
)
class StringTensorPack(Operation):
    """Strings from the positions where each begins and ends among bytes of UTF-8."""

    formula = "the shape of begins, {shape[begins]}"

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        merged_type(inputs[:2], self.inputs, "integer")
        check_shape(inputs[1], "ends", inputs[0].shape)
        check_shape(inputs[2], "symbols", (UNKNOWN,))
        found = inputs[2].element_type
        if found is not None and found is not U8:
            raise misfit("element-type", "symbols", "be u8", found, U8)
        shape: Shape = intersect(inputs[0].shape, inputs[1].shape)
        return (TensorInfo(shape, STRING),)

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        begins, ends, symbols = inputs
        text = np.ascontiguousarray(symbols).data
        output = np.empty(begins.size, object)
        for place, (start, end) in enumerate(zip(begins.flat, ends.flat, strict=True)):
            if not 0 <= start <= end <= len(text):
                must = f"be ranges within 0 to {len(text)}"
                raise misfit("index", "begins and ends", must, (int(start), int(end)), must)
            output[place] = str(text[start:end], "utf-8", "surrogateescape")
        return (output.reshape(begins.shape),)

    def scratch(self, inputs: Infos, outputs: Infos, context: Context) -> int:
        """Count Python's strings of ranges that do not overlap: up to four bytes a character."""
        strings, symbols = (element_count(static(i.shape)) for i in (outputs[0], inputs[2]))
        return 80 * strings + 4 * symbols


@operation("StringTensorUnpack-15(data)", "string[3] -> i32[3], i32[3], u8[0..]")
class StringTensorUnpack(Operation):
    """The positions where each string begins and ends, and the bytes of all, in UTF-8."""

    formula = "data {shape[data]}, and its bytes"

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        found = inputs[0].element_type
        if found is not None and found is not STRING:
            raise misfit("element-type", "data", "be string", found, STRING)
        shape = inputs[0].shape
        return TensorInfo(shape, I32), TensorInfo(shape, I32), TensorInfo((UNKNOWN,), U8)

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        (data,) = inputs
        begins, ends = (np.zeros(data.size, np.int32) for _ in range(2))
        text = bytearray()
        for place, string in enumerate(data.flat):
            begins[place] = len(text)
            text += str(string).encode("utf-8", "surrogateescape")
            if len(text) >= 2**31:
                must = "have fewer than 2^31 bytes, which i32 can count"
                raise misfit("oversize", "data", must, len(text), "< 2147483648")
            ends[place] = len(text)
        return (*(p.reshape(data.shape) for p in (begins, ends)), np.frombuffer(text, np.uint8))
