"""Whether the tensors of one side are right, given the tensors that this side itself had."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from deconv_ir.arrays.fitting import describe
from deconv_ir.compare.measure import SideVerdict, measure, screen, wide
from deconv_ir.compare.network import Network
from deconv_ir.errors import DeconvError
from deconv_ir.execute.analysis import require_implemented
from deconv_ir.execute.executor import BodyExecutors
from deconv_ir.execute.memory import require_memory
from deconv_ir.execute.places import tensor_bytes
from deconv_ir.ir.dtypes import F32, Array, ElementType, from_numpy
from deconv_ir.ir.graph import Source, ancestors, locating
from deconv_ir.ir.operation import TensorInfo
from deconv_ir.ir.options import Semantics
from deconv_ir.ops.allowance import ULPS, Bounds, Case, Precision, bounds, moves_only
from deconv_ir.ops.precision import in_f64, keeps_types


class Judged(NamedTuple):
    """An output of a layer: the verdict, the exact result (f64), and the inputs of the layer."""

    verdict: SideVerdict
    exact: Array | None
    inputs: tuple[Array, ...]


class Execution(NamedTuple):
    """How a side computed a layer, as far as it says: its type, and its algorithm."""

    executed: ElementType | None = None
    windows: bool = False
    levels: bool = False


class LayerBounds(NamedTuple):
    """The allowances of a layer, and the computation for which they are."""

    bounds: Bounds
    case: Case

    def fits(self, other: Case) -> bool:
        """Whether these are the allowances of another side that had almost the same inputs."""
        case = self.case
        return (
            all(error is None for error in (*case.errors, *other.errors))
            and case.precision == other.precision
            and case.context.semantics is other.context.semantics
            and [a.shape for a in case.outputs] == [a.shape for a in other.outputs]
            and (case.narrow is other.narrow or case.narrow == other.narrow)
        )


class TensorState(NamedTuple):
    """A tensor of the side, and a bound of its error (None: exact)."""

    array: Array
    error: Array | None = None
    known: bool = True
    """Whether a bound of the error is known."""


class Judge:
    """Computes each layer of a side in f64, from the tensors of this side.

    A tensor that the side does not have is computed from those before it, with a bound of its
    error.  Tensors are freed after their last use.

    Parameters
    ----------
    network : Network
        The model that the side runs.
    inputs : mapping
        The arrays of its Parameters, by index.
    infos : sequence
        The inferred outputs of all layers for these inputs.
    wanted : sequence of int
        The layers that are judged.
    provided : callable
        Whether the side has a tensor.
    execution : callable
        How the side computed a layer.
    """

    def __init__(
        self,
        network: Network,
        inputs: Mapping[int, Array],
        infos: Sequence[Sequence[TensorInfo]],
        wanted: Sequence[int],
        provided: Callable[[Source], bool],
        execution: Callable[[int], Execution],
    ) -> None:
        self.network = network
        self.infos = infos
        self.provided = provided
        self.execution = execution
        self.graph = in_f64(network.graph)
        bodies = BodyExecutors(self.graph, network.context, None)
        values: dict[str, Array] = {}
        self.context = network.context._replace(
            run_body=lambda body, given: bodies.run(body, given, values)
        )
        self.sources = network.graph.topology.sources
        self.needed = ancestors(network.graph.topology, wanted)
        require_implemented(network.graph, sorted(self.needed))
        self.uses = dict.fromkeys(self.needed, 0)
        for index in self.needed:
            for source in self.sources[index]:
                if source is not None:
                    self.uses[source[0]] += 1
        self.states: dict[int, list[TensorState]] = {
            index: [TensorState(array)] for index, array in inputs.items() if index in self.needed
        }
        self.given: Mapping[Source, Array] = {}
        """Tensors from the same run of the side as those that are judged."""
        self.unknown = False
        """Whether a tensor at the inputs of the last layer has no known bound of its error."""
        self.found: LayerBounds | None = None
        """The allowances of the last layer, unless none were needed."""

    def set_input(self, index: int, array: Array) -> None:
        """Take another array for an input of the model."""
        self.states[index] = [TensorState(array)]

    def replace(self, index: int, output: int, array: Array) -> None:
        """Take another array for an output of a layer that was judged."""
        if index in self.states:
            self.states[index][output] = TensorState(array)

    def judge(
        self, index: int, arrays: Sequence[Array | None], near: LayerBounds | None = None
    ) -> list[Judged | None]:
        """Judge the outputs of a layer, each layer once; None: the side does not have it.

        `near` are the allowances of the same layer for inputs that are almost the same: by these, a
        tensor may be found right.
        """
        self.found = None
        try:
            case = self._case(index)
        except DeconvError as error:
            # As after a tensor of a wrong shape.
            self.states[index] = [TensorState(array) for array in arrays if array is not None]
            return [
                None if array is None else Judged(SideVerdict(None, note=str(error)), None, ())
                for array in arrays
            ]
        found: list[Judged | None] = []
        states: list[TensorState] = []
        allowed: Bounds | None = None
        known = False
        rows = zip(case.outputs, arrays, strict=False)
        for output, (exact, array) in enumerate(rows):
            if array is None or not self.provided((index, output)):
                if not known:
                    allowed, known = self._bounds(case), True
                states.append(_computed_state(exact, allowed, output))
                found.append(None)
                continue
            verdict = self._verdict(index, output, case, array, near)
            found.append(Judged(verdict, exact, tuple(case.inputs)))
            states.append(TensorState(array))
        if self.uses[index]:
            self.states[index] = states
        return found

    def _verdict(
        self, index: int, output: int, case: Case, array: Array, near: LayerBounds | None
    ) -> SideVerdict:
        exact = case.outputs[output]
        info = self.infos[index][output]
        precision = self._precision(index, output, info.element_type, array)
        executed = precision.executed.name if precision.operand or precision.levels else ""
        if {array.shape, exact.shape} == {(), (1,)}:
            array = array.reshape(exact.shape)
        if array.shape != exact.shape:
            note = f"shape {list(array.shape)}, exact {list(exact.shape)}"
            return SideVerdict(False, math.inf, math.inf, wrong=array.size or 1, note=note)
        if exact.dtype.kind not in "fiub" or array.dtype.kind in "OSTU":
            same = bool((array == exact).all()) if exact.size else True
            return SideVerdict(same, 0.0 if same else math.inf)
        if not case.operation.is_repeatable:
            return SideVerdict(None, note="its results are random")
        case = case._replace(precision=precision)
        strict = exact.dtype.kind != "f" or moves_only(case.operation)
        share = 0.0 if strict and not precision.operand else ULPS * precision.result
        screened = screen(array, exact, share)
        if screened.places is None:
            found = measure(array, exact, 0.0, precision, screened)
            return found._replace(executed=executed)
        valid = case.operation.valid(case, output, array)
        if near is not None and near.fits(case):
            bound = near.bounds[output]
            found = measure(array, exact, bound, precision, screened, strict=strict, valid=valid)
            if found.right:
                return found._replace(executed=executed)
        allowed = self._bounds(case)
        if allowed is None and valid is None:
            measured = measure(array, exact, math.inf, precision, screened)
            note = "no allowance is known for this operation"
            return measured._replace(right=None, times=0.0, executed=executed, note=note)
        bound = math.nan if allowed is None else allowed[output]
        found = measure(array, exact, bound, precision, screened, strict=strict, valid=valid)
        if found.right is False:
            other = self._other_semantics(index, output, case, array, precision, strict)
            if other is not None:
                return other._replace(executed=executed)
        return found._replace(executed=executed)

    def _other_semantics(
        self,
        index: int,
        output: int,
        case: Case,
        array: Array,
        precision: Precision,
        strict: bool,
    ) -> SideVerdict | None:
        """Return the verdict by the semantics of the runtime, if by these the side is right."""
        infos = [describe(a) for a in case.inputs]
        try:
            difference = case.operation.compare_semantics(infos, case.context)
        except DeconvError:
            return None
        if difference is None or difference.is_fault:
            return None
        used = case.context.semantics
        runtime = case.operation.runtime
        semantics = Semantics.SPEC if used is runtime else runtime
        context = case.context._replace(semantics=semantics)
        try:
            case = case._replace(context=context)
            case = case._replace(outputs=tuple(map(wide, case.run(case.inputs))))
        except DeconvError:
            return None
        exact = case.outputs[output]
        if exact.shape != array.shape:
            return None
        allowed = self._bounds(case)
        if allowed is None:
            return None
        screened = screen(array, exact, 0.0)
        found = measure(array, exact, allowed[output], precision, screened, strict=strict)
        if not found.right:
            return None
        return found._replace(semantics=semantics.value, note=difference.message(runtime, used))

    def _precision(
        self, index: int, output: int, declared: ElementType | None, array: Array | None
    ) -> Precision:
        if declared is None and array is not None:
            declared = from_numpy(array.dtype)
        declared = declared or F32
        execution = self.execution(index)
        executed = execution.executed or declared
        narrows = declared.is_float and declared.bits <= 32
        if not narrows or not executed.is_float:
            executed = declared
        return Precision(declared, executed, execution.windows, narrows and execution.levels)

    def _bounds(self, case: Case) -> Bounds | None:
        import numpy as np

        if self.unknown:
            return None
        with np.errstate(all="ignore"):
            found = bounds(case)
        if found is not None:
            self.found = LayerBounds(found, case)
        return found

    def _case(self, index: int) -> Case:
        """Compute a layer from the states of its inputs."""
        for source in self.sources[index]:
            if source is not None:
                self._require(source[0])
        return self._computed(index)

    def _require(self, index: int) -> None:
        """Compute tensors that the side does not have."""
        stack = [index]
        while stack:
            at = stack[-1]
            if at in self.states:
                stack.pop()
                continue
            missing = [s[0] for s in self.sources[at] if s and s[0] not in self.states]
            if missing:
                stack += missing
                continue
            case = self._computed(at)
            constant = at in self.network.constant_layers
            allowed = None if constant else self._bounds(case)
            self.states[at] = [
                TensorState(exact) if constant else _computed_state(exact, allowed, output)
                for output, exact in enumerate(case.outputs)
            ]
            stack.pop()

    def _computed(self, index: int) -> Case:
        import numpy as np

        layer, narrow = self.graph.layers[index], self.network.layer(index)
        inputs: list[Array] = []
        errors: list[Array | None] = []
        known: list[bool] = []
        for source in self.sources[index]:
            if source is None:
                continue
            state = self._use(source)
            array = wide(state.array)
            if keeps_types(layer):
                stored = self.infos[source[0]][source[1]].element_type
                if stored is not None and stored.is_float and array.dtype.kind == "f":
                    array = array.astype(stored.numpy())
            inputs.append(array)
            errors.append(state.error)
            known.append(state.known)
        operation = layer.operation
        with locating(self.graph, layer):
            shapes = operation.infer(list(map(describe, inputs)), self.context)
            require_memory(sum(tensor_bytes(i) or 0 for i in shapes), file=self.graph.file)
            with np.errstate(all="ignore"):
                outputs = tuple(map(wide, operation.execute(list(inputs), self.context)))
        declared = self.infos[index][0].element_type if self.infos[index] else None
        precision = self._precision(index, 0, declared, None)
        self.unknown = not all(known)
        return Case(operation, inputs, errors, outputs, precision, self.context, narrow.operation)

    def _use(self, source: Source) -> TensorState:
        index, output = source
        state = self.states[index][output]
        if source in self.given:
            state = TensorState(self.given[source])
        self.uses[index] -= 1
        if not self.uses[index]:
            del self.states[index]
        return state


def _computed_state(exact: Array, allowed: Bounds | None, output: int) -> TensorState:
    """Return a tensor that the side does not have, with the bound of its error."""
    import numpy as np

    if exact.dtype.kind != "f" or allowed is None:
        return TensorState(exact, known=allowed is not None)
    bound: Array = np.broadcast_to(np.asarray(allowed[output], np.float64), exact.shape)
    return TensorState(exact, bound if bound.any() else None)
