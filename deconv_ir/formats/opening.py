"""Opening a model: its graph and its weights file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from deconv_ir.errors import DeconvError, InputError, WeightsError
from deconv_ir.formats.openvino_xml import Weights, WeightsInMemory, read, read_bytes
from deconv_ir.ir.graph import Graph, Layer
from deconv_ir.limits import Limits
from deconv_ir.ops.constants.constant import Const

Readable = str | os.PathLike[str] | bytes | bytearray | memoryview
"""A file: its path, or its contents."""


def read_model(model: Readable, limits: Limits) -> tuple[Graph | None, Sequence[DeconvError]]:
    """Read an IR from a file, or from its contents; see `xmlio.read`.

    Raises
    ------
    InputError
        It is neither.
    """
    if isinstance(model, bytes | bytearray | memoryview):
        return read_bytes(bytes(model), None, limits)
    return read(_as_path("path", model), limits)


def _as_path(name: str, given: object) -> str:
    """Return a path as text.

    Raises
    ------
    InputError
        It is not a path.
    """
    try:
        path = os.fspath(given)  # type: ignore[call-overload]
    except TypeError:
        path = None
    if not isinstance(path, str):
        raise InputError(
            f"{name} must be a path, or the contents of the file as bytes, "
            f"found {type(given).__name__}"
        )
    if "\0" in path:
        raise InputError(f"{name}: a path cannot have a null character, found {path!r}")
    return path


def open_weights(graph: Graph, path: str | None, weights: Readable | None) -> Weights | None:
    """Open the weights file, and check that every constant is in it.

    Parameters
    ----------
    graph : Graph
    path : str or None
        Where the XML is; None: it was given as bytes.
    weights : path-like or bytes, optional
        The weights file, or its contents; by default the file beside `path`.

    Raises
    ------
    InputError
        `weights` is neither a path nor bytes.
    WeightsError
        It is missing, or a constant is not in it.
    """
    constants = [layer for layer in graph.layers if isinstance(layer.operation, Const)]
    opened: Weights
    if isinstance(weights, bytes | bytearray | memoryview):
        opened = WeightsInMemory(bytes(weights))
    elif weights is not None:
        opened = Weights(_as_path("weights", weights))
    else:
        beside = None if path is None else Path(path).with_suffix(".bin")
        there = beside is not None and (beside.exists() or beside.is_symlink())
        if beside is None or not constants or not there:
            filled = [c for c in constants if _bytes_of(c, graph)]
            if filled:
                where = "no weights" if beside is None else f"no {beside.name} beside it"
                raise WeightsError(
                    f"the model has {len(filled)} constants, but {where}",
                    file=graph.file,
                    line=filled[0].line,
                    layer=filled[0].label,
                    hint="weights names another file",
                    rule="weights-missing",
                )
            return None
        opened = Weights(beside)
    for layer in constants:
        operation = layer.operation
        assert isinstance(operation, Const)
        try:
            size = _bytes_of(layer, graph)
            if size:
                # As in OpenVINO's reader, even unused constants must be in the file.
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
