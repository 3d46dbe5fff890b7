"""DetectionOutput against loops over boxes; whole SSD heads as Model Optimizer wrote them."""

from __future__ import annotations

import itertools
import math
from pathlib import Path

import numpy as np
import pytest
from operation_forms import make

import deconv_ir
from deconv_ir.errors import ShapeError
from deconv_ir.operations import Context

CORNER, CENTER = "caffe.PriorBoxParameter.CORNER", "caffe.PriorBoxParameter.CENTER_SIZE"


def decoded(prior, variance, logit, center: bool, clip: bool) -> list[float]:
    """Decode one box, as in "SSD: Single Shot MultiBox Detector", section 2.2."""
    moved = [v * x for v, x in zip(variance, logit, strict=True)]
    if center:
        width, height = prior[2] - prior[0], prior[3] - prior[1]
        x = (prior[0] + prior[2]) / 2 + moved[0] * width
        y = (prior[1] + prior[3]) / 2 + moved[1] * height
        w, h = math.exp(moved[2]) * width / 2, math.exp(moved[3]) * height / 2
        box = [x - w, y - h, x + w, y + h]
    else:
        box = [p + m for p, m in zip(prior, moved, strict=True)]
    return [min(max(v, 0.0), 1.0) for v in box] if clip else box


def iou(a, b) -> float:
    sides = [min(a[i + 2], b[i + 2]) - max(a[i], b[i]) for i in (0, 1)]
    if min(sides) <= 0:
        return 0.0
    common = sides[0] * sides[1]
    return common / (
        (a[2] - a[0]) * (a[3] - a[1]) + (b[2] - b[0]) * (b[3] - b[1]) - common
    )  # fmt: skip


def detect(arrays, n, classes, **how) -> list[list[float]]:
    """Return the rows of an image: the document's steps, box by box."""
    logits, scores, priors, *aux = [a.astype(np.float64) for a in arrays]
    size, first = (4, 0) if how["normalized"] else (5, 1)
    rows = priors[n if len(priors) > 1 else 0]
    count = rows.shape[1] // size
    used = count
    boxes: dict[tuple[int, int], list[float]] = {}
    for k in range(count):
        if not how["normalized"] and rows[0][k * size] == -1:
            used = k
            break
    score = scores[n].reshape(count, classes).copy()
    shared = how["share_location"]
    for k, label in itertools.product(range(used), range(classes)):
        if aux and aux[0][n][2 * k + 1] < how["objectness_score"]:
            score[k, label] = float(label == how["background_label_id"])
        prior = rows[0][k * size + first : (k + 1) * size].tolist()
        if not how["normalized"]:
            prior = [v / s for v, s in zip(prior, [how["width"], how["height"]] * 2, strict=True)]
        variance = [1.0] * 4 if len(rows) == 1 else rows[1][4 * k : 4 * k + 4].tolist()
        at = 4 * (k if shared else k * classes + label)
        for stage in (*aux[1:], logits):
            logit = stage[n][at : at + 4].tolist()
            prior = decoded(
                prior, variance, logit, how["code_type"] == CENTER, how["clip_before_nms"]
            )
        boxes[k, label] = prior
    candidates: dict[int, list[tuple[float, int]]] = {label: [] for label in range(classes)}
    if how["decrease_label_id"]:
        best = []
        for k in range(used):
            value, label = max((score[k, c], -c) for c in range(1, classes))
            if value >= how["confidence_threshold"]:
                best.append((-value, k, -label))
        for value, k, label in sorted(best)[: how["top_k"] if how["top_k"] >= 0 else None]:
            candidates[label].append((value, k))
    else:
        for label in set(range(classes)) - {how["background_label_id"]}:
            found = sorted(
                (-score[k, label], k)
                for k in range(used)
                if score[k, label] > how["confidence_threshold"]
            )
            candidates[label] = found[: how["top_k"] if how["top_k"] >= 0 else None]
    kept = []
    for label, found in candidates.items():
        mine: list[int] = []
        for value, k in found:
            if all(iou(boxes[k, label], boxes[o, label]) <= how["nms_threshold"] for o in mine):
                mine.append(k)
                kept.append((value, k, label))
    if 0 <= how["keep_top_k"] < len(kept):
        kept = sorted(kept)[: how["keep_top_k"]]
    kept.sort(key=lambda row: row[2])
    result = []
    for value, k, label in kept:
        box = boxes[k, label]
        if how["clip_after_nms"]:
            box = [min(max(v, 0.0), 1.0) for v in box]
        result.append([n, label - how["decrease_label_id"], -value, *box])
    return result


