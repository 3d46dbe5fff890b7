"""Preprocessing and other constants: as OpenVINO computes them, from the saved files too."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import deconv_ir
from deconv_ir.ir.dtypes import parse_element_type

ov = pytest.importorskip(
    "openvino", reason="OpenVINO cannot be imported: install the `peers` extra"
)
from openvino import opset13 as ops  # noqa: E402 - after the skip
from openvino.preprocess import PrePostProcessor  # noqa: E402

pytestmark = pytest.mark.peers

RNG = np.random.default_rng(0)
MEAN, SCALE = [123.675, 116.28, 103.53], [58.395, 57.12, 57.375]
IN_F32 = {"INFERENCE_PRECISION_HINT": "f32"}


def save_network(path: Path, shape: list[int], channels: int) -> None:
    """Save a convolution 1x1 of three channels on one axis of an input of this shape."""
    x = ops.parameter(shape, ov.Type.f32, name="x")
    x.output(0).set_names({"x"})
    first = x if channels == 1 else ops.transpose(x, np.array([0, 3, 1, 2]))
    filters = ops.constant(RNG.standard_normal((4, 3, 1, 1)).astype(np.float32))
    y = ops.convolution(first, filters, [1, 1], [0, 0], [0, 0], [1, 1])
    ov.save_model(ov.Model([ops.result(y)], [x], "net"), path, False)


@pytest.mark.parametrize("element_type", ["u8", "f32"])
@pytest.mark.parametrize(
    ("shape", "axis", "own", "arrays", "reverse", "mean", "scale"),
    [
        ([1, 3, 6, 8], 1, "NCHW", "NHWC", True, MEAN, SCALE),
        ([1, 3, 6, 8], 1, "NCHW", "NCHW", True, MEAN, []),
        ([2, 3, -1, -1], 1, "NCHW", "NHWC", False, [127.5], [127.5]),
        ([1, 6, 8, 3], 3, "NHWC", "NHWC", True, [], SCALE),
        ([1, 6, 8, 3], 3, "NHWC", "NCHW", True, MEAN, SCALE),
    ],
)
def test_as_prepostprocessor(
    shape: list[int],
    axis: int,
    own: str,
    arrays: str,
    reverse: bool,
    mean: list[float],
    scale: list[float],
    element_type: str,
    tmp_path: Path,
) -> None:
    """In the order of mo: layout, channels, mean, scale."""
    save_network(tmp_path / "net.xml", shape, axis)
    theirs = PrePostProcessor(ov.Core().read_model(tmp_path / "net.xml"))
    theirs.input().tensor().set_layout(ov.Layout(arrays))
    theirs.input().tensor().set_element_type(getattr(ov.Type, element_type))
    theirs.input().model().set_layout(ov.Layout(own))
    steps = theirs.input().preprocess().convert_element_type(ov.Type.f32)
    steps = steps.convert_layout(ov.Layout(own))
    steps = steps.reverse_channels() if reverse else steps
    steps = steps.mean(mean if len(mean) > 1 else mean[0]) if mean else steps
    steps = steps.scale(scale if len(scale) > 1 else scale[0]) if scale else steps
    expected_model = theirs.build()
    mine = deconv_ir.load(tmp_path / "net.xml").preprocess(
        layout=arrays.lower(),
        reverse_channels=reverse,
        mean=mean or None,
        scale=scale or None,
        element_type=element_type,
    )
    deconv_ir.save(mine, tmp_path / "saved.xml")
    sizes = {"N": shape[0], "C": 3, "H": 6, "W": 8}
    drawn = RNG.integers(0, 256, [sizes[letter] for letter in arrays])
    x = drawn.astype(np.dtype("u1") if element_type == "u8" else np.float32)
    results = [
        ov.compile_model(model, "CPU", IN_F32)(x)[0]
        for model in (expected_model, ov.Core().read_model(tmp_path / "saved.xml"))
    ]
    (found,) = mine.run(x).values()
    for result in results:
        np.testing.assert_allclose(found, result, rtol=1e-4, atol=1e-4 * np.abs(result).max())
    # The file that OpenVINO saves has the layout of its input, which needs no option.
    ov.save_model(expected_model, tmp_path / "theirs.xml", False)
    loaded = deconv_ir.load(tmp_path / "theirs.xml", warn=False)
    again = loaded.preprocess(reverse_channels=True).run(x)
    (reversed_,) = again.values()
    (given,) = loaded.run(np.flip(x, arrays.index("C"))).values()
    np.testing.assert_array_equal(reversed_, given)


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("f32", [1, 2, 3], [0.5, -1, 7]),
        ("f16", [1, 2, 3], [0.5, -1, 7]),
        ("i4", [1, 2, 3], [-8, 7, -1]),
        ("u4", [1, 2, 3], [15, 8, 0]),
        ("u2", [1, 2, 3], [3, 0, 2]),
        ("u8", [1, 2, 3], [255, 0, 2]),
        ("i64", [1, 2, 3], [-5, 0, 2]),
        ("u1", [1, 0, 1], [0, 1, 1]),
        ("nf4", [1, 0, 1], [-1, 1, 0]),
    ],
)
def test_constants_of_the_saved_file(
    name: str, before: list[int], after: list[Any], tmp_path: Path
) -> None:
    """OpenVINO reads the bytes of the new constant as its values."""
    stored = np.array(before, np.float32 if name == "nf4" else np.int64)
    constant = ops.constant(stored, getattr(ov.Type, name))
    constant.set_friendly_name("c")
    x = ops.parameter([3], ov.Type.f32, name="x")
    y = ops.add(x, ops.convert(constant, "f32"))
    ov.save_model(ov.Model([ops.result(y)], [x], "net"), tmp_path / "net.xml", False)
    model = deconv_ir.load(tmp_path / "net.xml", warn=False)
    array = np.array(after, parse_element_type(name).numpy())
    changed = model.replace_constants({"c": array})
    deconv_ir.save(changed, tmp_path / "saved.xml")
    zeros = np.zeros(3, np.float32)
    theirs = ov.compile_model(tmp_path / "saved.xml", "CPU", IN_F32)(zeros)[0]
    np.testing.assert_array_equal(theirs, np.array(after, np.float32))
    (mine,) = changed.run(zeros).values()
    np.testing.assert_array_equal(mine, theirs)
    assert deconv_ir.lint(tmp_path / "saved.xml") == deconv_ir.lint(tmp_path / "net.xml")


def test_a_constant_in_a_body(tmp_path: Path) -> None:
    """A TensorIterator of OpenVINO, whose body adds a constant to each row."""
    x = ops.parameter([2, 1, 3], ov.Type.f32, name="x")
    row = ops.parameter([1, 1, 3], ov.Type.f32, name="row")
    one = ops.constant(np.ones((1, 1, 1), np.float32))
    one.set_friendly_name("one")
    body = ov.Model([ops.result(ops.add(row, one))], [row], "body")
    loop = ops.tensor_iterator()
    loop.set_friendly_name("rows")
    loop.set_body(body)
    loop.set_sliced_input(row, x.output(0), 0, 1, 1, -1, 0)
    rows = loop.get_concatenated_slices(body.results[0].output(0), 0, 1, 1, -1, 0)
    ov.save_model(ov.Model([ops.result(rows)], [x], "net"), tmp_path / "net.xml", False)
    model = deconv_ir.load(tmp_path / "net.xml", warn=False)
    changed = model.replace_constants({"rows/body/one": np.full((1, 1, 1), 5, np.float32)})
    deconv_ir.save(changed, tmp_path / "saved.xml")
    zeros = np.zeros((2, 1, 3), np.float32)
    theirs = ov.compile_model(tmp_path / "saved.xml", "CPU", IN_F32)(zeros)[0]
    np.testing.assert_array_equal(theirs, np.full((2, 1, 3), 5))
