"""If: only the body that the condition selects is run.

Source: OpenVINO operation specification, If-8.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import deconv_ir
from deconv_ir.errors import DeconvError
from tests.support import IR


def branches(condition: bool | None = None, *, types: tuple[str, str] = ("f32", "f32")) -> IR:
    """Return a model of the data [2,3] plus 1, or their sum along axis 0, [1,3]."""
    ir = IR()
    if condition is None:
        cond = ir.parameter("cond", "", "boolean")
    else:
        cond = ir.raw_const(bytes([condition]), "boolean", ())
    data = ir.parameter("data", "2,3")
    then_body, else_body = ir.body(), ir.body()
    x = then_body.parameter("x", "2,3")
    more = then_body.layer("Add", [x, then_body.const(np.ones((), np.float32))], name="more")
    more = then_body.layer("Convert", [more], {"destination_type": types[0]})
    then_result = then_body.result(more)
    x = else_body.parameter("x", "2,3")
    axes = else_body.const(np.array([0]))
    total = else_body.layer("ReduceSum", [x, axes], {"keep_dims": "true"}, name="total")
    total = else_body.layer("Convert", [total], {"destination_type": types[1]})
    else_result = else_body.result(total)
    maps = "".join(
        f"<{name}_port_map>\n"
        f'<input external_port_id="1" internal_layer_id="0"/>\n'
        f'<output external_port_id="2" internal_layer_id="{result[0]}"/>\n'
        f"</{name}_port_map>\n"
        for name, result in (("then", then_result), ("else", else_result))
    )
    chosen = ir.layer(
        "If",
        [cond, data],
        name="choice",
        version="opset8",
        bodies=f"{maps}<then_body>\n{then_body.sections()}</then_body>\n"
        f"<else_body>\n{else_body.sections()}</else_body>\n",
    )
    ir.result(chosen)
    return ir


X = np.array([[1, 2, 3], [4, 5, 6]], np.float32)
EXPECTED = {True: X + 1, False: np.array([[5, 7, 9]], np.float32)}


@pytest.mark.parametrize("condition", [True, False])
def test_if(condition: bool, tmp_path: Path) -> None:
    model = deconv_ir.load(branches().save(tmp_path))
    (found,) = model.run([np.bool_(condition), X]).values()
    np.testing.assert_array_equal(found, EXPECTED[condition])


@pytest.mark.parametrize("condition", [True, False])
def test_constant_condition(condition: bool, tmp_path: Path) -> None:
    """The output has the shape of the selected branch."""
    model = deconv_ir.load(branches(condition).save(tmp_path))
    assert list(model.infer_shapes().values()) == [EXPECTED[condition].shape]
    (found,) = model.run(X).values()
    np.testing.assert_array_equal(found, EXPECTED[condition])


def test_shape_covers_both_branches(tmp_path: Path) -> None:
    model = deconv_ir.load(branches().save(tmp_path))
    assert list(model.infer_shapes().values()) == [(deconv_ir.Interval(1, 2), 3)]


def test_only_the_chosen_branch_runs(tmp_path: Path) -> None:
    profile = deconv_ir.Profile()
    deconv_ir.load(branches().save(tmp_path)).run([np.False_, X], profile=profile)
    rows = {row.layer: row.within for row in profile.layers}
    assert rows["total"] == "choice/else_body"
    assert "more" not in rows


def test_types_of_branches_agree(tmp_path: Path) -> None:
    with pytest.raises(DeconvError, match="element types differ"):
        deconv_ir.load(branches(types=("f32", "f16")).save(tmp_path))


def test_missing_weights_of_a_body_are_reported() -> None:
    with pytest.raises(deconv_ir.WeightsError, match="the model has 2 constants, but no weights"):
        deconv_ir.load(branches().xml().encode())


def test_saved_and_pickled(tmp_path: Path) -> None:
    import pickle

    model = deconv_ir.load(branches().save(tmp_path))
    deconv_ir.save(model, tmp_path / "copy.xml")
    for other in (deconv_ir.load(tmp_path / "copy.xml"), pickle.loads(pickle.dumps(model))):
        (found,) = other.run([np.True_, X]).values()
        np.testing.assert_array_equal(found, EXPECTED[True])
