"""Boxes of tensors: a range of indices on each axis."""

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple, Protocol

Span = tuple[int, int]
"""The indices from the first to before the second."""

Box = tuple[Span, ...]
"""A span on each axis."""

Boxes = Sequence[Box | None]
"""The box of each output that is computed; None: not needed."""


def whole_box(shape: Sequence[int]) -> Box:
    """Return the box of all elements."""
    return tuple((0, extent) for extent in shape)


def box_shape(box: Box) -> tuple[int, ...]:
    """Return the extents of a box."""
    return tuple(stop - start for start, stop in box)


def hull(boxes: Iterable[Box]) -> Box:
    """Return the smallest box around boxes of one rank.

    Examples
    --------
    >>> from deconv_ir.ir.boxes import hull
    >>> hull([((0, 2), (4, 5)), ((1, 3), (4, 6))])
    ((0, 3), (4, 6))
    """
    return tuple(
        (min(start for start, _ in spans), max(stop for _, stop in spans))
        for spans in zip(*boxes, strict=True)
    )


def sole(boxes: Boxes) -> Box:
    """Return the box of an operation's only output, which must be needed."""
    (box,) = boxes
    assert box is not None, "a layer is computed where its output is needed"
    return box


def partial_axes(box: Box, shape: Sequence[int]) -> tuple[int, ...]:
    """Return the axes on which a box has fewer elements than the tensor."""
    return tuple(
        a for a, (span, extent) in enumerate(zip(box, shape, strict=True)) if span != (0, extent)
    )


def in_steps(box: Box, shape: Sequence[int], steps: Sequence[tuple[int, int]]) -> Box:
    """Return the smallest box that contains `box` and consists of whole steps on each axis.

    `steps` has, for each axis, the elements of a step, and the number of steps by which the span
    grows at either end; steps of one element leave the span unchanged.  Spans end with the tensor.

    Examples
    --------
    >>> from deconv_ir.ir.boxes import in_steps
    >>> in_steps(((2, 5), (4, 5)), (8, 8), ((1, 0), (2, 0)))
    ((2, 5), (4, 6))
    >>> in_steps(((2, 5), (8, 9)), (9, 9), ((1, 0), (2, 0)))  # there are steps of one element
    ((2, 5), (6, 9))
    """
    spans = []
    for (start, stop), extent, (step, margin) in zip(box, shape, steps, strict=True):
        first, last = start, stop
        if step > 1 and start < stop:
            first, last = (start // step - margin) * step, (-(-stop // step) + margin) * step
            if last > extent:  # at least one step is whole
                first = min(first, (extent // step - 1) * step)
        spans.append((max(0, first), min(last, extent)))
    return tuple(spans)


def inside(box: Box, outer: Box) -> tuple[slice, ...]:
    """Return the index of a box in an array that holds the elements of an outer box."""
    return tuple(
        slice(start - first, stop - first)
        for (start, stop), (first, _) in zip(box, outer, strict=True)
    )


def as_slices(box: Box) -> tuple[slice, ...]:
    """Return the index of a box in an array of the whole tensor."""
    return tuple(slice(*span) for span in box)


def nearest_element(span: Span, extent: int) -> Span:
    """Return the element nearest to a span outside the data; (0, 0) if the data is empty."""
    at = max(0, min(span[0], extent - 1))
    return at, min(at + 1, extent)


class LayerTile(NamedTuple):
    """The computation of boxes of a layer's outputs; see `Operation.tile`.

    Attributes
    ----------
    inputs : tuple of Box or None
        The box of each input that the computation reads; None: not needed.
    operation : Operation
        Computes the boxes of the outputs from those of the inputs.
    blocked : tuple of int
        Axes of the outputs that would have to be whole.
    seen : tuple of int
        Axes of the first input that are reduced, and so needed whole for any box.

    Examples
    --------
    >>> from deconv_ir.operations import Context, LayerTile, TensorInfo, find_operation
    >>> data = TensorInfo((1, 4, 16))
    >>> tile = find_operation("ReLU")().tile([((0, 1), (0, 4), (8, 12))], [data], [data], Context())
    >>> isinstance(tile, LayerTile), tile.inputs
    (True, (((0, 1), (0, 4), (8, 12)),))
    """

    inputs: tuple[Box | None, ...]
    operation: Any
    blocked: tuple[int, ...] = ()
    seen: tuple[int, ...] = ()


class Statistic(Protocol):
    """A statistic over whole axes of a layer's first input, accumulated box by box.

    Boxes may be measured anywhere, such as on the workers of a cluster.

    Attributes
    ----------
    inputs : int
        Number of inputs of the layer that remain.

    Examples
    --------
    >>> import numpy as np
    >>> from deconv_ir.operations import Context, Statistic, TensorInfo, find_operation
    >>> from deconv_ir.ir.dtypes import F32, I64
    >>> data, axes = TensorInfo((1, 4), F32), TensorInfo((1,), I64, value=(1,))
    >>> mean = find_operation("ReduceMean")()
    >>> found: Statistic = mean.statistic([data, axes], mean.infer([data, axes], Context()))
    >>> found.add(((0, 1), (0, 2)), found.measure(np.array([[1.0, 2.0]])))
    >>> found.add(((0, 1), (2, 4)), found.measure(np.array([[3.0, 6.0]])))
    >>> found.result().execute([], Context())
    (array([3.], dtype=float32),)
    """

    inputs: int

    def measure(self, array: Any) -> Any:
        """Return the contribution of a box for `add`; this object is not changed."""
        ...

    def add(self, box: Box, measured: Any) -> None:
        """Add the result of `measure` for a box."""
        ...

    def result(self) -> Any:
        """Return the `Operation` that replaces the layer's."""
        ...
