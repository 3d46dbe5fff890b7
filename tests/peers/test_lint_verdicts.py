"""Layers that OpenVINO refuses, or on which it fails or crashes, have an error in deconv-lint."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from linter.test_indices import ROWS, Row, of_row
from support import IR

from deconv_ir.findings import Severity
from deconv_ir.linter.engine import check_file
from deconv_ir.linter.options import choose

from .runtimes import ov

pytestmark = pytest.mark.peers

RUNS, READS = 0, 1
"""OpenVINO computes outputs; it reads and compiles, and fails when it runs."""
REFUSES, INVENTS = 2, 3
"""It does not read or compile, or crashes; outputs have elements that no input has."""


def outcome(path: Path) -> int:
    """Read, compile and run a model on ones, in a process of its own: some layers end it."""
    child = os.fork()
    if child == 0:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        code = REFUSES
        try:
            core = ov.Core()
            compiled = core.compile_model(core.read_model(str(path)), "CPU")
            code = READS
            inputs = compiled.inputs
            given = [np.ones(tuple(port.shape), port.element_type.to_dtype()) for port in inputs]
            results = compiled(given)
            invented = any(np.isin(array, (1, 9), invert=True).any() for array in results.values())
            code = INVENTS if invented else RUNS
        finally:
            os._exit(code)
    status = os.waitpid(child, 0)[1]
    return os.waitstatus_to_exitcode(status) if os.WIFEXITED(status) else REFUSES


FAILING = (
    *("GatherElements", "ScatterUpdate", "ScatterNDUpdate", "EmbeddingBagOffsetsSum"),
    *("EmbeddingBagPackedSum", "EmbeddingSegmentsSum"),
)
"""Types of IR511 on which OpenVINO 2026.4 fails; GatherND and ScatterElementsUpdate-3 read and
write outside of their memory, so no test runs them."""


@pytest.mark.parametrize(
    "row",
    [row for row in ROWS if row.type in (*FAILING, "Gather")],
    ids=lambda row: f"{row.type}-{row.version}-{row.wrong}",
)
def test_indices_outside(row: Row, tmp_path: Path) -> None:
    """Gather gives zeros there, which no element of the data is."""
    right, wrong = (of_row(row, indices) for indices in (row.right, row.wrong))
    # Sums of embeddings are other numbers than those of the data.
    assert outcome(right.save(tmp_path)) in ((RUNS, INVENTS) if "Sum" in row.type else (RUNS,))
    assert outcome(wrong.save(tmp_path)) == (INVENTS if row.type == "Gather" else READS)


BOXES = ("1,16", "1,12", "1,2,16")
"""Logits of 4 boxes that 3 classes share, the scores, and the priors with their variances."""


def detection(shapes: tuple[str, ...] = BOXES, version: str = "opset8", **changed: str) -> IR:
    """Build a DetectionOutput; an attribute of "-" is left out."""
    ir = IR()
    inputs = [ir.parameter(f"x{i}", shape) for i, shape in enumerate(shapes)]
    data = {
        "keep_top_k": "10",
        "nms_threshold": "0.5",
        "share_location": "true",
        "variance_encoded_in_target": "false",
        "normalized": "true",
        "code_type": "caffe.PriorBoxParameter.CENTER_SIZE",
    }
    data |= {"num_classes": "3"} if version == "opset1" else {}
    data |= changed
    given = {name: value for name, value in data.items() if value != "-"}
    rows = "10" if changed.get("keep_top_k", "10") == "10" else "12"
    ir.result(
        ir.layer("DetectionOutput", inputs, given, version=version, outputs=(f"1,1,{rows},7",))
    )
    return ir


def priors(kind: str, cells: tuple[int, ...] = (3, 3), **changed: str) -> IR:
    """Build a PriorBox or PriorBoxClustered on an image of 30 by 30."""
    ir = IR()
    sizes = [ir.const(np.array(size)) for size in (cells, (30, 30))]
    data = {"offset": "0.5", "variance": "0.1,0.1,0.2,0.2"}
    data |= {"min_size": "2"} if kind == "PriorBox" else {"width": "2,4", "height": "2,4"}
    given = {name: value for name, value in (data | changed).items() if value != "-"}
    ir.result(ir.layer(kind, sizes, given))
    return ir


CODE = "caffe.PriorBoxParameter."
DETECTORS = [
    ("right", detection(), RUNS),
    ("right, version 1", detection(version="opset1"), RUNS),
    ("no sharing", detection(share_location="false"), REFUSES),
    ("no sharing, with the boxes", detection(("1,48", *BOXES[1:]), share_location="false"), RUNS),
    ("boxes of all classes", detection(("1,48", *BOXES[1:])), REFUSES),
    ("scores first", detection((BOXES[1], BOXES[0], BOXES[2])), REFUSES),
    ("priors second", detection((BOXES[0], BOXES[2], BOXES[1])), REFUSES),
    ("priors first", detection((BOXES[2], BOXES[1], BOXES[0])), REFUSES),
    ("corners", detection(code_type=f"{CODE}CORNER"), RUNS),
    ("a word", detection(code_type="corner"), REFUSES),
    ("another word", detection(code_type=f"{CODE}CORNER_SIZE"), REFUSES),
    ("variance in target", detection(variance_encoded_in_target="true"), REFUSES),
    ("pixels", detection(normalized="false"), REFUSES),
    ("classes", detection(version="opset1", num_classes="4"), REFUSES),
    ("no classes", detection(version="opset1", num_classes="-"), REFUSES),
    ("no keep_top_k", detection(keep_top_k="-"), REFUSES),
    ("scores", detection((BOXES[0], "1,13", BOXES[2])), REFUSES),
    ("boxes", detection(("1,17", *BOXES[1:])), REFUSES),
    ("4 inputs", detection((*BOXES, "1,8")), REFUSES),
    ("5 inputs", detection((*BOXES, "1,8", "1,16")), RUNS),
    ("5 inputs, exchanged", detection((*BOXES, "1,16", "1,8")), REFUSES),
    ("batches", detection(("2,16", *BOXES[1:])), REFUSES),
    ("priors", priors("PriorBox"), RUNS),
    ("cells", priors("PriorBox", (1, 3, 3)), REFUSES),
    ("3 variances", priors("PriorBox", variance="0.1,0.1,0.2"), REFUSES),
    ("5 variances", priors("PriorBox", variance="0.1,0.1,0.2,0.2,0.2"), REFUSES),
    ("density 0", priors("PriorBox", fixed_size="2", density="0"), REFUSES),
    ("clusters", priors("PriorBoxClustered"), RUNS),
    ("3 widths", priors("PriorBoxClustered", width="1,2,3"), REFUSES),
    ("1 height", priors("PriorBoxClustered", height="1"), REFUSES),
    ("no width", priors("PriorBoxClustered", width="-"), REFUSES),
    ("3 variances of clusters", priors("PriorBoxClustered", variance="0.1,0.1,0.2"), REFUSES),
]


@pytest.mark.parametrize(("name", "network", "expected"), DETECTORS, ids=lambda v: str(v)[:40])
def test_detectors(name: str, network: IR, expected: int, tmp_path: Path) -> None:
    path = network.save(tmp_path)
    found = outcome(path)
    assert (RUNS if found == INVENTS else found) == expected
    # The helper declares neither dims nor types at most ports.
    codes = {f.code for f in check_file(path, choose()).findings if f.severity is Severity.ERROR}
    assert bool(codes - {"IR209", "IR210", "IR401", "IR402"}) == (expected == REFUSES)
