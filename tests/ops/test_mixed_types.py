"""Operations whose data and other inputs may be of different floating-point types.

Model Optimizer's compression to f16 leaves such layers; OpenVINO 2026.4 runs them, and compares no
types there.  The values are worked out by hand.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from support import IR

import deconv_ir


class Case(NamedTuple):
    opset: str
    attributes: dict[str, str]
    data: np.ndarray
    same: list[np.ndarray]
    """Inputs of the type of the data."""
    others: list[np.ndarray]
    wanted: np.ndarray


def row(*values: float) -> np.ndarray:
    return np.array(values)


PLANE = np.array([[1.0, 2.0], [3.0, 4.0]])[None, None]
WINDOW = {"strides": "1,1", "dilations": "1,1", "pads_begin": "0,0", "pads_end": "0,0"}
CASES = {
    # 5 levels of [0, 1] are quarters, which are mapped to [0, 8]: 0.3 is nearest to the second.
    "FakeQuantize": Case(
        "opset1",
        {"levels": "5"},
        row(-1, 0.3, 2),
        [],
        [row(0), row(1), row(0), row(8)],
        row(0, 2, 8),
    ),
    # Mean 2 and deviation 1.
    "GroupNormalization": Case(
        "opset12",
        {"num_groups": "1", "epsilon": "0"},
        np.array([[1.0, 3.0]]),
        [],
        [row(2, 4), row(0.5, 1)],
        np.array([[-1.5, 5.0]]),
    ),
    # The region has corners 0 and 1, and the last element counts.
    "PSROIPooling": Case(
        "opset1",
        {"output_dim": "1", "group_size": "1", "spatial_scale": "1", "mode": "average"},
        PLANE,
        [],
        [np.array([[0.0, 0, 0, 1, 1]])],
        np.array([[[[2.5]]]]),
    ),
    # Interpolation in a plane of equal elements.
    "DeformablePSROIPooling": Case(
        "opset1",
        {
            "output_dim": "1", "group_size": "1", "spatial_scale": "1",
            "mode": "bilinear_deformable", "trans_std": "0.1", "part_size": "1",
        },
        np.full((1, 1, 8, 8), 3.0),
        [],
        [np.array([[0.0, 2, 2, 4, 4]]), np.full((1, 2, 1, 1), 0.5)],
        np.array([[[[3.0]]]]),
    ),
    # A filter of one element, 2, without offsets; the mask is 1/2, 1/4, 0 and 1.
    "DeformableConvolution": Case(
        "opset8",
        WINDOW,
        PLANE,
        [np.zeros((1, 2, 2, 2)), np.full((1, 1, 1, 1), 2.0)],
        [np.array([[0.5, 0.25], [0, 1]])[None, None]],
        np.array([[[[1.0, 1.0], [0.0, 8.0]]]]),
    ),
}  # fmt: skip


@pytest.mark.parametrize("kind", CASES)
@pytest.mark.parametrize(
    ("first", "second"), [("f2", "f4"), ("f4", "f2"), ("f4", "f8"), ("f8", "f4")]
)
@pytest.mark.parametrize("constant", [False, True])
def test_inputs_of_another_type(
    kind: str, first: str, second: str, constant: bool, tmp_path: Path
) -> None:
    case, ir = CASES[kind], IR()
    data = [a.astype(first) for a in (case.data, *case.same)]
    others = [a.astype(second) for a in case.others]
    arrays = {f"x{i}": a for i, a in enumerate(data + ([] if constant else others))}
    sources = [
        ir.parameter(name, ",".join(map(str, a.shape)), f"f{8 * a.itemsize}")
        for name, a in arrays.items()
    ]
    sources += [ir.const(a) for a in others] if constant else []
    precision = f"FP{8 * data[0].itemsize}"
    at = ir.layer(kind, sources, case.attributes, version=case.opset, precision=precision)
    ir.result(at)
    model = deconv_ir.load(ir.save(tmp_path), warn=False)
    (found,) = model.run(arrays).values()
    assert found.dtype == first
    np.testing.assert_allclose(found, case.wanted.astype(first), rtol=1e-6)
    assert "IR410" not in {f.code for f in deconv_ir.lint(tmp_path / "model.xml")}


def integers(*values: object) -> np.ndarray:
    return np.array(values, np.int64)


@pytest.mark.parametrize(
    ("first", "second"), [("f2", "f4"), ("f4", "f2"), ("f4", "f8"), ("f8", "f4")]
)
@pytest.mark.parametrize(
    ("kind", "opset", "inputs", "output", "wanted"),
    [
        (
            "SliceScatter",
            "opset15",
            [row(0.0, 1, 2, 3, 4), "other", integers(1), integers(3), integers(1)],
            0,
            row(0, 10, 20.5, 3, 4),
        ),
        (  # row 1 of 3 is empty
            "SparseFillEmptyRows",
            "opset16",
            [row(5, 6.5), integers(3, 4), integers([0, 1], [2, 0]), "other"],
            1,
            row(5, 1.5, 6.5),
        ),
    ],
)
def test_elements_of_another_type_are_put_into_the_data(
    kind: str, opset: str, inputs: list[object], output: int, wanted: np.ndarray,
    first: str, second: str, tmp_path: Path,
) -> None:  # fmt: skip
    """OpenVINO 2026.4 runs both, with outputs of the type of the data."""
    ir, arrays = IR(), {}
    other = row(10, 20.5) if kind == "SliceScatter" else np.array(1.5)
    sources = []
    for number, given in enumerate(inputs):
        array = other.astype(second) if isinstance(given, str) else np.asarray(given)
        if array.dtype.kind == "f":
            array = array if isinstance(given, str) else array.astype(first)
            arrays[f"x{number}"] = array
            shape = ",".join(map(str, array.shape))
            sources.append(ir.parameter(f"x{number}", shape, f"f{8 * array.itemsize}"))
        else:
            sources.append(ir.const(array))
    precision = f"FP{8 * np.dtype(first).itemsize}"
    if output:
        at = ir.layer(
            kind, sources, version=opset, outputs=("", "", ""), precision=("I64", precision, "BOOL")
        )
    else:
        at = ir.layer(kind, sources, version=opset, precision=precision)
    ir.result((at[0], at[1] + output), "y")
    model = deconv_ir.load(ir.save(tmp_path), warn=False)
    (found,) = model.run(arrays).values()
    assert found.dtype == first
    np.testing.assert_array_equal(found, wanted.astype(first))
    assert "IR410" not in {f.code for f in deconv_ir.lint(tmp_path / "model.xml")}
