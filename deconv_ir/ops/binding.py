"""Functions to which operations are bound when shapes and some inputs are known.

See `Operation.bind`.
"""

from __future__ import annotations

import abc
from collections.abc import Sequence
from typing import Any

from deconv_ir.ir.boxes import Boxes, LayerTile
from deconv_ir.ir.operation import Call, Context, Infos, Operation, TensorInfo
from deconv_ir.ir.shapes import static
from deconv_ir.ops.checks import known_integers


def known_lists(inputs: Infos) -> list[tuple[int, ...]] | None:
    """Return the elements of all inputs; None unless all are known."""
    found = [known_integers(info) for info in inputs]
    known = [values for values in found if values is not None]
    return known if len(known) == len(found) else None


Lists = Sequence[tuple[int, ...]]


class OfLists(Operation, abc.ABC):
    """An operation on an array whose other inputs are small lists."""

    def bind(self, inputs: Infos, outputs: Infos, context: Context) -> Call:
        """Evaluate the lists once if they are known."""
        known = known_lists(inputs[1:])
        if known is None:
            return super().bind(inputs, outputs, context)
        return self.bind_known(static(inputs[0].shape), known, outputs)

    def tile(self, boxes: Boxes, inputs: Infos, outputs: Infos, context: Context) -> LayerTile:
        """Find the input boxes if the lists are known."""
        known = known_lists(inputs[1:])
        if known is None:
            return super().tile(boxes, inputs, outputs, context)
        return self.tile_known(boxes, inputs, outputs, known)

    def tile_known(self, boxes: Boxes, inputs: Infos, outputs: Infos, lists: Lists) -> LayerTile:
        """Return the result of `tile`, given the lists."""
        raise NotImplementedError

    @abc.abstractmethod
    def bind_known(self, shape: tuple[int, ...], lists: Lists, outputs: Infos) -> Call:
        """Return a call that computes the outputs, given the first input's shape and the lists."""


def reshaped(output: TensorInfo) -> Call:
    """Return a call that views the first input in the shape of the output."""
    shape = static(output.shape)
    return lambda arrays, out: (arrays[0].reshape(shape),)


def indexed(*indices: Any) -> Call:
    """Return a call that views parts of the first input, one for each output."""
    if len(indices) == 1:
        (index,) = indices
        return lambda arrays, out: (arrays[0][index],)
    return lambda arrays, out: [arrays[0][index] for index in indices]


def cut_along(axis: int, outputs: Infos) -> Call:
    """Return a call that views consecutive parts of the first input along an axis."""
    indices, start = [], 0
    for output in outputs:
        stop = start + static(output.shape)[axis]
        indices.append((*(slice(None),) * axis, slice(start, stop)))
        start = stop
    return indexed(*indices)
