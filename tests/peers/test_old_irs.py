"""IRs of version 2 to 7, upgraded: OpenVINO computes what we do, and torch."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from formats.openvino_legacy.published import FILES, Published
from formats.openvino_legacy.rows import ROWS
from formats.openvino_legacy.rows.row import Row, identify, network_of
from formats.openvino_legacy.test_iterators import GIVEN_STATES, iterator
from formats.openvino_legacy.test_published import images
from formats.openvino_legacy.test_reading import X, expected, with_mean_images

import deconv_ir

from .old_networks import NETWORKS, build
from .runtimes import ov

pytestmark = pytest.mark.peers

CORE = ov.Core()
EXACT = {"INFERENCE_PRECISION_HINT": "f32"}


def upgraded(old: Path) -> tuple[deconv_ir.Model, ov.CompiledModel]:
    """Load an old IR, and compile its upgrade with OpenVINO."""
    new = old.with_name("new.xml")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = deconv_ir.load(old, semantics="openvino")
    deconv_ir.save(model, new)
    return model, CORE.compile_model(new, "CPU", EXACT)


def compare(model: deconv_ir.Model, compiled: ov.CompiledModel, given: dict) -> dict:
    """Run both; return the results of ours by name."""
    ours = model.run(given)
    theirs = compiled(given)
    assert [output.any_name for output in compiled.outputs] == list(ours)
    assert {port.any_name for port in compiled.inputs} == set(given)
    for name, array in ours.items():
        assert array.shape == theirs[name].shape
        np.testing.assert_allclose(array, theirs[name], 2e-4, 2e-4)
    return ours


@pytest.mark.parametrize("row", ROWS, ids=identify)
def test_layer(row: Row, tmp_path: Path) -> None:
    ir, given = network_of(row)
    compare(*upgraded(ir.write(tmp_path)), given)


def test_tensor_iterator(tmp_path: Path) -> None:
    compare(*upgraded(iterator().write(tmp_path)), GIVEN_STATES)


@pytest.mark.parametrize("make", FILES, ids=lambda make: make.__name__)
def test_published_file(make: Callable[[], Published], tmp_path: Path) -> None:
    model, compiled = upgraded(make().write(tmp_path))
    compare(model, compiled, images(model))


@pytest.mark.parametrize("precision", ["FP16", "FP32"])
def test_mean_images(precision: str, tmp_path: Path) -> None:
    ir, images = with_mean_images(precision)
    ours = compare(*upgraded(ir.write(tmp_path)), {"x": X + images})
    np.testing.assert_allclose(ours["act"], expected(), 1e-4, 1e-5)


@pytest.mark.parametrize(
    ("model", "version", "precision", "act"),
    NETWORKS,
    ids=lambda value: getattr(value, "__name__", str(value)),
)
def test_network(model: object, version: int, precision: str, act: str, tmp_path: Path) -> None:
    """The upgraded file gives the same in ours, OpenVINO and torch."""
    network = build(model, version, precision, act)
    ours = compare(*upgraded(network.ir.write(tmp_path)), network.given)
    assert set(ours) == set(network.expected)
    for name, array in network.expected.items():
        np.testing.assert_allclose(ours[name], array, 2e-4, 2e-4)