NAMES = (
    "share_location", "variance_encoded_in_target", "clip_before_nms", "clip_after_nms",
    "decrease_label_id", "normalized", "center", "cascade", "batched", "bounded",
)  # fmt: skip


@pytest.mark.parametrize("version", [1, 8])
@pytest.mark.parametrize("seed", range(24))
def test_against_loops(seed: int, version: int) -> None:
    """Every pair of values of two flags occurs among the seeds (checked once below)."""
    rng = np.random.default_rng(seed)
    how = dict(zip(NAMES, map(bool, rng.integers(0, 2, len(NAMES))), strict=True))
    images, count, classes = 2, 9, 3
    batches = images if how["batched"] or how["cascade"] else 1
    size = np.array([1.0, 1.0] if how["normalized"] else [40.0, 20.0])
    low = rng.uniform(-0.1, 0.6, (batches, count, 2))
    high = low + rng.uniform(0.2, 0.6, low.shape)
    priors = np.concatenate([low * size, high * size], -1)
    if not how["normalized"]:
        number = np.where(np.arange(count) >= count - seed % 3, -1.0, 0.0)
        priors = np.concatenate([np.tile(number[:, None], (batches, 1, 1)), priors], -1)
    rows = priors.reshape(batches, 1, -1)
    if not how["variance_encoded_in_target"]:
        rows = np.concatenate([rows, rng.uniform(0.05, 0.3, rows.shape)], 1)
    length = count * 4 * (1 if how["share_location"] else classes)
    arrays = [
        rng.normal(0, 0.3, (images, length)),
        rng.uniform(0, 1, (images, count * classes)),
        rows,
    ]
    if how["cascade"]:
        arrays += [rng.uniform(0, 1, (images, count * 2)), rng.normal(0, 0.2, (images, length))]
        if not how["normalized"]:
            size[:] = 1
    arrays = [a.astype(np.float32) for a in arrays]
    how |= {
        "code_type": CENTER if how["center"] else CORNER,
        "keep_top_k": 4 if how["bounded"] else -1,
        "top_k": 5 if seed % 2 else -1,
        "background_label_id": 0 if how["decrease_label_id"] else (-1, 0, 1)[seed % 3],
        "nms_threshold": 0.4,
        "confidence_threshold": 0.3,
        "objectness_score": 0.35 if how["cascade"] else 0.0,
        "width": int(size[0]),
        "height": int(size[1]),
    }
    names = {"width": "input_width", "height": "input_height"}
    written = {names.get(n, n): v for n, v in how.items() if n not in NAMES[6:]}
    if version == 1:
        written["num_classes"] = classes
    (found,) = make(f"DetectionOutput-{version}", **written).execute(arrays, Context())
    expected = [row for n in range(images) for row in detect(arrays, n, classes, **how)]
    total = images * (
        4 if how["bounded"] else (how["top_k"] if how["top_k"] > 0 else count) * classes
    )
    assert found.shape == (1, 1, total, 7)
    assert 0 < len(expected) < total or how["bounded"]
    table = np.zeros((total, 7))
    table[: len(expected)] = expected
    if len(expected) < total:
        table[len(expected), 0] = -1  # DetectionOutput-1: "means end of output"
    np.testing.assert_allclose(found[0, 0], table, rtol=1e-5, atol=1e-6)


def test_seeds_have_every_pair_of_flags() -> None:
    flags = [np.random.default_rng(seed).integers(0, 2, len(NAMES)) for seed in range(24)]
    for a, b in itertools.combinations(range(len(NAMES)), 2):
        assert len({(int(f[a]), int(f[b])) for f in flags}) == 4


V1 = {"num_classes": 2, "keep_top_k": 200, "nms_threshold": 0.45, "normalized": True}


@pytest.mark.parametrize(
    ("inputs", "attributes", "shape"),
    [
        # The example of DetectionOutput-1.
        (("f32[1,5376]", "f32[1,2688]", "f32[1,2,5376]"), V1, "[1,1,200,7]"),
        (("f32[?,5376]", "f32[4,2688]", "f32[1,2,5376]"), V1, "[1,1,800,7]"),
        (("f32[2..3,?]", "f32[...]", "f32[...]"), V1, "[1,1,400..600,7]"),
        (("f32[1,?]", "f32[1,?]", "f32[1,2,8..17]"), V1 | {"keep_top_k": -1}, "[1,1,4..8,7]"),
        (
            ("f32[3,?]", "f32[3,?]", "f32[...]"),
            V1 | {"keep_top_k": -1, "top_k": 5},
            "[1,1,30,7]",
        ),
    ],
)
def test_shape(infer, inputs, attributes, shape: str) -> None:
    assert infer("DetectionOutput", *inputs, **attributes) == shape


