"""The library as its users see it: load a model, infer its shapes, run it."""

from __future__ import annotations

import functools
import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from .cutting import cut_out
from .errors import DeconvError, InputError, IRError, ResourceError, ShapeError
from .execute import Executor
from .execute.analysis import needed_layers, require_implemented
from .execute.buffers import tensor_bytes
from .execute.memory import require_memory
from .execute.plan import Plan
from .execute.recent import Recent
from .findings import Finding
from .geometry import Semantics, bounds
from .infer import Inference, infer
from .limits import DEFAULT_LIMITS, Limits
from .model import Context, Graph, Port, Source, TensorInfo
from .naming import find_tensors, name_ports
from .opening import as_semantics, open_weights
from .ops.constant import Const
from .shapes import Shape, compatible, format_shape, intersect
from .xmlio import Weights, read

if TYPE_CHECKING:
    from .casting import Cast
    from .dtypes import Array
    from .execute.profile import Profile

    Inputs = Mapping[str, Array] | Sequence[Array]

_INFERENCES_KEPT = 8
_EXECUTORS_KEPT = 4


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
        memory_limit: int | None = None,
    ) -> None:
        self.graph = graph
        self.semantics = semantics
        self.memory_limit = memory_limit
        self.context = Context(semantics, weights, scratch_bytes)
        self._parameters = _indices(graph, "Parameter")
        self._results = _indices(graph, "Result")
        require_implemented(graph, (*self._parameters, *self._results))
        inference = infer(graph, self.context)
        self.findings: tuple[Finding, ...] = inference.findings
        self.inputs: Mapping[str, Port] = MappingProxyType(self._input_ports(inference))
        self.outputs: Mapping[str, Port] = MappingProxyType(self._output_ports(inference))
        self._executors: Recent[tuple[Source, ...], Executor] = Recent(_EXECUTORS_KEPT)
        self._inferences: Recent[tuple[TensorInfo, ...], Inference] = Recent(_INFERENCES_KEPT)

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
        return name_ports(named)

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
        return name_ports(named)

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
        infos = self._input_infos(shapes)
        inference = self._infer_from(infos)
        return {
            name: inference.outputs[index][0].shape
            for name, index in zip(self.outputs, self._results, strict=True)
        }

    def check(self, inputs: Inputs, *, cast: Cast = False) -> tuple[Finding, ...]:
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

    def run(
        self,
        inputs: Inputs,
        *,
        outputs: Sequence[str] | None = None,
        cast: Cast = False,
        profile: Profile | None = None,
    ) -> dict[str, Array]:
        """Compute the outputs.

        Parameters
        ----------
        inputs : mapping or sequence
            Arrays by tensor name or layer name, or in the order of `inputs`.
        outputs : sequence of str, optional
            Tensors to compute in place of the model's outputs, by tensor
            name, layer name or layer id; only what they need is run.
        cast : bool or "wrap"
            Convert arrays of another element type where every value fits:
            exactly for integers and booleans, up to rounding for floats.
            With ``wrap`` also where not: integers modulo 2^bits, fractions
            towards zero, floats that are too large to infinity.
        profile : Profile, optional
            Takes note of the time of each layer.

        Returns
        -------
        dict
            Output name -> array, in the order of `outputs`.

        Raises
        ------
        IRError
            There is no tensor or layer of that name.
        InputError
            An array is missing, unknown, or does not fit.
        ShapeError
            The actual shapes do not fit a layer.
        UnsupportedError
            Layers that are needed have no implementation.
        ResourceError
            The run does not fit into memory.
        """
        wanted = self._wanted(outputs)
        bound = self._bind(inputs, cast)
        try:
            executor = self._executor(wanted)
            plan = self._plan(executor, bound)
            observer = None if profile is None else profile.start(self.graph, plan)
            results = executor.run(plan, bound, observer)
        except MemoryError as error:
            raise ResourceError(
                f"the arrays do not fit in memory: {str(error) or 'it is used up'}",
                file=self.graph.file,
                rule="memory",
            ) from error
        owned = _arrays().own(results, list(bound.values()))
        return dict(zip(wanted, owned, strict=True))

    def plan(
        self, inputs: Inputs, *, outputs: Sequence[str] | None = None, cast: Cast = False
    ) -> Plan:
        """Return the plan by which `run` would compute the outputs.

        Parameters and errors are those of `run`.

        Returns
        -------
        Plan
            `execute.listing.as_rows` lists its steps.
        """
        executor = self._executor(self._wanted(outputs))
        return self._plan(executor, self._bind(inputs, cast))

    def plan_for_shapes(
        self,
        shapes: Mapping[str, Sequence[int]] | None = None,
        *,
        outputs: Sequence[str] | None = None,
    ) -> Plan:
        """Return the plan for inputs of certain shapes, without any array.

        Parameters
        ----------
        shapes : mapping, optional
            Input name -> shape; inputs left out have the shape of the model.
        outputs : sequence of str, optional
            As of `run`.

        Raises
        ------
        InputError
            There is no such input, or it does not take that shape.
        """
        executor = self._executor(self._wanted(outputs))
        infos = self._input_infos(shapes)
        return executor.plan(tuple(infos.values()), lambda: self._infer_from(infos).outputs)

    def output_names(self, outputs: Sequence[str] | None = None) -> list[str]:
        """Return the names under which `run` returns the outputs.

        Parameters
        ----------
        outputs : sequence of str, optional
            As of `run`.

        Raises
        ------
        IRError
            There is no tensor or layer of that name.
        """
        return list(self._wanted(outputs))

    def require_runnable(self, outputs: Sequence[str] | None = None) -> None:
        """Require that there is an implementation of every layer that is needed.

        Parameters
        ----------
        outputs : sequence of str, optional
            As of `run`.

        Raises
        ------
        IRError
            There is no tensor or layer of that name.
        UnsupportedError
            Names all layers without an implementation.
        """
        wanted = list(self._wanted(outputs).values())
        require_implemented(self.graph, needed_layers(self.graph, wanted))

    def require_memory(self, shapes: Mapping[str, Sequence[int]] | None = None) -> None:
        """Require that arrays for the inputs fit into memory.

        Parameters
        ----------
        shapes : mapping, optional
            Input name -> shape; inputs left out have the smallest shape that
            the model takes.

        Raises
        ------
        ResourceError
            They do not fit.
        """
        needed = 0
        for info in self._input_infos(shapes).values():
            if info.shape is not None:
                least = tuple(bounds(d)[0] for d in info.shape)
                needed += tensor_bytes(TensorInfo(least, info.element_type)) or 0
        require_memory(needed, self.memory_limit, file=self.graph.file)

    def _wanted(self, outputs: Sequence[str] | None) -> dict[str, Source]:
        """Find the tensors asked for, by the names under which they are returned."""
        if outputs is not None:
            return find_tensors(self.graph, outputs)
        wanted = {}
        for name, index in zip(self.outputs, self._results, strict=True):
            source = self.graph.topology.sources[index][0]
            assert source is not None, "a graph with loose inputs does not load"
            wanted[name] = source
        return wanted

    def _executor(self, wanted: Mapping[str, Source]) -> Executor:
        sources = tuple(wanted.values())
        return self._executors.get(
            sources, lambda: Executor(self.graph, self.context, sources, self.memory_limit)
        )

    def _plan(self, executor: Executor, bound: Mapping[int, Array]) -> Plan:
        infos = tuple(map(_arrays().describe, bound.values()))
        return executor.plan(infos, lambda: self._infer(bound).outputs)

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
            cut_out(self.graph, found),
            self.context_weights,
            self.semantics,
            self.context.scratch_bytes,
            self.memory_limit,
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

    def _bind(self, inputs: Inputs, cast: Cast) -> dict[int, Array]:
        """Match arrays with Parameter layers, and check them."""
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
        fit = _arrays().fit
        for position, (name, port) in enumerate(self.inputs.items()):
            try:
                fitted = fit(positions[position], name, port.shape, port.element_type, cast=cast)
            except DeconvError as error:
                error.locate(file=self.graph.file)
                raise
            bound[self._parameters[position]] = fitted
        return bound

    def _infer(self, bound: Mapping[int, Array]) -> Inference:
        """Infer with actual shapes; the last few inferences are kept."""
        key = tuple(map(_arrays().describe, bound.values()))
        infos = dict(zip(bound, key, strict=True))
        return self._inferences.get(key, lambda: self._infer_from(infos))

    def _infer_from(self, infos: Mapping[int, TensorInfo]) -> Inference:
        """Infer; an error tells the way from the input to the layer."""
        try:
            return infer(self.graph, self.context, infos)
        except ShapeError as error:
            from .chain import explain_chain

            raise explain_chain(error, self.graph, self.context, infos) from None

    def _input_infos(
        self, shapes: Mapping[str, Sequence[int] | Shape] | None
    ) -> dict[int, TensorInfo]:
        """Return what is known of the inputs, given some of their shapes."""
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
        return infos


@functools.cache
def _arrays() -> Any:
    # Loads NumPy; to find a module again at each run takes longer than a small layer.
    from . import arrays

    return arrays


def _indices(graph: Graph, kind: str) -> tuple[int, ...]:
    return tuple(i for i, layer in enumerate(graph.layers) if layer.type == kind)


def load(
    path: str | os.PathLike[str],
    weights: str | os.PathLike[str] | None = None,
    semantics: Semantics | str = Semantics.SPEC,
    *,
    strict: bool = False,
    warn: bool = True,
    limits: Limits = DEFAULT_LIMITS,
    scratch_bytes: int = 64 << 20,
    memory_limit: int | None = None,
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
    memory_limit : int, optional
        Bytes that a run may take; by default what is available when it starts.

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
    model = Model(
        graph, open_weights(graph, Path(path), weights), chosen, scratch_bytes, memory_limit
    )
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
