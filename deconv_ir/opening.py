"""What a model is opened with: the semantics that was asked for, and its weights file."""

from __future__ import annotations

import os
from pathlib import Path

from .errors import DeconvError, WeightsError
from .geometry import Semantics
from .model import Graph, Layer
from .ops.constant import Const
from .xmlio import Weights


def as_semantics(semantics: Semantics | str) -> Semantics:
    """Return the semantics of that name.

    Raises
    ------
    DeconvError
        There is none of that name.
    """
    try:
        return Semantics(semantics)
    except ValueError:
        raise DeconvError(f"semantics must be 'spec' or 'openvino', found {semantics!r}") from None


def open_weights(
    graph: Graph, path: Path, weights: str | os.PathLike[str] | None
) -> Weights | None:
    """Map the weights file, and check that every constant is in it.

    Raises
    ------
    WeightsError
        It is missing, or a constant is not in it.
    """
    constants = [layer for layer in graph.layers if isinstance(layer.operation, Const)]
    if weights is None:
        beside = path.with_suffix(".bin")
        if not constants or (not beside.exists() and not beside.is_symlink()):
            filled = [c for c in constants if _bytes_of(c, graph)]
            if filled:
                raise WeightsError(
                    f"the model has {len(filled)} constants, but there is no {beside.name} "
                    "beside it",
                    file=graph.file,
                    line=filled[0].line,
                    layer=filled[0].label,
                    hint="weights names another file",
                    rule="weights-missing",
                )
            return None
        weights = beside
    opened = Weights(weights)
    for layer in constants:
        operation = layer.operation
        assert isinstance(operation, Const)
        try:
            size = _bytes_of(layer, graph)
            if size:
                # As in OpenVINO's reader, what is stated must be there, used or not.
                opened.check(operation.offset, max(size, operation.size))
        except WeightsError as error:
            error.locate(file=graph.file, line=layer.line, layer=layer.label)
            raise
    return opened


def _bytes_of(layer: Layer, graph: Graph) -> int:
    """Return how many bytes of the weights file a constant needs."""
    operation = layer.operation
    assert isinstance(operation, Const)
    try:
        count = operation.check()
    except WeightsError as error:
        error.locate(file=graph.file, line=layer.line, layer=layer.label)
        raise
    return operation.element_type.size_of(count) if operation.element_type else 0
