"""OpenVINO ROIPooling-1, PSROIPooling-1 and DeformablePSROIPooling-1: regions of one size."""

from __future__ import annotations

import abc
import enum
from collections.abc import Sequence
from typing import Any, ClassVar

from deconv_ir.ir.dtypes import Array
from deconv_ir.ir.geometry import UNKNOWN, Dim
from deconv_ir.ir.operation import Arrays, Context, Infos, Operation, TensorInfo
from deconv_ir.ir.shapes import static
from deconv_ir.ops.base import attribute, choice, integer, integers, number, operation
from deconv_ir.ops.checks import check_shape, leading_type, misfit
from deconv_ir.ops.detection.boxes import as_real
from deconv_ir.ops.numeric import narrow, np, widen

_FAR = 1 << 40
"""Coordinates beyond it are as good as infinite."""


class _Pooled(Operation, abc.ABC):
    """Regions of feature maps, each divided into bins.

    Inputs: `data` [N, C, H, W] and `rois` [R, 5]: image number, corners x, y, x, y.  Regions from
    the first one of number -1 on, which Proposal writes after its last region, give zeros.
    """

    scratch_ratios = (0.25, 1.25)

    formula = "rois {shape[rois]}, {self.formula_of_bins}"

    same_types: ClassVar[int] = 1
    """Number of inputs that OpenVINO requires to be of one type."""

    spatial_scale: float = attribute(number(minimum=0))

    @property
    @abc.abstractmethod
    def bins(self) -> tuple[int, int]:
        """Numbers of rows and columns of bins."""

    @property
    def formula_of_bins(self) -> str:
        """The number of bins, for messages."""
        return "{} x {}".format(*self.bins)

    def channels(self, found: Dim) -> Dim:
        """Check the channels of the data, and return those of the output."""
        return found

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        element_type = leading_type(inputs, self.inputs, "float", self.same_types)
        data = check_shape(inputs[0], "data", (UNKNOWN,) * 4) or (UNKNOWN,) * 4
        rois = check_shape(inputs[1], "rois", (UNKNOWN, 5)) or (UNKNOWN,)
        return (TensorInfo((rois[0], self.channels(data[1]), *self.bins), element_type),)

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        data, rois, *rest = map(widen, inputs)
        numbers = np.trunc(rois[:, 0])
        ends = np.flatnonzero(numbers == -1)
        count = int(ends[0]) if len(ends) else len(rois)
        if not np.isfinite(rois[:count]).all():
            raise misfit("index", "rois", "be finite", "NaN or an infinity", "finite numbers")
        images = numbers[:count].astype(np.int64)
        wrong = images[(images < 0) | (images >= len(data))]
        if len(wrong):
            must = f"have image numbers from 0 to {len(data) - 1}"
            raise misfit("index", "rois", must, int(wrong[0]), must)
        (info,) = self.infer([TensorInfo(a.shape) for a in inputs], context)
        output = np.zeros(static(info.shape), data.dtype)
        if data.size:
            for place in range(count):
                others = [array[place] for array in rest]
                output[place] = self.one(data[images[place]], rois[place, 1:], *others)
        return (narrow(output, inputs[0].dtype),)

    @abc.abstractmethod
    def one(self, data: Array, roi: Array) -> Array:
        """Compute the bins of a region of data [C, H, W]."""


class Method(enum.Enum):
    """The value of a bin: the greatest element, or the interpolated one at its place."""

    MAX = "max"
    BILINEAR = "bilinear"


