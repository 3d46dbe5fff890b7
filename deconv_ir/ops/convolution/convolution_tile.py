"""Tiles of convolutions and transposed convolutions: a box of the output, with its own pads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from deconv_ir.ir.boxes import Box, LayerTile, nearest_element, partial_axes, whole_box
from deconv_ir.ir.dtypes import Array
from deconv_ir.ir.geometry import Axis, transposed_reach, window_reach
from deconv_ir.ir.operation import Arrays, Context, Infos, Kernel, Operation, TensorInfo
from deconv_ir.ir.record import field
from deconv_ir.ir.scratchpad import DIRECT
from deconv_ir.ir.shapes import static


class ConvolutionTile(Operation):
    """A box of a convolution's output; pads are relative to the box of the data."""

    layer: Any = field()
    """The operation of the whole layer."""
    pads_begin: tuple[int, ...] = field()
    extents: tuple[int, ...] = field()
    channels_last: bool = field(default=False)

    def accepts_out(self, inputs: Infos, output: TensorInfo) -> bool:
        return self.in_order

    @property
    def in_order(self) -> bool:
        return not self.channels_last

    def placement(self, *_: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Return where the box lies in the output of its data."""
        return self.pads_begin, self.extents

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        """Pack the filter, which is not constant, and compute the box."""
        return self._packed(inputs, context)(inputs, None, DIRECT)

    def execute_into(self, inputs: Arrays, context: Context, out: Array) -> None:
        self._packed(inputs, context)(inputs, out, DIRECT)

    def _packed(self, inputs: Arrays, context: Context) -> Kernel:
        packed: Kernel = self.layer.packed_once(inputs, context)
        return packed.tiled(self)


def tile_convolution(
    layer: Any,
    box: Box | None,
    inputs: Infos,
    outputs: Infos,
    axes: Sequence[Axis],
    kernel: Sequence[int],
    pads: Sequence[int],
) -> LayerTile:
    """Find the box of the data, and the pads relative to it.

    All channels are needed and computed.
    """
    assert box is not None, "a convolution has one output"
    transposed, last = layer.transposed, layer.channels_last
    shape = static(inputs[0].shape)
    first = 1 if last else 2
    channel = len(shape) - 1 if last else 1
    spatial = range(first, first + len(kernel))
    spans, places = [], []
    for axis, k, pad, at in zip(axes, kernel, pads, spatial, strict=True):
        reach = transposed_reach if transposed else window_reach
        found = reach(axis, pad, shape[at], k, box[at])
        span = nearest_element(box[at], shape[at]) if found is None else found
        spans.append(span)
        stride = axis.stride
        if transposed:
            places.append(pad + box[at][0] - stride * span[0])
        else:
            places.append(pad + span[0] - stride * box[at][0])
    data: list[tuple[int, int]] = [(0, extent) for extent in shape]
    data[0] = box[0]
    data[first : first + len(kernel)] = spans
    rest = tuple(whole_box(static(info.shape)) for info in inputs[1:2])
    # Of the other inputs, only a bias is needed; `placed` has the requested extents.
    others = tuple(
        whole_box(static(info.shape)) if transposed and at == layer.bias_at else None
        for at, info in enumerate(inputs[2:], 2)
    )
    extents = tuple(box[at][1] - box[at][0] for at in spatial)
    operation = ConvolutionTile(
        layer=layer, pads_begin=tuple(places), extents=extents, channels_last=last
    )
    blocked = (channel,) if channel in partial_axes(box, static(outputs[0].shape)) else ()
    return LayerTile((tuple(data), *rest, *others), operation, blocked)
