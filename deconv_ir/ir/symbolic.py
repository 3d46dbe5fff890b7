"""Symbolic shape inference: the dims of a dynamic model as expressions of its inputs' dims.

The graph is inferred once with named sizes (`SymbolicSize`), and several times with numbers in
their place.  A dim keeps its expression if that gives the number in each of these inferences that
the layer fits; any other dim that is not fixed gets a name of its own, ``d1``.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import NamedTuple

from deconv_ir.errors import DeconvError
from deconv_ir.findings import Finding
from deconv_ir.ir.folding import fold
from deconv_ir.ir.geometry import Dim, Interval, bounds
from deconv_ir.ir.graph import Graph
from deconv_ir.ir.infer import Inference
from deconv_ir.ir.operation import Context, Infos, TensorInfo
from deconv_ir.ir.shapes import is_symbolic
from deconv_ir.ir.size_expression import Bounds, SizeExpression
from deconv_ir.ir.symbolic_size import (
    UNTRACKED,
    Condition,
    SymbolicSize,
    expression_of,
)
from deconv_ir.ir.symbolic_trials import (
    EXAMPLES,
    MOST_NAMES,
    Place,
    Trials,
    places_of,
    within,
)

SymbolicDim = int | SizeExpression
SymbolicShape = tuple[SymbolicDim, ...] | None
"""A shape whose dynamic dims are expressions; None for a dynamic rank."""


class Contradiction(NamedTuple):
    """A layer of a dynamic model that needs two sizes to be equal that never are.

    Attributes
    ----------
    layer : int
        Index of the layer.
    finding : Finding
        The error of its shape rule, with expressions as dims.
    """

    layer: int
    finding: Finding


class SymbolicInference(NamedTuple):
    """The dims of every tensor as expressions.

    Attributes
    ----------
    shapes : tuple of tuple of SymbolicShape
        The shapes of each layer's outputs, by index.
    infos : tuple of tuple of TensorInfo
        The same; dims and elements are `SymbolicSize`.
    names : dict of str to (int, int)
        Name -> index of the Parameter and axis, of the names that remain.
    conditions : tuple of Condition
        Sizes that a layer needs to be equal.
    contradictions : tuple of Contradiction
    """

    shapes: tuple[tuple[SymbolicShape, ...], ...]
    infos: tuple[tuple[TensorInfo, ...], ...]
    names: dict[str, tuple[int, int]]
    conditions: tuple[Condition, ...]
    contradictions: tuple[Contradiction, ...]

    def texts(self, layer: int, output: int) -> tuple[str, ...] | None:
        """Return the dims of an output as texts; None if no size of an input determines one."""
        outputs = self.shapes[layer]
        shape = outputs[output] if output < len(outputs) else None
        sizes = [dim for dim in shape or () if not isinstance(dim, int)]
        if not sizes or any(n.text not in self.names for size in sizes for n in size.names()):
            return None
        return tuple(map(str, shape or ()))


def infer_symbolic(
    graph: Graph,
    context: Context,
    inference: Inference,
) -> SymbolicInference | None:
    """Infer the dims of a dynamic model as expressions; None if all dims are known.

    The expressions are those of all sizes that fit and with which no tensor is empty.  Inputs whose
    sizes must be equal, or are equal unless one is broadcast, share a name.

    Parameters
    ----------
    graph : Graph
    context : Context
    inference : Inference
        The shapes of the graph, as `infer` returns them.
    """
    infos = itertools.chain.from_iterable(inference.outputs)
    if all(info.shape is not None and _is_fixed(info) for info in infos):
        return None
    return _Trace(graph, context, inference).run()


class _Trace(Trials):
    """The inference with names."""

    def __init__(self, graph: Graph, context: Context, inference: Inference) -> None:
        super().__init__(graph, context, inference)
        self.errors: dict[int, Finding] = {}

    def run(self) -> SymbolicInference:
        """Trace until no name stands for another size, and all expressions are confirmed."""
        # Each repetition has one name less, or one place more without an expression.
        for _ in range(2 * MOST_NAMES):
            if not self.examples:
                self.examples = [self.example(0)]
            known = self._pass()
            if self.space.has_new_bindings:
                self.examples = []
                continue
            if len(self.examples) > 1:
                break
            self.examples += [self.example(number) for number in range(1, EXAMPLES)]
            if self._is_confirmed(known):
                break
        else:
            known = self._unknown_pass()
        return self._result(known)

    def _result(self, known: Sequence[Infos]) -> SymbolicInference:
        certain = self.space.never - self.space.doubtful
        never = {i: e for i, e in self.errors.items() if i in certain}
        contradictions = [
            Contradiction(index, error)
            for index, error in never.items()
            if all(index in example.failed for example in self.examples)
        ]
        shapes = {id(info): _symbolic(info) for infos in known for info in infos}
        return SymbolicInference(
            tuple(tuple(shapes[id(info)] for info in infos) for infos in known),
            tuple(map(tuple, known)),
            {n.text: place for n, place in self.axes.items() if n not in self.space.bindings},
            self._needed(known),
            tuple(contradictions),
        )

    def _needed(self, known: Sequence[Infos]) -> tuple[Condition, ...]:
        """Return the conditions that layers need, each once."""
        found: dict[SizeExpression, Condition] = {}
        for condition in self.space.conditions:
            difference = condition.left - condition.right
            if difference in found or -difference in found:
                continue
            if self.is_needed(condition, known):
                found[difference] = condition
        return tuple(found.values())

    # The inference with names

    def _pass(self) -> list[Infos]:
        """Infer all layers with named sizes."""
        self.space.begin()
        self.errors.clear()
        layers = self.graph.layers
        known: list[Infos] = list(self.inference.outputs)
        # Equal infos are one object, and layers with the same inputs are inferred once.
        pool: dict[TensorInfo, TensorInfo] = {}
        memo: dict[tuple[int, ...], Infos] = {}
        parameters = {index for index, _ in self.axes.values()}
        settled: set[int] = set()
        wrong = {error.finding.part.layer for error in self.inference.errors}
        for index in self.graph.topology.order:
            plain = self.inference.outputs[index]
            if index in parameters:
                known[index] = (self._named_input(index),)
                continue
            inputs = [pool.setdefault(info, info) for info in self.inputs_of(index, known)]
            traced: Infos = plain
            named = any(map(_is_named, inputs))
            layer = layers[index]
            key = (id(layer.operation), id(layer.outputs), *map(id, inputs))
            if key in memo and named:
                known[index] = memo[key]
                continue
            if named and layer.operation.implemented and index not in wrong:
                traced = self._infer(index, inputs)
            elif all(map(_is_fixed, plain)):
                continue
            before = len(self.unknown)
            outputs = self._settle(index, plain, traced, settled)
            known[index] = tuple(pool.setdefault(info, info) for info in outputs)
            if len(self.unknown) == before and index not in settled:
                memo[key] = known[index]
        return known

    def _named_input(self, index: int) -> TensorInfo:
        info = self.inference.outputs[index][0]
        dims: list[Dim] = list(info.shape or ())
        for name, (layer, axis) in self.axes.items():
            if layer == index:
                meaning = self.space.bindings.get(name, SizeExpression.of(name))
                dims[axis] = self.space.size(meaning)
        return info._replace(shape=tuple(dims))

    def _infer(self, index: int, inputs: Infos) -> Infos:
        """Run the shape rule of a layer; the shapes that are known without names if it fails."""
        self.space.layer = index
        context = self.context._replace(body_findings=[])
        layer = self.graph.layers[index]
        for assumed in (False, True):
            self.space.orders = {}
            self.space.divides = assumed
            try:
                traced = layer.operation.infer(inputs, context)
                traced = fold(layer.operation, inputs, traced, context)
                self.try_other_orders(index, inputs, traced)
                self.errors.pop(index, None)
                return traced
            except DeconvError as error:
                error.locate(file=self.graph.file, line=layer.line, layer=layer.label)
                self.errors[index] = error.finding
            except Exception:  # a rule may be one of another package
                break
        if self.space.orders:
            self.space.never.discard(index)  # with another order they may be equal
        return self.inference.outputs[index]

    def _settle(self, index: int, plain: Infos, traced: Infos, settled: set[int]) -> Infos:
        """Keep expressions that are confirmed, and give names to other dims that vary."""
        outputs = []
        for output, info in enumerate(plain):
            found = traced[output] if output < len(traced) else info
            dims = found.shape if _rank(found) == _rank(info) else info.shape
            shape = info.shape and tuple(
                self._size((index, output, axis, False), dim, size, settled)
                for axis, (dim, size) in enumerate(zip(info.shape, dims or (), strict=True))
            )
            value = info.value
            if value is not None and found.value is not None and len(value) == len(found.value):
                value = tuple(
                    self._size((index, output, at, True), dim, size, settled)
                    for at, (dim, size) in enumerate(zip(value, found.value, strict=True))
                )
            elif value is None and found.value and all(map(_is_symbolic, found.value)):
                value = tuple(
                    self._size((index, output, at, True), Interval(), size, settled)
                    for at, size in enumerate(found.value)
                )
            outputs.append(TensorInfo(shape, info.element_type, value, info.reals))
        return tuple(outputs)

    def _size(self, place: Place, plain: Dim, traced: Dim, settled: set[int]) -> Dim:
        """Return the size of a place: fixed, an expression, or a name."""
        if isinstance(plain, int):
            return plain
        if isinstance(traced, Interval):
            traced = self.agreed_end(place, traced)
        if isinstance(traced, int) and place not in self.rejected:
            expression = expression_of(traced)
            is_readable = not expression.is_large and UNTRACKED not in expression.names()
            # A number that is the same at all sizes is known from several.
            if is_readable and (is_symbolic(traced) or self.is_number(place)):
                if self.agrees(place, expression):
                    return traced
                self.rejected.add(place)
        if place[3] and plain.min < 0:
            return plain
        settled.add(place[0])
        name = self.unknown.get(place)
        if name is None:
            low, high = bounds(plain)
            ends: Bounds = (float(low), math.inf if high is None else float(high))
            value = within(self.stride * (len(self.space.values) + 2), ends)
            name = self.space.add_name(f"d{len(self.unknown) + 1}", value, ends, None)
            self.unknown[place] = name
            for example in self.examples:
                self.fill(example, place, name)
            self.space.values[name.text] = self.examples[0].values.get(name.text, value)
        meaning = self.space.bindings.get(name, SizeExpression.of(name))
        return self.space.size(meaning)

    def _is_confirmed(self, known: Sequence[Infos]) -> bool:
        """Whether all expressions of a trace agree with the examples made since."""
        # Layers that repeat have the same infos.
        confirmed: set[tuple[int, ...]] = set()
        for index, infos in enumerate(known):
            others = (i for example in self.examples for i in example.outputs[index])
            fits = sum(1 << i for i, e in enumerate(self.examples) if index not in e.failed)
            key = (fits, *map(id, infos), *map(id, others))
            if key in confirmed:
                continue
            confirmed.add(key)
            for place, size in places_of({index: infos}):
                is_known = is_symbolic(size) or self.is_number(place)
                if place not in self.unknown and not (
                    is_known and self.agrees(place, expression_of(size))
                ):
                    return False
        return True

    def _unknown_pass(self) -> list[Infos]:
        """Give every dim that varies a name of its own: names keep standing for other sizes."""
        self.space.bindings.clear()
        self.space.begin()
        self.examples = [self.example(number) for number in range(EXAMPLES)]
        known: list[Infos] = list(self.inference.outputs)
        parameters = {index for index, _ in self.axes.values()}
        for index in self.graph.topology.order:
            plain = self.inference.outputs[index]
            inner = (self._named_input(index),) if index in parameters else None
            known[index] = inner or self._settle(index, plain, plain, set())
        return known


def _rank(info: TensorInfo) -> int | None:
    return None if info.shape is None else len(info.shape)


def _is_symbolic(dim: Dim) -> bool:
    return isinstance(dim, SymbolicSize)


def _is_named(info: TensorInfo) -> bool:
    """Whether a dim or an element is a named size."""
    return any(map(_is_symbolic, info.shape or ())) or any(map(_is_symbolic, info.value or ()))


def _is_fixed(info: TensorInfo) -> bool:
    return not any(isinstance(dim, Interval) for dim in (*(info.shape or ()), *(info.value or ())))


def _symbolic(info: TensorInfo) -> SymbolicShape:
    if info.shape is None:
        return None
    return tuple(
        dim.expression if isinstance(dim, SymbolicSize) else dim if isinstance(dim, int) else 0
        for dim in info.shape
    )
