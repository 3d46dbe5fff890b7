"""Walks along the edges of a graph: the layer or constant from which an input comes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from deconv_ir.ir.shapes import Shape
from deconv_ir.linter.constants import MAX_RANGE_BYTES, chunks, needed_bytes
from deconv_ir.ops.constants.constant import Const

if TYPE_CHECKING:
    from deconv_ir.ir.geometry import Axis
    from deconv_ir.ir.graph import Layer
    from deconv_ir.ir.operation import Infos
    from deconv_ir.linter.inferred_graph import InferredGraph
    from deconv_ir.ops.convolution.deconvolution import Deconvolution

MAX_STEPS = 4
"""Maximum layers between a constant and its use: Convert, Subtract, Multiply, Convert."""


def producer(context: InferredGraph, index: int, port: int = 0) -> int | None:
    """Return the layer that produces an input; None if it is not connected."""
    sources = context.topology.sources[index]
    source = sources[port] if port < len(sources) else None
    return None if source is None else source[0]


def repeated(context: InferredGraph, *types: str) -> Iterator[tuple[int, Layer, int, Layer]]:
    """Iterate over valid layers of some types that follow a layer of the same type."""
    layers = context.graph.layers
    for index, layer in context.valid_layers(*types):
        before = producer(context, index)
        if before is not None and layers[before].type == layer.type:
            yield index, layer, before, layers[before]


def constant_before(
    context: InferredGraph, index: int, port: int, through: tuple[str, ...] = ("Convert",)
) -> tuple[int, Const] | None:
    """Return the constant that an input comes from, and its index.

    `through` names the types of layers that may be in between; their first input is followed.
    """
    at = producer(context, index, port)
    for _ in range(MAX_STEPS + 1):
        if at is None:
            return None
        layer = context.graph.layers[at]
        if isinstance(layer.operation, Const):
            return at, layer.operation
        if layer.type not in through:
            return None
        at = producer(context, at)
    return None


def is_readable(context: InferredGraph, const: Const) -> bool:
    """Whether a constant has elements, all within the .bin; otherwise other rules report it."""
    needed = needed_bytes(const)
    return (
        context.weights is not None
        and bool(needed)
        and const.element_type is not None
        and bool(const.element_type.bits)
        and const.offset + (needed or 0) <= len(context.weights)
        and (needed or 0) <= const.size
    )


def real_elements(context: InferredGraph, index: int, port: int) -> tuple[float, ...] | None:
    """Return the elements of an input that is a small constant of floating point."""
    known = context.inputs(index)[port].reals
    found = constant_before(context, index, port)
    if known is not None or found is None or not is_readable(context, found[1]):
        return known
    const = found[1]
    assert context.weights is not None
    assert const.element_type is not None
    if const.size > MAX_RANGE_BYTES or not const.element_type.is_float:
        return None
    return tuple(float(x) for _, data in chunks(const, context.weights) for x in data)


def kernel_axes(operation: Deconvolution, inputs: Infos) -> Iterator[tuple[int, Axis, int]]:
    """Iterate over the spatial axes of a known kernel extent: number, attributes, extent."""
    spatial = operation.spatial_count(inputs)
    if spatial is None:
        return
    kernel = operation.dims(inputs, spatial)[1].kernel
    for number, (axis, extent) in enumerate(zip(operation.axes(spatial), kernel, strict=True)):
        if isinstance(extent, int):
            yield number, axis, extent


def is_per_channel(shape: Shape, data: Shape) -> bool:
    """Whether a constant has one element, or one for each channel of data."""
    if shape is None or data is None or len(shape) > len(data):
        return False
    dims = (1,) * (len(data) - len(shape)) + shape
    return all(dim == 1 or (axis == 1 and dim == data[1]) for axis, dim in enumerate(dims))


def behind_bias(context: InferredGraph, index: int | None) -> int | None:
    """Return the layer before an Add of a constant that is its only user, or the layer itself."""
    if index is None or context.graph.layers[index].type != "Add":
        return index
    data = [port for port in (0, 1) if constant_before(context, index, port) is None]
    if context.use_counts[index] != 1 or len(data) != 1:
        return index
    return producer(context, index, data[0])