@operation(
    "ROIPooling-1,2(data, rois)",
    "f32[2,3,6,8], f32[4,5] -> f32[4,3,2,3] | pooled_h=2 pooled_w=3 spatial_scale=0.5 method=max",
    "f32[2,3,6,8], f32[4,5] -> f32[4,3,1,4] | output_roi=1,4 spatial_scale=1 method=bilinear",
)
class ROIPooling(_Pooled):
    """Regions of feature maps: the maximum of each bin, or values interpolated on a grid.

    For `max`, corners are scaled and rounded to whole elements, and the last one counts, as in
    Caffe.  For `bilinear`, corners are shares of the feature map, whose corners are those of the
    grid; places outside give 0.  OpenVINO writes the numbers of bins under three names.
    """

    same_types = 2

    pooled_h: int | None = attribute(integer(1), None, required=True)
    pooled_w: int | None = attribute(integer(1), None, required=True)
    output_roi: tuple[int, ...] = attribute(integers(1), ())
    output_size: tuple[int, ...] = attribute(integers(1), ())
    method: Method = attribute(choice(Method, fold=False), Method.MAX)

    @property
    def bins(self) -> tuple[int, int]:
        listed = (*(self.output_roi or self.output_size), None, None)
        rows, columns = self.pooled_h or listed[0], self.pooled_w or listed[1]
        if rows is None or columns is None:
            found = (self.pooled_h, self.pooled_w)
            raise misfit("attribute-value", "pooled_h and pooled_w", "be given", found, "numbers")
        return rows, columns

    def one(self, data: Array, roi: Array) -> Array:
        if self.method is Method.BILINEAR:
            axes = [
                _grid(low, high, extent, bins)
                for low, high, extent, bins in zip(
                    roi[1::-1], roi[3:1:-1], data.shape[1:], self.bins, strict=True
                )
            ]
            return _interpolated(data, *axes)
        starts = _rounded(roi * as_real(self.spatial_scale, roi))
        rows, columns = (
            _windows(starts[axis], starts[axis + 2], extent, bins)
            for axis, extent, bins in zip((1, 0), data.shape[1:], self.bins, strict=True)
        )
        output = np.zeros((len(data), *self.bins), data.dtype)
        for i, (top, bottom) in enumerate(rows):
            if top < bottom:
                line = data[:, top:bottom].max(axis=1)
                for j, (left, right) in enumerate(columns):
                    if left < right:
                        output[:, i, j] = line[:, left:right].max(axis=1)
        return output


class PositionMode(enum.Enum):
    """The value of a bin: a mean of elements, or of interpolated values."""

    AVERAGE = "average"
    BILINEAR = "bilinear"


@operation(
    "PSROIPooling-1(data, rois)",
    "f32[2,8,6,8], f32[4,5] -> f32[4,2,2,2]"
    " | output_dim=2 group_size=2 spatial_scale=0.5 mode=average",
    "f32[2,12,6,8], f32[4,5] -> f32[4,2,3,3]"
    " | output_dim=2 group_size=3 spatial_scale=1 mode=bilinear spatial_bins_x=3 spatial_bins_y=2",
)
class PSROIPooling(_Pooled):
    """Position-sensitive regions: each bin is pooled from channels of its own.

    For `average`, C = output_dim * group_size^2, and bin i, j of channel c is the mean of channel
    (c * group_size + i) * group_size + j.  For `bilinear`, C = spatial_bins_y * spatial_bins_x *
    output_dim: each part of a region is resampled from channels of its own, and the parts are
    averaged; corners are shares of the feature map.
    """

    output_dim: int = attribute(integer(1))
    group_size: int = attribute(integer(1), 1)
    mode: PositionMode = attribute(choice(PositionMode), PositionMode.AVERAGE)
    spatial_bins_x: int = attribute(integer(1), 1)
    spatial_bins_y: int = attribute(integer(1), 1)

    @property
    def bins(self) -> tuple[int, int]:
        return self.group_size, self.group_size

    def channels(self, found: Dim) -> Dim:
        groups = self.group_size**2
        if self.mode is PositionMode.BILINEAR:
            groups = self.spatial_bins_x * self.spatial_bins_y
        return _grouped(found, self.output_dim, groups)

    def one(self, data: Array, roi: Array) -> Array:
        if self.mode is PositionMode.BILINEAR:
            return self._resampled(data, roi)
        scale, size = as_real(self.spatial_scale, roi), self.group_size
        low = _rounded(roi[:2]).astype(roi.dtype) * scale
        high = _rounded(roi[2:] + as_real(1, roi)).astype(roi.dtype) * scale
        extents = np.maximum(high - low, as_real(0.1, roi)) / as_real(size, roi)
        spans = []
        for axis, extent in ((1, data.shape[1]), (0, data.shape[2])):
            places = np.arange(size + 1).astype(roi.dtype) * extents[axis] + low[axis]
            starts, stops = np.floor(places[:-1]), np.ceil(places[1:])
            spans.append(np.clip(np.stack([starts, stops], 1), 0, extent).astype(np.int64).tolist())
        maps = data.reshape(self.output_dim, size, size, *data.shape[1:])
        output = np.zeros((self.output_dim, size, size), data.dtype)
        for i, (top, bottom) in enumerate(spans[0]):
            for j, (left, right) in enumerate(spans[1]):
                if top < bottom and left < right:
                    output[:, i, j] = maps[:, i, j, top:bottom, left:right].mean(axis=(1, 2))
        return output

    def _resampled(self, data: Array, roi: Array) -> Array:
        roi = roi * as_real(self.spatial_scale, roi)
        parts = self.spatial_bins_y, self.spatial_bins_x
        maps = data.reshape(*parts, self.output_dim, *data.shape[1:])
        axes = []
        for axis, extent in ((1, data.shape[1]), (0, data.shape[2])):
            count = parts[1 - axis]
            size = (roi[axis + 2] - roi[axis]) / as_real(count, roi)
            ends = roi[axis] + np.arange(count + 1).astype(roi.dtype) * size
            axes.append([self._places(ends[k], ends[k + 1], extent) for k in range(count)])
        output = np.zeros((self.output_dim, self.group_size, self.group_size), data.dtype)
        for i, rows in enumerate(axes[0]):
            for j, columns in enumerate(axes[1]):
                output += _interpolated(maps[i, j], rows, columns)
        return np.asarray(output / as_real(parts[0] * parts[1], roi))

    def _places(self, low: Any, high: Any, extent: int) -> Array:
        """Return the positions of the bins between two corners."""
        last = as_real(extent - 1, low)
        if self.group_size == 1:
            return np.array([as_real(0.5, low) * (low + high) * last])
        step = (high - low) * last / as_real(self.group_size - 1, low)
        return np.asarray(np.arange(self.group_size).astype(low.dtype) * step + low * last)


