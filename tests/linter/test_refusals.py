"""Files that load here but that OpenVINO 2026.4 refuses, each checked by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support import IR

import deconv_ir
from deconv_ir.linter.engine import check_bytes
from deconv_ir.linter.options import choose
from deconv_ir.ops.opsets import OF_OPSET_6

CONVOLUTION = {
    "strides": "1,1",
    "dilations": "1,1",
    "pads_begin": "1,1",
    "pads_end": "1,1",
    "auto_pad": "explicit",
}
PATCHES = {"sizes": "3,3", "strides": "2,2", "rates": "1,1", "auto_pad": "valid"}
NMS = {"box_encoding": "corner", "sort_result_descending": "true", "output_type": "i64"}
TOP = {"nms_top_k": "-1", "keep_top_k": "-1", "background_class": "-1", "nms_eta": "1"}
POOLING = {"output_dim": "1", "group_size": "2", "spatial_scale": "0.5", "mode": "average"}
COLUMNS = {"strides": "1,1", "dilations": "1,1", "pads_begin": "0,0", "pads_end": "0,0"}
BINARY = {**COLUMNS, "mode": "xnor-popcount", "pad_value": "0", "auto_pad": "explicit"}
CLUSTERED = {"width": "8,4", "height": "16,4", "offset": "0.5", "step_w": "0"}
RANDOM = {"alignment": "tensorflow", "output_type": "f32"}
PRIOR = {"offset": "0.5", "step": "8", "min_size": "4", "max_size": "8", "aspect_ratio": "2"}


def found(kind: str, attributes: dict[str, str], folder: Path, version: str) -> set[str]:
    ir = IR()
    sources = [ir.parameter("x", "1,4,8,8")]
    if kind == "Convolution":
        sources.append(ir.const(np.ones((2, 4, 3, 3), np.float32)))
    ir.result(ir.layer(kind, sources, attributes, version=version))
    return {finding.code for finding in deconv_ir.lint(ir.save(folder), severity="error")}


@pytest.mark.parametrize(
    ("kind", "attributes", "changes", "version"),
    [
        ("Convolution", CONVOLUTION, {"auto_pad": "notset"}, "opset1"),
        ("Convolution", CONVOLUTION, {"auto_pad": "Valid "}, "opset1"),
        ("ExtractImagePatches", PATCHES, {"strides": "0,2"}, "opset3"),
        ("NonMaxSuppression", NMS, {"box_encoding": "corners"}, "opset9"),
        ("ExtractImagePatches", PATCHES, {"sizes": ""}, "opset3"),
        ("MulticlassNms", TOP, {"nms_eta": "2"}, "opset9"),
        ("MulticlassNms", TOP, {"keep_top_k": "-2"}, "opset9"),
        ("MatrixNms", TOP, {"background_class": "-2"}, "opset8"),
        ("PSROIPooling", POOLING, {"spatial_scale": "0"}, "opset1"),
        ("PSROIPooling", POOLING, {"group_size": None}, "opset1"),
        ("Col2Im", COLUMNS, {"strides": "-1,1"}, "opset15"),
        ("Col2Im", COLUMNS, {"pads_end": None}, "opset15"),
        ("BinaryConvolution", BINARY, {"strides": "1"}, "opset1"),
        ("BinaryConvolution", BINARY, {"dilations": "0,1"}, "opset1"),
        ("PriorBoxClustered", CLUSTERED, {"width": "8"}, "opset1"),
        ("PriorBoxClustered", CLUSTERED, {"step_w": "x"}, "opset1"),
        ("RandomUniform", RANDOM, {"output_type": None}, "opset8"),
        ("Bucketize", {"output_type": "i32"}, {"output_type": None}, "opset3"),
        ("PriorBox", PRIOR, {"offset": "abc"}, "opset8"),
        ("PriorBox", PRIOR, {"step": ""}, "opset8"),
        (
            "DepthToSpace",
            {"mode": "blocks_first", "block_size": "2"},
            {"block_size": None},
            "opset1",
        ),
        ("Convert", {"destination_type": "f32"}, {"destination_type": "fp32"}, "opset1"),
        ("ShapeOf", {"output_type": "i64"}, {"output_type": "INT64"}, "opset3"),
        ("Reshape", {"special_zero": "true"}, {"special_zero": " true"}, "opset1"),
        ("SoftMax", {"axis": "1"}, {"axis": "x"}, "opset8"),
        ("RandomUniform", RANDOM, {"alignment": "-1"}, "opset8"),
        ("Gelu", {"approximation_mode": "ERF"}, {"approximation_mode": " ERF"}, "opset7"),
    ],
)
def test_values_that_openvino_refuses_are_reported(
    kind: str,
    attributes: dict[str, str],
    changes: dict[str, str | None],
    version: str,
    tmp_path: Path,
) -> None:
    changed = {k: v for k, v in {**attributes, **changes}.items() if v is not None}
    before = found(kind, attributes, tmp_path, version)
    reporting = {"IR301", "IR303", "IR306", "IR307", "IR312"}
    assert not reporting & before
    assert reporting & found(kind, changed, tmp_path, version)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (' version="opset1"', ""),
        (' version="opset1"', ' version=""'),
        (' version="opset1"', ' version="extension"'),
        (' version="opset1"', ' version="experimental"'),
        (' version="opset1"', ' version="opset17"'),  # 2026.4 has few of its operations
        (' name="layer1"', ""),
    ],
)
def test_forms_that_openvino_refuses_are_reported(old: str, new: str, tmp_path: Path) -> None:
    ir = IR()
    ir.result(ir.layer("ReLU", [ir.parameter("x", "1,4")]))
    path = ir.save(tmp_path)
    assert "IR114" not in {f.code for f in deconv_ir.lint(path)}
    head, tail = path.read_text().split('<layer id="1"')
    path.write_text(f'{head}<layer id="1"{tail.replace(old, new, 1)}')
    assert "IR114" in {f.code for f in deconv_ir.lint(path)}


@pytest.mark.parametrize(
    ("kind", "version", "precision"),
    [
        *((kind, "experimental", "FP32") for kind in sorted(OF_OPSET_6)),
        ("Proposal", "extension", "FP32"),
        ("StringTensorUnpack", "extension", "U8"),
        ("VocabEncoder", "extension", "I32"),
        ("Identity", "extension", "FP32"),
        ("Identity", "opset16", "U1"),
        ("Identity", "opset16", "bin"),
        ("ErfInv", "opset17", "FP32"),
    ],
)
def test_forms_that_are_read(kind: str, version: str, precision: str, tmp_path: Path) -> None:
    """Compared with OpenVINO in tests/peers/test_refusals.py."""
    ir = IR()
    source = ir.parameter("x", "1,4")
    ir.result(ir.layer(kind, [source], version=version, precision=precision))
    assert not {"IR110", "IR114", "IR214"} & {f.code for f in deconv_ir.lint(ir.save(tmp_path))}


def test_an_empty_value_that_nothing_reads() -> None:
    """Model Optimizer writes it to each DetectionOutput; the document has no pad_value."""
    text = """<net name="n" version="10"><layers>
        <layer id="0" name="d" type="DetectionOutput" version="opset1">
        <data num_classes="2" nms_threshold="0.5" keep_top_k="2" pad_value=""/></layer>
        </layers></net>"""
    findings = check_bytes(text.encode(), "m.xml", choose()).findings
    assert not {"IR107", "IR312"} & {f.code for f in findings}


def test_question_mark_is_refused(tmp_path: Path) -> None:
    ir = IR()
    ir.result(ir.layer("ReLU", [ir.parameter("x", "?,4")], outputs=["-1,4"]))
    path = ir.save(tmp_path)
    assert "IR114" not in {f.code for f in deconv_ir.lint(path)}
    path.write_text(path.read_text().replace("<dim>-1</dim>", "<dim>?</dim>"))
    assert "IR114" in {f.code for f in deconv_ir.lint(path)}


@pytest.mark.parametrize(("name", "is_refused"), [("state", False), ("states", True)])
def test_assign_without_read_value(name: str, is_refused: bool, tmp_path: Path) -> None:
    ir = IR()
    start = ir.const(np.zeros((1, 4), np.float32))
    state = {"variable_type": "f32", "variable_shape": "1,4"}
    read = ir.layer("ReadValue", [start], {"variable_id": "state", **state}, version="opset6")
    ir.layer("Assign", [read], {"variable_id": name}, version="opset6")
    ir.result(read)
    codes = {finding.code for finding in deconv_ir.lint(ir.save(tmp_path), severity="error")}
    assert ("IR312" in codes) is is_refused
