"""IRs in the forms of OpenVINO's own tools are clean; those of other versions end the check.

The fragments are of the kinds that Model Optimizer (2020 to 2023), POT, NNCF and ovc write: the
attributes are the `backend_attrs` of each operation in OpenVINO's repository
(tools/mo/openvino/tools/mo/ops), the sections those of back/ie_ir_ver_2/emitter.py.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support import IR

import deconv_ir
from deconv_ir.linter.engine import check_bytes
from deconv_ir.linter.options import choose

SECTIONS = {
    "Model Optimizer 2020": """
        <meta_data>
            <MO_version value="2020.4.0-359-21e092122f4-releases/2020/4"/>
            <cli_parameters>
                <data_type value="FP32"/>
                <unset unset_cli_parameters="batch, counts"/>
            </cli_parameters>
        </meta_data>
        """,
    "Post-training Optimization Tool": """
        <statistics><layer><name>x</name><min>0.0</min><max>1.0</max></layer></statistics>
        <quantization_parameters>
            <config>{ 'compression': { 'algorithms': [] } }</config>
            <version value="2021.4"/>
            <cli_params value="{}"/>
        </quantization_parameters>
        """,
    "NNCF and ovc": """
        <rt_info>
            <Runtime_version value="2023.0.0"/>
            <conversion_parameters><input_model value="DIR"/></conversion_parameters>
            <nncf><quantization><preset value="mixed"/></quantization></nncf>
            <model_info><labels value="a b"/></model_info>
        </rt_info>
        """,
    "API of the runtime": "<framework_meta><batch value='1'/></framework_meta>",
}


def codes(ir: IR, folder: Path) -> set[str]:
    return {f.code for f in deconv_ir.lint(ir.save(folder))} - {"IR401"}  # no dims are declared


@pytest.mark.parametrize("sections", SECTIONS.values(), ids=SECTIONS)
@pytest.mark.parametrize("version", [10, 11])
def test_sections(sections: str, version: int) -> None:
    text = f"""<net name="n" version="{version}"><layers>
        <layer id="0" name="x" type="Parameter" version="opset1">
            <data element_type="f32" shape="4"/>
            <output><port id="0" precision="FP32"><dim>4</dim></port></output>
        </layer>
        <layer id="1" name="y" type="Result" version="opset1">
            <input><port id="0" precision="FP32"><dim>4</dim></port></input>
        </layer></layers>
        <edges><edge from-layer="0" from-port="0" to-layer="1" to-port="0"/></edges>"""
    assert check_bytes(f"{text}{sections}</net>".encode(), "m.xml", choose()).findings == []
    wrong = f"{text}<quantization_parameter/></net>"
    (found,) = check_bytes(wrong.encode(), "m.xml", choose()).findings
    assert (found.code, found.hint) == ("IR106", "did you mean 'quantization_parameters'?")


WINDOW = {"strides": "1,1", "pads_begin": "0,0", "pads_end": "0,0"}
POOLING = {**WINDOW, "kernel": "2,2", "rounding_type": "floor", "auto_pad": "explicit"}


@pytest.mark.parametrize(
    ("kind", "attributes", "filters"),
    [
        ("Convolution", {**WINDOW, "dilations": "1,1", "output_padding": "0,0"}, (3, 4, 1, 1)),
        (
            "GroupConvolution",
            {**WINDOW, "dilations": "1,1", "output_padding": "0, 0"},
            (4, 1, 1, 1, 1),
        ),
        ("MaxPool", {**POOLING, "exclude-pad": "true"}, None),
        ("MaxPool", {**POOLING, "dilations": "1,1", "axis": "0"}, None),
        ("MaxPool", {**POOLING, "index_element_type": "i64"}, None),
        ("AvgPool", {**POOLING, "exclude-pad": "true", "pool-method": "avg"}, None),
        ("ReLU", {"originalLayersNames": "a,b"}, None),
        ("ReLU", {"PrimitivesPriority": "cpu:ref_any", "alt_width": "8"}, None),
    ],
)
def test_attributes(
    kind: str, attributes: dict[str, str], filters: tuple[int, ...] | None, tmp_path: Path
) -> None:
    ir = IR(version=10)
    sources = [ir.parameter("x", "1,4,4,4")]
    if filters is not None:
        sources.append(ir.const(np.ones(filters, np.float32)))
    ir.result(ir.layer(kind, sources, attributes))
    assert codes(ir, tmp_path) == set()


DETECTION = {
    "background_label_id": "0", "clip_after_nms": "0", "clip_before_nms": "0",
    "code_type": "caffe.PriorBoxParameter.CENTER_SIZE", "confidence_threshold": "0.01",
    "eta": "1.0", "height": "0", "height_scale": "0", "input_height": "1", "input_width": "1",
    "interp_mode": "", "keep_top_k": "2", "label_map_file": "", "name_size_file": "",
    "nms_threshold": "0.45", "normalized": "1", "num_classes": "3", "num_test_image": "0",
    "objectness_score": "0", "output_directory": "", "output_format": "",
    "output_name_prefix": "", "pad_mode": "caffe.ResizeParameter.CONSTANT", "pad_value": "",
    "prob": "0", "resize_mode": "caffe.ResizeParameter.WARP", "save_file": "",
    "share_location": "1", "top_k": "4", "variance_encoded_in_target": "0",
    "visualize": "False", "visualize_threshold": "0.6", "width": "0", "width_scale": "0",
}  # fmt: skip


def test_detection_output(tmp_path: Path) -> None:
    """A head of SSD as Model Optimizer converts it from Caffe, 2 priors."""
    ir = IR(version=10)
    inputs = [ir.parameter(n, s) for n, s in (("b", "1,8"), ("c", "1,6"), ("p", "1,2,8"))]
    ir.result(ir.layer("DetectionOutput", inputs, DETECTION))
    assert codes(ir, tmp_path) == set()


@pytest.mark.parametrize(
    ("kind", "attributes", "wrong"),
    [
        ("Convolution", {**WINDOW, "dilations": "1,1"}, {"output_padding": "1,0"}),
        ("Convolution", {**WINDOW, "dilations": "1,1"}, {"stride": "2,2"}),
        ("MaxPool", POOLING, {"dilations": "2,2"}),
        ("MaxPool", POOLING, {"pads_beginn": "1,1"}),
    ],
)
def test_values_that_would_matter(
    kind: str, attributes: dict[str, str], wrong: dict[str, str], tmp_path: Path
) -> None:
    ir = IR()
    sources = [ir.parameter("x", "1,4,4,4")]
    if kind == "Convolution":
        sources.append(ir.const(np.ones((3, 4, 1, 1), np.float32)))
    ir.result(ir.layer(kind, sources, attributes | wrong))
    assert codes(ir, tmp_path) == {"IR107"}


OTHER = """<net batch="1" name="n" version="{version}">
    <layers>
        <layer id="0" name="data" precision="FP32" type="Input">
            <output><port id="0"><dim>1</dim><dim>3</dim><dim>8</dim><dim>8</dim></port></output>
        </layer>
        <layer id="1" name="conv" precision="FP32" type="Convolution">
            <data group="1" kernel="3,3" output="64" stride-x="1" pad-x="1"/>
            <input><port id="0"><dim>1</dim><dim>3</dim><dim>8</dim><dim>8</dim></port></input>
            <output><port id="3"><dim>1</dim><dim>64</dim><dim>8</dim><dim>8</dim></port></output>
            <blobs><weights offset="0" size="6912"/><biases offset="6912" size="256"/></blobs>
        </layer>
        <layer id="2" name="pool" type="Pooling"><data odd=""/></layer>
    </layers>
    <edges><edge from-layer="0" from-port="0" to-layer="9" to-port="0"/></edges>
