"""Model.preprocess and its options: against NumPy, in the order that OpenVINO documents.

Source: OpenVINO, "Embedding Preprocessing Computation": the channels are reversed first, then the
mean is subtracted, and the result is divided by the scale.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import IR, deconvolution_ir, invoke, invoke_script

import deconv_ir
from deconv_ir import InputError, Model
from deconv_ir.ir.dtypes import F16, U8

RNG = np.random.default_rng(0)
BLOCK = Path(__file__).parents[1] / "samples" / "block" / "block.xml"
ONEDNN = Path(__file__).parents[1] / "samples" / "onednn" / "upsample.json"
MEAN, SCALE = [123.675, 116.28, 103.53], [58.395, 57.12, 57.375]


def network(
    folder: Path,
    *shapes: str,
    element_type: str = "f32",
    layout: str | None = None,
) -> Model:
    """Build y = -x of each input, named x, x1 and so on; a layout is in its rt_info."""
    ir = IR()
    for number, shape in enumerate(shapes):
        x = ir.parameter(f"x{number or ''}", shape, element_type)
        if layout:
            stated = f'<attribute name="layout" version="0" layout="{layout}"/>'
            ir.layers[-1] = ir.layers[-1].replace("</port>", f"<rt_info>{stated}</rt_info></port>")
        ir.result(
            ir.layer(
                "Negative",
                [x],
                outputs=(shape.strip("."),),
                name=f"s{number}",
                precision={"f32": "FP32", "f16": "FP16"}.get(element_type, element_type.upper()),
                names=f"y{number or ''}",
            )
        )
    return deconv_ir.load(ir.save(folder), warn=False)


@pytest.mark.parametrize(
    ("shape", "options", "arrays", "axis"),
    [
        ("1,3,4,5", {"mean": 0.5}, "nchw", 1),
        ("1,3,4,5", {"mean": [0.1, 0.2, 0.3], "scale": 2}, "nchw", 1),
        ("2,3,4,5", {"layout": "nhwc", "mean": MEAN, "scale": SCALE}, "nhwc", 1),
        ("2,3,4,5", {"layout": "NHWC", "reverse_channels": True}, "nhwc", 1),
        (
            "1,3,4,5",
            {"layout": "nhwc", "reverse_channels": True, "mean": MEAN, "scale": SCALE},
            "nhwc",
            1,
        ),
        ("1,3,4,5", {"reverse_channels": True, "mean": MEAN, "scale": SCALE}, "nchw", 1),
        ("1,5,6,3", {"reverse_channels": "x", "mean": MEAN}, "nhwc", 3),  # the guess
        ("1,5,6,3", {"layout": "nhwc->nchw", "mean": MEAN}, "nchw", 3),
        ("1,5,6,3", {"layout": "nhwc", "mean": MEAN}, "nhwc", 3),
        ("3,4,5", {"layout": "chw->hwc", "scale": SCALE}, "hwc", 0),
        ("4,3", {"layout": "nc", "mean": MEAN}, "nc", 1),
        ("1,3,2,4,5", {"layout": "ndhwc", "reverse_channels": True, "scale": SCALE}, "ndhwc", 1),
        ("3", {"scale": 4.0}, None, None),
        ("?,?,?,?", {"layout": "nhwc", "mean": MEAN}, "nhwc", 1),  # 3 means are 3 channels
        ("?,?,?,?", {"reverse_channels": True}, "nchw", 1),
        ("?,3,4,?", {"layout": "nhwc", "element_type": "u8", "mean": MEAN}, "nhwc", 1),
        ("1,3,4,5", {"element_type": "u8", "reverse_channels": True, "scale": 255}, "nchw", 1),
        ("...", {"mean": 0.5}, None, None),
    ],
)
def test_against_numpy(
    shape: str, options: dict[str, Any], arrays: str | None, axis: int | None, tmp_path: Path
) -> None:
    model = network(tmp_path, shape)
    changed = model.preprocess(**options)
    known = shape.replace("...", "3,4")
    sizes = [
        3 if d == "?" and i == 1 else 2 if d == "?" else int(d)
        for i, d in enumerate(known.split(","))
    ]
    u8 = options.get("element_type") == "u8"
    drawn = RNG.integers(0, 256, sizes) if u8 else RNG.standard_normal(sizes)
    own = drawn.astype(np.uint8 if u8 else np.float32)  # in the layout of the network
    given, expected = own, own.astype(np.float64)
    if arrays is not None:
        assert axis is not None
        # The axes are distinguished by their letters: those of the network by its rank.
        letters = options.get("layout", "").partition("->")[0].lower()
        if "->" not in options.get("layout", ""):
            letters = {4: "nchw", 5: "ncdhw", 2: "nc"}[len(sizes)]
            letters = "nhwc" if axis == 3 else letters
        given = np.ascontiguousarray(own.transpose([letters.index(x) for x in arrays]))
        if options.get("reverse_channels"):
            expected = np.flip(expected, axis)
    ones = [1] * len(sizes)

    def per_channel(numbers: Any) -> np.ndarray:
        if not isinstance(numbers, list):
            return np.asarray(numbers, np.float64)
        assert axis is not None
        ones[axis] = len(numbers)
        return np.reshape(numbers, ones)

    expected = (expected - per_channel(options.get("mean", 0))) / per_channel(
        options.get("scale", 1)
    )
    found = changed.run(given)["y"]
    np.testing.assert_allclose(found, -expected, rtol=2e-5, atol=1e-7)
    assert list(changed.inputs) == ["x"]
    port = changed.inputs["x"]
    assert port.element_type is not None
    assert port.element_type.name == ("u8" if u8 else "f32")
    # The saved file gives the same, and has no new finding.
    deconv_ir.save(changed, tmp_path / "saved.xml")
    loaded = deconv_ir.load(tmp_path / "saved.xml", strict=True)
    np.testing.assert_array_equal(loaded.run(given)["y"], found)
    before = {f.rule for f in deconv_ir.lint(tmp_path / "model.xml")}
    assert {f.rule for f in deconv_ir.lint(tmp_path / "saved.xml")} <= before


def test_the_layout_of_the_file_decides(tmp_path: Path) -> None:
    """[1,3,8,3]: the channels are the last axis because the file says so; it says so afterwards."""
    model = network(tmp_path, "1,3,8,3", layout="[N,H,W,C]")
    x = RNG.standard_normal((1, 3, 8, 3)).astype(np.float32)
    changed = model.preprocess(reverse_channels=True)
    np.testing.assert_allclose(changed.run(x)["y"], -x[..., ::-1], rtol=2e-5)
    changed = model.preprocess(layout="nchw")
    deconv_ir.save(changed, tmp_path / "saved.xml")
    assert 'layout="[N,C,H,W]"' in (tmp_path / "saved.xml").read_text()
    assert "[N,H,W,C]" not in (tmp_path / "saved.xml").read_text()
    again = deconv_ir.load(tmp_path / "saved.xml").preprocess(mean=MEAN)
    found = again.run(x.transpose(0, 3, 1, 2))["y"]
    np.testing.assert_allclose(found, -(x - MEAN), rtol=2e-5, atol=1e-7)


def test_inputs_by_name(tmp_path: Path) -> None:
    """Two images and a vector: channels are reversed where there are three."""
    model = network(tmp_path, "1,3,2,2", "1,4", "1,3,4,4")
    x, x1, x2 = (RNG.standard_normal(p.shape).astype(np.float32) for p in model.inputs.values())
    changed = model.preprocess(
        reverse_channels=True, mean={"x2": MEAN, "x1": 1.0}, layout={"x": "nhwc"}
    )
    found = changed.run([np.moveaxis(x, 1, -1), x1, x2])
    expected = x[:, ::-1], x1 - 1.0, x2[:, ::-1] - np.reshape(MEAN, (3, 1, 1))
    for name, array in zip(("y", "y1", "y2"), expected, strict=True):
        np.testing.assert_allclose(found[name], -array, rtol=2e-5, atol=1e-7)
    one = model.preprocess(reverse_channels=["x2"]).run([x, x1, x2])
    np.testing.assert_allclose(one["y"], -x, rtol=2e-5)
    np.testing.assert_allclose(one["y2"], -(x2[:, ::-1]), rtol=2e-5)


@pytest.mark.parametrize(
    ("reverse", "layout", "reversed_axes"),
    [
        (True, "nhwc->nchw", (1, 3)),  # 3 channels in the layout that is stated
        (True, "nchw->nchw", (1, None)),
        (True, "abcd", (1, None)),
        ({"x": False, "x1": True}, "nhwc->nchw", (None, 3)),
        ({"x": True, "x1": False}, "nchw", (1, None)),
        (("x",), "nchw", (1, None)),
        ({}, "nchw", (None, None)),
    ],
)
def test_channels_are_reversed_in_the_stated_layout(
    reverse: Any, layout: str, reversed_axes: tuple[int | None, ...], tmp_path: Path
) -> None:
    model = network(tmp_path, "1,3,4,5", "1,4,5,3")
    x, x1 = (RNG.standard_normal(p.shape).astype(np.float32) for p in model.inputs.values())
    if layout == "abcd":
        with pytest.raises(InputError, match="the layout of the network is not known"):
            model.preprocess(reverse_channels=reverse, layout={"x1": layout})
        return
    given = np.moveaxis(x1, 3, 1) if layout == "nhwc->nchw" else x1
    found = model.preprocess(reverse_channels=reverse, layout={"x1": layout}).run([x, given])
    for name, array, axis in zip(("y", "y1"), (x, x1), reversed_axes, strict=True):
        expected = array if axis is None else np.flip(array, axis)
        np.testing.assert_array_equal(found[name], -expected)


@pytest.mark.parametrize("element_type", ["f16", "f32"])
def test_openvino_has_no_f16_inputs_in_version_10(element_type: str, tmp_path: Path) -> None:
    """Its reader makes them f32, those of preprocessing too."""
    ir = IR(version=10)
    x = ir.parameter("x", "1,3,2,2", element_type)
    ir.result(ir.layer("Negative", [x], precision={"f16": "FP16", "f32": "FP32"}[element_type]))
    path = ir.save(tmp_path)
    model = deconv_ir.load(path, semantics="openvino", warn=False)
    with pytest.raises(InputError, match="'x' cannot be f16: OpenVINO reads f16 inputs of IR vers"):
        model.preprocess(element_type="f16")
    assert model.preprocess(element_type="u8").inputs["x"].element_type is U8
    spec = deconv_ir.load(path, warn=False).preprocess(element_type="f16")
    assert spec.inputs["x"].element_type is F16


def test_f16_and_a_single_layer(tmp_path: Path) -> None:
    model = network(tmp_path, "1,3,2,2", element_type="f16")
    x = RNG.integers(0, 256, (1, 2, 2, 3), np.uint8)
    changed = model.preprocess(layout="nhwc", element_type="u8", mean=128, scale=[64, 32, 16])
    expected = (x.transpose(0, 3, 1, 2) - 128.0) / np.reshape([64, 32, 16], (3, 1, 1))
    np.testing.assert_allclose(changed.run(x)["y"], -expected, rtol=2e-3)
    path = BLOCK.parents[1] / "documents" / "convolution_backprop_data_1.xml"
    layer = deconv_ir.load(path, warn=False)
    first = next(iter(layer.inputs))
    changed = layer.preprocess(scale={first: 2.0})
    deconv_ir.save(changed, tmp_path / "layer.xml")
    loaded = deconv_ir.load(tmp_path / "layer.xml", warn=False)
    arrays = [np.ones(p.shape, np.float32) for p in layer.inputs.values()]
    for before, after in zip(layer.run(arrays).values(), loaded.run(arrays).values(), strict=True):
        np.testing.assert_allclose(after, before / 2, rtol=1e-6)


@pytest.mark.parametrize("declared", ['<port id="0"/>', '<port id="0" precision="FP16"/>'])
def test_inputs_whose_ports_say_little_or_wrong(declared: str, tmp_path: Path) -> None:
    """The attributes of the Parameter count."""
    network(tmp_path, "1,3,2,2")
    path = tmp_path / "model.xml"
    path.write_text(
        re.sub("(?s)(?<=<output>).*?(?=</output>)", declared, path.read_text(), count=1)
    )
    changed = deconv_ir.load(path, warn=False).preprocess(mean=MEAN, element_type="u8")
    deconv_ir.save(changed, tmp_path / "saved.xml")
    x = RNG.integers(0, 256, (1, 3, 2, 2), np.uint8)
    found = deconv_ir.load(tmp_path / "saved.xml", warn=False).run(x)["y"]
    np.testing.assert_allclose(found, np.reshape(MEAN, (3, 1, 1)) - x, rtol=1e-5)


def test_an_input_that_nothing_uses(tmp_path: Path) -> None:
    """A file may leave out its port."""
    ir = IR()
    x = ir.parameter("x", "1,3,2,2")
    ir.layers.append(
        '<layer id="1" name="unused" type="Parameter" version="opset1">'
        '<data shape="1,3,2,2" element_type="f32"/></layer>\n'
    )
    ir.result(x)
    model = deconv_ir.load(ir.save(tmp_path), warn=False)
    changed = model.preprocess(layout={"unused": "nhwc"}, mean={"unused": MEAN})
    deconv_ir.save(changed, tmp_path / "saved.xml")
    loaded = deconv_ir.load(tmp_path / "saved.xml", warn=False)
    assert loaded.inputs["unused"].shape == (1, 2, 2, 3)


@pytest.mark.parametrize(
    ("shapes", "element_type", "options", "text"),
    [
        (["1,3,2,2"], "f32", {"mean": {"z": 1.0}}, "no input 'z'"),
        (["1,3,2,2"], "f32", {"mean": [1, 2]}, "mean has 2 values, axis 1 of [1,3,2,2] has 3"),
        (["1,3,2,2"], "f32", {"scale": [1, 0, 1]}, "scale must be finite numbers other than 0"),
        (["1,3,2,2"], "f32", {"mean": float("nan")}, "mean must be finite numbers"),
        (["1,3,2,2"], "f16", {"mean": 1e6}, "mean 1e+06 becomes inf in f16"),
        (["1,3,2,2"], "f16", {"scale": 1e-9}, "scale 1e-09 becomes 0 in f16"),
        (["1,3,2,2"], "f32", {"mean": []}, "mean: expected a number, or one for each channel"),
        (["1,3,2,2"], "f32", {"mean": "1"}, "mean: expected a number"),
        (["1,3,2,2"], "f32", {"element_type": "u9"}, "element_type: expected an element type"),
        (["1,3,2,2"], "f32", {"element_type": "u4"}, "u4 has no preprocessing"),
        (["1,4,2,2"], "f32", {"reverse_channels": True}, "reversing channels needs 3 channels"),
        (["1,8,8,8"], "f32", {"mean": [1, 2]}, "the layout nhwc->nhwc states that"),
        (["3,2,2"], "f32", {"reverse_channels": True}, "a layout such as chw->hwc"),
        (["3,2,2"], "f32", {"layout": "nhwc"}, "has 4 axes, the input [3,2,2] has rank 3"),
        (["1,3,2,2"], "f32", {"layout": "nchw->nhwd"}, "'nhwd' of the arrays have other letters"),
        (["1,3,2,2"], "f32", {"layout": "nhwq"}, "the layout of the network is not known"),
        (["1,3,2,2"], "f32", {"layout": "nhhc"}, "invalid layout 'nhhc'"),
        (["1,3,2,2"], "f32", {"layout": "nchw->"}, "invalid layout ''"),
        (["1,3,2,2"], "f32", {"layout": "nabd->nabd", "mean": MEAN}, "has no channels 'c'"),
        (["..."], "f32", {"reverse_channels": True}, "dynamic rank"),
        (["1,3,2,2"], "i32", {"mean": 1}, "input 'x' is i32: mean needs a floating-point input"),
        (["2", "2"], "f32", {"mean": 1}, "2 inputs: mean must be a mapping by name"),
        (["2", "2"], "f32", {"reverse_channels": True}, "no input has 3 channels"),
        (["1,3,2,2"], "f32", {"reverse_channels": 2}, "expected a boolean or names of inputs"),
    ],
)
def test_mistakes(
    shapes: list[str], element_type: str, options: dict[str, Any], text: str, tmp_path: Path
) -> None:
    model = network(tmp_path, *shapes, element_type=element_type)
    with pytest.raises(InputError) as caught:
        model.preprocess(**options)
    assert text in str(caught.value)
    assert str(caught.value).startswith(str(tmp_path / "model.xml"))
    assert "\n" not in str(caught.value)


def test_a_onednn_graph_file_is_refused() -> None:
    with pytest.raises(InputError, match="oneDNN Graph file"):
        deconv_ir.load(ONEDNN).preprocess(scale=2.0)


OPTIONS = ("--layout", "nhwc", "--reverse-channels", "--mean", "1,2,3", "--scale", "x=4")


def test_options_of_the_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run, info, plan, saved file and deconv-diff see one network."""
    monkeypatch.chdir(tmp_path)
    model = deconv_ir.load(deconvolution_ir("1,3,6,8", (3, 2, 3, 3)).save(tmp_path))
    x = RNG.integers(0, 256, (1, 6, 8, 3), np.uint8)
    np.save("x.npy", x)
    own = (x[..., ::-1].transpose(0, 3, 1, 2) - np.reshape([1.0, 2, 3], (3, 1, 1))) / 4
    expected = model.run(own.astype(np.float32))["y"]
    done = invoke("model.xml", "--input", "x.npy", *OPTIONS, "--input-type", "u8")
    assert done.exit_code == 0, done.stderr
    np.testing.assert_allclose(np.load("y.npy"), expected, rtol=1e-4, atol=1e-3)
    info = invoke("model.xml", *OPTIONS, "--info", "--json")
    assert json.loads(info.stdout)["inputs"][0]["shape"] == [1, 6, 8, 3]
    plan = invoke("model.xml", *OPTIONS, "--explain-plan")
    assert "x/reverse_channels" in plan.stdout
    larger = ("--shape", "1,5,7,3")  # of the arrays
    assert invoke("model.xml", *OPTIONS, *larger, "--save-xml", "saved.xml").exit_code == 0
    assert deconv_ir.load("saved.xml").inputs["x"].shape == (1, 5, 7, 3)
    before = {f.code for f in deconv_ir.lint("model.xml")}
    assert {f.code for f in deconv_ir.lint("saved.xml")} <= before
    for second in ("model.xml", "saved.xml"):
        more = OPTIONS if second == "model.xml" else (*OPTIONS, *larger)
        done = invoke_script("diff", "model.xml", second, *more, "--random-inputs", "0")
        assert (done.exit_code == 0) == (second == "model.xml"), done.stdout + done.stderr
    done = invoke_script("show", "model.xml", *OPTIONS, "--output", "page.html")
    assert done.exit_code == 0, done.stderr
    assert "x/reverse_channels" in Path("page.html").read_text()


