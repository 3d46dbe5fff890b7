"""Whole networks: converted by OpenVINO in four variants, every output compared.

If an output differs, every inner tensor is compared, and the first layer that differs is named.
"""

from __future__ import annotations

import functools
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import deconv_ir
from deconv_ir.ops.normalization.normalization import MVN6

ov = pytest.importorskip(
    "openvino", reason="OpenVINO cannot be imported: install the `peers` extra"
)
torch = pytest.importorskip("torch", reason="torch cannot be imported: install the `peers` extra")

from .architectures import NETWORKS, Network  # noqa: E402 - after the skip
from .float64 import measure_errors  # noqa: E402
from .inner import assert_outputs, explain_difference  # noqa: E402

pytestmark = pytest.mark.peers

# Largest error over a network, relative to the output's scale (issue 6, 'Truth').
TOLERANCE = 1e-4


@functools.cache
def traced(network: Network) -> Any:
    """Convert a network from torch, once."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ov.convert_model(network.module(), example_input=tuple(network.inputs()))


def convert(network: Network, folder: Path, *, half: bool, dynamic: bool) -> Path:
    """Save a network as OpenVINO converts it from torch."""
    model = traced(network).clone()
    for parameter, shape, axes in zip(model.inputs, network.shapes, network.dynamic, strict=True):
        dims = [-1 if dynamic and i in axes else d for i, d in enumerate(shape)]
        parameter.get_node().set_partial_shape(ov.PartialShape(dims))
    model.validate_nodes_and_infer_types()
    path = folder / f"{network.name}.xml"
    ov.save_model(model, path, compress_to_fp16=half)
    return path


@pytest.mark.parametrize("dynamic", [False, True], ids=["static", "dynamic"])
@pytest.mark.parametrize("half", [False, True], ids=["fp32", "fp16"])
@pytest.mark.parametrize("network", NETWORKS, ids=str)
def test_network(network: Network, half: bool, dynamic: bool, tmp_path: Path) -> None:
    path = convert(network, tmp_path, half=half, dynamic=dynamic)
    assert_outputs(path, [x.numpy() for x in network.inputs(seed=2)], TOLERANCE)


@pytest.mark.parametrize("network", NETWORKS, ids=str)
def test_network_against_torch(network: Network, tmp_path: Path) -> None:
    """Torch's result is a second reference."""
    path = convert(network, tmp_path, half=False, dynamic=True)
    inputs = network.inputs(seed=3)
    with torch.no_grad():
        expected = network.module()(*inputs)
    expected = expected if isinstance(expected, tuple) else (expected,)
    ours = deconv_ir.load(path).run([x.numpy() for x in inputs])
    for mine, theirs in zip(ours.values(), expected, strict=True):
        scale = float(theirs.abs().max())
        np.testing.assert_allclose(mine, theirs.numpy(), rtol=0, atol=TOLERANCE * scale)


@pytest.mark.parametrize("network", NETWORKS, ids=str)
def test_errors_are_within_the_bounds_of_docs_numerics(network: Network, tmp_path: Path) -> None:
    """Errors against float64 are compared with OpenVINO's own errors."""
    path = convert(network, tmp_path, half=False, dynamic=False)
    errors = measure_errors(network.module(), path, network.inputs(seed=4))
    assert errors.within_bounds, errors


def test_the_layer_that_differs_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One operation is wrong on purpose."""
    network = next(n for n in NETWORKS if n.name == "unet-3d")
    path = convert(network, tmp_path, half=False, dynamic=False)
    arrays = [x.numpy() for x in network.inputs()]
    assert explain_difference(path, arrays, TOLERANCE).startswith("no inner tensor differs")
    right = MVN6.function

    def wrong(self: Any, shape: tuple[int, ...], *others: Any) -> Any:
        found = right(self, shape, *others)
        factor = np.float32(1.001 if shape[1] == 8 else 1)
        return lambda data, out: found(data, out) * factor

    monkeypatch.setattr(MVN6, "function", wrong)
    with pytest.raises(AssertionError, match=r"differs is .*b\.1/.*\(MVN, id \d+\): differs by"):
        assert_outputs(path, arrays, TOLERANCE)
