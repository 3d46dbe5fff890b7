"""Planted differences: each is found in the right layer, and no other is reported."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest
from edited import Edit, build

import deconv_ir


class Planted(NamedTuple):
    """A change, the expected report, and the layer whose output shows the change first."""

    plant: Callable[[Edit], object]
    expected: tuple[tuple[str, str], ...]
    culprit: str | None = None
    """None: the tensors stay the same, or the model with the change has none."""


def attribute(layer: str, culprit: str | None = None, **values: str) -> Planted:
    expected = tuple(("attribute", layer) for _ in values)
    return Planted(lambda edit: edit.set(layer, **values), expected, culprit)


def change(name: str, edit_array: Callable[[np.ndarray], object], culprit: str) -> Planted:
    return Planted(lambda edit: edit_array(edit.array(name)), (("weights", name),), culprit)


def rename(layer: str) -> Planted:
    return Planted(lambda edit: edit.layer(layer).set("name", "other"), (("names", layer),))


def assign(index: object, factor: float) -> Callable[[np.ndarray], object]:
    def do(array: np.ndarray) -> None:
        array[index] = array[index] * np.float32(factor)  # type: ignore[index]

    return do


def swap(array: np.ndarray) -> None:
    array[:] = np.swapaxes(array, 0, 1).copy()


def to_f16(name: str) -> Callable[[Edit], None]:
    """Store a constant as f16 behind a Convert, as OpenVINO compresses it."""

    def do(edit: Edit) -> None:
        edit.replace(name, edit.array(name).astype(np.float16), "f16")
        edit.layer(name).find("output/port").set("precision", "FP16")
        edit.layer(name).set("name", f"{name}_compressed")
        edit.insert("Convert", name, f"{name}_compressed", destination_type="f32")

    return do


def retarget(layer: str, port: int, source: str) -> Callable[[Edit], None]:
    def do(edit: Edit) -> None:
        other = edit.layer(source)
        edit.into(layer, port).set("from-layer", other.get("id"))
        edit.into(layer, port).set("from-port", other.find("output/port").get("id"))

    return do


def declare(layer: str, dim: str) -> Callable[[Edit], None]:
    def do(edit: Edit) -> None:
        edit.layer(layer).findall("output/port/dim")[-1].text = dim

    return do


def note(layer: str) -> Callable[[Edit], None]:
    def do(edit: Edit) -> None:
        info = edit.layer(layer).makeelement("rt_info")
        edit.layer(layer).insert(1, info)
        entry = info.makeelement("attribute", {"name": "fused_names", "version": "0"})
        info.append(entry)

    return do


ONE_SIDE = {"pads_begin": "0,0", "pads_end": "2,2"}
TABLE = {
    "stride of a deconvolution": attribute("up", "up", strides="2,1"),
    "dilation of a deconvolution": attribute("up", "up", dilations="1,2"),
    "pad at one end": attribute("up", "up", pads_end="1,2"),
    "pads exchanged between begin and end": attribute("enc", "enc", **ONE_SIDE),
    "pads of the deconvolution exchanged": attribute("up", "up", **ONE_SIDE),
    "output padding": attribute("up", "up", output_padding="1,0"),
    "automatic pads": attribute("mid", None, auto_pad="same_upper"),
    "automatic pads with another result": attribute("mid", None, auto_pad="valid"),
    "stride that does not fit the join": attribute("pool", None, strides="1,1"),
    "window of pooling": attribute("pool", "pool", kernel="1,1"),
    "rounding of pooling": attribute("pool", None, rounding_type="ceil"),
    "epsilon": attribute("mid/bn", "mid/bn", epsilon="0.1"),
    "lower end of a clamp": attribute("mid/clamp", "mid/clamp", min="-1"),
    "upper end of a clamp": attribute("mid/clamp", "mid/clamp", max="1"),
    "slope": attribute("elu", "elu", alpha="0.9"),
    "axis of a softmax": attribute("soft", "soft", axis="2"),
    "axis of a concat": attribute("join", None, axis="3"),
    "weights of a convolution scaled by 1.001": change("enc/w", assign(..., 1.001), "enc"),
    "weights of a deconvolution scaled by 1.001": change("up/w", assign(..., 1.001), "up"),
    "one weight": change("mid/w", assign((3, 2, 1, 0), 2), "mid"),
    "one filter is zero": change("mid/w", assign(5, 0), "mid"),
    "channels of square weights exchanged": change("mid/w", swap, "mid"),
    "channels of a deconvolution exchanged": change("up/w", swap, "up"),
    "taps reversed": change("up/w", lambda a: a.__setitem__(..., a[..., ::-1].copy()), "up"),
    "filters in another order": change(
        "enc/w", lambda a: a.__setitem__(..., a[::-1].copy()), "enc"
    ),
    "NaN in the weights": change("mid/w", assign((0, 0, 0, 0), np.nan), "mid"),
    "infinity in the weights": change("mid/w", assign((0, 0, 0, 0), np.inf), "mid"),
    "bias": change("enc/b", assign((0, 3), -1), "enc/bias"),
    "statistics": change("mid/bn/v", assign(2, 1.01), "mid/bn"),
    "scale off by 1e-3": change("scale/c", assign(..., 1.001), "scale"),
    "order of axes": change("order", lambda a: a.__setitem__(..., [0, 1, 2, 3]), "turn"),
    "weights as f16": Planted(to_f16("mid/w"), (("weights", "mid/w"),), "mid"),
    "bias as f16": Planted(to_f16("enc/b"), (("weights", "enc/b"),)),
    "layer removed": Planted(lambda e: e.remove("mid/clamp"), (("removed", "mid/clamp"),), "skip"),
    "activation removed": Planted(lambda e: e.remove("elu"), (("removed", "elu"),), "turn"),
    "layer with a constant removed": Planted(
        lambda e: e.remove("scale"), (("removed", "scale"), ("removed", "scale/c")), "join"
    ),
    "layer inserted": Planted(
        lambda e: e.insert("Sigmoid", "extra", "up"), (("added", "extra"),), "pool"
    ),
    "layer inserted that changes nothing": Planted(
        lambda e: e.insert("ReLU", "extra", "enc/relu"), (("added", "extra"),)
    ),
    "second layer of a type inserted": Planted(
        lambda e: e.insert("Elu", "extra", "elu", alpha="1"), (("added", "extra"),), "turn"
    ),
    "layer renamed": rename("mid"),
    "constant renamed": rename("up/w"),
    "input renamed": rename("x"),
    "output renamed": rename("y"),
    "type of an activation": Planted(
        lambda e: e.layer("enc/relu").set("type", "Sigmoid"), (("type", "enc/relu"),), "enc/relu"
    ),
    "edge moved": Planted(retarget("skip", 0, "mid/bn"), (("edge", "skip"),), "skip"),
    "skip connection moved": Planted(retarget("skip", 1, "mid/clamp"), (("edge", "skip"),), "skip"),
    "declared shape": Planted(declare("up", "25"), (("shape", "up"),)),
    "declared type": Planted(
        lambda e: e.layer("elu").find("output/port").set("precision", "FP16"), (("shape", "elu"),)
    ),
    "rt_info": Planted(note("up"), (("rt_info", "up"),)),
    "version without a difference": Planted(
        lambda e: e.layer("soft").set("version", "opset8"), (("version", "soft"),)
    ),
    "other default of another version": Planted(
        lambda e: e.layer("pool").set("version", "opset14"), (("version", "pool"),)
    ),
}


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("original"))


def name_of(label: str) -> str:
    return label.split("'")[1]


@pytest.mark.parametrize("planted", TABLE.values(), ids=TABLE.keys())
def test_structure(planted: Planted, original: Path, tmp_path: Path) -> None:
    edit = Edit(original)
    planted.plant(edit)
    found = deconv_ir.diff(original, edit.save(tmp_path / "changed.xml"))
    reported = [(d.aspect.value, name_of(d.layer)) for d in found.differences]
    assert sorted(reported) == sorted(planted.expected)
    assert not found.equal


BEHAVIOUR = {name: planted for name, planted in TABLE.items() if planted.culprit}


@pytest.mark.parametrize("planted", BEHAVIOUR.values(), ids=BEHAVIOUR.keys())
def test_behaviour(planted: Planted, original: Path, tmp_path: Path) -> None:
    edit = Edit(original)
    planted.plant(edit)
    changed = edit.save(tmp_path / "changed.xml")
    x = np.random.default_rng(0).standard_normal((1, 4, 12, 12)).astype(np.float32)
    found = deconv_ir.diff(original, changed, x)
    assert found.culprit is not None
    assert name_of(found.culprit.tensor.layer) == planted.culprit
    before = [t for t in found.tensors if t.layer == found.culprit.tensor.layer]
    assert not before[0].within


def test_equal_models_have_no_difference(original: Path) -> None:
    x = np.random.default_rng(0).standard_normal((1, 4, 12, 12)).astype(np.float32)
    found = deconv_ir.diff(original, original, x)
    assert found.equal
    assert found.culprit is None
    assert len(found.tensors) == 14
    assert all(t.largest == 0 and t.rms == 0 for t in found.tensors)
