"""DetectionOutput and PriorBox that contradict what surrounds them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support import IR

from deconv_ir.linter.engine import check_file
from deconv_ir.linter.options import choose

OPTIONS = choose(select=["IR811"], severity="info")
VARIANCE = "0.1,0.1,0.2,0.2"


def detector(
    names: tuple[str, str] = ("mbox_loc", "mbox_conf"),
    code: str = "CENTER_SIZE",
    variance: str = VARIANCE,
    sizes: tuple[int, int] = (3, 30),
) -> IR:
    """Build an SSD head: four classes, so that logits and scores have equal shapes."""
    ir = IR()
    cells, image = (ir.const(np.array([size, size])) for size in sizes)
    attributes = {"min_size": "2", "offset": "0.5", "variance": variance}
    priors = ir.layer("PriorBox", [cells, image], attributes, name="priors")
    axis = ir.const(np.array(0))
    priors = ir.layer("Unsqueeze", [priors, axis], name="priors_3d")
    count = 4 * sizes[0] * sizes[0]
    first, second = (ir.parameter(name, f"1,{count}") for name in names)
    data = {
        "keep_top_k": "10",
        "nms_threshold": "0.5",
        "code_type": f"caffe.PriorBoxParameter.{code}",
        "normalized": "true",
    }
    ir.result(ir.layer("DetectionOutput", [first, second, priors], data, version="opset8"))
    return ir


@pytest.mark.parametrize(
    ("network", "words"),
    [
        (detector(), ""),
        (detector(names=("a", "b")), ""),
        (detector(names=("conf_box", "box_score")), ""),
        (detector(code="CORNER", variance="0.1"), ""),
        (detector(names=("mbox_conf", "mbox_loc")), "are the inputs exchanged?"),
        (detector(names=("class_softmax", "bbox_deltas")), "are the inputs exchanged?"),
        (detector(code="CORNER"), "code_type is CORNER"),
        (detector(sizes=(30, 3)), "more than the image"),
    ],
)
def test_detector(network: IR, words: str, tmp_path: Path) -> None:
    found = check_file(network.save(tmp_path), OPTIONS).findings
    assert [words in f.message for f in found] == ([True] if words else [])


def selection(kind: str, *, boxes: str = "", **changed: str) -> IR:
    """Build a selection among boxes, whose scores are probabilities of three classes."""
    ir = IR()
    center, size = ir.parameter("center", "1,9,2"), ir.parameter("size", "1,9,2")
    if boxes == "corners":
        ends = [ir.layer(word, [center, size]) for word in ("Subtract", "Add")]
    else:
        ends = [center, size]
    x = ir.layer("Concat", ends, {"axis": "2"})
    scores = ir.layer("SoftMax", [ir.parameter("scores", "1,3,9")], {"axis": "1"}, version="opset8")
    if kind != "NonMaxSuppression":
        data = {"nms_top_k": "9", "keep_top_k": "9", "iou_threshold": "0.5"} | changed
        if kind == "MatrixNms":
            del data["iou_threshold"]
        outs = ("?,6", "?,1", "1")
        y = ir.layer(kind, [x, scores], data, outputs=outs, version="opset8")
    else:
        numbers = {
            "max_output_boxes_per_class": np.array(int(changed.pop("max_output", 9))),
            "iou_threshold": np.array(float(changed.pop("iou_threshold", 0.5)), np.float32),
            "score_threshold": np.array(float(changed.pop("score_threshold", 0.1)), np.float32),
        }
        inputs = [x, scores, *map(ir.const, numbers.values())]
        outs = ("?,3", "?,3", "1")
        data = {"box_encoding": "corner", "sort_result_descending": "true"} | changed
        y = ir.layer(kind, inputs, data, outputs=outs, version="opset9")
    ir.result(y)
    return ir


@pytest.mark.parametrize(
    ("kind", "changed", "words"),
    [
        ("NonMaxSuppression", {}, ""),
        ("NonMaxSuppression", {"iou_threshold": "1.5"}, "no box is suppressed"),
        ("NonMaxSuppression", {"iou_threshold": "-0.5"}, "every overlapping box"),
        ("NonMaxSuppression", {"score_threshold": "1.5"}, "no box is selected"),
        ("NonMaxSuppression", {"max_output": "0"}, "max_output_boxes_per_class is 0"),
        ("NonMaxSuppression", {"boxes": "corners"}, ""),
        ("NonMaxSuppression", {"boxes": "corners", "box_encoding": "center"}, "as corners are"),
        ("NonMaxSuppression", {"box_encoding": "center"}, ""),
        ("MulticlassNms", {}, ""),
        ("MulticlassNms", {"background_class": "3"}, "but there are 3 classes"),
        ("MulticlassNms", {"background_class": "2"}, ""),
        ("MulticlassNms", {"score_threshold": "2"}, "no box is selected"),
        ("MulticlassNms", {"iou_threshold": "5"}, "no box is suppressed"),
        ("MatrixNms", {"nms_top_k": "0"}, "nms_top_k is 0"),
        ("MatrixNms", {"background_class": "-1"}, ""),
    ],
)
def test_selection(kind: str, changed: dict[str, str], words: str, tmp_path: Path) -> None:
    found = check_file(selection(kind, **changed).save(tmp_path), OPTIONS).findings
    assert [words in f.message for f in found] == ([True] if words else [])


@pytest.mark.parametrize(
    ("kind", "attributes", "words"),
    [
        ("PriorBox", {"max_size": "1"}, "max_size 1 is smaller than min_size 2"),
        ("PriorBox", {"max_size": "3"}, ""),
        ("PriorBox", {"step": "-1"}, "step of PriorBox is negative"),
        ("PriorBoxClustered", {"width": "-2", "height": "2"}, "width of PriorBoxClustered"),
        ("PriorBoxClustered", {"width": "2", "height": "2"}, ""),
    ],
)
def test_sizes(kind: str, attributes: dict[str, str], words: str, tmp_path: Path) -> None:
    ir = IR()
    cells, image = (ir.const(np.array([size, size])) for size in (3, 30))
    given = {"offset": "0.5", "variance": VARIANCE} | attributes
    if kind == "PriorBox":
        given["min_size"] = "2"
    ir.result(ir.layer(kind, [cells, image], given))
    found = check_file(ir.save(tmp_path), OPTIONS).findings
    assert [words in f.message for f in found] == ([True] if words else [])
