"""Quantised tensors whose elements are a few levels apart: values on a rounding boundary."""

from __future__ import annotations

from collections.abc import Mapping

from deconv_ir.compare.evaluate import Evaluator
from deconv_ir.compare.network import Network
from deconv_ir.compare.tensors import TensorDifference, absolute_errors
from deconv_ir.ir.dtypes import Array
from deconv_ir.ops.quantization.quantize import FakeQuantize

_SLACK = 1e-3
"""Share of a level by which the arithmetic of both sides may miss it."""


def judge_levels(
    network: Network,
    inputs: Mapping[int, Array],
    index: int,
    found: TensorDifference,
    arrays: tuple[Array, Array],
    levels: int,
) -> TensorDifference:
    """Return a difference, within the tolerance if no element is more than `levels` levels apart.

    Parameters
    ----------
    network : Network
        The first model.
    inputs : mapping
        The arrays of its Parameters.
    index : int
        A layer of it.
    found : TensorDifference
        The difference of its output.
    arrays : tuple of ndarray
        The output in both models.
    levels : int
    """
    import numpy as np

    step = _step(network, inputs, index, arrays[0])
    if found.within or step is None or arrays[0].shape != arrays[1].shape:
        return found
    error = absolute_errors(*(x.astype(np.float64) for x in arrays))
    if not bool((error <= (levels + _SLACK) * step).all()):
        return found
    count = found.outside
    elements = f"{count} element{'' if count == 1 else 's'}"
    most = "one level" if levels == 1 else f"at most {levels} levels"
    return found._replace(within=True, outside=0, first=None, note=f"{elements} {most} apart")


def _step(
    network: Network, inputs: Mapping[int, Array], index: int, output: Array
) -> Array | float | None:
    """Return the distance of two levels, for each element; None for other layers."""
    import numpy as np

    layer = network.layer(index)
    operation = layer.operation
    if layer.type == "Quantize" and output.dtype.kind in "iu":
        return 1.0
    sources = network.graph.topology.sources[index]
    if not isinstance(operation, FakeQuantize) or None in sources:
        return None
    ends = [source for source in sources[3:5] if source is not None]
    if any(source[0] not in network.constant_layers for source in ends):
        return None
    low, high = (Evaluator(network, inputs, [layer]).take(layer)[port] for layer, port in ends)
    aligned = operation.aligned([output, low, low, low, high])
    spread = np.abs(aligned[4].astype(np.float64) - aligned[3].astype(np.float64))
    step: Array = spread / (operation.levels - 1)
    return step
