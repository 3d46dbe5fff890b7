"""The model: load it, infer its shapes, run it."""

from __future__ import annotations

import functools
from collections.abc import Hashable, Iterable, Mapping, Sequence
from itertools import islice
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

from deconv_ir.arrays.model_inputs import ModelInputs, load_fitting
from deconv_ir.changes.changeable import Changeable
from deconv_ir.errors import InputError, ShapeError, one_line
from deconv_ir.execute import Executor
from deconv_ir.execute.analysis import require_implemented
from deconv_ir.execute.lru_cache import LRUCache
from deconv_ir.execute.memory import require_memory
from deconv_ir.execute.places import tensor_bytes
from deconv_ir.findings import Finding
from deconv_ir.formats.openvino_xml.weights import Weights
from deconv_ir.formats.reading import as_computed
from deconv_ir.ir.dtypes import Array
from deconv_ir.ir.geometry import Interval, bounds
from deconv_ir.ir.graph import Graph, Port, Source, needed_layers
from deconv_ir.ir.infer import Inference, infer
from deconv_ir.ir.operation import ConstantSource, Context, TensorInfo
from deconv_ir.ir.options import Accuracy, Semantics
from deconv_ir.ir.shapes import format_shape
from deconv_ir.ir.tensor_names import find_tensors, input_ports, missing, names_of, output_ports
from deconv_ir.ops.single_layer import extract_layer
from deconv_ir.tiling.tileable import Tileable

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from deconv_ir.arrays.casting import Cast
    from deconv_ir.bound import BoundModel, RepeatedRun
    from deconv_ir.execute.profile import Profile
    from deconv_ir.execute.variables import Variables
    from deconv_ir.ir.symbolic_shapes import InferredShapes, SymbolicShapes
    from deconv_ir.state import State

    Inputs = Mapping[str, ArrayLike] | Iterable[ArrayLike] | ArrayLike
    Dims = Sequence[int | Interval | None] | None

_INFERENCES_KEPT = 8
_PORTS_SHOWN = 4
_NAME_SHOWN = 80
_EXECUTORS_KEPT = 4