@pytest.mark.parametrize(
    ("inputs", "more", "message"),
    [
        (("f32[1,8]", "f32[1,5]", "f32[1,2,8]"), {}, "axis 1 of class_preds must be a multiple of"),
        (("f32[1,8]", "f32[1,4]", "f32[1,2,9]"), {}, "axis 2 of proposals must be a multiple of 4"),
        (("f32[1,8]", "f32[1,4]", "f32[1,1,8]"), {}, "axis 1 of proposals must be 2"),
        (("f32[1,8]", "f32[2,4]", "f32[1,2,8]"), {}, "axis 0 of class_preds must be 1"),
        (("f32[2,8]", "f32[2,4]", "f32[3,2,8]"), {}, "axis 0 of proposals must be 1 or 2"),
        (("f32[1,8]", "f32[1,6]", "f32[1,2,8]"), {}, "must be 2"),
        (("f32[1,8]", "f16[1,4]", "f32[1,2,8]"), {}, "element types differ"),
        (("f32[1,8]", "f32[1,4]", "f32[1,2,8]"), {"keep_top_k": ""}, "keep_top_k must have 1"),
        (("f32[1,8]", "f32[1,4]", "f32[1,2,8]", "f32[1,4]"), {}, "must be 3 or 5"),
    ],
)
def test_inputs_that_do_not_fit(infer, inputs, more, message: str) -> None:
    with pytest.raises(ShapeError, match=message):
        infer("DetectionOutput", *inputs, **(V1 | more))


def test_scores_that_are_not_numbers_or_equal() -> None:
    """NaN is no detection; of equal scores the first box is the better one."""
    priors = np.array([[[0, 0, 1, 1] * 3, [1.0] * 12]], np.float32)
    scores = np.array([[np.nan, 0.5, 0.5]], np.float32)
    logits = np.array([[0] * 4 + [0.25] * 4 + [0.5] * 4], np.float32)
    plain = make(
        "DetectionOutput-8", keep_top_k=9, nms_threshold=0.1, normalized=True,
        background_label_id=-1,
    )  # fmt: skip
    (found,) = plain.execute([logits, scores, priors], Context())
    assert found[0, 0, :2].tolist() == [[0, 0, 0.5, 0.25, 0.25, 1.25, 1.25], [-1] + [0] * 6]


PORT = '<port id="{0}" precision="{1}">{2}</port>'


def dims(*shape: int) -> str:
    return "".join(f"<dim>{d}</dim>" for d in shape)


def ssd_head(prior: str, boxes: int, precision: str = "FP32") -> str:
    """Return the end of an SSD as Model Optimizer 2020 and 2021 wrote it: IR version 10."""
    count = boxes * 6
    kind = prior.split(" ")[0]
    constant = (
        '<layer id="{0}" name="{1}" type="Const" version="opset1"><data element_type="i64" '
        'offset="{2}" shape="{3}" size="{4}"/><output><port id="0" precision="I64">{5}</port>'
        "</output></layer>"
    )
    layers = [
        *(
            f'<layer id="{i}" name="{name}" type="Parameter" version="opset1"><data '
            f'element_type="f32" shape="1,{length}"/><output>'
            f"{PORT.format(0, precision, dims(1, length))}</output></layer>"
            for i, (name, length) in enumerate((("loc", count * 4), ("conf", count * 3)))
        ),
        constant.format(2, "grid", 0, 2, 16, dims(2)),
        constant.format(3, "image", 16, 2, 16, dims(2)),
        constant.format(4, "axis", 32, 1, 8, dims(1)),
        f'<layer id="5" name="prior" type="{kind}" version="opset1"><data {prior[len(kind) :]}/>'
        f"<input>{PORT.format(0, 'I64', dims(2))}{PORT.format(1, 'I64', dims(2))}</input>"
        f"<output>{PORT.format(2, precision, dims(2, count * 4))}</output></layer>",
        f'<layer id="6" name="rows" type="Unsqueeze" version="opset1"><input>'
        f"{PORT.format(0, precision, dims(2, count * 4))}{PORT.format(1, 'I64', dims(1))}</input>"
        f"<output>{PORT.format(2, precision, dims(1, 2, count * 4))}</output></layer>",
        f'<layer id="7" name="joined" type="Concat" version="opset1"><data axis="2"/><input>'
        f"{PORT.format(0, precision, dims(1, 2, count * 4))}</input><output>"
        f"{PORT.format(1, precision, dims(1, 2, count * 4))}</output></layer>",
        '<layer id="8" name="found" type="DetectionOutput" version="opset1"><data '
        'background_label_id="0" clip_after_nms="0" clip_before_nms="0" '
        f'code_type="{CENTER}" confidence_threshold="0.009999999776482582" decrease_label_id="0" '
        'input_height="1" input_width="1" keep_top_k="50" nms_threshold="0.44999998807907104" '
        'normalized="1" num_classes="3" objectness_score="0" share_location="1" top_k="400" '
        f'variance_encoded_in_target="0"/><input>{PORT.format(0, precision, dims(1, count * 4))}'
        f"{PORT.format(1, precision, dims(1, count * 3))}"
        f"{PORT.format(2, precision, dims(1, 2, count * 4))}</input><output>"
        f"{PORT.format(3, precision, dims(1, 1, 50, 7))}</output></layer>",
        '<layer id="9" name="out" type="Result" version="opset1"><input>'
        f"{PORT.format(0, precision, dims(1, 1, 50, 7))}</input></layer>",
    ]
    edges = [(0, 0, 8, 0), (1, 0, 8, 1), (2, 0, 5, 0), (3, 0, 5, 1), (5, 2, 6, 0), (4, 0, 6, 1)]
    edges += [(6, 2, 7, 0), (7, 1, 8, 2), (8, 3, 9, 0)]
    lines = "".join(
        f'<edge from-layer="{a}" from-port="{b}" to-layer="{c}" to-port="{d}"/>'
        for a, b, c, d in edges
    )
    return (
        '<?xml version="1.0"?>\n<net name="ssd" version="10"><layers>'
        + "\n".join(layers)
        + f"</layers><edges>{lines}</edges></net>"
    )


