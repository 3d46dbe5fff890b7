"""Trials of a symbolic inference: the same layers with numbers in place of the named sizes."""

from __future__ import annotations

import functools
import itertools
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, NamedTuple

from deconv_ir.errors import DeconvError
from deconv_ir.ir.fitting_sizes import total_stride
from deconv_ir.ir.geometry import Dim, Interval, bounds
from deconv_ir.ir.graph import Graph
from deconv_ir.ir.infer import Inference, infer, infer_layer
from deconv_ir.ir.layouts import stated_layout
from deconv_ir.ir.operation import Context, Infos, TensorInfo
from deconv_ir.ir.size_expression import Bounds, Name, SizeExpression, axis_names
from deconv_ir.ir.symbolic_size import Condition, SizeSpace, SymbolicSize

MOST_NAMES: Final = 64
"""Maximum number of dynamic dims of all inputs together."""
_DIVISIBLE: Final = 840
"""The example's sizes are multiples of 1 to 8, which windows and patches often have."""
_BATCH: Final = 8
"""Batches of the example are multiples of it."""
_NUMBERS: Final = (*range(1, 18), 31, 32, 33, 100, 1000, 4096, 10**5, 10**7, 10**9)
"""Sizes that are tried to meet or to break a condition."""
_TRIED: Final = 4
"""Maximum number of sizes for which one layer is inferred."""
EXAMPLES: Final = 6
"""Number of inferences with numbers."""


class SizeExample(NamedTuple):
    """An inference with numbers in place of the names."""

    values: dict[str, int]
    outputs: tuple[tuple[TensorInfo, ...], ...]
    failed: frozenset[int]
    """Layers that do not fit, and those behind them."""


Place = tuple[int, int, int, bool]
"""Layer, output, axis or element; whether it is an element."""


