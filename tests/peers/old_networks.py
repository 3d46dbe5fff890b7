"""Old networks: classifiers, detectors, readers, and NETWORKS, all of them in their versions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from formats.openvino_legacy import oracles

from .old_builder import Builder, OldNetwork, Value, build
from .old_decoders import DECODERS, LATE

__all__ = ["NETWORKS", "OldNetwork", "build"]

F = torch.nn.functional


def yolo(b: Builder, act: str) -> list[Value]:
    """A detector of two scales with RegionYolo, whose classes are logistic."""
    x = b.pool(b.act(b.scale(b.conv(b.input(1, 3, 32, 32), 8)), act))
    fine = b.pool(b.act(b.conv(x, 12), act))
    coarse = b.act(b.conv(b.pool(fine), 16), act)
    merged = b.concat(b.nearest(b.conv(coarse, 6, 1), 2), fine)
    results = []
    for value in (coarse, merged):
        raw = b.conv(value, 3 * 7, 1)
        parts = raw.torch.reshape(1, 3, 7, *raw.torch.shape[2:])
        keep = torch.tensor([False, False, True, True, False, False, False]).reshape(1, 1, 7, 1, 1)
        result = torch.where(keep, parts, parts.sigmoid()).reshape(raw.torch.shape)
        data = {"axis": 1, "end_axis": 3, "classes": 2, "coords": 4, "num": 6, "do_softmax": 0}
        results.append(b.layer("RegionYolo", [raw], result, attributes=data | {"mask": "0,1,2"}))
    return results


def yolo_v2(b: Builder, act: str) -> list[Value]:
    """A detector with ReorgYolo and RegionYolo, whose classes are softmax."""
    fine = b.act(b.scale(b.conv(b.input(1, 3, 16, 16), 8, stride=2)), act)
    coarse = b.act(b.conv(b.pool(fine), 10), act)
    result = torch.tensor(oracles.reorg_yolo(fine.torch.numpy(), 2))
    fine = b.layer("ReorgYolo", [fine], result, attributes={"stride": 2})
    raw = b.conv(b.concat(fine, coarse), 2 * 8, 1)
    found = torch.tensor(oracles.region_softmax(raw.torch.numpy(), 3, 2)).float().reshape(1, -1)
    data = {"axis": 1, "end_axis": 3, "classes": 3, "coords": 4, "num": 2, "do_softmax": 1}
    return [b.layer("RegionYolo", [raw], found, attributes=data)]


def ssd(b: Builder, act: str) -> list[Value]:
    """An SSD of two scales: normalized features, heads, prior boxes of both kinds, detections."""
    image = b.input(1, 3, 24, 32)
    x = b.act(b.conv(image, 8, stride=2), act)
    w = b.weights(8, scale=1.0)
    scaled = x.torch / torch.sqrt((x.torch**2).sum(1, keepdim=True) + 1e-10)
    data = {"across_spatial": 0, "channel_shared": 0, "eps": 1e-10}
    result = scaled * b.stored(w).reshape(1, -1, 1, 1)
    normal = b.layer("Normalize", [x], result, attributes=data, blobs={"weights": w})
    deep = b.act(b.conv(x, 12, stride=2), act)
    levels = (normal, 4), (deep, 2)
    heads = [
        b.concat(*(b.flatten(b.permute(b.conv(v, n * boxes), 0, 2, 3, 1)) for v, boxes in levels))
        for n in (4, 3)
    ]
    scores = b.flatten(b.softmax(b.reshape(heads[1], 1, -1, 3), 2))
    spread = (0.1, 0.1, 0.2, 0.2)
    common = {"variance": spread, "offset": 0.5, "clip": 0}
    first = {"min_size": 4, "max_size": 9, "aspect_ratio": 2, "flip": 1, "step": 2}
    boxes = oracles.prior_box((12, 16), (24, 32), 4, 9, 2, 2, spread)
    second = {"width": "6,11", "height": "9,5", "step_w": 4, "step_h": 4}
    wide = oracles.clustered((6, 8), (24, 32), [(6, 9), (11, 5)], (4, 4), spread)
    priors = b.concat(
        b.layer(
            "PriorBox", [normal, image], torch.tensor(boxes).float(), attributes=first | common
        ),
        b.layer(
            "PriorBoxClustered",
            [deep, image],
            torch.tensor(wide).float(),
            attributes=second | common,
        ),
        axis=2,
    )
    limits = {"top_k": 40, "keep_top_k": 15, "confidence_threshold": 0.3, "nms_threshold": 0.45}
    found = oracles.detections(
        heads[0].torch.numpy(), scores.torch.numpy(), priors.torch.numpy(), 3, **limits
    )
    data = {"num_classes": 3, "code_type": "caffe.PriorBoxParameter.CENTER_SIZE", **limits}
    data |= {"share_location": 1, "variance_encoded_in_target": 0, "background_label_id": 0}
    data |= {"normalized": 1, "eta": 1.0, "visualize": "False"}
    result = torch.tensor(found).float()
    return [b.layer("DetectionOutput", [heads[0], scores, priors], result, attributes=data)]


def text(b: Builder, act: str) -> list[Value]:
    """A reader of text lines: convolutions, then an LSTM over the columns."""
    x = b.pool(b.act(b.conv(b.input(1, 1, 8, 24), 8), act), 2, 2)
    x = b.pool(x, 4, 4, "avg")
    x = b.reshape(b.permute(x, 0, 3, 1, 2), 1, -1, 8)
    w, bias = b.weights(24, 14), b.weights(24)
    cell = torch.nn.LSTM(8, 6, batch_first=True)
    order = [1, 0, 2, 3]  # the old order is f, i, c, o, that of torch i, f, c, o
    whole = b.stored(w).reshape(4, 6, 14)[order].reshape(24, 14)
    with torch.no_grad():
        cell.weight_ih_l0.copy_(whole[:, :8])
        cell.weight_hh_l0.copy_(whole[:, 8:])
        cell.bias_ih_l0.copy_(b.stored(bias).reshape(4, 6)[order].reshape(24))
        cell.bias_hh_l0.zero_()
        result = cell(x.torch)[0]
    made = b.layer(
        "LSTMSequence",
        [x],
        result,
        blobs={"weights": w, "biases": bias},
        attributes={"hidden_size": 6, "direction": "Forward", "axis": 1},
    )
    return [b.softmax(b.linear(made, 5))]


def squeezenet(b: Builder, act: str) -> list[Value]:
    """Fire modules, and the mean of a map for each class."""
    x = b.pool(b.act(b.conv(b.input(1, 3, 24, 24), 8, stride=2), act))
    for _ in range(2):
        narrow = b.act(b.conv(x, 4, 1), act)
        x = b.concat(b.act(b.conv(narrow, 8, 1), act), b.act(b.conv(narrow, 8), act))
    return [b.softmax(b.mean(b.conv(x, 5, 1)))]


def mobilenet(b: Builder, act: str) -> list[Value]:
    """Inverted residuals of depthwise convolutions."""
    x = b.act(b.conv(b.input(1, 3, 16, 16), 6, stride=2), act)
    for stride in (1, 2, 1):
        wide = b.act(b.conv(x, 18, 1), act)
        wide = b.act(b.conv(wide, 18, stride=stride, group=18), act)
        y = b.conv(wide, 6, 1)
        x = b.add(x, y) if stride == 1 else y
    return [b.softmax(b.linear(b.mean(x), 7))]


def shufflenet(b: Builder, act: str) -> list[Value]:
    """Half of the channels pass a branch; then both halves are interleaved."""
    x = b.act(b.conv(b.input(1, 3, 12, 16), 8), act)
    for _ in range(2):
        left, right = b.slices(x, 4, 4)
        right = b.act(b.conv(b.conv(b.act(b.conv(right, 4, 1), act), 4, group=4), 4, 1), act)
        x = b.concat(left, right)
        mixed = F.channel_shuffle(x.torch, 2)
        x = b.layer("ShuffleChannels", [x], mixed, attributes={"axis": 1, "group": 2})
    return [b.linear(b.mean(x), 4)]


def resnet(b: Builder, act: str) -> list[Value]:
    """Blocks with a projection where the size changes; batch normalization is left."""
    x = b.pool(b.act(b.norm(b.conv(b.input(1, 3, 32, 32), 8, 7, 2)), act), 3, 2, pad=1)
    for channels, stride in ((8, 1), (12, 2)):
        y = b.act(b.norm(b.conv(x, channels, stride=stride, bias=False)), act)
        y = b.norm(b.conv(y, channels, bias=False))
        x = b.act(b.add(y, x if stride == 1 else b.conv(x, channels, 1, stride)), act)
    return [b.softmax(b.linear(b.mean(x), 6))]


def densenet(b: Builder, act: str) -> list[Value]:
    """Each layer reads the results of all before it."""
    x = b.conv(b.input(1, 3, 12, 12), 6)
    for _ in range(3):
        x = b.concat(x, b.conv(b.act(b.scale(x), act), 4))
    x = b.pool(b.conv(x, 8, 1), 2, 2, "avg")
    return [b.linear(b.mean(b.act(b.scale(x), act)), 5)]


def inception(b: Builder, act: str) -> list[Value]:
    """Four branches, one of which averages without counting pads."""
    x = b.act(b.conv(b.input(1, 3, 15, 17), 6), act)
    branches = [
        b.conv(x, 3, 1),
        b.conv(b.act(b.conv(x, 4, 1), act), 4),
        b.conv(b.act(b.conv(x, 2, 1), act), 3, 5),
        b.conv(b.pool(x, 3, 1, "avg", 1), 2, 1),
    ]
    return [b.softmax(b.linear(b.act(b.concat(*branches), act), 5))]


def alexnet(b: Builder, act: str) -> list[Value]:
    """Normalization across channels, convolutions of two groups, and wide layers at the end."""
    x = b.act(b.conv(b.input(1, 3, 20, 20), 8, 5, 2), act)
    data = {"alpha": 0.3, "beta": 0.75, "local-size": 5, "region": "across"}
    x = b.layer("Norm", [x], F.local_response_norm(x.torch, 5, 0.3), attributes=data)
    x = b.pool(b.act(b.conv(x, 8, group=2), act))
    x = b.act(b.linear(x, 12), "relu")
    return [b.softmax(b.linear(x, 5))]


def excitation(b: Builder, act: str) -> list[Value]:
    """The mean of each channel decides on its factor."""
    x = b.act(b.conv(b.input(1, 3, 10, 12), 8), act)
    gate = b.act(b.conv(b.act(b.conv(b.mean(x), 2, 1), act), 8, 1), "sigmoid")
    return [b.conv(b.mul(x, gate), 3)]


def age_gender(b: Builder, act: str) -> list[Value]:
    """A trunk with two heads: a number, and two classes."""
    x = b.pool(b.act(b.conv(b.input(1, 3, 20, 20), 6), act), 3, 2)
    x = b.act(b.conv(x, 8), act)
    return [b.power(b.mean(b.conv(x, 1, 1)), 0.01, 0.3), b.softmax(b.mean(b.conv(x, 2, 1)))]


def landmarks(b: Builder, act: str) -> list[Value]:
    """Five points of a face, between 0 and 1."""
    x = b.input(1, 3, 16, 16)
    for channels in (6, 8):
        x = b.pool(b.act(b.scale(b.conv(x, channels)), "prelu"))
    return [b.act(b.linear(b.act(b.linear(x, 12), "relu"), 10), "sigmoid")]


def speech(b: Builder, act: str) -> list[Value]:
    """Wide layers over spliced frames, and logarithms of probabilities, as of Kaldi."""
    frames = b.input(5, 10)
    before, middle, after = b.slices(frames, 3, 4, 3)
    x = b.concat(middle, after, before)
    for _ in range(2):
        x = b.scale(b.act(b.linear(x, 12), "sigmoid" if act == "prelu" else act))
    logits = b.linear(x, 6)
    return [b.layer("LogSoftmax", [logits], logits.torch.log_softmax(1), attributes={"axis": 1})]


def words(b: Builder, act: str) -> list[Value]:
    """Rows of a table chosen by numbers, their mean, and classes."""
    array = b.rng.integers(0, 9, (1, 7)).astype(np.int32)
    b.given["words"] = array
    numbers = Value(b.ir.input(1, 7, name="words", precision="I32"), torch.tensor(array))
    table = b.const(b.weights(9, 6))
    rows = b.layer(
        "Gather", [table, numbers], table.torch[numbers.torch.long()], attributes={"axis": 0}
    )
    mean = rows.torch.mean(1)
    x = b.layer(
        "ReduceMean", [rows, b.const(np.int32([1]))], mean, attributes={"keep_dims": "False"}
    )
    return [b.softmax(b.linear(b.act(b.linear(x, 8), "tanh"), 4))]


def attention(b: Builder, act: str) -> list[Value]:
    """Scaled products of queries and keys weigh the values, in two heads."""
    x = b.input(1, 6, 8)
    flat = b.reshape(x, 6, 8)

    def heads(order: tuple[int, ...]) -> Value:
        return b.permute(b.reshape(b.linear(flat, 8), 1, 6, 2, 4), *order)

    q, k, v = heads((0, 2, 1, 3)), heads((0, 2, 1, 3)), heads((0, 2, 1, 3))
    data = {"transpose_a": 0, "transpose_b": 1, "alpha": 0.5, "beta": 0}
    scores = b.layer("Gemm", [q, k], 0.5 * q.torch @ k.torch.mT, attributes=data)
    weights = b.softmax(scores, 3)
    data = {"transpose_a": 0, "transpose_b": 0}
    mixed = b.layer("Gemm", [weights, v], weights.torch @ v.torch, attributes=data)
    return [b.add(b.reshape(b.permute(mixed, 0, 2, 1, 3), 1, 6, 8), x)]


def gates(b: Builder, act: str) -> list[Value]:
    """Three steps of a GRU cell, unrolled, and a decision."""
    state = b.input(2, 5, name="state")
    w, bias = b.weights(15, 9), b.weights(15)
    numbers = [b.stored(a).numpy() for a in (w, bias)]
    for step in range(3):
        x = b.input(2, 4, name=f"x{step}")
        known = oracles.gru(
            x.torch.numpy(), state.torch.numpy(), *numbers, linear_before_reset=False
        )
        state = b.layer(
            "GRUCell",
            [x, state],
            torch.tensor(known).float(),
            attributes={"hidden_size": 5},
            blobs={"weights": w, "biases": bias},
        )
    return [b.softmax(b.linear(state, 3))]


def quantized(b: Builder, act: str) -> list[Value]:
    """Activations of 256 levels, as files of the post-training tools have them."""
    x = b.input(1, 3, 10, 10)

    def rounded(value: Value, low: float, high: float) -> Value:
        limits = [b.const(np.float32([v])) for v in (low, high, low, high)]
        step = (high - low) / 255
        result = ((value.torch.clamp(low, high) - low) / step).round() * step + low
        return b.layer("FakeQuantize", [value, *limits], result, attributes={"levels": 256})

    x = b.act(b.conv(rounded(x, -2.0, 2.0), 6), "relu")
    return [b.conv(rounded(x, 0.0, 4.0), 3)]


def retina(b: Builder, act: str) -> list[Value]:
    """Classes, boxes and points of a face detector, each as rows of all scales."""
    x = b.act(b.conv(b.input(1, 3, 24, 24), 6, stride=2), act)
    levels = [x, b.act(b.conv(x, 8, stride=2), act)]
    found = []
    for width in (2, 4, 10):
        rows = [
            b.reshape(b.permute(b.conv(v, 2 * width, 1), 0, 2, 3, 1), 1, -1, width) for v in levels
        ]
        found.append(b.concat(*rows))
    return [b.softmax(found[0], 2), *found[1:]]


OTHERS = (
    *(yolo, yolo_v2, ssd, text, squeezenet, mobilenet, shufflenet, resnet, densenet, inception),
    *(alexnet, excitation, age_gender, landmarks, speech, words, attention, gates, quantized),
    retina,
)
MODELS: tuple[Callable[[Builder, str], list[Value]], ...] = (*DECODERS, *OTHERS)
VARIANTS = (
    (2, "FP32", "relu"),
    (4, "FP16", "leaky"),
    (5, "FP32", "prelu"),
    (6, "FP32", "elu"),
    (7, "FP16", "relu6"),
)
EARLY = (*set(DECODERS) - set(LATE), yolo, yolo_v2, ssd, squeezenet, mobilenet, resnet, densenet)
"""Models whose layers version 2 has, in a known spelling."""


def _variants(place: int) -> list[tuple[int, str, str]]:
    """Two variants of a model, which are those of others, too."""
    return [VARIANTS[(place + turn) % len(VARIANTS)] for turn in (0, 2)]


NETWORKS = [
    (model, version if version > 2 or model in EARLY else 3, precision, act)
    for place, model in enumerate(MODELS)
    for version, precision, act in _variants(place)
]
