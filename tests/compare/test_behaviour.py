"""Compare tensors of two models, of other tools, and of tools that only give final outputs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from edited import Edit, build
from support import IR, deconvolution_ir, invoke_script, traced_peak

import deconv_ir

X = np.random.default_rng(0).standard_normal((1, 4, 12, 12)).astype(np.float32)
TENSORS = ["enc", "enc/bias", "enc/relu", "mid", "mid/bn", "mid/clamp", "skip", "up"]
TENSORS += ["pool", "elu", "turn", "scale", "join", "soft"]


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("original"))


@pytest.fixture(scope="module")
def values(original: Path) -> dict[str, np.ndarray]:
    return deconv_ir.load(original).run(X, outputs=TENSORS)


def test_layer_by_layer_is_what_run_computes(original: Path, values: dict[str, np.ndarray]) -> None:
    found = deconv_ir.diff(original, None, X, against=values, rtol=1e-5)
    assert [tensor.name for tensor in found.tensors] == TENSORS
    assert found.equal


@pytest.mark.parametrize("wrong", TENSORS)
def test_dumps_of_another_tool(original: Path, values: dict[str, Any], wrong: str) -> None:
    place = TENSORS.index(wrong)
    dumps = {
        name.replace("/", "_"): array + (k >= place)
        for k, (name, array) in enumerate(values.items())
    }
    found = deconv_ir.diff(original, None, X, against=dumps)
    assert found.culprit is not None
    assert found.culprit.tensor.name == wrong
    assert sum(not tensor.within for tensor in found.tensors) == len(TENSORS) - place


def test_an_error_is_the_fault_of_a_layer_behind_which_dumps_are_missing(
    original: Path, values: dict[str, Any]
) -> None:
    found = deconv_ir.diff(original, None, X, against={"up": values["up"] + 1, "y": values["soft"]})
    assert [tensor.name for tensor in found.tensors] == ["up"]
    assert found.culprit is not None
    assert found.culprit.inputs == ("skip: f32[1,8,12,12]", "up/w: f32[8,8,4,4]")
    assert dict(found.culprit.attributes)["strides"] == "2,2"
    assert any("= 24" in formula for formula in found.culprit.formulas)


def test_an_error_of_winograd_is_named(tmp_path: Path) -> None:
    """Sparse data, and a tolerance that direct sums keep; the oracle sums taps in f64."""
    rng = np.random.default_rng(1)
    ir = IR()
    x = ir.parameter("x", "1,64,32,32")
    w = rng.standard_normal((64, 64, 3, 3)).astype(np.float32)
    window = {"strides": "1,1", "dilations": "1,1", "pads_begin": "1,1", "pads_end": "1,1"}
    ir.result(ir.layer("Convolution", [x, ir.const(w)], window, name="y"))
    path = ir.save(tmp_path)
    shape = (1, 64, 32, 32)
    data = np.where(rng.random(shape) < 0.001, rng.standard_normal(shape), 0).astype(np.float32)
    padded = np.pad(data.astype(float), ((0, 0), (0, 0), (1, 1), (1, 1)))
    exact = np.zeros(shape)
    for i, j in np.ndindex(3, 3):
        seen = padded[:, :, i : i + 32, j : j + 32]
        exact += np.einsum("ncyx,oc->noyx", seen, w[:, :, i, j].astype(float))
    errors = {}
    for accuracy in ("fast", "direct"):
        model = deconv_ir.load(path, accuracy=accuracy)
        (tensor,) = deconv_ir.diff(model, None, data, against={"y": exact}).tensors
        errors[accuracy] = tensor.relative
    if errors["direct"] >= errors["fast"]:
        pytest.skip("Winograd is not used here, or happens to be as accurate")
    rtol = (errors["direct"] + errors["fast"]) / 2
    found = deconv_ir.diff(path, None, data, against={"y": exact}, rtol=rtol)
    assert found.culprit is not None
    assert found.culprit.hint == "accuracy='direct' agrees: the differences are those of Winograd"
    direct = deconv_ir.load(path, accuracy="direct")
    assert deconv_ir.diff(direct, None, data, against={"y": exact}, rtol=rtol).equal
    assert deconv_ir.diff(path, None, data, against={"y": exact + 1}, rtol=rtol).culprit.hint == ""  # type: ignore[union-attr]


def test_an_error_of_winograd_behind_the_convolution_is_named(tmp_path: Path) -> None:
    """Background is subtracted from a convolution whose errors are small on its own scale."""
    rng = np.random.default_rng(2)
    x = rng.standard_normal((1, 64, 32, 32)).astype(np.float32)
    w = rng.standard_normal((64, 64, 3, 3)).astype(np.float32)

    def network(background: np.ndarray) -> Path:
        ir = IR()
        window = {"strides": "1,1", "dilations": "1,1", "pads_begin": "1,1", "pads_end": "1,1"}
        parts = [ir.parameter("x", "1,64,32,32"), ir.const(w)]
        seen = ir.layer("Convolution", parts, window, names="seen")
        left = ir.layer("Subtract", [seen, ir.const(background)], names="left")
        ir.result(left)
        return ir.save(tmp_path)

    direct = deconv_ir.load(network(np.float32([0])), accuracy="direct", warn=False)
    exact = direct.run(x)["left"]
    path = network(exact - np.float32(1e-3))
    direct = deconv_ir.load(path, accuracy="direct", warn=False)
    dumps = direct.run(x, outputs=["seen", "left"])
    fast = deconv_ir.load(path, warn=False)
    if np.array_equal(fast.run(x)["left"], dumps["left"]):
        pytest.skip("Winograd is not used here")
    found = deconv_ir.diff(path, None, x, against=dumps).culprit
    assert found is not None
    assert found.tensor.name == "left"
    assert found.hint == "accuracy='direct' agrees: the differences are those of Winograd"
    np.save(tmp_path / "x.npy", x)
    folder = tmp_path / "dumps"
    folder.mkdir()
    for name, array in dumps.items():
        np.save(folder / f"{name}.npy", array)
    command = ("diff", path, "--input", tmp_path / "x.npy", "--against", folder)
    text = "  --accuracy direct agrees: the differences are those of Winograd\n"
    assert text in invoke_script(*command).stdout
    assert invoke_script(*command, "--accuracy", "direct").exit_code == 0

    dumps["left"][0, 0, 0, 0] += 1  # a fault that direct sums have, too
    found = deconv_ir.diff(path, None, x, against=dumps).culprit
    assert found is not None
    assert found.hint.startswith("accuracy='direct' leaves 1 of the ")
    found = deconv_ir.diff(path, None, x, against=dumps | {"left": dumps["left"] + 1}).culprit
    assert found is not None
    assert found.hint == ""


def test_dumps_of_inputs_and_constants(original: Path, values: dict[str, Any]) -> None:
    """A dump of an input shows that the other tool was given something else."""
    weights = Edit(original).array("up/w").copy()
    found = deconv_ir.diff(original, None, X, against=values | {"x": X, "up/w": weights})
    assert found.equal
    assert [tensor.name for tensor in found.tensors] == ["x", *TENSORS]
    assert list(found.unmatched) == ["up/w"]
    found = deconv_ir.diff(original, None, X, against={"x": X + 1, "enc": values["enc"] + 1})
    assert found.culprit is not None
    assert found.culprit.sentence() == (
        "The error appears first in 'x' (Parameter, id 0): it is an input, and another array was "
        "given."
    )


def test_sides_without_a_common_tensor_are_refused(original: Path) -> None:
    with pytest.raises(deconv_ir.InputError, match="no tensor in common"):
        deconv_ir.diff(original, None, X, against={"z": X})


def test_semantics_on_the_two_sides(tmp_path: Path) -> None:
    """semantics.md: for output_shape inputs with auto_pad, runtime and documents differ."""
    ir = IR()
    x = ir.parameter("x", "1,2,5")
    w = ir.const(np.arange(12, dtype=np.float32).reshape(2, 2, 3), "w")
    shape = ir.const(np.array([9]), "shape")
    window = {"strides": "2", "dilations": "1", "pads_begin": "0", "pads_end": "0"}
    up = ir.layer("ConvolutionBackpropData", [x, w, shape], window, name="up")
    ir.result(up, "y")
    path = ir.save(tmp_path)
    data = np.ones((1, 2, 5), np.float32)
    found = deconv_ir.diff(path, path, data, other_semantics="openvino")
    assert not found.differences
    assert found.culprit is not None
    assert found.culprit.tensor.name == "up"
    assert "spec [1], openvino [0]" in found.culprit.pads


@pytest.mark.parametrize("layer", ["enc", "mid/bn", "skip", "up", "pool", "soft"])
def test_bisection_finds_the_layer(original: Path, layer: str) -> None:
    """The tool computes one layer wrongly, wherever it is in the part that the tool runs."""
    runs = []

    def tool(path: Path, arrays: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        runs.append(path)
        edit = Edit(path)
        if all(found.get("name") != layer for found in edit.root.iter("layer")):
            return deconv_ir.load(path).run(arrays)
        edit.insert("Sin", "wrong", layer)
        model = deconv_ir.load(edit.save(path.with_name("wrong.xml")), warn=False)
        wanted = deconv_ir.load(path, warn=False).outputs
        return dict(zip(wanted, model.run(arrays).values(), strict=True))

    found = deconv_ir.bisect(original, tool, X)
    assert found.culprit is not None
    assert found.culprit.tensor.name == layer
    assert len(runs) <= 6  # of 14 layers: the whole, then 4 or 5 halvings


def test_bisection_of_equal_tools(original: Path) -> None:
    found = deconv_ir.bisect(original, lambda path, arrays: deconv_ir.load(path).run(arrays), X)
    assert found.equal
    assert found.culprit is None
    assert (found.layers[1], found.matched) == (0, 0)  # the tool's layers are unknown


def test_bisection_does_not_convert_inputs(original: Path) -> None:
    with pytest.raises(deconv_ir.InputError, match="takes f32, the array is f64"):
        deconv_ir.bisect(original, lambda path, arrays: {}, np.asarray(X, np.float64))


def test_a_tool_that_forgets_an_output(original: Path) -> None:
    with pytest.raises(deconv_ir.InputError, match="no array for 'soft'"):
        deconv_ir.bisect(original, lambda path, arrays: {}, X)


def test_tensors_are_freed_as_they_are_compared(tmp_path: Path) -> None:
    ir = IR()
    at = ir.parameter("x", "1,262144")
    for _ in range(40):
        at = ir.layer("Sin", [at])
    ir.result(at, "y")
    path = ir.save(tmp_path)
    x = np.ones((1, 262144), np.float32)
    peak = traced_peak(lambda: deconv_ir.diff(path, path, x), times=1)
    assert peak < 24 * x.nbytes  # in total less than 80 tensors of this size, plus f64 blocks


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "requires a second model"),
        ({"against": "tensorrt"}, "openvino, onnxruntime or arrays"),
        ({"against": {}}, "requires inputs"),
        ({"b": "b.xml", "against": {}}, "no second model"),
        ({"against": {}, "ignore": ["colour"]}, "no aspect 'colour'"),
    ],
)
def test_arguments_that_do_not_fit(original: Path, arguments: dict, words: str) -> None:
    with pytest.raises(deconv_ir.SettingError, match=words):
        deconv_ir.diff(original, **arguments)


def test_other_inputs(original: Path, tmp_path: Path) -> None:
    other = deconvolution_ir().save(tmp_path)
    with pytest.raises(deconv_ir.InputError, match="takes shape"):
        deconv_ir.diff(original, other, X)


def dumped(*names: str, wrong: str) -> Callable[[Path, Path], dict[str, Any]]:
    """Return the arguments of a comparison with dumps of these tensors, one of them wrong."""

    def arguments(original: Path, folder: Path) -> dict[str, Any]:
        found = deconv_ir.load(original).run(X, outputs=names)
        return {"b": None, "against": {n: a + (n == wrong) for n, a in found.items()}}

    return arguments


def edited(change: Callable[[Edit], object]) -> Callable[[Path, Path], dict[str, Any]]:
    """Return the arguments of a comparison with a changed model."""

    def arguments(original: Path, folder: Path) -> dict[str, Any]:
        edit = Edit(original)
        change(edit)
        return {"b": edit.save(folder / "b.xml")}

    return arguments


def quantize(edit: Edit) -> None:
    """Store the weights of 'up' as integers, which two layers make others of."""
    weights = edit.array("up/w")
    scale = np.abs(weights).max() / 100
    edit.replace("up/w", np.round(weights / scale).astype(np.int8), "i8")
    edit.layer("up/w").find("output/port").set("precision", "I8")
    edit.layer("up/w").set("name", "up/w/integers")
    edit.insert("Convert", "up/w/floats", "up/w/integers", destination_type="f32")
    edit.insert("Abs", "up/w", "up/w/floats")


def rewire(edit: Edit) -> None:
    """Make another tensor the data of 'up'."""
    source = edit.layer("enc/relu")
    port = source.find("output/port").get("id")
    edit.into("up").attrib.update({"from-layer": source.get("id"), "from-port": port})


@pytest.mark.parametrize(
    ("arguments", "layer", "first", "reason"),
    [
        (dumped("skip", "up", wrong="up"), "up", True, "its inputs agree"),
        (
            dumped("skip", "enc/relu", wrong="skip"),
            "skip",
            False,
            "nothing between 'enc/relu' and it",
        ),
        (dumped("skip", "enc/relu", "mid/clamp", wrong="skip"), "skip", True, "its inputs agree"),
        (dumped("soft", wrong="soft"), "soft", False, "nothing between 'x' and it"),
        (
            dumped("enc", "mid/bn", "up", wrong="up"),
            "up",
            False,
            "nothing between 'enc', 'mid/bn' and it",
        ),
        (dumped("enc", "enc/relu", wrong="enc"), "enc", True, "its inputs agree"),
        (
            edited(lambda e: e.insert("Sin", "new", "skip")),
            "up",
            False,
            "nothing between 'skip' and it",
        ),
        (
            edited(lambda e: e.set("up", pads_begin="0,0", pads_end="2,2")),
            "up",
            True,
            "its inputs agree",
        ),
        (
            edited(lambda e: e.array("up/w").fill(3)),
            "up",
            True,
            "its inputs agree, except for constants",
        ),
        (edited(quantize), "up", True, "its inputs agree, except for constants"),
        (edited(rewire), "up", False, "it has other inputs in B"),
    ],
)
def test_what_is_said_about_the_inputs_of_the_first_tensor_that_differs(
    original: Path,
    tmp_path: Path,
    arguments: Callable[[Path, Path], dict[str, Any]],
    layer: str,
    first: bool,
    reason: str,
) -> None:
    culprit = deconv_ir.diff(original, inputs=X, **arguments(original, tmp_path)).culprit
    assert culprit is not None
    assert culprit.tensor.name == layer
    assert (culprit.first, culprit.reason.removesuffix(" was compared")) == (first, reason)
    where = "first in" if first else "in or before"
    assert culprit.sentence().startswith(f"The error appears {where} '{layer}' (")
