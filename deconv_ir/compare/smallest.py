"""The smallest part of a network that still shows a difference."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

from deconv_ir.arrays.fitting import describe
from deconv_ir.compare.cut import write_part
from deconv_ir.compare.diff import ModelDifference, diff
from deconv_ir.compare.evaluate import Evaluator
from deconv_ir.compare.extract_part import extract_part
from deconv_ir.compare.matching import match
from deconv_ir.compare.network import Comparable, Network, open_network, open_stored
from deconv_ir.compare.runs import run_onnxruntime, run_openvino
from deconv_ir.compare.sides import ArraysSide, import_runtime
from deconv_ir.errors import DeconvError, InputError
from deconv_ir.ir.dtypes import Array
from deconv_ir.ir.graph import Source
from deconv_ir.ir.infer import infer
from deconv_ir.ir.operation import TensorInfo
from deconv_ir.ir.options import Accuracy, Semantics
from deconv_ir.ir.shapes import is_static, static
from deconv_ir.loading import load

PART = "part.xml"
OTHER = {"": "b/part.xml", "onnxruntime": "part.onnx"}
"""The second model of a part, if there is one, by its runtime."""


class Compared(NamedTuple):
    """What was compared.

    Attributes
    ----------
    a : Model or path-like
    b : Model, path-like or None
        The second model; a path with onnxruntime.
    inputs : mapping
        Arrays of the inputs of `a`, by name.
    runtime : str
        ``openvino``, ``onnxruntime``, or empty: this library runs the second model, if any.
    dumps : tuple of mapping
        The tensors of one or two tools, by name.
    semantics : tuple of Semantics
        Those of both models.
    settings : mapping
        Those of OpenVINO.
    accuracy : Accuracy
        That of the first model.
    rtol, atol : float
        Tolerances.
    """

    a: Comparable
    b: Comparable | None
    inputs: Mapping[str, Array]
    runtime: str = ""
    dumps: tuple[Mapping[str, Any], ...] = ()
    semantics: tuple[Semantics, Semantics] = (Semantics.SPEC, Semantics.SPEC)
    settings: Mapping[str, str] = MappingProxyType({})
    accuracy: Accuracy = Accuracy.FAST
    rtol: float = 1e-4
    atol: float = 0.0


class SmallPart(NamedTuple):
    """A part in a folder that shows a difference.

    Attributes
    ----------
    layers : int
        Number of its layers, without constants, inputs and outputs.
    inputs : mapping
        Its arrays, by input name.
    names_of_b : tuple of str
        The inputs of the second model's part, in the same order.
    output : str
        Name of its output.
    results : tuple of ndarray
        The output of both sides, and the exact one (f64).
    found : ModelDifference
        The comparison of the part, with a verdict.
    """

    layers: int
    inputs: Mapping[str, Array]
    names_of_b: tuple[str, ...]
    output: str
    results: tuple[Array, Array, Array]
    found: ModelDifference

    def shows(self, whole: ModelDifference) -> bool:
        """Whether the difference of the whole is there: its results differ, and the same is wrong.

        Where no side is wrong, a tensor of the part must be out of tolerance.
        """
        a, b, _ = self.results
        if a.shape == b.shape and a.tobytes() == b.tobytes():
            return False
        assert whole.verdict is not None
        assert self.found.verdict is not None
        first = whole.verdict.first
        if first is not None:
            wrong = whole.verdict.sides[0 if first.a.right is False else 1]
            return wrong in self.found.verdict.wrong_sides
        return not all(tensor.within for tensor in self.found.tensors)


def find_smallest(compared: Compared, whole: ModelDifference, folder: Path) -> SmallPart:
    """Write the smallest part that shows the difference to a folder.

    It begins with the layer of the verdict, and grows backwards until both sides, run on the part
    alone, differ as before.

    Raises
    ------
    InputError
        No part shows it, and neither does the whole network up to that layer.
    DeconvError
        The network cannot be run.
    """
    network = open_stored(compared.a)
    target = target_of(network, whole)
    given = network.inputs.match(compared.inputs, cast=False)
    stopped: DeconvError | None = None
    for region in _regions(network, target):
        try:
            part = _write(compared, network, given, region, target, folder)
        except DeconvError as error:
            stopped = error
            continue
        if part.shows(whole):
            return part
    if stopped is not None:
        raise stopped
    raise InputError(
        f"no part up to {network.layer(target[0]).label} shows the difference when it runs alone",
        file=network.graph.file,
    )


def target_of(network: Network, whole: ModelDifference) -> Source:
    """Return the tensor of the verdict: the first wrong one, else the first out of tolerance."""
    assert whole.verdict is not None
    first = whole.verdict.first
    if first is not None:
        name, label = first.name, first.layer
    else:
        outside = next(tensor for tensor in whole.tensors if not tensor.within)
        name, label = outside.name, outside.layer
    return next(
        (index, output)
        for index, layer in enumerate(network.graph.layers)
        for output in range(len(layer.outputs))
        if layer.label == label and network.tensor_name((index, output)) == name
    )


def _regions(network: Network, target: Source) -> Iterator[frozenset[int]]:
    """Iterate over growing sets of layers, without those of constants alone and the inputs."""
    sources = network.graph.topology.sources

    def before(index: int) -> set[int]:
        return {
            s[0]
            for s in sources[index]
            if s is not None
            and s[0] not in network.constant_layers
            and network.layer(s[0]).type != "Parameter"
        }

    region = border = {target[0]}
    levels = 1
    while True:
        yield frozenset(region)
        for _ in range(levels):
            border = set().union(*map(before, border)) - region
            region = region | border
        if not border:
            return
        levels *= 2


def _write(
    compared: Compared,
    network: Network,
    given: Mapping[int, Array],
    region: frozenset[int],
    target: Source,
    folder: Path,
) -> SmallPart:
    """Write the part of some layers, and run both sides on it."""
    rows = [network.graph.topology.sources[index] for index in sorted(region)]
    starts = list(
        dict.fromkeys(
            source
            for row in rows
            for source in row
            if source is not None
            and source[0] not in region
            and source[0] not in network.constant_layers
        )
    )
    values = _values(compared, network, given, starts)
    infos = infer(network.graph, network.context, collect=True).outputs
    path = folder / PART
    write_part(network, extract_part(network.graph, infos, starts, [target]), path)
    names = _input_names(path)
    other: Path | None = None
    if compared.runtime == "onnxruntime":
        other = folder / OTHER["onnxruntime"]
        shapes = infer(network.graph, network.context, _described(given), collect=True).outputs
        _write_onnx(Path(os.fspath(compared.b)), network, shapes, starts, target, other)  # type: ignore[arg-type]
    elif compared.b is not None and compared.b is not compared.a:
        other = folder / OTHER[""]
        other.parent.mkdir(exist_ok=True)
        _write_other(compared, network, starts, target, other)
    layers = sum(network.layer(index).type != "Result" for index in region)
    sides = [ArraysSide(dump, network) for dump in compared.dumps]
    dumped = [side.take(target[0])[target[1]] for side in sides]
    return run_part(compared, folder, dict(zip(names, values, strict=True)), layers, dumped)


def run_part(
    compared: Compared,
    folder: Path,
    inputs: Mapping[str, Array],
    layers: int,
    dumped: Sequence[Array | None] = (),
) -> SmallPart:
    """Run both sides on the part in a folder, and judge them; `dumped` are outputs of tools."""
    path, other = folder / PART, folder / OTHER.get(compared.runtime, "")
    second = other if other.is_file() else None
    spec_a, spec_b = compared.semantics
    (name,) = load(path, warn=False).outputs
    arrays = list(inputs.values())
    names = _input_names(second) if second and not compared.runtime else tuple(inputs)
    exact = load(path, semantics=spec_a, accuracy=Accuracy.FLOAT64, warn=False).run(inputs)[name]
    first = load(path, semantics=spec_a, accuracy=compared.accuracy, warn=False)
    ours = dumped[0] if len(dumped) == 2 else first.run(inputs)[name]
    against: Any = compared.runtime or None
    if dumped:
        theirs = dumped[-1]
        dumps = [{} if array is None else {name: array} for array in dumped]
        against = dumps[0] if len(dumps) == 1 else tuple(dumps)
    elif compared.runtime == "openvino":
        theirs = run_openvino(second or path, arrays, compared.settings)
    elif compared.runtime == "onnxruntime":
        assert second is not None
        theirs = run_onnxruntime(second, arrays)
    else:
        second = second or path
        model = load(second, semantics=spec_b, warn=False)
        theirs = next(iter(model.run(dict(zip(names, arrays, strict=True))).values()))
    assert ours is not None
    assert theirs is not None
    found = diff(
        first, second, dict(inputs), against=against, rtol=compared.rtol, atol=compared.atol,
        other_semantics=spec_b, settings=compared.settings, verdict=True,
    )  # fmt: skip
    return SmallPart(layers, inputs, names, name, (ours, theirs, exact), found)


def _input_names(path: Path) -> tuple[str, ...]:
    return tuple(load(path, warn=False).inputs)


def _values(
    compared: Compared, network: Network, given: Mapping[int, Array], starts: list[Source]
) -> list[Array]:
    """Return tensors of the first side, or of a tool that has them."""
    sides = [ArraysSide(dump, network) for dump in compared.dumps]
    if not sides:
        evaluator = Evaluator(network, given, list(dict.fromkeys(s[0] for s in starts)))
        rows = {index: evaluator.take(index) for index in dict.fromkeys(s[0] for s in starts)}
        return [rows[index][output] for index, output in starts]
    found = []
    for index, output in starts:
        having = [side for side in sides if side.provides((index, output))]
        array = having[0].take(index)[output] if having else given.get(index)
        if array is None:
            name = network.tensor_name((index, output))
            raise InputError(f"no folder has the tensor {name!r}", file=network.graph.file)
        found.append(array)
    return found


def _write_other(
    compared: Compared, network: Network, starts: list[Source], target: Source, path: Path
) -> None:
    """Write the corresponding part of the second model."""
    assert compared.b is not None
    second = open_network(compared.b, compared.semantics[1])
    pairs = match(network, second).pairs

    def partner(source: Source) -> Source:
        if source[0] not in pairs:
            raise InputError(
                f"the second model has no {network.layer(source[0]).label}",
                file=second.graph.file,
            )
        return pairs[source[0]], source[1]

    infos = infer(second.graph, second.context, collect=True).outputs
    part = extract_part(second.graph, infos, list(map(partner, starts)), [partner(target)])
    write_part(second, part, path)


def _described(given: Mapping[int, Array]) -> dict[int, TensorInfo]:
    return {index: describe(array) for index, array in given.items()}


def _write_onnx(
    model: Path,
    network: Network,
    infos: Sequence[Sequence[TensorInfo]],
    starts: list[Source],
    target: Source,
    path: Path,
) -> None:
    """Write the part of an ONNX model between tensors of the same names."""
    import_runtime("onnx")
    import onnx
    import onnx.utils

    whole = onnx.load(model)
    known = {name for node in whole.graph.node for name in (*node.input, *node.output)}

    def name_of(source: Source) -> str:
        layer = network.layer(source[0])
        names = (*layer.outputs[source[1]].names, layer.name)
        found = next((name for name in names if name in known), None)
        if found is None:
            raise InputError(f"the ONNX model has no tensor {names[0]!r}", file=str(model))
        return found

    inputs = [name_of(source) for source in starts]
    # The extractor needs types and shapes, which few files have.
    there = {value.name for value in (*whole.graph.value_info, *whole.graph.input)}
    there |= {value.name for value in whole.graph.output}
    for source in (*starts, target):
        info, name = infos[source[0]][source[1]], name_of(source)
        if name not in there and info.element_type is not None:
            kind = onnx.helper.np_dtype_to_tensor_dtype(info.element_type.numpy())
            shape = static(info.shape) if is_static(info.shape) else None
            whole.graph.value_info.append(onnx.helper.make_tensor_value_info(name, kind, shape))
            there.add(name)
    try:
        part = onnx.utils.Extractor(whole).extract_model(inputs, [name_of(target)])
    except Exception as error:  # onnx has no common root
        raise InputError(f"onnx cannot cut the model: {error}", file=str(model)) from error
    path.write_bytes(part.SerializeToString(deterministic=True))
