"""IR element types and their NumPy dtypes.

NumPy is imported only when a dtype is needed, so that the linter starts
without it.  Types that NumPy lacks come from ml_dtypes.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

    Array = np.ndarray[Any, np.dtype[Any]]
else:
    Array = Any


class ElementType:
    """An element type of the IR: one object per type, compared by identity.

    Attributes
    ----------
    name : str
        Spelling in layer attributes (``f32``).
    ir_name : str
        Spelling in port precisions (``FP32``).
    bits : int
        Size of one element as stored in a weights file; 0: not fixed.
    kind : str
        ``float``, ``int``, ``uint``, ``bool`` or ``string``.

    Examples
    --------
    >>> import deconv_ir
    >>> model = deconv_ir.load("samples/block/block.xml")
    >>> element_type = model.inputs["x"].element_type
    >>> isinstance(element_type, deconv_ir.ElementType)
    True
    >>> element_type.name, element_type.ir_name, element_type.bits, element_type.numpy()
    ('f32', 'FP32', 32, dtype('float32'))
    """

    __slots__ = ("_numpy", "bits", "ir_name", "kind", "name")

    def __init__(self, name: str, ir_name: str, bits: int, kind: str, numpy_name: str) -> None:
        self.name = name
        self.ir_name = ir_name
        self.bits = bits
        self.kind = kind
        self._numpy = numpy_name

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> tuple[Any, ...]:
        return parse_element_type, (self.name,)

    @property
    def is_float(self) -> bool:
        """Whether it is a floating-point type."""
        return self.kind == "float"

    @property
    def is_integer(self) -> bool:
        """Whether it is an integer type, signed or not."""
        return self.kind in ("int", "uint")

    @property
    def is_packed(self) -> bool:
        """Whether several elements share one byte in the weights file."""
        return 0 < self.bits < 8

    def size_of(self, elements: int) -> int:
        """Return the bytes of `elements` elements in a weights file."""
        if self.bits in (3, 6):  # whole groups of three bytes
            return -(-elements * self.bits // 24) * 3
        return (elements * self.bits + 7) // 8

    def numpy(self) -> np.dtype[Any]:
        """Return the dtype of arrays of this type.

        Arrays of packed types have one element per byte, those of strings Python's `str`.
        """
        return _dtype(self._numpy)


@functools.cache
def _dtype(name: str) -> np.dtype[Any]:
    import numpy as np

    if not name.startswith("ml:"):
        return np.dtype(name)
    import ml_dtypes

    found: np.dtype[Any] = np.dtype(getattr(ml_dtypes, name[3:]))
    return found


def float_resolution(dtype: np.dtype[Any]) -> tuple[float, float]:
    """Return the relative and, near zero, the absolute rounding error of a float type."""
    import numpy as np

    if dtype.kind == "f" and dtype.isbuiltin == 1:
        found: Any = np.finfo(dtype)
    else:
        import ml_dtypes

        found = ml_dtypes.finfo(dtype)  # type: ignore[no-untyped-call]
    return float(found.eps), float(found.smallest_subnormal)


ELEMENT_TYPES: tuple[ElementType, ...] = (
    ElementType("f32", "FP32", 32, "float", "float32"),
    ElementType("f16", "FP16", 16, "float", "float16"),
    ElementType("bf16", "BF16", 16, "float", "ml:bfloat16"),
    ElementType("f64", "FP64", 64, "float", "float64"),
    ElementType("i8", "I8", 8, "int", "int8"),
    ElementType("i16", "I16", 16, "int", "int16"),
    ElementType("i32", "I32", 32, "int", "int32"),
    ElementType("i64", "I64", 64, "int", "int64"),
    ElementType("u8", "U8", 8, "uint", "uint8"),
    ElementType("u16", "U16", 16, "uint", "uint16"),
    ElementType("u32", "U32", 32, "uint", "uint32"),
    ElementType("u64", "U64", 64, "uint", "uint64"),
    ElementType("boolean", "BOOL", 8, "bool", "bool"),
    ElementType("u1", "BIN", 1, "uint", "uint8"),
    ElementType("u2", "U2", 2, "uint", "ml:uint2"),
    ElementType("u4", "U4", 4, "uint", "ml:uint4"),
    ElementType("i4", "I4", 4, "int", "ml:int4"),
    # nf4 is a table of 16 values; arrays hold the values themselves.
    ElementType("nf4", "NF4", 4, "float", "float32"),
    ElementType("f4e2m1", "F4E2M1", 4, "float", "ml:float4_e2m1fn"),
    ElementType("f8e4m3", "F8E4M3", 8, "float", "ml:float8_e4m3fn"),
    ElementType("f8e5m2", "F8E5M2", 8, "float", "ml:float8_e5m2"),
    ElementType("f8e8m0", "F8E8M0", 8, "float", "ml:float8_e8m0fnu"),
    ElementType("u3", "U3", 3, "uint", "uint8"),
    ElementType("u6", "U6", 6, "uint", "uint8"),
    ElementType("string", "STRING", 0, "string", "object"),
)

_BY_NAME: dict[str, ElementType] = {}
for _type in ELEMENT_TYPES:
    for _spelling in (_type.name, _type.ir_name, _type.ir_name.lower(), _type.name.upper()):
        _BY_NAME[_spelling] = _type
_BY_NAME |= {"U1": _BY_NAME["u1"], "bool": _BY_NAME["boolean"], "BOOLEAN": _BY_NAME["boolean"]}

F32 = _BY_NAME["f32"]
F16 = _BY_NAME["f16"]
BF16 = _BY_NAME["bf16"]
F64 = _BY_NAME["f64"]
F8E5M2 = _BY_NAME["f8e5m2"]
I32 = _BY_NAME["i32"]
I8 = _BY_NAME["i8"]
U8 = _BY_NAME["u8"]
U32 = _BY_NAME["u32"]
I64 = _BY_NAME["i64"]
BOOLEAN = _BY_NAME["boolean"]
STRING = _BY_NAME["string"]


def parse_element_type(text: str) -> ElementType:
    """Return the element type that `text` spells, in either of the IR's spellings.

    Examples
    --------
    >>> parse_element_type("FP32"), parse_element_type("f32")
    (f32, f32)
    """
    found = _BY_NAME.get(text) or _BY_NAME.get(text.strip().lower())
    if found is None:
        known = ", ".join(t.name for t in ELEMENT_TYPES)
        raise ValueError(f"invalid element type {text!r} (expected one of {known})")
    return found


_FROM_NUMPY = {
    t._numpy.removeprefix("ml:"): t
    for t in reversed(ELEMENT_TYPES)
    if t.name not in ("u1", "u3", "u6", "nf4")
}


@functools.cache
def from_numpy(dtype: np.dtype[Any]) -> ElementType | None:
    """Return the element type of an array of `dtype`; None if the IR has no such type."""
    return _FROM_NUMPY.get(dtype.name)
