"""Whole IRs saved by OpenVINO: shapes and values must be equal to OpenVINO's."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import deconv_ir

from .blocks import Block, blocks
from .oracle import openvino_window
from .runtimes import F16, F32, assert_close, bounds, infer

pytestmark = pytest.mark.peers

_BLOCKS = blocks(240)
_HALF = blocks(60, first=5000, element_type="f16")


@pytest.mark.parametrize("block", _BLOCKS, ids=str)
def test_float_block_gives_openvinos_output(block: Block, tmp_path: Path) -> None:
    expected = block.reference(tmp_path)
    model = deconv_ir.load(block.save(tmp_path), semantics="openvino", warn=False)
    actual = model.run(block.inputs())
    assert list(actual) == ["y"]
    assert actual["y"].dtype == np.float32
    assert_close(actual["y"], expected, F32, str(block))


@pytest.mark.parametrize("block", _HALF, ids=str)
def test_half_block_gives_openvinos_output(block: Block, tmp_path: Path) -> None:
    expected = block.reference(tmp_path)
    model = deconv_ir.load(block.save(tmp_path), semantics="openvino", warn=False)
    actual = model.run(block.inputs())["y"]
    assert actual.dtype == np.float16
    assert_close(actual, expected, F16, str(block))


@pytest.mark.parametrize("block", _BLOCKS[:120], ids=str)
def test_inferred_shape_is_openvinos(block: Block, tmp_path: Path) -> None:
    path = block.save(tmp_path)
    model = deconv_ir.load(path, semantics="openvino", warn=False)
    assert bounds(model.infer_shapes()["y"]) == infer(path)
    assert [(n, p.element_type.name) for n, p in model.outputs.items()] == [("y", "f32")]


@pytest.mark.parametrize(
    "block", [b for b in _BLOCKS if not b.compress and b.problem.output_shape], ids=str
)
def test_output_shape_follows_the_document_by_default(block: Block, tmp_path: Path) -> None:
    """S2 'Detailed description': the pads follow from the output shape alone.

    Only the oracle is used, since OpenVINO's CPU runtime differs here.
    """
    path = block.save(tmp_path)
    actual = deconv_ir.load(path, warn=False).run(block.inputs())["y"]
    problem = block.problem
    assert_close(actual, block.by_oracle(openvino_window(problem, "spec")), F32, str(block))


@pytest.mark.parametrize("block", _BLOCKS[:40], ids=str)
def test_saved_again_it_is_the_same_model_to_openvino(block: Block, tmp_path: Path) -> None:
    """OpenVINO reads the file that the library writes: same inputs, same shapes."""
    path = block.save(tmp_path)
    again = tmp_path / "again.xml"
    deconv_ir.save(deconv_ir.load(path, warn=False), again)
    assert infer(again) == infer(path)
    assert_close(
        deconv_ir.load(again, warn=False).run(block.inputs())["y"],
        deconv_ir.load(path, warn=False).run(block.inputs())["y"],
        0.0,
    )


@pytest.mark.parametrize(
    "block",
    [b for b in _BLOCKS if b.dynamic == "unknown" and b.shape_from != "constant"][:40],
    ids=str,
)
def test_one_model_takes_input_after_input(block: Block, tmp_path: Path) -> None:
    """A dynamic model that is loaded once runs at several shapes, and at the first one again."""
    model = deconv_ir.load(block.save(tmp_path), semantics="openvino", warn=False)
    for more in (0, 2, 1, 0):
        problem = replace(
            block.problem,
            batch=block.problem.batch + more,
            extents=tuple(x + more for x in block.problem.extents),
        )
        other = replace(block, problem=problem)
        expected = other.reference(tmp_path)
        assert_close(model.run(other.inputs())["y"], expected, F32, f"{block} and {more}")
