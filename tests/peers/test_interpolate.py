"""Interpolate of nearest elements: the runtime's coordinates in f32, element by element."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import deconv_ir

ov = pytest.importorskip(
    "openvino", reason="OpenVINO cannot be imported: install the `peers` extra"
)
pytestmark = pytest.mark.peers
op = ov.opset13

COORDINATES = [
    "half_pixel", "pytorch_half_pixel", "asymmetric", "tf_half_pixel_for_nn", "align_corners",
]  # fmt: skip
ROUNDINGS = ["round_prefer_floor", "round_prefer_ceil", "floor", "ceil", "simple"]
EXTENTS = range(1, 41)
DATA = [3, 14, 20, 28]
"""Extents of the data; with `EXTENTS` all 40,000 cases gave the same result as OpenVINO 2026.4."""

ONE_AXIS = [1, 1, 1]


def network(coordinates: str, rounding: str, data: int) -> Any:
    """Interpolate one axis to every extent."""
    parameter = op.parameter(ov.PartialShape([*ONE_AXIS, data]), ov.Type.f32)
    parameter.output(0).set_names({"x"})
    results = []
    for extent in EXTENTS:
        node = op.interpolate(
            parameter, op.constant(np.array([extent], np.int64)), "nearest", "sizes",
            coordinate_transformation_mode=coordinates, nearest_mode=rounding,
            axes=op.constant(np.array([3], np.int64)),
        )  # fmt: skip
        node.output(0).set_names({f"to{extent}"})
        results.append(op.result(node))
    return ov.Model(results, [parameter], "nearest")


@pytest.mark.parametrize(
    ("coordinates", "rounding"), list(itertools.product(COORDINATES, ROUNDINGS))
)
def test_the_runtime_in_f32(coordinates: str, rounding: str, tmp_path: Path) -> None:
    core = ov.Core()
    for data in DATA:
        path = tmp_path / f"{data}.xml"
        ov.save_model(network(coordinates, rounding, data), path, compress_to_fp16=False)
        x = np.arange(data, dtype=np.float32).reshape(*ONE_AXIS, data)
        theirs = core.compile_model(path, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})({"x": x})
        ours = deconv_ir.load(path, semantics="openvino", warn=False).run({"x": x})
        for extent in EXTENTS:
            name = f"to{extent}"
            assert ours[name].ravel().tolist() == theirs[name].ravel().tolist(), (data, extent)
