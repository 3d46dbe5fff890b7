"""Converts arrays of other libraries (``__array__``, DLPack) to NumPy arrays.

NumPy has no bfloat16, so it rejects a DLPack tensor of that type (such as PyTorch's).  The elements
are read as 16-bit integers, without a copy, and viewed as `ml_dtypes.bfloat16`.

Source: DLPack 1.0, ``dlpack.h`` (DLTensor, DLDataTypeCode) and the Python specification.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np

from deconv_ir.errors import InputError, one_line
from deconv_ir.ir.dtypes import BF16, Array

_UNSIGNED, _BFLOAT = 1, 4
_ARRAYS = (np.ndarray, np.generic, int, float, complex)


class _DLTensor(ctypes.Structure):
    """The head of a DLManagedTensor."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device_type", ctypes.c_int32),
        ("device_id", ctypes.c_int32),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
    )


class _Exported:
    """A DLPack capsule, for `numpy.from_dlpack`."""

    def __init__(self, capsule: object, device: tuple[int, int]) -> None:
        self._capsule = capsule
        self._device = device

    def __dlpack__(self, **options: Any) -> Any:
        return self._capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._device


def is_array(given: object) -> bool:
    """Whether an object is one array (or one number), not a collection of arrays."""
    if isinstance(given, _ARRAYS):
        return True
    return any(
        hasattr(type(given), name) for name in ("__array__", "__array_interface__", "__dlpack__")
    )


def as_array(given: Any, name: str) -> Array:
    """Convert a caller's object, named `name` in messages, to an array."""
    if type(given) is np.ndarray:
        return given
    has_dlpack = hasattr(type(given), "__dlpack__") and not isinstance(given, np.ndarray)
    try:
        if has_dlpack and not hasattr(type(given), "__array__"):
            return _from_dlpack(given)
        try:
            return np.asarray(given)
        except TypeError:
            if not has_dlpack:
                raise
            found = _from_dlpack(given)
            if found.dtype != BF16.numpy():  # NumPy failed for another reason
                raise
            return found
    except MemoryError:
        raise
    except Exception as error:  # code of another library can raise any error
        raise InputError(
            f"{name}: cannot convert {type(given).__name__} to an array: {one_line(str(error))}",
            rule="input-type",
        ) from error


def _from_dlpack(given: Any) -> Array:
    capsule, device = given.__dlpack__(), given.__dlpack_device__()
    get_pointer = ctypes.pythonapi.PyCapsule_GetPointer
    get_pointer.restype, get_pointer.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    tensor = _DLTensor.from_address(get_pointer(capsule, b"dltensor"))
    brain = (tensor.code, tensor.bits, tensor.lanes) == (_BFLOAT, 16, 1)
    if brain:
        tensor.code = _UNSIGNED
    array: Array = np.from_dlpack(_Exported(capsule, device))
    return array.view(BF16.numpy()) if brain else array
