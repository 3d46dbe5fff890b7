"""Model.reshape and OpenVINO's: the same outputs, and the same networks refused."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import deconv_ir
from deconv_ir.ir.shapes import intersect, parse_shape

ov = pytest.importorskip(
    "openvino", reason="OpenVINO cannot be imported: install the `peers` extra"
)
torch = pytest.importorskip("torch", reason="torch cannot be imported: install the `peers` extra")

from .architectures import NETWORKS, Network  # noqa: E402 - after the skip
from .test_networks import convert  # noqa: E402

pytestmark = pytest.mark.peers

Dims = tuple[int, ...]

CHANGES: dict[str, Callable[[Dims], Dims]] = {
    "batch": lambda s: (3 * s[0], *s[1:]),
    "double": lambda s: (*s[:2], *(2 * d for d in s[2:])),
    "odd": lambda s: (*s[:2], *(d + 1 for d in s[2:])),
    "both": lambda s: (2 * s[0], s[1], *(2 * d for d in s[2:])),
    "dynamic": lambda s: (-1, s[1], *(-1 for _ in s[2:])),
}


def reshape_with_openvino(path: Path, shapes: list[Dims]) -> list[str] | None:
    """Return the shapes of the outputs; None if a layer does not fit."""
    model = ov.Core().read_model(path)
    try:
        model.reshape({model.inputs[i]: ov.PartialShape(list(s)) for i, s in enumerate(shapes)})
    except RuntimeError:
        return None
    return [str(output.partial_shape) for output in model.outputs]


def run_with_openvino(path: Path, arrays: list[np.ndarray]) -> list[np.ndarray]:
    """Return the outputs, computed in f32."""
    compiled = ov.compile_model(path, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
    return list(compiled(arrays).values())


@pytest.mark.parametrize("network", NETWORKS, ids=str)
def test_networks(network: Network, tmp_path: Path) -> None:
    path = convert(network, tmp_path, half=False, dynamic=False)
    for name, change in CHANGES.items():
        shapes = [change(tuple(shape)) for shape in network.shapes]
        expected = reshape_with_openvino(path, shapes)
        model = deconv_ir.load(path, warn=False)
        try:
            changed = model.reshape(dict(zip(model.inputs, shapes, strict=True)))
        except deconv_ir.ShapeError:
            assert expected is None, name
            continue
        assert expected is not None, name
        for port, text in zip(changed.outputs.values(), expected, strict=True):
            theirs = parse_shape(text.replace(" ", ""))
            if name == "dynamic":  # this library's intervals are narrower
                assert intersect(port.shape, theirs) == port.shape
            else:
                assert port.shape == theirs, name
        if name == "both":  # the saved file is read by OpenVINO, and computes the same
            deconv_ir.save(changed, tmp_path / "saved.xml")
            rng = np.random.default_rng(0)
            arrays = [rng.standard_normal(shape).astype(np.float32) for shape in shapes]
            results = run_with_openvino(tmp_path / "saved.xml", arrays)
            for mine, theirs in zip(changed.run(arrays).values(), results, strict=True):
                scale = float(np.abs(theirs).max()) or 1.0
                np.testing.assert_allclose(mine, theirs, rtol=0, atol=1e-4 * scale)


class Attention(torch.nn.Module):  # type: ignore[misc]
    """Its shapes are constants, as a static export has them."""

    def __init__(self) -> None:
        super().__init__()
        self.qkv, self.out = torch.nn.Linear(8, 24), torch.nn.Linear(8, 8)

    def forward(self, x: Any) -> Any:
        q, k, v = self.qkv(x).reshape(1, 6, 3, 2, 4).permute(2, 0, 3, 1, 4).unbind(0)
        y = torch.softmax(q @ k.transpose(-1, -2), -1) @ v
        return self.out(y.transpose(1, 2).reshape(1, 6, 8))


class Flat(torch.nn.Module):  # type: ignore[misc]
    """A classifier with a flattening whose batch is constant."""

    def __init__(self, pattern: tuple[int, ...]) -> None:
        super().__init__()
        self.conv, self.fc = torch.nn.Conv2d(3, 4, 3, padding=1), torch.nn.Linear(64, 5)
        self.pattern = pattern

    def forward(self, x: Any) -> Any:
        return self.fc(self.conv(x).reshape(1, 4, 16).softmax(2).reshape(self.pattern))


@pytest.mark.parametrize(
    ("module", "shape"),
    [(Attention(), (1, 6, 8)), (Flat((1, 64)), (1, 3, 4, 4)), (Flat((1, -1)), (1, 3, 4, 4))],
    ids=["attention", "flat", "flat-1"],
)
def test_a_constant_batch_that_openvino_refuses(module: Any, shape: Dims, tmp_path: Path) -> None:
    """The batch runs as its images do one by one, here and in OpenVINO on the saved file."""
    example = torch.zeros(shape)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = ov.convert_model(module.eval(), example_input=example, input=[shape])
    ov.save_model(model, tmp_path / "m.xml", compress_to_fp16=False)
    larger = (3, *shape[1:])
    assert reshape_with_openvino(tmp_path / "m.xml", [larger]) is None
    ours = deconv_ir.load(tmp_path / "m.xml", warn=False).reshape(larger)
    deconv_ir.save(ours, tmp_path / "saved.xml")
    x = np.random.default_rng(0).standard_normal(larger).astype(np.float32)
    with torch.no_grad():
        expected = np.concatenate([module(torch.from_numpy(row[None])).numpy() for row in x])
    (mine,) = ours.run(x).values()
    np.testing.assert_allclose(mine, expected, rtol=0, atol=1e-5)
    (theirs,) = run_with_openvino(tmp_path / "saved.xml", [x])
    np.testing.assert_allclose(theirs, expected, rtol=0, atol=1e-5)
