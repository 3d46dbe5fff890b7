"""OpenVINO Constant-1: arrays from the weights file."""

from __future__ import annotations

import itertools
import struct
from collections.abc import Sequence
from typing import Any

from deconv_ir.errors import WeightsError
from deconv_ir.ir.dtypes import Array, ElementType
from deconv_ir.ir.geometry import Dim
from deconv_ir.ir.lazy_tensor import Codes, LazyTensor
from deconv_ir.ir.operation import Arrays, Context, Infos, Operation, TensorInfo
from deconv_ir.ir.shapes import Shape, element_count, format_shape, static
from deconv_ir.ops.base import attribute, element_type, integer, operation, shape
from deconv_ir.ops.checks import VALUE_LIMIT
from deconv_ir.ops.numeric import np

_CAST = {"i8": "b", "u8": "B", "i16": "h", "u16": "H", "i32": "i", "u32": "I"}
_CAST |= {"i64": "q", "u64": "Q", "boolean": "B", "f16": "e", "f32": "f", "f64": "d"}
_REAL_CODES = "efd"

# OpenVINO's NF4 table: quantiles of the normal distribution (QLoRA, Dettmers
# et al. 2023, appendix E).
NF4 = (
    -1.0,
    -0.6961928009986877,
    -0.5250730514526367,
    -0.39491748809814453,
    -0.28444138169288635,
    -0.18477343022823334,
    -0.09105003625154495,
    0.0,
    0.07958029955625534,
    0.16093020141124725,
    0.24611230194568634,
    0.33791524171829224,
    0.44070982933044434,
    0.5626170039176941,
    0.7229568362236023,
    1.0,
)


