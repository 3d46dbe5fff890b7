"""Parts of a graph that run: tensors by name, and layers without an implementation."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from support import IR

import deconv_ir

X = np.linspace(-1, 1, 12, dtype=np.float32).reshape(2, 6)


def partly_supported() -> IR:
    """x -> tanh -> split; one half goes on to layers of unknown types."""
    ir = IR()
    x = ir.parameter("x", "2,6")
    t = ir.layer("Tanh", [x], name="t", names="t_out")
    axis = ir.const(np.array(0))
    s = ir.layer("Split", [t, axis], {"num_splits": "2"}, outputs=("1,6", "1,6"), name="s")
    ir.result(ir.layer("ReLU", [s], name="r"), "supported")
    odd = [ir.layer("Frobnicate", [(s[0], s[1] + 1)], version="opset9", name=f"f{i}",
                    outputs=("1,6",)) for i in range(2)]  # fmt: skip
    other = ir.layer("Mystify", [odd[0]], name="m", outputs=("1,6",), version="extension")
    ir.result(ir.layer("Add", [other, odd[1]]), "unsupported")
    ir.layer("Unneeded", [x], name="u")
    return ir


def test_all_layers_without_an_implementation_are_named_at_once(tmp_path: Path) -> None:
    path = partly_supported().save(tmp_path)
    model = deconv_ir.load(path)
    with pytest.raises(deconv_ir.UnsupportedError) as caught:
        model.run([X])
    lines = path.read_text().splitlines()
    at = {name: 1 + next(i for i, text in enumerate(lines) if f'name="{name}"' in text)
          for name in ("f0", "f1", "m")}  # fmt: skip
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(f"{path}: 3 layers that are needed are not implemented: ")
    assert (
        f"Frobnicate (version opset9) x2: 'f0' in line {at['f0']}, "
        f"'f1' in line {at['f1']}; "
        f"Mystify (version extension) x1: 'm' in line {at['m']}"
    ) in message
    assert "Unneeded" not in message
    assert "run(outputs=...)" in message


def test_an_unsupported_output_is_refused_before_any_layer_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = deconv_ir.load(partly_supported().save(tmp_path))
    tanh = type(model.graph.of_type("Tanh")[0].operation)

    def never(*_: object) -> None:
        raise AssertionError("it ran")

    for method in ("execute", "execute_into", "bind"):
        monkeypatch.setattr(tanh, method, never)
    with pytest.raises(deconv_ir.UnsupportedError):
        model.run([X])
    with pytest.raises(deconv_ir.UnsupportedError):
        model.require_runnable()
    model.require_runnable(["r"])


@pytest.mark.parametrize(
    ("asked", "expected"),
    [
        (["t"], {"t": np.tanh(X)}),
        (["t_out"], {"t_out": np.tanh(X)}),
        (["1"], {"1": np.tanh(X)}),
        (["r"], {"r": np.maximum(np.tanh(X[:1]), 0)}),
        (["supported"], {"supported": np.maximum(np.tanh(X[:1]), 0)}),
        (["s"], {"s.0": np.tanh(X[:1]), "s.1": np.tanh(X[1:])}),
        (["s.1", "t"], {"s.1": np.tanh(X[1:]), "t": np.tanh(X)}),
        (["x"], {"x": X}),
        (["t", "t_out"], {"t": np.tanh(X), "t_out": np.tanh(X)}),
    ],
    ids=lambda value: ",".join(value),
)
def test_inner_tensors_by_name(
    asked: list[str], expected: dict[str, np.ndarray], tmp_path: Path
) -> None:
    """Tensors are requested by tensor name, layer name or id; NumPy is the oracle."""
    model = deconv_ir.load(partly_supported().save(tmp_path))
    found = model.run([X], outputs=asked)
    assert list(found) == list(expected) == model.output_names(asked)
    for name, array in expected.items():
        np.testing.assert_allclose(found[name], array, rtol=1e-6)
        found[name][...] = 7  # the caller's own
    assert X.max() == 1


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("tt_out", "there is no tensor or layer 'tt_out' (did you mean 't_out'?)"),
        ("zzzzzz", "there is no tensor or layer 'zzzzzz'"),
        ("s.2", "layer 's' (Split, id 3): no output 's.2': the layer has 2 outputs"),
    ],
)
def test_names_that_are_not_there(name: str, words: str, tmp_path: Path) -> None:
    model = deconv_ir.load(partly_supported().save(tmp_path))
    with pytest.raises(deconv_ir.IRError) as caught:
        model.run([X], outputs=[name])
    assert words in str(caught.value)


def test_names_come_before_ids(tmp_path: Path) -> None:
    ir = IR()
    x = ir.parameter("x", "2")
    ir.layer("Sin", [x], name="2")
    ir.result(ir.layer("Cos", [x], name="c"))
    model = deconv_ir.load(ir.save(tmp_path))
    x = np.ones(2, np.float32)
    np.testing.assert_allclose(model.run([x], outputs=["2"])["2"], np.sin(x), rtol=1e-6)


def mismatched() -> IR:
    """Build two branches whose shapes only agree for even extents."""
    ir = IR()
    x = ir.parameter("image", "1,1,?,?")
    window = {"strides": "2,2", "pads_begin": "0,0", "pads_end": "0,0"}
    pool = {**window, "kernel": "2,2", "rounding_type": "floor"}
    down = ir.layer("MaxPool", [ir.layer("ReLU", [x], name="act")], pool, name="down")
    filter_ = ir.const(np.ones((1, 1, 2, 2), np.float32))
    up = ir.layer("ConvolutionBackpropData", [down, filter_], window, name="up")
    ir.result(ir.layer("Concat", [up, x], {"axis": "1"}, name="cat"))
    return ir


def test_a_shape_error_tells_the_way_from_the_input(tmp_path: Path) -> None:
    model = deconv_ir.load(mismatched().save(tmp_path))
    assert model.run([np.ones((1, 1, 6, 6), np.float32)], outputs=["cat"])["cat"].shape[1] == 2
    for tell in (
        lambda: model.run([np.ones((1, 1, 7, 7), np.float32)]),
        lambda: model.infer_shapes({"image": (1, 1, 7, 7)}),
    ):
        with pytest.raises(deconv_ir.ShapeError) as caught:
            tell()
        assert "layer 'cat' (Concat" in str(caught.value)
        assert "from input 'act' [1,1,7,7] -> 'down' [1,1,3,3] -> 'up' [1,1,6,6] -> 'cat'" in str(
            caught.value
        ).replace("'image' [1,1,7,7] -> ", "")
        assert "\n" not in str(caught.value)
    # The model still works after the error.
    assert model.run([np.ones((1, 1, 4, 4), np.float32)])["cat"].shape == (1, 2, 4, 4)


def test_the_way_of_dynamic_shapes_has_expressions(tmp_path: Path) -> None:
    """A width of 7 does not fit, with any height H."""
    model = deconv_ir.load(mismatched().save(tmp_path))
    with pytest.raises(deconv_ir.ShapeError) as caught:
        model.infer_shapes({"image": (1, 1, -1, 7)})
    way = "'act' [1,1,H,7] -> 'down' [1,1,floor(H/2),3] -> 'up' [1,1,2*floor(H/2),6] -> 'cat'"
    assert way in str(caught.value)


def test_a_long_path_of_shapes_is_abbreviated(tmp_path: Path) -> None:
    ir = IR()
    x = y = ir.parameter("x", "1,1,?")
    for i in range(20):
        filter_ = ir.const(np.ones((1, 1, 2), np.float32))
        y = ir.layer("ConvolutionBackpropData", [y, filter_], {"strides": "1"}, name=f"up{i}")
    ir.result(ir.layer("Concat", [y, x], {"axis": "1"}, name="cat"))
    model = deconv_ir.load(ir.save(tmp_path))
    with pytest.raises(deconv_ir.ShapeError) as caught:
        model.run([np.ones((1, 1, 3), np.float32)])
    assert "from input 'x' [1,1,3] -> 'up0' [1,1,4] -> (15 more) -> 'up16'" in str(caught.value)
    assert str(caught.value).endswith("'up19' [1,1,23] -> 'cat')")
