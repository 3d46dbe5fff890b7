"""Who is right: differences with a known culprit, planted in the tensors of either side.

The wrong tool is this library with a changed model; the exact tensors are those of the model that
is judged.  Differences that need a runtime are in tests/peers/test_verdict.py.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from edited import Edit, build
from support import IR

import deconv_ir
from deconv_ir.ir.operation import Operation
from deconv_ir.ops.examples import OperationExample
from tests.test_float64 import EXAMPLES, network

X = np.random.default_rng(0).standard_normal((1, 4, 12, 12)).astype(np.float32)
TENSORS = ["enc", "enc/bias", "enc/relu", "mid", "mid/bn", "mid/clamp", "skip", "up"]
TENSORS += ["pool", "elu", "turn", "scale", "join", "soft"]

Tensors = dict[str, np.ndarray]


class Fault(NamedTuple):
    """A change to the model of the wrong tool, and the layer that it changes."""

    plant: Callable[[Edit], object]
    layer: str


def attribute(layer: str, **values: str) -> Fault:
    return Fault(lambda edit: edit.set(layer, **values), layer)


def constant(name: str, change: Callable[[np.ndarray], object], layer: str) -> Fault:
    return Fault(lambda edit: change(edit.array(name)), layer)


def put(index: object, value: float) -> Callable[[np.ndarray], object]:
    return lambda array: array.__setitem__(index, value)


def reorder(change: Callable[[np.ndarray], np.ndarray]) -> Callable[[np.ndarray], object]:
    return lambda array: array.__setitem__(..., change(array).copy())


FAULTS = {
    "pads of a convolution at one end": attribute("enc", pads_begin="0,0", pads_end="2,2"),
    "pads of a deconvolution at one end": attribute("up", pads_begin="0,0", pads_end="2,2"),
    "stride of a pooling": attribute("pool", kernel="1,1"),
    "epsilon": attribute("mid/bn", epsilon="0.002"),
    "upper end of a clamp": attribute("mid/clamp", max="5.999"),
    "slope": attribute("elu", alpha="1.001"),
    "axis of a softmax": attribute("soft", axis="2"),
    "another activation": Fault(
        lambda edit: edit.layer("enc/relu").set("type", "Sigmoid"), "enc/relu"
    ),
    "one weight": constant("mid/w", put((3, 2, 1, 0), 2.0), "mid"),
    "weights scaled by 1.001": constant("up/w", reorder(lambda w: w * np.float32(1.001)), "up"),
    "taps reversed": constant("up/w", reorder(lambda w: w[..., ::-1]), "up"),
    "channels exchanged": constant("mid/w", reorder(lambda w: np.swapaxes(w, 0, 1)), "mid"),
    "bias of one channel": constant("enc/b", put((0, 3), -1.0), "enc/bias"),
    "variance of one channel": constant("mid/bn/v", put(2, 3.0), "mid/bn"),
    "order of axes": constant("order", put(..., [0, 1, 2, 3]), "turn"),
    "one NaN among the weights": constant("mid/w", put((0, 0, 0, 0), np.nan), "mid"),
    "one infinity among the weights": constant("mid/w", put((0, 0, 0, 0), np.inf), "mid"),
}


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("original"))


@pytest.fixture(scope="module")
def right(original: Path) -> Tensors:
    return deconv_ir.load(original).run(X, outputs=TENSORS)


def verdict_on(original: Path, a: Tensors, b: Tensors) -> deconv_ir.ModelVerdict:
    found = deconv_ir.diff(original, None, X, against=(a, b), verdict=True)
    assert found.verdict is not None
    return found.verdict


@pytest.mark.parametrize("side", [0, 1], ids=["A", "B"])
@pytest.mark.parametrize("fault", FAULTS.values(), ids=FAULTS.keys())
def test_the_side_and_the_layer_are_found(
    fault: Fault, side: int, original: Path, right: Tensors, tmp_path: Path
) -> None:
    edit = Edit(original)
    fault.plant(edit)
    wrong = deconv_ir.load(edit.save(tmp_path / "changed.xml"), warn=False)
    dumps = [right, right]
    dumps[side] = wrong.run(X, outputs=TENSORS)
    verdict = verdict_on(original, *dumps)
    assert verdict.wrong_sides == ("AB"[side],)
    assert [layer.layer_name for layer in verdict.layers if layer.wrong] == [fault.layer]
    said = f"{'AB'[side]} is wrong in layer '{fault.layer}' ("
    assert verdict.sentence.startswith(said), verdict.sentence
    assert verdict.sentence.endswith(f"{'BA'[side]} is right.")


def test_one_element_counts(original: Path, right: Tensors) -> None:
    """A NaN that was a number; the exact value is that of the other side."""
    wrong = {name: array.copy() for name, array in right.items()}
    wrong["pool"][0, 5, 3, 7] = np.nan
    verdict = verdict_on(original, right, wrong)
    layer = verdict.first
    assert layer is not None
    assert (layer.layer_name, layer.b.at, layer.b.wrong) == ("pool", (0, 5, 3, 7), 1)
    assert np.isnan(layer.b.value)
    assert layer.b.exact == right["pool"][0, 5, 3, 7]
    # The layer after it got the NaN, and no longer has one.
    assert [layer.layer_name for layer in verdict.layers if layer.wrong] == ["pool", "elu"]


def test_a_difference_is_split_into_local_and_inherited(original: Path, right: Tensors) -> None:
    """The bias is off by 1; a convolution with weights w makes of it an error of sum(w)."""
    edit = Edit(original)
    edit.array("enc/b")[...] += 1
    wrong = deconv_ir.load(edit.save(original.parent / "bias.xml")).run(X, outputs=TENSORS)
    layers = {layer.layer_name: layer for layer in verdict_on(original, right, wrong).layers}
    assert layers["enc"].difference == 0
    bias = layers["enc/bias"]
    assert bias.inherited == 0
    assert bias.b.local == pytest.approx(bias.difference)
    assert bias.difference == pytest.approx(1 / np.abs(right["enc/bias"]).max(), rel=1e-3)
    middle = layers["mid"]
    exact = np.abs(wrong["mid"].astype(float) - right["mid"]).max() / np.abs(right["mid"]).max()
    assert middle.inherited == pytest.approx(exact, rel=1e-3)
    assert max(middle.a.local, middle.b.local) < 1e-5
    assert middle.amplification == pytest.approx(exact / layers["enc/relu"].difference, rel=1e-3)


def test_a_layer_without_tensors_before_it_is_computed_from_the_last_ones(
    original: Path, right: Tensors
) -> None:
    """Only two tensors are known: the fault lies between them."""
    edit = Edit(original)
    edit.set("mid/bn", epsilon="0.1")
    wrong = deconv_ir.load(edit.save(original.parent / "eps.xml")).run(X, outputs=TENSORS)
    few = [{name: dump[name] for name in ("enc/relu", "pool")} for dump in (right, wrong)]
    verdict = verdict_on(original, *few)
    assert verdict.wrong_sides == ("B",)
    assert verdict.first is not None
    assert verdict.first.layer_name == "pool"
    assert verdict_on(original, few[0], few[0]).wrong_sides == ()


@pytest.mark.parametrize(("operation", "example"), EXAMPLES)
def test_no_operation_is_called_wrong_in_its_own_type(
    operation: type[Operation], example: OperationExample, tmp_path: Path
) -> None:
    """Each operation's example, computed in f32 or f16, is within its allowance."""
    path, given = network(operation, example, tmp_path)
    if not given:
        pytest.skip("without inputs, nothing is compared")
    verdict = deconv_ir.diff(path, path, given, verdict=True).verdict
    assert verdict is not None
    assert verdict.wrong_sides == (), verdict.sentence
    if operation.allowance is not Operation.allowance:
        assert all(layer.a.right for layer in verdict.layers)


