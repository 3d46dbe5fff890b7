"""Interleaving of results of sub-convolutions into the output, with bias and activation."""

from __future__ import annotations

import functools
import itertools
from typing import NamedTuple

import numpy as np

from deconv_ir.ir.dtypes import Array
from deconv_ir.kernels.activation import Activation, ActivationType
from deconv_ir.kernels.numpy.subconvolution import AxisSpan, ImageTile
from deconv_ir.kernels.problem import pick

Remainders = tuple[tuple[int, ...], ...]
"""Remainders r of some sub-convolutions, for each axis."""


class Interleaver(NamedTuple):
    """The output of one run, and the epilogue of its sums."""

    out: Array
    """``[N, groups, out, *Y]``."""
    spans: tuple[AxisSpan, ...]
    bias: Array | None
    """``[groups, out]``, in the type of the sums."""
    activation: Activation
    """Applied before results are rounded; for integers, after they are truncated."""

    def fill(self) -> None:
        """Write the value of outputs that no tap reaches."""
        dtype = np.dtype(np.uint64 if self.out.dtype.kind in "iu" else np.float32)
        if self.bias is not None:
            dtype = self.bias.dtype
        sums = np.zeros((*self.out.shape[1:3], *(1 for _ in self.spans)), dtype)
        self._finish(sums, slice(None), slice(None), self.out)

    def write(self, images: slice, tile: ImageTile, remainders: Remainders, sums: Array) -> None:
        """Write the sums of a tile, ``[N, group, out, *r, *u]``, which may be changed.

        The sub-convolutions of all combinations of the remainders are written.
        """
        axes = len(self.spans)
        # Each position u is followed by its remainder r: [N, group, out, u, r, u, r, ...].
        order = [0, 1, 2, *(a for i in range(axes) for a in (3 + axes + i, 3 + i))]
        ordered = sums.transpose(order)
        target = self.out[images, tile.groups, tile.outs]
        for pieces in _pieces(self.spans, remainders, tile.begin, tile.end):
            index = [s for piece in pieces for s in (piece.positions, piece.remainders)]
            source = pick(ordered, ..., *index)
            place = pick(target, ..., *(piece.outputs for piece in pieces))
            # Splitting axes gives a view for any memory layout of the output.
            self._finish(source, tile.groups, tile.outs, place.reshape(source.shape))

    def _finish(self, sums: Array, groups: slice, outs: slice, target: Array) -> None:
        """Write ``activation(sums + bias)``, rounded once."""
        bias = None
        if self.bias is not None:
            bias = self.bias[groups, outs]
            bias = bias.reshape(*bias.shape, *(1,) * (target.ndim - 3))
        if self.activation.type is ActivationType.NONE:
            if bias is None:
                np.copyto(target, sums, casting="unsafe")
            else:
                np.add(sums, bias, out=target, casting="unsafe")
            return
        total = sums if bias is None else np.add(sums, bias, out=sums)
        if target.dtype.kind in "iu":
            # The sign of a sum is known only modulo 2^bits.
            total = total.astype(target.dtype)
        np.copyto(target, self.activation.apply(total), casting="unsafe")


class _AxisCopy(NamedTuple):
    """Results of one axis that can be copied at once: indices in the tile and its remainders."""

    positions: slice
    remainders: slice
    outputs: slice
    """Indices of the outputs; those of several sub-convolutions are interleaved."""


@functools.lru_cache(maxsize=4096)
def _pieces(
    spans: tuple[AxisSpan, ...],
    remainders: Remainders,
    begin: tuple[int, ...],
    end: tuple[int, ...],
) -> list[tuple[_AxisCopy, ...]]:
    per_axis = [
        _pieces_of_axis(*axis, last=i == len(spans) - 1)
        for i, axis in enumerate(zip(spans, remainders, begin, end, strict=True))
    ]
    return list(itertools.product(*per_axis))


def _pieces_of_axis(
    span: AxisSpan, remainders: tuple[int, ...], begin: int, end: int, *, last: bool
) -> list[_AxisCopy]:
    """Return all results of one axis that are part of the output.

    If all sub-convolutions are present, they are written together, so that rows of the output are
    contiguous; except along the last axis, where the loop over the positions of a single one is
    longest.
    """
    s = span.stride
    low, high = max(begin, -(-span.pad // s)), min(end, (span.pad + span.output) // s)
    edges = [(begin, end)]
    pieces = []
    if not last and len(remainders) == s > 1 and low < high:
        at = slice(low - begin, high - begin)
        pieces.append(_AxisCopy(at, slice(0, s), slice(low * s - span.pad, high * s - span.pad)))
        edges = [(begin, low), (high, end)]
    for first, stop in edges:
        for i, remainder in enumerate(remainders):
            u, v = span.clip(remainder, first, stop)
            if u < v:
                y = u * s + remainder - span.pad
                outputs = slice(y, y + (v - u - 1) * s + 1, s)
                pieces.append(_AxisCopy(slice(u - begin, v - begin), slice(i, i + 1), outputs))
    return pieces
