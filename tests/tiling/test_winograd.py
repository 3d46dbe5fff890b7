"""Tiles of layers that use Winograd have the same bits as the whole: they share its windows."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pytest
from support import IR
from tiling.exactness import in_tiles, is_exact, whole
from tiling.random_networks import Network

import deconv_ir
from deconv_ir.ir.boxes import whole_box
from deconv_ir.kernels import kernel_info
from deconv_ir.operations import Whole

pytestmark = pytest.mark.skipif(
    not kernel_info().available, reason="Winograd is part of the compiled kernel"
)


@pytest.fixture
def everywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """Choose Winograd wherever possible, whatever its cost."""
    monkeypatch.setenv("DECONV_IR_KERNEL", "winograd")


def winograd_runs(run: deconv_ir.TiledRun) -> list[Whole]:
    """Return the run that decides the bits of a layer's tiles, for each layer with Winograd."""
    choices = [step.algorithm for step in run.tile(whole_box(run.shape)).plan.steps]
    return [choice.whole for choice in choices if choice is not None and choice.whole is not None]


GEOMETRIES = [
    (kind, kernel, stride, dilation)
    for kind, kernel, stride, dilation in itertools.product(
        ["Convolution", "ConvolutionBackpropData"], [2, 3, 4, 5, 6], [1, 2, 3], [1, 2]
    )
    if stride == 1 or (kind != "Convolution" and stride <= kernel <= 3 * stride and dilation == 1)
]


@pytest.mark.usefixtures("everywhere")
@pytest.mark.parametrize(("kind", "kernel", "stride", "dilation"), GEOMETRIES)
def test_layers_behind_one_another(kind: str, kernel: int, stride: int, dilation: int) -> None:
    numbers = np.random.default_rng(kernel)
    ir = IR()
    shape = (1, 9, 23, 13) if stride == 1 else (1, 9, 4, 5)
    x = ir.parameter("x", ",".join(map(str, shape)))
    attributes = {
        "strides": f"{stride},{stride}",
        "dilations": f"{dilation},1",
        "pads_begin": "1,2",
        "pads_end": "2,0",
    }
    for _ in range(2):
        filter_ = numbers.standard_normal((9, 9, kernel, 3)).astype(np.float32)
        x = ir.layer("ReLU", [ir.layer(kind, [x, ir.const(filter_)], attributes)])
    ir.result(x)
    model = deconv_ir.load(ir.xml().encode(), bytes(ir.weights), warn=False)
    assert len(winograd_runs(model.tiled())) == 2
    data = numbers.standard_normal(shape).astype(np.float32)
    # Windows with elements as large as these are summed directly.
    uneven = np.where(numbers.random(shape) < 0.02, 1e4 * data, data)
    for given, tile in ((data, (11, 9) if kernel % 2 else (1, 13)), (uneven, (5, 4))):
        expected = whole(model, {"x": given})
        assert is_exact(in_tiles(model, {"x": given}, tile), expected), tile


def upsampling(extents: Sequence[int], strides: Sequence[int], pad: int = 0) -> deconv_ir.Model:
    """Build a transposed convolution whose kernel is its stride, as in a U-Net."""
    rank = len(extents)
    filter_ = np.random.default_rng(0).standard_normal((9, 9, *strides)).astype(np.float32)
    ir = IR()
    x = ir.parameter("x", ",".join(map(str, (1, 9, *extents))))
    pads = ",".join([str(pad)] * rank)
    attributes = {"strides": ",".join(map(str, strides)), "dilations": ",".join("1" * rank)}
    attributes |= {"pads_begin": pads, "pads_end": pads}
    ir.result(ir.layer("ConvolutionBackpropData", [x, ir.const(filter_)], attributes))
    return deconv_ir.load(ir.xml().encode(), bytes(ir.weights), warn=False)


@pytest.mark.usefixtures("everywhere")
@pytest.mark.parametrize("pad", [0, 1])
@pytest.mark.parametrize("strides", [(2, 2), (3, 2), (2, 2, 2)], ids=str)
def test_windows_of_one_tap_stand_alone(strides: tuple[int, ...], pad: int) -> None:
    """An output depends on one position of the data; neighbouring positions are not read."""
    extents = (4, 5, 4)[: len(strides)]
    model = upsampling(extents, strides, pad)
    run = model.tiled()
    (decisive,) = winograd_runs(run)
    assert not any(decisive.margins)
    if not pad:
        box = (*whole_box((1, 9)), *((2 * n, 4 * n) for n in strides))
        assert run.tile(box).inputs["x"][2:] == ((2, 4),) * len(strides)
    numbers = np.random.default_rng(1)
    data = numbers.standard_normal((1, 9, *extents)).astype(np.float32)
    uneven = np.where(numbers.random(data.shape) < 0.05, 1e4 * data, data)
    for given, tile in ((data, (5, 4, 3)), (uneven, (1, 1, 1))):
        expected = whole(model, {"x": given})
        assert is_exact(in_tiles(model, {"x": given}, tile[: len(strides)]), expected), tile


@pytest.mark.usefixtures("everywhere")
@pytest.mark.parametrize("seed", range(12))
def test_random_networks(seed: int) -> None:
    network = Network(seed)
    model, x = network.model(accuracy="fast"), network.input()
    expected = whole(model, {"x": x})
    for extent in (3, 6):
        found = in_tiles(model, {"x": x}, [extent] * (expected.ndim - 2))
        assert is_exact(found, expected), extent


def test_a_layer_of_many_channels_as_a_cost_model_chooses() -> None:
    """With other algorithms for tiles than for the whole, the error once exceeded 1e-6."""
    numbers = np.random.default_rng(0)
    ir = IR()
    x = ir.parameter("x", "1,64,60,62")
    pads = {"pads_begin": "1,1", "pads_end": "1,1", "strides": "1,1", "dilations": "1,1"}
    for _ in range(2):
        filter_ = numbers.standard_normal((64, 64, 3, 3)).astype(np.float32)
        x = ir.layer("Convolution", [x, ir.const(filter_)], pads)
    ir.result(x)
    model = deconv_ir.load(ir.xml().encode(), bytes(ir.weights), warn=False)
    data = numbers.standard_normal((1, 64, 60, 62)).astype(np.float32)
    expected = whole(model, {"x": data})
    for tile in ((17, 62), (5, 31)):
        assert is_exact(in_tiles(model, {"x": data}, tile), expected)
