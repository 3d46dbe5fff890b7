"""Whether the inputs of a layer were compared, when its output is the first that differs."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import NamedTuple

from deconv_ir.compare.network import Network
from deconv_ir.compare.structure import Difference
from deconv_ir.ir.graph import Source

_LISTED = 3


class Agreement(NamedTuple):
    """What is known about the inputs of a layer whose output differs."""

    first: bool = True
    """Whether the inputs agree, so that the error appears first in this layer."""
    reason: str = "its inputs agree"


class Other(NamedTuple):
    """The second model of a comparison."""

    network: Network
    pairs: Mapping[int, int]
    """Index of a layer of the first model -> index of its partner."""
    differences: Sequence[Difference]


def judge_inputs(
    network: Network, index: int, agreeing: Collection[Source], other: Other | None
) -> Agreement:
    """Judge the inputs of a layer of the first model.

    `agreeing` are the tensors that were compared, and agree.
    """
    if index in network.inputs.parameters:
        return Agreement(True, "it is an input, and another array was given")
    known = _with_inputs(network, agreeing)
    own = _data_inputs(network, index)
    theirs: list[Source] = []
    found = set(_nearest(network, own, known.__contains__))
    direct = found == set(own)
    if other is not None and index in other.pairs:
        first_of = {b: a for a, b in other.pairs.items()}

        def partner(source: Source) -> Source | None:
            at = first_of.get(source[0])
            return (at, source[1]) if at is not None and (at, source[1]) in known else None

        theirs = _data_inputs(other.network, other.pairs[index])
        there = list(_nearest(other.network, theirs, lambda s: partner(s) is not None))
        direct = direct and set(there) == set(theirs)
        found |= {a for b in there if (a := partner(b)) is not None}
        if direct and [partner(source) for source in theirs] != own:
            return Agreement(False, "it has other inputs in B")
    if not direct:
        rank = {at: place for place, at in enumerate(network.graph.topology.order)}
        names = [network.tensor_name(s) for s in sorted(found, key=lambda s: (rank[s[0]], s[1]))]
        shown = ", ".join(map(repr, names[-_LISTED:]))
        more = f" (and {len(names) - _LISTED} more)" if len(names) > _LISTED else ""
        after = f"between {shown}{more} and it" if names else "before it"
        return Agreement(False, f"nothing {after} was compared")
    if other is not None and not _constants_agree(network, index, other):
        return Agreement(True, "its inputs agree, except for constants")
    return Agreement()


def _with_inputs(network: Network, agreeing: Collection[Source]) -> set[Source]:
    """Add the inputs of the model, for which both sides have the same arrays."""
    return {*agreeing, *((index, 0) for index in network.inputs.parameters)}


def _data_inputs(network: Network, index: int) -> list[Source]:
    """Return the sources of a layer that depend on the inputs of the model."""
    row = network.graph.topology.sources[index]
    return [s for s in row if s is not None and s[0] not in network.constant_layers]


def _nearest(
    network: Network, row: Sequence[Source], known: Callable[[Source], bool]
) -> Iterator[Source]:
    """Iterate over the last known tensors on the way to some tensors."""
    stack, seen = list(row), set(row)
    while stack:
        source = stack.pop()
        if known(source):
            yield source
            continue
        for before in _data_inputs(network, source[0]):
            if before not in seen:
                seen.add(before)
                stack.append(before)


def _constants_agree(network: Network, index: int, other: Other) -> bool:
    """Whether constant inputs of a layer, and what they are computed from, have no difference."""
    own = _constants(network, index)
    theirs = _constants(other.network, other.pairs[index])
    labels = {network.layer(i).label for i in own}
    return {other.pairs.get(i) for i in own} == theirs and not any(
        difference.layer in labels for difference in other.differences
    )


def _constants(network: Network, index: int) -> set[int]:
    """Return the layers from which the constant inputs of a layer are computed."""
    stack = [s[0] for s in network.sources[index] if s and s[0] in network.constant_layers]
    found: set[int] = set()
    while stack:
        at = stack.pop()
        if at not in found:
            found.add(at)
            stack += [s[0] for s in network.sources[at] if s is not None]
    return found
