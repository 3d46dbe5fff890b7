"""Find where two runs of a network diverge, by comparing every inner tensor with OpenVINO's."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

import deconv_ir
from deconv_ir.ir.graph import Layer

from .runtimes import ov

__all__ = ["assert_outputs", "difference", "explain_difference"]

_LEFT_OUT = ("Const", "Parameter", "Result")


def assert_outputs(path: Path, arrays: Sequence[np.ndarray], tolerance: float) -> None:
    """Run an IR here and with OpenVINO; where outputs differ, name the first layer that does.

    Parameters
    ----------
    path : Path
        The .xml file.
    arrays : sequence of ndarray
        Its inputs, in order.
    tolerance : float
        Largest error, relative to the largest element.
    """
    expected = _run_openvino(ov.Core().read_model(path), arrays)
    found = list(deconv_ir.load(path, strict=True).run(arrays).values())
    assert len(found) == len(expected)
    reasons = [difference(*pair, tolerance) for pair in zip(found, expected, strict=True)]
    if any(reasons):
        raise AssertionError(
            f"{path.name}: output {next(i for i, r in enumerate(reasons) if r)} "
            f"{next(filter(None, reasons))}; {explain_difference(path, arrays, tolerance)}"
        )


def difference(found: np.ndarray, expected: np.ndarray, tolerance: float) -> str | None:
    """Describe how an array differs from the expected one, or return None."""
    if found.shape != expected.shape or found.dtype != expected.dtype:
        return (
            f"is {found.dtype}{list(found.shape)}, expected {expected.dtype}{list(expected.shape)}"
        )
    if not expected.size or np.array_equal(found, expected):
        return None
    error = float(np.abs(found.astype(np.float64) - expected.astype(np.float64)).max())
    scale = float(np.abs(expected.astype(np.float64)).max())
    # Written so that NaN counts as a difference.
    return None if error <= tolerance * scale else f"differs by {error:.3g}, of scale {scale:.3g}"


def explain_difference(path: Path, arrays: Sequence[np.ndarray], tolerance: float) -> str:
    """Compare every inner tensor, in topological order; name the first layer that differs."""
    model = deconv_ir.load(path)
    graph = model.graph
    layers = [graph.layers[i] for i in graph.topology.order]
    layers = [layer for layer in layers if layer.type not in _LEFT_OUT]
    expected = _inner_tensors(path, arrays, layers)
    found = model.run(arrays, outputs=[layer.name for layer in layers])
    for layer in layers:
        reason = _first_difference(layer, found, expected, tolerance)
        if reason:
            return f"the first layer that differs is {layer.label}: {reason}"
    # Nothing is fused if every tensor is requested, so request them one by one.
    for layer in layers:
        alone = model.run(arrays, outputs=[layer.name])
        reason = _first_difference(layer, alone, expected, tolerance)
        if reason:
            return (
                f"with what is fused and overwritten before it, the first layer that differs "
                f"is {layer.label}: {reason}"
            )
    return "no inner tensor differs when it is taken out"


def _first_difference(
    layer: Layer,
    found: dict[str, np.ndarray],
    expected: dict[str, np.ndarray],
    tolerance: float,
) -> str | None:
    for name in _names(layer):
        reason = difference(found[name], expected[name], tolerance)
        if reason:
            return reason
    return None


def _names(layer: Layer) -> list[str]:
    """Return the names under which `Model.run` returns the outputs of a layer."""
    count = len(layer.outputs)
    return [layer.name] if count == 1 else [f"{layer.name}.{i}" for i in range(count)]


def _inner_tensors(
    path: Path, arrays: Sequence[np.ndarray], layers: Sequence[Layer]
) -> dict[str, np.ndarray]:
    """Run an IR with OpenVINO, with the outputs of each layer as Results."""
    model = ov.Core().read_model(path)
    nodes = {node.get_friendly_name(): node for node in model.get_ordered_ops()}
    for layer in layers:
        model.add_outputs([nodes[layer.name].output(i) for i in range(len(layer.outputs))])
    # OpenVINO does not add a second output for a tensor that already was one.
    sources = [output.get_node().input_value(0) for output in model.outputs]
    results = {
        (source.get_node().get_friendly_name(), source.get_index()): array
        for source, array in zip(sources, _run_openvino(model, arrays), strict=True)
    }
    return {
        name: results[layer.name, i] for layer in layers for i, name in enumerate(_names(layer))
    }


def _run_openvino(model: Any, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    settings = {"INFERENCE_PRECISION_HINT": "f32"}
    results = ov.Core().compile_model(model, "CPU", settings)(list(arrays))
    return [np.array(results[i]) for i in range(len(model.outputs))]
