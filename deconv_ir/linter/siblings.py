"""Layers in the same place of blocks that repeat, and the one among them with another attribute.

The place of a layer is the types, versions and ranks of the layers around it, up to `RADIUS` edges
away, and the attributes of its neighbours: two rounds of Weisfeiler and Leman's colour refinement,
in time linear in the edges.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from deconv_ir.errors import DeconvError
from deconv_ir.ir.infer import infer_layer
from deconv_ir.ops.base import AttributeSpec, attributes_of

if TYPE_CHECKING:
    from deconv_ir.ir.graph import Layer
    from deconv_ir.ir.operation import Operation
    from deconv_ir.linter.context import LintContext

LEAST: Final = 3
"""Siblings that must agree."""
RADIUS: Final = 2
MOST_ELEMENTS: Final = 8
"""Elements of a constant of integers that belong to a place, such as axes."""
OF_SHAPES: Final = frozenset(
    {"auto_broadcast", "auto_pad", "ceil_mode", "keep_dims", "rounding_type", "special_zero"}
)
"""Attributes that only decide shapes: if the shapes agree, so do the results."""
OF_DESIGN: Final = frozenset({"direction", "global_seed", "op_seed"})
"""Attributes that differ between layers of one network by design."""


class Odd(NamedTuple):
    """A layer with one attribute unlike that of its siblings."""

    layer: int
    attribute: AttributeSpec
    value: Any
    """Of the siblings."""
    siblings: list[int]


def odd_ones(context: LintContext) -> Iterator[Odd]:
    """Find layers whose siblings all have another value of one attribute, which fits here too."""
    layers = context.graph.layers
    places = _Places(context).of_layers()
    groups: dict[Hashable, dict[Operation, list[int]]] = {}
    for type_name in context.uneven_types:
        for index, _ in context.valid_layers(type_name):
            members = groups.setdefault(places[index], {})
            members.setdefault(layers[index].operation, []).append(index)
    for members in groups.values():
        if len(members) != 2:
            continue
        (own, odd), (other, siblings) = sorted(members.items(), key=lambda item: len(item[1]))
        if len(odd) > 1 or len(siblings) < LEAST:
            continue
        differing = [
            spec
            for spec in attributes_of(type(own))
            if getattr(own, spec.field) != getattr(other, spec.field)
        ]
        if len(differing) != 1 or differing[0].name in OF_SHAPES | OF_DESIGN:
            continue
        value = getattr(other, differing[0].field)
        if _is_chosen(value) and _fits(context, odd[0], differing[0].field, value):
            yield Odd(odd[0], differing[0], value, siblings)


def _is_chosen(value: object) -> bool:
    """Whether a value is one of few, not a measure such as an epsilon, a slope or strides."""
    return not isinstance(value, float | tuple)


def _fits(context: LintContext, index: int, field: str, value: Any) -> bool:
    """Whether a layer gives the same shapes with another value, and perhaps other elements."""
    layer, inputs = context.graph.layers[index], context.inputs(index)
    own, rank = getattr(layer.operation, field), len(inputs[0].shape or ())
    if field == "axis" and isinstance(own, int) and rank and own % rank == value % rank:
        return False  # the same axis, counted from the other end
    changed = layer._replace(operation=layer.operation.replace(**{field: value}))
    try:
        outputs = infer_layer(changed, inputs, context.inference_context)
    except DeconvError:
        return False
    return [(info.shape, info.element_type) for info in outputs] == [
        (info.shape, info.element_type) for info in context.outputs(index)
    ]


class _Places:
    """Numbers for the places of layers; equal ones for equal places."""

    def __init__(self, context: LintContext) -> None:
        self.layers = context.graph.layers
        self.sources = context.topology.sources
        self.users: list[list[tuple[int, int, int]]] = [[] for _ in self.layers]
        for index, sources in enumerate(self.sources):
            for port, source in enumerate(sources):
                if source is not None:
                    # The inputs of a Concat are alike.
                    at = 0 if self.layers[index].type == "Concat" else port
                    self.users[source[0]].append((index, at, source[1]))
        self.numbers: dict[Hashable, int] = {}
        self.own = [self._number(_look(context, i, layer)) for i, layer in enumerate(self.layers)]

    def _number(self, key: Hashable) -> int:
        return self.numbers.setdefault(key, len(self.numbers))

    def of_layers(self) -> list[int]:
        """Return the number of each layer's place."""
        around = self.own
        for _ in range(RADIUS):
            around = self._refined(around, around)
        with_attributes = [
            self._number((own, None if _has_contents(layer) else layer.operation))
            for own, layer in zip(self.own, self.layers, strict=True)
        ]
        return self._refined(around, with_attributes)

    def _refined(self, own: list[int], neighbours: list[int]) -> list[int]:
        return [
            self._number(
                (
                    number,
                    tuple([s and (neighbours[s[0]], s[1]) for s in sources]),
                    tuple(sorted([(neighbours[i], port, out) for i, port, out in users])),
                )
            )
            for number, sources, users in zip(own, self.sources, self.users, strict=True)
        ]


def _has_contents(layer: Layer) -> bool:
    """Whether the attributes of a layer are its own: the place of its bytes, or its bodies."""
    return layer.type == "Const" or bool(layer.operation.bodies)


def _look(context: LintContext, index: int, layer: Layer) -> Hashable:
    """Return what a layer has in common with its siblings, apart from its neighbours."""
    outputs = context.outputs(index)
    value = outputs[0].value if layer.type == "Const" and outputs else None
    return (
        layer.type,
        layer.version,
        tuple(None if info.shape is None else len(info.shape) for info in outputs),
        value if value is None or len(value) <= MOST_ELEMENTS else None,
    )
