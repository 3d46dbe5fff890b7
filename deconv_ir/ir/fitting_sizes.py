"""Sizes of a dynamic model's inputs that fit all of its layers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from deconv_ir.errors import DeconvError
from deconv_ir.ir.geometry import Dim, bounds
from deconv_ir.ir.graph import Graph
from deconv_ir.ir.infer import infer
from deconv_ir.ir.operation import Context, TensorInfo

MAX_STRIDE: Final = 1 << 12
_TRIED: Final = 96
"""Maximum number of inferences."""
_USUAL: Final = 64
_CHANNELS: Final = (3, 1, 2, 4, 6, 8, 16, 32, 64, 128, 256, 512)
_LAST: Final = (1, 2, 3, 4, 5, 6)
"""Extents of a last axis that is channels, or coordinates."""
_OF_CONSTANTS: Final = 8
"""Maximum number of extents that are taken from constants."""


def total_stride(graph: Graph) -> int:
    """Return the largest product of strides on a path, reduced by upsampling."""
    layers, sources = graph.layers, graph.topology.sources
    totals = [1] * len(layers)
    for index in graph.topology.order:
        operation = layers[index].operation
        before = max((totals[s[0]] for s in sources[index] if s is not None), default=1)
        step = max(getattr(operation, "strides", None) or (1,))
        block = getattr(operation, "block_size", 1)
        step *= block if isinstance(block, int) else 1
        if hasattr(operation, "output_padding") or layers[index].type == "DepthToSpace":
            totals[index] = max(1, before // max(1, step))
        else:
            totals[index] = min(before * max(1, step), MAX_STRIDE)
    return max(totals, default=1)


def has_unknown_channels(shape: Sequence[Dim]) -> bool:
    """Whether axis 1, if dynamic, is channels, for which only one number fits.

    Axis 1 is a size in ``[N, time, channels]`` and ``[N, height, width, channels]``.
    """
    dynamic = [not isinstance(dim, int) for dim in shape[2:]]
    return bool(dynamic) and (dynamic[-1] or (len(dynamic) > 1 and not any(dynamic)))


def constant_extents(graph: Graph) -> list[int]:
    """Return extents of the constants of rank 2 and more, first those that are used first.

    The number of channels that an input must have is one of them in most networks.
    """
    layers, sources = graph.layers, graph.topology.sources
    found: dict[int, None] = {}
    for index in graph.topology.order:
        if layers[index].type in ("Const", "Convert"):
            continue
        for source in sources[index]:
            if source is None:
                continue
            before = layers[source[0]]
            if before.type == "Convert" and sources[source[0]]:  # of compressed weights
                behind = sources[source[0]][0]
                before = before if behind is None else layers[behind[0]]
            shape = getattr(before.operation, "shape", None) or ()
            if before.type == "Const" and len(shape) > 1:
                found.update(dict.fromkeys(d for d in shape if isinstance(d, int) and d > 1))
        if len(found) >= _OF_CONSTANTS:
            break
    return list(found)[:_OF_CONSTANTS]


def fitting_sizes(
    graph: Graph, context: Context, shapes: Mapping[int, tuple[Dim, ...]]
) -> dict[int, tuple[int, ...]] | None:
    """Return static shapes of the inputs that fit every layer; None if none of those tried does.

    A dynamic batch is 1, other dynamic dims are multiples of the network's total stride, at least
    64 if that fits, within the bounds of the dims.

    Parameters
    ----------
    graph : Graph
    context : Context
    shapes : mapping
        Index of each Parameter -> its shape.
    """
    tried = set()
    candidates = _candidates(total_stride(graph), constant_extents(graph), shapes)
    for candidate in itertools.islice(candidates, _TRIED):
        key = tuple(candidate.values())
        if key in tried:
            continue
        tried.add(key)
        given = {
            index: TensorInfo(shape, graph.layers[index].outputs[0].element_type)
            for index, shape in candidate.items()
            if graph.layers[index].outputs
        }
        try:
            inference = infer(graph, context, given)
        except DeconvError:
            continue
        if not any(found.rule == "declared-dims" for found in inference.findings):
            return candidate
    return None


def _candidates(
    stride: int, constants: Sequence[int], shapes: Mapping[int, tuple[Dim, ...]]
) -> Iterator[dict[int, tuple[int, ...]]]:
    usual = stride * -(-_USUAL // stride)
    sizes = dict.fromkeys(
        (usual, 2 * usual, 4 * usual, math.lcm(stride, 224), stride, 16 * usual, 256 * usual)
    ) | dict.fromkeys((32, 16, 8, 4, 2, 1))
    has_channels = any(
        len(shape) > 2 and not isinstance(shape[1], int) and has_unknown_channels(shape)
        for shape in shapes.values()
    )
    has_last = any(len(s) > 1 and not isinstance(s[-1], int) for s in shapes.values())
    for channels in _CHANNELS if has_channels else (None,):
        for size in itertools.islice(sizes, 3 if has_channels else None):
            yield _sized(shapes, size, channels, None, batch=False)
    for channels in constants if has_channels else ():
        yield _sized(shapes, usual, channels, None, batch=False)
    for channels in (1, 4, 16) if has_channels else ():
        yield _sized(shapes, 1, channels, None, batch=False)
    for size in (usual, 2 * usual):
        yield _sized(shapes, size, None, None, batch=True)
        for last in (*_LAST, *constants) if has_last else ():
            yield _sized(shapes, size, None, last, batch=False)


def _sized(
    shapes: Mapping[int, tuple[Dim, ...]],
    size: int,
    channels: int | None,
    last: int | None,
    *,
    batch: bool,
) -> dict[int, tuple[int, ...]]:
    """Return shapes with a size in place of dynamic dims; `batch`: of that of axis 0, too."""
    found = {}
    for index, shape in shapes.items():
        dims = []
        for axis, dim in enumerate(shape):
            extent = size
            if axis == 0 and len(shape) > 1 and not batch:
                extent = 1
            elif axis == 1 and channels is not None and has_unknown_channels(shape):
                extent = channels
            elif axis == len(shape) - 1 and last is not None:
                extent = last
            least, most = bounds(dim)
            extent = max(extent, least, 1)
            dims.append(
                dim if isinstance(dim, int) else extent if most is None else min(extent, most)
            )
        found[index] = tuple(dims)
    return found
