"""Space moved to depth or batch, and back: reshapes and a transpose each."""

from __future__ import annotations

import enum

from deconv_ir.errors import ShapeError
from deconv_ir.ir.geometry import UNKNOWN, Dim, bounds, interval
from deconv_ir.ir.operation import Arrays, Context, Infos, Operation, Sharing, TensorInfo
from deconv_ir.ir.shapes import format_shape
from deconv_ir.ops.base import attribute, choice, integer, operation
from deconv_ir.ops.checks import (
    add,
    axis_count,
    check_least_rank,
    check_rank,
    check_type,
    integers,
    known_integers,
    normalize_axis,
    product,
)
from deconv_ir.ops.numeric import np
from deconv_ir.ops.values import unknown_dims


class BlockMode(enum.Enum):
    """Whether blocks or channels come first among the channels."""

    BLOCKS_FIRST = "blocks_first"
    DEPTH_FIRST = "depth_first"


def divided(dim: Dim, divisor: int, what: str) -> Dim:
    """Divide a dim.

    Raises
    ------
    ShapeError
        It is no multiple.
    """
    if isinstance(dim, int):
        if divisor < 1 or dim % divisor:
            raise ShapeError(
                f"{what} of {dim} is no multiple of {divisor}",
                expected=f"a multiple of {divisor}",
                actual=dim,
                rule="multiple",
            )
        return dim // divisor
    low, high = bounds(dim)
    return interval(-(-low // divisor), None if high is None else high // divisor)


class _Blocks(Operation):
    """Attributes of both directions."""

    sharing = Sharing.PART

    block_size: int = attribute(integer(1), 1)
    mode: BlockMode = attribute(choice(BlockMode))

    def explain(self, inputs: Infos, context: Context, output: int, axis: int) -> str | None:
        return f"data {format_shape(inputs[0].shape)}, block_size {self.block_size}"


@operation(
    "SpaceToDepth",
    "opset1",
    inputs=("data",),
    examples=("f32[1,3,4,6] -> f32[1,12,2,3] | block_size=2 mode=blocks_first",),
)
class SpaceToDepth(_Blocks):
    """Blocks of space become channels."""

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        data = inputs[0]
        check_least_rank(data, "data", 3)
        if data.shape is None:
            return (TensorInfo(None, data.element_type),)
        batch, channels, *spatial = data.shape
        dims = [divided(d, self.block_size, f"spatial axis {i}") for i, d in enumerate(spatial)]
        depth = product(channels, self.block_size ** len(spatial))
        return (TensorInfo((batch, depth, *dims), data.element_type),)

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        """Reshape, transpose, reshape."""
        data, b = inputs[0], self.block_size
        (info,) = self.infer([TensorInfo(data.shape)], context)
        batch, channels, *spatial = data.shape
        split = [n for d in spatial for n in (d // b, b)]
        blocks = [3 + 2 * i for i in range(len(spatial))]
        kept = [2 + 2 * i for i in range(len(spatial))]
        if self.mode is BlockMode.BLOCKS_FIRST:
            order = [0, *blocks, 1, *kept]
        else:
            order = [0, 1, *blocks, *kept]
        moved = data.reshape(batch, channels, *split).transpose(order)
        assert info.shape is not None, "the shape of an array is static"
        return (moved.reshape([d for d in info.shape if isinstance(d, int)]),)


@operation(
    "DepthToSpace",
    "opset1",
    inputs=("data",),
    examples=("f32[1,12,2,3] -> f32[1,3,4,6] | block_size=2 mode=depth_first",),
)
class DepthToSpace(_Blocks):
    """Channels become blocks of space."""

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        data = inputs[0]
        check_least_rank(data, "data", 3)
        if data.shape is None:
            return (TensorInfo(None, data.element_type),)
        batch, channels, *spatial = data.shape
        depth = divided(channels, self.block_size ** len(spatial), "the channel axis")
        dims = [product(d, self.block_size) for d in spatial]
        return (TensorInfo((batch, depth, *dims), data.element_type),)

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        """Reshape, transpose, reshape."""
        data, b = inputs[0], self.block_size
        (info,) = self.infer([TensorInfo(data.shape)], context)
        assert info.shape is not None, "the shape of an array is static"
        shape = [d for d in info.shape if isinstance(d, int)]
        batch, _, *spatial = data.shape
        k = len(spatial)
        if self.mode is BlockMode.BLOCKS_FIRST:
            split, depth, first = [*(b,) * k, shape[1]], k + 1, 1
        else:
            split, depth, first = [shape[1], *(b,) * k], 1, 2
        pairs = [n for i in range(k) for n in (k + 2 + i, first + i)]
        moved = data.reshape(batch, *split, *spatial).transpose([0, depth, *pairs])
        return (moved.reshape(shape),)


@operation(
    "ShuffleChannels",
    "opset1",
    inputs=("data",),
    examples=("f32[1,6,2] -> f32[1,6,2] | axis=1 group=3",),
)
class ShuffleChannels(Operation):
    """Groups along an axis interleaved."""

    sharing = Sharing.PART

    axis: int = attribute(integer(), 1)
    group: int = attribute(integer(1), 1)

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        data = inputs[0]
        if data.shape is not None:
            axis = normalize_axis(self.axis, len(data.shape))
            divided(data.shape[axis], self.group, f"axis {axis}")
        return (TensorInfo(data.shape, data.element_type),)

    def explain(self, inputs: Infos, context: Context, output: int, axis: int) -> str | None:
        return f"the shape of data, {format_shape(inputs[0].shape)}"

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        data = inputs[0]
        axis = normalize_axis(self.axis, data.ndim)
        head, extent, tail = data.shape[:axis], data.shape[axis], data.shape[axis + 1 :]
        split = data.reshape(*head, self.group, extent // self.group, *tail)
        return (split.swapaxes(axis, axis + 1).reshape(data.shape),)


class _BatchBlocks(Operation):
    """Lists of one element an axis: the block, and what is padded or cut."""

    sharing = Sharing.PART

    def lists(self, inputs: Infos) -> list[tuple[int, ...] | None]:
        """Check the lists, and return those that are known."""
        data = inputs[0]
        check_least_rank(data, "data", 2)
        found = []
        for info, name in zip(inputs[1:], self.inputs[1:], strict=True):
            check_type(info, name, "integer")
            check_rank(info, name, 1)
            count = axis_count(info)
            if data.shape is not None and count not in (None, len(data.shape)):
                raise ShapeError(
                    f"{name} must have {len(data.shape)} elements, found {count}",
                    expected=len(data.shape),
                    actual=count,
                    rule="input-shape",
                )
            values = known_integers(info)
            least = 1 if name == "block_shape" else 0
            if values and values[0] != least:
                raise ShapeError(
                    f"{name} must be {least} for the batch axis, found {values[0]}",
                    expected=least,
                    actual=values[0],
                    rule="input-value",
                )
            if values is not None and any(v < least for v in values):
                raise ShapeError(
                    f"{name} must be {least} or greater, found {format_shape(values)}",
                    expected=f">= {least}",
                    actual=format_shape(values),
                    rule="input-value",
                )
            found.append(values)
        return found

    def explain(self, inputs: Infos, context: Context, output: int, axis: int) -> str | None:
        return f"data {format_shape(inputs[0].shape)}, " + ", ".join(
            f"{name} {'?' if info.value is None else format_shape(info.value)}"
            for info, name in zip(inputs[1:], self.inputs[1:], strict=True)
        )


@operation(
    "SpaceToBatch",
    "opset2",
    inputs=("data", "block_shape", "pads_begin", "pads_end"),
    examples=("f32[2,3,3,5], i64[4]{1,1,2,3}, i64[4]{0,0,1,0}, i64[4]{0,0,0,1} -> f32[12,3,2,2]",),
)
class SpaceToBatch(_BatchBlocks):
    """Blocks of padded space become batches."""

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        data = inputs[0]
        block, begin, end = self.lists(inputs)
        if data.shape is None or block is None:
            shape = None if data.shape is None else unknown_dims(len(data.shape))
            return (TensorInfo(shape, data.element_type),)
        dims: list[Dim] = [product(data.shape[0], *block)]
        if begin is None or end is None:
            dims += (UNKNOWN,) * (len(data.shape) - 1)
            return (TensorInfo(tuple(dims), data.element_type),)
        for axis in range(1, len(data.shape)):
            padded = add(data.shape[axis], begin[axis], end[axis])
            dims.append(divided(padded, block[axis], f"the padded axis {axis}"))
        return (TensorInfo(tuple(dims), data.element_type),)

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        """Pad, reshape, transpose, reshape."""
        data = inputs[0]
        block, begin, end = map(integers, inputs[1:])
        infos = [TensorInfo(data.shape)]
        infos += [TensorInfo((len(v),), None, v) for v in (block, begin, end)]
        (info,) = self.infer(infos, context)
        assert info.shape is not None, "the shape of an array is static"
        data = np.pad(data, list(zip(begin, end, strict=True)))
        rank = data.ndim
        split = [n for d, b in zip(data.shape[1:], block[1:], strict=True) for n in (d // b, b)]
        order = [*range(2, 2 * rank - 1, 2), 0, *range(1, 2 * rank - 2, 2)]
        moved = data.reshape(data.shape[0], *split).transpose(order)
        return (moved.reshape([d for d in info.shape if isinstance(d, int)]),)


@operation(
    "BatchToSpace",
    "opset2",
    inputs=("data", "block_shape", "crops_begin", "crops_end"),
    examples=("f32[12,3,2,2], i64[4]{1,1,2,3}, i64[4]{0,0,1,0}, i64[4]{0,0,0,1} -> f32[2,3,3,5]",),
)
class BatchToSpace(_BatchBlocks):
    """Batches become blocks of space, which is cut; the inverse of SpaceToBatch."""

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        data = inputs[0]
        block, begin, end = self.lists(inputs)
        if data.shape is None or block is None:
            shape = None if data.shape is None else unknown_dims(len(data.shape))
            return (TensorInfo(shape, data.element_type),)
        total = product(*block)
        assert isinstance(total, int)
        dims: list[Dim] = [divided(data.shape[0], total, "the batch axis")]
        if begin is None or end is None:
            dims += (UNKNOWN,) * (len(data.shape) - 1)
            return (TensorInfo(tuple(dims), data.element_type),)
        for axis in range(1, len(data.shape)):
            whole = product(data.shape[axis], block[axis])
            cut = begin[axis] + end[axis]
            low, high = bounds(whole)
            if high is not None and cut > high:
                raise ShapeError(
                    f"crops of {cut} leave nothing of axis {axis} of {whole}",
                    expected=f"<= {high}",
                    actual=cut,
                    rule="crop",
                )
            dims.append(interval(max(0, low - cut), None if high is None else high - cut))
        return (TensorInfo(tuple(dims), data.element_type),)

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        """Reshape, transpose, reshape, cut."""
        data = inputs[0]
        block, begin, end = map(integers, inputs[1:])
        infos = [TensorInfo(data.shape)]
        infos += [TensorInfo((len(v),), None, v) for v in (block, begin, end)]
        self.infer(infos, context)
        total = product(*block)
        assert isinstance(total, int)
        batch, rank = data.shape[0] // total, data.ndim
        split = data.reshape(*block[1:], batch, *data.shape[1:])
        order = [rank - 1, *(n for i in range(rank - 1) for n in (rank + i, i))]
        whole = [d * b for d, b in zip(data.shape[1:], block[1:], strict=True)]
        moved = split.transpose(order).reshape(batch, *whole)
        cut = [slice(b, d - e) for d, b, e in zip(whole, begin[1:], end[1:], strict=True)]
        return (moved[(slice(None), *cut)],)
