"""Analysis of a graph before shapes are known: needed, constant and unimplemented layers."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from deconv_ir.errors import UnsupportedError
from deconv_ir.hints import Advice, Hint
from deconv_ir.ir.graph import Graph, Layer, walk_graphs
from deconv_ir.ops.base import UnknownOperation

_NAMED = 5


def require_implemented(graph: Graph, order: Collection[int]) -> None:
    """Require that every layer is implemented; the error names all missing ones."""
    layers = [graph.layers[i] for i in order]
    inner = (body.graph for layer in layers for body in layer.operation.bodies)
    layers += (layer for top in inner for part in walk_graphs(top) for layer in part.layers)
    missing = [layer for layer in layers if not layer.operation.implemented]
    if not missing:
        return
    groups: dict[tuple[str, str | None], list[Layer]] = {}
    for layer in missing:
        groups.setdefault((layer.type, layer.version), []).append(layer)
    hint = Hint.OTHER_OUTPUTS()
    if len(missing) == 1:
        hint = _suggestion(missing[0]) or hint
        message = f"operation {_named(*next(iter(groups)))} is not implemented"
    else:
        listed = "; ".join(
            f"{_named(*key)} x{len(layers)}{_bracketed(_suggestion(layers[0]))}: {_places(layers)}"
            for key, layers in groups.items()
        )
        message = f"{len(missing)} layers that are needed are not implemented: {listed}"
    raise UnsupportedError(
        message,
        file=graph.file,
        line=missing[0].line if len(missing) == 1 else None,
        layer=missing[0].label if len(missing) == 1 else None,
        actual=tuple(layer.label for layer in missing),
        hint=hint,
        rule="unsupported-operation",
    )


def _named(type_name: str, version: str | None) -> str:
    return f"{type_name} (version {version})" if version else type_name


def _suggestion(layer: Layer) -> Advice | None:
    """Return the reader's hint, or else the OpenVINO operation with the most similar name."""
    operation = layer.operation
    if isinstance(operation, UnknownOperation) and operation.searched:
        return operation.hint
    from deconv_ir.ops.opsets import nearest_operation

    return nearest_operation(layer.type, layer.version)


def _bracketed(hint: Advice | None) -> str:
    return f" ({hint})" if hint else ""


def _places(layers: Sequence[Layer]) -> str:
    shown = [f"{layer.name!r} in line {layer.line}" for layer in layers[:_NAMED]]
    if len(layers) > _NAMED:
        shown.append(f"and {len(layers) - _NAMED} more")
    return ", ".join(shown)
