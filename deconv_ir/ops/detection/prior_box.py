"""OpenVINO PriorBox-1, -8 and PriorBoxClustered-1: the default boxes of each cell of a grid."""

from __future__ import annotations

import abc
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from deconv_ir.errors import ShapeError
from deconv_ir.ir.dtypes import F32, Array
from deconv_ir.ir.geometry import Dim, interval
from deconv_ir.ir.operation import Arrays, Context, Infos, Operation, TensorInfo
from deconv_ir.ir.shapes import size_error
from deconv_ir.ops.base import attribute, boolean, number, numbers, operation
from deconv_ir.ops.checks import (
    check_count,
    check_integers,
    check_least,
    integers,
    list_length,
    misfit,
    product,
)
from deconv_ir.ops.numeric import np
from deconv_ir.ops.values import as_dim

_INPUTS = ("output_size", "image_size")
_MOST_BOXES = 1 << 16
"""Largest number of boxes of a cell."""


class _BoxGrid(Operation, abc.ABC):
    """Boxes of each cell of a grid, as shares of an image.

    Inputs: `output_size` [2], the height and width of the grid, and `image_size` [2], those of the
    image.  Output: [2, height * width * boxes * 4] in f32: corners x, y, x, y, and variances.
    """

    formula = "4 * height * width of output_size {value[output_size]} * {self.boxes} boxes a cell"

    offset: float = attribute(number())
    step: float = attribute(number(), 0.0)
    variance: tuple[float, ...] = attribute(numbers(), ())

    @property
    @abc.abstractmethod
    def boxes(self) -> int:
        """Number of boxes of a cell."""

    @abc.abstractmethod
    def corners(self, grid: Sequence[int], image: Sequence[int]) -> Array:
        """Compute the corners [height, width, boxes, 4]."""

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        for info, name in zip(inputs, _INPUTS, strict=False):
            check_integers(info, name, 1)
            check_count(list_length(info), name, 2)
        if len(self.variance) not in (0, 1, 4):
            must = "have 0, 1 or 4 elements"
            raise misfit("attribute-value", "variance", must, self.variance, must, "variance")
        size = inputs[0].value
        if size is None:
            count: Dim = product(interval(0, None), self.boxes, 4)
        else:
            check_least(size, "output_size", 0, "input-value")
            count = product(*map(as_dim, size), self.boxes, 4)
        return (TensorInfo((2, count), F32),)

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        grid, image = map(integers, inputs)
        for values, name, least in ((grid, _INPUTS[0], 0), (image, _INPUTS[1], 1)):
            check_least(values, name, least, "input-value")
        count = grid[0] * grid[1] * self.boxes * 4
        error = size_error((2, count), 32)
        if error:
            raise ShapeError(f"PriorBox makes {error}", rule="oversize")
        output = np.empty((2, count), np.float32)
        with np.errstate(all="ignore"):
            output[0] = self.corners(grid, image).reshape(-1)
        variances = np.array(self.variance or (0.1,), np.float32)
        output[1].reshape(-1, len(variances))[...] = variances
        return (output,)


class _Shape(NamedTuple):
    """A box relative to the center of its cell, in pixels.

    The center moves by ``- back + half + (right or down)``, in this order.
    """

    half_width: Any
    half_height: Any
    back: float = 0.0
    half: float = 0.0
    right: float = 0.0
    down: float = 0.0
    clipped: bool = False


