"""Steps that a plan leaves out: shapes known when it is made, and unused outputs."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from support import IR

import deconv_ir
from deconv_ir.execute.listing import as_rows


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def test_shapes_that_are_computed_are_known_when_planned(tmp_path: Path) -> None:
    """A resize to twice the input's extents: the computation of the extents is left out."""
    ir = IR()
    x = ir.parameter("x", "?,4,?")
    shape = ir.layer("ShapeOf", [x], version="opset3", names="shape", precision="I64")
    last = ir.layer("Gather", [shape, ir.const(np.array([2])), ir.const(np.array(0))],
                    version="opset8", name="last", precision="I64")  # fmt: skip
    flat = ir.layer("Concat", [ir.const(np.array([-1])), last], {"axis": "0"}, precision="I64")
    ir.result(ir.layer("Reshape", [x, flat], {"special_zero": "false"}, name="y"))
    ir.result(shape)
    model = deconv_ir.load(ir.save(tmp_path))
    for extents in ((2, 4, 3), (1, 4, 5)):
        data = normal(*extents)
        results = list(model.run([data]).values())
        np.testing.assert_array_equal(results[0], data.reshape(-1, extents[2]))
        assert results[1].tolist() == list(extents)
        results[1][:] = 0  # the caller's own arrays
        assert [r.layer for r in as_rows(model.bind([data]).plan)] == ["y"]
        assert model.bind([data]).plan.folded == 3
    assert model.run([data], outputs=["last"])["last"].tolist() == [5]


def test_a_number_that_follows_from_a_shape_is_known_when_planned(tmp_path: Path) -> None:
    """The scale is computed as torch writes it: x.shape[-1] // 2, as a float."""
    ir = IR()
    x = ir.parameter("x", "2,?")
    shape = ir.layer("ShapeOf", [x], version="opset3", precision="I64")
    last = ir.layer("Gather", [shape, ir.const(np.array(1)), ir.const(np.array(0))],
                    version="opset8", precision="I64")  # fmt: skip
    half = ir.layer("Divide", [last, ir.const(np.array(2))], precision="I64")
    whole = ir.layer("Floor", [half], precision="I64")
    real = ir.layer("Convert", [whole], {"destination_type": "f32"})
    ir.result(ir.layer("Multiply", [x, real], name="y"))
    model = deconv_ir.load(ir.save(tmp_path), warn=False)
    for extent in (6, 9):
        data = normal(2, extent)
        assert [row.layer for row in as_rows(model.bind([data]).plan)] == ["y"]
        np.testing.assert_array_equal(next(iter(model.run([data]).values())), data * (extent // 2))


def test_positions_that_nobody_takes_are_not_computed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def build(outputs: Sequence[int]) -> deconv_ir.Model:
        ir = IR()
        x = ir.parameter("x", "1,2,4,4")
        attributes = {"kernel": "2,2", "strides": "2,2", "pads_begin": "0,0", "pads_end": "0,0"}
        layer, port = ir.layer(
            "MaxPool", [x], attributes, version="opset8", outputs=("", ""), name="pool"
        )
        for output in outputs:
            ir.result((layer, port + output))
        return deconv_ir.load(ir.save(tmp_path), warn=False)  # of its ports' types

    data = normal(1, 2, 4, 4)
    expected = data.reshape(1, 2, 2, 2, 2, 2).max((3, 5))
    both = build([0, 1])
    assert both.bind([data]).plan.tensor_bytes == expected.size * (4 + 8)
    values, positions = both.run([data]).values()
    np.testing.assert_array_equal(values, expected)
    np.testing.assert_array_equal(data.ravel()[positions], expected)
    (alone,) = build([1]).run([data]).values()
    np.testing.assert_array_equal(alone, positions)
    monkeypatch.setattr(np, "isnan", None)  # only the search for positions calls isnan
    first = build([0])
    assert first.bind([data]).plan.tensor_bytes == expected.size * 4
    np.testing.assert_array_equal(*first.run([data]).values(), expected)
