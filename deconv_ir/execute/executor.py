"""Execution of a graph on arrays, according to its plan."""

from __future__ import annotations

import functools
from collections.abc import Callable, Hashable, Mapping, Sequence
from time import perf_counter
from typing import TYPE_CHECKING, Any, Protocol

from deconv_ir.errors import DeconvError, ResourceError
from deconv_ir.execute.analysis import require_implemented
from deconv_ir.execute.lru_cache import LRUCache
from deconv_ir.execute.memory import fits, out_of_memory, require_memory
from deconv_ir.execute.plan import Plan, Step
from deconv_ir.execute.planner import PlanBodies, make_plan
from deconv_ir.execute.pointwise import join_layers
from deconv_ir.execute.prepare import Preparation, PreparedModel
from deconv_ir.execute.scratchpad import Grant, grant_winograd
from deconv_ir.ir.dtypes import Array
from deconv_ir.ir.graph import Graph, Layer, Source, constant_layers, needed_layers
from deconv_ir.ir.infer import infer
from deconv_ir.ir.operation import Call, Context, Infos, TensorInfo
from deconv_ir.ir.shapes import is_static
from deconv_ir.kernels.runtime.idle import Idle, clear_idle
from deconv_ir.kernels.runtime.locks import ForkSafeLock
from deconv_ir.ops.values import actual

if TYPE_CHECKING:
    from deconv_ir.execute.request import InferRequest
    from deconv_ir.execute.variables import Variables
    from deconv_ir.ir.body import Body


class Observer(Protocol):
    """Receives the start and end of each step, in seconds of `time.perf_counter`."""

    def __call__(self, step: Step, began: float, ended: float) -> None:
        """Record the times of a step."""
        ...

    def within(self, step: Step, body: str, plan: Plan) -> Observer:
        """Return the observer for a body that a step runs."""
        ...


_PLANS_KEPT = 8


