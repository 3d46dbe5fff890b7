"""OpenVINO ROIAlign-3, -9 and ROIAlignRotated-15: regions of a feature map, sampled to one size."""

from __future__ import annotations

import abc
import enum
import math
from typing import Any, ClassVar

from deconv_ir.ir.dtypes import Array
from deconv_ir.ir.geometry import UNKNOWN
from deconv_ir.ir.operation import Arrays, Context, Infos, Operation, TensorInfo
from deconv_ir.ir.shapes import intersect
from deconv_ir.ops.base import attribute, boolean, choice, integer, number, operation
from deconv_ir.ops.checks import check_shape, check_type, merged_type, misfit
from deconv_ir.ops.numeric import narrow, np, widen

_INPUTS = ("data", "rois", "batch_indices")
_MOST_SAMPLES = 1 << 12

_EXAMPLE = (
    "f32[2,3,8,8], f32[5,4], i64[5]{0,1,0,1,1} -> f32[5,3,2,4]"
    " | pooled_h=2 pooled_w=4 sampling_ratio=2 spatial_scale=0.5 mode=avg"
)


class BinPooling(enum.Enum):
    """The function that combines the samples of a bin."""

    AVG = "avg"
    MAX = "max"


class Alignment(enum.Enum):
    """Positions of the elements of the feature map."""

    ASYMMETRIC = "asymmetric"
    HALF_PIXEL_FOR_NN = "half_pixel_for_nn"
    HALF_PIXEL = "half_pixel"


class _RegionAlign(Operation, abc.ABC):
    """Regions of a feature map, each sampled to one size."""

    formula = "rois {shape[rois]}, C of data {shape[data]}, {self.pooled_h} x {self.pooled_w}"

    pooled_h: int = attribute(integer(1))
    pooled_w: int = attribute(integer(1))
    sampling_ratio: int = attribute(integer(0))
    spatial_scale: float = attribute(number(minimum=0))

    numbers: ClassVar[int] = 4
    """Number of values of a region."""

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        element_type = merged_type(inputs[:2], _INPUTS, "float")
        check_type(inputs[2], _INPUTS[2], "integer")
        data = check_shape(inputs[0], "data", (UNKNOWN,) * 4) or (UNKNOWN,) * 4
        rois = check_shape(inputs[1], "rois", (UNKNOWN, self.numbers)) or (UNKNOWN,)
        (count,) = intersect(check_shape(inputs[2], "batch_indices", (rois[0],)), (rois[0],)) or ()
        return (TensorInfo((count, data[1], self.pooled_h, self.pooled_w), element_type),)

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        data, rois = widen(inputs[0]), widen(inputs[1])
        if not np.isfinite(rois).all():
            raise misfit("index", "rois", "be finite", "NaN or an infinity", "finite numbers")
        images = inputs[2].astype(np.int64)
        if images.size and not 0 <= int(images.min()) <= int(images.max()) < len(data):
            must = f"be from 0 to {len(data) - 1}"
            found = int(images.min()) if images.min() < 0 else int(images.max())
            raise misfit("index", "batch_indices", must, found, must)
        shape = (len(rois), data.shape[1], self.pooled_h, self.pooled_w)
        output = np.empty(shape, data.dtype)
        for place, (roi, image) in enumerate(zip(rois, images, strict=True)):
            output[place] = self.one(data[image], roi)
        return (narrow(output, inputs[0].dtype),)

    @abc.abstractmethod
    def one(self, data: Array, roi: Array) -> Array:
        """Sample one region [C, H, W]."""

    def places(self, start: float, length: float, bins: int) -> Array:
        """Return the positions of the samples of each bin: [bins, samples]."""
        size = length / bins
        if not max(self.sampling_ratio, size) <= _MOST_SAMPLES:
            must = f"have at most {_MOST_SAMPLES} samples a bin and axis"
            raise misfit("index", "a region", must, self.sampling_ratio or size, _MOST_SAMPLES)
        count = self.sampling_ratio or max(1, math.ceil(size))
        steps = (np.arange(count) + 0.5) * size / count
        return np.asarray(start + np.arange(bins)[:, None] * size + steps)


@operation("ROIAlign-3(data, rois, batch_indices)", _EXAMPLE)
class ROIAlign3(_RegionAlign):
    """Regions of a feature map, resampled bilinearly to one size."""

    scratch_ratios = (0.25, 1.25)

    mode: BinPooling = attribute(choice(BinPooling))

    aligned_mode: Alignment = Alignment.ASYMMETRIC

    @property
    def frame(self) -> tuple[float, float, float]:
        """Return what is added to corners before and after they are scaled, and a least size."""
        aligned = self.aligned_mode
        before = 0.5 if aligned is Alignment.HALF_PIXEL else 0.0
        return (before, 0.0, 1.0) if aligned is Alignment.ASYMMETRIC else (before, -0.5, 0.0)

    def one(self, data: Array, roi: Array) -> Array:
        before, after, least = self.frame
        x1, y1, x2, y2 = (float(v + before) * self.spatial_scale + after for v in roi)
        height, width = max(y2 - y1, least), max(x2 - x1, least)
        rows = self._axis(y1, height, self.pooled_h, data.shape[1])
        columns = self._axis(x1, width, self.pooled_w, data.shape[2])
        rows, first, last = _cropped(*rows)
        columns, left, right = _cropped(*columns)
        data = data[:, first:last, left:right]
        if self.mode is BinPooling.AVG:
            # Bilinear weights of all samples of a bin, summed: a product of two matrices.
            weights = [
                _weights(*axis, extent)
                for axis, extent in zip((rows, columns), data.shape[1:], strict=True)
            ]
            return np.asarray(weights[0] @ data @ weights[1].T, data.dtype)
        return _greatest(data, rows, columns)

    def _axis(self, start: float, length: float, bins: int, extent: int) -> tuple[Any, Any, Any]:
        """Return low index, high index and weight of the high one: [bins, samples]."""
        places = self.places(start, length, bins)
        low, high, part = _neighbours(places, extent)
        return np.where((places < -1) | (places > extent), -1, low), high, part


