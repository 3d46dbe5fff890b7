"""The library as its users see it: load a model, infer its shapes, run it."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from .errors import DeconvError, InputError, IRError, ResourceError, ShapeError, WeightsError
from .execute import Executor
from .findings import Finding
from .geometry import Semantics
from .infer import Inference, infer, unsupported
from .limits import DEFAULT_LIMITS, Limits
from .model import Context, Graph, Layer, Port, TensorInfo
from .ops.constant import Const
from .shapes import Shape, compatible, format_shape, intersect
from .xmlio import Weights, read
from .xmlio.bare import wrap_layer

if TYPE_CHECKING:
    from .dtypes import Array

    Inputs = Mapping[str, Array] | Sequence[Array]

_INFERENCES_KEPT = 8


class IRWarning(UserWarning):
    """Something a model declares is not what is computed."""


class Model:
    """A network that is ready to run.  Made by `load`.

    Safe to use from several threads at once.

    Attributes
    ----------
    graph : Graph
        The layers, typed and frozen, and the edges.
    inputs, outputs : mapping
        Name -> port, in order; a port has `shape` and `element_type`.
    findings : tuple of Finding
        Declared dims and types that differ from computed ones, and layers for
        which the two semantics find different pads.
    """

    def __init__(
        self,
        graph: Graph,
        weights: Weights | None = None,
        semantics: Semantics = Semantics.SPEC,
        scratch_bytes: int = 64 << 20,
    ) -> None:
        self.graph = graph
        self.semantics = semantics
        self.context = Context(semantics, weights, scratch_bytes)
        self._parameters = _indices(graph, "Parameter")
        self._results = _indices(graph, "Result")
        for index in (*self._parameters, *self._results):
            if not graph.layers[index].operation.implemented:
                raise unsupported(graph.layers[index], graph.file)
        inference = infer(graph, self.context)
        self.findings: tuple[Finding, ...] = inference.findings
        self.inputs: Mapping[str, Port] = MappingProxyType(self._input_ports(inference))
        self.outputs: Mapping[str, Port] = MappingProxyType(self._output_ports(inference))
        self._lock = threading.Lock()
        self._executor: Executor | None = None
        self._inferences: dict[tuple[TensorInfo, ...], Inference] = {}

    def __repr__(self) -> str:
        def ports(mapping: Mapping[str, Port]) -> str:
            return ", ".join(
                f"{n}: {p.element_type}{format_shape(p.shape)}" for n, p in mapping.items()
            )

        return f"<Model {self.graph.name!r} ({ports(self.inputs)}) -> ({ports(self.outputs)})>"

    def _input_ports(self, inference: Inference) -> dict[str, Port]:
        named = []
        for index in self._parameters:
            layer = self.graph.layers[index]
            port = layer.outputs[0] if layer.outputs else Port(0, None)
            named.append((layer.name, port, inference.outputs[index][0]))
        return _name_ports(named)

    def _output_ports(self, inference: Inference) -> dict[str, Port]:
        named = []
        for index in self._results:
            source = self.graph.topology.sources[index][0]
            assert source is not None, "a graph with loose inputs does not load"
            producer = self.graph.layers[source[0]]
            port = producer.outputs[source[1]]
            name = producer.name
            if len(producer.outputs) > 1 and not port.names:
                name = f"{producer.name}.{source[1]}"
            named.append((name, port, inference.outputs[index][0]))
        return _name_ports(named)

    def infer_shapes(
        self, shapes: Mapping[str, Sequence[int] | Shape] | None = None
    ) -> dict[str, Shape]:
        """Compute the shapes of the outputs.

        Parameters
        ----------
        shapes : mapping, optional
            Input name -> shape; inputs left out have the shape of the model.

        Returns
        -------
        dict
            Output name -> shape; dims are int, or an `Interval` with `min`
            and `max` (None: no bound); None for a dynamic rank.

        Raises
        ------
        InputError
            There is no such input, or it does not take that shape.
        ShapeError
            The shapes do not fit a layer.
        """
        infos = {
            i: TensorInfo(p.shape, p.element_type)
            for i, p in zip(self._parameters, self.inputs.values(), strict=True)
        }
        for name, given in (shapes or {}).items():
            position = self._input_position(name)
            port = list(self.inputs.values())[position]
            shape: Shape = None if given is None else tuple(given)
            if not compatible(shape, port.shape):
                raise InputError(
                    f"input {name!r} takes shape {format_shape(port.shape)}, "
                    f"found {format_shape(shape)}",
                    file=self.graph.file,
                    expected=format_shape(port.shape),
                    actual=format_shape(shape),
                    rule="input-shape",
                )
            infos[self._parameters[position]] = TensorInfo(
                intersect(shape, port.shape), port.element_type
            )
        inference = infer(self.graph, self.context, infos)
        return {
            name: inference.outputs[index][0].shape
            for name, index in zip(self.outputs, self._results, strict=True)
        }

    def check(self, inputs: Inputs, *, cast: bool = False) -> tuple[Finding, ...]:
        """Tell what `run` would find odd with these inputs, without running.

        Returns
        -------
        tuple of Finding
            Declared dims that the actual shapes contradict, and layers for
            which the two semantics find different pads.

        Raises
        ------
        InputError
            An array does not fit the model.
        ShapeError
            The actual shapes do not fit a layer.
        """
        return self._infer(self._bind(inputs, cast)).findings

    def run(self, inputs: Inputs, *, cast: bool = False) -> dict[str, Array]:
        """Compute the outputs.

        Parameters
        ----------
        inputs : mapping or sequence
            Arrays by tensor name or layer name, or in the order of `inputs`.
        cast : bool
            Convert arrays of another element type where no kind of number is
            lost (f64 to f32, int to float).

        Returns
        -------
        dict
            Output name -> array, in the order of `outputs`.

        Raises
        ------
        InputError
            An array is missing, unknown, or does not fit.
        ShapeError
            The actual shapes do not fit a layer.
        UnsupportedError
            A layer that is needed has no implementation.
        ResourceError
            The arrays do not fit in memory.
        """
        import numpy as np

        bound = self._bind(inputs, cast)
        self._infer(bound)
        with self._lock:
            if self._executor is None:
                self._executor = Executor(self.graph, self.context, self._results)
        try:
            results = self._executor.run(bound)
        except MemoryError as error:
            raise ResourceError(
                f"the arrays do not fit in memory: {str(error) or 'it is used up'}",
                file=self.graph.file,
                rule="memory",
            ) from error
        given = list(bound.values())
        return {
            name: result.copy()
            if not result.flags.writeable or any(np.may_share_memory(result, g) for g in given)
            else result
            for name, result in zip(self.outputs, results, strict=True)
        }

    def layer(self, name: str) -> Model:
        """Return a model of one layer alone.

        Its inputs are those of the layer that are not constant; constants of
        the network stay what they are.

        Parameters
        ----------
        name : str
            Name or id of the layer.

        Raises
        ------
        IRError
            There is no such layer.
        """
        found = self.graph.find(name)
        if found is None:
            raise IRError(f"there is no layer {name!r}", file=self.graph.file)
        return Model(
            _cut_out(self.graph, found),
            self.context_weights,
            self.semantics,
            self.context.scratch_bytes,
        )

    @property
    def context_weights(self) -> Weights | None:
        """The weights file."""
        weights = self.context.weights
        return weights if isinstance(weights, Weights) else None

    def _input_position(self, name: str) -> int:
        for position, (key, index) in enumerate(zip(self.inputs, self._parameters, strict=True)):
            layer = self.graph.layers[index]
            if name in (key, layer.name) or any(name in p.names for p in layer.outputs):
                return position
        known = ", ".join(map(repr, self.inputs)) or "none"
        raise InputError(
            f"the model has no input {name!r}; it has {known}", file=self.graph.file, actual=name
        )

    def _bind(self, inputs: Inputs, cast: bool) -> dict[int, Array]:
        """Match arrays with Parameter layers, and check them."""
        import numpy as np

        from .arrays import fit

        if isinstance(inputs, Mapping):
            positions = {self._input_position(name): array for name, array in inputs.items()}
        else:
            positions = dict(enumerate(inputs))
        names = list(self.inputs)
        if len(positions) > len(names):
            raise InputError(
                f"the model takes {len(names)} inputs, found {len(positions)}",
                file=self.graph.file,
                expected=len(names),
                actual=len(positions),
            )
        missing = [repr(n) for i, n in enumerate(names) if i not in positions]
        if missing:
            raise InputError(f"no array for input {', '.join(missing)}", file=self.graph.file)
        bound = {}
        for position, (name, port) in enumerate(self.inputs.items()):
            array = np.asarray(positions[position])
            try:
                fitted = fit(array, name, port.shape, port.element_type, cast=cast)
            except DeconvError as error:
                error.locate(file=self.graph.file)
                raise
            bound[self._parameters[position]] = fitted
        return bound

    def _infer(self, bound: Mapping[int, Array]) -> Inference:
        """Infer with actual shapes; the last few inferences are kept."""
        from .arrays import describe

        key = tuple(describe(array) for array in bound.values())
        with self._lock:
            known = self._inferences.get(key)
        if known is None:
            known = infer(self.graph, self.context, dict(zip(bound, key, strict=True)))
            with self._lock:
                while len(self._inferences) >= _INFERENCES_KEPT:
                    self._inferences.pop(next(iter(self._inferences)))
                self._inferences[key] = known
        return known


def _indices(graph: Graph, kind: str) -> tuple[int, ...]:
    return tuple(i for i, layer in enumerate(graph.layers) if layer.type == kind)


def _name_ports(named: Sequence[tuple[str, Port, TensorInfo]]) -> dict[str, Port]:
    """Key ports by tensor name or, where there is none, by layer name; keys are unique."""
    ports: dict[str, Port] = {}
    for layer_name, port, info in named:
        candidates = [*port.names, layer_name]
        key = next((c for c in candidates if c and c not in ports), None)
        if key is None:
            base = candidates[0] or "output"
            key = next(
                f"{base}.{n}" for n in range(1, len(ports) + 2) if f"{base}.{n}" not in ports
            )
        shape = info.shape if info.shape is not None else port.shape
        ports[key] = Port(
            port.id, shape, info.element_type or port.element_type, port.names, port.line_offset
        )
    return ports


def _cut_out(graph: Graph, layer: Layer) -> Graph:
    """Make a graph of one layer and the constants that it is fed."""
    index = graph.layers.index(layer)
    sources = graph.topology.sources
    constant: dict[int, bool] = {}
    for i in graph.topology.order:
        constant[i] = graph.layers[i].type == "Const" or (
            bool(sources[i]) and all(s is not None and constant[s[0]] for s in sources[i])
        )
    alone = wrap_layer(layer, graph.file)
    bound = {
        port: source
        for port, source in enumerate(sources[index])
        if source is not None and constant[source[0]]
    }
    # Parameters of wrap_layer have ids after the layer's, in the order of its inputs.
    dropped = {layer.id + 1 + port for port in bound}
    offset = 1 + max([found.id for found in alone.layers] + [found.id for found in graph.layers])
    kept = [found for found in alone.layers if found.id not in dropped]
    edges = [edge for edge in alone.edges if edge.from_layer not in dropped]
    needed: set[int] = set()
    stack = [source[0] for source in bound.values()]
    while stack:
        i = stack.pop()
        if i not in needed:
            needed.add(i)
            stack += [s[0] for s in sources[i] if s is not None]
    return _join(graph, alone, kept, edges, bound, sorted(needed), layer.id, offset)


def _join(
    graph: Graph,
    alone: Graph,
    kept: Sequence[Layer],
    edges: Sequence[Any],
    bound: Mapping[int, tuple[int, int]],
    needed: Sequence[int],
    target: int,
    offset: int,
) -> Graph:
    """Put constant layers, under new ids, before a layer that stands alone."""
    import dataclasses

    from .model import Edge

    constants = [
        dataclasses.replace(graph.layers[i], id=offset + graph.layers[i].id) for i in needed
    ]
    joined = list(edges)
    for port, (source, output) in bound.items():
        from_layer = graph.layers[source]
        joined.append(Edge(offset + from_layer.id, from_layer.outputs[output].id, target, port))
    ids = {graph.layers[i].id for i in needed}
    joined += [
        dataclasses.replace(
            edge, from_layer=offset + edge.from_layer, to_layer=offset + edge.to_layer
        )
        for edge in graph.edges
        if edge.to_layer in ids
    ]
    return dataclasses.replace(
        alone, layers=(*constants, *kept), edges=tuple(joined), bare=False, _topology=[]
    )


def load(
    path: str | os.PathLike[str],
    weights: str | os.PathLike[str] | None = None,
    semantics: Semantics | str = Semantics.SPEC,
    *,
    strict: bool = False,
    warn: bool = True,
    limits: Limits = DEFAULT_LIMITS,
    scratch_bytes: int = 64 << 20,
) -> Model:
    """Load an IR: a network of `net version` 10 or 11, or a bare `layer`.

    Parameters
    ----------
    path : path-like
        The .xml file.
    weights : path-like, optional
        The .bin file; by default the one beside the .xml.  It is
        read where constants ask: only the arrays in use take memory.
    semantics : Semantics or str
        ``spec``, or ``openvino``: whose rule decides where they differ.
    strict : bool
        Raise on declared dims that differ from the computed ones.
    warn : bool
        Otherwise, warn of them (`IRWarning`).
    limits : Limits
        Sizes beyond which the file is refused.
    scratch_bytes : int
        Bound on a kernel's temporary memory.

    Returns
    -------
    Model

    Raises
    ------
    IRError
        The file is no IR, or does not hold together.
    WeightsError
        The weights file is missing or too short.
    ShapeError
        The inputs of a layer do not fit it.
    """
    chosen = as_semantics(semantics)
    graph, problems = read(path, limits)
    if problems:
        raise problems[0]
    assert graph is not None, "no graph without a problem"
    if graph.topology.problems:
        raise graph.topology.problems[0]
    model = Model(graph, open_weights(graph, Path(path), weights), chosen, scratch_bytes)
    for finding in model.findings:
        if strict and finding.rule.startswith("declared-"):
            raise ShapeError(
                finding.message,
                file=finding.file,
                line=finding.line,
                layer=finding.layer,
                expected=finding.expected,
                actual=finding.actual,
                rule=finding.rule,
            )
        if warn:
            warnings.warn(str(finding), IRWarning, stacklevel=2)
    return model


def as_semantics(semantics: Semantics | str) -> Semantics:
    """Return the semantics of that name.

    Raises
    ------
    DeconvError
        There is none of that name.
    """
    try:
        return Semantics(semantics)
    except ValueError:
        raise DeconvError(f"semantics must be 'spec' or 'openvino', found {semantics!r}") from None


def open_weights(
    graph: Graph, path: Path, weights: str | os.PathLike[str] | None
) -> Weights | None:
    """Map the weights file, and check that every constant is in it.

    Raises
    ------
    WeightsError
        It is missing, or a constant is not in it.
    """
    constants = [layer for layer in graph.layers if isinstance(layer.operation, Const)]
    if weights is None:
        beside = path.with_suffix(".bin")
        if not constants or (not beside.exists() and not beside.is_symlink()):
            filled = [c for c in constants if _bytes_of(c, graph)]
            if filled:
                raise WeightsError(
                    f"the model has {len(filled)} constants, but there is no {beside.name} "
                    "beside it",
                    file=graph.file,
                    line=filled[0].line,
                    layer=filled[0].label,
                    hint="--weights FILE, or weights=, names another file",
                    rule="weights-missing",
                )
            return None
        weights = beside
    opened = Weights(weights)
    for layer in constants:
        operation = layer.operation
        assert isinstance(operation, Const)
        try:
            size = _bytes_of(layer, graph)
            if size:
                opened.check(operation.offset, size)
        except WeightsError as error:
            error.locate(file=graph.file, line=layer.line, layer=layer.label)
            raise
    return opened


def _bytes_of(layer: Layer, graph: Graph) -> int:
    """Return how many bytes of the weights file a constant needs."""
    operation = layer.operation
    assert isinstance(operation, Const)
    try:
        count = operation.check()
    except WeightsError as error:
        error.locate(file=graph.file, line=layer.line, layer=layer.label)
        raise
    return operation.element_type.size_of(count) if operation.element_type else 0


def save(model: Model, path: str | os.PathLike[str]) -> None:
    """Write a model: the XML, and its weights file beside it.

    Raises
    ------
    OutputError
        A file can not be written.
    """
    from .xmlio.writer import write, write_weights

    target = Path(path)
    weights = model.context_weights
    if weights is not None and any(isinstance(x.operation, Const) for x in model.graph.layers):
        write_weights(weights, target.with_suffix(".bin"))
    write(model.graph, target)


__all__ = ["IRWarning", "Model", "load", "save"]