class Executor:
    """Runs a graph; work that depends only on constants is done once.

    Safe to use from several threads at once.  `wanted` are the requested tensors; a needed layer
    without an implementation is an `UnsupportedError`.  Without a memory limit, a run may use the
    available memory.  `add_tensors` is passed to `Preparation`.
    """

    def __init__(
        self,
        graph: Graph,
        context: Context,
        wanted: Sequence[Source],
        memory_limit: int | None = None,
        *,
        add_tensors: bool = True,
    ) -> None:
        self.graph = graph
        self._add_tensors = add_tensors
        self._bodies = BodyExecutors(graph, context, memory_limit)
        self.context = context._replace(run_body=self._bodies.run)
        self.wanted = tuple(wanted)
        self.memory_limit = memory_limit
        self.order = needed_layers(graph, wanted)
        require_implemented(graph, self.order)
        self.constant = constant_layers(graph, self.order)
        self._lock = ForkSafeLock()
        self._prepared: PreparedModel | None = None
        self._least_bytes = 0
        self._weight_bytes = 0
        self._last_run: Plan | None = None
        self._plans: LRUCache[Hashable, Plan] = LRUCache(_PLANS_KEPT)
        self._idle: Idle[InferRequest] = Idle()

    def plan(self, key: Hashable, infer: Callable[[], Sequence[Infos]]) -> Plan:
        """Return the plan for inputs of certain shapes, made once for a number of threads.

        Parameters
        ----------
        key : hashable
            Identifies the shapes, and the values that shapes depend on.
        infer : callable
            Returns, for each layer, the infos of its outputs.
        """

        def make() -> Plan:
            infos = infer()
            try:
                plan = self._plan_first(infos) or self._make_plan(self.prepare(infos), infos)
            except MemoryError as error:
                raise out_of_memory(
                    self._least_bytes, error, subject="the model", file=self.graph.file
                ) from error
            prepared = self.prepare(infos)
            held = prepared.weight_bytes
            is_fit = fits(plan.peak_bytes, self.memory_limit, held=held)
            if not is_fit and self._release_forms(prepared):
                plan = self._make_plan(prepared, infos)
            self._weight_bytes = prepared.weight_bytes
            return plan

        return self._plans.get((key, _threads()()), make)

    def _release_forms(self, prepared: PreparedModel) -> bool:
        """Free the weights that runs of other plans packed in further forms, if there are any."""
        if prepared.weight_bytes <= prepared.first_bytes:
            return False
        for kernel in set(prepared.kernels.values()):
            kernel.release()
        self._last_run = None
        return prepared.weight_bytes <= prepared.first_bytes

    def _plan_first(self, infos: Sequence[Infos]) -> Plan | None:
        """Prepare and plan while filters are packed; None if the model is prepared already."""
        from deconv_ir.kernels import background_packer
        from deconv_ir.kernels.runtime.interface import AS_PLANNED, PACK_AGAIN

        with self._lock:
            packer = background_packer()
            if self._prepared is not None or packer is None:
                return None
            prepared = self._prepare(infos, packer)
            plan = self._make_plan(prepared, infos)
            found = packer.finish()
            if found == PACK_AGAIN:
                prepared = self._prepare(infos)
            if found != AS_PLANNED:
                plan = self._make_plan(prepared, infos)
            self._prepared = prepared
            return plan

    def _make_plan(self, prepared: PreparedModel, infos: Sequence[Infos]) -> Plan:
        return make_plan(
            prepared,
            self.wanted,
            infos,
            self.context,
            self.memory_limit,
            self.plan_bodies,
        )

    @property
    def plan_bodies(self) -> PlanBodies:
        """The function that plans the bodies of a layer."""
        return self._bodies.plan_all

    def judge_whole(self, infos: Sequence[Infos]) -> list[Grant]:
        """Return the layers that use Winograd in a run of the whole network."""
        if self.context.accuracy.is_direct:
            return []
        return grant_winograd(self.prepare(infos), infos)

    def prepare(self, infos: Sequence[Infos]) -> PreparedModel:
        """Fold constants, and prepare the layers that have constant inputs; done once."""
        with self._lock:
            if self._prepared is None:
                self._prepared = self._prepare(infos)
            return self._prepared

    def _prepare(self, infos: Sequence[Infos], packer: Any = None) -> PreparedModel:
        preparation = Preparation(
            self.graph,
            self.context._replace(packer=packer),
            self.order,
            self.constant,
            self.wanted,
            infos,
            self.memory_limit,
            add_tensors=self._add_tensors,
        )
        self._least_bytes = preparation.least_bytes
        # Tensors are not counted yet: a run may need more.
        require_memory(
            self._least_bytes,
            self.memory_limit,
            subject="preparing the model",
            file=self.graph.file,
        )
        prepared = preparation.run()
        if prepared.quantizes:
            from deconv_ir.execute.coded import join_quantized

            general = self._general(infos) if self._add_tensors else None
            prepared = join_quantized(prepared, self.wanted, infos, general)
        return join_layers(prepared, self.wanted, infos)

    def _general(self, infos: Sequence[Infos]) -> Sequence[Infos] | None:
        """Return what holds in every run; None: that is not known."""
        parameters = [i for i in self.order if self.graph.layers[i].type == "Parameter"]
        declared = [self.graph.layers[i].outputs[0].shape for i in parameters]
        if all(map(is_static, declared)):
            return infos if declared == [infos[i][0].shape for i in parameters] else None
        try:
            return infer(self.graph, self.context).outputs
        except DeconvError:
            return None

    def run(
        self,
        plan: Plan,
        inputs: Mapping[int, Array],
        observer: Observer | None = None,
        variables: dict[str, Array] | None = None,
        once: bool = False,
        *,
        owned: bool = False,
    ) -> list[Array]:
        """Compute the wanted tensors.

        Parameters
        ----------
        plan : Plan
            Result of `plan` for the shapes of `inputs`.
        inputs : mapping
            Index of a Parameter layer -> its array.
        observer : callable, optional
            Receives the times of each step.
        variables : dict, optional
            The values of the variables of bodies, which read and write them.
        once : bool
            Free the packed weights of each layer when it has run.
        owned : bool
            Return arrays that share memory with no other; see `fitting.own`.
        """
        request = self._take(plan)
        if plan.bodies:
            request.with_bodies = functools.partial(
                self._with_bodies,
                variables={} if variables is None else variables,
                observer=observer,
            )
        values = request.values
        for index, slot in plan.inputs.items():
            values[slot] = inputs[index]
        if request.is_direct:
            self._compute(request, observer, once=once)
        else:
            # Infinities and NaNs are valid results here, so warnings are off.
            with _numpy().errstate(all="ignore"):
                self._compute(request, observer, once=once)
        if plan is not self._last_run:
            self._last_run, self._weight_bytes = plan, self.prepared.weight_bytes
        results = [values[slot] for slot in plan.wanted]
        request.reset()
        self._idle.give(plan, request, plan.arena_bytes)
        if owned and not request.is_apart:
            return _own()(results, list(inputs.values()))
        return results

    def _take(self, plan: Plan) -> InferRequest:
        """Return the memory of a run, within the limits."""
        request = self._idle.take(plan)
        limit = self.memory_limit
        if request is None and limit is not None:
            clear_idle()  # arenas of other plans count as well
        # Runs of other plans may have packed more weights.
        weights, arena = self._weight_bytes, plan.arena_bytes if request else 0
        needed = plan.peak_bytes
        if weights > plan.weight_bytes:
            needed += weights - plan.weight_bytes
            if not fits(needed, limit, held=weights + arena):
                self._release_forms(self.prepared)
                weights = self._weight_bytes = self.prepared.weight_bytes
                needed = plan.peak_bytes + max(0, weights - plan.weight_bytes)
        require_memory(needed, limit, held=weights + arena, file=self.graph.file)
        if request is None:
            from deconv_ir.execute.request import InferRequest

            request = InferRequest(plan, self.prepared)
        return request

    def out_of_memory(self, plan: Plan, error: MemoryError) -> ResourceError:
        """Return the error for an allocation that failed in a run."""
        return out_of_memory(plan.peak_bytes, error, subject="the model", file=self.graph.file)

    @property
    def prepared(self) -> PreparedModel:
        """The prepared layers, from which plans are made."""
        assert self._prepared is not None, "a plan was made from it"
        return self._prepared

    def _compute(self, request: InferRequest, observer: Observer | None, *, once: bool) -> None:
        """Compute all steps."""
        plan, step = request.plan, None
        try:
            if observer is None and not once:
                for step, call in request.work:  # noqa: B007 - errors name the step
                    call()
                return
            kernels = self.prepared.kernels if once else {}
            # Equal layers share a kernel.
            last_use = {kernels[s.layer]: s.layer for s in plan.steps if s.layer in kernels}
            for step, call in zip(plan.steps, request.calls, strict=True):
                began = perf_counter()
                call()
                kernel = kernels.get(step.layer)
                if kernel is not None and last_use[kernel] == step.layer:
                    kernel.release()
                if observer is not None:
                    observer(step, began, perf_counter())
        except DeconvError as error:
            if step is not None:
                layer = self.prepared.graph.layers[step.layer]
                error.locate(file=self.graph.file, line=layer.line, layer=layer.label)
            raise

    def _with_bodies(
        self, step: Step, variables: dict[str, Array], observer: Observer | None
    ) -> Call:
        """Return the call of a step with bodies, which also reports the steps of bodies."""
        operation = self.prepared.graph.layers[step.layer].operation
        within = None if observer is None else functools.partial(observer.within, step)
        run_body = functools.partial(self._bodies.run, variables=variables, observer=within)
        context = self.context._replace(run_body=run_body)
        return lambda arrays, out: operation.execute(arrays, context)


