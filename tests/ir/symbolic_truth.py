"""The truth of symbolic shapes: sizes in place of the names give the shapes that are inferred."""

from __future__ import annotations

import random
from collections.abc import Mapping

from deconv_ir.ir.graph import Graph
from deconv_ir.ir.infer import Inference, infer
from deconv_ir.ir.operation import Context, TensorInfo
from deconv_ir.ir.symbolic import SymbolicInference, infer_symbolic

MOST = (4, 20, 70, 300, 2000)
MULTIPLES = (1, 1, 32, 8, 64)


def require_true(
    graph: Graph,
    seed: int,
    *,
    rounds: int = 10,
    given: Mapping[int, TensorInfo] | None = None,
    context: Context | None = None,
) -> tuple[SymbolicInference | None, int]:
    """Compare with the inference of random sizes, layer by layer as far as these fit.

    Return the symbolic inference, and the number of times that all layers fit.  Tensors without
    elements, and what depends on them, are left out.
    """
    context = context or Context()
    plain = infer(graph, context, given, collect=True)
    found = infer_symbolic(graph, context, plain)
    if found is None:
        return None, 0
    draw, fitted = random.Random(seed), 0
    for number in range(rounds):
        most, multiple = MOST[number % len(MOST)], MULTIPLES[number % len(MOST)]
        values = {
            name: draw.randint(1, most) * (multiple if axis else 1)
            for name, (_, axis) in found.names.items()
        }
        concrete = _infer_at(graph, context, found, plain, values)
        fitted += concrete is not None and not _compare(graph, found, concrete, values)
    return found, fitted


def _infer_at(
    graph: Graph,
    context: Context,
    found: SymbolicInference,
    plain: Inference,
    values: Mapping[str, int],
) -> Inference | None:
    given = {}
    for index in (i for i, layer in enumerate(graph.layers) if layer.type == "Parameter"):
        shape = found.shapes[index][0]
        names = {n.text for d in shape or () if not isinstance(d, int) for n in d.names()}
        if not names <= values.keys():
            return None  # an input whose size is an unknown one
        dims = shape and tuple(d if isinstance(d, int) else d.evaluate(values) for d in shape)
        given[index] = plain.outputs[index][0]._replace(shape=dims)
    return infer(graph, context, given, collect=True)


def _compare(
    graph: Graph, found: SymbolicInference, concrete: Inference, values: dict[str, int]
) -> set[int]:
    """Compare all layers that fit, and return the others.

    A size that is not an expression has the value that it has first.
    """
    failed = {error.finding.part.layer for error in concrete.errors}
    for index, infos in enumerate(concrete.outputs):
        if any(0 in (info.shape or ()) for info in infos):
            failed.add(index)
    for index in graph.topology.order:
        if any(s is None or s[0] in failed for s in graph.topology.sources[index]):
            failed.add(index)
    for index in (i for i in graph.topology.order if i not in failed):
        for output, info in enumerate(concrete.outputs[index]):
            shape = found.shapes[index][output]
            for axis, (dim, number) in enumerate(zip(shape or (), info.shape or (), strict=False)):
                if not isinstance(number, int):
                    continue
                if not isinstance(dim, int) and dim.name is not None:
                    values.setdefault(dim.name.text, number)
                if isinstance(dim, int) or {n.text for n in dim.names()} <= values.keys():
                    size = dim if isinstance(dim, int) else dim.evaluate(values)
                    place = (graph.layers[index].label, output, axis)
                    assert size == number, f"{place}: {dim} is {size} for {values}, not {number}"
    return {index for index in failed if index is not None}
