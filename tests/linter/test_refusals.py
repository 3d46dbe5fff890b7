"""Files that load here and that OpenVINO 2026.4 refuses to read, each tried there by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support import IR

import deconv_ir

CONVOLUTION = {
    "strides": "1,1",
    "dilations": "1,1",
    "pads_begin": "1,1",
    "pads_end": "1,1",
    "auto_pad": "explicit",
}
PATCHES = {"sizes": "3,3", "strides": "2,2", "rates": "1,1", "auto_pad": "valid"}
NMS = {"box_encoding": "corner", "sort_result_descending": "true", "output_type": "i64"}
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
        ("PriorBox", PRIOR, {"offset": "abc"}, "opset8"),
        ("PriorBox", PRIOR, {"step": ""}, "opset8"),
        (
            "DepthToSpace",
            {"mode": "blocks_first", "block_size": "2"},
            {"block_size": None},
            "opset1",
        ),
        ("Convert", {"destination_type": "f32"}, {"destination_type": "fp32"}, "opset1"),
        ("ShapeOf", {"output_type": "i64"}, {"output_type": "I64"}, "opset3"),
        ("SoftMax", {"axis": "1"}, {"axis": "x"}, "opset8"),
        ("RandomUniform", {"alignment": "tensorflow"}, {"alignment": "-1"}, "opset8"),
        ("Gelu", {"approximation_mode": "ERF"}, {"approximation_mode": " ERF"}, "opset7"),
    ],
)
def test_values(
    kind: str,
    attributes: dict[str, str],
    changes: dict[str, str | None],
    version: str,
    tmp_path: Path,
) -> None:
    changed = {k: v for k, v in {**attributes, **changes}.items() if v is not None}
    before = found(kind, attributes, tmp_path, version)
    assert not {"IR303", "IR306", "IR312"} & before
    assert {"IR303", "IR306", "IR312"} & found(kind, changed, tmp_path, version)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (' version="opset1"', ""),
        (' version="opset1"', ' version=""'),
        (' version="opset1"', ' version="extension"'),
        (' name="layer1"', ""),
    ],
)
def test_forms(old: str, new: str, tmp_path: Path) -> None:
    ir = IR()
    ir.result(ir.layer("ReLU", [ir.parameter("x", "1,4")]))
    path = ir.save(tmp_path)
    assert "IR114" not in {f.code for f in deconv_ir.lint(path)}
    head, tail = path.read_text().split('<layer id="1"')
    path.write_text(f'{head}<layer id="1"{tail.replace(old, new, 1)}')
    assert "IR114" in {f.code for f in deconv_ir.lint(path)}


def test_question_mark_is_refused(tmp_path: Path) -> None:
    ir = IR()
    ir.result(ir.layer("ReLU", [ir.parameter("x", "?,4")], outputs=["-1,4"]))
    path = ir.save(tmp_path)
    assert "IR114" not in {f.code for f in deconv_ir.lint(path)}
    path.write_text(path.read_text().replace("<dim>-1</dim>", "<dim>?</dim>"))
    assert "IR114" in {f.code for f in deconv_ir.lint(path)}
