"""Exact integer products on the floating-point BLAS.

Integers are split into limbs so small that sums of products stay in the range in which floats are
exact; the products of limbs are added modulo 2^64.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from deconv_ir.ir.dtypes import Array

_LIMB_BITS = 16


class IntegerGemm(NamedTuple):
    """Matrix products of one integer type, exact modulo 2^64."""

    element: np.dtype[Any]
    """Type of data and weights."""
    operand: np.dtype[Any]
    """Type in which the BLAS multiplies."""
    limbs: int
    """Number of limbs of an element."""
    exact_terms: int
    """Number of products that can be summed exactly in `operand`."""

    @classmethod
    def of(cls, element: np.dtype[Any], depth: int) -> IntegerGemm:
        """Return the instance for an element type and sums of about `depth` products."""
        bits = element.itemsize * 8
        limbs = max(1, bits // _LIMB_BITS)
        signed = element.kind == "i" and limbs == 1
        largest = 1 << (bits - 1) if signed else (1 << min(_LIMB_BITS, bits)) - 1
        # A float with p bits of mantissa holds every integer up to 2^p.
        if depth * largest**2 <= 1 << 24:
            return cls(element, np.dtype(np.float32), limbs, (1 << 24) // largest**2)
        return cls(element, np.dtype(np.float64), limbs, (1 << 53) // largest**2)

    @property
    def data_bytes(self) -> int:
        """Bytes of `operands` for an element, including temporary arrays."""
        return self.limbs * self.operand.itemsize + 2 * self.element.itemsize

    @property
    def product_bytes(self) -> int:
        """Temporary bytes of `multiply` for an element of its result."""
        return self.operand.itemsize + 8

    def operands(self, values: Array) -> Array:
        """Return values as operands, ``[limb, *values.shape]``."""
        if self.limbs == 1:
            return values.astype(self.operand)[None]
        # Two's complement: an element is the sum of its unsigned limbs modulo 2^bits.
        unsigned = values.view(f"u{self.element.itemsize}")
        result = np.empty((self.limbs, *values.shape), self.operand)
        for limb in range(self.limbs):
            result[limb] = (unsigned >> (limb * _LIMB_BITS)) & ((1 << _LIMB_BITS) - 1)
        return result

    def multiply(self, weights: Array, data: Array, out: Array) -> None:
        """Write ``weights @ data`` to `out`, of u64.

        The operands are ``[limb, ..., M, K]`` and ``[limb, ..., K, N]``.
        """
        out[...] = 0
        product = np.empty(out.shape, self.operand)
        for i in range(0, data.shape[-2], self.exact_terms):
            terms = slice(i, i + self.exact_terms)
            for a in range(self.limbs):
                for b in range(self.limbs - a):
                    np.matmul(weights[a][..., terms], data[b][..., terms, :], out=product)
                    # The product is a signed integer below 2^53; it is then reduced modulo 2^64.
                    exact = product.astype(np.int64).view(np.uint64)
                    exact <<= np.uint64((a + b) * _LIMB_BITS)
                    out += exact
