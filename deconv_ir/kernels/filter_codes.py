"""Filters of convolutions that stay in the numbers that a file stores."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from deconv_ir.kernels.compressed import form_of, split_codes
from deconv_ir.kernels.problem import Problem, one_by_channel
from deconv_ir.kernels.runtime import interface

if TYPE_CHECKING:
    from deconv_ir.ir.dtypes import Array
    from deconv_ir.ir.lazy_tensor import LazyTensor

_PART_BYTES = 1 << 18
_LARGEST = {False: float(np.finfo(np.float32).max), True: float(np.finfo(np.float16).max)}


class FilterCodes(NamedTuple):
    """The codes of a filter, and what computes weights from them: ``(number - zero) * scale``."""

    form: int
    """The number of an `enum compressed_form`."""
    numbers: Array | None
    """Of codes, ``[16]`` or ``[256]`` in f32; None: the codes are numbers."""
    scales: Array | None
    zeros: Array | None
    """``[groups * out]`` in f32, or None."""
    halves: bool
    """Whether a weight is rounded to f16."""
    source: LazyTensor

    def parts(self) -> Iterator[tuple[int, Array]]:
        """Iterate over blocks of whole rows: the first row, and its codes in 8 or 16 bits each.

        Raises
        ------
        FloatingPointError
            If a number is infinite or NaN.
        """
        codes = self.source.codes
        assert codes is not None, "the filter is stored so"
        rows, row, bits = len(self), math.prod(self.source.shape[1:]), codes.element_type.bits
        # Each part begins with a whole byte.
        step = max(1, _PART_BYTES // row // 8) * 8
        known = None if self.numbers is None else np.isfinite(self.numbers)
        known = None if known is None or known.all() else known
        for first in range(0, rows, step):
            last = min(first + step, rows)
            part = split_codes(codes.read(first * row, last * row), bits, (last - first, row))
            infinite = {interface.COMPRESSED_F16: 0x7C00, interface.COMPRESSED_BF16: 0x7F80}
            exponent = infinite.get(self.form)
            if (known is not None and not known[part].all()) or (
                exponent is not None and ((part & exponent) == exponent).any()
            ):
                raise FloatingPointError("a weight is not finite")
            yield first, part

    def __len__(self) -> int:
        return int(self.source.shape[0])

    @property
    def name(self) -> str:
        """The type of the stored numbers."""
        assert self.source.codes is not None, "the filter is stored so"
        return self.source.codes.element_type.name


def filter_codes(problem: Problem, tensor: LazyTensor) -> FilterCodes | None:
    """Return how a filter is stored; None if it has no zero and scale for each output channel."""
    codes = tensor.codes
    if codes is None or tensor.dtype != np.float32 or not tensor.size:
        return None
    if problem.channels_in < 2:  # such layers read their few weights themselves
        return None
    form = form_of(codes)
    if form is None or codes.element_type.bits < 4:
        return None
    factors = []
    for given in (codes.scale, codes.zero):
        own = None if given is None else _of_channels(problem, given, codes.axes)
        if given is not None and own is None:
            return None
        factors.append(own)
    scales, zeros = factors
    halves = codes.scale is not None and codes.scale.dtype == np.float16
    number, numbers = form
    found = FilterCodes(number, numbers, scales, zeros, halves, tensor)
    return found if _stays_finite(found, codes.element_type.name) else None


def _of_channels(problem: Problem, factors: Array, axes: tuple[int, ...]) -> Array | None:
    """Return zeros or scales as ``[groups * out]`` in f32; None if a channel has several."""
    sides = [problem.channels_out, problem.channels_in]
    whole = (problem.groups, *(sides if problem.forward else sides[::-1]), *problem.kernel)
    if axes not in (whole, (whole[0] * whole[1], *whole[2:])):
        return None
    spread = np.broadcast_to(factors.astype(np.float32), axes)
    joined = spread.reshape(whole[0] * whole[1], *whole[2:])
    found = one_by_channel(problem, joined)
    return None if found is None else found.astype(np.float32)


def _stays_finite(codes: FilterCodes, name: str) -> bool:
    """Whether no finite number becomes an infinite weight."""
    if codes.scales is None and codes.zeros is None:
        return True
    if codes.numbers is not None:
        finite = codes.numbers[np.isfinite(codes.numbers)]
        most = float(np.abs(finite).max(initial=0))
    else:
        most = {"f16": _LARGEST[True], "bf16": _LARGEST[False]}.get(name, 255.0)
    if codes.zeros is not None:
        most += float(np.abs(codes.zeros).max())
    scale = 1.0 if codes.scales is None else float(np.abs(codes.scales).max())
    return bool(most * scale < _LARGEST[codes.halves])
