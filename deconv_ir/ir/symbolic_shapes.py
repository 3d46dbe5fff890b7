"""Shapes of inputs and outputs with expressions as dims, and the sizes that a model requires."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from deconv_ir.ir.graph import Graph
from deconv_ir.ir.infer import Inference
from deconv_ir.ir.operation import Context
from deconv_ir.ir.shapes import Shape, static
from deconv_ir.ir.size_expression import SizeExpression
from deconv_ir.ir.size_solutions import Solutions, both
from deconv_ir.ir.symbolic import SymbolicInference, SymbolicShape, infer_symbolic
from deconv_ir.ir.symbolic_size import Condition


@dataclasses.dataclass(frozen=True)
class SymbolicShapes:
    """The shapes of a model's inputs and outputs, with expressions as dynamic dims.

    Dims are int, or the text of an expression of named sizes: ``2*H + 1``, ``ceil(H/2)``. They are
    those of all sizes of the inputs that fit and with which no tensor is empty.

    Attributes
    ----------
    inputs, outputs : dict
        Name -> tuple of int or str; None for a dynamic rank.  Inputs whose sizes must be equal
        share a name; a size that is not an expression of the others has a name of its own, ``d1``.
    conditions : tuple of str
        What the model requires of the sizes, such as ``H a multiple of 16``.

    Examples
    --------
    >>> import deconv_ir
    >>> model = deconv_ir.load("samples/block/block.xml").reshape((-1, 8, -1, -1))
    >>> shapes = model.symbolic_shapes()
    >>> isinstance(shapes, deconv_ir.SymbolicShapes), shapes.inputs
    (True, {'x': ('N', 8, 'H', 'W')})
    >>> shapes.outputs, shapes.conditions
    ({'y': ('N', 4, '2*H', '2*W')}, ())
    """

    inputs: dict[str, tuple[int | str, ...] | None]
    outputs: dict[str, tuple[int | str, ...] | None]
    conditions: tuple[str, ...] = ()


class InferredShapes(dict[str, Shape]):
    """The shapes of a model's outputs, by name: dims are int, or `Interval` if they vary.

    Attributes
    ----------
    expressions : dict
        Output name -> tuple of int or str, the dims as expressions of the inputs' dynamic dims, as
        `SymbolicShapes` has them; None for a dynamic rank.  They are computed when they are read.

    Examples
    --------
    >>> import deconv_ir
    >>> model = deconv_ir.load("samples/block/block.xml").reshape((-1, 8, -1, -1))
    >>> shapes = model.infer_shapes()
    >>> isinstance(shapes, deconv_ir.InferredShapes), shapes, shapes.expressions
    (True, {'y': (?, 4, 2.., 2..)}, {'y': ('N', 4, '2*H', '2*W')})
    """

    def __init__(
        self, shapes: Mapping[str, Shape], trace: Callable[[], SymbolicShapes] | None = None
    ) -> None:
        super().__init__(shapes)
        self._trace = trace

    @functools.cached_property
    def expressions(self) -> dict[str, tuple[int | str, ...] | None]:
        """The dims as expressions."""
        if self._trace is not None:
            return self._trace().outputs
        return {name: None if s is None else static(s) for name, s in self.items()}

    def __reduce__(self) -> tuple[type[dict[str, Shape]], tuple[dict[str, Shape]]]:
        return dict, (dict(self),)  # a model stays in its process


def texts(shape: SymbolicShape) -> tuple[int | str, ...] | None:
    """Return the dims of a shape: numbers, and texts of expressions."""
    if shape is None:
        return None
    return tuple(dim if isinstance(dim, int) else str(dim) for dim in shape)


def symbolic_shapes(
    graph: Graph,
    context: Context,
    inference: Inference,
    inputs: Mapping[str, int],
    outputs: Mapping[str, int],
) -> SymbolicShapes:
    """Return the shapes of inputs and outputs, which are given by the indices of their layers."""
    found = infer_symbolic(graph, context, inference)

    def named(places: Mapping[str, int]) -> dict[str, tuple[int | str, ...] | None]:
        if found is None:
            plain = {name: inference.outputs[index][0].shape for name, index in places.items()}
            return {n: None if shape is None else static(shape) for n, shape in plain.items()}
        return {name: texts(found.shapes[index][0]) for name, index in places.items()}

    conditions = () if found is None else tuple(r.text for r in requirements(found))
    return SymbolicShapes(named(inputs), named(outputs), conditions)


class Requirement(NamedTuple):
    """Sizes that a model requires, and the conditions of its layers that lead to them.

    Attributes
    ----------
    text : str
        ``H a multiple of 16``, or ``H = W``.
    names : tuple of str
        The names of the sizes.
    conditions : tuple of Condition
        The first is that of the first layer.
    """

    text: str
    names: tuple[str, ...]
    conditions: tuple[Condition, ...]


def requirements(inference: SymbolicInference) -> list[Requirement]:
    """Return what the layers require of the inputs' sizes, joined for each name."""
    groups: dict[tuple[str, ...], list[Condition]] = {}
    seen: set[SizeExpression] = set()
    for condition in inference.conditions:
        difference = condition.left - condition.right
        names = tuple(name.text for name in difference.names())
        if difference in seen or -difference in seen or not set(names) <= inference.names.keys():
            continue
        seen.add(difference)
        groups.setdefault(names, []).append(condition)
    found = []
    for names, conditions in groups.items():
        solutions = [c.solutions for c in conditions if c.solutions is not None]
        if len(solutions) == len(conditions):
            found.append(Requirement(_joined(solutions), names, tuple(conditions)))
        else:
            found += [Requirement(str(c), names, (c,)) for c in conditions]
    return found


def _joined(solutions: Sequence[Solutions]) -> str:
    total: Solutions | None = solutions[0]
    for other in solutions[1:]:
        total = None if total is None else both(total, other)
    return " and ".join(map(str, solutions)) if total is None else str(total)