@pytest.mark.parametrize(
    ("shape", "given", "option"),
    [("1,3,4,5", (1, 4, 5, 3), "nhwc"), ("1,4,5,3", (1, 3, 4, 5), "nhwc->nchw")],
)
def test_exchanged_axes_name_the_option(
    shape: str, given: tuple[int, ...], option: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    network(tmp_path, shape)
    np.save("x.npy", np.zeros(given, np.float32))
    done = invoke("model.xml", "--input", "x.npy")
    assert done.exit_code == 2
    assert f"--layout {option}" in done.stderr.replace("'", "")
    done = invoke("model.xml", "--input", "x.npy", "--layout", option)
    assert done.exit_code == 0, done.stderr


@pytest.mark.parametrize(
    ("command", "arguments", "text"),
    [
        ("run", ["--mean", "1,a"], "--mean 1,a: expected a number, or one for each channel"),
        ("run", ["--mean", "z=1"], "--mean z=1: the model has no input 'z'; it has 'x'"),
        ("run", ["--mean", "1", "--mean", "x=2"], "--mean 'x' is given twice"),
        ("run", ["--scale", "0"], "scale must be finite numbers other than 0, found 0"),
        ("run", ["--input-type", "u9"], "--input-type u9: invalid element type"),
        ("show", ["--layout", "nhw"], "error: model.xml:4: layer 'x' (Parameter, id 0): input 'x'"),
        ("diff", ["model.xml", "--mean", "1"], "--mean compares tensors"),
    ],
)
def test_mistakes_in_options(
    command: str, arguments: list[str], text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    deconvolution_ir("1,3,6,8", (3, 2, 3, 3)).save(tmp_path)
    given = () if command == "diff" else ("--random-inputs", "0")
    done = invoke_script(command, "model.xml", *arguments, *given)
    assert done.exit_code == 2
    assert text in done.stderr
    assert done.stderr.count("\n") == 1
    assert sorted(p.name for p in tmp_path.iterdir()) == ["model.bin", "model.xml"]


@pytest.mark.parametrize(
    "changes",
    [
        ("--shape", "2,3,6,8"),
        ("--set", "filter=f.npy"),
        ("--layout", "nhwc"),
        ("--reverse-channels",),
        ("--mean", "1"),
        ("--scale", "2"),
        ("--input-type", "u8"),
    ],
)
def test_a_onednn_graph_file_is_not_written_without_changes(
    changes: tuple[str, ...], tmp_path: Path
) -> None:
    path = deconvolution_ir("1,3,6,8", (3, 2, 3, 3)).save(tmp_path)
    done = invoke(path, *changes, "--save-onednn", tmp_path / "g.json")
    assert done.exit_code == 2
    assert f"{changes[0]} cannot be combined with --save-onednn" in done.stderr
    assert sorted(p.name for p in tmp_path.iterdir()) == ["model.bin", "model.xml"]


def test_files_are_computed_again_with_other_numbers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """--resume, and the worker of a cluster: the preprocessing counts."""
    monkeypatch.chdir(tmp_path)
    network(tmp_path, "1,3,2,2")
    Path("in").mkdir()
    np.save("in/a.npy", np.full((1, 3, 2, 2), 3, np.float32))
    arguments = ("model.xml", "--input", "in", "--output", "out", "--resume")
    for mean, again in (("1", True), ("1", False), ("2", True)):
        done = invoke(*arguments, "--mean", mean)
        assert done.exit_code == 0, done.stderr
        assert ("1 done" in done.stderr) == again
        np.testing.assert_allclose(np.load("out/a.npy"), int(mean) - 3.0, 1e-5)
    assert "other options were given (--mean)" in done.stderr


@pytest.mark.parametrize("options", [["--scale", "2"], ["--shape", "1,8,32,32"], []])
def test_a_cluster_gets_the_changed_model(options: list[str]) -> None:
    """Workers read an unchanged model from its file, and get a changed one as a whole."""
    from deconv_cli.run.cluster import send_model
    from deconv_cli.run.command import command
    from deconv_cli.run.models import open_model
    from deconv_cli.run.request import RunRequest

    class Client:
        def submit(self, kind: type, given: object, **_: object) -> object:
            return given

    request = RunRequest(**command.make_context("deconv-run", [str(BLOCK), *options]).params)
    model = open_model(request)
    assert (send_model(Client(), model, request) is model) == bool(options)


def test_channels_that_the_network_does_not_take(tmp_path: Path) -> None:
    """Three means give an input of unknown channels three; the filters have four."""
    path = deconvolution_ir("1,?,5,5", (4, 3, 3, 3)).save(tmp_path)
    with pytest.raises(deconv_ir.ShapeError, match=r"'up' \(ConvolutionBackpropData"):
        deconv_ir.load(path).preprocess(mean=MEAN)
    assert deconv_ir.load(path).preprocess(mean=[1, 2, 3, 4]).inputs["x"].shape == (1, 4, 5, 5)