class _PriorBox(_BoxGrid):
    """Square boxes of each size, and boxes of each aspect ratio, around the center of each cell.

    A cell has the boxes of fixed_size, density * density of each; then, for each min_size, a
    square, one of the geometric mean with max_size, and one for each aspect ratio.
    """

    min_size: tuple[float, ...] = attribute(numbers(), ())
    max_size: tuple[float, ...] = attribute(numbers(), ())
    aspect_ratio: tuple[float, ...] = attribute(numbers(), ())
    flip: bool = attribute(boolean(), False)
    clip: bool = attribute(boolean(), False)
    scale_all_sizes: bool = attribute(boolean(), True)
    fixed_ratio: tuple[float, ...] = attribute(numbers(), ())
    fixed_size: tuple[float, ...] = attribute(numbers(), ())
    density: tuple[float, ...] = attribute(numbers(), ())

    min_max_aspect_ratios_order: bool = True

    @property
    def ratios(self) -> tuple[float, ...]:
        """The aspect ratios other than 1, without duplicates."""
        found = [1.0]
        for ratio in self.aspect_ratio:
            if all(abs(ratio - other) >= 1e-6 for other in found):
                found += [ratio, 1 / ratio] if self.flip and ratio else [ratio]
        return tuple(found[1:])

    @property
    def boxes(self) -> int:
        ratios = len(self.ratios) + 1
        if self.fixed_size:
            each = len(self.fixed_ratio) or ratios
            return sum(each * int(d) ** 2 for d in self.density) + ratios * len(self.min_size)
        if self.scale_all_sizes:
            return ratios * len(self.min_size) + len(self.max_size)
        return len(self.min_size) + ratios - 1

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        for name in ("aspect_ratio", "fixed_ratio", "density", "fixed_size", "min_size"):
            values = getattr(self, name)
            if any(value <= 0 for value in values):
                raise misfit("attribute-value", name, "be positive", values, "> 0", name)
        found = self.boxes
        if found > _MOST_BOXES:
            must = f"make at most {_MOST_BOXES} boxes a cell"
            raise misfit("attribute-value", "density", must, found, f"<= {_MOST_BOXES}", "density")
        if len(self.density) != len(self.fixed_size):
            must = f"have one element for each fixed_size, {len(self.fixed_size)}"
            raise misfit("attribute-value", "density", must, len(self.density), must, "density")
        if self.scale_all_sizes and len(self.max_size) > len(self.min_size):
            must = f"have at most one element for each min_size, {len(self.min_size)}"
            raise misfit("attribute-value", "max_size", must, len(self.max_size), must, "max_size")
        return super().infer(inputs, context)

    def corners(self, grid: Sequence[int], image: Sequence[int]) -> Array:
        real = np.float32
        height, width = image
        scale, step = 1.0, real(self.step)
        if not self.scale_all_sizes:  # sizes are shares of the image, as in MXNet
            scale = height
            step = real(height) / real(grid[0]) if self.step == -1 else step * real(height)
        shapes = list(self._shapes(scale))
        centers = []
        for cells, pixels in zip(grid, image, strict=True):
            places = np.arange(cells, dtype=np.float32)
            if step == 0:
                centers.append((places + real(0.5)) * (real(pixels) / real(cells or 1)))
            else:
                centers.append((real(self.offset) + places) * step)
        table = np.array([shape[:6] for shape in shapes], np.float32).reshape(-1, 6).T
        half_width, half_height, back, half, right, down = table
        output = np.empty((*grid, len(shapes), 4), np.float32)
        rows = centers[0][:, None] - back + half + down
        columns = centers[1][:, None] - back + half + right
        one_x, one_y = real(1) / real(width), real(1) / real(height)
        output[..., 0] = (columns - half_width) * one_x
        output[..., 1] = ((rows - half_height) * one_y)[:, None]
        output[..., 2] = (columns + half_width) * one_x
        output[..., 3] = ((rows + half_height) * one_y)[:, None]
        clipped = np.array([shape.clipped for shape in shapes], bool)
        if self.clip:
            np.clip(output, 0, 1, out=output)
        elif clipped.any():
            output[..., clipped, :2] = np.maximum(output[..., clipped, :2], 0)
            output[..., clipped, 2:] = np.minimum(output[..., clipped, 2:], 1)
        return output

    def _shapes(self, scale: float) -> Iterator[_Shape]:
        """Iterate over the boxes of a cell."""
        real = np.float32
        roots = [np.sqrt(real(ratio)) for ratio in self.ratios]
        for size, density in zip(self.fixed_size, self.density, strict=False):
            yield from self._dense(size, int(density), roots)
        sizes: list[Any] = [real(size) * real(scale) for size in self.min_size]
        for place, size in enumerate(sizes):
            yield _Shape(size * real(0.5), size * real(0.5))
            ordered: list[_Shape] = []
            if self.scale_all_sizes or place == len(sizes) - 1:
                base = (size if self.scale_all_sizes else sizes[0]) * real(0.5)
                ordered += [_Shape(base * root, base / root) for root in roots]
            if self.scale_all_sizes and place < len(self.max_size):
                mean = np.sqrt(size * real(self.max_size[place])) * real(0.5)
                first = 0 if self.min_max_aspect_ratios_order else len(ordered)
                ordered.insert(first, _Shape(mean, mean))
            yield from ordered

    def _dense(self, size: float, density: int, roots: list[Any]) -> Iterator[_Shape]:
        """Iterate over the boxes of a fixed size: density * density of each ratio."""
        real = np.float32
        whole, half = int(size), real(size) * real(0.5)
        forms = [(half * root, half / root) for root in roots]
        if self.fixed_ratio:
            ratios = [np.sqrt(real(ratio)) for ratio in self.fixed_ratio]
            forms = [(half * root, half / root) for root in ratios]
        else:
            forms.insert(0, (whole * real(0.5), whole * real(0.5)))
        shift = int(size / density) if density else 0
        for width, height in forms:
            for down in range(density):
                for right in range(density):
                    yield _Shape(
                        width, height, whole / 2, shift / 2, right * shift, down * shift, True
                    )