@operation("Const-1()")
class Const(Operation):
    """An array in the weights file."""

    element_type: ElementType | None = attribute(element_type())
    shape: Shape = attribute(shape())
    offset: int = attribute(integer(0))
    size: int = attribute(integer(0))

    def check(self) -> int:
        """Check that the attributes agree, and return the number of elements."""
        if self.element_type is None:
            raise WeightsError("a constant must have an element type", rule="const-size")
        try:
            count = element_count(static(self.shape))
        except ValueError:
            raise WeightsError(
                f"a constant must have a static shape, found {format_shape(self.shape)}",
                actual=format_shape(self.shape),
                rule="const-size",
            ) from None
        needed = self.element_type.size_of(count)
        if needed > self.size:
            raise WeightsError(
                f"size is {self.size} bytes, but {self.element_type}{format_shape(self.shape)} "
                f"takes {needed}",
                attribute="size",
                expected=needed,
                actual=self.size,
                rule="const-size",
            )
        return count

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        count = self.check()
        value: tuple[Dim, ...] | None = None
        reals: tuple[float, ...] | None = None
        code = _CAST.get(self.element_type.name) if self.element_type else None
        if count == 0:
            value = ()
        elif code is not None and count <= VALUE_LIMIT and context.weights is not None:
            form = f"<{count}{code}"
            found = struct.unpack(form, context.weights.read(self.offset, struct.calcsize(form)))
            if code in _REAL_CODES:
                reals = found
            else:
                value = found
        return (TensorInfo(self.shape, self.element_type, value, reals),)

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        """Return the array: a read-only view of the file, unless it must be unpacked."""
        count = self.check()
        assert self.element_type is not None
        if context.weights is None and count:
            raise WeightsError("the model has constants, but no weights file was found")
        if context.weights is None or not count:
            data = memoryview(b"")
        else:
            strings = self.element_type.kind == "string"
            size = self.size if strings else self.element_type.size_of(count)
            data = context.weights.read(self.offset, size)
            if strings:
                return (_strings(data, count).reshape(static(self.shape)),)
        array = unpack(data, self.element_type, count)
        return (array.reshape(static(self.shape)),)

    def as_lazy_tensor(self, inputs: Sequence[LazyTensor], context: Context) -> LazyTensor | None:
        """Return the array; elements that share a byte are unpacked when they are read."""
        self.check()
        weights, element_type = context.weights, self.element_type
        assert element_type is not None
        shape, name = static(self.shape), element_type.name
        if weights is None or name in ("u3", "u6") or element_type.kind == "string":
            return None
        dtype, bits = element_type.numpy(), element_type.bits

        def read_bytes(start: int, stop: int) -> memoryview:
            first = start * bits // 8
            return weights.read(self.offset + first, -(-stop * bits // 8) - first)

        codes = None
        if name in ("f16", "bf16") or (bits in (2, 4, 8) and name != "boolean"):
            codes = Codes(
                element_type,
                lambda i, j: np.frombuffer(read_bytes(i, j), np.uint8),
                lambda: _numbers(element_type),
                shape,
            )

        def read(start: int, stop: int) -> Array:
            before = start % max(1, 8 // bits)
            return unpack(read_bytes(start, stop), element_type, stop - start + before)[before:]

        descriptor = getattr(weights, "descriptor", None)
        whole = self.offset + self.size <= getattr(weights, "file_bytes", 0)
        file = None
        if descriptor is not None and whole and not element_type.is_packed:
            file = descriptor, self.offset
        return LazyTensor(shape, dtype, read, file=file, codes=codes)


def _numbers(element_type: ElementType) -> Array:
    """Return the numbers of the codes of 2, 4 or 8 bits, in f32."""
    bits = element_type.bits
    codes = np.arange(1 << bits, dtype=np.uint8).reshape(-1, 8 // bits)
    shifts = np.arange(8 // bits, dtype=np.uint8) * bits
    every = memoryview(np.bitwise_or.reduce(codes << shifts, axis=1).astype(np.uint8))
    return unpack(every, element_type, 1 << bits).astype(np.float32)


def _strings(data: memoryview, count: int) -> Array:
    """Make an array of strings from their number, count + 1 offsets and the bytes, little-endian.

    Bytes that are not UTF-8 become surrogates, as in file names, which are written as they were.
    """
    head = 4 * (count + 2)
    if len(data) < head:
        message = f"size is {len(data)} bytes, but {count} strings take at least {head}"
        raise WeightsError(
            message, attribute="size", expected=head, actual=len(data), rule="const-size"
        )
    number, *ends = np.frombuffer(data, "<u4", count + 2).tolist()
    text = data[head:].tobytes()
    if number != count or ends[0] or sorted(ends) != ends or ends[-1] > len(text):
        message = f"the bytes are not those of {count} strings: their number or offsets are wrong"
        raise WeightsError(message, expected=count, actual=number, rule="const-size")
    found = np.empty(count, object)
    for i, (start, end) in enumerate(itertools.pairwise(ends)):
        found[i] = text[start:end].decode("utf-8", "surrogateescape")
    return found


def unpack(data: memoryview, element_type: ElementType, count: int) -> Array:
    """Make an array of packed or plain elements, little-endian.

    Of the elements that share a byte, u1 begin at the highest bit, u2, u4, i4, nf4 and f4e2m1
    at the lowest; u3 and u6 are packed in groups of three bytes.
    """
    name = element_type.name
    if not element_type.is_packed:
        return np.frombuffer(data, element_type.numpy(), count)
    raw = np.frombuffer(data, np.uint8)
    if name == "u1":
        return np.unpackbits(raw, count=count, bitorder="big")
    if name in ("u3", "u6"):
        return _unpack_planes(raw, name)[:count]
    per_byte = 8 // element_type.bits
    shifts = np.arange(per_byte, dtype=np.uint8) * element_type.bits
    codes: Array = (raw[:, None] >> shifts) & ((1 << element_type.bits) - 1)
    codes = codes.reshape(-1)[:count]
    if name == "nf4":
        codes = np.array(NF4, np.float32)[codes]
        return codes
    if name == "f4e2m1":
        return codes.view(element_type.numpy())
    if name == "i4":
        codes = (codes ^ 8).astype(np.int8) - np.int8(8)
    return codes.astype(element_type.numpy())


def _unpack_planes(raw: Array, name: str) -> Array:
    """Unpack u3 or u6: two bytes hold the low bits of a group, the third the high ones."""
    low_bits, high_bits = (2, 1) if name == "u3" else (4, 2)
    groups = raw[: raw.size - raw.size % 3].reshape(-1, 3)

    def split(columns: Any, bits: int) -> Any:
        shifts = np.arange(8 - bits, -1, -bits, dtype=np.uint8)
        fields = (columns[:, :, None] >> shifts) & ((1 << bits) - 1)
        return fields.reshape(len(columns), columns.shape[1] * len(shifts))

    high = split(groups[:, 2:], high_bits) << low_bits
    result: Array = split(groups[:, :2], low_bits) | high
    return result.ravel()
