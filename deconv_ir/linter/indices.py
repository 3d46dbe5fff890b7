"""Constant indices, and the extents that they must stay within.

Source: OpenVINO operation specifications.  Measured with OpenVINO 2026.4: the CPU plugin refuses
such indices when a model runs, reads or writes other memory, or gives zeros.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from deconv_ir.linter.constants import MAX_RANGE_BYTES, chunks
from deconv_ir.linter.patterns import constant_before, is_readable

if TYPE_CHECKING:
    from deconv_ir.ir.geometry import Dim
    from deconv_ir.ir.graph import Layer
    from deconv_ir.ir.operation import TensorInfo
    from deconv_ir.ir.shapes import Shape
    from deconv_ir.linter.context import LintContext

INDICES: Final = 1
"""The input that has the indices, of all these types."""
ALONG_AXIS: Final = ("Gather", "GatherElements", "ScatterUpdate", "ScatterElementsUpdate")
IN_TUPLES: Final = ("GatherND", "ScatterNDUpdate")
OF_ROWS: Final = (
    *("EmbeddingBagOffsetsSum", "EmbeddingBagPackedSum", "EmbeddingSegmentsSum"),
    *("EmbeddingBagOffsets", "EmbeddingBagPacked"),
)
TYPES: Final = (*ALONG_AXIS, *IN_TUPLES, *OF_ROWS, "ReverseSequence")


class Outside(NamedTuple):
    """An index that is not allowed."""

    value: int
    least: int
    most: int
    where: str


def outside(context: LintContext, index: int, layer: Layer) -> Outside | None:
    """Return the first constant index of a layer that is outside of its axis."""
    bounds = list(_bounds(context, index, layer))
    if not bounds:
        return None
    for number, value in enumerate(_values(context, index)):
        bound = bounds[number % len(bounds)]
        if bound is not None and not bound.least <= value <= bound.most:
            return bound._replace(value=value)
    return None


def _values(context: LintContext, index: int) -> Iterator[int]:
    """Iterate over the indices, if they are constant; an unknown one is passed over as 0 or 1."""
    info = context.inputs(index)[INDICES]
    if info.value is not None:
        known = [v for v in info.value if isinstance(v, int)]
        yield from known if len(known) == len(info.value) else ()
        return
    found = constant_before(context, index, INDICES)
    if found is None or not is_readable(context, found[1]) or found[1].size > MAX_RANGE_BYTES:
        return
    const = found[1]
    if const.element_type is None or const.element_type.is_float or context.weights is None:
        return
    for _, data in chunks(const, context.weights):
        yield from (int(value) for value in data)


def _bounds(context: LintContext, index: int, layer: Layer) -> Iterator[Outside | None]:
    """Iterate over the bounds of successive indices, which repeat; None: unknown."""
    inputs = context.inputs(index)
    data, kind = inputs[0].shape, layer.type
    if data is None:
        return
    operation = layer.operation
    if kind in IN_TUPLES:
        last = (inputs[INDICES].shape or (None,))[-1]
        first = getattr(operation, "batch_dims", 0)
        if isinstance(last, int) and last + first <= len(data):
            yield from (_within(data, first + axis) for axis in range(last))
    elif kind in OF_ROWS:
        yield _within(data, 0, negative=False)
    elif kind == "ReverseSequence":
        axis = getattr(operation, "seq_axis", 1)
        extent = data[axis] if -len(data) <= axis < len(data) else None
        yield Outside(0, 1, extent, f"axis {axis}") if isinstance(extent, int) else None
    else:
        axis = _axis(inputs, operation)
        if axis is not None and -len(data) <= axis < len(data):
            # OpenVINO's CPU plugin ends with an error for negative indices of ScatterUpdate.
            negative = kind not in ("Gather", "ScatterUpdate") or getattr(
                type(operation), "negative", False
            )
            yield _within(data, axis, negative=negative)


def _axis(inputs: Sequence[TensorInfo], operation: object) -> int | None:
    """Return the axis: an attribute, or the last input."""
    axis = getattr(operation, "axis", None)
    if isinstance(axis, int):
        return axis
    value = inputs[-1].value
    return value[0] if value and isinstance(value[0], int) else None


def _within(data: Shape, axis: int, *, negative: bool = True) -> Outside | None:
    """Return the bounds of an index along an axis; None if its extent is not known."""
    extent: Dim = data[axis] if data is not None else 0
    if not isinstance(extent, int):
        return None
    return Outside(0, -extent if negative else 0, extent - 1, f"axis {axis}")
