"""Model.reshape and --shape on static models: other input shapes, and what fixes them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import deconv_ir
from deconv_ir.errors import DeconvError, InputError, ShapeError
from tests.support import IR, invoke, invoke_script

BLOCK = Path(__file__).parents[1] / "samples" / "block" / "block.xml"
RNG = np.random.default_rng(0)


def classifier(pattern: list[int], *, special_zero: bool = False, shared: bool = False) -> IR:
    """Build a sum over channels and a classifier, whose batch is in the pattern of a Reshape."""
    ir = IR()
    x = ir.parameter("x", "1,3,2,2")
    filters = ir.const(RNG.standard_normal((4, 3, 1, 1)).astype(np.float32), "filters")
    zeros = {"strides": "1,1", "dilations": "1,1", "pads_begin": "0,0", "pads_end": "0,0"}
    y = ir.layer("Convolution", [x, filters], zeros, outputs=("1,4,2,2",), name="conv")
    shape = ir.const(np.array(pattern), "pattern")
    zero = {"special_zero": "true" if special_zero else "false"}
    flat = ir.layer("Reshape", [y, shape], zero, outputs=("1,16",), name="flat")
    if shared:
        again = ir.layer("Reshape", [y, shape], zero, outputs=("1,16",), name="again")
        flat = ir.layer("Add", [flat, again], outputs=("1,16",), name="twice")
    weights = ir.const(RNG.standard_normal((16, 5)).astype(np.float32), "weights")
    ir.result(ir.layer("MatMul", [flat, weights], outputs=("1,5",), name="fc", names="y"))
    return ir


@pytest.mark.parametrize("shape", [(4, 8, 24, 32), (2, 8, 1, 1), (-1, 8, 16, 16), (1, 8, -1, -1)])
def test_shapes_of_a_network_without_fixed_shapes(shape: tuple[int, ...], tmp_path: Path) -> None:
    """The saved file is clean, and gives for each image what the file as it was gives."""
    model = deconv_ir.load(BLOCK)
    changed = model.reshape(shape)
    deconv_ir.save(changed, tmp_path / "b.xml")
    assert deconv_ir.lint(tmp_path / "b.xml") == []
    loaded = deconv_ir.load(tmp_path / "b.xml", strict=True)
    n, h, w = (d if d > 0 else 3 for d in (shape[0], shape[2], shape[3]))
    x = RNG.standard_normal((n, 8, h, w)).astype(np.float32)
    assert loaded.run(x)["y"].shape == (n, 4, 2 * h, 2 * w)  # stride 2, same size
    np.testing.assert_array_equal(loaded.run(x)["y"], changed.run(x)["y"])
    if (h, w) == (16, 16):
        np.testing.assert_array_equal(
            loaded.run(x)["y"], np.concatenate([model.run(image[None])["y"] for image in x])
        )
    assert model.inputs["x"].shape == (1, 8, 16, 16), "the first model is unchanged"


@pytest.mark.parametrize("batch", [3, -1])
@pytest.mark.parametrize(
    ("pattern", "options"),
    [
        ([1, 16], {}),
        ([1, -1], {}),
        ([1, 16], {"special_zero": True}),
        ([1, -1], {"special_zero": True}),
        ([1, 16], {"shared": True}),
        ([-1, 16], {}),
        ([0, -1], {"special_zero": True}),
    ],
)
def test_the_batch_in_a_constant_of_reshape(
    pattern: list[int], options: dict[str, bool], batch: int, tmp_path: Path
) -> None:
    model = deconv_ir.load(classifier(pattern, **options).save(tmp_path))
    x = RNG.standard_normal((3, 3, 2, 2)).astype(np.float32)
    expected = np.concatenate([model.run(image[None])["y"] for image in x])
    # The BLAS may add the terms of a sum in another order for other numbers of rows.
    atol = 1e-6 * float(np.abs(expected).max())
    changed = model.reshape((batch, 3, 2, 2))
    assert [f.rule for f in changed.findings] == ["reshape-constant"] * (
        (pattern[0] == 1) * (2 if options.get("shared") else 1)
    )
    deconv_ir.save(changed, tmp_path / "saved.xml")
    # The builder of the test declares every input port as FP32.
    assert {f.rule for f in deconv_ir.lint(tmp_path / "saved.xml")} == {"edge-precision-differs"}
    for each in (changed, deconv_ir.load(tmp_path / "saved.xml", strict=True)):
        np.testing.assert_allclose(each.run(x)["y"], expected, rtol=0, atol=atol)


def test_a_reshape_that_mixes_axis_0_with_others_is_refused(tmp_path: Path) -> None:
    """[1,3,4] to [3,4] and back: the second Reshape cannot know which factor is the batch."""
    ir = IR()
    x = ir.parameter("x", "1,3,4")
    rows = ir.layer("Reshape", [x, ir.const(np.array([3, 4]), "rows")], {"special_zero": "false"})
    ir.result(ir.layer("Reshape", [rows, ir.const(np.array([1, 3, 4]))], {"special_zero": "false"}))
    model = deconv_ir.load(ir.save(tmp_path), warn=False)
    with pytest.raises(ShapeError, match=r"the constant 'rows' \[3,4\] fixes the shape"):
        model.reshape((2, 3, 4))


@pytest.mark.parametrize(
    ("shape", "error", "text"),
    [
        ((1, 3, 4, 4), ShapeError, r"fc.*the constant 'weights' f32\[16,5\] fixes the shape"),
        ((1, 5, 2, 2), ShapeError, r"conv.*the constant 'filters' f32\[4,3,1,1\] fixes"),
        ({"z": (1, 3, 2, 2)}, InputError, "no input 'z'"),
        ((1, 3, "a", 2), InputError, "invalid shape"),
        ({}, None, ""),
    ],
)
def test_what_fixes_the_shape_is_named(
    shape: object, error: type[DeconvError] | None, text: str, tmp_path: Path
) -> None:
    model = deconv_ir.load(classifier([1, -1]).save(tmp_path))
    if error is None:
        assert model.reshape(shape).inputs["x"].shape == (1, 3, 2, 2)
        return
    with pytest.raises(error, match=text) as caught:
        model.reshape(shape)  # type: ignore[arg-type]
    assert str(caught.value).count("\n") == 0


def test_bodies_follow(tmp_path: Path) -> None:
    """The body of a TensorIterator is declared again, in the file too: x + 1, row by row."""
    ir = IR()
    x = ir.parameter("x", "2,1,3")
    body = ir.body()
    row = body.parameter("row", "1,1,3")
    one = body.const(np.ones((1, 1, 1), np.float32))
    body.result(body.layer("Add", [row, one], outputs=("1,1,3",)), name="out")
    maps = (
        '<port_map><input external_port_id="0" internal_layer_id="0" axis="0"/>'
        '<output external_port_id="1" internal_layer_id="3" axis="0"/></port_map>'
    )
    bodies = f"{maps}<back_edges/><body>{body.sections()}</body>"
    rows = ir.layer("TensorIterator", [x], outputs=("2,1,3",), bodies=bodies, names="y")
    ir.result(rows)
    model = deconv_ir.load(ir.save(tmp_path)).reshape((4, 2, 5))
    deconv_ir.save(model, tmp_path / "saved.xml")
    assert deconv_ir.lint(tmp_path / "saved.xml") == []
    assert "<dim>3</dim>" not in (tmp_path / "saved.xml").read_text()
    x_array = RNG.standard_normal((4, 2, 5)).astype(np.float32)
    loaded = deconv_ir.load(tmp_path / "saved.xml", strict=True)
    np.testing.assert_array_equal(loaded.run(x_array)["y"], x_array + 1)


def test_a_onednn_graph_file_has_options_of_its_own() -> None:
    model = deconv_ir.load(BLOCK.parents[1] / "onednn" / "upsample.json")
    with pytest.raises(InputError, match="overrides"):
        model.reshape({next(iter(model.inputs)): (1, 2, 3, 3)})
    done = invoke(BLOCK.parents[1] / "onednn" / "upsample.json", "--shape", "0=9,9", "--info")
    assert done.exit_code == 2
    assert "--in-shapes" in done.stderr


def test_shape_of_the_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    options = ("--shape", "2,8,6,10", "--random-inputs", "0")
    done = invoke(BLOCK, *options)
    assert done.exit_code == 0, done.stderr
    assert np.load("y.npy").shape == (2, 4, 12, 20)
    assert invoke(BLOCK, "--shape", "2,8,6,10", "--save-xml", "b.xml").exit_code == 0
    assert deconv_ir.load("b.xml").inputs["x"].shape == (2, 8, 6, 10)
    for command in (("diff", BLOCK, "b.xml"), ("show", "b.xml")):
        done = invoke_script(*command, "--shape", "1,8,4,4", "--random-inputs", "0")
        assert done.exit_code == 0, done.stderr
    for shape, text in (("2,7,6,6", "the constant 'weights'"), ("2,8,6", "rank")):
        done = invoke(BLOCK, "--shape", shape, "--random-inputs", "0", "--force")
        assert done.exit_code == 2
        assert text in done.stderr
    done = invoke("b.xml", "--shape", "1,8,4,4", "--save-xml", "b.xml", "--force")
    assert "would overwrite the model" in done.stderr
    done = invoke(BLOCK, "--save-xml", "copy.xml")
    assert done.exit_code == 2
    assert "is an IR already" in done.stderr
    assert not Path("copy.xml").exists()


def test_a_batch_of_a_model_of_batch_1(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One error, which says what to do, and does it."""
    monkeypatch.chdir(tmp_path)
    Path("in").mkdir()
    images = RNG.standard_normal((5, 1, 8, 16, 16)).astype(np.float32)
    for number, image in enumerate(images):
        np.save(f"in/{number}.npy", image)
    arguments = (BLOCK, "--input", "in/*.npy", "--output", "out/", "--batch", "4")
    done = invoke(*arguments)
    assert (done.exit_code, done.stderr.count("error:")) == (2, 1)
    assert "takes shape [1,8,16,16], a batch of 1 (use --shape x=?,8,16,16" in done.stderr
    assert not Path("out").exists()
    assert invoke(*arguments, "--shape", "x=?,8,16,16").exit_code == 0
    model = deconv_ir.load(BLOCK)
    for number, image in enumerate(images):
        np.testing.assert_array_equal(np.load(f"out/{number}.npy"), model.run(image)["y"])
