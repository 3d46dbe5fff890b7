"""AvgPool if `ceil` lets a window extend beyond the padding, the only disputed case.

The document does not state the divisor of such a window's sum; it refers to ONNX's AveragePool,
which counts the elements within the padding, as torch does.  OpenVINO's CPU plugin (2026.4,
measured: `openvino` below) divides by the whole window if there is any padding, and like ONNX
otherwise.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from operation_forms import make
from support import IR

import deconv_ir
from deconv_ir.ir.operation import Context
from deconv_ir.ir.options import Semantics

NAN = float("nan")

# Extents of data 1, 2, 3, ...; kernel, strides, pads_begin, pads_end; spec, openvino.
TABLE = [
    ("6", "4", "4", "0", "1", [2.5, 11 / 3], [2.5, 2.75]),
    ("6", "4", "4", "0", "0", [2.5, 5.5], [2.5, 5.5]),
    ("5", "2", "4", "0", "0", [1.5, 5.0], [1.5, 5.0]),
    # The last window begins behind the data: the mean of no elements is NaN, as in OpenVINO.
    ("4", "1", "2", "0", "0", [1.0, 3.0, NAN], [1.0, 3.0, NAN]),
    ("9", "2", "9", "0", "0", [1.5, NAN], [1.5, NAN]),
    # Padding on one axis affects the divisor for the other axis, too.
    ("3,3", "2,2", "2,2", "0,0", "1,0", [3.0, 4.5, 3.75, 4.5], [3.0, 2.25, 3.75, 2.25]),
    ("3,3", "2,2", "2,2", "1,0", "0,0", [0.75, 1.5, 6.0, 7.5], [0.75, 0.75, 6.0, 3.75]),
]


def ones(extents: str) -> np.ndarray:
    shape = tuple(map(int, extents.split(",")))
    return np.arange(1, np.prod(shape) + 1, dtype=np.float32).reshape(1, 1, *shape)


@pytest.mark.parametrize("kind", ["AvgPool-1", "AvgPool-14", "AvgPool-16"])
@pytest.mark.parametrize("semantics", list(Semantics))
@pytest.mark.parametrize(("extents", "k", "s", "begin", "end", "spec", "openvino"), TABLE)
def test_divisor(
    kind: str,
    semantics: Semantics,
    extents: str,
    k: str,
    s: str,
    begin: str,
    end: str,
    spec: list[float],
    openvino: list[float],
) -> None:
    written = {"kernel": k, "strides": s, "pads_begin": begin, "pads_end": end}
    made = make(kind, **written, rounding_type="ceil", **{"exclude-pad": "false"})
    (found,) = made.execute([ones(extents)], Context(semantics))
    expected = openvino if semantics is Semantics.OPENVINO else spec
    np.testing.assert_allclose(found.ravel(), expected, rtol=1e-6)


@pytest.mark.parametrize("semantics", list(Semantics))
def test_excluded_padding_counts_for_nobody(semantics: Semantics) -> None:
    written = {"kernel": "4", "strides": "4", "pads_begin": "0", "pads_end": "1"}
    made = make("AvgPool", **written, rounding_type="ceil", **{"exclude-pad": "true"})
    (found,) = made.execute([ones("6")], Context(semantics))
    np.testing.assert_allclose(found.ravel(), [2.5, 5.5])


@pytest.mark.parametrize("semantics", list(Semantics))
def test_integers(semantics: Semantics) -> None:
    """Means are cut toward zero: 11 / 3 and 11 / 4."""
    written = {"kernel": "4", "strides": "4", "pads_begin": "0", "pads_end": "1"}
    made = make("AvgPool", **written, rounding_type="ceil", **{"exclude-pad": "false"})
    (found,) = made.execute([-ones("6").astype(np.int32)], Context(semantics))
    assert found.ravel().tolist() == [-2, -2 if semantics is Semantics.OPENVINO else -3]


def network(folder: Path, extents: str = "6", end: str = "1") -> Path:
    ir = IR()
    written = {"kernel": "4", "strides": "4", "pads_begin": "0", "pads_end": end}
    written |= {"rounding_type": "ceil", "exclude-pad": "false"}
    x = ir.parameter("x", f"1,1,{extents}")
    ir.result(ir.layer("AvgPool", [x], written, names="y"))
    return ir.save(folder)


def test_a_model_is_told_and_run_by_its_semantics(tmp_path: Path) -> None:
    path = network(tmp_path)
    for semantics, last in (("spec", 11 / 3), ("openvino", 2.75)):
        model = deconv_ir.load(path, semantics=semantics, warn=False)
        np.testing.assert_allclose(model.run([ones("6")])["y"].ravel(), [2.5, last], rtol=1e-6)
        (finding,) = model.findings
        assert finding.rule == "profiles-differ"
        assert (finding.expected, finding.actual) == ((3,), (4,))
        assert (
            "the specification gives the last window the divisor 3, the OpenVINO runtime 4; "
            f"this run uses {semantics}"
        ) in str(finding)


@pytest.mark.parametrize(("extents", "end"), [("6", "0"), ("7", "1"), ("?", "1")])
def test_semantics_that_agree_or_are_unknown_give_no_finding(
    extents: str, end: str, tmp_path: Path
) -> None:
    assert deconv_ir.load(network(tmp_path, extents, end), warn=False).findings == ()


def test_a_kernel_of_any_extent_takes_no_longer(tmp_path: Path) -> None:
    """The kernel was once iterated over element by element; equally wide pads let it fit."""
    far = 2**40
    for kind, pads in (("AvgPool", str(far)), ("MaxPool", str(far))):
        attributes = {"kernel": str(2 * far), "strides": str(far), "exclude-pad": "true"}
        attributes |= {"pads_begin": pads, "pads_end": pads}
        if kind == "MaxPool":
            del attributes["exclude-pad"]
        made = make(kind, **attributes)
        found = made.execute([ones("3")], Context())[0]
        expected = [2.0] if kind == "AvgPool" else [3.0]
        assert found.ravel().tolist() == expected
