"""Variables of a model: what ReadValue reads and Assign writes, from one run to the next."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from deconv_ir.errors import InputError, IRError, UnsupportedError
from deconv_ir.ir.body import walk_graphs
from deconv_ir.ir.graph import Graph, Layer, Source
from deconv_ir.ops.constants.parameter import Parameter

if TYPE_CHECKING:
    from deconv_ir.ir.dtypes import Array


class State:
    """The values of a model's variables, which `Model.run` reads and writes.

    A variable without a value has that of its first run.  A state serves one run at a time;
    threads that run a model have one each.

    Parameters
    ----------
    values : mapping, optional
        Name of a variable -> array.

    Examples
    --------
    >>> import deconv_ir
    >>> state = deconv_ir.State()
    >>> model = deconv_ir.load("samples/block/block.xml")  # it has no variables
    >>> import numpy as np
    >>> y = model.run(np.zeros((1, 8, 16, 16), np.float32), state=state)
    >>> dict(state.values)
    {}
    """

    def __init__(self, values: Mapping[str, Any] | None = None) -> None:
        import numpy as np

        self._values: dict[str, Array] = {n: np.array(v) for n, v in (values or {}).items()}
        self._running = threading.Lock()

    @property
    def values(self) -> Mapping[str, Array]:
        """The arrays of the variables that have been assigned, by name."""
        return MappingProxyType(self._values)

    def reset(self, *names: str) -> None:
        """Forget the values of some variables; without names, of all.

        Raises
        ------
        InputError
            A run is using the state.
        """
        with self.taken() as values:
            for name in names or tuple(values):
                values.pop(name, None)

    @contextmanager
    def taken(self) -> Iterator[dict[str, Array]]:
        """Hold the values for a run, which may change them."""
        if not self._running.acquire(blocking=False):
            raise InputError("the state is in use by another run; each thread needs its own")
        try:
            yield self._values
        finally:
            self._running.release()

    def __reduce__(self) -> tuple[Any, ...]:
        return State, (self._values,)


class Variables:
    """The variables of a graph.

    Attributes
    ----------
    readers : dict
        Name -> indices of the layers that read it.
    assigned : dict
        Name -> the tensor that is assigned to it.

    Raises
    ------
    IRError
        A variable is assigned twice.
    UnsupportedError
        The body of a layer has variables.
    """

    def __init__(self, graph: Graph) -> None:
        self.graph = graph
        self.readers: dict[str, list[int]] = {}
        self.assigned: dict[str, Source] = {}
        for index, layer in enumerate(graph.layers):
            name = _variable(layer)
            if layer.type == "ReadValue" and name is not None:
                self.readers.setdefault(name, []).append(index)
            elif layer.type == "Assign" and name is not None:
                (source,) = graph.topology.sources[index]
                assert source is not None, "a graph with loose inputs does not load"
                if name in self.assigned:
                    raise _located(IRError(f"variable {name!r} is assigned twice"), graph, layer)
                self.assigned[name] = source
        for part in walk_graphs(graph):
            for layer in part.layers if part is not graph else ():
                if _variable(layer) is not None:
                    message = "variables in the body of a layer are not supported"
                    raise _located(UnsupportedError(message), graph, layer)

    def with_values(self, values: Mapping[str, Array]) -> tuple[Graph, dict[int, Array]]:
        """Return the graph with Parameters in place of variables that have values, and these.

        Raises
        ------
        InputError
            A value does not fit its variable.
        """
        known = {index: name for name in values for index in self.readers.get(name, ())}
        if not known:
            return self.graph, {}
        from deconv_ir.arrays.fitting import fit

        layers = list(self.graph.layers)
        arrays: dict[int, Array] = {}
        for index, name in known.items():
            layer = layers[index]
            stated = getattr(layer.operation, "variable_shape", None)
            element_type = getattr(layer.operation, "variable_type", None)
            element_type = element_type or layer.outputs[0].element_type
            arrays[index] = fit(values[name], name, stated, element_type, cast=False)
            layers[index] = layer._replace(
                type="Parameter",
                operation=Parameter(shape=stated, element_type=element_type),
                inputs=(),
            )
        ids = {layers[index].id for index in known}
        edges = tuple(edge for edge in self.graph.edges if edge.to_layer not in ids)
        return self.graph.replace(layers=tuple(layers), edges=edges), arrays


def _variable(layer: Layer) -> str | None:
    return getattr(layer.operation, "variable_id", None)


def _located(error: IRError | UnsupportedError, graph: Graph, layer: Layer) -> Exception:
    return error.locate(file=graph.file, line=layer.line, layer=layer.label)
