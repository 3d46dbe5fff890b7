"""OpenVINO's ExperimentalDetectron operations of opset6: grids, features, detections, the best."""

from __future__ import annotations

from deconv_ir.ir.dtypes import I32, Array
from deconv_ir.ir.geometry import UNKNOWN, Dim
from deconv_ir.ir.operation import Arrays, Context, Infos, Operation, TensorInfo
from deconv_ir.ir.record import field
from deconv_ir.ops.base import attribute, boolean, integer, integers, number, numbers, operation
from deconv_ir.ops.checks import check_count, check_shape, merged_type, misfit, product
from deconv_ir.ops.detection.boxes import as_real, best, refine, suppress
from deconv_ir.ops.detection.roi_align import BinPooling, ROIAlign3
from deconv_ir.ops.numeric import narrow, np, widen


@operation(
    "ExperimentalDetectronDetectionOutput-6(rois, deltas, scores, im_info)",
    "f32[4,4], f32[4,12], f32[4,3], f32[1,3]{64,64,1} -> f32[5,4], i32[5], f32[5]"
    " | score_threshold=0.1 nms_threshold=0.5 num_classes=3 post_nms_count=2"
    " max_detections_per_image=5 max_delta_log_wh=4 deltas_weights=10,10,5,5",
)
class ExperimentalDetectronDetectionOutput(Operation):
    """Boxes of each class that do not overlap a better one, their classes and scores; then 0.

    Inputs: `rois` [R, 4], `deltas` [R, classes * 4], `scores` [R, classes], `im_info` [1, 3].
    Class 0 is the background.  Boxes are clipped at 0 only, as in the runtime, and
    class_agnostic_box_regression has no effect there either.
    """

    scratch_ratios = (3.5, 4.5)

    formula = "max_detections_per_image {self.max_detections_per_image}"

    score_threshold: float = attribute(number())
    nms_threshold: float = attribute(number())
    num_classes: int = attribute(integer(0))
    post_nms_count: int = attribute(integer(-1))
    max_detections_per_image: int = attribute(integer(0))
    class_agnostic_box_regression: bool = attribute(boolean(), False)
    max_delta_log_wh: float = attribute(number())
    deltas_weights: tuple[float, ...] = attribute(numbers())

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        element_type = merged_type(inputs, self.inputs, "float")
        check_count(len(self.deltas_weights), "deltas_weights", 4, "attribute-value")
        rois = check_shape(inputs[0], "rois", (UNKNOWN, 4)) or (UNKNOWN,)
        found = check_shape(inputs[1], "deltas", (rois[0], 4 * self.num_classes)) or rois
        check_shape(inputs[2], "scores", (found[0], self.num_classes))
        check_shape(inputs[3], "im_info", (1, 3))
        count = self.max_detections_per_image
        return (
            TensorInfo((count, 4), element_type),
            TensorInfo((count,), I32),
            TensorInfo((count,), element_type),
        )

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        rois, deltas, scores = map(widen, inputs[:3])
        real, count = scores.dtype, self.max_detections_per_image
        rows, labels = np.zeros((count, 4), real), np.zeros(count, np.int32)
        values = np.zeros(count, real)
        with np.errstate(all="ignore"):
            moves = deltas.reshape(len(rois), -1, 4) / np.array(self.deltas_weights, real)
            boxes = refine(rois[:, None], moves, 1.0, self.max_delta_log_wh)
            boxes[..., 2:] -= real.type(1)
            boxes = np.maximum(boxes, 0)
            empty = np.any(rois[:, 2:] <= rois[:, :2], axis=1)
            boxes[empty], scores = 0, np.where(np.expand_dims(empty, 1), 0, scores)
            places, found = self._classes(boxes, scores)
        count = len(places)
        rows[:count], labels[:count] = boxes[places, found], found
        values[:count] = scores[places, found]
        return narrow(rows, inputs[0].dtype), labels, narrow(values, inputs[0].dtype)

    def _classes(self, boxes: Array, scores: Array) -> tuple[Array, Array]:
        """Return the boxes that are kept, by class, or by score if there are too many."""
        kept = [np.empty(0, np.intp)]
        labels = [np.empty(0, np.intp)]
        most = None if self.post_nms_count < 0 else self.post_nms_count
        for label in range(1, scores.shape[1]):
            values = scores[:, label]
            (places,) = np.nonzero(values > as_real(self.score_threshold, values))
            places = places[best(values[places])]
            places = places[suppress(boxes[places, label], self.nms_threshold, most, 1.0)]
            kept.append(places)
            labels.append(np.full(len(places), label))
        places, found = np.concatenate(kept), np.concatenate(labels)
        if len(places) > self.max_detections_per_image:
            order = np.lexsort((places, -scores[places, found]))[: self.max_detections_per_image]
            places, found = places[order], found[order]
        return places, found


