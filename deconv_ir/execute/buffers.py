"""Assigns buffers to tensors by their lifetimes."""

from __future__ import annotations

from collections.abc import Sequence

from deconv_ir.ir.dtypes import Array
from deconv_ir.ir.operation import TensorInfo
from deconv_ir.ir.regions import has_known_elements
from deconv_ir.ir.shapes import element_count, is_static, static

# Smaller arrays are taken from the allocator, whose memory is likely to be in cache.
_SMALLEST_BUFFER = 1 << 20
# Factor by which buffers may raise the peak above its lower bound.
_SLACK = 1.02


def tensor_bytes(info: TensorInfo) -> int | None:
    """Return the bytes of a tensor as an array; None if unknown."""
    if info.element_type is None or not is_static(info.shape):
        return None
    try:
        itemsize: int = info.element_type.numpy().itemsize
    except TypeError:  # strings
        return None
    return element_count(static(info.shape)) * itemsize


def known_array(info: TensorInfo) -> Array | None:
    """Return the elements of a tensor where inference has found them all, read-only."""
    known = info.value if has_known_elements(info) else info.reals
    if known is None or info.element_type is None or not is_static(info.shape):
        return None
    import numpy as np

    array: Array = np.array(known, info.element_type.numpy()).reshape(static(info.shape))
    array.flags.writeable = False
    return array


class Group:
    """Tensors that may share memory, alive from step `begin` to step `end`.

    `external` memory is not ours to plan; `takes_out`: the first tensor can be written to a buffer.
    """

    __slots__ = ("begin", "buffer", "bytes", "end", "external", "takes_out")

    def __init__(self, begin: int, size: int, *, external: bool = False, takes_out: bool = False):
        self.begin = begin
        self.end = begin
        self.bytes = size
        self.external = external
        self.takes_out = takes_out
        self.buffer: int | None = None


def live_bytes(groups: Sequence[Group], steps: int) -> list[int]:
    """Return the bytes alive during each step."""
    change = [0] * (steps + 2)
    for group in groups:
        change[group.begin] += group.bytes
        change[min(group.end, steps - 1) + 1] -= group.bytes
    live, total = [], 0
    for step in range(steps):
        total += change[step]
        live.append(total)
    return live


def assign_buffers(groups: Sequence[Group], live: list[int], bound: int) -> list[int]:
    """Let large tensors reuse the memory of dead ones where that does not raise the peak.

    `live` is increased by the bytes of idle buffers.
    """
    limit = int(bound * _SLACK)
    last = len(live)
    capacities: list[int] = []
    free_since: dict[int, int] = {}
    busy: list[tuple[int, int]] = []
    for group in sorted(groups, key=lambda g: g.begin):
        if not group.takes_out or group.bytes < _SMALLEST_BUFFER or group.end >= last:
            continue
        for end, buffer in [b for b in busy if b[0] < group.begin]:
            free_since[buffer] = end + 1
            busy.remove((end, buffer))
        fitting = sorted((capacities[b], b) for b in free_since if capacities[b] >= group.bytes)
        for capacity, buffer in fitting:
            idle = range(free_since[buffer], group.begin)
            waste = range(group.begin, group.end + 1)
            extra = capacity - group.bytes
            if all(live[i] + capacity <= limit for i in idle) and all(
                live[i] + extra <= limit for i in waste
            ):
                for i in idle:
                    live[i] += capacity
                for i in waste:
                    live[i] += extra
                group.buffer = buffer
                del free_since[buffer]
                break
        if group.buffer is None:
            group.buffer = len(capacities)
            capacities.append(group.bytes)
        busy.append((group.end, group.buffer))
    return capacities
