"""Differences between two models: structure, and behaviour on given inputs."""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from deconv_ir.compare.agreement import Other, judge_inputs
from deconv_ir.compare.culprit import Culprit, describe_culprit, infer_run
from deconv_ir.compare.cut import results_of
from deconv_ir.compare.evaluate import Evaluator
from deconv_ir.compare.folding import find_folded, tensor_pairs
from deconv_ir.compare.judge import Execution, Judge
from deconv_ir.compare.judging import Judging
from deconv_ir.compare.levels import judge_levels
from deconv_ir.compare.matching import match
from deconv_ir.compare.network import Comparable, Network, open_network
from deconv_ir.compare.openvino_side import OpenVINOSide
from deconv_ir.compare.sides import ArraysSide, ModelSide, OnnxSide, Side
from deconv_ir.compare.structure import Aspect, Difference, compare_structure
from deconv_ir.compare.tensors import TensorDifference, compare_tensors, require_tolerances
from deconv_ir.compare.thresholds import Failure, OutputConditions, Threshold
from deconv_ir.compare.verdict import ModelVerdict, SettingVerdict
from deconv_ir.errors import DeconvError, InputError, SettingError
from deconv_ir.execute.effort import require_modest_run
from deconv_ir.execute.places import tensor_bytes
from deconv_ir.hints import Advice, Hint
from deconv_ir.ir.dtypes import Array
from deconv_ir.ir.graph import Source, ancestors
from deconv_ir.ir.operation import TensorInfo
from deconv_ir.ir.options import Accuracy, Semantics
from deconv_ir.model import Model

if TYPE_CHECKING:
    from deconv_ir.model import Inputs

Against = str | Mapping[str, Any] | tuple[Mapping[str, Any], Mapping[str, Any]]

RTOL = 1e-4
"""Default tolerance of tensors, relative to their largest magnitude."""

_CONVOLUTIONS = ("Convolution", "GroupConvolution", "ConvTranspose")
"""Beginnings of the types of layers that Winograd may compute."""


class ModelDifference(NamedTuple):
    """The result of `diff`.

    Attributes
    ----------
    a, b : str
        Names of the compared models.
    layers : tuple of int
        Number of layers of the first model, and of the second (0: not an IR); a constant and its
        conversion count once.
    matched : int
        Number of layers in both models.
    differences : tuple of Difference
        Differences in structure.
    tensors : tuple of TensorDifference
        Differences in behaviour: every tensor of both models, in the order of computation.
    culprit : Culprit or None
        The layer in which the error first appears.
    stopped : str
        The reason why later tensors could not be compared.
    unmatched : mapping
        Names of the given arrays that were not compared -> the reason.
    verdict : ModelVerdict or None
        Who is right, if this was asked.
    conditions : tuple of Threshold
        The conditions under which an output counts as different.
    failures : tuple of Failure
        The outputs that meet one.

    Examples
    --------
    >>> import deconv_ir
    >>> found = deconv_ir.diff("samples/block/block.xml", "samples/block/block.xml")
    >>> isinstance(found, deconv_ir.ModelDifference), found.equal, found.matched
    (True, True, 7)
    """

    a: str
    b: str
    layers: tuple[int, int]
    matched: int
    differences: tuple[Difference, ...] = ()
    tensors: tuple[TensorDifference, ...] = ()
    culprit: Culprit | None = None
    stopped: str = ""
    unmatched: Mapping[str, str] = MappingProxyType({})
    verdict: ModelVerdict | None = None
    conditions: tuple[Threshold, ...] = ()
    failures: tuple[Failure, ...] = ()

    @property
    def equal(self) -> bool:
        """Whether the models are equal; with conditions, whether no output meets one."""
        if self.conditions:
            return not self.failures and not self.stopped
        return not self.differences and all(t.within for t in self.tensors)


