"""Errors of whole networks against torch in float64, here and in OpenVINO in f32."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import openvino as ov
import torch

import deconv_ir

__all__ = ["Errors", "measure_errors"]

LARGEST_ERROR = 2e-5
"""Bound on an error over a network, relative to the largest element of the exact output."""
LARGEST_RATIO = 4
"""Bound on an error, relative to OpenVINO's."""


class Errors(NamedTuple):
    """Largest errors over the outputs of a network, each relative to the scale of its output."""

    ours: float
    openvino: float

    @property
    def ratio(self) -> float:
        """Our error divided by OpenVINO's, which counts as at least one rounding."""
        return self.ours / max(self.openvino, float(np.finfo(np.float32).eps))

    @property
    def within_bounds(self) -> bool:
        """Return whether both bounds hold."""
        return self.ours <= LARGEST_ERROR and self.ratio <= LARGEST_RATIO


def measure_errors(module: torch.nn.Module, path: Path, inputs: Sequence[torch.Tensor]) -> Errors:
    """Run a network in torch in float64, and its IR here and with OpenVINO in f32.

    Parameters
    ----------
    module : Module
        The network, with weights of f32.
    path : Path
        The IR that OpenVINO converted it to, in f32.
    inputs : sequence of Tensor
        f32.
    """
    with torch.no_grad():
        exact = copy.deepcopy(module).double()(*(x.double() for x in inputs))
    expected = [t.numpy() for t in (exact if isinstance(exact, tuple) else (exact,))]
    arrays = [x.numpy() for x in inputs]
    settings = {"INFERENCE_PRECISION_HINT": "f32"}
    theirs = ov.Core().compile_model(path, "CPU", settings)(arrays)
    ours = deconv_ir.load(path).run(arrays)
    return Errors(_error(list(ours.values()), expected), _error(list(theirs.values()), expected))


def _error(found: Sequence[np.ndarray], expected: Sequence[np.ndarray]) -> float:
    """Return the largest error relative to the scale; NaN where one is found."""
    pairs = zip(found, expected, strict=True)
    return float(np.max([np.abs(x - y).max() / np.abs(y).max() for x, y in pairs]))
