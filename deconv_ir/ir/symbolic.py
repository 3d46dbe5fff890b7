"""Symbolic shape inference: the dims of a dynamic model as expressions of its inputs' dims.

The graph is inferred once with named sizes (`SymbolicSize`), and several times with numbers in
their place.  A dim keeps its expression if that gives the number in each of these inferences that
the layer fits; any other dim that is not fixed gets a name of its own, ``d1``.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from deconv_ir.errors import DeconvError
from deconv_ir.findings import Finding
from deconv_ir.ir.fitting_sizes import total_stride
from deconv_ir.ir.folding import fold
from deconv_ir.ir.geometry import Dim, Interval, bounds
from deconv_ir.ir.graph import Graph
from deconv_ir.ir.infer import Inference, infer, infer_layer
from deconv_ir.ir.layouts import stated_layout
from deconv_ir.ir.operation import Context, Infos, TensorInfo
from deconv_ir.ir.size_expression import Bounds, Name, SizeExpression, axis_names
from deconv_ir.ir.symbolic_size import (
    Condition,
    ReboundError,
    SizeSpace,
    SymbolicSize,
    expression_of,
)

SymbolicDim = int | SizeExpression
SymbolicShape = tuple[SymbolicDim, ...] | None
"""A shape whose dynamic dims are expressions; None for a dynamic rank."""

MOST_NAMES: Final = 64
"""Maximum number of dynamic dims of all inputs together."""
_DIVISIBLE: Final = 840
"""The example's sizes are multiples of 1 to 8, which windows and patches often have."""
_NUMBERS: Final = (*range(1, 18), 31, 32, 33, 100, 1000, 4096, 10**5, 10**7, 10**9)
"""Sizes that are tried to meet or to break a condition."""
_TRIED: Final = 4
"""Maximum number of sizes for which one layer is inferred."""
_EXAMPLES: Final = 6
"""Number of inferences with numbers."""


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


def infer_symbolic(
    graph: Graph,
    context: Context,
    inference: Inference,
) -> SymbolicInference | None:
    """Infer the dims of a dynamic model as expressions; None if no input has a dynamic dim.

    Sizes are at least 1.  Inputs whose sizes must be equal share a name.

    Parameters
    ----------
    graph : Graph
    context : Context
    inference : Inference
        The shapes of the graph, as `infer` returns them.
    """
    trace = _Trace(graph, context, inference)
    if not trace.axes:
        return None
    return trace.run()


class _Example(NamedTuple):
    """An inference with numbers in place of the names."""

    values: dict[str, int]
    outputs: tuple[tuple[TensorInfo, ...], ...]
    failed: frozenset[int]
    """Layers that do not fit, and those behind them."""


Place = tuple[int, int, int, bool]
"""Layer, output, axis or element; whether it is an element."""