class BodyExecutors:
    """Runs the bodies of a graph's layers; each body has its own executors."""

    def __init__(self, graph: Graph, context: Context, memory_limit: int | None) -> None:
        self._graph = graph
        self._context = context
        self._memory_limit = memory_limit
        self._lock = ForkSafeLock()
        # Keyed by the identity of a body, which the graph keeps alive, and the variables with
        # values.
        self._executors: dict[tuple[int, frozenset[str]], Executor] = {}
        self._variables: dict[int, Variables] = {}

    def plan_all(self, layer: Layer, inputs: Infos) -> tuple[tuple[str, Plan], ...]:
        """Plan the bodies of a layer."""
        operation = layer.operation
        parameters = operation.infer_parameters(inputs, self._context)
        return tuple(
            (body.name, self._plan(self._executor(body, frozenset()), given))
            for body, given in zip(operation.bodies, parameters, strict=True)
        )

    def run(
        self,
        body: Body,
        given: Mapping[int, Array],
        variables: dict[str, Array] | None = None,
        observer: Callable[[str, Plan], Observer] | None = None,
    ) -> Sequence[Array]:
        """Run a body; see `Context.run_body`."""
        import numpy as np

        values = {} if variables is None else variables
        own = self._variables_of(body)
        executor = self._executor(body, own.known(values))
        infos = {index: _info(body, index, given[index]) for index in sorted(given)}
        read = own.read(values)
        infos |= {
            index: actual(array)._replace(value=None, reals=None) for index, array in read.items()
        }
        plan = self._plan(executor, infos)
        seen = None if observer is None else observer(body.name, plan)
        results = executor.run(plan, {**given, **read}, seen, values)
        for name, array in zip(own.assigned, results[len(body.results) :], strict=True):
            # An input array may be in an arena, to which later steps write.
            shown = any(np.may_share_memory(array, other) for other in given.values())
            values[name] = array.copy() if shown else array
        return results[: len(body.results)]

    def _variables_of(self, body: Body) -> Variables:
        from deconv_ir.execute.variables import Variables

        with self._lock:
            if id(body) not in self._variables:
                if not self._variables:
                    Variables(self._graph)  # checks that bodies use other variables
                self._variables[id(body)] = Variables(body.graph)
            return self._variables[id(body)]

    def _executor(self, body: Body, known: frozenset[str]) -> Executor:
        variables = self._variables_of(body)
        with self._lock:
            found = self._executors.get((id(body), known))
            if found is None:
                sources = (body.graph.topology.sources[result][0] for result in body.results)
                wanted = [source for source in sources if source is not None]
                wanted += variables.assigned.values()
                graph = variables.with_parameters(known)
                found = Executor(graph, self._context, wanted, self._memory_limit)
                self._executors[id(body), known] = found
            return found

    def _plan(self, executor: Executor, infos: dict[int, TensorInfo]) -> Plan:
        def outputs() -> Sequence[Infos]:
            return infer(executor.graph, self._context, infos).outputs

        return executor.plan(tuple(infos.values()), outputs)


def _info(body: Body, index: int, array: Array) -> TensorInfo:
    """Return the info of a Parameter's array, with its value if that never changes."""
    stated = body.graph.layers[index].outputs[0].element_type
    if stated is not None and stated.numpy() != array.dtype:
        stated = None
    info = actual(array, stated)
    return (
        info._replace(value=None, reals=None)
        if index in body.changing
        else info._replace(reals=None)
    )


@functools.cache
def _numpy() -> Any:
    # As in `_threads`.
    import numpy

    return numpy


@functools.cache
def _own() -> Callable[[Sequence[Array], Sequence[Array]], list[Array]]:
    # As in `_threads`.
    from deconv_ir.arrays.fitting import own

    return own


@functools.cache
def _threads() -> Callable[[], int]:
    # Loads NumPy; looking a module up at each run would take as long as a small layer.
    from deconv_ir.kernels import get_threads

    return get_threads