@operation(
    "ExperimentalDetectronPriorGridGenerator-6(priors, feature_map, im_data)",
    "f32[3,4], f32[1,2,4,5], f32[1,3,64,80] -> f32[60,4] | stride_x=16 stride_y=16",
    "f32[3,4], f32[1,2,4,5], f32[1,3,64,80] -> f32[4,5,3,4] | flatten=false",
)
class ExperimentalDetectronPriorGridGenerator(Operation):
    """Boxes moved to the center of each cell of a feature map.

    Inputs: `priors` [A, 4], `feature_map` [1, C, H, W] and `im_data` [1, C, height, width], of
    which only the shapes are used.  With h or w smaller than the feature map, the boxes of the
    smaller grid come first, and the rest is 0.
    """

    scratch_ratios = (2, 3.5)

    formula = "H, W of feature_map {shape[feature_map]} * priors {shape[priors]}"

    flatten: bool = attribute(boolean(), True)
    h: int = attribute(integer(0), 0)
    w: int = attribute(integer(0), 0)
    stride_x: float = attribute(number(minimum=0), 0.0)
    stride_y: float = attribute(number(minimum=0), 0.0)

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        element_type = merged_type(inputs, self.inputs, "float")
        count = (check_shape(inputs[0], "priors", (UNKNOWN, 4)) or (UNKNOWN,))[0]
        unknown: tuple[Dim, ...] = (UNKNOWN,) * 4
        features = check_shape(inputs[1], "feature_map", unknown) or unknown
        check_shape(inputs[2], "im_data", (features[0], *unknown[1:]))
        for name, size, extent in (("h", self.h, features[2]), ("w", self.w, features[3])):
            if isinstance(extent, int) and size > extent:
                must = f"be at most {extent}, the extent of feature_map"
                raise misfit("attribute-value", name, must, size, f"<= {extent}", name)
        shape: tuple[Dim, ...] = (*features[2:], count, 4)
        if self.flatten:
            shape = (product(*shape[:3]), 4)
        return (TensorInfo(shape, element_type),)

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        priors = widen(inputs[0])
        shape = (*inputs[1].shape[2:], *priors.shape)
        grid = self.h or shape[0], self.w or shape[1]
        strides = self.stride_y, self.stride_x
        centers = []
        for cells, stride, extent in zip(grid, strides, inputs[2].shape[2:], strict=True):
            step = np.float32(stride) or np.float32(extent) / np.float32(cells)
            centers.append(step * (np.arange(cells, dtype=np.float32) + np.float32(0.5)))
        down, right = np.broadcast_arrays(centers[0][:, None], centers[1])
        boxes = priors + np.stack([right, down] * 2, -1)[:, :, None].astype(priors.dtype)
        output = np.zeros(shape, priors.dtype)
        output.reshape(-1, 4)[: boxes.size // 4] = boxes.reshape(-1, 4)
        if self.flatten:
            output = output.reshape(-1, 4)
        return (narrow(output, inputs[0].dtype),)


class _Align(ROIAlign3):
    """Regions of a feature map, resampled to one size."""

    offset: float = field()

    @property
    def frame(self) -> tuple[float, float, float]:
        """Corners are moved after they are scaled; sizes are at least 1."""
        return 0.0, -self.offset, 1.0


@operation(
    "ExperimentalDetectronROIFeatureExtractor-6(rois, features...)",
    "f32[3,4], f32[1,2,8,8], f32[1,2,4,4] -> f32[3,2,2,2], f32[3,4]"
    " | output_size=2 sampling_ratio=2 pyramid_scales=4,8",
)
class ExperimentalDetectronROIFeatureExtractor(Operation):
    """Regions, each resampled from the level of a pyramid that fits its size; and the regions.

    Inputs: `rois` [R, 4] in pixels of the image, then the feature maps [1, C, Y, X] of each level.
    Level 2 is that of regions of 224 x 224; regions without an area give zeros.
    """

    scratch_ratios = (0.5, 1.5)

    formula = "rois {shape[rois]}, C of features, output_size {self.output_size}"

    output_size: int = attribute(integer(1))
    sampling_ratio: int = attribute(integer(0))
    pyramid_scales: tuple[int, ...] = attribute(integers(1))
    aligned: bool = attribute(boolean(), False)

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        if len(inputs) < 2:
            must = "be 2 or more"
            raise misfit("input-count", "inputs", must, len(inputs), must)
        names = ["rois", *(f"level {level} of features" for level in range(len(inputs) - 1))]
        element_type = merged_type(inputs, names, "float")
        if len(self.pyramid_scales) < len(inputs) - 1:
            must = f"have one element for each level, {len(inputs) - 1}"
            found = len(self.pyramid_scales)
            raise misfit("attribute-value", "pyramid_scales", must, found, must, "pyramid_scales")
        rois = check_shape(inputs[0], "rois", (UNKNOWN, 4)) or (UNKNOWN,)
        channels: Dim = UNKNOWN
        for info, name in zip(inputs[1:], names[1:], strict=True):
            wanted = (1, channels, UNKNOWN, UNKNOWN)
            channels = (check_shape(info, name, wanted) or wanted)[1]
        size = self.output_size
        return (
            TensorInfo((rois[0], channels, size, size), element_type),
            TensorInfo((rois[0], 4), element_type),
        )

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        rois = widen(inputs[0])
        size = self.output_size
        output = np.zeros((len(rois), inputs[1].shape[1], size, size), rois.dtype)
        area = (rois[:, 2] - rois[:, 0]) * (rois[:, 3] - rois[:, 1])
        with np.errstate(all="ignore"):
            level = np.floor(np.log2(np.sqrt(area) / as_real(224, rois) + as_real(1e-6, rois)) + 2)
        level = np.clip(np.nan_to_num(level), 0, len(inputs) - 2).astype(np.int64)
        for place, features in enumerate(inputs[1:]):
            (rows,) = np.nonzero((level == place) & (area > 0))
            if len(rows):
                align = self._align(self.pyramid_scales[place])
                data, images = widen(features), np.zeros(len(rows), np.int64)
                (output[rows],) = align.execute([data, rois[rows], images], context)
        return narrow(output, inputs[0].dtype), np.array(inputs[0])

    def _align(self, scale: int) -> Operation:
        """Return the operation that resamples regions of one level."""
        size = self.output_size
        return _Align(
            pooled_h=size,
            pooled_w=size,
            sampling_ratio=self.sampling_ratio,
            spatial_scale=1 / scale,
            mode=BinPooling.AVG,
            offset=0.5 if self.aligned else 0.0,
        )


@operation(
    "ExperimentalDetectronTopKROIs-6(rois, probs)", "f32[5,4], f32[5] -> f32[3,4] | max_rois=3"
)
class ExperimentalDetectronTopKROIs(Operation):
    """The regions with the greatest probabilities; then 0."""

    scratch_ratios = (0.5, 0.5)

    formula = "max_rois {self.max_rois}"

    max_rois: int = attribute(integer(0), 0)

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        element_type = merged_type(inputs, self.inputs, "float")
        rois = check_shape(inputs[0], "rois", (UNKNOWN, 4)) or (UNKNOWN,)
        check_shape(inputs[1], "probs", (rois[0],))
        return (TensorInfo((self.max_rois, 4), element_type),)

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        rois, probs = inputs
        output = np.zeros((self.max_rois, 4), rois.dtype)
        order = best(widen(probs), self.max_rois)
        output[: len(order)] = rois[order]
        return (output,)
