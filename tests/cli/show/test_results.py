"""Results of a run on the page: tensors, times and differences."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from deconv_cli.show.results import differences_of, draw_tensors, profile
from drawn_pictures import decoded
from support import deconvolution_ir

import deconv_ir

ROOT = Path(__file__).parents[3]
BLOCK = ROOT / "samples/block/block.xml"
MAX_BYTES = 1 << 20


@pytest.fixture
def x() -> np.ndarray:
    return np.random.default_rng(1).standard_normal((1, 8, 16, 16)).astype(np.float32)


def test_every_tensor_of_a_run_is_drawn(x: np.ndarray) -> None:
    model = deconv_ir.load(BLOCK)
    found, _ = draw_tensors(model, {"x": x}, None, MAX_BYTES)
    names = {model.graph.layers[int(key.partition(":")[0])].name for key in found}
    assert names == {"x", "up", "up/bias", "up/relu"}
    expected = model.run(x, outputs=["up"])["up"]
    (up,) = (found[key] for key in found if model.graph.layers[int(key[:-2])].name == "up")
    assert up[0]["low"] == pytest.approx(expected.min(), rel=1e-3)
    assert up[0]["high"] == pytest.approx(expected.max(), rel=1e-3)


def test_the_sum_of_all_pictures_is_bounded(x: np.ndarray) -> None:
    model = deconv_ir.load(BLOCK)
    for size in (1000, 8000, 100_000):
        found, _ = draw_tensors(model, {"x": x}, None, size)
        missing = found.pop("", 0)
        assert len(str(found)) <= size + 40 * len(found) + 10
        assert len(found) + missing == 4


def test_pictures_show_the_difference_to_another_input(x: np.ndarray) -> None:
    model = deconv_ir.load(BLOCK)
    other = x.copy()
    other[0, 0, 8, 8] += 1
    found, _ = draw_tensors(model, {"x": x}, {"x": other}, MAX_BYTES)
    titles = [[picture["title"] for picture in pictures] for pictures in found.values()]
    assert titles == [["first input", "other input", "difference"]] * 4
    difference = decoded(found["0:0"][2])
    changed = np.argwhere((difference != 126) & (difference != 254))
    assert changed.tolist() == [[9, 9]]


def test_times_of_layers(x: np.ndarray) -> None:
    model = deconv_ir.load(BLOCK)
    found = profile(model, {"x": x})
    ((index, (seconds, operations, kind, times)),) = found["layers"].items()
    assert model.graph.layers[index].name == "up"
    assert (kind, times) == ("ConvolutionBackpropData+Add+ReLU", 1)
    assert operations > 262_144
    assert 0 < seconds <= found["seconds"]
    assert found["peak"] > 1e6


def test_differences_between_models(tmp_path: Path) -> None:
    attributes = {"strides": "2,2", "pads_begin": "1,1", "pads_end": "1,1", "dilations": "1,1"}
    path = deconvolution_ir(attributes=attributes).save(tmp_path)
    text = path.read_text().replace('pads_begin="1,1"', 'pads_begin="0,0"', 1)
    text = text.replace('pads_end="1,1"', 'pads_end="2,2"', 1)
    model = deconv_ir.load(path, warn=False)
    other = deconv_ir.load(text.encode(), (tmp_path / "model.bin").read_bytes(), warn=False)
    x = np.random.default_rng(0).standard_normal((1, 2, 5, 5)).astype(np.float32)
    found = differences_of(model.graph, deconv_ir.diff(model, other, {"x": x}))
    ((index, (relative, _, within, _)),) = found["layers"].items()
    assert model.graph.layers[index].name == "up"
    assert relative > 0.1
    assert not within
    assert "'up'" in found["culprit"]
    assert any("pads_begin" in text for text in found["structure"])
