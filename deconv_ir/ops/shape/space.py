"""Space to depth or batch, and back: each is a transpose between reshapes."""

from __future__ import annotations

import abc
import enum
import math

from deconv_ir.errors import ShapeError
from deconv_ir.ir.boxes import Box, Boxes, LayerTile, Span, partial_axes, sole
from deconv_ir.ir.dtypes import Array
from deconv_ir.ir.geometry import Dim, bounds, interval
from deconv_ir.ir.operation import Arrays, Context, ElementOf, Infos, Operation, Sharing, TensorInfo
from deconv_ir.ir.quantization import FOUR
from deconv_ir.ir.shapes import static
from deconv_ir.ops.base import attribute, choice, integer, operation
from deconv_ir.ops.checks import (
    add,
    axis_count,
    check_count,
    check_integers,
    check_least_rank,
    integers,
    known_integers,
    misfit,
    normalize_axis,
    product,
)
from deconv_ir.ops.numeric import np
from deconv_ir.ops.tile_rules import Cropped, along_axes
from deconv_ir.ops.values import unknown_dims


class BlockMode(enum.Enum):
    """Whether blocks or channels come first among the channels."""

    BLOCKS_FIRST = "blocks_first"
    DEPTH_FIRST = "depth_first"


def divided(dim: Dim, divisor: int, what: str) -> Dim:
    """Divide a dim, which must be a multiple."""
    if isinstance(dim, int):
        if divisor < 1 or dim % divisor:
            wanted = f"a multiple of {divisor}"
            message = f"{what} of {dim} is not a multiple of {divisor}"
            raise ShapeError(message, expected=wanted, actual=dim, rule="multiple")
        return dim // divisor
    low, high = bounds(dim)
    return interval(-(-low // divisor), None if high is None else high // divisor)


def _are_whole(info: TensorInfo) -> bool:
    """Whether the channels of a tensor are a multiple of four in every run."""
    channels = None if info.shape is None else info.shape[1]
    return isinstance(channels, int) and channels % FOUR == 0


class _Reordered(Operation, abc.ABC):
    """The elements of an array in another order."""

    @abc.abstractmethod
    def reordered(self, data: Array) -> Array:
        """Return a view with the elements in the order of the output, in any shape."""

    def accepts_out(self, inputs: Infos, output: TensorInfo) -> bool:
        return output.element_type is not None and output.element_type.kind != "string"

    def execute_into(self, inputs: Arrays, context: Context, out: Array) -> None:
        from deconv_ir.kernels.copies import reshape_into

        reshape_into(self.reordered(inputs[0]), out)

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        (info,) = self.infer([TensorInfo(inputs[0].shape)], context)
        out = np.empty(static(info.shape), inputs[0].dtype)
        self.execute_into(inputs, context, out)
        return (out,)


class _BlockReordering(_Reordered):
    """Attributes of both directions."""

    formula = "data {shape[data]}, block_size {self.block_size}"

    block_size: int = attribute(integer(1), 1)
    mode: BlockMode = attribute(choice(BlockMode))

    def on_fours(self, inputs: Infos, outputs: Infos, element: ElementOf) -> Operation | None:
        if self.block_size == 1:
            return self
        # Those of a block stay together; with depth_first, they are apart.
        together = self.mode is BlockMode.BLOCKS_FIRST
        return self if together and all(map(_are_whole, (*inputs, *outputs))) else None

    @abc.abstractmethod
    def moved(self, batch: Dim, channels: Dim, *spatial: Dim) -> tuple[Dim, ...]:
        """Return the dims of the output."""

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        data = inputs[0]
        check_least_rank(data, "data", 3)
        return (TensorInfo(data.shape and self.moved(*data.shape), data.element_type),)


@operation("SpaceToDepth-1(data)", "f32[1,3,4,6] -> f32[1,12,2,3] | block_size=2 mode=blocks_first")
class SpaceToDepth(_BlockReordering):
    """Spatial blocks rearranged into channels."""

    def moved(self, batch: Dim, channels: Dim, *spatial: Dim) -> tuple[Dim, ...]:
        dims = [divided(d, self.block_size, f"spatial axis {i}") for i, d in enumerate(spatial)]
        return (batch, product(channels, self.block_size ** len(spatial)), *dims)

    def tile(self, boxes: Boxes, inputs: Infos, outputs: Infos, context: Context) -> LayerTile:
        box, shape, size = sole(boxes), static(inputs[0].shape), self.block_size
        spans = [(size * start, size * stop) for start, stop in box[2:]]
        blocked = (1,) if 1 in partial_axes(box, static(outputs[0].shape)) else ()
        return LayerTile(((box[0], (0, shape[1]), *spans),), self, blocked)

    def reordered(self, data: Array) -> Array:
        (batch, channels, *spatial), b = data.shape, self.block_size
        split = [n for d in spatial for n in (d // b, b)]
        blocks = [3 + 2 * i for i in range(len(spatial))]
        kept = [2 + 2 * i for i in range(len(spatial))]
        first = self.mode is BlockMode.BLOCKS_FIRST
        order = [0, *blocks, 1, *kept] if first else [0, 1, *blocks, *kept]
        return data.reshape(batch, channels, *split).transpose(order)


@operation("DepthToSpace-1(data)", "f32[1,12,2,3] -> f32[1,3,4,6] | block_size=2 mode=depth_first")
class DepthToSpace(_BlockReordering):
    """Channels rearranged into spatial blocks."""

    def moved(self, batch: Dim, channels: Dim, *spatial: Dim) -> tuple[Dim, ...]:
        depth = divided(channels, self.block_size ** len(spatial), "the channel axis")
        return (batch, depth, *(product(d, self.block_size) for d in spatial))

    def tile(self, boxes: Boxes, inputs: Infos, outputs: Infos, context: Context) -> LayerTile:
        box, shape, size = sole(boxes), static(inputs[0].shape), self.block_size
        spans = [(start // size, -(-stop // size)) for start, stop in box[2:]]
        kept = tuple(
            (start - size * low, stop - size * low)
            for (start, stop), (low, _) in zip(box[2:], spans, strict=True)
        )
        made = static(outputs[0].shape)
        first, last = self._channels(kept, made[1])
        operation: Operation = self
        if any(
            span != (size * low, size * high)
            for span, (low, high) in zip(box[2:], spans, strict=True)
        ):
            pads = ((0, 0), (first, shape[1] - last), *((0, 0),) * len(spans))
            rest = (0, box[0][1] - box[0][0]), (0, made[1])
            operation = Cropped(inner=self, pads=pads, box=(*rest, *kept))
        blocked = (1,) if 1 in partial_axes(box, made) else ()
        return LayerTile(((box[0], (first, last), *spans),), operation, blocked)

    def _channels(self, kept: Box, depth: int) -> Span:
        """Return the channels with the elements of a box, which begins in the first block."""
        size = self.block_size
        least = most = 0
        for start, stop in kept:
            part = stop <= size  # within one block
            least = least * size + (start if part else 0)
            most = most * size + (stop if part else size) - 1
        if self.mode is BlockMode.BLOCKS_FIRST:
            return least * depth, (most + 1) * depth
        return least, (depth - 1) * size ** len(kept) + most + 1

    def reordered(self, data: Array) -> Array:
        (batch, channels, *spatial), b = data.shape, self.block_size
        k = len(spatial)
        if self.mode is BlockMode.BLOCKS_FIRST:
            split, depth, first = [*(b,) * k, channels // b**k], k + 1, 1
        else:
            split, depth, first = [channels // b**k, *(b,) * k], 1, 2
        pairs = [n for i in range(k) for n in (k + 2 + i, first + i)]
        return data.reshape(batch, *split, *spatial).transpose([0, depth, *pairs])


@operation("ShuffleChannels-1(data)", "f32[1,6,2] -> f32[1,6,2] | axis=1 group=3")
class ShuffleChannels(_Reordered):
    """Groups of channels along an axis interleaved."""

    formula = "the shape of data, {shape[data]}"

    axis: int = attribute(integer(), 1)
    group: int = attribute(integer(1), 1)

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        data = inputs[0]
        if data.shape is not None:
            axis = normalize_axis(self.axis, len(data.shape))
            divided(data.shape[axis], self.group, f"axis {axis}")
        return (TensorInfo(data.shape, data.element_type),)

    def on_fours(self, inputs: Infos, outputs: Infos, element: ElementOf) -> Operation | None:
        shape = inputs[0].shape
        if shape is None or normalize_axis(self.axis, len(shape)) == 1:
            return None
        return self

    def tile(self, boxes: Boxes, inputs: Infos, outputs: Infos, context: Context) -> LayerTile:
        axis = normalize_axis(self.axis, len(static(inputs[0].shape)))
        return along_axes(self, boxes, (axis,), inputs, outputs)

    def reordered(self, data: Array) -> Array:
        axis = normalize_axis(self.axis, data.ndim)
        head, extent, tail = data.shape[:axis], data.shape[axis], data.shape[axis + 1 :]
        split = data.reshape(*head, self.group, extent // self.group, *tail)
        return split.swapaxes(axis, axis + 1)


Dims = tuple[Dim, ...]
Known = tuple[int, ...]


class _BatchBlocks(Operation, abc.ABC):
    """Lists of one element for each axis: the block, and the pads or crops."""

    scratch_ratios = (0.75, 0.5)

    formula = "data {shape[data]}, {lists}"
    sharing = Sharing.PART

    def lists(self, inputs: Infos) -> list[tuple[int, ...] | None]:
        """Check the lists, and return the known ones."""
        data = inputs[0]
        check_least_rank(data, "data", 2)
        found = []
        for info, name in zip(inputs[1:], self.inputs[1:], strict=True):
            check_integers(info, name, 1)
            count = axis_count(info)
            if data.shape is not None:
                check_count(count, name, len(data.shape))
            values = known_integers(info)
            least = 1 if name == "block_shape" else 0
            if values and values[0] != least:
                must = f"be {least} for the batch axis"
                raise misfit("input-value", name, must, values[0], least)
            if values is not None and any(v < least for v in values):
                raise misfit("input-value", name, f"be {least} or greater", values, f">= {least}")
            found.append(values)
        return found

    @abc.abstractmethod
    def moved(self, data: Dims, block: Known, begin: Known, end: Known) -> Dims:
        """Return the dims of the output."""

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        data = inputs[0]
        block, begin, end = self.lists(inputs)
        if data.shape is None or block is None:
            return (TensorInfo(data.shape and unknown_dims(len(data.shape)), data.element_type),)
        shape = self.moved(data.shape, block, begin or (), end or ())
        if begin is None or end is None:
            shape = (shape[0], *unknown_dims(len(data.shape) - 1))
        return (TensorInfo(shape, data.element_type),)

    def checked(self, inputs: Arrays) -> tuple[tuple[int, ...], list[tuple[int, ...]]]:
        """Return the shape of the output, and the lists."""
        lists = [*map(integers, inputs[1:])]
        infos = [TensorInfo((len(values),), None, values) for values in lists]
        (info,) = self.infer([TensorInfo(inputs[0].shape), *infos], Context())
        return static(info.shape), lists


@operation(
    "SpaceToBatch-2(data, block_shape, pads_begin, pads_end)",
    "f32[2,3,3,5], i64[4]{1,1,2,3}, i64[4]{0,0,1,0}, i64[4]{0,0,0,1} -> f32[12,3,2,2]",
)
class SpaceToBatch(_BatchBlocks):
    """Padded spatial blocks rearranged into batches."""

    def moved(self, data: Dims, block: Known, begin: Known, end: Known) -> Dims:
        dims = [product(data[0], *block)]
        for axis, pads in enumerate(zip(begin[1:], end[1:], strict=False), 1):
            dims.append(divided(add(data[axis], *pads), block[axis], f"the padded axis {axis}"))
        return tuple(dims)

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        shape, (block, begin, end) = self.checked(inputs)
        data = np.pad(inputs[0], list(zip(begin, end, strict=True)))
        rank = data.ndim
        split = [n for d, b in zip(data.shape[1:], block[1:], strict=True) for n in (d // b, b)]
        order = [*range(2, 2 * rank - 1, 2), 0, *range(1, 2 * rank - 2, 2)]
        return (data.reshape(data.shape[0], *split).transpose(order).reshape(shape),)


@operation(
    "BatchToSpace-2(data, block_shape, crops_begin, crops_end)",
    "f32[12,3,2,2], i64[4]{1,1,2,3}, i64[4]{0,0,1,0}, i64[4]{0,0,0,1} -> f32[2,3,3,5]",
)
class BatchToSpace(_BatchBlocks):
    """Batches rearranged into spatial blocks and cropped; the inverse of SpaceToBatch."""

    def moved(self, data: Dims, block: Known, begin: Known, end: Known) -> Dims:
        dims = [divided(data[0], math.prod(block), "the batch axis")]
        for axis, pair in enumerate(zip(begin[1:], end[1:], strict=False), 1):
            whole, cut = product(data[axis], block[axis]), sum(pair)
            low, high = bounds(whole)
            if high is not None and cut > high:
                message = f"crops of {cut} leave nothing of axis {axis} of {whole}"
                raise ShapeError(message, expected=f"<= {high}", actual=cut, rule="crop")
            dims.append(interval(max(0, low - cut), None if high is None else high - cut))
        return tuple(dims)

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        (batch, *_), (block, begin, end) = self.checked(inputs)
        data, rank = inputs[0], inputs[0].ndim
        split = data.reshape(*block[1:], batch, *data.shape[1:])
        order = [rank - 1, *(n for i in range(rank - 1) for n in (rank + i, i))]
        whole = [d * b for d, b in zip(data.shape[1:], block[1:], strict=True)]
        moved = split.transpose(order).reshape(batch, *whole)
        cut = [slice(b, d - e) for d, b, e in zip(whole, begin[1:], end[1:], strict=True)]
        return (moved[(slice(None), *cut)],)
