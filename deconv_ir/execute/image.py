"""The shapes of a network for a batch of one image, for which algorithms are chosen."""

from __future__ import annotations

from collections.abc import Sequence

from deconv_ir.errors import DeconvError
from deconv_ir.ir.graph import Graph
from deconv_ir.ir.infer import infer
from deconv_ir.ir.operation import Context, Infos, TensorInfo
from deconv_ir.ir.shapes import is_static


def infer_image(graph: Graph, context: Context, infos: Sequence[Infos]) -> Sequence[Infos] | None:
    """Infer shapes, as in `infos`, as if the first axis of each input had one element.

    None if the shapes are already those of one image, or the graph does not accept that batch.
    """
    given = {
        index: infos[index][0]
        for index, layer in enumerate(graph.layers)
        if layer.type == "Parameter"
    }
    image = {index: _first(info) for index, info in given.items()}
    if image == given:
        return None
    try:
        return infer(graph, context, image).outputs
    except DeconvError:
        return None


def _first(info: TensorInfo) -> TensorInfo:
    if info.value is not None or not info.shape or not is_static(info.shape):
        return info
    return TensorInfo((1, *info.shape[1:]), info.element_type)
