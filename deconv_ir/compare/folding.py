"""Detection of batch normalisation that only one model has folded into its weights."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from deconv_ir.compare.matching import Matching
from deconv_ir.compare.network import Network, StoredConstant
from deconv_ir.compare.weights import largest_difference
from deconv_ir.ir.dtypes import Array
from deconv_ir.ir.shapes import static
from deconv_ir.ops.convolution.dims import OUTPUT_CHANNEL_AXES

_TOLERANCE = 2e-3
"""Tolerance of folded weights, relative to the largest: they may have been rounded to f16."""


class Folded(NamedTuple):
    """Layers of the two models that are equivalent, but split differently."""

    at_a: int
    at_b: int
    """The convolution in each model."""
    steps_a: tuple[int, ...]
    steps_b: tuple[int, ...]
    """The per-channel layers after it in each."""
    constants_a: tuple[int, ...]
    constants_b: tuple[int, ...]
    """Their constants, and the weights, in each."""
    message: str


def tensor_pairs(pairs: Mapping[int, int], folded: Sequence[Folded]) -> dict[int, int]:
    """Return the pairs of layers whose outputs must be equal: for folded ones, the last layers."""
    found = dict(pairs)
    for fold in folded:
        chain_a, chain_b = (fold.at_a, *fold.steps_a), (fold.at_b, *fold.steps_b)
        for index in chain_a:
            found.pop(index, None)
        for index in [i for i, j in found.items() if j in chain_b]:
            del found[index]
        found[chain_a[-1]] = chain_b[-1]
    return found


class _Affine(NamedTuple):
    """A convolution and the per-channel layers that follow: weights, factor and addend."""

    weights: StoredConstant
    scale: Array
    shift: Array
    steps: tuple[int, ...]
    constants: tuple[int, ...]


def find_folded(a: Network, b: Network, matching: Matching) -> list[Folded]:
    """Find convolutions that differ only in how a per-channel factor and addend are applied."""
    import numpy as np

    found = []
    for i, j in matching.pairs.items():
        axes = OUTPUT_CHANNEL_AXES.get(a.layer(i).type)
        if axes is None or a.layer(i).type != b.layer(j).type:
            continue
        with np.errstate(all="ignore"):
            left, right = _affine(a, i, axes), _affine(b, j, axes)
        if left is None or right is None:
            continue
        type_names = [[n.layer(k).type for k in x.steps] for n, x in ((a, left), (b, right))]
        if type_names[0] == type_names[1]:
            continue
        if left.weights.operation.shape != right.weights.operation.shape:
            continue
        error = _difference(a, left, b, right, axes)
        if error > _TOLERANCE:
            continue
        normalises = (
            "BatchNormInference" in type_names[1] and "BatchNormInference" not in type_names[0]
        )
        network, apart, side = (b, right, "A") if normalises else (a, left, "B")
        names = ", ".join(network.layer(step).label for step in apart.steps) or "nothing"
        message = (
            f"{names} {'are' if len(apart.steps) > 1 else 'is'} folded into its weights in {side}; "
            f"the factors and addends agree to {error:.1e} of their scale"
        )
        chains = (left.steps, right.steps, left.constants, right.constants)
        found.append(Folded(i, j, *chains, message))
    return found


def _affine(network: Network, index: int, axes: tuple[int, ...]) -> _Affine | None:
    """Follow a convolution with constant weights through the per-channel layers after it."""
    import numpy as np

    row = network.sources[index]
    if len(row) < 2 or row[1] is None or row[1][0] not in network.constants:
        return None
    weights = network.constants[row[1][0]]
    extents = static(weights.operation.shape)
    if len(extents) <= max(axes):
        return None
    channels = math.prod(extents[k] for k in axes)
    # Weights with groups have one axis more than data.
    rank = len(extents) + 1 - len(axes)
    scale, shift = np.ones(channels), np.zeros(channels)
    constants, steps = [row[1][0]], []
    at = index
    while len(network.consumers[at]) == 1:
        user, port = network.consumers[at][0]
        step = _step(network, user, port, channels, rank)
        if step is None:
            break
        factor, addend, taken = step
        scale, shift = scale * factor, shift * factor + addend
        constants += taken
        steps.append(user)
        at = user
    return _Affine(weights, scale, shift, tuple(steps), tuple(constants))


def _step(
    network: Network, index: int, port: int, channels: int, rank: int
) -> tuple[Any, Any, list[int]] | None:
    """Return the factor and the addend of a per-channel layer, and its constants."""
    import numpy as np

    layer = network.layer(index)
    row = network.sources[index]
    others = [s[0] if s is not None else -1 for k, s in enumerate(row) if k != port]
    if not others or any(o not in network.constants for o in others):
        return None
    values = [network.value(network.constants[o]).astype(np.float64) for o in others]
    if layer.type == "BatchNormInference":
        if type(layer.operation).inputs[port] != "data" or any(v.size != channels for v in values):
            return None
        gamma, beta, mean, variance = (v.ravel() for v in values)
        # A negative variance gives NaN, which does not match any weights.
        factor = gamma / np.sqrt(variance + layer.operation.epsilon)  # type: ignore[attr-defined]
        return factor, beta - mean * factor, others
    value = values[0]
    if value.size > 1 and not (value.size == channels and _along_channels(value.shape, rank)):
        return None
    value = value.ravel()
    if layer.type == "Add":
        return 1.0, value, others
    if layer.type == "Multiply":
        return value, 0.0, others
    if layer.type == "Subtract" and port == 0:
        return 1.0, -value, others
    if layer.type == "Divide" and port == 0:
        return 1.0 / value, 0.0, others
    return None


def _along_channels(shape: tuple[int, ...], rank: int) -> bool:
    """Whether the elements of a constant are along axis 1 of data of this rank."""
    place = 1 + len(shape) - rank
    return place >= 0 and all(extent == 1 for k, extent in enumerate(shape) if k != place)


def _difference(
    network_a: Network, a: _Affine, network_b: Network, b: _Affine, axes: tuple[int, ...]
) -> float:
    """Return the largest difference of factors and addends, relative to their scale."""
    import numpy as np

    def scaled(network: Network, given: _Affine) -> Array:
        weights = network.value(given.weights)
        extents = [n if k in axes else 1 for k, n in enumerate(weights.shape)]
        product: Array = weights * given.scale.reshape(extents)
        return product

    with np.errstate(all="ignore"):
        pairs = (scaled(network_a, a), scaled(network_b, b)), (a.shift, b.shift)
    worst = 0.0
    for x, y in pairs:
        largest, scale, other = largest_difference(x, y)
        if other:
            worst = max(worst, largest / (scale or 1.0))
    return worst
