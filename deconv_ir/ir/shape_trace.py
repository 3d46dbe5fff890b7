"""Explanation of a shape error by the shapes on the path from an input to the layer."""

from __future__ import annotations

from collections.abc import Mapping

from deconv_ir.errors import DeconvError, ShapeError
from deconv_ir.hints import Advice, Hint, both
from deconv_ir.ir.graph import Graph
from deconv_ir.ir.infer import Inference, infer
from deconv_ir.ir.operation import Context, TensorInfo
from deconv_ir.ir.shapes import format_shape, format_sizes
from deconv_ir.ir.symbolic import SymbolicInference, infer_symbolic

_SHOWN = 6


def explain_shape_trace(
    error: ShapeError, graph: Graph, context: Context, infos: Mapping[int, TensorInfo]
) -> DeconvError:
    """Add the path of shapes from an input to the hint of a shape error that `infer` raised.

    `infos` maps the index of each Parameter layer to its info.
    """
    inference = infer(graph, context, infos, collect=True)
    at = next((i for i, layer in enumerate(graph.layers) if layer.label == error.layer), None)
    if at is None:
        return error
    symbolic = infer_symbolic(graph, context, inference)
    error.hint = both(error.hint, shape_trace(graph, inference, at, symbolic))
    return error


def shape_trace(
    graph: Graph, inference: Inference, index: int, symbolic: SymbolicInference | None = None
) -> Advice | None:
    """Return ``from x [1,3,7,7] -> conv [1,8,4,4] -> 'up'``; None if no input leads there.

    Only the last of consecutive layers that keep the shape is named.  With `symbolic`, dynamic dims
    are expressions.
    """
    path = _path(graph, index)
    if not path:
        return None
    shapes = []
    for i in path[:-1]:
        texts = symbolic and symbolic.texts(i, 0)
        shapes.append(format_sizes(texts) if texts else format_shape(inference.outputs[i][0].shape))
    names = [
        (f"{graph.layers[i].name!r}", shape)
        for position, (i, shape) in enumerate(zip(path, shapes, strict=False))
        if position == 0 or position + 1 == len(shapes) or shapes[position + 1] != shape
    ]
    if len(names) > _SHOWN:
        skipped = len(names) - _SHOWN
        names = [*names[:2], (f"({skipped} more)", ""), *names[2 - _SHOWN :]]
    steps = " -> ".join(f"{name} {shape}".rstrip() for name, shape in names)
    return Hint.SHAPES_ON_THE_WAY(f"{steps} -> {graph.layers[index].name!r}")


def _path(graph: Graph, index: int) -> list[int]:
    """Return a path of layers from a Parameter to a layer."""
    leads: set[int] = set()
    sources = graph.topology.sources
    for i in graph.topology.order:
        if graph.layers[i].type == "Parameter" or any(
            s is not None and s[0] in leads for s in sources[i]
        ):
            leads.add(i)
        if i == index:
            break
    path = [index]
    while graph.layers[path[-1]].type != "Parameter":
        onward = next((s[0] for s in sources[path[-1]] if s is not None and s[0] in leads), None)
        if onward is None:
            return []
        path.append(onward)
    return path[::-1]
