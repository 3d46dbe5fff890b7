"""An LSTM with the usual functions over time, all directions and gates at once.

A step on small arrays takes as long as its calls do, so these are few:
sigmoid(x) is (tanh(x / 2) + 1) / 2, and one tanh does for all gates.  What
goes into the gates is computed for some moments at a time.  Names of axes are
those of `recurrence.py`; the gates are f, i, c, o.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from deconv_ir.ops.numeric import np

# Moments at once, below which products are too small.
_LEAST_MOMENTS = 16


class PackedLSTM(NamedTuple):
    """Weights as `lstm` takes them: halved where sigmoid halves, transposed."""

    w: Any
    r: Any
    """Halved again: the hidden state is kept twice as large."""
    b: Any


def _scale(weights: Any) -> Any:
    """Return the factor of each gate's rows."""
    return np.repeat(np.array([0.5, 0.5, 1, 0.5], weights.dtype), weights.shape[1] // 4)


def pack(w: Any, r: Any, b: Any) -> PackedLSTM:
    """Arrange W ``[D, 4 * H, I]``, R ``[D, 4 * H, H]`` and B ``[D, 4 * H]``."""
    scale = _scale(b)
    factors = scale[:, None]
    return PackedLSTM(
        np.ascontiguousarray((w * factors).transpose(0, 2, 1)),
        np.ascontiguousarray((r * (factors * r.dtype.type(0.5))).transpose(0, 2, 1)),
        b * scale,
    )


def unpack(packed: PackedLSTM) -> list[Any]:
    """Return W, R and B as they were: all factors are powers of two."""
    scale = _scale(packed.b)
    return [
        packed.w.transpose(0, 2, 1) / scale[:, None],
        packed.r.transpose(0, 2, 1) / (scale[:, None] * packed.r.dtype.type(0.5)),
        packed.b / scale,
    ]


def moments_at_once(time: int, moment_bytes: int, scratch_bytes: int) -> int:
    """Return how many moments' inputs are multiplied by W at once."""
    # Of 4 gates what goes in, before and after it is put in order, and the hidden states.
    return max(1, min(time, max(_LEAST_MOMENTS, scratch_bytes // max(1, 9 * moment_bytes))))


def lstm_bytes(time: int, moment_bytes: int, scratch_bytes: int) -> int:
    """Return the scratch bytes of `lstm`, given the bytes of a hidden state."""
    return (9 * moments_at_once(time, moment_bytes, scratch_bytes) + 7) * moment_bytes


def lstm(
    x: Any,
    first: list[Any],
    packed: PackedLSTM,
    backwards: Callable[[int], bool],
    scratch_bytes: int,
) -> list[Any]:
    """Run over all of the time.

    Parameters
    ----------
    x : ndarray, [N, T, I]
    first : list of ndarray, [N, D, H]
        Hidden and cell state to begin with.
    packed : PackedLSTM
    backwards : callable
        Whether a direction starts with the last element.
    scratch_bytes : int
        Bound on what comes and goes, where a few moments take no more.

    Returns
    -------
    list of ndarray
        All hidden states ``[N, D, T, H]``, the last hidden and cell state ``[N, D, H]``.
    """
    from deconv_ir.kernels.products import matmul

    batch, time, _ = x.shape
    directions, h = packed.r.shape[:2]
    one, half = np.ones((), x.dtype), np.full((), 0.5, x.dtype)
    hidden, cell = (state.transpose(1, 0, 2).copy() for state in first)
    # Sums of 1 and tanh are twice the gates.  The cell state is halved at once,
    # the hidden state in the end: until then the weights are halved for it.
    hidden *= 2
    at_once = moments_at_once(time, hidden.nbytes, scratch_bytes)
    all_gates = np.empty((at_once, directions, batch, 4 * h), x.dtype)
    all_found = np.empty((at_once, *hidden.shape), x.dtype)
    product, inner = np.empty(all_gates.shape[1:], x.dtype), np.empty_like(cell)
    forget, enter, leave = (product[..., k * h : (k + 1) * h] for k in (0, 1, 3))
    steps = np.empty((batch, directions, time, h), x.dtype)
    for begin in range(0, time, at_once):
        count = min(at_once, time - begin)
        gates, found = all_gates[:count], all_found[:count]
        spans = []
        for d in range(directions):
            start = time - begin - count if backwards(d) else begin
            spans.append(
                (slice(start, start + count), slice(None, None, -1 if backwards(d) else 1))
            )
            span, order = spans[d]
            projected = matmul(x[:, span], packed.w[d])
            np.add(projected.transpose(1, 0, 2)[order], packed.b[d], out=gates[:, d])
            del projected
        for moment, new, target in zip(gates, gates[..., 2 * h : 3 * h], found, strict=True):
            np.matmul(hidden, packed.r, out=product)
            np.add(moment, product, out=moment)
            np.tanh(moment, out=moment)
            np.add(moment, one, out=product)
            np.multiply(cell, forget, out=cell)
            np.multiply(enter, new, out=inner)
            np.add(cell, inner, out=cell)
            np.multiply(cell, half, out=cell)
            np.tanh(cell, out=inner)
            hidden = np.multiply(leave, inner, out=target)
        for d, (span, order) in enumerate(spans):
            np.multiply(found[order, d].transpose(1, 0, 2), half, out=steps[:, d, span])
        hidden = hidden.copy()  # the next moments overwrite it
    hidden *= half
    return [steps, hidden.transpose(1, 0, 2), cell.transpose(1, 0, 2)]
