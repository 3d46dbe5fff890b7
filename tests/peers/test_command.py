"""deconv-run --expect on OpenVINO's output, as a user would compare."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support import invoke

from .blocks import COMPUTED, Block, blocks
from .runtimes import F16

pytestmark = pytest.mark.peers

# The first case of each kind that OpenVINO can run unchanged.
_PLAIN = [b for b in blocks(240) if b.fault is None]
_BLOCKS = [
    next(b for b in _PLAIN if b.dynamic == dynamic and b.compress is compress)
    for dynamic in ("static", "unknown", "some")
    for compress in (False, True)
]
_BLOCKS += [
    next(b for b in _PLAIN if b.shape_from == source)
    for source in ("constant", "parameter", *COMPUTED)
]
_BLOCKS += [next(b for b in blocks(60, first=5000, element_type="f16") if b.fault is None)]


@pytest.mark.parametrize("block", _BLOCKS, ids=str)
def test_expect_openvinos_output(block: Block, tmp_path: Path) -> None:
    expected = block.reference(tmp_path)
    scale = float(np.abs(expected).max())
    path = block.save(tmp_path)
    arguments: list[object] = [path, "--semantics", "openvino", "--rtol", "0", "--atol"]
    arguments.append((1e-5 if block.element_type == "f32" else F16) * scale)
    for name, array in block.inputs().items():
        np.save(tmp_path / f"{name}.npy", array)
        arguments += ["--input", f"{name}={tmp_path / name}.npy"]
    np.save(tmp_path / "expected.npy", expected)
    arguments += ["--expect", tmp_path / "expected.npy"]
    done = invoke(*arguments)
    assert done.exit_code == 0, done.stderr
    expected[(0,) * expected.ndim] += np.asarray(scale, expected.dtype)
    np.save(tmp_path / "expected.npy", expected)
    assert invoke(*arguments).exit_code == 1
