"""OpenVINO DeformableConvolution-1 and -8: convolution of elements at computed positions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from deconv_ir.errors import ShapeError
from deconv_ir.ir.dtypes import Array
from deconv_ir.ir.geometry import UNKNOWN, Dim
from deconv_ir.ir.operation import Arrays, Context, Infos, TensorInfo
from deconv_ir.ir.shapes import intersect_dims
from deconv_ir.ops.base import attribute, boolean, integer, operation
from deconv_ir.ops.checks import check_shape, leading_type, misfit, product
from deconv_ir.ops.numeric import narrow, np, widen
from deconv_ir.ops.windows import Windowed, static_geometry, window_axes, window_extent

if TYPE_CHECKING:
    from deconv_ir.ops.allowance import Bounds, Case

_INPUTS = ("data", "offsets", "filter", "mask")
_ANY = (UNKNOWN,) * 4

_WINDOW = "strides=1,1 pads_begin=0,0 pads_end=0,0 dilations=1,1"


@operation(
    "DeformableConvolution-1(data, offsets, filter)",
    f"f32[1,4,7,7], f32[1,18,5,5], f32[6,4,3,3] -> f32[1,6,5,5] | {_WINDOW}",
)
class DeformableConvolution1(Windowed):
    """Grouped convolution in which an offset moves each element of the window."""

    scratch_ratios = (3.5, 4.25)

    group: int = attribute(integer(1), 1)
    deformable_group: int = attribute(integer(1), 1)

    bilinear_interpolation_pad: bool = False

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        element_type = leading_type(inputs, self.inputs, "float", same=3)
        data = check_shape(inputs[0], "data", _ANY) or _ANY
        filter_ = check_shape(inputs[2], "filter", _ANY) or _ANY
        if intersect_dims(data[1], product(filter_[1], self.group)) is None:
            must = f"have {product(filter_[1], self.group)} channels, as filter and group say"
            raise misfit("channels", "data", must, data, product(filter_[1], self.group))
        for name, dim in (("data", data[1]), ("filter", filter_[0])):
            groups = self.group if name == "filter" else self.deformable_group
            if isinstance(dim, int) and dim % groups:
                must = f"have channels that are divisible by {groups}"
                raise misfit("channels", name, must, dim, f"a multiple of {groups}")
        extents = [
            window_extent(i, axis, x, k, self.auto_pad, self.rule)
            for i, (axis, x, k) in enumerate(
                zip(window_axes(self, 2), data[2:], filter_[2:], strict=True)
            )
        ]
        taps = product(*filter_[2:], self.deformable_group)
        batch = data[0]
        for info, name, channels in zip(
            inputs[1:4:2], _INPUTS[1::2], (product(taps, 2), taps), strict=False
        ):
            (batch, *extents) = _agree(info, name, (batch, channels, *extents))
        return (TensorInfo((batch, filter_[0], *extents), element_type),)

    def allowance(self, case: Case) -> Bounds | None:
        from deconv_ir.ops.allowance import SUM_ULPS, sums

        values = [0, 2, 3][: len(case.inputs) - 1]
        (allowed,) = sums(case, case.inputs[2][0].size, values)
        # A position is rounded, too.
        extent = max(case.inputs[0].shape[2:])
        return [allowed * (1 + extent / SUM_ULPS)]

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        data, offsets, filter_ = map(widen, inputs[:3])
        mask = widen(inputs[3]) if len(inputs) > 3 else None
        axes = window_axes(self, 2)
        kernel = filter_.shape[2:]
        pads = static_geometry(axes, data.shape[2:], kernel, self.auto_pad, self.rule)
        taps = kernel[0] * kernel[1]
        batch, channels = data.shape[:2]
        size = tuple(g.output for g in pads)
        moved = offsets.reshape(batch, self.deformable_group, taps, 2, *size)
        starts = [
            np.arange(n) * a.stride - g.pad_begin for n, a, g in zip(size, axes, pads, strict=True)
        ]
        grid = (starts[0][:, None], starts[1][None, :])
        columns = np.empty((batch, channels, taps, *size), data.dtype)
        each = channels // self.deformable_group
        for n, g, tap in np.ndindex(batch, self.deformable_group, taps):
            rows, cols = (
                grid[i]
                + (tap // kernel[1], tap % kernel[1])[i] * axes[i].dilation
                + moved[n, g, tap, i]
                for i in range(2)
            )
            part = slice(g * each, (g + 1) * each)
            columns[n, part, tap] = self._sample(data[n, part], rows, cols)
            if mask is not None:
                columns[n, part, tap] *= mask.reshape(batch, -1, taps, *size)[n, g, tap]
        inputs_each = channels // self.group
        outputs_each = filter_.shape[0] // self.group
        matrix = columns.reshape(batch, self.group, inputs_each * taps, -1)
        weights = filter_.reshape(self.group, outputs_each, inputs_each * taps)
        result = np.matmul(weights, matrix).reshape(batch, filter_.shape[0], *size)
        return (narrow(result, inputs[0].dtype),)

    def _sample(self, data: Array, rows: Array, columns: Array) -> Array:
        """Interpolate planes [C, H, W] at positions [OH, OW]; elements outside are zeros."""
        height, width = data.shape[1:]
        least = -1 if self.bilinear_interpolation_pad else 0
        inside = (rows >= least) & (columns >= least) & (rows < height) & (columns < width)
        if self.bilinear_interpolation_pad:
            inside &= (rows > -1) & (columns > -1)
        low_y, low_x = np.floor(rows).astype(np.int64), np.floor(columns).astype(np.int64)
        part_y, part_x = rows - low_y, columns - low_x
        result = np.zeros((len(data), *rows.shape), data.dtype)
        for dy, weight_y in ((0, 1 - part_y), (1, part_y)):
            for dx, weight_x in ((0, 1 - part_x), (1, part_x)):
                y, x = low_y + dy, low_x + dx
                weight = weight_y * weight_x
                if self.bilinear_interpolation_pad:
                    weight = weight * ((y >= 0) & (x >= 0) & (y < height) & (x < width))
                values = data[:, np.clip(y, 0, height - 1), np.clip(x, 0, width - 1)]
                result += np.where(inside, weight, 0).astype(data.dtype) * values
        return result


def _agree(info: TensorInfo, name: str, wanted: tuple[Dim, ...]) -> tuple[Dim, ...]:
    """Return the batch and extents of an input, intersected with those of the others."""
    found = check_shape(info, name, wanted) or wanted
    common = [intersect_dims(a, b) for a, b in zip(found, wanted, strict=True)]
    kept = tuple(dim for dim in common if dim is not None)
    if len(kept) < 4:
        raise ShapeError(f"{name} does not fit data and filter", rule="input-shape")
    return (kept[0], *kept[2:])


@operation(
    "DeformableConvolution-8(data, offsets, filter, mask?)",
    f"f32[1,4,7,7], f32[1,36,5,5], f32[6,2,3,3], f32[1,18,5,5] -> f32[1,6,5,5]"
    f" | {_WINDOW} group=2 deformable_group=2 bilinear_interpolation_pad=true",
)
class DeformableConvolution8(DeformableConvolution1):
    """Convolution in which an offset moves each element of the window, and a mask scales it."""

    bilinear_interpolation_pad: bool = attribute(boolean(), False)
