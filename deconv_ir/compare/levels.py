"""Quantised tensors whose elements are a few levels apart: values on a rounding boundary."""

from __future__ import annotations

from collections.abc import Mapping

from deconv_ir.compare.evaluate import Evaluator
from deconv_ir.compare.network import Network
from deconv_ir.compare.tensors import TensorDifference, absolute_errors
from deconv_ir.ir.dtypes import Array, ElementType
from deconv_ir.ops.quantization.quantize import FakeQuantize

_SLACK = 1e-3
"""Share of a level by which the arithmetic of both sides may miss it."""
_QUANTIZE = ("Quantize", "DynamicQuantize")
"""Kinds of oneDNN Graph whose outputs are levels."""


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
    if found.within or arrays[0].shape != arrays[1].shape:
        return found
    apart = _levels_apart(network, inputs, index, arrays)
    if apart is None or not bool((apart <= levels + _SLACK).all()):
        return found
    count = found.outside
    elements = f"{count} element{'' if count == 1 else 's'}"
    most = "one level" if levels == 1 else f"at most {levels} levels"
    return found._replace(within=True, outside=0, first=None, note=f"{elements} {most} apart")


def _levels_apart(
    network: Network, inputs: Mapping[int, Array], index: int, arrays: tuple[Array, Array]
) -> Array | None:
    """Return the distance of each two elements in levels; None for other layers."""
    import numpy as np

    operation = network.layer(index).operation
    if isinstance(operation, FakeQuantize):
        step = _step(operation, network, inputs, index, arrays[0])
        if step is None:
            return None
        error = absolute_errors(*(x.astype(np.float64) for x in arrays))
        with np.errstate(all="ignore"):
            return np.where(error == 0, 0.0, error / step)
    if network.layer(index).type not in _QUANTIZE:
        return None
    stored: ElementType | None = getattr(operation, "output_type", None)
    if stored is not None and stored.is_float:
        return absolute_errors(*(_codes(x, stored) for x in arrays))
    return absolute_errors(*(x.astype(np.float64) for x in arrays))


def _codes(array: Array, stored: ElementType) -> Array:
    """Number the values of a type of 8 bits in order; NaN for those that it does not have."""
    import numpy as np

    values = array.astype(stored.numpy())
    bits = values.view(np.uint8)
    size = (bits & 0x7F).astype(np.float64)
    codes: Array = np.where(bits & 0x80, -size, size)
    real = array.astype(np.float64)
    codes[~np.isfinite(real) | (values.astype(np.float64) != real)] = np.nan
    return codes


def _step(
    operation: FakeQuantize,
    network: Network,
    inputs: Mapping[int, Array],
    index: int,
    output: Array,
) -> Array | None:
    """Return the distance of two levels, for each element; None if it is not constant."""
    import numpy as np

    sources = network.graph.topology.sources[index]
    if None in sources:
        return None
    ends = [source for source in sources[3:5] if source is not None]
    if any(source[0] not in network.constant_layers for source in ends):
        return None
    low, high = (Evaluator(network, inputs, [layer]).take(layer)[port] for layer, port in ends)
    aligned = operation.aligned([output, low, low, low, high])
    spread = np.abs(aligned[4].astype(np.float64) - aligned[3].astype(np.float64))
    step: Array = spread / (operation.levels - 1)
    return step
