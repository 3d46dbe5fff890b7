"""The examples of the documents, exactly as printed, from samples/documents/.

S0: OpenVINO ConvolutionBackpropData-1, older text; S1: GroupConvolutionBackpropData-1;
S2: ConvolutionBackpropData-1, newer text.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import deconv_ir
from deconv_ir.ir.geometry import PadMode
from deconv_ir.kernels import naive

SAMPLES = Path(__file__).parents[2] / "samples" / "documents"

EXAMPLES = [
    # file, input names and shapes, output shape
    ("convolution_backprop_data_older", [(1, 20, 224, 224), (20, 10, 3, 3)], (1, 10, 447, 447)),
    ("group_convolution_backprop_data", [(1, 20, 224, 224), (4, 5, 2, 3, 3)], (1, 8, 447, 447)),
    ("convolution_backprop_data_1", [(1, 20, 224, 224), (20, 10, 3, 3)], (1, 10, 447, 447)),
    ("convolution_backprop_data_2_output_padding", [(1, 20, 2, 2), (20, 10, 3, 3)], (1, 10, 8, 8)),
    (
        "convolution_backprop_data_3_output_shape",
        [(1, 20, 224, 224), (20, 10, 3, 3), (2,)],
        (1, 10, 450, 450),
    ),
]


@pytest.mark.parametrize(("name", "shapes", "output"), EXAMPLES, ids=[e[0] for e in EXAMPLES])
def test_example_loads_as_printed(
    name: str, shapes: list[tuple[int, ...]], output: tuple[int, ...]
) -> None:
    model = deconv_ir.load(SAMPLES / f"{name}.xml", strict=True)
    assert list(model.inputs) == ["data", "filter", "output_shape"][: len(shapes)]
    assert [port.shape for port in model.inputs.values()] == shapes
    assert str(model.inputs["data"].element_type) == "f32"
    assert str(model.inputs["filter"].element_type) == "f32"
    assert list(model.outputs) == ["upsampling_node"]
    inferred = model.infer_shapes()["upsampling_node"]
    if len(shapes) < 3:
        assert inferred == output
    else:
        # The value is known only when the model runs.
        assert inferred == (1, 10, deconv_ir.Interval(), deconv_ir.Interval())


def test_example_gives_typed_attributes() -> None:
    model = deconv_ir.load(SAMPLES / "convolution_backprop_data_2_output_padding.xml")
    operation = model.graph.find("upsampling_node").operation
    assert operation.strides == (3, 3)
    assert operation.dilations == (1, 1)
    assert operation.pads_begin == operation.pads_end == (0, 0)
    assert operation.output_padding == (2, 2)
    assert operation.auto_pad is PadMode.EXPLICIT


@pytest.mark.parametrize(("name", "shapes", "output"), EXAMPLES, ids=[e[0] for e in EXAMPLES])
def test_example_runs(name: str, shapes: list[tuple[int, ...]], output: tuple[int, ...]) -> None:
    model = deconv_ir.load(SAMPLES / f"{name}.xml")
    rng = np.random.default_rng(5)
    x, w = (rng.standard_normal(s).astype(np.float32) for s in shapes[:2])
    arrays = [x, w]
    pads = (1, 1)
    if len(shapes) == 3:
        arrays.append(np.array([450, 450], np.int32))
        pads = (-112, -112)  # S2, example 3: total = 223 + 3 - 450 = -224
    elif output[-1] == 8:
        pads = (0, 0)
    y = model.run(arrays)["upsampling_node"]
    assert y.shape == output
    strides = model.graph.find("upsampling_node").operation.strides
    groups = w.shape[0] if w.ndim == 5 else 1
    # The loop kernel is slow: a crop of the picture shows the same.
    crop = x[:, :, :6, :6]
    canonical = w.reshape(-1, *w.shape[-3:])
    expected = naive(
        crop,
        canonical,
        strides=strides,
        dilations=(1, 1),
        groups=groups,
        pads_begin=pads,
        output=output[2:] if output[-1] == 8 else (125, 125) if pads[0] < 0 else (9, 9),
    )
    rows = tuple(slice(0, min(e, 117 if pads[0] < 0 else 9)) for e in expected.shape[2:])
    np.testing.assert_allclose(
        y[(slice(None), slice(None), *rows)],
        expected[(slice(None), slice(None), *rows)],
        rtol=1e-4,
        atol=1e-4,
    )


def test_wrong_dim_is_told_with_the_formula(tmp_path: Path) -> None:
    text = (SAMPLES / "convolution_backprop_data_1.xml").read_text()
    line = text.splitlines().index("            <dim>447</dim>") + 1
    broken = tmp_path / "wrong.xml"
    broken.write_text(text.replace("<dim>447</dim>", "<dim>448</dim>", 1))
    with pytest.warns(deconv_ir.IRWarning) as caught:
        model = deconv_ir.load(broken)
    (finding,) = model.findings
    assert (finding.rule, finding.expected, finding.actual) == ("declared-dims", 447, 448)
    assert finding.line is not None
    assert abs(finding.line - line) <= 3
    message = str(caught[0].message)
    assert "axis 2: declared 448, computed 447" in message
    assert "2*(224 - 1) + ((3 - 1)*1 + 1) - 1 - 1 + 0 = 447" in message
    with pytest.raises(deconv_ir.ShapeError, match="declared 448, computed 447"):
        deconv_ir.load(broken, strict=True)


def test_declared_450_against_another_output_shape_is_told_when_it_is_known() -> None:
    model = deconv_ir.load(SAMPLES / "convolution_backprop_data_3_output_shape.xml")
    x = np.zeros((1, 20, 224, 224), np.float32)
    w = np.zeros((20, 10, 3, 3), np.float32)
    assert {f.rule for f in model.bind([x, w, np.array([450, 450])]).findings} == {
        "profiles-differ"
    }
    wrong = model.bind([x, w, np.array([449, 450])]).findings
    assert [f.message.split(":")[0] for f in wrong if f.rule == "declared-dims"] == [
        "output 0, axis 2"
    ]
