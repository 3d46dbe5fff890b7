"""NumPy, imported on first use, and the precision in which operations compute.

f32, f64 and integers of 8 to 64 bits are computed in their own type; f16, bf16 and smaller floats
in f32, and integers of fewer bits in i32.  The result is rounded, or wrapped, once.
"""

from __future__ import annotations

import functools
from types import ModuleType
from typing import TYPE_CHECKING, Any

from deconv_ir.ir.dtypes import Array, ElementType
from deconv_ir.ir.operation import TensorInfo
from deconv_ir.ir.shapes import element_count, static

__all__ = ["highest", "keeps_type", "lowest", "narrow", "np", "numpy_width", "widen"]
__all__ += ["widened_bytes", "working_dtype"]

if TYPE_CHECKING:
    import numpy as np
else:

    class _LazyModule(ModuleType):
        """A module that is imported when one of its attributes is read: 150 ms of deconv-lint."""

        def __getattr__(self, name: str) -> Any:
            import importlib

            found = importlib.import_module(self.__name__)
            vars(self).update(vars(found))
            self.__class__ = ModuleType
            return getattr(found, name)

    np = _LazyModule("numpy")

_SMALL_INTEGERS = ("int4", "uint4", "int2", "uint2")


@functools.cache
def working_dtype(dtype: Any) -> Any:
    """Return the dtype in which arrays of `dtype` are computed."""
    if dtype.isbuiltin == 1 and dtype.name != "float16":
        return dtype
    return np.dtype(np.int32 if dtype.name in _SMALL_INTEGERS else np.float32)


def keeps_type(element_type: ElementType) -> bool:
    """Whether arrays of an element type are computed in that type."""
    dtype = element_type.numpy()
    return bool(working_dtype(dtype) == dtype)


def widen(array: Array) -> Array:
    """Return an array in its working dtype; a copy is contiguous."""
    dtype = working_dtype(array.dtype)
    wide: Array = array if dtype == array.dtype else array.astype(dtype, "C")
    return wide


def widened_bytes(output: TensorInfo) -> int:
    """Return the bytes of widened copies of data and result, given the output."""
    if output.element_type is None:
        return 0
    dtype = output.element_type.numpy()
    wide = working_dtype(dtype)
    return 0 if wide == dtype else 2 * element_count(static(output.shape)) * int(wide.itemsize)


def numpy_width(info: TensorInfo) -> int:
    """Return the bytes of an element in NumPy's arithmetic; 0 if compiled kernels take the tensor.

    These compute in f32.
    """
    from deconv_ir.kernels.runtime.extension import compiled_module

    if info.element_type is None:
        return 0
    wide = working_dtype(info.element_type.numpy())
    return 0 if wide == np.float32 and compiled_module() is not None else int(wide.itemsize)


def lowest(dtype: Any) -> Any:
    """Return the lowest number of a dtype."""
    return -np.inf if dtype.kind == "f" else np.iinfo(dtype).min


def highest(dtype: Any) -> Any:
    """Return the highest number of a dtype."""
    return np.inf if dtype.kind == "f" else np.iinfo(dtype).max


def narrow(array: Any, dtype: Any) -> Array:
    """Return a result in the dtype of the operation: rounded once, or wrapped."""
    result: Array = np.asarray(array)
    if result.dtype == dtype:
        return result
    with np.errstate(all="ignore"):
        if dtype.name in _SMALL_INTEGERS and result.dtype.kind in "iu":
            bits = int(dtype.name[-1])
            result = result & ((1 << bits) - 1)
            if dtype.name.startswith("int"):
                result = result - ((result >> (bits - 1)) << bits)
        return result.astype(dtype)
