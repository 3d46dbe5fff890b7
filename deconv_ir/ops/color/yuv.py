"""OpenVINO NV12toRGB-8, NV12toBGR-8, I420toRGB-8 and I420toBGR-8: frames of video as RGB.

The luma plane has the resolution of the image, the two chroma planes half of it; in NV12 the
chroma values are stored in pairs, in I420 one plane after the other.
"""

from __future__ import annotations

from typing import Any, ClassVar

from deconv_ir.errors import ShapeError
from deconv_ir.ir.geometry import UNKNOWN, Dim, bounds, interval, monotone
from deconv_ir.ir.operation import Arrays, Context, Infos, Operation, TensorInfo
from deconv_ir.ir.shapes import intersect_dims
from deconv_ir.ops.base import operation
from deconv_ir.ops.checks import check_shape, merged_type, misfit
from deconv_ir.ops.numeric import narrow, np

# ITU-R BT.601, limited range: contributions of luma and chroma to red, green and blue.
_LUMA = 1.164
_FROM_U = (0.0, -0.391, 2.018)
_FROM_V = (1.596, -0.813, 0.0)


class _FromYUV(Operation):
    """A frame of video as an image; the planes are in one input or in one input each."""

    scratch_ratios = (4, 4)

    chroma: ClassVar[int] = 2
    """Channels of an input of chroma values."""
    reverse: ClassVar[bool] = False
    """Whether blue is the first channel."""

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        element_type = merged_type(inputs, self.inputs, "numeric")
        if element_type is not None and not (element_type.is_float or element_type.name == "u8"):
            must = "be u8 or a floating-point type"
            raise misfit("element-type", self.inputs[0], must, element_type, "u8 or floating-point")
        if len(inputs) not in (1, len(self.inputs)):
            message = f"{self.type} takes one input or {len(self.inputs)}, found {len(inputs)}"
            raise ShapeError(
                message, expected=f"1 or {len(self.inputs)}", actual=len(inputs), rule="input-count"
            )
        unknown = (UNKNOWN, UNKNOWN, UNKNOWN, 1)
        batch, height, width, _ = check_shape(inputs[0], self.inputs[0], unknown) or unknown
        if len(inputs) == 1:
            _divisible("height", height, 3)
            low, high = bounds(height)
            height = interval(-(-low * 2 // 3), None if high is None else high * 2 // 3)
        for info, name in zip(inputs[1:], self.inputs[1:], strict=False):
            planes = (UNKNOWN, UNKNOWN, UNKNOWN, self.chroma)
            found = check_shape(info, name, planes) or planes
            pairs = [(batch, found[0])]
            pairs += [(height, _twice(found[1])), (width, _twice(found[2]))]
            common = [intersect_dims(a, b) for a, b in pairs]
            if None in common:
                half = f"[{batch},{height} / 2,{width} / 2,{self.chroma}]"
                raise misfit("input-shape", name, f"have shape {half}", info.shape, half)
            batch, height, width = (dim for dim in common if dim is not None)
        _divisible("height", height, 2)
        _divisible("width", width, 2)
        return (TensorInfo((batch, height, width, 3), element_type),)

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        dtype = inputs[0].dtype
        planes: list[Any] = [np.asarray(array, np.float32) for array in inputs]
        if len(planes) == 1:
            planes = self._split(planes[0])
        luma, u, v = planes[0], *self._chroma(planes[1:])
        u, v = (np.repeat(np.repeat(c, 2, axis=1), 2, axis=2) - 128 for c in (u, v))
        y = np.float32(_LUMA) * (luma[..., 0] - 16)
        colors = [
            y + np.float32(from_u) * u + np.float32(from_v) * v
            for from_u, from_v in zip(_FROM_U, _FROM_V, strict=True)
        ]
        image = np.clip(np.stack(colors[::-1] if self.reverse else colors, -1), 0, 255)
        if dtype == np.uint8:
            image = np.floor(image + np.float32(0.5))
        return (narrow(image, dtype),)

    def _split(self, frame: Any) -> list[Any]:
        """Split a frame into its planes."""
        batch, rows, width, _ = frame.shape
        height = rows * 2 // 3
        rest = frame[:, height:].reshape(batch, (rows - height) * width)
        size = (batch, height // 2, width // 2, self.chroma)
        parts = np.split(rest, 2 // self.chroma, axis=1)
        return [frame[:, :height], *(part.reshape(size) for part in parts)]

    @staticmethod
    def _chroma(planes: list[Any]) -> tuple[Any, Any]:
        """Return the two planes of chroma values, [N, H / 2, W / 2]."""
        if len(planes) == 2:
            return planes[0][..., 0], planes[1][..., 0]
        return planes[0][..., 0], planes[0][..., 1]


def _twice(dim: Dim) -> Dim:
    return monotone(lambda n: 2 * n, dim)


def _divisible(name: str, dim: Dim, divisor: int) -> None:
    if isinstance(dim, int) and dim % divisor:
        must = f"be divisible by {divisor}"
        raise misfit("input-shape", name, must, dim, f"a multiple of {divisor}")


_NV12_EXAMPLES = (
    "u8[1,6,4,1] -> u8[1,4,4,3]",
    "f32[1,4,6,1], f32[1,2,3,2] -> f32[1,4,6,3]",
)
_I420_EXAMPLES = (
    "u8[1,6,4,1] -> u8[1,4,4,3]",
    "f32[1,4,6,1], f32[1,2,3,1], f32[1,2,3,1] -> f32[1,4,6,3]",
)


@operation("NV12toRGB-8(arg, uv?)", *_NV12_EXAMPLES)
class NV12toRGB(_FromYUV):
    """A frame in NV12 as red, green and blue."""


@operation("NV12toBGR-8(arg, uv?)", *_NV12_EXAMPLES)
class NV12toBGR(_FromYUV):
    """A frame in NV12 as blue, green and red."""

    reverse = True


@operation("I420toRGB-8(arg, u?, v?)", *_I420_EXAMPLES)
class I420toRGB(_FromYUV):
    """A frame in I420 as red, green and blue."""

    chroma = 1


@operation("I420toBGR-8(arg, u?, v?)", *_I420_EXAMPLES)
class I420toBGR(_FromYUV):
    """A frame in I420 as blue, green and red."""

    chroma = 1
    reverse = True
