"""Facts about each layer of the page: attributes, formulas, pads, reach, weights, cost."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from deconv_ir.cpu_plugin.int8 import Int8Layers
from deconv_ir.drawing.graph.sketch import Sketch, tensor_text
from deconv_ir.drawing.page.statistics import (
    LISTED,
    LISTED_IN_ALL,
    MOST_LISTED,
    constant_figures,
    share_of,
)
from deconv_ir.drawing.page.windows import (
    Reach,
    advice_of,
    is_transposed,
    reaches_of,
    taps_of,
    windows_of,
)
from deconv_ir.errors import DeconvError
from deconv_ir.execute.places import tensor_bytes
from deconv_ir.ir.graph import Layer
from deconv_ir.ir.infer import Inference
from deconv_ir.ir.operation import Context, TensorInfo
from deconv_ir.ir.options import Semantics
from deconv_ir.ir.shapes import compatible, intersect
from deconv_ir.ir.symbolic import infer_symbolic
from deconv_ir.ir.window import Window
from deconv_ir.ops.constants.constant import Const

Progress = Callable[[str, int, int], None]
"""A function of the name of a step, the amount that is done, and the total."""

REPORT_EVERY = 256


class FactPool:
    """A pool of facts: equal ones are stored once, and layers refer to them by number."""

    def __init__(self) -> None:
        self.items: list[Any] = []
        self._numbers: dict[str, int] = {}

    def add(self, item: Any) -> int:
        """Return the number of an item."""
        key = json.dumps(item)
        number = self._numbers.setdefault(key, len(self.items))
        if number == len(self.items):
            self.items.append(item)
        return number


class Facts(NamedTuple):
    """Facts about all layers and tensors, ready for JSON."""

    layers: list[dict[str, Any]]
    tensors: list[list[Any]]
    pool: list[Any]
    constants: dict[int, Any]
    totals: dict[str, Any]


def facts_of(
    sketch: Sketch, inference: Inference, context: Context, progress: Progress | None = None
) -> Facts:
    """Gather the facts of every layer of a graph."""
    return _Gatherer(sketch, inference, context, progress).gather()


class _Gatherer:
    def __init__(
        self,
        sketch: Sketch,
        inference: Inference,
        context: Context,
        progress: Progress | None,
    ) -> None:
        self.sketch = sketch
        self.graph = sketch.graph
        self.outputs = sketch.outputs
        self.context = context
        self.progress = progress or (lambda step, done, total: None)
        self.pool = FactPool()
        # For layers that do not fit, or are on a cycle, only declared properties are known.
        self.misfits: set[int | None] = set(range(len(self.graph.layers)))
        self.misfits -= set(self.graph.topology.order)
        self.misfits |= sketch.flat.misfits
        self.misfits |= {error.finding.part.layer for error in inference.errors}
        self.part_of = {index: part for part in sketch.flat.parts for index in part.layers}
        self.reaches = reaches_of(
            self.graph, self.outputs, {*sketch.flow.hidden, *self.part_of}, context, self.misfits
        )
        # Bodies have neither answers nor expressions: their inputs are values of the graph around.
        own = sketch.flat.own
        self.int8 = Int8Layers(own, inference.outputs, context)
        # Layers that keep positions share the object of their input.
        self.shared_reaches: dict[int, int] = {}
        self.known: dict[tuple[int, ...], dict[str, Any]] = {}
        self.totals = {"flop": 0, "constants": 0, "constant_bytes": 0}
        if self.part_of:
            self.totals["in_bodies"] = len(self.part_of)
        wrong = bool(inference.errors or self.misfits)
        self.symbolic = None if wrong else infer_symbolic(own, context, inference)
        self.tensor_number: dict[tuple[int, int], int] = {}
        self.tensors: list[list[Any]] = []

    def gather(self) -> Facts:
        graph = self.graph
        for index, layer in enumerate(graph.layers):
            for port in range(len(layer.outputs)):
                self.tensor_number[index, port] = len(self.tensors)
                self.tensors.append(self._tensor(index, layer, port))
        box_of = {b.layer: n for n, b in enumerate(self.sketch.scene.boxes) if b.layer is not None}
        layers = []
        constants: dict[int, Any] = {}
        elements = [_elements(layer) for layer in graph.layers]
        self.share = share_of(elements)
        self.listed = max(
            LISTED, min(MOST_LISTED, LISTED_IN_ALL // max(1, sum(map(bool, elements))))
        )
        for index, layer in enumerate(graph.layers):
            if index % REPORT_EVERY == 0:
                self.progress("Reading layers", index, len(graph.layers))
            facts = self._layer(index, layer)
            owner = self.sketch.flow.hidden.get(index)
            facts["b"] = box_of[index if owner is None else owner]
            if owner is not None:
                facts["h"] = 1
            if isinstance(layer.operation, Const) and index not in self.misfits:
                constants[index] = self._constant(layer.operation)
            layers.append(facts)
        self.progress("Reading layers", len(graph.layers), len(graph.layers))
        constants = {index: found for index, found in constants.items() if found}
        return Facts(layers, self.tensors, self.pool.items, constants, self.totals)

    def _tensor(self, index: int, layer: Layer, port: int) -> list[Any]:
        """Describe a tensor: its layer, output, text, declared properties, names.

        Declared properties are given if they contradict the computed ones (then 1 follows the
        names) or say more.
        """
        info = self._info(index, port)
        declared = layer.outputs[port] if port < len(layer.outputs) else None
        text = tensor_text(info) + self._expressions(index, port)
        row: list[Any] = [index, port, self.pool.add(text)]
        if declared is not None:
            stated = TensorInfo(declared.shape, declared.element_type)
            wrong = not _agree(stated, info)
            told = wrong or _says_more(stated, info)
            if told or declared.names:
                row += [self.pool.add(tensor_text(stated) if told else ""), list(declared.names)]
            if wrong:
                row.append(1)
        return row

    def _expressions(self, index: int, port: int) -> str:
        """Return the dims of a tensor of a dynamic model as expressions; empty if all are known."""
        if self.symbolic is None or index in self.part_of:
            return ""
        found = self.symbolic.texts(index, port)
        return "" if found is None else f" = [{','.join(found)}]"

    def _info(self, index: int, port: int) -> TensorInfo:
        outputs = self.outputs[index]
        return outputs[port] if port < len(outputs) else TensorInfo(None)

    def _layer(self, index: int, layer: Layer) -> dict[str, Any]:
        sources = self.graph.topology.sources[index]
        inputs = [
            TensorInfo(port.shape, port.element_type) if s is None else self._info(*s)
            for port, s in zip(layer.inputs, sources, strict=True)
        ]
        outputs = self.outputs[index]
        facts: dict[str, Any] = {"n": layer.name, "t": layer.type, "i": layer.id}
        if layer.line is not None:
            facts["l"] = layer.line
        if layer.version:
            facts["v"] = layer.version
        if layer.attributes:
            facts["a"] = self.pool.add([list(pair) for pair in layer.attributes])
        if sources:
            names = layer.operation.inputs if layer.operation.implemented else ()
            facts["in"] = [-1 if s is None else self.tensor_number[s] for s in sources]
            if names:
                facts["p"] = self.pool.add(list(names))
        if layer.outputs:
            facts |= {"o": self.tensor_number[index, 0], "k": len(layer.outputs)}
        key = (id(layer.operation), id(layer.outputs), *map(id, inputs))
        shared = self.known.get(key)
        if shared is None:
            shared = self._computed(index, layer, inputs, outputs)
            if sources and None not in sources:
                self.known[key] = shared
        if shared:
            facts["f"] = self.pool.add(shared)
            self.totals["flop"] += shared.get("flop", 0)
        answer = self._int8(index)
        if answer is not None:
            facts["q"] = self.pool.add(answer)
        if index in self.part_of:
            part = self.part_of[index]
            facts["of"] = [part.owner, self.pool.add(part.body.name)]
        if reach := self.reaches.get(index):
            if id(reach) not in self.shared_reaches:
                self.shared_reaches[id(reach)] = self.pool.add([_reach(axis) for axis in reach])
            facts["r"] = self.shared_reaches[id(reach)]
        return facts

    def _int8(self, index: int) -> str | None:
        """Say whether OpenVINO's CPU plugin computes a quantised layer in integers."""
        if index in self.misfits or index in self.part_of:
            return None
        answer = self.int8.answer(index)
        return None if answer is None else str(answer)

    def _computed(
        self, index: int, layer: Layer, inputs: list[TensorInfo], outputs: Sequence[TensorInfo]
    ) -> dict[str, Any]:
        """Compute the facts that depend only on the operation and its tensors."""
        found: dict[str, Any] = {}
        if index in self.misfits or not layer.operation.implemented:
            return found
        if formulas := self._formulas(layer, inputs, outputs):
            found["formula"] = formulas
        found |= self._geometry(layer, inputs)
        if outputs:
            try:
                operations = layer.operation.work(inputs, outputs[0])
            except DeconvError:
                operations = None
            if operations:
                found["flop"] = operations
        moved = [tensor_bytes(info) for info in (*inputs, *outputs)]
        if layer.inputs and outputs and None not in moved:
            found["bytes"] = sum(size for size in moved if size is not None)
        return found

    def _formulas(
        self, layer: Layer, inputs: list[TensorInfo], outputs: Sequence[TensorInfo]
    ) -> list[str]:
        found: dict[str, None] = {}
        for port, info in enumerate(outputs[:4]):
            for axis in range(len(info.shape or ())):
                try:
                    text = layer.operation.explain(inputs, self.context, port, axis)
                except DeconvError:
                    continue
                if text:
                    found[text] = None
        return list(found)

    def _geometry(self, layer: Layer, inputs: list[TensorInfo]) -> dict[str, Any]:
        """Describe the window of a layer, its pads by spec and runtime, and its taps."""
        operation = layer.operation
        spec, runtime = (
            windows_of(operation, inputs, self.context, s)
            for s in (Semantics.SPEC, operation.runtime)
        )
        if spec is None or runtime is None:
            return {}
        used = runtime if operation.follows_runtime(self.context) else spec
        name = _NAMES[operation.runtime]
        found: dict[str, Any] = {"pads": [_pads(spec), _pads(runtime), name], "axes": used}
        if is_transposed(operation):
            taps = [taps_of(window) for window in used]
            found["taps"] = [list(t.counts) for t in taps]
            found["even"] = [[t.least, t.most] for t in taps]
            if advice := advice_of(used):
                found["advice"] = advice
        return found

    def _constant(self, constant: Const) -> dict[str, Any] | None:
        found = constant_figures(constant, self.context, self.share, self.listed)
        if found is not None:
            self.totals["constants"] += 1
            self.totals["constant_bytes"] += constant.size
        return found