CLUSTERED = (
    'PriorBoxClustered clip="0" height="8.0,20.0" offset="0.5" step="16.0" step_h="0" step_w="0" '
    'variance="0.1,0.1,0.2,0.2" width="12.0,30.0"'
)
PRIOR = (
    'PriorBox aspect_ratio="2.0" clip="1" density="" fixed_ratio="" fixed_size="" flip="1" '
    'max_size="38.46" min_size="16.0" offset="0.5" step="16" variance="0.1,0.1,0.2,0.2"'
)


@pytest.mark.parametrize(
    ("prior", "sizes"),
    [
        (CLUSTERED, [(12, 8), (30, 20)]),
        # PriorBox of Caffe's SSD: a square, the geometric mean, then sqrt(2) wider and higher.
        (
            PRIOR,
            [(16, 16)]
            + [(math.sqrt(16 * 38.46),) * 2]
            + [(16 * math.sqrt(r), 16 / math.sqrt(r)) for r in (2, 0.5)],
        ),
    ],
    ids=["clustered", "prior box"],
)
def test_head_of_model_optimizer(prior: str, sizes, tmp_path: Path) -> None:
    """Priors, Concat and DetectionOutput of a file of version 10, which lints without findings."""
    path = tmp_path / "ssd.xml"
    path.write_text(ssd_head(prior, len(sizes)))
    grid, image = (2, 3), (32, 48)
    (tmp_path / "ssd.bin").write_bytes(np.array([*grid, *image, 0], np.int64).tobytes())
    rng = np.random.default_rng(0)
    count = len(sizes) * 6
    loc = rng.normal(0, 1, (1, count * 4)).astype(np.float32)
    conf = rng.uniform(0, 1, (1, count * 3)).astype(np.float32)
    model = deconv_ir.load(path)
    (found,) = model.run({"loc": loc, "conf": conf}).values()
    boxes = []
    for row, column in itertools.product(range(grid[0]), range(grid[1])):
        x, y = (column + 0.5) * 16, (row + 0.5) * 16
        for width, height in sizes:
            box = [x - width / 2, y - height / 2, x + width / 2, y + height / 2]
            boxes += [v / s for v, s in zip(box, [image[1], image[0]] * 2, strict=True)]
    if 'clip="1"' in prior:
        boxes = [min(max(v, 0), 1) for v in boxes]
    priors = np.array([[boxes, [0.1, 0.1, 0.2, 0.2] * count]])
    how = {
        "normalized": True, "share_location": True, "code_type": CENTER, "keep_top_k": 50,
        "top_k": 400, "nms_threshold": 0.45, "confidence_threshold": 0.01,
        "background_label_id": 0, "clip_after_nms": False, "clip_before_nms": False,
        "decrease_label_id": False, "objectness_score": 0.0,
    }  # fmt: skip
    expected = detect([loc, conf, priors], 0, 3, **how)
    assert 0 < len(expected) < 50
    np.testing.assert_allclose(found[0, 0, : len(expected)], expected, rtol=1e-5, atol=1e-5)
    assert found[0, 0, len(expected) :].tolist() == [
        [-1 if i == 0 else 0] + [0] * 6 for i in range(50 - len(expected))
    ]
    assert [f.code for f in deconv_ir.lint(path)] == []
