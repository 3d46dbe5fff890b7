"""Renamed, reordered and renumbered models."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from edited import Edit, build
from support import IR

import deconv_ir

X = np.random.default_rng(0).standard_normal((1, 4, 12, 12)).astype(np.float32)


@pytest.fixture(scope="module")
def original(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build(tmp_path_factory.mktemp("original"))


def rename_all(edit: Edit) -> None:
    for k, layer in enumerate(edit.root.iter("layer")):
        layer.set("name", f"n{(k * 7) % 26}")
        for port in layer.iter("port"):
            port.attrib.pop("names", None)


def aspects(found: deconv_ir.ModelDifference) -> set[str]:
    return {difference.aspect.value for difference in found.differences}


def test_all_layers_renamed(original: Path, tmp_path: Path) -> None:
    edit = Edit(original)
    rename_all(edit)
    renamed = edit.save(tmp_path / "renamed.xml")
    found = deconv_ir.diff(original, renamed)
    assert found.matched == found.layers[0] == found.layers[1]
    assert aspects(found) == {"names"}
    assert deconv_ir.diff(original, renamed, ignore=["names"]).equal


@pytest.mark.parametrize("layer", ["enc", "mid", "up", "elu", "soft"])
def test_all_layers_renamed_and_one_changed(original: Path, tmp_path: Path, layer: str) -> None:
    edit = Edit(original)
    line = next(k for k, x in enumerate(edit.root.iter("layer")) if x.get("name") == layer)
    data = edit.layer(layer).find("data")
    changes = {"strides": ("dilations", "1,2"), "alpha": ("alpha", "2"), "axis": ("axis", "2")}
    name, value = next(change for key, change in changes.items() if key in data.attrib)
    data.set(name, value)
    rename_all(edit)
    found = deconv_ir.diff(original, edit.save(tmp_path / "b.xml"), ignore=["names"])
    assert found.matched == found.layers[0]
    (difference,) = found.differences
    assert (difference.aspect.value, difference.message) == ("attribute", name)
    assert difference.layer.startswith(f"'{layer}' ")
    assert line is not None


def test_order_and_ids_are_compared_when_asked_for(original: Path, tmp_path: Path) -> None:
    edit = Edit(original)
    layers = edit.root.find("layers")
    layers[:] = reversed(layers)
    text = edit.save(tmp_path / "b.xml").read_text()
    text = re.sub(r'(<layer id|from-layer|to-layer)="(\d+)"', lambda m: f'{m[1]}="{m[2]}0"', text)
    (tmp_path / "b.xml").write_text(text)
    assert deconv_ir.diff(original, tmp_path / "b.xml", X).equal
    everything = deconv_ir.diff(original, tmp_path / "b.xml", ignore=())
    assert aspects(everything) == {"ids", "order"}


def test_layers_that_are_alike_keep_their_places(original: Path, tmp_path: Path) -> None:
    edit = Edit(original)
    for k in range(3):
        edit.insert("ReLU", f"relu{k}", "up")
    first = edit.save(tmp_path / "a.xml")
    edit.insert("ReLU", "one more", "relu1")
    found = deconv_ir.diff(first, edit.save(tmp_path / "b.xml"))
    assert [(d.aspect.value, d.layer.split("'")[1]) for d in found.differences] == [
        ("added", "one more")
    ]


@pytest.mark.parametrize(
    ("ignore", "left"),
    [([], {"attribute", "weights"}), (["weights"], {"attribute"}), (["attribute"], {"weights"})],
)
def test_ignored_aspects(original: Path, tmp_path: Path, ignore: list[str], left: set[str]) -> None:
    edit = Edit(original)
    edit.set("elu", alpha="2")
    edit.array("up/w")[:] *= 2
    changed = edit.save(tmp_path / "b.xml")
    assert aspects(deconv_ir.diff(original, changed, ignore=ignore)) == left


@pytest.mark.parametrize(("tolerance", "equal"), [(0, False), (0.9e-3, False), (1.1e-3, True)])
def test_weights_tolerance(original: Path, tmp_path: Path, tolerance: float, equal: bool) -> None:
    edit = Edit(original)
    edit.array("up/w")[:] *= np.float32(1.001)
    changed = edit.save(tmp_path / "b.xml")
    assert deconv_ir.diff(original, changed, weights_tolerance=tolerance).equal is equal


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda a: np.swapaxes(a, 0, 1), "axes 0 and 1 exchanged"),
        (lambda a: a[..., ::-1], "axis 3 reversed"),
        (lambda a: a * 2, "576 of 576 elements differ"),
    ],
)
def test_weights_are_described(original: Path, tmp_path: Path, change, words: str) -> None:
    edit = Edit(original)
    array = edit.array("mid/w")
    array[:] = change(array).copy()
    (found,) = deconv_ir.diff(original, edit.save(tmp_path / "b.xml")).differences
    assert words in found.message


def test_scalar_constants(tmp_path: Path) -> None:
    for name, value in (("a", 1.0), ("b", 2.0)):
        ir = IR()
        x = ir.parameter("x", "1,4")
        ir.result(ir.layer("Add", [x, ir.const(np.array(value, np.float32), "c")], name="y"))
        (tmp_path / name).mkdir()
        ir.save(tmp_path / name)
    (found,) = deconv_ir.diff(tmp_path / "a/model.xml", tmp_path / "b/model.xml").differences
    assert "1 of 1 elements differ, the largest difference is 1" in found.message


@pytest.mark.parametrize(("scaled", "moved"), [(1.0, 0.0), (1.2, 0.0), (1.0, 0.7)])
def test_folded_batch_normalisation(
    original: Path, tmp_path: Path, scaled: float, moved: float
) -> None:
    """Scale and shift by Ioffe and Szegedy 2015, section 3.1, in the weights, right or wrong."""
    edit = Edit(original)
    gamma, beta, mean, variance = (edit.array(f"mid/bn/{n}").astype(np.float64) for n in "gbmv")
    factor = gamma / np.sqrt(variance + 0.001)
    weights = edit.array("mid/w")
    weights[:] = weights * factor[:, None, None, None] * scaled
    shift = (beta - mean * factor + moved).reshape(1, 8, 1, 1).astype(np.float32)
    norm = edit.layer("mid/bn")
    norm.set("type", "Add")
    norm.remove(norm.find("data"))
    for port in norm.findall("input/port")[2:]:
        norm.find("input").remove(port)
        edges = edit.root.find("edges")
        edges.remove(edit.into("mid/bn", int(port.get("id"))))
    for name in "bmv":
        edit.root.find("layers").remove(edit.layer(f"mid/bn/{name}"))
    edit.replace("mid/bn/g", shift, "f32")
    found = deconv_ir.diff(original, edit.save(tmp_path / "b.xml"), X)
    print(found.differences)
    if (scaled, moved) != (1.0, 0.0):
        assert deconv_ir.Aspect.FOLDED not in [d.aspect for d in found.differences]
        return
    (difference,) = found.differences
    assert difference.aspect is deconv_ir.Aspect.FOLDED
    assert difference.layer.startswith("'mid' ")
    assert "'mid/bn'" in difference.message
    assert all(tensor.within for tensor in found.tensors)
    assert "mid" not in [tensor.name for tensor in found.tensors]  # only one of them computes it


@pytest.mark.parametrize(("a", "b"), [("?,3,?,?", "1,3,64,64"), ("?,3,1..8,?", "?,3,2..,?")])
def test_dynamic_shapes_are_written_as_shapes(a: str, b: str, tmp_path: Path) -> None:
    paths = []
    for name, shape in (("a", a), ("b", b)):
        ir = IR()
        ir.result(ir.layer("Abs", [ir.parameter("x", shape)], outputs=("",), name="y"), "out")
        (tmp_path / name).mkdir()
        paths.append(ir.save(tmp_path / name))
    texts = [str(difference) for difference in deconv_ir.diff(*paths).differences]
    shown = [re.search(r"shape: \[?(.*?)\]? in A, \[?(.*?)\]? in B", text) for text in texts]
    assert (a, b) in [found.groups() for found in shown if found]
