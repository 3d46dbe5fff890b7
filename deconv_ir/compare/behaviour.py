"""Comparison of two models by all tensors that they have in common."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from deconv_ir.compare.agreement import Other, judge_inputs
from deconv_ir.compare.culprit import Culprit, describe_culprit, infer_run
from deconv_ir.compare.cut import results_of
from deconv_ir.compare.evaluate import Evaluator
from deconv_ir.compare.judge import Execution, Judge
from deconv_ir.compare.judging import Judging
from deconv_ir.compare.levels import judge_levels
from deconv_ir.compare.network import Comparable, Network
from deconv_ir.compare.openvino_side import OpenVINOSide
from deconv_ir.compare.sides import ArraysSide, ModelSide, OnnxSide, Side
from deconv_ir.compare.structure import Difference
from deconv_ir.compare.tensors import TensorDifference, compare_tensors
from deconv_ir.compare.thresholds import OutputConditions
from deconv_ir.compare.verdict import SettingVerdict
from deconv_ir.errors import DeconvError, InputError, SettingError
from deconv_ir.execute.effort import require_modest_run
from deconv_ir.execute.places import tensor_bytes
from deconv_ir.hints import Advice, Hint
from deconv_ir.ir.dtypes import Array
from deconv_ir.ir.graph import Source, ancestors
from deconv_ir.ir.operation import TensorInfo
from deconv_ir.ir.options import Accuracy

Against = str | Mapping[str, Any] | tuple[Mapping[str, Any], Mapping[str, Any]]
"""A runtime, the arrays of a tool by name, or those of two tools."""

_CONVOLUTIONS = ("Convolution", "GroupConvolution", "ConvTranspose")
"""Beginnings of the types of layers that Winograd may compute."""


class Behaviour:
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
        self.observe: Callable[[Source, Array, Array], None] | None = None
        self.stops = False
        """Whether the comparison ends at the first tensor out of tolerance."""
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
        """Iterate over the differences of all common tensors, which are computed in turn."""
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
                if self.observe is not None:
                    self.observe((index, output), x, y)
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
                if self.stops and not found.within:
                    return
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
        return self.b.inputs.match([given[i] for i in wanted], cast=False)


def _sizes(infos: Sequence[Sequence[TensorInfo]]) -> dict[Source, int]:
    return {
        (index, output): tensor_bytes(info) or 0
        for index, row in enumerate(infos)
        for output, info in enumerate(row)
    }