class _Trace:
    def __init__(self, graph: Graph, context: Context, inference: Inference) -> None:
        self.graph = graph
        self.context = context
        self.inference = inference
        self.space = SizeSpace()
        self.unknown: dict[Place, Name] = {}
        self.rejected: set[Place] = set()
        self.examples: list[_Example] = []
        self.errors: dict[int, Finding] = {}
        self.axes: dict[Name, tuple[int, int]] = {}
        self._stride = math.lcm(total_stride(graph), _DIVISIBLE)
        self._random = random.Random(0)
        self._name_axes()

    def _name_axes(self) -> None:
        taken: dict[str, int] = {}
        for index in self.graph.topology.order:
            layer, outputs = self.graph.layers[index], self.inference.outputs[index]
            shape = outputs[0].shape if outputs and layer.type == "Parameter" else None
            if not shape or all(isinstance(dim, int) for dim in shape):
                continue
            dynamic = tuple(isinstance(dim, Interval) for dim in shape)
            letters = axis_names(dynamic, stated_layout(layer))
            for axis, (letter, dim) in enumerate(zip(letters, shape, strict=True)):
                if isinstance(dim, int) or len(self.axes) >= MOST_NAMES:
                    continue
                taken[letter] = taken.get(letter, 0) + 1
                text = letter if taken[letter] == 1 else f"{letter}{taken[letter]}"
                low, high = bounds(dim)
                ends = (float(max(1, low)), math.inf if high is None else float(max(1, high)))
                batch = axis == 0 and len(shape) > 1
                value = (1 if batch else self._stride) * (len(self.axes) + 2)
                name = self.space.add_name(text, _within(value, ends), ends, index)
                self.axes[name] = (index, axis)

    def run(self) -> SymbolicInference:
        """Trace until no name stands for another size, and all expressions are confirmed."""
        # Each repetition has one name less, or one place more without an expression.
        for _ in range(2 * MOST_NAMES):
            if not self.examples:
                self.examples = [self._example(0)]
            try:
                known = self._pass()
            except ReboundError:
                self.examples = []
                continue
            if len(self.examples) > 1:
                break
            self.examples += [self._example(number) for number in range(1, _EXAMPLES)]
            if self._is_confirmed(known):
                break
        else:
            known = self._unknown_pass()
        return self._result(known)

    def _result(self, known: Sequence[Infos]) -> SymbolicInference:
        never = {i: e for i, e in self.errors.items() if i in self.space.never}
        contradictions = [
            Contradiction(index, error)
            for index, error in never.items()
            if all(index in example.failed for example in self.examples)
        ]
        return SymbolicInference(
            tuple(tuple(_symbolic(info) for info in infos) for infos in known),
            tuple(map(tuple, known)),
            {n.text: place for n, place in self.axes.items() if n not in self.space.bindings},
            tuple(c for c in self.space.conditions if self._is_needed(c, known)),
            tuple(contradictions),
        )

    def _is_needed(self, condition: Condition, known: Sequence[Infos]) -> bool:
        """Whether a layer refuses sizes that do not meet a condition, all that are tried."""
        difference = condition.left - condition.right
        inputs = self._inputs(condition.layer, known)
        tried = itertools.islice(self._values(difference, lambda value: value != 0), _TRIED)
        results = [self._at_values(condition.layer, inputs, values) for values in tried]
        return bool(results) and all(result is None for result in results)

    def _inputs(self, index: int, known: Sequence[Infos]) -> list[TensorInfo]:
        layer, sources = self.graph.layers[index], self.graph.topology.sources[index]
        return [
            TensorInfo(port.shape, port.element_type) if s is None else known[s[0]][s[1]]
            for port, s in zip(layer.inputs, sources, strict=True)
        ]

    def _values(
        self, size: SizeExpression, wanted: Callable[[int], bool]
    ) -> Iterator[dict[str, int]]:
        """Iterate over values of the names with which a size has a wanted value."""
        space = self.space
        for name in (None, *size.names()):
            for number in _NUMBERS:
                values = dict(space.values)
                for each in size.names() if name is None else (name,):
                    values[each.text] = _within(number, space.bounds[each.text])
                if wanted(size.evaluate(values)):
                    yield values

    def _at_values(
        self, index: int, inputs: Infos, values: Mapping[str, int]
    ) -> tuple[TensorInfo, ...] | None:
        """Infer one layer with numbers in place of the names; None if it does not fit."""
        numbers = []
        for info in inputs:
            shape = info.shape and tuple(_number(dim, values) for dim in info.shape)
            value = info.value and tuple(_number(dim, values) for dim in info.value)
            if any(isinstance(dim, int) and dim < 1 for dim in shape or ()):
                return None
            numbers.append(info._replace(shape=shape, value=value))
        context = self.context._replace(body_findings=[])
        try:
            found = infer_layer(self.graph.layers[index], numbers, context)
        except DeconvError:
            return None
        return None if any(map(_is_empty, found)) else found

    def _try_other_orders(self, index: int, inputs: Infos, traced: Infos) -> None:
        """Reject results that are others where sizes that were compared have another order."""
        for difference, value in self.space.orders.items():
            other: Callable[[int], bool] = (lambda x: x < 0) if value >= 0 else (lambda x: x >= 0)
            if value > 0:
                other = lambda x: x <= 0  # noqa: E731
            for values in itertools.islice(self._values(difference, other), _TRIED):
                found = self._at_values(index, inputs, values)
                if found is None:
                    continue
                for place, dim in _places({index: traced}):
                    number = _at({index: found}, place)
                    if number != _number(dim, values):
                        self.rejected.add(place)

    # Examples

    def _example(self, number: int) -> _Example:
        """Infer with numbers: the first is that of the trace, the others have other remainders."""
        space = self.space
        values: dict[str, int] = {}
        for order, name in enumerate(self.axes):
            if name not in space.bindings:
                values[name.text] = self._number(name, order, number)
        for name, meaning in space.bindings.items():
            try:
                values[name.text] = meaning.evaluate(values)
            except KeyError:
                continue  # it stands for a size that is not known
        given: dict[int, TensorInfo] = {}
        for index in {place[0] for place in self.axes.values()}:
            info = self.inference.outputs[index][0]
            dims = list(info.shape or ())
            for name, (layer, axis) in self.axes.items():
                if layer == index and name.text in values:
                    dims[axis] = max(0, values[name.text])
            given[index] = TensorInfo(tuple(dims), info.element_type)
        found = infer(self.graph, self.context, given, collect=True)
        failed = {error.finding.part.layer for error in found.errors} - {None}
        failed.update(i for i, infos in enumerate(found.outputs) if any(map(_is_empty, infos)))
        for index in self.graph.topology.order:
            if any(s is None or s[0] in failed for s in self.graph.topology.sources[index]):
                failed.add(index)
        example = _Example(values, found.outputs, frozenset(i for i in failed if i is not None))
        for place, name in self.unknown.items():
            self._fill(example, place, name)
        if number == 0:
            space.values.update(example.values)
        return example

    def _number(self, name: Name, order: int, number: int) -> int:
        index, axis = self.axes[name]
        batch = axis == 0 and len(self.inference.outputs[index][0].shape or ()) > 1
        ends = self.space.bounds[name.text]
        draw = self._random.randrange
        step = 1 if batch else self._stride
        candidates = (
            step * (order + 2),
            step * (3 * order + 7),
            draw(65, 400) * 2 + 1,
            draw(500, 4000) * 2,
            draw(9, 64),
            draw(2, 9) * 16,
        )
        return _within(candidates[number], ends)

    @staticmethod
    def _fill(example: _Example, place: Place, name: Name) -> None:
        """Note the value of a name without an expression in an example."""
        found = _at(example.outputs, place)
        if isinstance(found, int) and place[0] not in example.failed:
            example.values[name.text] = found

    # The inference with names

    def _pass(self) -> list[Infos]:
        """Infer all layers with named sizes."""
        self.space.begin()
        self.errors.clear()
        layers = self.graph.layers
        known: list[Infos] = list(self.inference.outputs)
        memo: dict[tuple[int, ...], Infos] = {}
        parameters = {index for index, _ in self.axes.values()}
        settled: set[int] = set()
        wrong = {error.finding.part.layer for error in self.inference.errors}
        for index in self.graph.topology.order:
            plain = self.inference.outputs[index]
            if index in parameters:
                known[index] = (self._named_input(index),)
                continue
            inputs = self._inputs(index, known)
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
            known[index] = self._settle(index, plain, traced, settled)
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
        return TensorInfo(tuple(dims), info.element_type)

    def _infer(self, index: int, inputs: Infos) -> Infos:
        """Run the shape rule of a layer; the shapes that are known without names if it fails."""
        self.space.layer = index
        context = self.context._replace(body_findings=[])
        layer = self.graph.layers[index]
        self.space.orders = {}
        try:
            traced = layer.operation.infer(inputs, context)
            traced = fold(layer.operation, inputs, traced, context)
            self._try_other_orders(index, inputs, traced)
            return traced
        except ReboundError:
            raise
        except DeconvError as error:
            error.locate(file=self.graph.file, line=layer.line, layer=layer.label)
            self.errors[index] = error.finding
        except Exception:
            pass
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
        if isinstance(traced, int) and place not in self.rejected:
            expression = expression_of(traced)
            if not expression.is_large:
                if self._agrees(place, expression):
                    return traced
                self.rejected.add(place)
        if place[3] and plain.min < 0:
            return plain
        settled.add(place[0])
        name = self.unknown.get(place)
        if name is None:
            low, high = bounds(plain)
            ends: Bounds = (float(low), math.inf if high is None else float(high))
            value = _within(self._stride * (len(self.space.values) + 2), ends)
            name = self.space.add_name(f"d{len(self.unknown) + 1}", value, ends, None)
            self.unknown[place] = name
            for example in self.examples:
                self._fill(example, place, name)
            self.space.values[name.text] = self.examples[0].values.get(name.text, value)
        meaning = self.space.bindings.get(name, SizeExpression.of(name))
        return self.space.size(meaning)

    def _agrees(self, place: Place, expression: SizeExpression) -> bool:
        """Whether an expression has the value of its place in all examples that know it."""
        for example in self.examples:
            if place[0] in example.failed:
                continue
            found = _at(example.outputs, place)
            if isinstance(found, int):
                try:
                    if expression.evaluate(example.values) != found:
                        return False
                except KeyError:
                    continue
        return True

    def _is_confirmed(self, known: Sequence[Infos]) -> bool:
        """Whether all expressions of a trace agree with the examples made since."""
        return all(
            self._agrees(place, expression_of(size))
            for place, size in _places(dict(enumerate(known)))
            if place not in self.unknown
        )

    def _unknown_pass(self) -> list[Infos]:
        """Give every dim that varies a name of its own: names keep standing for other sizes."""
        self.space.bindings.clear()
        self.space.begin()
        self.examples = [self._example(number) for number in range(_EXAMPLES)]
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


