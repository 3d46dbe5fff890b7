"""Bare layers, as printed in the documents: without net, version and weights."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import deconv_ir

from .bare import OneDNNLayer, OpenVINOLayer, onednn_layers, openvino_layers
from .faults import meet
from .runtimes import F16, F32, assert_close, bounds, infer, run

pytestmark = pytest.mark.peers

_LAYERS = openvino_layers(150, first=10_000)


@pytest.mark.parametrize("layer", _LAYERS, ids=str)
def test_openvino_gives_the_same(layer: OpenVINOLayer, tmp_path: Path) -> None:
    """OpenVINO reads the same layer text inside a network.

    If it has a known fault, the oracle is used instead.
    """
    inputs = layer.inputs()
    actual = deconv_ir.load(layer.save(tmp_path), semantics="openvino", warn=False).run(inputs)
    (output,) = actual.values()
    if layer.fault is not None:
        meet(layer.fault, "avoided")
        expected = layer.expected("openvino")
    else:
        expected = run(layer.save_network(tmp_path), inputs)[0]
    assert_close(output, expected, F32, str(layer))


@pytest.mark.parametrize("layer", _LAYERS, ids=str)
def test_the_documents_pads_are_the_default(layer: OpenVINOLayer, tmp_path: Path) -> None:
    """S0 to S2, 'Detailed description', by the oracle."""
    model = deconv_ir.load(layer.save(tmp_path), warn=False)
    (output,) = model.run(layer.inputs()).values()
    assert_close(output, layer.expected("spec"), F32, str(layer))
    assert output.shape == layer.expected("spec").shape


@pytest.mark.parametrize("layer", _LAYERS[:60], ids=str)
def test_inferred_shape_is_openvinos(layer: OpenVINOLayer, tmp_path: Path) -> None:
    """The values of an output_shape that is fed are unknown to both."""
    (shape,) = deconv_ir.load(layer.save(tmp_path), warn=False).infer_shapes().values()
    assert bounds(shape) == infer(layer.save_network(tmp_path))


@pytest.mark.parametrize(
    "layer",
    onednn_layers("ConvTranspose", 120, 11_000)
    + onednn_layers("ConvolutionBackwardData", 120, 12_000),
    ids=str,
)
def test_onednn_layers_follow_their_documents(layer: OneDNNLayer, tmp_path: Path) -> None:
    """S3 'Detailed description' and S4 'General': torch computes them, as no peer reads them."""
    model = deconv_ir.load(layer.save(tmp_path), warn=False)
    (shape,) = model.infer_shapes().values()
    (output,) = model.run(layer.inputs()).values()
    expected = layer.expected()
    assert output.dtype == layer.inputs()[0].dtype
    assert_close(output, expected, F32 if layer.dtype == "float32" else F16, str(layer))
    if layer.kind == "ConvTranspose" or layer.shape_from == "attribute":
        assert shape == expected.shape


def test_the_layers_cover_what_they_are_meant_to() -> None:
    """If the generator no longer drew some feature, the tests would silently become weaker."""
    text = "".join(layer.text() for layer in _LAYERS)
    for part in ("SAME_UPPER", "same_lower", "Valid", '"EXPLICIT"', " , ", "Group"):
        assert part in text, part
    problems = [layer.problem for layer in _LAYERS]
    assert {len(p.extents) for p in problems} == {1, 2, 3}
    reach = [max(np.array(p.pads_begin) - (np.array(p.kernel) - 1) * p.dilations) for p in problems]
    assert max(reach) > 0, "no pad is larger than its kernel"
    assert any(o >= s for p in problems for o, s in zip(p.output_padding, p.strides, strict=True))
    assert any(p.filters == p.outputs == 1 < p.groups for p in problems), "no depthwise"
    assert any(
        y > f for p in problems for y, f in zip(p.output_shape or (), p.natural, strict=False)
    )