def diff(
    a: Comparable,
    b: Comparable | None = None,
    inputs: Inputs | None = None,
    *,
    against: Against | None = None,
    ignore: Collection[Aspect | str] = (Aspect.IDS, Aspect.ORDER),
    weights_tolerance: float = 0.0,
    rtol: float = RTOL,
    atol: float = 0.0,
    levels: int = 0,
    semantics: Semantics | str = Semantics.SPEC,
    other_semantics: Semantics | str | None = None,
    progress: Callable[[int, int], None] | None = None,
    modest: bool = False,
    verdict: bool = False,
    settings: Mapping[str, str] | None = None,
    fail_if: Sequence[str] = (),
) -> ModelDifference:
    """Compare two models.

    Parameters
    ----------
    a, b : Model or path-like
        The models.  Without `b`, `a` is compared with `against`.  With
        onnxruntime, `b` is the path of an ONNX model.
    inputs : mapping, iterable or array, optional
        As in `Model.run`: both models run on them, and tensors are compared.
    against : str or mapping or tuple of two mappings, optional
        ``openvino`` or ``onnxruntime``: the runtime of `b`, tensor by tensor.  A mapping has
        arrays by tensor name or layer name, from any tool.  Two mappings are compared with
        each other: `a` does not run, and is needed for the verdict.
    ignore : collection of Aspect or str
        Aspects of structure that are not compared.
    weights_tolerance : float
        Difference of weights that is ignored, relative to their largest magnitude.
    rtol : float
        Tolerance of tensors, relative to their largest magnitude in `a`.
    atol : float
        Absolute tolerance of tensors.
    levels : int
        Quantised tensors, those of FakeQuantize, Quantize and DynamicQuantize, may differ by this
        number of levels.  Layers after such a tensor are compared for the values that `b`
        has there.
    semantics : Semantics or str
        Semantics of models that are given as paths.
    other_semantics : Semantics or str, optional
        Semantics of `b`, if it differs.
    progress : callable, optional
        Called with the number of compared layers and the total.
    modest : bool
        Refuse runs whose work is out of proportion to the number of layers, as damaged files
        cause them.
    verdict : bool
        Also compute every layer in f64, from the tensors that each side had at its inputs, and say
        which side is wrong: its deviation is more than its precision allows
        (``docs/verdicts.md``).
    settings : mapping, optional
        Settings of OpenVINO, such as ``{"INFERENCE_PRECISION_HINT": "bf16"}``; by default, this
        hint is f32.
    fail_if : sequence of str
        Conditions such as ``rms>1e-3`` or ``y: psnr<40``, on all outputs or one: the models are
        equal if no output meets one, whatever else differs (`Metric`).

    Returns
    -------
    ModelDifference

    Raises
    ------
    SettingError
        The arguments contradict each other.
    UnsupportedError
        A runtime is not installed, or a layer cannot be run.
    ResourceError
        A run does not fit into memory, or is not `modest`.
    DeconvError
        As in `load` and `Model.run`.

    Examples
    --------
    >>> import deconv_ir
    >>> from pathlib import Path
    >>> text = Path("samples/block/block.xml").read_text()
    >>> _ = Path("changed.xml").write_text(text.replace('strides="2, 2"', 'strides="2, 1"'))
    >>> weights = Path("samples/block/block.bin")
    >>> changed = deconv_ir.load("changed.xml", weights, warn=False)
    >>> found = deconv_ir.diff("samples/block/block.xml", changed)
    >>> for difference in found.differences:
    ...     print(difference)
    'up' (ConvolutionBackpropData, id 3): strides: 2,2 in A, 2,1 in B
    """
    require_tolerances(weights_tolerance=weights_tolerance, rtol=rtol, atol=atol)
    if b is None and against is None:
        raise SettingError("diff requires a second model, or against")
    if b is not None and isinstance(against, Mapping | tuple):
        raise SettingError("against arrays, there is no second model")
    if isinstance(against, str) and against not in ("openvino", "onnxruntime"):
        raise SettingError(f"against must be openvino, onnxruntime or arrays, found {against!r}")
    first = open_network(a, semantics)
    ignored = {_aspect(aspect) for aspect in ignore}
    arrays = None if inputs is None else first.inputs.bind(inputs, cast=False)
    second, matching = None, None
    pairs: dict[int, int] = {}
    differences: tuple[Difference, ...] = ()
    conditions = _conditions(first, fail_if)
    is_model = against is None or against == "openvino"
    if is_model:
        # Without a second model, the runtime runs the first model.
        second = first if b is None else open_network(b, other_semantics or semantics)
        matching = match(first, second)
        pairs = matching.pairs
        if second is not first:
            folded = find_folded(first, second, matching)
            differences = compare_structure(
                first, second, matching, folded, ignored, weights_tolerance
            )
            pairs = tensor_pairs(pairs, folded)
    if arrays is None:
        if against is not None:
            raise SettingError("against compares tensors, and requires inputs")
        if fail_if:
            raise SettingError("fail_if compares tensors, and requires inputs")
        tensors: tuple[TensorDifference, ...] = ()
        culprit, stopped = None, ""
        unmatched: Mapping[str, str] = {}
    else:
        behaviour = _Behaviour(first, second, pairs, arrays, differences, (rtol, atol))
        behaviour.levels = levels
        behaviour.settings = settings
        behaviour.judges = verdict
        behaviour.conditions = conditions
        if modest:
            behaviour.require_modest_runs()
        tensors = tuple(behaviour.run(b, against, progress))
        culprit, stopped = behaviour.culprit, behaviour.stopped
        unmatched = behaviour.unmatched
        if not stopped:
            conditions.require_compared()
    other = _name(b) if b is not None else against if isinstance(against, str) else "arrays"
    judged: ModelVerdict | None = None
    if arrays is not None and behaviour.judging is not None:
        sides = ("A", "B")
        if isinstance(against, str | Mapping):
            sides = ("deconv_ir", against if isinstance(against, str) else other)
        judged = ModelVerdict(
            sides, tuple(behaviour.judging.layers), behaviour.repeated, behaviour.notes
        )
        if against == "onnxruntime" and judged.wrong_sides == ("onnxruntime",):
            note = "The layer is judged by the IR: its conversion from ONNX may be wrong instead."
            judged = judged._replace(notes=(*judged.notes, note))
    return ModelDifference(
        _name(a),
        other,
        (len(list(first.nodes)), len(list(second.nodes)) if second else 0),
        len(matching.pairs) if matching else 0,
        differences,
        tensors,
        culprit,
        stopped,
        unmatched,
        judged,
        conditions.thresholds,
        tuple(conditions.failures),
    )


