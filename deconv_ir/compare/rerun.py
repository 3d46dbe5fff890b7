"""Further runs of OpenVINO for a verdict: with fewer added outputs, and of one layer alone."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from deconv_ir.arrays.fitting import describe
from deconv_ir.compare.cut import write_part
from deconv_ir.compare.extract_part import extract_part
from deconv_ir.compare.judge import Judge
from deconv_ir.compare.judging import Judging
from deconv_ir.compare.measure import SideVerdict
from deconv_ir.compare.network import Network, open_network
from deconv_ir.compare.openvino_side import OpenVINOSide
from deconv_ir.compare.tensors import TensorDifference, compare_tensors
from deconv_ir.compare.verdict import SettingVerdict
from deconv_ir.errors import DeconvError
from deconv_ir.ir.dtypes import Array
from deconv_ir.ir.graph import Source
from deconv_ir.ir.infer import infer
from deconv_ir.ir.operation import TensorInfo

_F32 = {"INFERENCE_PRECISION_HINT": "f32"}
_SETTINGS: Mapping[str, Mapping[str, str]] = {
    "f32": _F32,
    "bf16": {"INFERENCE_PRECISION_HINT": "bf16"},
    "f16": {"INFERENCE_PRECISION_HINT": "f16"},
    "f32 without low-precision transformations": _F32 | {"LP_TRANSFORMS_MODE": "NO"},
    "f32 without dynamic quantization": _F32 | {"DYNAMIC_QUANTIZATION_GROUP_SIZE": "0"},
    "f32 on one thread": _F32 | {"INFERENCE_NUM_THREADS": "1"},
    "f32 on all threads": _F32 | {"INFERENCE_NUM_THREADS": str(os.cpu_count() or 1)},
}
"""Settings of OpenVINO 2026.4 in words -> by name."""


def compare_fused(
    network: Network,
    side: OpenVINOSide,
    results: Mapping[Source, Array],
    tolerances: tuple[float, float],
) -> Iterator[TensorDifference]:
    """Compare the outputs without added outputs, where the runtime fuses layers.

    `results` are those of the first model; only differences out of tolerance are returned.
    """
    sources = [(side.own(index), output) for index, output in results]
    plain = side.compute(sources) if sources else {}
    for (index, output), source in zip(results, sources, strict=True):
        layer, array = network.layer(index), results[index, output]
        name = network.tensor_name((index, output))
        found = compare_tensors(name, layer.label, layer.line, array, plain[source], *tolerances)
        if not found.within:
            note = "without added outputs, so that the runtime fuses layers"
            yield found._replace(note=", ".join(filter(None, (found.note, note))))


class FusedFault(NamedTuple):
    """An output that is wrong while the layers before it are not outputs."""

    source: Source
    verdict: SideVerdict
    hidden: tuple[int, ...]
    """The layers before it, by index, that were no outputs."""


class Reruns:
    """Further runs after a comparison.

    Parameters
    ----------
    side : OpenVINOSide
    judging : Judging
    outputs_agree : bool
        Whether the outputs are right without added outputs.
    """

    def __init__(self, side: OpenVINOSide, judging: Judging, outputs_agree: bool) -> None:
        self.side = side
        self.network = side.network
        self.infos = judging.b.infos
        self.judging = judging
        self.outputs_agree = outputs_agree

    def run(self, candidates: Sequence[int]) -> tuple[tuple[SettingVerdict, ...], tuple[str, ...]]:
        """Look for faults of fused layers, and repeat the layer that is wrong with other settings.

        Returns the verdicts on the settings, and notes.
        """
        sources = self.network.graph.topology.sources
        constant = self.network.constant_layers
        if self.judging.wrong is not None:
            own, output, inputs = self.judging.wrong
            row = [s for s in sources[own] if s is not None]
            pairs = zip(row, inputs, strict=True)
            tensors = {s: array for s, array in pairs if s[0] not in constant}
            return self._repeat((own, output), tensors)
        if self.outputs_agree:
            return (), ()
        fault = find_fused(self.side, self.infos, candidates)
        if fault is None:
            return (), (
                "openvino's outputs differ where it may fuse layers; no two layers are wrong.",
            )
        index, output = fault.source
        names = " and ".join(repr(self.network.layer(i).name) for i in fault.hidden)
        notes = [fault.verdict.note, f"where it fuses {names} with the layer" if names else ""]
        verdict = fault.verdict._replace(note=", ".join(filter(None, notes)))
        of_first = {own: i for i, own in self.side.pairs.items()}
        self.judging.note_fused((of_first[index], output), verdict)
        before = dict.fromkeys(
            s
            for i in (index, *fault.hidden)
            for s in sources[i]
            if s is not None and s[0] not in constant and s[0] not in fault.hidden
        )
        known = [s for s in before if self.side.provides(s)]
        tensors = self.side.compute(known) if known else {}
        tensors |= {s: self.side.inputs[s[0]] for s in before if s[0] in self.side.inputs}
        return self._repeat(fault.source, tensors)

    def _repeat(
        self, target: Source, tensors: Mapping[Source, Array]
    ) -> tuple[tuple[SettingVerdict, ...], tuple[str, ...]]:
        if not tensors:
            return (), ()
        stored = {s: self._stored(s, array) for s, array in tensors.items()}
        found = repeat_alone(self.network, self.infos, target, stored)
        wrong = [one.name for one in found if one.verdict.right is False]
        right = [one.name for one in found if one.verdict.right]
        if not found:
            return (), ()
        if wrong and right:
            note = f"with openvino's {', '.join(wrong)}, and right with {', '.join(right)}"
            return found, (f"Alone, the layer is wrong {note}.",)
        result = "wrong" if wrong else "right"
        return found, (f"Alone, the layer is {result} with all settings of openvino.",)

    def _stored(self, source: Source, array: Array) -> Array:
        """Return a tensor in its type; the judge has it in f64."""
        stored = self.infos[source[0]][source[1]].element_type
        return array if stored is None else array.astype(stored.numpy(), copy=False)


def find_fused(
    whole: OpenVINOSide, infos: Sequence[Sequence[TensorInfo]], candidates: Sequence[int]
) -> FusedFault | None:
    """Judge each layer while the one before it is not an output, so that a runtime may fuse both.

    Two passes have every second layer as outputs; `candidates` are layers of the first model.
    """
    network, pairs = whole.network, whole.pairs
    depths = _depths(network)
    for parity in (0, 1):
        chosen = [i for i in candidates if depths[pairs[i]] % 2 == parity]
        if not chosen:
            continue
        side = OpenVINOSide(network, pairs, whole.inputs, chosen, whole.sizes, whole.settings)
        own = [pairs[i] for i in chosen if side.has(i)]
        judge = Judge(network, whole.inputs, infos, own, side.provides, side.execution)
        for index in own:
            arrays = [side.fetch((index, k)) for k in range(len(network.layer(index).outputs))]
            judge.given = side.same_run
            for output, found in enumerate(judge.judge(index, arrays)):
                if found is not None and found.verdict.right is False:
                    hidden = _hidden(network, index, side)
                    return FusedFault((index, output), found.verdict, hidden)
    return None


def _depths(network: Network) -> list[int]:
    """Return the length of the longest path to each layer, without those of constants alone."""
    depths = [0] * len(network.graph.layers)
    for index in network.graph.topology.order:
        before = [s[0] for s in network.graph.topology.sources[index] if s is not None]
        depths[index] = 1 + max(
            (depths[i] for i in before if i not in network.constant_layers), default=0
        )
    return depths


def _hidden(network: Network, index: int, side: OpenVINOSide) -> tuple[int, ...]:
    """Return the layers right before a layer that are not outputs."""
    found = dict.fromkeys(
        source[0]
        for source in network.graph.topology.sources[index]
        if source is not None
        and source[0] not in network.constant_layers
        and network.layer(source[0]).type != "Parameter"
        and not side.provides(source)
    )
    return tuple(found)


def repeat_alone(
    network: Network,
    infos: Sequence[Sequence[TensorInfo]],
    target: Source,
    inputs: Mapping[Source, Array],
) -> tuple[SettingVerdict, ...]:
    """Run the layers between tensors and an output alone in OpenVINO, with several settings.

    `inputs` are the tensors that the runtime had there, by their sources.
    """
    found: list[SettingVerdict] = []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "part.xml"
        try:
            part = extract_part(network.graph, infos, list(inputs), [target])
            write_part(network, part, path)
            alone = open_network(path, network.context.semantics)
            given = dict(zip(alone.inputs.parameters, inputs.values(), strict=True))
        except (DeconvError, ValueError):
            return ()
        for name, settings in _SETTINGS.items():
            try:
                verdict = judge_part(alone, given, settings)
            except DeconvError as error:
                verdict = SideVerdict(None, note=str(error))
            found.append(SettingVerdict(name, settings, verdict))
    return tuple(found)


def judge_part(
    network: Network, inputs: Mapping[int, Array], settings: Mapping[str, str]
) -> SideVerdict:
    """Run a part of a network, and judge its output."""
    given = {index: describe(array) for index, array in inputs.items()}
    infos = infer(network.graph, network.context, given, collect=True).outputs
    rows = zip(network.graph.layers, network.graph.topology.sources, strict=True)
    ends = [row[0] for layer, row in rows if layer.type == "Result" and row[0] is not None]
    index, output = ends[0]
    side = OpenVINOSide(network, {index: index}, inputs, [index], {}, settings)
    judge = Judge(network, inputs, infos, [index], side.provides, side.execution)
    arrays: list[Any] = [None] * len(network.layer(index).outputs)
    arrays[output] = side.compute([(index, output)])[index, output]
    judged = judge.judge(index, arrays)[output]
    assert judged is not None, "the side has the output"
    return judged.verdict
