"""IRs that the documents do not describe to the letter, and that OpenVINO runs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from support import IR, Out

RNG = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def prelu(data: str, slope: type) -> Callable[[IR], Out]:
    """Data and slope of different types, as Model Optimizer compressed them."""

    def build(ir: IR) -> Out:
        x = ir.parameter("x", "2,3,4", data)
        slopes = ir.const(np.array([0.5, -0.25, 2.0], slope))
        return ir.layer("PReLU", [x, slopes], precision="dynamic")

    return build


def case_of(kind: str, **attributes: str) -> Callable[[IR], Out]:
    def build(ir: IR) -> Out:
        x = ir.parameter("x", "2,3,4")
        others = [ir.const(np.full(3, 0.25, np.float32))] if kind == "PRelu" else []
        return ir.layer(kind, [x, *others], attributes)

    return build


def read_value(ir: IR) -> Out:
    """A variable without its shape and type."""
    x = ir.parameter("x", "2,3")
    read = ir.layer("ReadValue", [x], {"variable_id": "v"}, version="opset6")
    ir.layer("Assign", [read], {"variable_id": "v"}, version="opset6")
    return read


def reorg(shape: str) -> Callable[[IR], Out]:
    """Channels that are no multiple of stride^2."""

    def build(ir: IR) -> Out:
        x = ir.parameter("x", shape)
        return ir.layer("ReorgYolo", [x], {"stride": "2"}, version="opset2")

    return build


def of_opset1(kind: str, attributes: dict[str, str], *others: np.ndarray) -> Callable[[IR], Out]:
    """Types that opset2 has first."""

    def build(ir: IR) -> Out:
        inputs = [ir.parameter("x", "1,4,6,8"), *map(ir.const, others)]
        return ir.layer(kind, inputs, attributes)

    return build


def rnn_cell(ir: IR) -> Out:
    inputs = [ir.parameter("x", "2,3"), *map(ir.const, (normal(2, 4), normal(4, 3), normal(4, 4)))]
    inputs.append(ir.const(normal(4)))
    return ir.layer("RNNCell", inputs, {"hidden_size": "4"}, version="experimental")


def sequence(kind: str, gates: int, **given: str) -> Callable[[IR], Out]:
    """A sequence without direction: forward."""

    def build(ir: IR) -> Out:
        states = [normal(2, 1, 4)] * (2 if kind.startswith("LSTM") else 1)
        weights = [normal(1, gates * 4, n) for n in (3, 4)]
        arrays = [*states, np.array([5, 3]), *weights, normal(1, gates * 4)]
        x = ir.parameter("x", "2,5,3")
        functions = {1: "tanh", 3: "sigmoid,tanh", 4: "sigmoid,tanh,tanh"}[gates]
        attributes = {"hidden_size": "4", "activations": functions} | given
        outputs = [""] * (1 + len(states))
        inputs = [x, *map(ir.const, arrays)]
        return ir.layer(kind, inputs, attributes, outputs=outputs, version="opset5")

    return build


def attention(mask: bool, causal: str, sink: tuple[int, ...]) -> Callable[[IR], Out]:
    """A sixth input: the score of one more key."""

    def build(ir: IR) -> Out:
        x = ir.parameter("x", "1,2,5,8")
        scores = normal(5, 6) if mask else np.zeros((), np.float32)
        others = [normal(1, 2, 6, 8), normal(1, 2, 6, 8), scores, np.array(0.5, np.float32)]
        inputs = [x, *map(ir.const, others), ir.const(normal(*sink))]
        return ir.layer("ScaledDotProductAttention", inputs, {"causal": causal}, version="opset13")

    return build


def size_of(ir: IR, x: Out) -> Out:
    """Height and width, as Model Optimizer computes them."""
    shape = ir.layer("ShapeOf", [x], precision="I64")
    bounds = [ir.const(np.array([n])) for n in (2, 4, 1)]
    masks = {"begin_mask": "0", "end_mask": "0", "new_axis_mask": "0", "shrink_axis_mask": "0"}
    masks["ellipsis_mask"] = "0"
    return ir.layer("StridedSlice", [shape, *bounds], masks, precision="I64")


def priors(kind: str, attributes: dict[str, str]) -> Callable[[IR], Out]:
    def build(ir: IR) -> Out:
        sizes = [size_of(ir, ir.parameter("x", "1,4,6,8")), ir.const(np.array([96, 128]))]
        return ir.layer(kind, sizes, attributes)

    return build


def regions(kind: str, attributes: dict[str, str], version: str) -> Callable[[IR], Out]:
    """Pooling of two regions of images with 8 channels."""

    def build(ir: IR) -> Out:
        x = ir.parameter("x", "1,8,12,14")
        boxes = np.array([[0, 8, 16, 100, 120], [0, 0, 0, 60, 90]], np.float32)
        return ir.layer(kind, [x, ir.const(boxes)], attributes, version=version)

    return build


def detections(ir: IR) -> Out:
    """The output of a detector, with the attributes of SSD's Caffe layer."""
    low = RNG.uniform(0, 0.5, (1, 9, 2))
    boxes = np.concatenate([low, low + RNG.uniform(0.1, 0.5, (1, 9, 2))], -1).reshape(1, 1, -1)
    prior = np.concatenate([boxes, np.full((1, 1, 36), 0.1)], 1).astype(np.float32)
    scores = RNG.uniform(0, 1, (1, 27)).astype(np.float32)
    inputs = [ir.parameter("x", "1,36"), ir.const(scores), ir.const(prior)]
    return ir.layer("DetectionOutput", inputs, OUTPUT_OF_SSD)