def _agree(stated: TensorInfo, found: TensorInfo) -> bool:
    """Whether declared and computed properties may be those of one tensor."""
    types = {stated.element_type, found.element_type} - {None}
    return len(types) < 2 and compatible(stated.shape, found.shape)


def _says_more(stated: TensorInfo, found: TensorInfo) -> bool:
    """Whether properties that agree with the computed ones are narrower."""
    if found.element_type is None and stated.element_type is not None:
        return True
    return intersect(stated.shape, found.shape) != found.shape


_NAMES = {Semantics.OPENVINO: "OpenVINO", Semantics.ONEDNN: "oneDNN"}


def _elements(layer: Layer) -> int:
    """Return the number of elements of a constant; 0 for other layers."""
    if not isinstance(layer.operation, Const):
        return 0
    try:
        return layer.operation.check()
    except DeconvError:
        return 0


def _pads(windows: Sequence[Window]) -> list[list[int]]:
    return [[w.pad_begin for w in windows], [w.pad_end for w in windows]]


def _reach(reach: Reach) -> list[Any]:
    """Describe an axis: receptive field, halo before and after, step of the input per output."""
    step = reach.step
    shown = str(step.numerator) if step.denominator == 1 else f"{step.numerator}/{step.denominator}"
    return [reach.field, *map(int, reach.halo), shown]
