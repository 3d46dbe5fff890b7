"""The bytes of constants: the inverse of reading them."""

from __future__ import annotations

from typing import Any

from deconv_ir.errors import InputError
from deconv_ir.ir.dtypes import Array, ElementType
from deconv_ir.ops.constants.constant import NF4
from deconv_ir.ops.numeric import np


def pack(array: Array, element_type: ElementType) -> bytes:
    """Return the bytes of an array of the type's dtype, as a weights file has them.

    Raises
    ------
    InputError
        An element is none of the values of a packed type.
    """
    flat: Array = np.ascontiguousarray(array).reshape(-1)
    if element_type.kind == "string":
        return _strings(flat)
    if not element_type.is_packed:
        dtype = element_type.numpy()
        return flat.astype(dtype.newbyteorder("<") if dtype.isbuiltin == 1 else dtype).tobytes()
    codes = _codes(flat, element_type)
    if element_type.name == "u1":
        return bytes(np.packbits(codes, bitorder="big"))
    if element_type.name in ("u3", "u6"):
        return _planes(codes, element_type.name)
    per_byte = 8 // element_type.bits
    padded = _padded(codes, per_byte).reshape(-1, per_byte)
    shifts = np.arange(per_byte, dtype=np.uint8) * element_type.bits
    return bytes(np.bitwise_or.reduce(padded << shifts, axis=1).astype(np.uint8))


def _codes(flat: Array, element_type: ElementType) -> Array:
    """Return the bits of each element in a byte of its own."""
    if element_type.name == "nf4":
        table = np.array(NF4, np.float32)
        found = np.searchsorted(table, flat).clip(0, len(table) - 1)
        _require(table[found] == flat, flat, element_type)
        return found.astype(np.uint8)
    if element_type.name == "f4e2m1":
        bits: Array = flat.view(np.uint8) & np.uint8(15)
        return bits
    mask = (1 << element_type.bits) - 1
    if element_type.numpy() == np.uint8:  # NumPy's dtype has more values than the type
        _require(flat <= mask, flat, element_type)
        return flat
    signed: Array = flat.astype(np.int8).view(np.uint8) & np.uint8(mask)
    return signed


def _require(fits: Array, flat: Array, element_type: ElementType) -> None:
    if not fits.all():
        value: Any = flat[int(np.argmin(fits))]
        raise InputError(f"{value} does not fit {element_type}", actual=str(value))


def _padded(codes: Array, multiple: int) -> Array:
    return np.concatenate([codes, np.zeros(-len(codes) % multiple, np.uint8)])


def _planes(codes: Array, name: str) -> bytes:
    """Pack u3 or u6: two bytes hold the low bits of a group, the third the high ones."""
    low_bits, high_bits = (2, 1) if name == "u3" else (4, 2)
    per_byte = 8 // low_bits
    groups = _padded(codes, 2 * per_byte).reshape(-1, 2, per_byte)

    def join(fields: Array, bits: int) -> Array:
        shifts = np.arange(8 - bits, -1, -bits, dtype=np.uint8)
        joined: Array = np.bitwise_or.reduce(fields << shifts, axis=-1).astype(np.uint8)
        return joined

    low = join(groups & ((1 << low_bits) - 1), low_bits)
    high = join((groups >> low_bits).reshape(len(groups), -1), high_bits)
    return np.concatenate([low, high[:, None]], axis=1).tobytes()


def _strings(flat: Array) -> bytes:
    """Write strings: their number, count + 1 offsets and the bytes, little-endian."""
    texts = [text.encode("utf-8", "surrogateescape") for text in flat.tolist()]
    ends = np.cumsum([0, *map(len, texts)]).astype("<u4")
    return np.array([len(texts)], "<u4").tobytes() + ends.tobytes() + b"".join(texts)
