"""Each layer of the table, with values of the catalogue or of loops over its formulas (`rows`)."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from old_ir import OldIR

import deconv_ir
from deconv_ir.formats.openvino_legacy import OPENVINO_LEGACY
from deconv_ir.formats.openvino_legacy.table import TABLE
from deconv_ir.linter.engine import check_file
from deconv_ir.linter.options import choose

from .rows import ACTIVATIONS, CONVOLUTIONS, DECONVOLUTIONS, PRODUCTS, RECURRENT, ROWS
from .rows.row import Row, check, identify, network_of, single
from .rows.windows import OLD_WINDOWS

TESTED_ELSEWHERE = {
    *("Input", "Const", "Memory", "TensorIterator"),
}


@pytest.mark.parametrize("row", ROWS, ids=identify)
def test_layer(row: Row, tmp_path: Path) -> None:
    check(row, single(row, tmp_path))


@pytest.mark.parametrize("row", OLD_WINDOWS, ids=identify)
@pytest.mark.parametrize("version", [2, 3])
def test_windows_of_version_2(row: Row, version: int, tmp_path: Path) -> None:
    check(row, single(row, tmp_path, version))


def test_every_layer_of_the_table_is_tested() -> None:
    tested = {row[0].lower() for row in ROWS} | {kind.lower() for kind in TESTED_ELSEWHERE}
    assert {kind.lower() for kind in TABLE} == tested


@pytest.mark.parametrize(
    "row",
    [CONVOLUTIONS[4], DECONVOLUTIONS[2], PRODUCTS[0], ACTIVATIONS[4], RECURRENT[2]],
    ids=identify,
)
def test_blobs_of_f16(row: Row, tmp_path: Path) -> None:
    """They are rounded to f16, and computed in f32 from inputs of f32."""
    found = single(row, tmp_path, precision="FP16")
    for one, other in zip(found, row[4], strict=True):
        assert one.dtype == np.float32
        assert 0 < abs(one - other).max() < 0.05 * max(1, abs(np.asarray(other)).max())


MANY = ",".join(["1"] * 300)
REFUSED = [
    (
        "Resample",
        {"type": "caffe.ResampleParameter.AREA"},
        "no release of the Inference Engine",
    ),
    ("Resample", {"type": "caffe.ResampleParameter.CUBIC", "antialias": 0}, "CUBIC needs two axes"),
    ("Resample", {"type": "sinc"}, "must be LINEAR, CUBIC or NEAREST"),
    ("LSTMSequence", {"direction": "Bidirectional"}, "ran it forward"),
    ("LSTMSequence", {"direction": "Sideways"}, "must be Forward or Backward"),
    ("Proposal", {"for_deformable": 1, "framework": "tensorflow"}, "the anchors of Caffe"),
    ("Proposal", {"for_deformable": 1, "ratio": "0", "scale": "1"}, "must be positive"),
    ("Proposal", {"for_deformable": 1, "ratio": MANY, "scale": MANY}, "more than 65536 anchors"),
]


@pytest.mark.parametrize(("kind", "attributes", "message"), REFUSED)
def test_forms_without_a_meaning_are_refused(
    kind: str, attributes: dict[str, object], message: str, tmp_path: Path
) -> None:
    """docs/legacy.md says why."""
    ir = OldIR(7)
    image = ir.input(1, 4, 8, 8)
    given = attributes | {"feat_stride": 16}
    ir.layer(kind, [image, image], (1, 4, 4, 4), attributes=given, name="it")
    with pytest.raises(deconv_ir.DeconvError, match=message) as caught:
        deconv_ir.load(ir.write(tmp_path))
    assert f"'it' ({kind}, id 1)" in str(caught.value)


def test_memory_keeps_its_value_between_runs(tmp_path: Path) -> None:
    """Catalogue, Memory: a pair of layers with one id, one of which has no output."""
    ir = OldIR(7)
    x = ir.input(1, 3)
    state = ir.layer("Memory", (), (1, 3), attributes={"id": "r_1-2", "index": 1, "size": 2})
    total = ir.layer("Eltwise", [x, state], (1, 3), attributes={"operation": "sum"}, name="total")
    ir.layer("Memory", [total], attributes={"id": "r_1-2", "index": 0, "size": 2})
    ir.layer("ReLU", [total], (1, 3), name="y")
    model = deconv_ir.load(ir.write(tmp_path))
    one = np.ones((1, 3), np.float32)
    kept = deconv_ir.State()
    assert [model.run({"x": one}, state=kept)["y"][0, 0] for _ in range(3)] == [1, 2, 3]
    assert model.run({"x": one})["y"][0, 0] == 1


def test_proposals(tmp_path: Path) -> None:
    """One anchor at each of two places: the better box, then the other (catalogue, Proposal)."""
    ir = OldIR(4)
    scores, deltas = ir.input(1, 2, 1, 2, name="scores"), ir.input(1, 4, 1, 2, name="deltas")
    image = ir.input(1, 3, name="image")
    attributes = {"base_size": 16, "feat_stride": 16, "min_size": 1, "nms_thresh": 0.7}
    attributes |= {"pre_nms_topn": 10, "post_nms_topn": 2, "ratio": "1", "scale": "1.0"}
    ir.layer("Proposal", [scores, deltas, image], (2, 5), attributes=attributes, name="it")
    model = deconv_ir.load(ir.write(tmp_path))
    found = model.run(
        {
            "scores": np.float32([[[[0.9, 0.1]], [[0.1, 0.9]]]]),
            "deltas": np.zeros((1, 4, 1, 2), np.float32),
            "image": np.float32([[64, 64, 1]]),
        }
    )["it"]
    # Faster R-CNN's anchor of 16 pixels, moved by the stride: half of it from its center.
    assert found.tolist() == [[0, 16, 0, 32, 16], [0, 0, 0, 16, 16]]


@pytest.mark.parametrize("row", ROWS, ids=identify)
def test_a_right_layer_has_no_finding(row: Row, tmp_path: Path) -> None:
    """What a conversion adds to a correct file is no finding."""
    ir, _ = network_of(row)
    result = check_file(ir.write(tmp_path), choose())
    assert not result.findings


KINDS = list({row[0]: row for row in ROWS}.values())
DIMS = {"none": "", "empty": "<dim>0</dim>" * 4, "one": "<dim>5</dim>", "six": "<dim>2</dim>" * 6}


@pytest.mark.parametrize("dims", DIMS)
def test_other_dims_than_a_layer_expects(dims: str) -> None:
    """A hostile file ends in errors with lines, if any, for each kind of layers."""
    refused = 0
    for row in KINDS:
        text = network_of(row)[0].xml()
        for count in (1, 0):  # of the first port, and of all
            changed = re.sub(r"(<dim>\d+</dim>)+", DIMS[dims], text, count=count)
            parsed = OPENVINO_LEGACY.read(changed.encode(), "old.xml", deconv_ir.Limits())
            assert all(error.line for error in parsed.errors)
            refused += bool(parsed.errors)
    assert refused > len(KINDS) / 4
