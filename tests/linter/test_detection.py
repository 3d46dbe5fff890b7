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
