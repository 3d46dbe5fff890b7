"""The sliding windows of layers: their numbers axis by axis, reach, and taps of each output."""

from __future__ import annotations

import itertools
from collections.abc import Collection, Sequence
from fractions import Fraction
from typing import NamedTuple

from deconv_ir.drawing.graph.captions import family_of
from deconv_ir.errors import DeconvError
from deconv_ir.ir.geometry import (
    Axis,
    AxisGeometry,
    bounds,
    effective_kernel,
    interior_taps,
    tap_counts,
)
from deconv_ir.ir.graph import Graph, Layer
from deconv_ir.ir.infer import Outputs
from deconv_ir.ir.operation import Context, Infos, Operation
from deconv_ir.ir.options import Semantics
from deconv_ir.ir.shapes import is_static, static
from deconv_ir.ir.window import Window
from deconv_ir.ops.convolution.base import AnyConvolution
from deconv_ir.ops.onednn.decomposition import Composite
from deconv_ir.ops.pooling.pooling import Pooling

MAX_TAPS = 512
"""Outputs of an axis whose taps are counted; others repeat those in the middle."""


def is_transposed(operation: Operation) -> bool:
    """Whether an operation spreads each input over a window of outputs."""
    return isinstance(operation, AnyConvolution) and operation.transposed


def windows_of(
    operation: Operation, inputs: Infos, context: Context, semantics: Semantics
) -> tuple[Window, ...] | None:
    """Return the windows of a layer; None if it has no windows, or a number is not known."""
    try:
        found = _geometry(operation, inputs, context._replace(semantics=semantics))
    except DeconvError:
        return None
    if found is None:
        return None
    return tuple(itertools.starmap(Window.of, zip(*found, strict=True)))


_Found = tuple[Sequence[Axis], Sequence[AxisGeometry], Sequence[int], Sequence[int]]


def _geometry(operation: Operation, inputs: Infos, context: Context) -> _Found | None:
    if len(inputs) < 1 or not is_static(inputs[0].shape):
        return None
    if isinstance(operation, Composite):
        steps, _ = operation.build(inputs, context)
        for step in steps.steps:
            if isinstance(step.operation, Pooling | AnyConvolution):
                infos = [steps.infos[i] for i in step.inputs]
                return _geometry(step.operation, infos, steps.context)
        return None
    shape = static(inputs[0].shape)
    if isinstance(operation, Pooling):
        axes: Sequence[Axis] = operation.axes()
        return axes, operation.geometry(shape[2:]), shape[2:], operation.kernel
    if not isinstance(operation, AnyConvolution) or len(inputs) < 2:
        return None
    spatial = operation.spatial_count(inputs)
    geometry = operation.geometry(inputs, context)
    if spatial is None or geometry is None:
        return None
    data, filter_ = operation.dims(inputs, spatial)
    extents = [bounds(x)[0] for x in data.spatial]
    return operation.axes(spatial), geometry, extents, [bounds(k)[0] for k in filter_.kernel]


# Taps


class Taps(NamedTuple):
    """Number of kernel elements that each output of an axis sums, with its range inside."""

    counts: tuple[int, ...]
    least: int
    most: int


def taps_of(window: Window) -> Taps:
    """Count the kernel elements that overlap data, for the first outputs of an axis.

    `least` and `most` are the range over a whole period of strides, away from the borders.
    """
    axis = Axis(window.stride, window.dilation)
    shown = range(min(window.output, MAX_TAPS))
    counts = tap_counts(axis, window.data, window.kernel, window.pad_begin, shown)
    least, most, _ = interior_taps(axis, window.kernel)
    return Taps(counts, least, most)


