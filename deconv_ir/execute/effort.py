"""A bound on the work of a run whose sizes come from a file alone, before it starts."""

from __future__ import annotations

from collections.abc import Sequence

from deconv_ir.errors import DeconvError, ResourceError
from deconv_ir.execute.memory import format_count
from deconv_ir.hints import Hint
from deconv_ir.ir.graph import Graph
from deconv_ir.ir.operation import Infos
from deconv_ir.ir.shapes import element_count, format_shape, is_static, static

MOST_DRAWN = 1 << 26
"""Elements of all inputs that are drawn at random."""
_ELEMENTS = 1 << 26, 1 << 22
_OPERATIONS = 1 << 34, 1 << 31
"""What a network may compute, and what it may compute in addition for each of its layers."""


def require_modest_inputs(shapes: Sequence[tuple[int, ...]], *, file: str | None = None) -> None:
    """Require that random arrays of these shapes can be drawn quickly.

    Raises
    ------
    ResourceError
        They have too many elements.
    """
    count = sum(map(element_count, shapes))
    if count > MOST_DRAWN:
        raise ResourceError(
            f"random inputs would have {format_count(count)} elements, more than "
            f"{format_count(MOST_DRAWN)}",
            file=file,
            expected=MOST_DRAWN,
            actual=count,
            hint=Hint.RUN_ANYWAY(),
            rule="work",
        )


def require_modest_run(graph: Graph, infos: Sequence[Infos]) -> None:
    """Require that the work of a run is not out of proportion to the network.

    A small damaged file can state sizes whose computation would take hours; large networks have
    many layers.  Sizes that are not known do not count.

    Parameters
    ----------
    graph : Graph
    infos : sequence
        The inferred outputs of each layer in this run.

    Raises
    ------
    ResourceError
        The run has too many elements or arithmetic operations.
    """
    elements, operations = [], []
    for index, layer in enumerate(graph.layers):
        outputs = [info for info in infos[index] if is_static(info.shape)]
        own = sum(element_count(static(info.shape)) for info in outputs)
        elements.append(own if layer.type not in ("Const", "Result") else 0)
        operations.append(_operations(graph, infos, index))
    for counts, what, (least, each) in (
        (elements, "elements", _ELEMENTS),
        (operations, "arithmetic operations", _OPERATIONS),
    ):
        allowed = least + each * len(graph.layers)
        if sum(counts) > allowed:
            most = max(range(len(counts)), key=counts.__getitem__)
            layer = graph.layers[most]
            shown = ", ".join(format_shape(info.shape) for info in infos[most])
            raise ResourceError(
                f"a run would compute {format_count(sum(counts))} {what}, most of them in this "
                f"layer, whose output is {shown}; expected at most {format_count(allowed)} for a "
                f"network of {len(graph.layers)} layers",
                file=graph.file,
                line=layer.line,
                layer=layer.label,
                expected=allowed,
                actual=sum(counts),
                hint=Hint.RUN_ANYWAY(),
                rule="work",
            )


def _operations(graph: Graph, infos: Sequence[Infos], index: int) -> int:
    layer = graph.layers[index]
    sources = [s for s in graph.topology.sources[index] if s is not None]
    if not infos[index] or not layer.operation.implemented or len(sources) < len(layer.inputs):
        return 0
    try:
        found = layer.operation.work([infos[s[0]][s[1]] for s in sources], infos[index][0])
    except DeconvError:  # reported by the run
        return 0
    return found or 0