def proposal(ir: IR) -> Out:
    scores = RNG.uniform(0, 1, (1, 6, 5, 5)).astype(np.float32)
    size = ir.const(np.array([80, 80, 1], np.float32))
    inputs = [ir.const(scores), ir.parameter("x", "1,12,5,5"), size]
    return ir.layer("Proposal", inputs, OF_PROPOSAL, outputs=["", ""], version="opset4")


# What Model Optimizer writes: `backend_attrs` or `supported_attrs` of each class in OpenVINO's
# repository, model-optimizer/extensions/ops and mo/ops; early releases wrote img_size, flip, etc.
OUTPUT_OF_SSD = {
    "background_label_id": "0", "clip_after_nms": "false", "clip_before_nms": "false",
    "code_type": "caffe.PriorBoxParameter.CENTER_SIZE", "confidence_threshold": "0.3",
    "decrease_label_id": "false", "input_height": "1", "input_width": "1", "keep_top_k": "5",
    "nms_threshold": "0.45", "normalized": "true", "num_classes": "3", "objectness_score": "0",
    "share_location": "true", "top_k": "9", "variance_encoded_in_target": "false",
    "eta": "1.0", "visualize": "False", "visualize_threshold": "0.6", "interp_mode": "",
    "height": "0", "width": "0", "height_scale": "0", "width_scale": "0", "label_map_file": "",
    "name_size_file": "", "num_test_image": "0", "output_directory": "", "output_format": "",
    "output_name_prefix": "", "pad_mode": "caffe.ResizeParameter.CONSTANT", "pad_value": "",
    "prob": "0", "resize_mode": "caffe.ResizeParameter.WARP", "save_file": "",
}  # fmt: skip
OF_PRIORS = {"offset": "0.5", "step": "16.0", "variance": "0.1,0.1,0.2,0.2", "clip": "0"}
OF_EARLY_PRIORS = {"img_h": "0", "img_w": "0", "img_size": "0", "flip": "1"}
OF_BOXES = {
    "min_size": "16.0", "max_size": "38.46", "aspect_ratio": "2.0,0.5", "density": "",
    "fixed_ratio": "", "fixed_size": "", "scale_all_sizes": "true", "flip": "1",
}  # fmt: skip
OF_CLUSTERS = {"width": "86.0,13.0,57.0", "height": "44.0,10.0,30.0"}
OF_PROPOSAL = {
    "base_size": "16", "box_coordinate_scale": "1", "box_size_scale": "1", "feat_stride": "16",
    "clip_after_nms": "false", "clip_before_nms": "true", "framework": "", "min_size": "4",
    "nms_thresh": "0.6", "normalize": "0", "post_nms_topn": "6", "pre_nms_topn": "50",
    "ratio": "0.5,1.0,2.0", "scale": "2.0", "for_deformable": "0",
}  # fmt: skip
OF_ROI = {"method": "max", "pooled_h": "3", "pooled_w": "2", "spatial_scale": "0.0625"}
OF_PSROI = {
    "group_size": "2", "mode": "average", "output_dim": "2", "spatial_bins_x": "1",
    "spatial_bins_y": "1", "spatial_scale": "0.0625",
}  # fmt: skip
OF_PSROI_EARLY = {"no_trans": "1", "trans_std": "0", "pooled_height": "2", "pooled_width": "2"}
BY_MODEL_OPTIMIZER: dict[str, Callable[[IR], Out]] = {
    "PriorBox": priors("PriorBox", OF_PRIORS | OF_BOXES),
    "PriorBox, early": priors(
        "PriorBox", OF_PRIORS | OF_BOXES | OF_EARLY_PRIORS | {"step_h": "0", "step_w": "0"}
    ),
    "PriorBoxClustered": priors(
        "PriorBoxClustered", OF_PRIORS | OF_CLUSTERS | {"step_h": "0.0", "step_w": "0.0"}
    ),
    "PriorBoxClustered, early": priors(
        "PriorBoxClustered", OF_PRIORS | OF_CLUSTERS | OF_EARLY_PRIORS
    ),
    "DetectionOutput": detections,
    "Proposal": proposal,
    **{f"ROIPooling of {v}": regions("ROIPooling", OF_ROI, v) for v in ("opset1", "opset2")},
    **{f"PSROIPooling of {v}": regions("PSROIPooling", OF_PSROI, v) for v in ("opset1", "opset2")},
    "PSROIPooling, early": regions("PSROIPooling", OF_PSROI | OF_PSROI_EARLY, "opset2"),
}
"""Operations of detectors as Model Optimizer writes them."""