@operation(
    "PriorBox-1(output_size, image_size)",
    "i64[2]{2,3}, i64[2]{32,48} -> f32[2,96]"
    " | min_size=16 max_size=38.46 aspect_ratio=2 flip=true step=16 offset=0.5",
)
class PriorBox1(_PriorBox):
    """Boxes of each size and aspect ratio around the center of each cell, and their variances."""


@operation(
    "PriorBox-8(output_size, image_size)",
    "i64[2]{2,3}, i64[2]{32,48} -> f32[2,72]"
    " | min_size=16 max_size=38.46 aspect_ratio=2 offset=0.5 min_max_aspect_ratios_order=false"
    " variance=0.1,0.1,0.2,0.2",
)
class PriorBox8(_PriorBox):
    """Boxes of each size and aspect ratio around the center of each cell, in a chosen order."""

    min_max_aspect_ratios_order: bool = attribute(boolean(), True)


@operation(
    "PriorBoxClustered-1(output_size, image_size)",
    "i64[2]{2,3}, i64[2]{32,48} -> f32[2,48] | width=8,16 height=4,8.5 step=16 offset=0.5",
)
class PriorBoxClustered(_BoxGrid):
    """Boxes of listed widths and heights around the center of each cell, and their variances."""

    width: tuple[float, ...] = attribute(numbers(), (1.0,))
    height: tuple[float, ...] = attribute(numbers(), (1.0,))
    clip: bool = attribute(boolean(), True)
    step_w: float = attribute(number(), 0.0)
    step_h: float = attribute(number(), 0.0)

    @property
    def boxes(self) -> int:
        return len(self.width)

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        if len(self.width) != len(self.height):
            must = f"have one element for each width, {len(self.width)}"
            raise misfit("attribute-value", "height", must, len(self.height), must, "height")
        return super().infer(inputs, context)

    def corners(self, grid: Sequence[int], image: Sequence[int]) -> Array:
        real = np.float32
        steps = [real(step or self.step) for step in (self.step_h, self.step_w)]
        if not any(steps):
            steps = [real(p) / real(c or 1) for p, c in zip(image, grid, strict=True)]
        output = np.empty((*grid, self.boxes, 4), np.float32)
        for axis, (sizes, across) in enumerate(((self.height, 1), (self.width, 0))):
            places = np.arange(grid[axis], dtype=np.float32)
            centers = ((places + real(self.offset)) * steps[axis])[:, None]
            half = np.array(sizes, np.float32) / real(2)
            low, high = (centers - half) / real(image[axis]), (centers + half) / real(image[axis])
            output[..., across] = low[:, None] if across else low
            output[..., across + 2] = high[:, None] if across else high
        return np.clip(output, 0, 1, out=output) if self.clip else output
