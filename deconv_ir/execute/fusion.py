"""Search for layers that a kernel can fuse: additions, an activation, its scale and offset."""

from collections.abc import Sequence
from typing import NamedTuple

from deconv_ir.ir.graph import Graph, Source
from deconv_ir.ir.operation import Infos
from deconv_ir.ir.shapes import element_count, is_static, static
from deconv_ir.ops.convolution.fusing import is_activation


class Followers(NamedTuple):
    """The chain of only consumers of a layer that can be fused into it."""

    layers: tuple[int, ...]
    """The layers, in order."""
    addend: Source | None
    """The constant of the addition."""
    tensor: Source | None
    """Another tensor that is added after the constant; it is computed before the layer runs."""
    activation: int | None
    """The activation layer."""
    parameters: tuple[Source, ...]
    """The constant inputs of the activation."""
    scale: Source | None = None
    offset: Source | None = None
    """Constants that multiply the activation's result, and that are added to it."""

    def shortened(self) -> "Followers | None":
        """Return the followers without the last one; None if that leaves none."""
        if len(self.layers) == 1:
            return None
        if self.scale is not None or self.offset is not None:
            count = sum(source is not None for source in (self.scale, self.offset))
            return self._replace(layers=self.layers[:-count], scale=None, offset=None)
        tensor = None if self.activation is None else self.tensor
        return Followers(self.layers[:-1], self.addend, tensor, None, ())

    @property
    def constants(self) -> tuple[Source, ...]:
        """All constants."""
        others = (self.addend, self.scale, self.offset)
        return (*self.parameters, *(source for source in others if source is not None))


def find_followers(
    graph: Graph,
    order: Sequence[int],
    constant: frozenset[int],
    wanted: Sequence[Source],
    infos: Sequence[Infos],
    *,
    tensors: bool,
) -> dict[int, Followers]:
    """Find the layers whose only consumer is an addition or an activation.

    The layer's operation decides whether its kernel can fuse them.  With `tensors`, an addition of
    another tensor with the shape and type of the layer's output is included.
    """
    sources = graph.topology.sources
    consumers: dict[Source, list[int]] = {}
    for index in order:
        for source in sources[index]:
            if source is not None:
                consumers.setdefault(source, []).append(index)
    kept = set(wanted)
    place = {index: at for at, index in enumerate(order)}

    def consumer(index: int) -> tuple[int, tuple[Source, ...]] | None:
        """Return the only consumer of a layer and its other inputs."""
        found = consumers.get((index, 0), [])
        if len(found) != 1 or (index, 0) in kept:
            return None
        others = tuple(s for s in sources[found[0]] if s is not None and s != (index, 0))
        return (found[0], others) if len(others) + 1 == len(sources[found[0]]) else None

    def follower(index: int) -> tuple[int, tuple[Source, ...]] | None:
        """Return the only consumer of a layer and its other inputs, if those are constant."""
        found = consumer(index)
        return None if found is None or any(s[0] not in constant for s in found[1]) else found

    def adds(index: int) -> bool:
        return graph.layers[index].operation.is_sum

    def added(index: int, layer: int) -> tuple[int, Source] | None:
        """Return the addition of another tensor after a layer, if it is computed in time."""
        found = consumer(index) if tensors else None
        if found is None or not adds(found[0]) or len(found[1]) != 1:
            return None
        at, (other,) = found
        info, given = infos[at][0], infos[other[0]][other[1]]
        if other[0] in constant or place[other[0]] > place[layer] or not is_static(info.shape):
            return None
        same = given.shape == info.shape == infos[index][0].shape
        return (at, other) if same and given.element_type is info.element_type else None

    def affine(index: int, *, scales: bool) -> tuple[int, Source] | None:
        """Return a multiplication by a number, or an addition of one, and the number."""
        found = follower(index)
        if found is None or len(found[1]) != 1:
            return None
        at, (number,) = found
        operation = graph.layers[at].operation
        if not (operation.is_product if scales else operation.is_sum):
            return None
        shape = infos[number[0]][number[1]].shape
        is_number = is_static(shape) and element_count(static(shape)) == 1
        same = infos[at][0].shape == infos[index][0].shape
        return (at, number) if same and is_number else None

    chains: dict[int, Followers] = {}
    for index in order:
        operation = graph.layers[index].operation
        if index in constant or not operation.can_be_fused:
            continue
        layers: list[int] = []
        addend = None
        following = follower(index)
        if following is not None and adds(following[0]) and len(following[1]) == 1:
            layers.append(following[0])
            (addend,) = following[1]
            following = follower(following[0])
        tensor = None
        addition = added(layers[-1] if layers else index, index)
        if addition is not None:
            layers.append(addition[0])
            tensor = addition[1]
            following = follower(addition[0])
        activation: int | None = None
        parameters: tuple[Source, ...] = ()
        if following is not None and _activates(graph, layers[-1] if layers else index, following):
            activation, parameters = following
            layers.append(activation)
        numbers: dict[bool, Source] = {}
        for scales in (True, False) if activation is not None else ():
            scaling = affine(layers[-1], scales=scales)
            if scaling is not None:
                layers.append(scaling[0])
                numbers[scales] = scaling[1]
        if layers:
            chains[index] = Followers(
                tuple(layers), addend, tensor, activation, parameters,
                numbers.get(True), numbers.get(False),
            )  # fmt: skip
    return chains


def _activates(graph: Graph, index: int, following: tuple[int, tuple[Source, ...]]) -> bool:
    """Whether a layer is an activation of another, which is its first input."""
    at, _ = following
    first = graph.topology.sources[at][0]
    return is_activation(graph.layers[at].operation) and first == (index, 0)