def _neighbours(places: Array, extent: int) -> tuple[Any, Any, Any]:
    """Return the elements before and after each position, and the weight of the latter."""
    places = np.clip(places, 0, extent - 1)
    low = places.astype(np.int64)
    return low, np.minimum(low + 1, extent - 1), places - low


def _cropped(low: Any, high: Any, part: Any) -> tuple[tuple[Any, Any, Any], int, int]:
    """Count the elements of an axis from the first one that is used; return the range in use."""
    inside = low >= 0
    first = int(low[inside].min(initial=high.max()))
    return (np.where(inside, low - first, -1), high - first, part), first, int(high.max()) + 1


def _weights(low: Any, high: Any, part: Any, extent: int) -> Any:
    """Return the mean of the samples of each bin as a matrix [bins, extent]."""
    bins, count = low.shape
    matrix = np.zeros((bins, extent))
    rows = np.broadcast_to(np.arange(bins)[:, None], low.shape)
    inside = low >= 0
    np.add.at(matrix, (rows[inside], low[inside]), (1 - part)[inside] / count)
    np.add.at(matrix, (rows[inside], high[inside]), part[inside] / count)
    return matrix


def _greatest(data: Array, rows: tuple[Any, Any, Any], columns: tuple[Any, Any, Any]) -> Array:
    """Return the maximum sample of each bin."""
    bins = len(rows[0]), len(columns[0])
    across = _points(*columns, data.shape[2])
    output = np.empty((len(data), *bins), data.dtype)
    for i, down in enumerate(np.split(_points(*rows, data.shape[1]), bins[0])):
        samples = down @ data @ across.T  # [C, samples of a row, bins * samples]
        output[:, i] = samples.reshape(*samples.shape[:2], bins[1], -1).max(axis=(1, 3))
    return output


def _points(low: Any, high: Any, part: Any, extent: int) -> Any:
    """Return each sample of each bin as a row of a matrix [bins * samples, extent]."""
    return _weights(low.reshape(-1, 1), high.reshape(-1, 1), part.reshape(-1, 1), extent)


@operation("ROIAlign-9(data, rois, batch_indices)", f"{_EXAMPLE} aligned_mode=half_pixel")
class ROIAlign9(ROIAlign3):
    """Regions of a feature map, resampled bilinearly to one size."""

    aligned_mode: Alignment = attribute(choice(Alignment), Alignment.ASYMMETRIC)


@operation(
    "ROIAlignRotated-15(data, rois, batch_indices)",
    "f32[2,3,8,8], f32[5,5], i64[5]{0,1,0,1,1} -> f32[5,3,2,4]"
    " | pooled_h=2 pooled_w=4 sampling_ratio=2 spatial_scale=0.5 clockwise_mode=true",
)
class ROIAlignRotated(_RegionAlign):
    """Rotated regions (center x and y, width, height, angle in radians), resampled to one size."""

    scratch_ratios = (1.25, 2.25)

    clockwise_mode: bool = attribute(boolean(), False)

    numbers = 5

    def one(self, data: Array, roi: Array) -> Array:
        x, y, width, height = (float(v) * self.spatial_scale for v in roi[:4])
        angle = float(roi[4]) * (-1 if self.clockwise_mode else 1)
        down, across = (
            self.places(-length / 2, length, bins).reshape(-1)
            for length, bins in ((height, self.pooled_h), (width, self.pooled_w))
        )
        sin, cos = math.sin(angle), math.cos(angle)
        rows = down[:, None] * cos - across * sin + y - 0.5
        columns = down[:, None] * sin + across * cos + x - 0.5
        height, width = data.shape[1:]
        outside = (rows < -1) | (columns < -1) | (rows > height) | (columns > width)
        axes = [_neighbours(p, n) for p, n in ((rows, height), (columns, width))]
        (low_y, high_y, part_y), (low_x, high_x, part_x) = axes
        samples = np.zeros((len(data), *rows.shape))
        for i, weight_y in ((low_y, 1 - part_y), (high_y, part_y)):
            for j, weight_x in ((low_x, 1 - part_x), (high_x, part_x)):
                samples += np.where(outside, 0, weight_y * weight_x) * data[:, i, j]
        bins = samples.reshape(
            len(data), self.pooled_h, -1, self.pooled_w, len(across) // self.pooled_w
        )
        return np.asarray(bins.mean(axis=(2, 4)), data.dtype)
