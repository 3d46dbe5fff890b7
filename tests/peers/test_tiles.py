"""Whole networks in tiles, along all axes that can be tiled, have the same bits."""

from __future__ import annotations

from pathlib import Path

import pytest
from tiling.exactness import in_tiles, is_exact

import deconv_ir

pytest.importorskip("openvino", reason="OpenVINO cannot be imported: install the `peers` extra")
pytest.importorskip("torch", reason="torch cannot be imported: install the `peers` extra")

from .architectures import NETWORKS, Network
from .test_networks import convert

pytestmark = pytest.mark.peers

SPATIAL = {"dcgan", "unet-2d", "fcn-8s", "fcn-32s", "fsrcnn", "hifi-gan", "erfnet", "style-decoder"}
"""Networks that can be tiled along every spatial axis."""


@pytest.mark.parametrize("network", NETWORKS, ids=str)
def test_network_in_tiles(network: Network, tmp_path: Path) -> None:
    path = convert(network, tmp_path, half=False, dynamic=False)
    model = deconv_ir.load(path, accuracy="direct", warn=False)
    tensors = [x.numpy() for x in network.inputs(seed=2)]
    arrays = dict(zip(model.inputs, tensors, strict=True))
    for name, expected in model.run(arrays).items():
        tiles = model.tiled(output=name)
        free = tiles.tileable_axes
        if network.name in SPATIAL:
            assert set(range(2, expected.ndim)) <= set(free)
        tile = [max(1, 2 * n // 5) if a in free else n for a, n in enumerate(expected.shape)]
        assert is_exact(in_tiles(model, arrays, tile, name), expected)
