"""Files that OpenVINO runs although the documents do not describe them to the letter."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from lenient_files import LENIENT, model_of

import deconv_ir

ov = pytest.importorskip(
    "openvino", reason="OpenVINO cannot be imported: install the `peers` extra"
)
pytestmark = pytest.mark.peers


@pytest.mark.parametrize("name", LENIENT)
def test_files_that_openvino_runs(name: str, tmp_path: Path) -> None:
    ir, numbers = model_of(name)
    path = ir.save(tmp_path)
    model = deconv_ir.load(path, warn=False)
    port = model.inputs["x"]
    assert port.element_type is not None
    shape = tuple(int(str(dim)) for dim in port.shape or ())
    x = numbers[: np.prod(shape)].reshape(shape).astype(port.element_type.numpy())
    (mine,) = model.run([x]).values()
    compiled = ov.Core().compile_model(path, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    theirs = np.array(compiled([x])[0])
    assert mine.shape == theirs.shape
    tolerance = 2e-3 if x.dtype == np.float16 else 2e-5
    np.testing.assert_allclose(mine.astype(float), theirs.astype(float), tolerance, tolerance)
