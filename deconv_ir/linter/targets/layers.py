"""The layers of a file as operations and parts that releases of OpenVINO compile or refuse."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, NamedTuple

from deconv_ir.ir.operation import TensorInfo
from deconv_ir.linter.targets.forms import parts, versioned
from deconv_ir.ops import find_operation

if TYPE_CHECKING:
    from deconv_ir.linter.inferred_graph import InferredGraph

_NEVER_FOLDED: Final = frozenset({"Parameter", "ReadValue", "RandomUniform", "Multinomial"})


class LayerForm(NamedTuple):
    """A layer as the tables of releases name it."""

    layer: int
    """Index in `Graph.layers`."""
    operation: str | None
    """As ``Pad-12``; None: not an operation of an opset."""
    parts: tuple[str, ...]


def layer_forms(context: InferredGraph) -> Iterator[LayerForm]:
    """Iterate over the layers of one graph, without those of its bodies."""
    fixed = constants(context)
    for index, layer in enumerate(context.graph.layers):
        operation = versioned(layer.type, layer.version)
        found = find_operation(layer.type, layer.version) if operation else None
        if found is None:
            yield LayerForm(index, None, ())
            continue
        sources = context.topology.sources[index]
        marks = [source is not None and fixed[source[0]] for source in sources]
        given = context.inputs(index) if layer.inputs else []
        outputs = context.outputs(index) if layer.outputs else ()
        yield LayerForm(
            index, operation, parts(found, dict(layer.attributes), given, outputs, marks)
        )


def constants(context: InferredGraph) -> list[bool]:
    """Return for each layer whether its outputs are constants of the network."""
    fixed = [False] * len(context.graph.layers)
    for index in context.topology.order:
        layer = context.graph.layers[index]
        if layer.type == "Const":
            fixed[index] = True
        elif layer.inputs and layer.type not in _NEVER_FOLDED and not layer.operation.bodies:
            fixed[index] = all(
                source is not None and (fixed[source[0]] or _known(context.outputs(source[0])))
                for source in context.topology.sources[index]
            ) or (layer.type == "ShapeOf" and _known(context.outputs(index)))
    return fixed


def _known(infos: tuple[TensorInfo, ...]) -> bool:
    """Whether all elements of the outputs are known numbers."""
    return all(
        info.reals is not None
        or (info.value is not None and all(isinstance(dim, int) for dim in info.value))
        for info in infos
    )
