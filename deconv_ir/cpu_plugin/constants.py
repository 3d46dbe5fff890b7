"""Constants of a graph: the layers that depend on no input, and the numbers of small ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from deconv_ir.errors import DeconvError
from deconv_ir.ir.dtypes import Array
from deconv_ir.ir.graph import Graph, Source
from deconv_ir.ir.operation import Context, Infos, TensorInfo
from deconv_ir.ops.constants.constant import Const, unpack

MOST_BYTES: Final = 1 << 18
"""Maximum bytes of a constant that is read: ranges, scales and zero points."""
_MOST_STEPS: Final = 4
_SAME: Final = frozenset({"Convert", "Reshape", "Squeeze", "Unsqueeze"})
_NOT_CONSTANT: Final = frozenset(
    {"Parameter", "ReadValue", "RandomUniform", "Multinomial", "Assign"}
)


class Constants:
    """The constants of a graph.

    Parameters
    ----------
    graph : Graph
        The network.
    outputs : sequence
        The infos of each layer's outputs.
    context : Context
        The weights.
    """

    def __init__(self, graph: Graph, outputs: Sequence[Infos], context: Context) -> None:
        self._graph, self._outputs, self._context = graph, outputs, context
        sources = graph.topology.sources
        self._constant: set[int] = set()
        for index in graph.topology.order:
            layer = graph.layers[index]
            if layer.type == "Const" or (
                sources[index]
                and layer.type not in _NOT_CONSTANT
                and not layer.operation.bodies
                and all(s is not None and s[0] in self._constant for s in sources[index])
            ):
                self._constant.add(index)

    def __contains__(self, source: Source) -> bool:
        return source[0] in self._constant

    def numbers(self, source: Source) -> tuple[float, ...] | None:
        """Return the elements of a small constant, flattened; None: not known."""
        info = self.info(source)
        if info.reals is not None:
            return info.reals
        if info.value is not None and all(isinstance(x, int) for x in info.value):
            return tuple(float(x) for x in info.value if isinstance(x, int))
        for _ in range(_MOST_STEPS):
            layer = self._graph.layers[source[0]]
            if isinstance(layer.operation, Const):
                return self._read(layer.operation)
            before = self._graph.topology.sources[source[0]][:1]
            if layer.type not in _SAME or not before or before[0] is None:
                return None
            source = before[0]
        return None

    def info(self, source: Source) -> TensorInfo:
        """Return what is known about a tensor."""
        outputs = self._outputs[source[0]]
        return outputs[source[1]] if source[1] < len(outputs) else TensorInfo(None)

    def _read(self, const: Const) -> tuple[float, ...] | None:
        weights, element_type = self._context.weights, const.element_type
        if weights is None or element_type is None or element_type.kind == "string":
            return None
        try:
            count = const.check()
            size = element_type.size_of(count)
            if size > MOST_BYTES:
                return None
            array: Array = unpack(weights.read(const.offset, size), element_type, count)
        except DeconvError:
            return None  # other rules report it
        return tuple(map(float, array.tolist()))
