"""How old files are read: spellings, blobs, faults with their lines, and hostile files."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from old_ir import OldIR
from support import invoke_script

import deconv_ir
from deconv_ir.formats.openvino_legacy import OPENVINO_LEGACY
from deconv_ir.formats.registry import find_format
from deconv_ir.linter.engine import check_file
from deconv_ir.linter.options import choose

W = np.arange(24, dtype=np.float32).reshape(2, 3, 2, 2) / 8
X = np.arange(27, dtype=np.float32).reshape(1, 3, 3, 3) - 13


def network(version: int = 7) -> OldIR:
    """A convolution and an activation."""
    ir = OldIR(version)
    x = ir.input(1, 3, 3, 3)
    attributes = {"kernel": "2,2", "output": 2}
    if version == 2:
        attributes = {"kernel-x": 2, "kernel-y": 2, "output": 2}
    made = ir.layer(
        "Convolution",
        [x],
        (1, 2, 2, 2),
        attributes=attributes,
        blobs={"weights": W, "biases": np.float32([1, -1])},
        name="conv",
    )
    ir.layer("ReLU", [made], (1, 2, 2, 2), name="act")
    return ir


def expected() -> np.ndarray:
    """The convolution of `X`, in NumPy."""
    out = np.zeros((1, 2, 2, 2), np.float32)
    for o, i, j in np.ndindex(2, 2, 2):
        out[0, o, i, j] = (X[0, :, i : i + 2, j : j + 2] * W[o]).sum() + (1, -1)[o]
    return np.maximum(out, 0)


@pytest.mark.parametrize("version", range(2, 8))
def test_each_version_is_read(version: int, tmp_path: Path) -> None:
    model = deconv_ir.load(network(version).write(tmp_path))
    np.testing.assert_allclose(model.run(X)["act"], expected(), 1e-6)
    assert (list(model.inputs), list(model.outputs)) == (["x"], ["act"])
    assert [layer.type for layer in model.graph.layers if layer.name == "conv"] == ["Add"]


@pytest.mark.parametrize(
    ("text", "is_old"),
    [
        ('<net name="a" version="7">', True),
        ("<?xml version='1.0'?>\n<!-- <net version=\"11\"> --><net batch='1' version='2'>", True),
        ('<!-- <net version="6"> --><net version="11"><layers/></net>', False),
        ('<net version="10" name=" version=\'5\'">', False),
        ('<net ir_version="5" version="11">', False),
        ('<net version="8">', False),
        ("<!-- -->" * 500 + "<net>", False),
    ],
)
@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_recognition(text: str, is_old: bool, encoding: str) -> None:
    found = find_format(text.encode(encoding), "m.xml")
    assert (found is OPENVINO_LEGACY) is is_old


def test_element_of_version_2(tmp_path: Path) -> None:
    """Attributes in <convolution_data>, as files of 2017 and tests of 2018 have them."""
    path = network(2).write(tmp_path)
    text = path.read_text()
    path.write_text(text.replace("<data kernel-x", "<convolution_data kernel-x"))
    np.testing.assert_allclose(deconv_ir.load(path).run(X)["act"], expected(), 1e-6)


def test_crop_data_of_version_2(tmp_path: Path) -> None:
    ir = OldIR(2)
    x = ir.input(1, 3, 3, 3)
    inner = '<crop-data><crop axis="2" offset="1" dim="2"/><crop axis="3" offset="0" dim="1"/>'
    ir.layer("Crop", [x], (1, 3, 2, 1), name="y", inner=inner + "</crop-data>")
    model = deconv_ir.load(ir.write(tmp_path))
    assert (model.run(X)["y"] == X[:, :, 1:3, :1]).all()


def test_images_of_u8_are_computed_as_floats(tmp_path: Path) -> None:
    path = network().write(tmp_path)
    path.write_text(
        path.read_text().replace('precision="FP32" type="Input"', 'precision="U8" type="Input"')
    )
    model = deconv_ir.load(path)
    assert model.inputs["x"].element_type.name == "u8"
    image = (X + 13).astype(np.uint8)
    plain = deconv_ir.load(network().write(tmp_path, "plain"))
    assert (model.run(image)["act"] == plain.run(X + 13)["act"]).all()


@pytest.mark.parametrize(
    ("precision", "kind"),
    [("FP32", "f4"), ("I64", "i8"), ("I64", "i4"), ("I32", "i4"), ("U8", "u1")],
)
def test_precisions_of_blobs(precision: str, kind: str, tmp_path: Path) -> None:
    """A blob may state its precision; those of I64 may hold I32 (Model Optimizer, I64ToI32)."""
    ir = OldIR(7)
    array = np.array([3, 1, 2], kind)
    place = ir.place("custom", array).replace("/>", f' precision="{precision}"/>')
    ir.layer("Const", (), (3,), name="c", precision="", inner=f"<blobs>{place}</blobs>")
    found = deconv_ir.load(ir.write(tmp_path)).run({})["c"]
    assert found.tolist() == [3, 1, 2]


def test_calibration_is_ignored(tmp_path: Path) -> None:
    """An int8 file of version 6: statistics, and attributes of layers."""
    ir = network(6)
    ir.extras = "<statistics><layer><name>conv</name><min>0</min><max>1</max></layer></statistics>"
    path = ir.write(tmp_path)
    path.write_text(path.read_text().replace('output="2"', 'output="2" quantization_level="I8"'))
    np.testing.assert_allclose(deconv_ir.load(path).run(X)["act"], expected(), 1e-6)
    (found,) = check_file(path, choose()).findings
    assert (found.code, found.severity.name) == ("IR106", "WARNING")
    assert "<statistics> is ignored" in found.message


@pytest.mark.parametrize("text", ["<statistics />", "<statistics></statistics>"])
def test_empty_statistics_are_no_calibration(text: str, tmp_path: Path) -> None:
    """The Inference Engine wrote them into networks that were not calibrated."""
    ir = network(6)
    ir.extras = text
    assert not check_file(ir.write(tmp_path), choose()).findings


def test_means_are_subtracted(tmp_path: Path) -> None:
    ir = network(6)
    means = "".join(f'<channel id="{i}"><mean value="{i + 1}"/></channel>' for i in range(3))
    ir.extras = f'<pre-process reference-layer-name="x">{means}</pre-process>'
    model = deconv_ir.load(ir.write(tmp_path))
    moved = X + np.float32([1, 2, 3]).reshape(1, 3, 1, 1)
    np.testing.assert_allclose(model.run(moved)["act"], expected(), 1e-5)


def with_mean_images(precision: str) -> tuple[OldIR, np.ndarray]:
    """Return a network that subtracts an image for each channel, and the images."""
    ir = network(6)
    kind = {"FP16": np.float16, "FP32": np.float32}[precision]
    images = np.arange(3 * 9).reshape(3, 3, 3).astype(kind)
    places = [ir.place("mean", image) for image in images]
    channels = "".join(f'<channel id="{i}">{place}</channel>' for i, place in enumerate(places))
    ir.extras = f'<pre-process mean-precision="{precision}">{channels}</pre-process>'
    return ir, images.astype("f4")


@pytest.mark.parametrize("precision", ["FP16", "FP32"])
def test_mean_images(precision: str, tmp_path: Path) -> None:
    """Images have the type of mean-precision (Inference Engine 2018, ie_format_parser.cpp)."""
    ir, images = with_mean_images(precision)
    path = ir.write(tmp_path)
    model = deconv_ir.load(path)
    deconv_ir.save(model, tmp_path / "new.xml")
    for each in (model, deconv_ir.load(tmp_path / "new.xml")):
        np.testing.assert_allclose(each.run(X + images)["act"], expected(), 1e-4, 1e-5)
    assert not check_file(path, choose()).findings
    path.write_text(path.read_text().replace(f'mean-precision="{precision}"', 'mean-precision="X"'))
    with pytest.raises(deconv_ir.IRError, match="mean-precision of <pre-process> is unknown: 'X'"):
        deconv_ir.load(path)


def test_outputs_are_what_nothing_reads(tmp_path: Path) -> None:
    ir = OldIR(5)
    x = ir.input(1, 4, 2, 2)
    first, _ = ir.layer("Split", [x], (1, 2, 2, 2), (1, 2, 2, 2), attributes={"axis": 1}, name="s")
    ir.layer("ReLU", [first], (1, 2, 2, 2), name="y")
    model = deconv_ir.load(ir.write(tmp_path))
    assert list(model.outputs) == ["s.1", "y"]


WEIGHTS = 'size="96"'
FAULTS = [
    (WEIGHTS, 'size="92"', "blob 'weights' has 92 bytes, but f32[2,3,2,2] takes 96"),
    (WEIGHTS, 'size="-4"', "must be a whole number"),
    ('<weights offset="0"', '<weights offset="9999999999999999"', "past the end"),
    ('<weights offset="0"', '<weights offset="99999999999999999999"', "must be a whole number"),
    ("<weights", "<heights", "blob 'weights' is missing"),
    ('kernel="2,2"', 'kernel="2,x"', "must be numbers separated by commas"),
    ('kernel="2,2"', 'kernel="2,2,2"', "does not fit"),
    ('kernel="2,2"', 'kernel="2,99999999999999999999"', "must be whole numbers"),
    ('kernel="2,2"', 'kernel="0,2"', "at least 1"),
    ('kernel="2,2"', 'strides="1"', "attribute 'kernel-y' is missing"),
    ('output="2"', 'output="2" group="2"', "must divide the 3 input channels"),
    ('output="2"', 'output="2" strides="1"', "must have 2 numbers"),
    ('output="2"', 'output="2" auto_pad="odd"', "must be one of same_upper"),
    ('output="2"', 'outputs="2"', "attribute 'output' is missing"),
    ('type="ReLU"', 'type="Strange"', "1 of 3 layers have types of IR version 7"),
    ('from-layer="1"', 'from-layer="7"', "edge names layer 7"),
    ('to-port="0"/>', 'to-port="8"/>', "edge names input port 8"),
    ('<layer id="2"', '<layer id="1"', "id 1 is already taken"),
    ("<dim>2</dim></port>", "<dim>two</dim></port>", "invalid dim"),
]


@pytest.mark.parametrize(("was", "now", "message"), FAULTS)
def test_faults_name_line_and_layer(was: str, now: str, message: str, tmp_path: Path) -> None:
    path = network().write(tmp_path)
    text = path.read_text()
    assert was in text
    path.write_text(text.replace(was, now, 1))
    with pytest.raises(deconv_ir.DeconvError) as caught:
        deconv_ir.load(path)
    assert message in str(caught.value)
    line = text[: text.index(was)].count("\n") + 1
    if "missing" in message or "past the end" in message:
        line = caught.value.line or 0
        assert line in (9, 10)  # of the layer, or its <data>
    assert caught.value.line == line
    found = [f for f in check_file(path, choose()).findings if f.severity.name == "ERROR"]
    assert found
    assert line in {f.line for f in found} or "past the end" in message


def test_all_types_that_are_missing_are_counted(tmp_path: Path) -> None:
    ir = OldIR(5)
    x = ir.input(1, 4)
    for kind in ("Odd", "Strange", "Strange"):
        x = ir.layer(kind, [x], (1, 4))
    with pytest.raises(deconv_ir.IRError) as caught:
        deconv_ir.load(ir.write(tmp_path))
    text = str(caught.value)
    assert "3 of 4 layers have types of IR version 5" in text
    assert "Strange (2), Odd (1)" in text


HOSTILE = {
    "doctype": ("<net", '<!DOCTYPE net [<!ENTITY a "b">]><net'),
    "entity bomb": (
        "<net",
        '<!DOCTYPE net [<!ENTITY a "aaaa"><!ENTITY b "&a;&a;&a;"><!ENTITY c "&b;&b;&b;">]><net',
    ),
    "cycle": ('from-layer="0" from-port="0"', 'from-layer="2" from-port="1"'),
    "entity": ('name="conv"', 'name="&a;"'),
    "ill-formed": ("</layers>", ""),
    "deep": ("<edges>", "<a>" * 300 + "</a>" * 300 + "<edges>"),
    "rank": ("<dim>3</dim></port>", "<dim>3</dim>" * 70 + "</port>"),
    "overflow": ("<dim>3</dim></port>", f"<dim>{2**62}</dim><dim>{2**62}</dim></port>"),
    "huge": ("<dim>3</dim></port>", "<dim>99999999999999999999999</dim></port>"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files(name: str, tmp_path: Path) -> None:
    was, now = HOSTILE[name]
    path = network().write(tmp_path)
    text = path.read_text()
    assert was in text
    path.write_text(text.replace(was, now, 1))
    with pytest.raises(deconv_ir.DeconvError):
        deconv_ir.load(path)
    assert any(found.severity.name == "ERROR" for found in check_file(path, choose()).findings)


def test_limits(tmp_path: Path) -> None:
    path = network().write(tmp_path)
    for limits in (
        deconv_ir.Limits(layers=2),
        deconv_ir.Limits(tags=9),
        deconv_ir.Limits(xml_bytes=99),
        deconv_ir.Limits(rank=3),
    ):
        with pytest.raises(deconv_ir.IRError, match="limit"):
            deconv_ir.load(path, limits=limits)


def test_a_layer_with_many_inputs_is_read_in_linear_time(tmp_path: Path) -> None:
    """Looked up one by one, 20 000 inputs took minutes."""
    ir = OldIR(7)
    x = ir.input(1, 1)
    ir.layer("Concat", [x] * 6_000, (1, 6_000), attributes={"axis": 1}, name="y")
    model = deconv_ir.load(ir.write(tmp_path))
    assert model.outputs["y"].shape == (1, 6_000)


def test_wrong_dims_are_reported_with_the_old_layer(tmp_path: Path) -> None:
    path = network().write(tmp_path)
    text = path.read_text()
    path.write_text(
        text.replace(
            "<dim>2</dim><dim>2</dim></port>\n</output>\n<blobs>",
            "<dim>5</dim><dim>2</dim></port>\n</output>\n<blobs>",
        )
    )
    (found,) = check_file(path, choose()).findings
    assert (found.line, found.code, found.layer) == (15, "IR401", "'conv' (Convolution, id 1)")
    assert "declared 5, computed 2" in found.message


def test_a_comment_silences_a_finding(tmp_path: Path) -> None:
    path = network().write(tmp_path)
    text = path.read_text().replace('kernel="2,2"', 'kernel="2,x"')
    path.write_text(
        text.replace('<layer id="1"', '<!-- deconv-lint: ignore=IR306 --><layer id="1"')
    )
    assert not [f for f in check_file(path, choose()).findings if f.code == "IR306"]


def test_upgrade(tmp_path: Path) -> None:
    old, new = network(4).write(tmp_path), tmp_path / "new.xml"
    done = invoke_script("run", str(old), "--save-xml", str(new))
    assert done.exit_code == 0, done.output
    assert "note: Convolution: 1 as Convolution + Add" in done.output
    assert 'version="11"' in new.read_text()
    found = deconv_ir.load(new)
    np.testing.assert_allclose(found.run(X)["act"], expected(), 1e-6)
    assert not check_file(new, choose()).findings
    same = invoke_script("diff", str(old), str(new))
    assert same.exit_code == 0
    assert "The structure is equal" in same.output
    # Nothing is overwritten.
    assert invoke_script("run", str(old), "--save-xml", str(new)).exit_code == 2


def test_missing_weights(tmp_path: Path) -> None:
    path = network().write(tmp_path)
    path.with_suffix(".bin").unlink()
    with pytest.raises(deconv_ir.WeightsError, match=r"2 constants, but no old\.bin beside it"):
        deconv_ir.load(path)
    codes = {found.code for found in check_file(path, choose()).findings}
    assert codes == {"IR501"}


def test_other_commands(tmp_path: Path) -> None:
    path = network().write(tmp_path)
    shown = invoke_script("show", str(path), "--output", str(tmp_path / "page.html"))
    assert shown.exit_code == 0, shown.output
    part = tmp_path / "part.xml"
    cut = invoke_script("cut", str(path), "--to", "conv", "--output", str(part))
    assert cut.exit_code == 0, cut.output
    (found,) = deconv_ir.load(part).run(X).values()
    np.testing.assert_allclose(np.maximum(found, 0), expected(), 1e-6)
    info = invoke_script("run", str(path), "--info")
    assert re.search(r"act\s+f32\s+\[1,2,2,2\]", info.output)


def test_other_shapes(tmp_path: Path) -> None:
    model = deconv_ir.load(network().write(tmp_path)).reshape({"x": (2, 3, 5, 4)})
    assert model.outputs["act"].shape == (2, 2, 4, 3)