class Trials:
    """The names of a graph's inputs, and inferences with numbers in their place.

    Attributes
    ----------
    graph : Graph
    context : Context
    inference : Inference
        The shapes of the graph.
    space : SizeSpace
    unknown : dict of Place to Name
        The names of sizes that are not expressions of others.
    rejected : set of Place
        Sizes whose expression is not the value in all trials.
    examples : list of SizeExample
        Inferences of the whole graph, the first with the values of the space.
    axes : dict of Name to (int, int)
        The Parameter and the axis of each name.
    """

    def __init__(self, graph: Graph, context: Context, inference: Inference) -> None:
        self.graph = graph
        self.context = context
        self.inference = inference
        self.space = SizeSpace()
        self.unknown: dict[Place, Name] = {}
        self.rejected: set[Place] = set()
        self.examples: list[SizeExample] = []
        self.axes: dict[Name, tuple[int, int]] = {}
        self.stride = math.lcm(total_stride(graph), _DIVISIBLE)
        self._random = random.Random(0)
        self.parameters = [
            i
            for i in graph.topology.order
            if graph.layers[i].type == "Parameter" and inference.outputs[i]
        ]
        self._name_axes()

    def _name_axes(self) -> None:
        taken: dict[str, int] = {}
        for index in self.parameters:
            layer = self.graph.layers[index]
            shape = self.inference.outputs[index][0].shape
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
                value = (_BATCH if batch else self.stride) * (len(self.axes) + 2)
                name = self.space.add_name(text, within(value, ends), ends, index)
                self.axes[name] = (index, axis)

    def is_needed(self, condition: Condition, known: Sequence[Infos]) -> bool:
        """Whether a layer refuses sizes that do not meet a condition, all that are tried."""
        difference = condition.left - condition.right
        inputs = self.inputs_of(condition.layer, known)
        sides = (condition.left, condition.right)

        def breaks(values: dict[str, int]) -> bool:
            left, right = (side.evaluate(values) for side in sides)
            return left != right and not (condition.broadcasts and 1 in (left, right))

        found = filter(breaks, self._values(difference, lambda value: value != 0))
        tried = itertools.islice(found, _TRIED)
        results = [self._at_values(condition.layer, inputs, values) for values in tried]
        return bool(results) and all(result is None for result in results)

    def inputs_of(self, index: int, known: Sequence[Infos]) -> list[TensorInfo]:
        """Return the infos of a layer's inputs."""
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
                    values[each.text] = within(number, space.bounds[each.text])
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
        return None if any(map(is_empty, found)) else found

    def try_other_orders(self, index: int, inputs: Infos, traced: Infos) -> None:
        """Reject results that are others where sizes that were compared have another order."""
        for difference, value in self.space.orders.items():
            others = self._values(difference, functools.partial(_has_other_sign, value))
            for values in itertools.islice(others, _TRIED):
                found = self._at_values(index, inputs, values)
                if found is None:
                    continue
                for place, dim in places_of({index: traced}):
                    number = at_place({index: found}, place)
                    if number != _number(dim, values):
                        self.rejected.add(place)

    # Examples

    def example(self, number: int) -> SizeExample:
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
        for index in self.parameters:
            info = self.inference.outputs[index][0]
            dims = list(info.shape or ())
            for name, (layer, axis) in self.axes.items():
                if layer == index and name.text in values:
                    dims[axis] = max(0, values[name.text])
            given[index] = info._replace(shape=info.shape and tuple(dims))
        found = infer(self.graph, self.context, given, collect=True)
        failed = {error.finding.part.layer for error in found.errors} - {None}
        failed.update(i for i, infos in enumerate(found.outputs) if any(map(is_empty, infos)))
        for index in self.graph.topology.order:
            if any(s is None or s[0] in failed for s in self.graph.topology.sources[index]):
                failed.add(index)
        example = SizeExample(values, found.outputs, frozenset(i for i in failed if i is not None))
        for place, name in self.unknown.items():
            self.fill(example, place, name)
        if number == 0:
            space.values.update(example.values)
        return example

    def _number(self, name: Name, order: int, number: int) -> int:
        index, axis = self.axes[name]
        batch = axis == 0 and len(self.inference.outputs[index][0].shape or ()) > 1
        ends = self.space.bounds[name.text]
        draw = self._random.randrange
        step = _BATCH if batch else self.stride
        candidates = (
            step * (order + 2),
            step * (3 * order + 7),
            draw(65, 400) * 2 + 1,
            draw(500, 4000) * 2,
            draw(9, 64),
            draw(2, 9) * 16,
        )
        return within(candidates[number], ends)

    @staticmethod
    def fill(example: SizeExample, place: Place, name: Name) -> None:
        """Note the value of a name without an expression in an example."""
        found = at_place(example.outputs, place)
        if isinstance(found, int) and place[0] not in example.failed:
            example.values[name.text] = found

    def agreed_end(self, place: Place, traced: Interval) -> Dim:
        """Return the end of an interval that is the value in all examples, as of a quotient."""
        for end in (traced.max, traced.min):
            if isinstance(end, SymbolicSize):
                fitting = sum(place[0] not in e.failed for e in self.examples)
                exact = fitting and self.confirmations(place) == fitting
                if exact and self.agrees(place, end.expression):
                    return end
        return traced

    def confirmations(self, place: Place) -> int:
        """Return the number of examples in which the layer fits and the size is a number."""
        return sum(
            place[0] not in e.failed and isinstance(at_place(e.outputs, place), int)
            for e in self.examples
        )

    def is_number(self, place: Place) -> bool:
        """Whether a size is a number, if it has the same value in all examples."""
        plain = at_place(self.inference.outputs, place)
        return isinstance(plain, int) or self.confirmations(place) >= min(2, len(self.examples))

    def agrees(self, place: Place, expression: SizeExpression) -> bool:
        """Whether an expression has the value of its place in all examples that know it."""
        for example in self.examples:
            if place[0] in example.failed:
                continue
            found = at_place(example.outputs, place)
            if isinstance(found, int):
                try:
                    if expression.evaluate(example.values) != found:
                        return False
                except KeyError:
                    continue
        return True


def _number(dim: Dim, values: Mapping[str, int]) -> Dim:
    """Return a size with numbers in place of the names."""
    return dim.expression.evaluate(values) if isinstance(dim, SymbolicSize) else dim


def at_place(outputs: Mapping[int, Infos] | Sequence[Infos], place: Place) -> Dim | None:
    """Return the dim or the element of a place; None if it is not known."""
    index, output, at, is_element = place
    if output >= len(outputs[index]):
        return None
    info = outputs[index][output]
    dims = info.value if is_element else info.shape
    return dims[at] if dims is not None and at < len(dims) else None


def within(value: int, ends: Bounds) -> int:
    """Return a number within bounds, the given one if it is."""
    low, high = ends
    if low <= value <= high:
        return value
    if math.isinf(high):
        return int(low) + value
    return int(low) + value % (int(high) - int(low) + 1)


def is_empty(info: TensorInfo) -> bool:
    """Whether a tensor has no elements, for which broadcasting and slices have other rules."""
    return any(isinstance(dim, int) and dim < 1 for dim in info.shape or ())


def places_of(known: Mapping[int, Infos]) -> Iterator[tuple[Place, int]]:
    """Iterate over the places of sizes that are not intervals."""
    for index, infos in known.items():
        for output, info in enumerate(infos):
            for is_element, dims in enumerate((info.shape or (), info.value or ())):
                for at, dim in enumerate(dims):
                    if isinstance(dim, int):
                        yield (index, output, at, bool(is_element)), dim


def _has_other_sign(value: int, other: int) -> bool:
    return (other > 0) - (other < 0) != (value > 0) - (value < 0)
