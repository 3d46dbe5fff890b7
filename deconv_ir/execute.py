"""The walk over a graph with arrays: what runs when, and how long arrays live."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .errors import DeconvError
from .infer import unsupported
from .model import Context, Graph, Kernel

if TYPE_CHECKING:
    from .dtypes import Array


class Executor:
    """Runs a graph; what depends on constants alone is done once.

    Safe to use from several threads at once.

    Parameters
    ----------
    graph : Graph
    context : Context
    wanted : sequence of int
        Indices of the layers whose first output is asked for.

    Raises
    ------
    UnsupportedError
        A layer that is needed has no implementation.
    """

    def __init__(self, graph: Graph, context: Context, wanted: Sequence[int]) -> None:
        self.graph = graph
        self.context = context
        self.wanted = tuple(wanted)
        self.order = _needed(graph, wanted)
        for index in self.order:
            if not graph.layers[index].operation.implemented:
                raise unsupported(graph.layers[index], graph.file)
        self.constant = self._constant_layers()
        self._lock = threading.Lock()
        self._prepared = False
        self._kernels: dict[int, Kernel] = {}
        self._kept: dict[int, tuple[Array, ...]] = {}
        self._steps: tuple[int, ...] = ()
        self._last_use: dict[int, tuple[int, ...]] = {}

    def _constant_layers(self) -> frozenset[int]:
        """Find the layers that depend on no Parameter."""
        sources = self.graph.topology.sources
        constant: set[int] = set()
        for index in self.order:
            kind = self.graph.layers[index].type
            if kind == "Const" or (
                sources[index]
                and kind != "Result"
                and all(s is not None and s[0] in constant for s in sources[index])
            ):
                constant.add(index)
        return frozenset(constant)

    def prepare(self) -> None:
        """Compute what is constant, and let layers do what depends on it alone (once)."""
        with self._lock:
            if self._prepared:
                return
            values: dict[int, tuple[Array, ...]] = {}
            sources = self.graph.topology.sources
            still_needed = set(self.wanted) & self.constant
            uses = self._count_uses(self.order)
            for index in self.order:
                rows = sources[index]
                inputs = [
                    values[s[0]][s[1]] if s is not None and s[0] in self.constant else None
                    for s in rows
                ]
                if index in self.constant:
                    values[index] = self._execute(index, [i for i in inputs if i is not None])
                elif any(i is not None for i in inputs):
                    kernel = self.graph.layers[index].operation.prepare(inputs, self.context)
                    if kernel is not None:
                        self._kernels[index] = kernel
                    else:
                        still_needed |= {s[0] for s in rows if s and s[0] in self.constant}
                self._release(rows, uses, values, still_needed)
            # A constant that is an input of a prepared kernel alone is not kept.
            self._kept = {i: values[i] for i in still_needed}
            self._steps = tuple(i for i in self.order if i not in self.constant)
            self._prepared = True

    def _count_uses(self, order: Sequence[int]) -> dict[int, int]:
        uses: dict[int, int] = {}
        for index in order:
            for source in self.graph.topology.sources[index]:
                if source is not None:
                    uses[source[0]] = uses.get(source[0], 0) + 1
        return uses

    def _release(
        self,
        rows: Sequence[tuple[int, int] | None],
        uses: dict[int, int],
        values: dict[int, tuple[Array, ...]],
        keep: set[int] | frozenset[int],
    ) -> None:
        """Free each array after its last use."""
        for source in rows:
            if source is not None:
                uses[source[0]] -= 1
                if uses[source[0]] == 0 and source[0] not in keep:
                    values.pop(source[0], None)

    def run(self, inputs: Mapping[int, Array]) -> list[Array]:
        """Compute the wanted outputs.

        Parameters
        ----------
        inputs : mapping
            Index of a Parameter layer -> its array.

        Raises
        ------
        DeconvError
            Actual shapes do not fit a layer.
        """
        self.prepare()
        values: dict[int, tuple[Array, ...]] = dict(self._kept)
        values.update({index: (array,) for index, array in inputs.items()})
        uses = self._count_uses(self._steps)
        keep = frozenset(self.wanted) | frozenset(self._kept)
        sources = self.graph.topology.sources
        for index in self._steps:
            rows = sources[index]
            if index not in inputs:
                arrays = [self._value(values, source) for source in rows]
                values[index] = self._execute(index, arrays)
            self._release(rows, uses, values, keep)
        return [values[index][0] for index in self.wanted]

    def _value(self, values: Mapping[int, tuple[Array, ...]], source: Any) -> Any:
        """Look up an input; None for a constant that a prepared kernel has absorbed."""
        found = values.get(source[0])
        return None if found is None else found[source[1]]

    def _execute(self, index: int, inputs: Sequence[Any]) -> tuple[Array, ...]:
        layer = self.graph.layers[index]
        try:
            kernel = self._kernels.get(index)
            if kernel is not None:
                return tuple(kernel(inputs))
            return tuple(layer.operation.execute(inputs, self.context))
        except DeconvError as error:
            error.locate(file=self.graph.file, line=layer.line, layer=layer.label)
            raise


def _needed(graph: Graph, wanted: Sequence[int]) -> tuple[int, ...]:
    """Return the layers that the wanted ones depend on, in topological order."""
    needed: set[int] = set()
    stack = list(wanted)
    while stack:
        index = stack.pop()
        if index not in needed:
            needed.add(index)
            stack += [s[0] for s in graph.topology.sources[index] if s is not None]
    return tuple(i for i in graph.topology.order if i in needed)
