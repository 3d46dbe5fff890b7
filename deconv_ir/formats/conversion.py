"""Conversion of files from one format to the other."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from deconv_ir.errors import InputError
from deconv_ir.formats.files import output_errors, replace_file
from deconv_ir.formats.reading import Readable, is_onednn, read_graph, with_weights
from deconv_ir.ir.dtypes import Array
from deconv_ir.ir.graph import Graph
from deconv_ir.ir.operation import Context
from deconv_ir.limits import DEFAULT_LIMITS, Limits

if TYPE_CHECKING:
    from deconv_ir.formats.onednn_json.overrides import Overrides


def to_openvino(
    model: Readable,
    target: str | os.PathLike[str],
    limits: Limits = DEFAULT_LIMITS,
    overrides: Overrides | None = None,
) -> list[str]:
    """Write a oneDNN Graph file as an OpenVINO IR.

    Returns
    -------
    list of str
        The files that were written.

    Raises
    ------
    InputError
        The file is not a oneDNN Graph file.
    UnsupportedError
        An operation cannot be expressed; nothing is written.
    """
    return write_lowered(_read(model, limits, overrides, onednn=True), Path(target))


def write_lowered(graph: Graph, path: Path) -> list[str]:
    """Write a graph of oneDNN operations as an OpenVINO IR; see `to_openvino`."""
    from deconv_ir.formats.onednn_json.to_openvino import lower
    from deconv_ir.formats.openvino_xml.writer import write

    lowered = lower(graph)
    written = _beside(path, ".bin", lowered.weights)
    write(lowered.graph, path)
    return [str(path), *written]


def to_onednn(
    model: Readable,
    target: str | os.PathLike[str],
    weights: Readable | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> list[str]:
    """Write an IR as a oneDNN Graph file, and its constants as .npz next to it.

    Return value and errors are those of `to_openvino`.
    """
    from deconv_ir.formats.onednn_json.to_onednn import express

    graph, opened = with_weights(_read(model, limits, onednn=False), weights)
    context = Context(weights=opened)
    text, constants = express(graph, context)
    path = Path(target)
    written = _beside(path, ".npz", _archive(constants) if constants else b"")
    _write(path, text.encode())
    return [str(path), *written]


def _read(
    model: Readable, limits: Limits, overrides: Overrides | None = None, *, onednn: bool
) -> Graph:
    """Read a file of one of the formats."""
    graph = read_graph(model, limits, overrides)
    if is_onednn(graph) is not onednn:
        other = "an IR" if onednn else "a oneDNN Graph file"
        raise InputError(f"the file is {other} already", file=graph.file)
    return graph


def _archive(arrays: dict[str, Array]) -> bytes:
    import io

    import numpy as np

    stream = io.BytesIO()
    np.savez(stream, **arrays)  # type: ignore[arg-type]
    return stream.getvalue()


def _beside(path: Path, suffix: str, data: bytes) -> list[str]:
    """Write a companion file, unless it is empty."""
    if not data:
        return []
    _write(path.with_suffix(suffix), data)
    return [str(path.with_suffix(suffix))]


def _write(path: Path, data: bytes) -> None:
    with output_errors(path, "the file"), replace_file(path) as stream:
        stream.write(data)
