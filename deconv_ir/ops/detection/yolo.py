"""OpenVINO RegionYolo-1 and ReorgYolo-2: the layers of YOLO version 2 and 3."""

from __future__ import annotations

import math

from deconv_ir.errors import ShapeError
from deconv_ir.ir.dtypes import Array
from deconv_ir.ir.geometry import UNKNOWN, Dim, bounds, interval
from deconv_ir.ir.operation import Arrays, Context, Infos, Operation, TensorInfo
from deconv_ir.ops.base import attribute, boolean, integer, integers, numbers, operation
from deconv_ir.ops.checks import check_shape, check_type, misfit, normalize_axis, product
from deconv_ir.ops.numeric import narrow, np, widen


@operation("ReorgYolo-2(data)", "f32[1,4,6,8] -> f32[1,16,3,4] | stride=2")
class ReorgYolo(Operation):
    """Spatial blocks rearranged into channels, in Darknet's order."""

    formula = "data {shape[data]}, stride {self.stride}"

    stride: int = attribute(integer(1))

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        batch, channels, *space = check_shape(inputs[0], "data", (UNKNOWN,) * 4) or (UNKNOWN,) * 4
        stride = self.stride
        for name, dim in zip("HW", space, strict=True):
            if isinstance(dim, int) and dim % stride:
                must = f"be divisible by {stride}"
                raise misfit("input-shape", f"{name} of data", must, dim, f"a multiple of {stride}")
        most = bounds(channels)[1]
        if most is not None and most < stride * stride:
            must, wanted = f"be at least {stride * stride}", f">= {stride * stride}"
            raise misfit("input-shape", "C of data", must, channels, wanted)
        # Extents are multiples of the stride.
        extents = [
            interval(-(-low // stride), None if high is None else high // stride)
            for low, high in map(bounds, space)
        ]
        shape = (batch, product(channels, stride * stride), *extents)
        return (TensorInfo(shape, inputs[0].element_type),)

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        """Interpret the data as [N, C / s^2, H, s, W, s], as Darknet does for any shape."""
        data, s = inputs[0], self.stride
        n, c, h, w = data.shape
        if c % (s * s):
            return (self._of_any_channels(data),)
        blocks = data.reshape(n, c // (s * s), h, s, w, s)
        # Channel (y * s + x) * C / s^2 + k has the elements at (y, x) of each block of channel k.
        moved = blocks.transpose(0, 3, 5, 1, 2, 4)
        return (np.ascontiguousarray(moved).reshape(n, c * s * s, h // s, w // s),)

    def _of_any_channels(self, data: Array) -> Array:
        """Rearrange channels that s^2 does not divide, by Darknet's index, as OpenVINO does.

        The index is that of an array with s^2 * floor(C / s^2) channels, in memory with more.
        """
        s = self.stride
        n, c, h, w = data.shape
        planes = c // (s * s)
        batch, channel, y, x = np.ogrid[:n, :c, :h, :w]
        offset, plane = np.divmod(channel, planes)
        row, column = y * s + offset // s, x * s + offset % s
        index = ((batch * planes + plane) * (h * s) + row) * (w * s) + column
        found: Array = data.reshape(-1).take(index.reshape(-1))
        return found.reshape(n, c * s * s, h // s, w // s)


@operation(
    "RegionYolo-1(data)",
    "f32[1,21,2,3] -> f32[1,126]"
    " | coords=4 classes=2 num=3 do_softmax=true mask=0,1,2 axis=1 end_axis=3 anchors=1.5,2.0",
    "f32[1,14,2,3] -> f32[1,14,2,3]"
    " | coords=4 classes=2 num=5 do_softmax=false mask=0,1 axis=1 end_axis=3",
)
class RegionYolo(Operation):
    """Sigmoid of centers, confidences and classes of boxes, or softmax of the classes."""

    scratch_ratios = (1.25, 2.25)

    formula = "data {shape[data]}, axes {self.axis} to {self.end_axis}"

    anchors: tuple[float, ...] = attribute(numbers(), ())
    axis: int = attribute(integer())
    coords: int = attribute(integer(1))
    classes: int = attribute(integer(1))
    end_axis: int = attribute(integer())
    num: int = attribute(integer(1))
    do_softmax: bool = attribute(boolean(), True)
    mask: tuple[int, ...] = attribute(integers(0), ())

    @property
    def regions(self) -> int:
        """Number of boxes of a position."""
        return self.num if self.do_softmax else len(self.mask)

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        element_type = check_type(inputs[0], "data", "float")
        shape = check_shape(inputs[0], "data", (UNKNOWN,) * 4) or (UNKNOWN,) * 4
        needed = self.regions * (self.classes + self.coords + 1)
        channels = shape[1]
        if isinstance(channels, int) and channels < needed:
            raise misfit(
                "input-shape", "C of data", f"be at least {needed}", channels, f">= {needed}"
            )
        if self.do_softmax:
            first = normalize_axis(self.axis, 4)
            last = normalize_axis(self.end_axis, 4, "end_axis")
            if last < first:
                message = f"end_axis {self.end_axis} must not be before axis {self.axis}"
                raise ShapeError(message, attribute="end_axis", rule="axis")
            joined: Dim = product(*shape[first : last + 1])
            return (TensorInfo((*shape[:first], joined, *shape[last + 1 :]), element_type),)
        count = len(self.mask) * (self.classes + self.coords + 1)
        return (TensorInfo((shape[0], count, *shape[2:]), element_type),)

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        data = widen(inputs[0]).copy()
        batch, _, height, width = data.shape
        size = self.coords + 1 + self.classes
        used = self.regions * size
        boxes = data[:, :used].reshape(batch, self.regions, size, height, width)
        boxes[:, :, :2] = _sigmoid(boxes[:, :, :2])
        classes = boxes[:, :, self.coords + 1 :]
        boxes[:, :, self.coords] = _sigmoid(boxes[:, :, self.coords])
        if self.do_softmax:
            powers = np.exp(classes - classes.max(axis=2, keepdims=True))
            classes[...] = powers / powers.sum(axis=2, keepdims=True)
        else:
            classes[...] = _sigmoid(classes)
        data[:, :used] = boxes.reshape(batch, used, height, width)
        if not self.do_softmax:
            return (narrow(data[:, :used], inputs[0].dtype),)
        first, last = normalize_axis(self.axis, 4), normalize_axis(self.end_axis, 4)
        joined = math.prod(data.shape[first : last + 1])
        shape = (*data.shape[:first], joined, *data.shape[last + 1 :])
        return (narrow(data.reshape(shape), inputs[0].dtype),)


def _sigmoid(x: Array) -> Array:
    found: Array = 1 / (1 + np.exp(-x))
    return found
