"""How elements are multiplied and summed so that the result is the promised one.

f32 and f64 are summed in their own precision, f16 and bf16 in f32.  Integers
are exact modulo 2^bits, yet go through the BLAS: they are cut into limbs so
small that no sum of products can leave the range in which floats are exact.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from deconv_ir.errors import UnsupportedError
from deconv_ir.kernels.products import multiply_stacks

__all__ = ["Arithmetic", "arithmetic_of"]

Array = np.ndarray[Any, np.dtype[Any]]

_LIMB_BITS = 16


class Arithmetic(NamedTuple):
    """The arithmetic of one element type.

    Attributes
    ----------
    element : dtype
        Type of data, filter, bias and result.
    operand : dtype
        Type in which the BLAS multiplies.
    accumulator : dtype
        Type in which columns are added up.
    limbs : int
        Number of operands that one element is cut into.
    exact_terms : int
        Number of products that can be summed in `operand` without losing a
        bit; 0: no bound, since the type rounds anyway.
    """

    element: np.dtype[Any]
    operand: np.dtype[Any]
    accumulator: np.dtype[Any]
    limbs: int
    exact_terms: int

    @property
    def converts(self) -> bool:
        """Whether data must be converted before the BLAS can read it."""
        return self.element != self.operand

    def operands(self, values: Array) -> Array:
        """Return `values` as operands, ``[limbs, *values.shape]``; a view where that can be."""
        if self.limbs == 1:
            return values.astype(self.operand, copy=False)[None]
        # Two's complement: an element is the sum of its unsigned limbs modulo 2^bits.
        bits = self.element.itemsize * 8
        unsigned = values.astype(np.dtype(f"u{bits // 8}"), copy=False)
        result = np.empty((self.limbs, *values.shape), self.operand)
        for limb in range(self.limbs):
            result[limb] = (unsigned >> (limb * _LIMB_BITS)) & ((1 << _LIMB_BITS) - 1)
        return result

    @property
    def direct(self) -> bool:
        """Whether the BLAS can write the accumulator itself."""
        return self.operand == self.accumulator

    @property
    def product_bytes(self) -> int:
        """Bytes of scratch that `multiply` takes for one element of its result."""
        return 0 if self.direct else self.operand.itemsize + 8

    def multiply(self, weights: Array, data: Array, out: Array, *, add: bool = False) -> None:
        """Write ``weights @ data`` to `out`, or add it.

        Parameters
        ----------
        weights : ndarray
            ``[limbs, ..., rows, i]`` operands.
        data : ndarray
            ``[limbs, i, positions]`` operands.
        out : ndarray
            ``[..., rows, positions]`` of the accumulator's type.
        add : bool
            Whether to add to what is there.
        """
        if self.direct and not add:
            multiply_stacks(weights[0], data[0], out)
            return
        if self.direct:
            out += np.matmul(weights[0], data[0])
            return
        if not add:
            out[...] = 0
        product = np.empty(out.shape, self.operand)
        for i in range(0, data.shape[1], self.exact_terms):
            terms = slice(i, i + self.exact_terms)
            for a in range(self.limbs):
                for b in range(self.limbs - a):
                    multiply_stacks(weights[a][..., terms], data[b][terms], product)
                    # A signed integer below 2^53, and then modulo 2^64.
                    exact = product.astype(np.int64).view(np.uint64)
                    exact <<= np.uint64((a + b) * _LIMB_BITS)
                    out += exact


def arithmetic_of(dtype: np.dtype[Any], depth: int) -> Arithmetic:
    """Return the arithmetic of a dtype for sums over `depth` input channels.

    Raises
    ------
    TypeError
        There is no arithmetic for the dtype: bool, complex, f8 and the like.
    """
    f32, f64, u64 = np.dtype(np.float32), np.dtype(np.float64), np.dtype(np.uint64)
    dtype = np.dtype(dtype)
    if dtype in (f32, f64):
        return Arithmetic(dtype, dtype, dtype, 1, 0)
    if dtype == np.float16 or dtype.name == "bfloat16":
        return Arithmetic(dtype, f32, f32, 1, 0)
    if dtype.kind in "iu" and dtype.type.__module__ == "numpy":
        limbs = max(1, dtype.itemsize * 8 // _LIMB_BITS)
        if dtype.kind == "i" and limbs == 1:
            largest = 1 << (dtype.itemsize * 8 - 1)
        else:
            largest = (1 << min(_LIMB_BITS, dtype.itemsize * 8)) - 1
        # A float with p bits of mantissa holds every integer up to 2^p.
        if depth * largest**2 <= 1 << 24:
            return Arithmetic(dtype, f32, u64, limbs, (1 << 24) // largest**2)
        return Arithmetic(dtype, f64, u64, limbs, (1 << 53) // largest**2)
    raise UnsupportedError(f"there is no convolution of element type {dtype.name}")