class DeformableMode(enum.Enum):
    """The value of a bin: the mean of interpolated values."""

    BILINEAR_DEFORMABLE = "bilinear_deformable"


@operation(
    "DeformablePSROIPooling-1(data, rois, offsets?)",
    "f32[2,8,6,8], f32[4,5] -> f32[4,2,2,2] | output_dim=2 group_size=2 spatial_scale=0.5",
    "f32[2,16,6,8], f32[4,5], f32[4,4,2,2] -> f32[4,4,2,2]"
    " | output_dim=4 group_size=2 spatial_scale=1 spatial_bins_x=3 spatial_bins_y=2 part_size=2"
    " trans_std=0.5",
)
class DeformablePSROIPooling(_Pooled):
    """Position-sensitive regions whose bins are moved: the mean of samples of each bin.

    Inputs: as those of PSROIPooling, and `offsets` [R, 2 * classes, part_size, part_size]: moves
    right and down, as shares of the region, for classes of equal numbers of output channels.
    """

    minimum_size: ClassVar[float] = 0.1

    output_dim: int = attribute(integer(1))
    group_size: int = attribute(integer(1), 1)
    mode: DeformableMode = attribute(choice(DeformableMode), DeformableMode.BILINEAR_DEFORMABLE)
    spatial_bins_x: int = attribute(integer(1), 1)
    spatial_bins_y: int = attribute(integer(1), 1)
    trans_std: float = attribute(number(), 1.0)
    part_size: int = attribute(integer(1), 1)

    @property
    def bins(self) -> tuple[int, int]:
        return self.group_size, self.group_size

    def channels(self, found: Dim) -> Dim:
        return _grouped(found, self.output_dim, self.group_size**2)

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        (output,) = super().infer(inputs, context)
        if len(inputs) < 3:
            return (output,)
        assert output.shape is not None
        wanted = (output.shape[0], UNKNOWN, self.part_size, self.part_size)
        found = check_shape(inputs[2], "offsets", wanted) or wanted
        classes = found[1]
        if isinstance(classes, int) and (classes % 2 or not self._divided(classes // 2)):
            must = f"be twice a divisor of output_dim {self.output_dim}"
            raise misfit("input-shape", "axis 1 of offsets", must, classes, must)
        return (output._replace(shape=(found[0], *output.shape[1:])),)

    def _divided(self, classes: int) -> bool:
        return classes > 0 and self.output_dim % classes == 0

    def one(self, data: Array, roi: Array, offsets: Array | None = None) -> Array:
        scale, size = as_real(self.spatial_scale, roi), self.group_size
        half = as_real(0.5, roi)
        low = _rounded(roi[:2]).astype(roi.dtype) * scale - half
        high = (_rounded(roi[2:]).astype(roi.dtype) + as_real(1, roi)) * scale - half
        extents = np.maximum(high - low, as_real(self.minimum_size, roi))
        classes = 1 if offsets is None else len(offsets) // 2
        parts = np.arange(size) * self.part_size // size
        samples = []
        for axis, count in ((1, self.spatial_bins_y), (0, self.spatial_bins_x)):
            bin_size = extents[axis] / as_real(size, roi)
            starts = np.arange(size).astype(roi.dtype) * bin_size + low[axis]
            starts = starts[None, :, None] if axis else starts[None, None]
            if offsets is not None:
                moves = offsets[axis::2][:, parts[:, None], parts]
                starts = starts + moves * as_real(self.trans_std, roi) * extents[axis]
            steps = np.arange(count).astype(roi.dtype) * (bin_size / as_real(count, roi))
            samples.append(np.broadcast_to(starts, (classes, size, size))[..., None] + steps)
        rows, columns = samples[0][..., None], samples[1][..., None, :]  # [classes, G, G, Y, X]
        height, width = data.shape[1:]
        inside = (rows >= -half) & (rows <= height - half)
        inside = inside & (columns >= -half) & (columns <= width - half)
        maps = data.reshape(classes, -1, size, size, height, width)
        grids = np.ogrid[:classes, :size, :size]
        places = [grid[..., None, None] for grid in grids]
        values = _bilinear(
            np.moveaxis(maps, 1, 0),
            places,
            np.clip(rows, 0, height - 1),
            np.clip(columns, 0, width - 1),
        )
        sums = np.where(inside, values, 0).sum(axis=(-2, -1))
        counts = np.maximum(inside.sum(axis=(-2, -1)), 1)
        return np.asarray(np.moveaxis(sums / counts, 0, 1).reshape(self.output_dim, size, size))


def _grouped(found: Dim, output: int, groups: int) -> Dim:
    """Return the output channels of data that has `groups` channels for each."""
    if isinstance(found, int) and found != output * groups:
        must = f"be {output * groups}, output_dim {output} times {groups}"
        raise misfit("input-shape", "axis 1 of data", must, found, output * groups)
    return output


def _rounded(values: Array) -> Array:
    """Return the nearest whole numbers, halves away from zero."""
    magnitude = np.floor(np.abs(values) + as_real(0.5, values))
    whole: Array = np.clip(np.copysign(magnitude, values), -_FAR, _FAR).astype(np.int64)
    return whole


def _windows(low: Any, high: Any, extent: int, bins: int) -> list[tuple[int, int]]:
    """Return the first element of each bin, and the end, between two corners that both count."""
    size = max(int(high) - int(low) + 1, 1)
    return [
        (
            min(max(k * size // bins + int(low), 0), extent),
            min(max(-(-(k + 1) * size // bins) + int(low), 0), extent),
        )
        for k in range(bins)
    ]


def _grid(low: Any, high: Any, extent: int, bins: int) -> Array:
    """Return positions from corner to corner, or the middle, of shares of an extent."""
    last = as_real(extent - 1, low)
    if bins == 1:
        return np.array([as_real(0.5, low) * (low + high) * last])
    places: Array = np.arange(bins).astype(low.dtype) * (
        (high - low) * last / as_real(bins - 1, low)
    )
    places += low * last
    places[-1] = high * last
    return places


def _interpolated(data: Array, rows: Array, columns: Array) -> Array:
    """Interpolate data [C, H, W] at rows and columns; 0 outside."""
    height, width = data.shape[1:]
    inside = ((rows >= 0) & (rows <= height - 1))[:, None] & (columns >= 0) & (columns <= width - 1)
    places = np.clip(rows, 0, height - 1)[:, None], np.clip(columns, 0, width - 1)
    return np.asarray(np.where(inside, _bilinear(data, (), *places), 0))


def _bilinear(data: Array, before: Sequence[Any], rows: Array, columns: Array) -> Array:
    """Interpolate the last two axes of data, after axis 0 and axes with indices `before`."""
    top, left = np.floor(rows).astype(np.int64), np.floor(columns).astype(np.int64)
    down, right = (rows - top).astype(data.dtype), (columns - left).astype(data.dtype)
    bottom, beside = np.ceil(rows).astype(np.int64), np.ceil(columns).astype(np.int64)

    def line(row: Any) -> Any:
        first = data[(slice(None), *before, row, left)]
        return first + (data[(slice(None), *before, row, beside)] - first) * right

    upper = line(top)
    return np.asarray(upper + (line(bottom) - upper) * down)