def _is_empty(info: TensorInfo) -> bool:
    """Whether a tensor has no elements, for which broadcasting and slices have other rules."""
    return any(isinstance(dim, int) and dim < 1 for dim in info.shape or ())


def _symbolic(info: TensorInfo) -> SymbolicShape:
    if info.shape is None:
        return None
    return tuple(
        dim.expression if isinstance(dim, SymbolicSize) else dim if isinstance(dim, int) else 0
        for dim in info.shape
    )


def _places(known: Mapping[int, Infos]) -> Iterator[tuple[Place, int]]:
    """Iterate over the places of sizes that are not intervals."""
    for index, infos in known.items():
        for output, info in enumerate(infos):
            for is_element, dims in enumerate((info.shape or (), info.value or ())):
                for at, dim in enumerate(dims):
                    if isinstance(dim, int):
                        yield (index, output, at, bool(is_element)), dim


def _number(dim: Dim, values: Mapping[str, int]) -> Dim:
    """Return a size with numbers in place of the names."""
    return dim.expression.evaluate(values) if isinstance(dim, SymbolicSize) else dim


def _at(outputs: Mapping[int, Infos] | Sequence[Infos], place: Place) -> Dim | None:
    """Return the dim or the element of a place; None if it is not known."""
    index, output, at, is_element = place
    if output >= len(outputs[index]):
        return None
    info = outputs[index][output]
    dims = info.value if is_element else info.shape
    return dims[at] if dims is not None and at < len(dims) else None


def _within(value: int, ends: Bounds) -> int:
    """Return a number within bounds, the given one if it is."""
    low, high = ends
    if low <= value <= high:
        return value
    if math.isinf(high):
        return int(low) + value
    return int(low) + value % (int(high) - int(low) + 1)


def conditions_by_names(
    conditions: Sequence[Condition],
) -> Mapping[tuple[str, ...], list[Condition]]:
    """Return the conditions by the names in them, each difference once."""
    found: dict[tuple[str, ...], list[Condition]] = {}
    seen: set[SizeExpression] = set()
    for condition in conditions:
        difference = condition.left - condition.right
        if difference in seen or -difference in seen:
            continue
        seen.add(difference)
        names = tuple(name.text for name in difference.names())
        found.setdefault(names, []).append(condition)
    return found
