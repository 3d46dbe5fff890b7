"""RandomUniform-8: the numbers of its specification, and those of the authors of Philox."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import deconv_ir
from deconv_ir.errors import DeconvError
from deconv_ir.ir.dtypes import F32, I32
from deconv_ir.operations import Context
from deconv_ir.ops.constants.random_uniform import Generator, RandomUniform, philox
from tests.support import IR


def test_philox() -> None:
    """The known answers of Random123 for a counter of zeros, and one more."""
    first = [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    assert philox(0, 0, 4).tolist() == first
    assert philox(0, 0, 9)[:4].tolist() == first
    assert philox(0, 0, 9).shape == (9,)


def test_the_example_of_the_specification() -> None:
    """Example 1: shape [2,3,3], f32 from 0 to 1."""
    operation = RandomUniform(output_type=F32, global_seed=150, op_seed=10)
    inputs = [np.array([2, 3, 3]), np.float32(0), np.float32(1)]
    (found,) = operation.execute(list(map(np.asarray, inputs)), Context())
    expected = [0.7011236, 0.30539632, 0.93931055, 0.9456035, 0.11694777, 0.50770056]
    np.testing.assert_allclose(found.ravel()[:6], expected, rtol=1e-6)
    assert found.shape == (2, 3, 3)
    assert found.min() >= 0
    assert found.max() < 1


@pytest.mark.parametrize(("low", "high"), [(-3, 4), (5, 6)])
def test_integers_are_in_their_range(low: int, high: int) -> None:
    operation = RandomUniform(output_type=I32, global_seed=1)
    inputs = [np.array([500]), np.array(low, np.int32), np.array(high, np.int32)]
    (found,) = operation.execute(inputs, Context())
    assert sorted(set(found.tolist())) == list(range(low, high))


def network(seed: int) -> IR:
    ir = IR()
    inputs = [ir.const(np.array([64])), ir.const(np.float32(0)), ir.const(np.float32(1))]
    attributes = {"output_type": "f32", "global_seed": str(seed), "op_seed": "0"}
    drawn = ir.layer("RandomUniform", inputs, attributes, version="opset8")
    ir.result(ir.layer("Add", [drawn, ir.parameter("x", "64")], {"auto_broadcast": "numpy"}))
    return ir


@pytest.mark.parametrize("seed", [0, 7])
def test_numbers_without_seeds_differ_from_run_to_run(seed: int, tmp_path: Path) -> None:
    """The numbers are not folded, though the inputs are constants."""
    model = deconv_ir.load(network(seed).save(tmp_path))
    x = np.zeros(64, np.float32)
    runs = [next(iter(model.run(x).values())) for _ in range(2)]
    assert np.array_equal(*runs) == bool(seed)


def test_empty_ranges_and_unknown_alignments_are_refused() -> None:
    inputs = [np.array([2]), np.array(4, np.int32), np.array(4, np.int32)]
    with pytest.raises(DeconvError, match="maxval - minval must be from 1"):
        RandomUniform(output_type=I32, global_seed=1).execute(inputs, Context())
    with pytest.raises(DeconvError, match="alignment 'pytorch' is not implemented"):
        RandomUniform(output_type=I32, alignment=Generator.PYTORCH).execute(inputs, Context())
