"""A layer of an IR, as the rules that write oneDNN Graph operations see it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from deconv_ir.errors import UnsupportedError
from deconv_ir.ir.dtypes import F32
from deconv_ir.ir.graph import Graph, Layer
from deconv_ir.ir.operation import Context, TensorInfo


class Feed(NamedTuple):
    """An input of an operation.

    Attributes
    ----------
    reference : int
        Id of the tensor; for a constant that is not used yet, -1 - its layer.
    info : TensorInfo
    shape : tuple of int, or None
        The shape with which a constant is written; None: its own.
    """

    reference: int
    info: TensorInfo
    shape: tuple[int, ...] | None = None


Write = Callable[[str, str, Sequence[Feed], TensorInfo, Mapping[str, Any]], int]


class LayerWriter(NamedTuple):
    """A layer to be written.

    Attributes
    ----------
    layer : Layer
    feeds : sequence of Feed
    result : TensorInfo
        Of its output.
    context : Context
    write : callable
        Writes an operation from name, kind, inputs, output and attributes; returns the id of the
        output.
    """

    layer: Layer
    feeds: Sequence[Feed]
    result: TensorInfo
    context: Context
    write: Write
    fill: Callable[[tuple[int, ...], float], int]
    """Makes a constant of one number, and returns its reference."""
    graph: Graph

    @property
    def operation(self) -> Any:
        """The layer's operation."""
        return self.layer.operation

    def emit(
        self, kind: str, attributes: Mapping[str, Any], feeds: Sequence[Feed] | None = None
    ) -> None:
        """Write the operation that makes the layer's output."""
        inputs = self.feeds if feeds is None else feeds
        self.write(self.layer.name, kind, inputs, self.result, attributes)

    def step(
        self, kind: str, feeds: Sequence[Feed], result: TensorInfo, attributes: Mapping[str, Any]
    ) -> Feed:
        """Write an operation before the one that makes the layer's output; return its output."""
        return Feed(self.write(self.layer.name, kind, feeds, result, attributes), result)

    def filled(self, shape: tuple[int, ...], value: float) -> Feed:
        """Return a constant of one number."""
        return Feed(self.fill(shape, value), TensorInfo(shape, F32))

    def scalar(self, value: float, rank: int | None = None) -> Feed:
        """Return a constant of one element, of the rank of the result by default."""
        return self.filled((1,) * (len(self.result.shape or ()) if rank is None else rank), value)

    def source(self, layer: Layer) -> Layer | None:
        """Return the layer that computes the first input of a layer."""
        index = self.graph.layers.index(layer)
        found = self.graph.topology.sources[index][0] if layer.inputs else None
        return None if found is None else self.graph.layers[found[0]]

    def is_read(self, output: int) -> bool:
        """Whether another layer reads an output of the layer."""
        index = self.graph.layers.index(self.layer)
        return any((index, output) in row for row in self.graph.topology.sources)

    def refuse(self, what: str) -> UnsupportedError:
        """Return the error for a form that oneDNN Graph does not support."""
        return UnsupportedError(f"{self.layer.type} {what} has no counterpart")


Rule = Callable[[LayerWriter], None]
