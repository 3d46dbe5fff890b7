"""Search for layers of dynamic models that fit at no plausible size.

With dynamic dims, inference cannot detect a wrong stride or pad.  With actual sizes it can, but a
size may be one that the model was not made for.  So a layer is reported only if it fits at none of
the sizes tried, and at none that its inputs' extents, which grow linearly, pass through.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from deconv_ir.errors import DeconvError
from deconv_ir.ir.fitting_sizes import has_unknown_channels, total_stride
from deconv_ir.ir.geometry import Dim, Interval, bounds
from deconv_ir.ir.graph import Layer, ancestors
from deconv_ir.ir.infer import infer, infer_layer
from deconv_ir.ir.operation import TensorInfo
from deconv_ir.ir.shapes import compatible

if TYPE_CHECKING:
    from deconv_ir.findings import Finding
    from deconv_ir.ir.infer import Inference
    from deconv_ir.linter.inferred_graph import InferredGraph

DIVISIBLE = 840
"""Sizes are multiples of 1 to 8, which windows and patches often have."""
MAX_SIZE = 1 << 12
"""Maximum number of sizes that are tried."""
PLAUSIBLE = (*range(1, 41), *range(64, MAX_SIZE + 1, 32))
"""The sizes that are tried where all of them would take long."""
MAX_WORK = 120_000
"""Maximum number of layers that are inferred for one pattern: a second or a few."""
INFERENCES = 3
"""How often a body is inferred for its layer, at most in most cases."""


class SizePattern(NamedTuple):
    """The mapping of a size to extents."""

    batch: int = 1
    """Extent of axis 0; 2: equal to the others."""
    factors: tuple[int, int] = (1, 1)
    """Extents of the other axes, cyclically."""
    last: int | None = None
    """Extent of the last axis, if that is not a size."""


PATTERNS = (SizePattern(), SizePattern(factors=(1, 2)), SizePattern(batch=2))
LAST = tuple(SizePattern(last=extent) for extent in range(1, 7))
"""The last axis may be channels, or coordinates of boxes, for which only one number fits."""


Contradiction = tuple["Finding", str, tuple[int, ...]]
"""A layer that does not fit: its problem at the first size, the dynamic Parameter, the sizes."""


def contradictions(context: InferredGraph) -> list[Contradiction]:
    """Return the layers of a dynamic model that fit at no size.

    Layers that depend on several dynamic Parameters are left out: the relation of their sizes is
    not known.  Only the first of layers that depend on each other is reported.
    """
    dynamic = _dynamic_parameters(context)
    if not dynamic:
        return []
    base = math.lcm(total_stride(context.graph), DIVISIBLE)
    sizes = (base, 2 * base, 3 * base)
    errors = _errors(_probe(context, dynamic, sizes[0], PATTERNS[0]))
    assert context.inference is not None
    reported = _errors(context.inference)
    found: list[tuple[int, Finding, int]] = []
    for index, error in errors.items():
        before = ancestors(context.topology, [index])
        parameters = dynamic & before
        if len(parameters) == 1 and not before & (errors.keys() - {index} | reported.keys()):
            (parameter,) = parameters
            found.append((index, error, parameter))
    if not found:
        return []

    @functools.cache
    def probes(pattern: SizePattern) -> list[Inference]:
        return [_probe(context, dynamic, size, pattern) for size in sizes]

    def never_fits(index: int, pattern: SizePattern) -> bool:
        work = _work(context.graph.layers[index]) * len(found)
        if work * len(PLAUSIBLE) > MAX_WORK:
            return False
        # Where the last extent is given, the others seldom matter.
        is_cheap = work * MAX_SIZE <= MAX_WORK and pattern.last is None
        tried = range(1, MAX_SIZE) if is_cheap else PLAUSIBLE
        return _never_fits(context, index, probes(pattern), sizes, tried)

    return [
        (error, context.graph.layers[parameter].name, sizes)
        for index, error, parameter in found
        if all(
            never_fits(index, pattern)
            for pattern in (PATTERNS + LAST if error.rule == "input-shape" else PATTERNS)
        )
    ]


def _dynamic_parameters(context: InferredGraph) -> frozenset[int]:
    """Return the Parameters with a dynamic dim."""
    return frozenset(
        index
        for index, _ in context.layers("Parameter")
        if any(isinstance(dim, Interval) for dim in context.outputs(index)[0].shape or ())
    )


def _probe(
    context: InferredGraph,
    parameters: frozenset[int],
    size: int,
    pattern: SizePattern,
) -> Inference:
    """Infer with a size in place of all dynamic dims."""
    given: dict[int, TensorInfo] = {}
    for index in parameters:
        info = context.outputs(index)[0]
        assert info.shape is not None
        dims: list[Dim] = []
        for axis, dim in enumerate(info.shape):
            extent = size * pattern.factors[axis % len(pattern.factors)]
            if axis == 0 and len(info.shape) > 2:
                extent = 1 if pattern.batch == 1 else size
            if axis == len(info.shape) - 1 and pattern.last is not None:
                extent = pattern.last
            least, most = bounds(dim)
            fits = least <= extent and (most is None or extent <= most)
            if axis == 1 and has_unknown_channels(info.shape):
                fits = False
            dims.append(extent if isinstance(dim, Interval) and fits else dim)
        given[index] = TensorInfo(tuple(dims), info.element_type)
    return infer(context.graph, context.inference_context, given, collect=True)


def _errors(inference: Inference) -> dict[int, Finding]:
    """Return errors and wrong declared dims by the index of their layer."""
    own = (found for found in inference.findings if found.part.child is None)
    declared = [found for found in own if found.rule == "declared-dims"]
    errors = [*declared, *(error.finding for error in inference.errors)]
    return {found.part.layer: found for found in errors if found.part.layer is not None}


def _inputs(context: InferredGraph, index: int, inference: Inference) -> list[TensorInfo] | None:
    """Return the inputs of a layer; None if any is not known."""
    found = []
    for source in context.topology.sources[index]:
        if source is None:
            return None
        found.append(inference.outputs[source[0]][source[1]])
    return found


def _never_fits(
    context: InferredGraph,
    index: int,
    probes: Sequence[Inference],
    sizes: Sequence[int],
    tried: Sequence[int],
) -> bool:
    """Whether a layer fits neither at the sizes tried nor at those between."""
    if not all(index in _errors(inference) for inference in probes):
        return False
    inputs = [_inputs(context, index, inference) for inference in probes]
    known = [infos for infos in inputs if infos is not None]
    lines = list(map(_Line.through, zip(*known, strict=True))) if len(known) == len(probes) else []
    first, second = sizes[:2]
    if not lines or any(line is None for line in lines):
        return False
    for size in tried:
        infos = [line.at(size, first, second) for line in lines if line is not None]
        if None not in infos and _fits(
            context, index, [info for info in infos if info is not None]
        ):
            return False
    return not _fits_constants(context, index, [line for line in lines if line], first, second)


def _fits_constants(
    context: InferredGraph, index: int, lines: Sequence[_Line], first: int, second: int
) -> bool:
    """Whether a layer fits where its extents pass through those of an input that does not vary.

    Each axis may have another size, as the one with which a model was traced.
    """
    for fixed in (line.first.shape for line in lines if line.is_fixed):
        sizes: dict[int, float] = {}
        for line in lines:
            for axis, a, b in line.varying():
                wanted = None if fixed is None or len(fixed) < -axis else fixed[axis]
                if isinstance(wanted, int):
                    sizes.setdefault(axis, first + (wanted - a) * (second - first) / (b - a))
        infos = [line.at_sizes(sizes, first, second) for line in lines]
        known = [info for info in infos if info is not None]
        is_reached = min(sizes.values(), default=0) >= 1 and len(known) == len(infos)
        if is_reached and _fits(context, index, known):
            return True
    return False


def _work(layer: Layer) -> int:
    """Return the number of layers that are inferred with a layer."""
    bodies = (body.graph.layers for body in layer.operation.bodies)
    return 1 + INFERENCES * sum(_work(inner) for layers in bodies for inner in layers)


def _fits(context: InferredGraph, index: int, inputs: Sequence[TensorInfo]) -> bool:
    """Whether a layer accepts inputs and gives the declared outputs."""
    layer = context.graph.layers[index]
    try:
        outputs = infer_layer(layer, inputs, context.inference_context)
    except DeconvError:
        return False
    pairs = zip(layer.outputs, outputs, strict=False)
    return all(compatible(port.shape, info.shape) for port, info in pairs)


class _Line(NamedTuple):
    """Infos of an input at two sizes, for linear interpolation."""

    first: TensorInfo
    second: TensorInfo

    @staticmethod
    def through(infos: Sequence[TensorInfo]) -> _Line | None:
        """Return the line through three infos; None if they are not on a line."""
        for name in ("shape", "value"):
            dims = [getattr(info, name) for info in infos]
            if None in dims:
                if dims != [None] * len(dims):
                    return None
            elif len(set(map(len, dims))) > 1 or not all(
                a == b == c or (all(isinstance(d, int) for d in (a, b, c)) and b - a == c - b)
                for a, b, c in zip(*dims, strict=True)
            ):
                return None
        return _Line(*infos[:2])

    @property
    def is_fixed(self) -> bool:
        """Whether the infos do not vary."""
        return self.first.shape == self.second.shape and self.first.value == self.second.value

    def varying(self) -> Iterator[tuple[int, int, int]]:
        """Iterate over the axes that vary, counted from the end, and their two extents."""
        first, second = self.first.shape or (), self.second.shape or ()
        for axis, (a, b) in enumerate(zip(first, second, strict=True), -len(first)):
            if isinstance(a, int) and isinstance(b, int) and a != b:
                yield axis, a, b

    def at_sizes(self, sizes: dict[int, float], first: int, second: int) -> TensorInfo | None:
        """Return the info at a size for each axis; None if one that varies has none."""
        dims = list(self.first.shape or ())
        for axis, a, b in self.varying():
            if axis not in sizes:
                return None
            dims[axis] = int(a + (sizes[axis] - first) * (b - a) / (second - first))
        if self.first.value != self.second.value:
            return None
        return self.first if not dims else self.first._replace(shape=tuple(dims))

    def at(self, size: int, first: int, second: int) -> TensorInfo | None:
        """Return the info at a size; None if an extent that varies is below 2."""

        def dims(a: tuple[Dim, ...] | None, b: tuple[Dim, ...] | None) -> tuple[Dim, ...] | None:
            if a is None or b is None or a == b:
                return a
            pairs = zip(a, b, strict=True)
            return tuple(
                x + (size - first) * (y - x) // (second - first)
                if isinstance(x, int) and isinstance(y, int)
                else x
                for x, y in pairs
            )

        shape = dims(self.first.shape, self.second.shape)
        value = dims(self.first.value, self.second.value)
        if any(
            a != b and isinstance(c, int) and c < 2
            for a, b, c in zip(
                self.first.shape or (), self.second.shape or (), shape or (), strict=True
            )
        ):
            return None
        return self.first._replace(shape=shape, value=value)