class Model(Changeable, Tileable):
    """A network that is ready to run, made by `load`.

    Safe to use from several threads at once.  It can be copied and pickled, for
    pools of processes too; the bytes of its weights file are part of a pickle.

    Attributes
    ----------
    graph : Graph
        The layers, typed and frozen, and the edges.
    inputs, outputs : mapping
        Name -> `Port`, in order.
    findings : tuple of Finding
        Declared dims and types that differ from computed ones, and layers for which the two
        semantics find different pads; those of bodies too.
    semantics : Semantics
        As given to `load`.
    memory_limit : int or None
        Bytes that a run may use; as given to `load`.

    Examples
    --------
    >>> import deconv_ir
    >>> model = deconv_ir.load("samples/block/block.xml")
    >>> isinstance(model, deconv_ir.Model)
    True
    >>> model
    <Model 'block' (x: f32[1,8,16,16]) -> (y: f32[1,4,32,32])>
    """

    def __init__(
        self,
        graph: Graph,
        weights: ConstantSource | None = None,
        semantics: Semantics = Semantics.SPEC,
        scratch_bytes: int = 64 << 20,
        memory_limit: int | None = None,
        accuracy: Accuracy = Accuracy.FAST,
    ) -> None:
        self.graph = graph
        self.semantics = semantics
        self.memory_limit = memory_limit
        self.context = Context(semantics, weights, scratch_bytes, accuracy)
        self._parameters = _indices(graph, "Parameter")
        self._results = _indices(graph, "Result")
        require_implemented(graph, (*self._parameters, *self._results))
        inference = infer(graph, self.context)
        self.findings: tuple[Finding, ...] = inference.findings
        self._whole: tuple[Finding, ...] = ()
        self.inputs: Mapping[str, Port] = MappingProxyType(
            input_ports(graph, self._parameters, inference.outputs)
        )
        self.outputs: Mapping[str, Port] = MappingProxyType(
            output_ports(graph, self._results, inference.outputs)
        )
        self._given = ModelInputs(graph, self._parameters, self.inputs)
        self._executors: LRUCache[Hashable, Executor] = LRUCache(_EXECUTORS_KEPT)
        self._inferences: LRUCache[Hashable, Inference] = LRUCache(_INFERENCES_KEPT)
        self._repeated: RepeatedRun | None = None
        if not inference.findings:
            # Arrays of the declared shapes have the same findings, except those about Parameters.
            declared = ((i, inference.outputs[i][0]) for i in self._parameters)
            self._inferences.get(tuple(declared), lambda: inference)

    def __repr__(self) -> str:
        def ports(mapping: Mapping[str, Port]) -> str:
            shown = [
                f"{one_line(name, _NAME_SHOWN)}: {port.element_type}{format_shape(port.shape)}"
                for name, port in islice(mapping.items(), _PORTS_SHOWN)
            ]
            if len(mapping) > _PORTS_SHOWN:
                shown.append(f"and {len(mapping) - _PORTS_SHOWN} more")
            return ", ".join(shown)

        name = one_line(repr(self.graph.name), _NAME_SHOWN)
        return f"<Model {name} ({ports(self.inputs)}) -> ({ports(self.outputs)})>"

    def _repr_html_(self) -> str:
        """Draw the network, for notebooks."""
        from deconv_ir.drawing.graph.notebook import notebook_html

        return notebook_html(self.graph, self.context, repr(self))

    def __reduce__(self) -> tuple[Any, ...]:
        # The arguments of __init__.  Executors, plans and packed filters belong to a process.
        return type(self), (self.graph, self.context.weights, *self._settings)

    @property
    def _settings(self) -> tuple[Semantics, int, int | None, Accuracy]:
        """The arguments of __init__ after the graph and the weights."""
        context = self.context
        return self.semantics, context.scratch_bytes, self.memory_limit, context.accuracy

    def _with_graph(self, graph: Graph, weights: ConstantSource | None) -> Self:
        return type(self)(graph, weights, *self._settings)

    def add_findings(self, findings: Iterable[Finding]) -> None:
        """Add findings that concern the network as a whole, for all inputs."""
        self._whole = tuple(findings)
        self.findings += self._whole

    def infer_shapes(self, shapes: Mapping[str, Dims] | None = None) -> InferredShapes:
        """Compute the shapes of the outputs.

        Parameters
        ----------
        shapes : mapping, optional
            Input name -> shape; inputs left out have the shape of the model.
            -1 or None stands for an unknown dim, None for an unknown rank.

        Returns
        -------
        InferredShapes
            A dict: output name -> shape; dims are int, or `Interval` if they depend on unknown
            values; None for a dynamic rank.  Its `expressions` are the same dims as expressions.

        Raises
        ------
        InputError
            An input does not exist, or does not accept that shape.
        ShapeError
            The shapes do not fit a layer.

        Examples
        --------
        >>> import deconv_ir
        >>> model = deconv_ir.load("samples/block/block.xml")
        >>> model.infer_shapes({"x": (1, 8, 16, 16)})
        {'y': (1, 4, 32, 32)}
        """
        from deconv_ir.ir.symbolic_shapes import InferredShapes

        inference = self._infer_from(self._given.infos(shapes))
        found = {
            name: inference.outputs[index][0].shape
            for name, index in zip(self.outputs, self._results, strict=True)
        }
        return InferredShapes(found, lambda: self.symbolic_shapes(shapes))

    def symbolic_shapes(self, shapes: Mapping[str, Dims] | None = None) -> SymbolicShapes:
        """Compute the shapes of the outputs as expressions of the inputs' dynamic dims.

        Parameters
        ----------
        shapes : mapping, optional
            As in `infer_shapes`, which has the bounds of the same dims.

        Raises
        ------
        InputError, ShapeError
            As `infer_shapes`.

        Examples
        --------
        >>> import deconv_ir
        >>> model = deconv_ir.load("samples/block/block.xml").reshape((1, 8, -1, -1))
        >>> model.symbolic_shapes().outputs
        {'y': (1, 4, '2*H', '2*W')}
        """
        from deconv_ir.ir.symbolic_shapes import symbolic_shapes

        inference = self._infer_from(self._given.infos(shapes))
        inputs = dict(zip(self.inputs, self._parameters, strict=True))
        outputs = dict(zip(self.outputs, self._results, strict=True))
        return symbolic_shapes(self.graph, self.context, inference, inputs, outputs)

    def fitting_shapes(
        self, shapes: Mapping[str, Dims] | None = None
    ) -> dict[str, tuple[int, ...]] | None:
        """Return static shapes of the inputs that fit every layer.

        Parameters
        ----------
        shapes : mapping, optional
            As in `infer_shapes`: dims that are known.

        Returns
        -------
        dict or None
            Input name -> shape: a batch of 1, other dynamic dims of equal sizes.  None if no
            such shape is found, or an input has a dynamic rank.

        Examples
        --------
        >>> import deconv_ir
        >>> model = deconv_ir.load("samples/block/block.xml").reshape((-1, 8, -1, -1))
        >>> model.fitting_shapes()
        {'x': (1, 8, 64, 64)}
        """
        from deconv_ir.ir.fitting_sizes import fitting_sizes

        infos = self._given.infos(shapes)
        known = {i: info.shape for i, info in infos.items() if info.shape is not None}
        if len(known) < len(infos):
            return None
        found = fitting_sizes(self.graph, self.context, known)
        if found is None:
            return None
        return {
            name: found[index] for name, index in zip(self.inputs, self._parameters, strict=True)
        }

    def bind(
        self,
        inputs: Inputs | None = None,
        *,
        shapes: Mapping[str, Dims] | None = None,
        outputs: str | Sequence[str] | None = None,
        cast: Cast = False,
    ) -> BoundModel:
        """Bind arrays or shapes to the inputs, to get findings and a plan, and to run.

        Arrays that fit are not copied.

        Parameters
        ----------
        inputs : mapping, iterable or array, optional
            As in `run`.
        shapes : mapping, optional
            Instead of `inputs`: input name -> shape; inputs left out have the shape of the model.
        outputs, cast
            As in `run`.

        Raises
        ------
        IRError
            No tensor or layer has that name.
        InputError
            An array or a shape does not fit the model.

        Examples
        --------
        >>> import deconv_ir
        >>> model = deconv_ir.load("samples/block/block.xml")
        >>> model.bind(shapes={"x": (1, 8, 16, 16)}).plan.known
        True
        """
        if inputs is None:
            return self._bound(self._wanted(outputs), self._given.infos(shapes), None)
        if shapes is not None:
            raise InputError("bind takes inputs or shapes, not both")
        return self._bind_arrays(inputs, outputs, cast)

    def _bind_arrays(
        self, inputs: Inputs, outputs: str | Sequence[str] | None, cast: Cast
    ) -> BoundModel:
        wanted = self._wanted(outputs)
        arrays = self._given.match(inputs, cast=cast)
        describe = load_fitting().describe
        return self._bound(wanted, {i: describe(a) for i, a in arrays.items()}, arrays)

    def _bound(
        self,
        wanted: Mapping[str, Source],
        infos: Mapping[int, TensorInfo],
        arrays: Mapping[int, Array] | None,
    ) -> BoundModel:
        executor = functools.partial(self._executor, tuple(wanted.values()))
        return _bound_model()(executor, self._infer, tuple(wanted), infos, arrays, self._whole)

    def run(
        self,
        inputs: Inputs,
        *,
        outputs: str | Sequence[str] | None = None,
        cast: Cast = False,
        profile: Profile | None = None,
        state: State | None = None,
    ) -> dict[str, Array]:
        """Compute the outputs.

        Parameters
        ----------
        inputs : mapping, iterable or array
            Arrays by tensor name or layer name, or in the order of `inputs`; a bare array is the
            only input.  Anything that NumPy or DLPack can convert to an array is accepted.
        outputs : str or sequence of str, optional
            Tensors to compute instead of the model's outputs, by tensor name,
            layer name or layer id; only the layers that they need are run.
        cast : bool or "wrap"
            Convert arrays of another element type if every value fits:
            exactly for integers and booleans, up to rounding for floats.
            ``wrap`` converts values that do not fit as well: integers modulo
            2^bits, fractions towards zero, floats that are too large to infinity.
        profile : Profile, optional
            Records the time of each layer.
        state : State, optional
            Values of the model's variables, which the run reads and writes.  Without it, the
            variables start with their initial values, and new values are dropped.

        Returns
        -------
        dict
            Output name -> array, in the order of `outputs`.

        Raises
        ------
        IRError
            No tensor or layer has that name.
        InputError
            An array is missing, unknown, or does not fit.
        ShapeError
            The actual shapes do not fit a layer.
        UnsupportedError
            Needed layers have no implementation.
        ResourceError
            The run does not fit into memory.

        Examples
        --------
        >>> import numpy as np
        >>> import deconv_ir
        >>> model = deconv_ir.load("samples/block/block.xml")
        >>> x = np.zeros((1, 8, 16, 16), np.float32)
        >>> model.run({"x": x})["y"].shape  # or model.run(x), or model.run([x])
        (1, 4, 32, 32)
        >>> list(model.run(x, outputs=["up"]))  # an inner tensor
        ['up']
        """
        if state is None:
            is_plain = outputs is None and profile is None
            if is_plain and self._repeated is not None:
                found = self._repeated.run(inputs)
                if found is not None:
                    return found
            bound = self._bind_arrays(inputs, outputs, cast)
            results = bound.run(profile=profile)
            if is_plain:
                self._repeated = _repeated_run().after(bound, tuple(self.inputs))
            return results
        arrays = self._given.match(inputs, cast=cast)
        with state.taken() as values:
            return self._run_with(values, self._wanted(outputs), arrays, profile)

    def _run_with(
        self,
        values: dict[str, Array],
        wanted: Mapping[str, Source],
        arrays: dict[int, Array],
        profile: Profile | None,
    ) -> dict[str, Array]:
        """Run with the values of variables, and store the new ones."""
        variables = self._variables
        known, read = variables.known(values), variables.read(values)
        infos = {i: load_fitting().describe(a) for i, a in arrays.items()}
        infos |= {i: load_fitting().describe(a)._replace(value=None) for i, a in read.items()}
        sources = (*wanted.values(), *variables.assigned.values(), *variables.inner)
        bound = _bound_model()(
            functools.partial(self._executor, sources, known),
            functools.partial(self._infer, graph=variables.with_parameters(known)),
            tuple(wanted),
            infos,
            arrays | read,
        )
        results = bound.compute(profile, values)
        values.update(zip(variables.assigned, results[len(wanted) :], strict=False))
        return dict(zip(wanted, results, strict=False))

    @functools.cached_property
    def _variables(self) -> Variables:
        from deconv_ir.execute.variables import Variables

        return Variables(self.graph)

    def _tiling(
        self, shapes: Mapping[str, Dims] | None, output: str | None
    ) -> tuple[dict[int, str], Sequence[Sequence[TensorInfo]], Mapping[str, Source]]:
        infos = self._infer(self._given.infos(shapes)).outputs
        names = dict(zip(self._parameters, self.inputs, strict=True))
        return names, infos, self._wanted(output)

    def output_names(self, outputs: str | Sequence[str] | None = None) -> list[str]:
        """Return the names under which `run` returns the outputs.

        Parameters
        ----------
        outputs : str or sequence of str, optional
            As in `run`.

        Raises
        ------
        IRError
            No tensor or layer has that name.

        Examples
        --------
        >>> import deconv_ir
        >>> deconv_ir.load("samples/block/block.xml").output_names()
        ['y']
        """
        return list(self._wanted(outputs))

    def require_runnable(self, outputs: str | Sequence[str] | None = None) -> None:
        """Raise an error unless every needed layer has an implementation.

        Parameters
        ----------
        outputs : str or sequence of str, optional
            As in `run`.

        Raises
        ------
        IRError
            No tensor or layer has that name.
        UnsupportedError
            Layers without an implementation (all are named).
        """
        wanted = list(self._wanted(outputs).values())
        require_implemented(self.graph, needed_layers(self.graph, wanted))

    def require_memory(self, shapes: Mapping[str, Dims] | None = None) -> None:
        """Raise an error unless arrays for the inputs fit into memory.

        Parameters
        ----------
        shapes : mapping, optional
            Input name -> shape; inputs left out have the smallest shape that the model accepts.

        Raises
        ------
        ResourceError
            The arrays do not fit.
        """
        needed = 0
        for info in self._given.infos(shapes).values():
            if info.shape is not None:
                least = tuple(bounds(d)[0] for d in info.shape)
                needed += tensor_bytes(TensorInfo(least, info.element_type)) or 0
        require_memory(needed, self.memory_limit, file=self.graph.file)

    def _wanted(self, outputs: str | Sequence[str] | None) -> Mapping[str, Source]:
        """Find the requested tensors, by the names under which they are returned."""
        if outputs is None:
            return self._sources
        return find_tensors(self.graph, names_of(outputs), self._sources)

    @functools.cached_property
    def _sources(self) -> Mapping[str, Source]:
        """The tensors that are the outputs."""
        sources = {}
        for name, index in zip(self.outputs, self._results, strict=True):
            source = self.graph.topology.sources[index][0]
            assert source is not None, "a graph with loose inputs does not load"
            sources[name] = source
        return MappingProxyType(sources)

    def _executor(
        self, sources: tuple[Source, ...], known: frozenset[str] = frozenset()
    ) -> Executor:
        def make() -> Executor:
            graph = self._variables.with_parameters(known) if known else self._computed
            return Executor(graph, self.context, sources, self.memory_limit)

        return self._executors.get((sources, known), make)

    @functools.cached_property
    def _computed(self) -> Graph:
        """The graph, with integer sums for oneDNN operations on dequantized tensors."""
        if not self.graph.of_type("Dequantize"):
            return self.graph
        from deconv_ir.ops.onednn.integer_graphs import on_integers

        return on_integers(self.graph)

    def layer(self, name: str) -> Model:
        """Return a model of a single layer.

        Its inputs are the non-constant inputs of the layer; constants of the network stay constant.

        Parameters
        ----------
        name : str
            Name or id of the layer.

        Raises
        ------
        IRError
            The layer does not exist.

        Examples
        --------
        >>> import deconv_ir
        >>> deconv_ir.load("samples/block/block.xml").layer("up")
        <Model 'up' (data: f32[1,8,16,16]) -> (up: f32[1,4,32,32])>
        """
        found = self.graph.find(name)
        if found is None:
            raise missing(self.graph, "layer", name, [layer.name for layer in self.graph.layers])
        stored = None if self.graph.stored is None else self.graph.stored.find(name)
        if stored is not None and self.graph.stored is not None:
            alone = extract_layer(self.graph.stored, stored)
            alone = as_computed(alone, self.semantics, self.context.accuracy)
            return self._with_graph(alone, self.context.weights)
        return self._with_graph(extract_layer(self.graph, found), self.context.weights)

    @property
    def weights_file(self) -> str | None:
        """Path of the weights file; None without weights, and for weights given as bytes."""
        weights = self.context.weights
        if isinstance(weights, Weights) and weights.descriptor is not None:
            return weights.path
        return None

    def _infer(self, infos: Mapping[int, TensorInfo], graph: Graph | None = None) -> Inference:
        """Infer with actual shapes; the last few inferences are kept."""
        return self._inferences.get(tuple(infos.items()), lambda: self._infer_from(infos, graph))

    def _infer_from(self, infos: Mapping[int, TensorInfo], graph: Graph | None = None) -> Inference:
        """Infer; the hint of a shape error lists the shapes on the path from the input."""
        graph = graph or self.graph
        try:
            return infer(graph, self.context, infos)
        except ShapeError as error:
            from deconv_ir.ir.shape_trace import explain_shape_trace

            raise explain_shape_trace(error, graph, self.context, infos) from None


@functools.cache
def _bound_model() -> type[BoundModel]:
    # Loads NumPy; looking a module up at each run would take longer than a small layer.
    from deconv_ir.bound import BoundModel

    return BoundModel


@functools.cache
def _repeated_run() -> type[RepeatedRun]:
    # As in `_bound_model`.
    from deconv_ir.bound import RepeatedRun

    return RepeatedRun


def _indices(graph: Graph, type_name: str) -> tuple[int, ...]:
    return tuple(i for i, layer in enumerate(graph.layers) if layer.type == type_name)


__all__ = ["Model"]