def advice_of(windows: Sequence[Window]) -> str:
    """Return advice about uneven taps; empty if all inner outputs sum the same number.

    Source: A. Odena, V. Dumoulin and C. Olah, Deconvolution and checkerboard artifacts, 2016.
    """
    found = []
    for number, window in enumerate(windows):
        taps = taps_of(window)
        where = f"axis {number}" if len(windows) > 1 else "the axis"
        if taps.least == 0:
            found.append(
                f"On {where}, some outputs sum no tap: stride {window.stride} is larger than what "
                f"kernel {window.kernel} with dilation {window.dilation} covers. They are bias "
                "alone; use a larger kernel, or a smaller stride."
            )
        elif taps.least < taps.most:
            larger = -(-window.kernel // window.stride) * window.stride
            found.append(
                f"On {where}, outputs alternate between {taps.least} and {taps.most} taps, which "
                f"can show as a checkerboard: kernel {window.kernel} is not a multiple of stride "
                f"{window.stride}. A kernel of {larger} sums evenly; so does resizing, then an "
                "ordinary convolution."
            )
    return " ".join(found)


# Receptive field


class Reach(NamedTuple):
    """The inputs that an output y depends on: from ``step*y + first`` to ``step*y + last``."""

    step: Fraction
    first: Fraction
    last: Fraction

    @property
    def field(self) -> int:
        """Elements in the receptive field; after a coarser tensor, an upper bound."""
        return int(self.last - self.first) + 1

    @property
    def halo(self) -> tuple[int, int]:
        """Elements that a tile needs before and after its part of the input."""
        before, after = -self.first, self.last - self.step + 1
        return max(0, before // 1), max(0, after // 1)


_SAME = frozenset(("elementwise", "activation"))
_ALONG_CHANNELS = frozenset(("Concat", "BatchNormInference", "LRN", "FakeQuantize", "Result"))
_ACROSS = frozenset(("SoftMax", "LogSoftmax", "Softmax", "CumSum"))


def reaches_of(
    graph: Graph,
    outputs: Sequence[Outputs],
    hidden: Collection[int],
    context: Context,
    misfits: Collection[int | None] = (),
) -> dict[int, tuple[Reach, ...]]:
    """Find the receptive field of each layer's first output, axis by axis, in its input.

    Layers after a layer that mixes positions other than by windows are left out, and so are layers
    that depend on two inputs of the network at different scales, those `hidden` as constants, and
    `misfits`, whose inputs do not fit.
    """
    found: dict[int, tuple[Reach, ...]] = {}
    for index in graph.topology.order:
        layer = graph.layers[index]
        if index in hidden or index in misfits:
            continue
        if layer.type == "Parameter":
            shape = outputs[index][0].shape if outputs[index] else None
            if shape is not None and len(shape) > 2:
                found[index] = (Reach(Fraction(1), Fraction(0), Fraction(0)),) * (len(shape) - 2)
            continue
        fed = [s for s in graph.topology.sources[index] if s is not None]
        flowing = [s for s in fed if s[0] not in hidden]
        if not flowing or any(s[0] not in found for s in flowing):
            continue
        merged = _merge([found[s[0]] for s in flowing])
        inputs = [outputs[s[0]][s[1]] for s in fed]
        shapes = [outputs[s[0]][s[1]].shape for s in flowing]
        shapes += [info.shape for info in outputs[index][:1]]
        still = all(shape and shape[2:] == (shapes[0] or ())[2:] for shape in shapes)
        reach = None if merged is None else _through(layer, merged, inputs, context, still)
        if reach is not None:
            found[index] = reach
    return found


def _merge(fed: Sequence[tuple[Reach, ...]]) -> tuple[Reach, ...] | None:
    """Join the reaches of several inputs."""
    first = fed[0]
    if all(other is first for other in fed):
        return first
    if any(len(other) != len(first) for other in fed):
        return None
    merged = []
    for axis in zip(*fed, strict=True):
        if len({reach.step for reach in axis}) > 1:
            return None
        merged.append(Reach(axis[0].step, min(r.first for r in axis), max(r.last for r in axis)))
    return tuple(merged)


def _through(
    layer: Layer, reach: tuple[Reach, ...], inputs: Infos, context: Context, still: bool
) -> tuple[Reach, ...] | None:
    """Return the reach after a layer; `still`: its inputs and output have the same extents."""
    operation = layer.operation
    windows = windows_of(operation, inputs, context, context.semantics)
    if windows is not None and len(windows) == len(reach):
        move = _spread if is_transposed(operation) else _slide
        return tuple(map(move, reach, windows))
    same = family_of(layer) in _SAME and layer.type not in _ACROSS
    return reach if still and (same or layer.type in _ALONG_CHANNELS) else None


def _slide(reach: Reach, window: Window) -> Reach:
    """Pass a window: output y depends on inputs stride*y - pad to stride*y - pad + E - 1."""
    last = effective_kernel(window.kernel, window.dilation) - 1
    step = reach.step
    return Reach(
        step * window.stride,
        reach.first - step * window.pad_begin,
        reach.last + step * (last - window.pad_begin),
    )


def _spread(reach: Reach, window: Window) -> Reach:
    """Pass a transposed window: output y depends on inputs (y + pad - E + 1)/s to (y + pad)/s."""
    last = effective_kernel(window.kernel, window.dilation) - 1
    step = reach.step / window.stride
    return Reach(
        step,
        reach.first + step * (window.pad_begin - last),
        reach.last + step * window.pad_begin,
    )