LENIENT: dict[str, Callable[[IR], Out]] = {
    **BY_MODEL_OPTIMIZER,
    "PReLU of f16 with a slope of f32": prelu("f16", np.float32),
    "PReLU of f32 with a slope of f16": prelu("f32", np.float16),
    **{kind: case_of(kind) for kind in ("Relu", "relu", "RELU", "PRelu", "sigmoid")},
    "ELU": case_of("ELU", alpha="1.5"),
    "Softmax": case_of("Softmax", axis="1"),
    "ReadValue": read_value,
    **{f"ReorgYolo {s}": reorg(s) for s in ("1,5,4,6", "1,7,2,4", "2,5,4,6", "3,11,4,2")},
    "MVN": of_opset1(
        "MVN", {"across_channels": "false", "normalize_variance": "true", "eps": "1e-9"}
    ),
    "ReorgYolo of opset1": of_opset1("ReorgYolo", {"stride": "2"}),
    "RNNCell": rnn_cell,
    **{f"{n}Sequence": sequence(f"{n}Sequence", g) for n, g in
       (("RNN", 1), ("GRU", 3), ("LSTM", 4))},
    "sink": attention(True, "false", (1, 2, 1, 1)),
    "sink without mask": attention(False, "false", (1, 2, 1, 1)),
}  # fmt: skip


def model_of(name: str) -> tuple[IR, np.ndarray]:
    """Return a model with one input `x` and one output, and an array for its input."""
    global RNG
    RNG = np.random.default_rng(sum(map(ord, name)))
    ir = IR()
    ir.result(LENIENT[name](ir), "y")
    return ir, RNG.standard_normal(1 << 12).astype(np.float32)