</net>
"""


@pytest.mark.parametrize("version", [1, 8, 9, 12, 70])
@pytest.mark.parametrize("severity", ["warning", "info"])
def test_another_version_ends_the_check(version: int, severity: str) -> None:
    text = OTHER.format(version=version)
    result = check_bytes(text.encode(), "m.xml", choose(severity=severity))
    (found,) = result.findings
    assert (found.code, found.actual, found.line) == ("IR104", version, 1)
    assert result.passed_over == ()


FIXTURES = Path(__file__).parents[1] / "fixtures"


@pytest.mark.parametrize(
    ("name", "was", "now", "lines"),
    [
        ("ir/misc.xml", "", "", []),
        ("drawn/if_with_loop.xml", "", "", []),
        # Within the constant before it, which is in another body: packed no longer.
        ("drawn/if_with_loop.xml", 'offset="13"', 'offset="11"', [192]),
    ],
)
def test_packed_constants(name: str, was: str, now: str, lines: list[int]) -> None:
    """OpenVINO 2026.4 begins a constant where the one before it ends, in a body or not."""
    path = FIXTURES / name
    text = path.read_text().replace(was, now) if was else path.read_text()
    chosen = choose(severity="info", select=["IR505"])
    found = check_bytes(text.encode(), path.name, chosen, path.with_suffix(".bin")).findings
    assert [finding.line for finding in found] == lines
