"""Convolution by columns: the data under each tap copied side by side, then one product.

The adjoint of the transposed convolution: ``output[y]`` is the sum over k of
``data[s*y + d*k - pad] * filter[k]``, where that data exists.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from .arithmetic import arithmetic_of
from .dispatch import DEFAULT_SCRATCH_BYTES
from .problem import check_vector

__all__ = ["Convolution"]

Array = np.ndarray[Any, np.dtype[Any]]


class Convolution:
    """A convolution with its filter packed, for any extents.

    Parameters
    ----------
    filter : ndarray
        ``[C_OUT, C_IN / groups, *K]``, at least one spatial axis.  f16, bf16,
        f32, f64, or any integer type.
    strides, dilations : sequence of int
        One entry a spatial axis, at least 1.
    groups : int
        Number of groups; C_OUT is a multiple.
    bias : ndarray, optional
        ``[C_OUT]``, of the filter's dtype.
    scratch_bytes : int
        Bound of the memory in use beside data, filter and result.

    Raises
    ------
    TypeError
        The dtype has no arithmetic here, or the bias has another.
    ValueError
        Shapes, strides, dilations or groups do not fit together.

    Notes
    -----
    f32 and f64 are summed in their own precision; f16 and bf16 in f32, rounded
    once, after the bias; integers exactly, modulo 2^bits.
    """

    def __init__(
        self,
        filter: Array,  # noqa: A002 - the documents' name
        *,
        strides: Sequence[int],
        dilations: Sequence[int],
        groups: int = 1,
        bias: Array | None = None,
        scratch_bytes: int = DEFAULT_SCRATCH_BYTES,
    ) -> None:
        if filter.ndim < 3:
            raise ValueError(f"filter must have rank 3 or greater, not shape {list(filter.shape)}")
        if groups < 1 or filter.shape[0] % groups:
            raise ValueError(f"{filter.shape[0]} output channels do not make {groups} groups")
        self.kernel = tuple(filter.shape[2:])
        if min(self.kernel) < 1:
            raise ValueError(f"kernel extents must be positive, not {list(self.kernel)}")
        axes = len(self.kernel)
        self.strides = check_vector("strides", strides, axes, 1)
        self.dilations = check_vector("dilations", dilations, axes, 1)
        self.groups = groups
        self.channels_out = filter.shape[0] // groups
        self.channels_in = filter.shape[1]
        self.taps = math.prod(self.kernel)
        self.scratch_bytes = scratch_bytes
        depth = self.channels_in * self.taps
        self.arithmetic = arithmetic_of(filter.dtype, depth)
        # [limbs, groups, rows, channel * tap]
        self._weights = self.arithmetic.operands(
            np.ascontiguousarray(filter).reshape(groups, self.channels_out, depth)
        )
        self._bias: Array | None = None
        if bias is not None:
            if bias.dtype != filter.dtype:
                raise TypeError(f"bias is {bias.dtype.name}, filter {filter.dtype.name}")
            if bias.shape != (filter.shape[0],):
                raise ValueError(
                    f"bias must have shape [{filter.shape[0]}], not {list(bias.shape)}"
                )
            self._bias = bias.astype(self.arithmetic.accumulator).reshape(groups, -1, 1)

    def run(
        self,
        data: Array,
        pads_begin: Sequence[int],
        output: Sequence[int],
        out: Array | None = None,
    ) -> Array:
        """Compute one output.

        Parameters
        ----------
        data : ndarray
            ``[N, C_IN, *X]`` of the filter's dtype, any strides.
        pads_begin : sequence of int
            Zeros before the data, an axis each; negative: so much is skipped.
        output : sequence of int
            Extents of the output, an axis each.
        out : ndarray, optional
            Where the result goes, ``[N, C_OUT, *output]``.

        Raises
        ------
        TypeError
            `data` or `out` is not of the filter's dtype.
        ValueError
            A shape or a length does not fit.
        """
        element = self.arithmetic.element
        axes = len(self.kernel)
        if data.dtype != element:
            raise TypeError(f"data is {data.dtype.name}, filter {element.name}")
        if data.ndim != axes + 2 or data.shape[1] != self.groups * self.channels_in:
            raise ValueError(
                f"data must have rank {axes + 2} and {self.groups * self.channels_in} channels, "
                f"not shape {list(data.shape)}"
            )
        pads = check_vector("pads_begin", pads_begin, axes)
        extents = check_vector("output", output, axes, 0)
        shape = (data.shape[0], self.groups * self.channels_out, *extents)
        if out is None:
            out = np.empty(shape, element)
        elif out.shape != shape or out.dtype != element:
            raise ValueError(
                f"out must be {element.name} {list(shape)}, not {out.dtype.name} {list(out.shape)}"
            )
        if out.size:
            # Infinities and NaNs are results here, not mistakes to warn of.
            with np.errstate(all="ignore"):
                for n, image in enumerate(data):
                    self._image(image, pads, extents, out[n])
        return out

    def _image(
        self, image: Array, pads: Sequence[int], extents: tuple[int, ...], out: Array
    ) -> None:
        grouped = image.reshape(self.groups, self.channels_in, *image.shape[1:])
        target = out.reshape(self.groups, self.channels_out, *extents)
        for groups, box in self._tiles(extents):
            spatial = tuple(slice(a, b) for a, b in box)
            size = tuple(b - a for a, b in box)
            columns = self._columns(grouped[groups], pads, box, size)
            result = np.empty(
                (*columns.shape[:1], self.channels_out, columns.shape[2]),
                self.arithmetic.accumulator,
            )
            weights = self._weights[:, groups]
            if self.arithmetic.direct:
                operands = self.arithmetic.operands(columns)
                np.matmul(weights[0], operands[0], out=result)
            else:
                for g, column in enumerate(columns):
                    self.arithmetic.multiply(
                        weights[:, g], self.arithmetic.operands(column), result[g]
                    )
            if self._bias is not None:
                result += self._bias[groups]
            target[(groups, slice(None), *spatial)] = result.reshape(
                result.shape[0], self.channels_out, *size
            )

    def _tiles(
        self, extents: tuple[int, ...]
    ) -> Iterator[tuple[slice, tuple[tuple[int, int], ...]]]:
        """Cut groups and output into tiles whose columns stay under the bound."""
        limbs = self.arithmetic.limbs
        element = self.arithmetic.element.itemsize + self.arithmetic.operand.itemsize * limbs
        per_position = self.channels_in * self.taps * element + self.channels_out * (
            self.arithmetic.accumulator.itemsize + self.arithmetic.product_bytes
        )
        positions = max(1, self.scratch_bytes // per_position)
        together = max(1, min(self.groups, positions // math.prod(extents)))
        lengths = []
        for extent in reversed(extents):
            length = max(1, min(extent, positions))
            lengths.append(length)
            positions //= length
        steps = [
            [(a, min(a + length, extent)) for a in range(0, extent, length)]
            for extent, length in zip(extents, reversed(lengths), strict=True)
        ]
        for g in range(0, self.groups, together):
            for box in itertools.product(*steps):
                yield slice(g, min(g + together, self.groups)), box

    def _columns(
        self,
        data: Array,
        pads: Sequence[int],
        box: Sequence[tuple[int, int]],
        size: tuple[int, ...],
    ) -> Array:
        """Return ``[groups, channel * tap, position]``: what each tap reads, for a box."""
        groups, channels, *extents = data.shape
        depth = channels * self.taps
        if self._is_plain(extents, pads, box):
            return data.reshape(groups, depth, math.prod(size))
        columns = np.zeros((groups, channels, self.taps, *size), data.dtype)
        for tap, k in enumerate(np.ndindex(*self.kernel)):
            source: list[Any] = [...]
            target: list[Any] = [slice(None), slice(None), tap]
            for axis, (first, last) in enumerate(box):
                s, shift = self.strides[axis], self.dilations[axis] * k[axis] - pads[axis]
                low = max(first, -(shift // s))
                high = max(low, min(last, (extents[axis] - 1 - shift) // s + 1))
                source.append(
                    slice(low * s + shift, (high - 1) * s + shift + 1, s)
                    if high > low
                    else slice(0, 0)
                )
                target.append(slice(low - first, high - first) if high > low else slice(0, 0))
            columns[tuple(target)] = data[tuple(source)]
        return columns.reshape(groups, depth, math.prod(size))

    def _is_plain(
        self, extents: Sequence[int], pads: Sequence[int], box: Sequence[tuple[int, int]]
    ) -> bool:
        """Whether the columns are the data itself: a 1x1 kernel that moves by 1."""
        return (
            self.taps == 1
            and not any(pads)
            and all(s == 1 for s in self.strides)
            and all((a, b) == (0, x) for (a, b), x in zip(box, extents, strict=True))
        )
