"""Where constants stand in the .bin, and what is in them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from deconv_ir.errors import DeconvError
from deconv_ir.ir.operation import Operation
from deconv_ir.ir.shapes import element_count, static
from deconv_ir.ops.constants.constant import Const

if TYPE_CHECKING:
    from deconv_ir.linter.subject import Subject
    from deconv_ir.linter.weights import WeightsView

CHUNK_BYTES = 1 << 24


def needed_bytes(const: Const) -> int | None:
    """Return how many bytes shape and type take; None where they do not tell."""
    if const.element_type is None:
        return None
    if not const.element_type.bits:
        return const.size  # strings: as long as they are
    try:
        return const.element_type.size_of(element_count(static(const.shape)))
    except ValueError:
        return None


def are_untidy(subject: Subject) -> bool:
    """Tell whether any rule about sizes and offsets may have something to say.

    Tidy constants have the size of shape and type, are the same or apart, and
    fill the .bin.
    """
    spans: set[tuple[int, int]] = set()
    count = 0
    for _, _, const in subject.constants():
        count += 1
        if needed_bytes(const) != const.size:
            return True
        if const.size:
            spans.add((const.offset, const.offset + const.size))
    if count < len(subject.by_type.get("Const", ())):
        return True  # the attributes of one can not be read
    at = 0
    for start, end in sorted(spans):
        if start != at:
            return True
        at = end
    return subject.weights is not None and at != len(subject.weights)


def span_text(operation: Operation) -> str:
    """Write the range of a constant."""
    assert isinstance(operation, Const)
    return f"{operation.offset} to {operation.offset + operation.size}"


def _ranges(subject: Subject) -> list[tuple[int, int, list[int]]]:
    """Return start, end and layers of all distinct ranges, in order."""
    ranges: dict[tuple[int, int], list[int]] = {}
    for index, _, const in subject.constants():
        if const.size:
            ranges.setdefault((const.offset, const.offset + const.size), []).append(index)
    return [(*span, indices) for span, indices in sorted(ranges.items())]


def overlaps(subject: Subject) -> Iterator[tuple[int, int]]:
    """Iterate over the constants that share bytes with another one, and name that one.

    Each constant comes once, however many it overlaps with.
    """
    partner: dict[int, int] = {}
    ranges = [r for r in _ranges(subject) if needed_bytes_of(subject, r[2][0])]
    furthest = None
    for current in ranges:
        start, end, indices = current
        if furthest is not None and start < furthest[1]:
            for index in indices:
                partner.setdefault(index, furthest[2][0])
            for index in furthest[2]:
                partner.setdefault(index, indices[0])
        if furthest is None or end > furthest[1]:
            furthest = current
    yield from sorted(partner.items())


def needed_bytes_of(subject: Subject, index: int) -> int | None:
    """Return how many bytes a constant layer takes."""
    operation = subject.graph.layers[index].operation
    assert isinstance(operation, Const)
    return needed_bytes(operation)


def gaps(subject: Subject, length: int) -> Iterator[tuple[int, int, int | None]]:
    """Iterate over the stretches of the .bin that no constant uses.

    Returns
    -------
    start, end : int
    layer : int or None
        The constant that begins where the gap ends; at the end of the file,
        the last one before it; None: there is none.
    """
    covered = 0
    last = None
    for start, end, indices in _ranges(subject):
        if start > covered and start <= length:
            yield covered, start, indices[0]
        if end > covered:
            covered, last = end, indices[0]
    if covered < length:
        yield covered, length, last


def count_not_finite(const: Const, weights: WeightsView) -> tuple[int, int, int]:
    """Count the NaN and infinite elements of a constant.

    Returns
    -------
    nans, infinities : int
    first : int
        Index of the first of them; -1: there is none.
    """
    import numpy as np

    from deconv_ir.ops.constants.constant import unpack

    assert const.element_type is not None
    element_type = const.element_type
    count = element_count(static(const.shape))
    step = max(24, CHUNK_BYTES * 8 // element_type.bits // 24 * 24)  # whole bytes, whole groups
    nans = infinities = 0
    first = -1
    for start in range(0, count, step):
        size = min(step, count - start)
        offset = const.offset + element_type.size_of(start)
        try:
            data = unpack(weights.read(offset, element_type.size_of(size)), element_type, size)
        except DeconvError:
            return 0, 0, -1  # of a type that has no arrays, so no NaN either
        # Types of eight bits and fewer have no isfinite of their own.
        wide = data if data.dtype.kind == "f" else data.astype(np.float32)
        bad = ~np.isfinite(wide)
        if bad.any():
            if first < 0:
                first = start + int(np.argmax(bad))
            is_nan = int(np.isnan(wide).sum())
            nans += is_nan
            infinities += int(bad.sum()) - is_nan
    return nans, infinities, first
