"""A new weights file with only the constants of a graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from deconv_ir.ir.dtypes import ElementType
from deconv_ir.ir.graph import Graph, Info, Layer
from deconv_ir.ir.operation import ConstantSource
from deconv_ir.ops import find_operation
from deconv_ir.ops.base import parse_attributes
from deconv_ir.ops.constants.constant import Const

_CHUNK = 1 << 20


class Packer:
    """Assigns places in a new weights file to constants; equal ranges share one.

    Attributes
    ----------
    size : int
        Bytes of the new file so far.
    """

    def __init__(self, weights: ConstantSource | None) -> None:
        self.weights = weights
        self.size = 0
        self._placed: dict[tuple[int, int], int] = {}
        self._types: dict[tuple[int, int], ElementType] = {}

    def pack(self, graph: Graph) -> Graph:
        """Return the graph with the places of its constants in the new file."""
        return graph.replace(layers=tuple(map(self.place, graph.layers)))

    def place(self, layer: Layer) -> Layer:
        """Give the constants of a layer, and of its bodies, places in the new file."""
        operation = layer.operation
        if isinstance(operation, Const) and operation.element_type is not None:
            changes = self._changes(operation, layer.name)
            return layer._replace(
                operation=operation.replace(**changes),
                attributes=_written(layer.attributes, changes),
            )
        return layer._replace(extras=tuple(map(self._place_within, layer.extras)))

    def _place_within(self, info: Info) -> Info:
        """Do the same for the layers in an element that is written as it was read: a body."""
        children = tuple(map(self._place_within, info.children))
        named = dict(info.attributes)
        if info.tag == "layer" and find_operation(named["type"], named.get("version")) is Const:
            name = named.get("name", "")
            children = tuple(self._place_data(c, name) if c.tag == "data" else c for c in children)
        return info._replace(children=children)

    def _place_data(self, data: Info, name: str) -> Info:
        constant, errors = parse_attributes(Const, dict(data.attributes))
        for error in errors:
            raise error
        if not isinstance(constant, Const) or constant.element_type is None:
            return data
        return data._replace(attributes=_written(data.attributes, self._changes(constant, name)))

    def _changes(self, constant: Const, name: str) -> dict[str, int]:
        assert constant.element_type is not None
        size = constant.element_type.size_of(constant.check())
        if not constant.element_type.bits:  # strings have no fixed size
            size = constant.size
        self.note(name, constant.element_type, size)
        key = (constant.offset, size)
        if key not in self._placed:
            self._placed[key] = self.size
            self._types[key] = constant.element_type
            self.size += size
        return {"offset": self._placed[key], "size": size}

    def note(self, name: str, element_type: ElementType, size: int) -> None:
        """Take note of a constant that gets a place."""

    def chunks(self) -> Iterator[bytes | memoryview]:
        """Iterate over the bytes of the new weights file, in chunks."""
        if self.weights is None:
            return
        for number, ((offset, size), element_type) in enumerate(self._types.items()):
            yield from self.data(number, offset, size, element_type)

    def data(
        self, number: int, offset: int, size: int, element_type: ElementType
    ) -> Iterator[bytes | memoryview]:
        """Iterate over the bytes of the constants at one place."""
        assert self.weights is not None
        for at in range(0, size, _CHUNK):
            yield self.weights.read(offset + at, min(_CHUNK, size - at))


def _written(
    attributes: Sequence[tuple[str, str]], changes: Mapping[str, int]
) -> tuple[tuple[str, str], ...]:
    """Return the attributes of a layer with some values changed."""
    return tuple((dict(attributes) | {k: str(value) for k, value in changes.items()}).items())
