"""Bugs in operations that mutated IRs found, each in a minimal example."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support import IR, deconvolution_ir

import deconv_ir
from deconv_ir.kernels import pack_convolution, pack_deconvolution

ONES = {"strides": "1,1", "dilations": "1,1", "pads_begin": "0,0", "pads_end": "0,0"}


def test_output_shape_in_four_bits(tmp_path: Path) -> None:
    ir = IR()
    x = ir.parameter("x", "1,1,2,2")
    w = ir.const(np.ones((1, 1, 1, 1), np.float32))
    wanted = ir.raw_const(b"\x22", "i4", (2,))
    ir.result(ir.layer("ConvolutionBackpropData", [x, w, wanted], ONES, names="y"))
    data = np.arange(4, dtype=np.float32).reshape(1, 1, 2, 2)
    found = deconv_ir.load(ir.save(tmp_path)).run([data])["y"]
    np.testing.assert_array_equal(found, data)


def test_fewer_sizes_than_axes(tmp_path: Path) -> None:
    ir = IR()
    x = ir.parameter("x", "1,2,3,4")
    sizes = ir.const(np.array([5], np.int64))
    attributes = {"mode": "nearest", "shape_calculation_mode": "sizes"}
    ir.result(ir.layer("Interpolate", [x, sizes], attributes, version="opset11"))
    with pytest.raises(deconv_ir.ShapeError, match="there are 4 axes, but 1 sizes"):
        deconv_ir.load(ir.save(tmp_path))


def test_a_range_of_no_type(tmp_path: Path) -> None:
    ir = IR()
    ends = [ir.const(np.array(n, np.int64)) for n in (0, 3, 1)]
    ir.result(ir.layer("Range", ends, {"output_type": "dynamic"}, version="opset4"))
    words = "'output_type' must be an element type"
    with pytest.raises(deconv_ir.AttributeValueError, match=words):
        deconv_ir.load(ir.save(tmp_path))


FAR = 2**63 - 1
"""A sum of it and anything else is beyond 64 bits."""


@pytest.mark.parametrize("element_type", ["f32", "f16"])
def test_pads_at_the_edge_of_64_bits(element_type: str, tmp_path: Path) -> None:
    """The compiled kernel once read and wrote out of bounds."""
    dtype = {"f32": np.float32, "f16": np.float16}[element_type]
    ir = IR()
    x = ir.parameter("x", "1,1,3", element_type)
    w = ir.const(np.ones((1, 1, 2), dtype))
    wide = {"strides": "2", "dilations": "1", "pads_begin": str(FAR), "pads_end": "1"}
    shape = {"dst_shape": "1,1,7", "weights_format": "OIX", "data_format": "NCX"}
    ir.result(ir.layer("ConvolutionBackwardData", [x, w], wide | shape, version="", names="y"))
    model = deconv_ir.load(ir.save(tmp_path), warn=False)
    found = model.run([np.ones((1, 1, 3), dtype)])["y"]
    np.testing.assert_array_equal(found, np.zeros((1, 1, 7), dtype))


@pytest.mark.parametrize("pad", [-FAR, -(2**40), -100, 100, 2**40, FAR])
@pytest.mark.parametrize("kernel", [pack_deconvolution, pack_convolution])
def test_kernels_far_from_the_data(kernel: type, pad: int) -> None:
    made = kernel(np.ones((4, 4, 3, 3), np.float32), strides=(2, 1), dilations=(1, 2))
    data = np.ones((1, 4, 5, 5), np.float32)
    for pads in ((pad, 0), (0, pad), (pad, pad)):
        assert not made.run(data, pads, (6, 6)).any()


@pytest.mark.parametrize(
    ("kind", "version", "inputs", "attributes", "words"),
    [
        ("Split", "opset1", ["6", [0]], {"num_splits": "4294967296"}, "parts are not supported"),
        (
            "OneHot",
            "opset1",
            [[0, 1, 2], [4], [1, 2], [0]],
            {"axis": "0"},
            "on_value must have one",
        ),
        ("Eye", "opset9", [[3], [4], []], {"output_type": "f32"}, "must have one element"),
        ("Einsum", "opset7", ["1,16"], {"equation": "ii->"}, "label 'i' is 1 and 16"),
        (
            "ScatterElementsUpdate",
            "opset3",
            ["4,5,6", "2,2", "2,2", [1]],
            {},
            "indices must have rank 3",
        ),
        (
            "ScatterElementsUpdate",
            "opset3",
            ["4,5", "6,2", "6,2", [1]],
            {},
            "reach beyond axis 0",
        ),
        ("DFT", "opset7", ["3,4,2", [0, 1], [-1, -7]], {}, "signal_size must be positive"),
        ("DFT", "opset7", ["3,4,2", [0, 1], [-1, 0]], {}, "signal_size must be positive"),
        (
            "Convolution",
            "opset1",
            ["1,2,5,6", "3,2,0,3"],
            ONES,
            "kernel extents must be positive",
        ),
        (
            "ScaledDotProductAttention",
            "opset13",
            ["2,5,8", "2,6,8", "2,6,7", "5,6", "4"],
            {"causal": "false"},
            "scale must have one element",
        ),
    ],
)
def test_shapes_that_fit_no_operation(
    kind: str,
    version: str,
    inputs: list[str | list[int]],
    attributes: dict[str, str],
    words: str,
    tmp_path: Path,
) -> None:
    """The error is raised when the model is loaded, and does not come from within NumPy."""
    ir = IR()
    sources = []
    for i, given in enumerate(inputs):
        whole = kind == "ScatterElementsUpdate" and i == 1
        if isinstance(given, str):
            sources.append(ir.parameter(f"x{i}", given, "i64" if whole else "f32"))
        else:
            sources.append(ir.const(np.array(given, np.int64)))
    ir.result(ir.layer(kind, sources, attributes, version=version))
    with pytest.raises(deconv_ir.ShapeError) as caught:
        deconv_ir.load(ir.save(tmp_path))
    assert words in str(caught.value)


def test_a_window_far_wider_than_the_data(tmp_path: Path) -> None:
    """Time and memory of an LRN are proportional to the data."""
    ir = IR()
    axes = ir.const(np.array([0, 1], np.int64))
    attributes = {"alpha": "1", "beta": "0.5", "bias": "1", "size": str(FAR)}
    ir.result(ir.layer("LRN", [ir.parameter("x", "2,3"), axes], attributes, names="y"))
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    np.testing.assert_allclose(deconv_ir.load(ir.save(tmp_path)).run([x])["y"], x, rtol=1e-6)


@pytest.mark.parametrize("kind", ["Parameter", "Result"])
def test_a_boundary_of_an_unknown_version(kind: str, tmp_path: Path) -> None:
    path = deconvolution_ir(attributes=ONES).save(tmp_path)
    text = path.read_text()
    path.write_text(text.replace(f'type="{kind}" version="opset1"', f'type="{kind}" version="9"'))
    with pytest.raises(deconv_ir.UnsupportedError, match=f"operation {kind} .version 9."):
        deconv_ir.load(path)


@pytest.mark.parametrize("length", [2.0, np.nan, np.inf, -1.0, 4.0])
def test_lengths_that_are_floats(length: float, tmp_path: Path) -> None:
    ir = IR()
    x, lengths = ir.parameter("x", "1,3"), ir.parameter("lengths", "1")
    attributes = {"batch_axis": "0", "seq_axis": "1"}
    ir.result(ir.layer("ReverseSequence", [x, lengths], attributes, names="y"))
    model = deconv_ir.load(ir.save(tmp_path))
    given = [np.array([[1, 2, 3]], np.float32), np.array([length], np.float32)]
    if length == 2:
        np.testing.assert_array_equal(model.run(given)["y"], [[2, 1, 3]])
        return
    with pytest.raises(deconv_ir.InputError, match=r"seq_lengths\[0\] is "):
        model.run(given)
