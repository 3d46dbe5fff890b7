"""Assignment of tensors to places in one arena, by their lifetimes."""

from __future__ import annotations

import bisect
import operator
from collections.abc import Iterable, Sequence

from deconv_ir.ir.dtypes import Array
from deconv_ir.ir.operation import TensorInfo
from deconv_ir.ir.shapes import element_count, is_static, static

ALIGNMENT = 64
"""Alignment of tensors in an arena: a cache line."""
# The time to find places is quadratic in their number.
_MOST_PLACES = 2000


def tensor_bytes(info: TensorInfo) -> int | None:
    """Return the bytes of a tensor as an array; None if unknown."""
    if info.element_type is None or not is_static(info.shape) or info.element_type.kind == "string":
        return None
    itemsize: int = info.element_type.numpy().itemsize
    return element_count(static(info.shape)) * itemsize


def known_array(info: TensorInfo) -> Array | None:
    """Return the elements of a tensor, read-only, if inference has found them all."""
    known = info.value if info.is_known else info.reals
    if known is None or info.element_type is None or not is_static(info.shape):
        return None
    import numpy as np

    array: Array = np.array(known, info.element_type.numpy()).reshape(static(info.shape))
    array.flags.writeable = False
    return array


class SharedPlace:
    """Tensors that may share memory, alive from step `begin` to step `end`.

    `external` memory is not planned; `takes_out`: the first tensor can be written to a given array.
    `offset` is the place in the arena, in bytes; None: outside.
    """

    __slots__ = ("begin", "bytes", "end", "external", "offset", "takes_out")

    def __init__(self, begin: int, size: int, *, external: bool = False, takes_out: bool = False):
        self.begin = begin
        self.end = begin
        self.bytes = size
        self.external = external
        self.takes_out = takes_out
        self.offset: int | None = None


class Union:
    """Groups that are parts of one tensor, as the inputs of a Concat are parts of its output.

    `members` are the tensor's own group and its parts, each with its distance from the start in
    bytes.
    """

    __slots__ = ("group", "members")

    def __init__(self, members: Sequence[tuple[SharedPlace, int]]):
        self.members = tuple(members)
        whole = self.members[0][0]
        self.group = SharedPlace(min(g.begin for g, _ in members), whole.bytes, takes_out=True)
        self.group.end = whole.end


def live_bytes(groups: Iterable[SharedPlace], steps: int) -> list[int]:
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


def arrange(
    groups: Sequence[SharedPlace], taken: Sequence[int], limit: int, unions: Sequence[Union] = ()
) -> tuple[int, list[int]]:
    """Assign places to tensors in an arena, which is kept between runs.

    If the arena, which may be partly idle, would raise the peak above `limit`, the parts of the
    largest `unions` get places of their own, then the largest tensors remain outside.  `taken` has
    the bytes that each step uses in addition to its tensors.

    Returns
    -------
    int
        Bytes of the arena.
    list of int
        For each step, bytes of the arena and of the tensors outside that are alive.
    """
    steps = len(taken)
    able = [g for g in groups if g.takes_out and g.end < steps and g.bytes]
    most = max((g.bytes for g in able), default=0)
    while True:
        joined = {member for union in unions for member, _ in union.members}
        inside = [union.group for union in unions]
        inside += [g for g in able if g not in joined and g.bytes <= most]
        inside = sorted(inside, key=lambda group: (-group.bytes, group.begin))[:_MOST_PLACES]
        arena = _place(inside)
        for union in unions:
            for member, distance in union.members:
                start = union.group.offset
                member.offset = None if start is None else start + distance
        live = [arena + size for size in live_bytes((g for g in groups if g.offset is None), steps)]
        if max(map(operator.add, live, taken), default=0) <= limit or not inside:
            return arena, live
        for group in (*able, *inside):
            group.offset = None
        if unions:
            largest = max(union.group.bytes for union in unions)
            unions = [union for union in unions if 2 * union.group.bytes <= largest]
        else:
            most = inside[0].bytes // 2


def _place(groups: Sequence[SharedPlace]) -> int:
    """Set the offsets of groups in the order given; returns the bytes of the arena.

    Each group takes the smallest gap among the groups alive at the same time: 'Greedy by size for
    offset calculation' of Pisarchyk and Lee, 'Efficient memory management for deep neural net
    inference' (2020).
    """
    placed: list[tuple[int, int, SharedPlace]] = []
    arena = 0
    for group in groups:
        size = -(-group.bytes // ALIGNMENT) * ALIGNMENT
        best, least, end = -1, arena + size, 0
        for first, last, other in placed:
            if other.begin <= group.end and group.begin <= other.end:
                if size <= first - end < least:
                    best, least = end, first - end
                end = max(end, last)
        group.offset = end if best < 0 else best
        bisect.insort(placed, (group.offset, group.offset + size, group), key=lambda p: p[:2])
        arena = max(arena, group.offset + size)
    return arena