def _name(given: Comparable) -> str:
    if isinstance(given, Model):
        return given.graph.file or given.graph.name
    return os.fspath(given)


def _conditions(network: Network, texts: Sequence[str]) -> OutputConditions:
    """Parse conditions on the outputs of a network."""
    outputs = {source: network.tensor_name(source) for source in results_of(network.graph)}
    given = [outputs[s] for s in outputs if network.layer(s[0]).type == "Parameter"]
    return OutputConditions([Threshold.parse(text) for text in texts], outputs, given)


def _aspect(given: Aspect | str) -> Aspect:
    try:
        return Aspect(given)
    except ValueError:
        known = ", ".join(aspect.value for aspect in Aspect)
        raise SettingError(f"ignore: no aspect {given!r}; there are {known}") from None


class _Behaviour:
    """Compares all common tensors of two sides, in the order of computation."""

    def __init__(
        self,
        a: Network,
        b: Network | None,
        pairs: Mapping[int, int],
        inputs: Mapping[int, Array],
        differences: Sequence[Difference],
        tolerances: tuple[float, float],
    ) -> None:
        self.a = a
        self.b = b
        self.pairs = pairs
        self.inputs = inputs
        self.differences = differences
        self.rtol, self.atol = tolerances
        self.levels = 0
        self.settings: Mapping[str, str] | None = None
        self.judges = False
        self.conditions = OutputConditions((), {})
        self.judging: Judging | None = None
        self.repeated: tuple[SettingVerdict, ...] = ()
        self.notes: tuple[str, ...] = ()
        self.results: dict[Source, Array] = {}
        """The outputs of the second side, while all other tensors were outputs, too."""
        self.first: ArraysSide | None = None
        """The tensors of the first side, unless it runs."""
        self.culprit: Culprit | None = None
        self.stopped = ""
        self.unmatched: Mapping[str, str] = {}
        self.infos = infer_run(a, inputs)

    def require_modest_runs(self) -> None:
        """Require that the work of both runs is in proportion to the networks."""
        require_modest_run(self.a.graph, self.infos)
        if self.b is not None and self.b is not self.a:
            given = self._inputs_of_b()
            require_modest_run(self.b.graph, infer_run(self.b, given))

    def run(
        self,
        b: Comparable | None,
        against: Against | None,
        progress: Callable[[int, int], None] | None,
    ) -> Iterator[TensorDifference]:
        a = self.a
        # Inputs of the model are the same arrays on both sides, unless a dump has others.
        dumps = isinstance(against, Mapping | tuple)
        skipped = ("Result",) if dumps else ("Parameter", "Result")
        candidates = [
            i
            for i in a.graph.topology.order
            if i not in a.constant_layers and a.layer(i).type not in skipped
        ]
        if isinstance(against, tuple):
            self.first, against = ArraysSide(against[0], a), against[1]
        side = self._side(candidates, b, against)
        wanted = [i for i in candidates if side.has(i)]
        if self.first is not None:
            wanted = [i for i in wanted if self.first.has(i)]
        if not wanted:
            raise InputError("the two have no tensor in common", file=a.graph.file)
        other = Other(self.b, self.pairs, self.differences) if self.b is not None else None
        evaluator = Evaluator(a, self.inputs, wanted if self.first is None else ())
        if self.judges:
            self.judging = self._judging(wanted, side)
        results = frozenset(results_of(self.b.graph)) if self.b is not None else frozenset()
        agreeing: set[Source] = set()
        for done, index in enumerate(wanted):
            layer = a.layer(index)
            try:
                left = (self.first or evaluator).take(index)
                right = side.take(index)
            except DeconvError as error:
                # After a tensor of another shape, few shapes match.
                if self.culprit is None:
                    raise
                self.stopped = str(error)
                return
            row: list[TensorDifference | None] = []
            replaced: dict[int, Array] = {}
            for output, (x, y) in enumerate(zip(left, right, strict=False)):
                if x is None or y is None:
                    row.append(None)
                    continue
                name = a.tensor_name((index, output))
                found = compare_tensors(name, layer.label, layer.line, x, y, self.rtol, self.atol)
                if self.levels and not found.within:
                    pair = (x, y)
                    found = judge_levels(a, self.inputs, index, found, pair, self.levels)
                    if found.within:
                        replaced[output] = y
                        if self.first is None:
                            evaluator.replace(index, output, y)
                if found.within:
                    agreeing.add((index, output))
                elif self.culprit is None:
                    agreement = judge_inputs(a, index, agreeing, other)
                    self.culprit = describe_culprit(
                        a, self.infos, index, found, self.differences, agreement
                    )._replace(hint=self._accuracy_hint(index, output, y, found) or "")
                row.append(found)
                self.conditions.judge((index, output), found, x, y)
                yield found
            if against == "openvino":
                self.results |= {
                    (index, k): x
                    for k, (x, found) in enumerate(zip(left, row, strict=False))
                    if x is not None and found and found.within and (side.own(index), k) in results
                }
            if self.judging is not None:
                if layer.type == "Parameter" and row[0] is not None and right[0] is not None:
                    self.judging.add_input(index, row[0], (left[0], right[0]))
                elif layer.type != "Parameter":
                    self.judging.b.given = side.same_run
                    self.judging.add(index, side.own(index), (left, right), row)
                for output, y in replaced.items():
                    self.judging.replace(index, output, y)
            if progress is not None:
                progress(done + 1, len(wanted))
        if isinstance(side, OpenVINOSide):
            from deconv_ir.compare.rerun import Reruns, compare_fused

            fused = list(compare_fused(a, side, self.results, (self.rtol, self.atol)))
            yield from fused
            if self.judging is not None:
                again = Reruns(side, self.judging, outputs_agree=not fused)
                self.repeated, self.notes = again.run(wanted)

    def _judging(self, wanted: Sequence[int], side: Side) -> Judging:
        """Prepare the verdict on both sides."""
        computed = frozenset(wanted)
        first = self.first
        windows = not self.a.context.accuracy.is_direct
        judge = Judge(
            self.a, self.inputs, self.infos, wanted,
            first.provides if first else lambda source: source[0] in computed,
            first.execution if first else lambda index: Execution(windows=windows),
        )  # fmt: skip
        other, inputs, infos = self.a, self.inputs, self.infos
        if self.b is not None and self.b is not self.a:
            other, inputs = self.b, self._inputs_of_b()
            infos = infer_run(other, inputs)
        judged = [side.own(i) for i in wanted if self.a.layer(i).type != "Parameter"]
        second = Judge(other, inputs, infos, judged, side.provides, side.execution)
        return Judging(self.a, judge, second, self.differences)

    def _accuracy_hint(
        self, index: int, output: int, expected: Array, found: TensorDifference
    ) -> Advice | None:
        """Return the hint at direct sums, if they avoid most of a layer's differences.

        Winograd's errors are small on the scale of a convolution's whole output, so that the first
        layer out of tolerance may be one behind it.
        """
        a = self.a
        layers = [a.layer(i) for i in ancestors(a.graph.topology, [index])]
        summed = any(
            layer.type.startswith(_CONVOLUTIONS) or layer.operation.bodies for layer in layers
        )
        if self.first or a.context.accuracy.is_direct or not summed or found.first is None:
            return None
        direct = Network(a.graph, a.context._replace(accuracy=Accuracy.DIRECT))
        again = Evaluator(direct, self.inputs, [index]).take(index)[output]
        left = compare_tensors("", found.layer, None, again, expected, self.rtol, self.atol)
        if left.within:
            return Hint.DIRECT_AGREES()
        if left.first is not None and 2 * left.outside <= found.outside:
            return Hint.DIRECT_IS_NEARER(left.outside, found.outside)
        return None

    def _side(
        self,
        candidates: Sequence[int],
        b: Comparable | None,
        against: Against | None,
    ) -> Side:
        if against == "onnxruntime":
            if not isinstance(b, str | os.PathLike):
                raise SettingError("against onnxruntime, the second model is an .onnx file")
            names = dict(zip(self.a.inputs.ports, self.inputs.values(), strict=True))
            return OnnxSide(os.fspath(b), self.a, names, candidates, _sizes(self.infos))
        if isinstance(against, Mapping):
            given_arrays = ArraysSide(against, self.a)
            constant = {
                name: "constants are compared with those of a second model only"
                for source, name in given_arrays.keys.items()
                if source[0] in self.a.constant_layers
            }
            self.unmatched = given_arrays.unmatched | constant
            return given_arrays
        assert self.b is not None
        given = self._inputs_of_b()
        wanted = [i for i in candidates if i in self.pairs]
        if against == "openvino":
            sizes = _sizes(infer_run(self.b, given))
            return OpenVINOSide(self.b, self.pairs, given, wanted, sizes, self.settings)
        partners = [self.pairs[i] for i in wanted]
        return ModelSide(Evaluator(self.b, given, partners), self.pairs)

    def _inputs_of_b(self) -> dict[int, Array]:
        """Map the same arrays to the second model's Parameter layers."""
        assert self.b is not None
        given = {self.pairs[i]: array for i, array in self.inputs.items() if i in self.pairs}
        layers, wanted = self.b.graph.layers, self.b.inputs.parameters
        if missing := [i for i in wanted if i not in given]:
            raise InputError(
                f"input {layers[missing[0]].name!r} of the second model is not one of the first",
                file=self.b.graph.file,
                line=layers[missing[0]].line,
            )
        return self.b.inputs.bind([given[i] for i in wanted], cast=False)


def _sizes(infos: Sequence[Sequence[TensorInfo]]) -> dict[Source, int]:
    return {
        (index, output): tensor_bytes(info) or 0
        for index, row in enumerate(infos)
        for output, info in enumerate(row)
    }