@pytest.mark.parametrize(
    ("place", "element", "right"), [(6, 5, True), (6, 4, True), (6, 6, False), (7, 4, False)]
)
def test_elements_that_are_nearest_by_rounding(
    place: int, element: int, right: bool, tmp_path: Path
) -> None:
    """Interpolate-4, asymmetric, floor: output 6 of 36 is at 6 / 1.2 = 5 of 30, or just below it.

    Output 7 is at 5.83 of the data.
    """
    ir = IR()
    others = [np.array([36]), np.float32([1.2]), np.array([3])]
    data = [ir.parameter("x", "1,1,1,30"), *map(ir.const, others)]
    attributes = {"mode": "nearest", "shape_calculation_mode": "sizes", "nearest_mode": "floor"}
    attributes["coordinate_transformation_mode"] = "asymmetric"
    ir.result(ir.layer("Interpolate", data, attributes, name="resize", version="opset4"), "y")
    x = np.arange(30, dtype=np.float32).reshape(1, 1, 1, 30)
    found = np.arange(36, dtype=np.float32) * 5 // 6
    found[place] = element
    given = {"resize": found.reshape(1, 1, 1, 36)}
    verdict = deconv_ir.diff(ir.save(tmp_path), None, x, against=given, verdict=True).verdict
    assert verdict is not None
    assert (verdict.wrong_sides == ()) is right, verdict.sentence
