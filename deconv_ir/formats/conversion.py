"""Writing a graph in any format, whatever format it was read from."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from deconv_ir.errors import InputError
from deconv_ir.formats.format import Format
from deconv_ir.formats.openvino_xml.weights import WeightsInMemory
from deconv_ir.formats.reading import Readable, read_graph, with_weights
from deconv_ir.formats.registry import format_of
from deconv_ir.ir.graph import Graph
from deconv_ir.ir.operation import ConstantSource
from deconv_ir.limits import DEFAULT_LIMITS, Limits

if TYPE_CHECKING:
    from deconv_ir.formats.onednn_json.overrides import Overrides


def write_graph(
    graph: Graph, weights: ConstantSource | None, path: Path, target: Format
) -> list[str]:
    """Write a graph in a format; return the files that were written.

    Raises
    ------
    UnsupportedError
        An operation cannot be expressed; nothing is written.
    """
    own = format_of(graph)
    if not own.has_opsets:
        lowered = own.to_opsets(graph)
        graph = lowered.graph
        weights = WeightsInMemory(lowered.weights) if lowered.weights else None
    return target.save(graph, weights, path)


def convert(
    model: Readable,
    path: str | os.PathLike[str],
    target: Format,
    weights: Readable | None = None,
    limits: Limits = DEFAULT_LIMITS,
    overrides: Overrides | None = None,
) -> list[str]:
    """Write a file of one format as one of another.

    Returns
    -------
    list of str
        The files that were written.

    Raises
    ------
    InputError
        The file has the target's format.
    UnsupportedError
        An operation cannot be expressed; nothing is written.
    """
    graph = read_graph(model, limits, overrides)
    if format_of(graph) is target:
        raise InputError(f"the file is {target.title} already", file=graph.file)
    graph, opened = with_weights(graph, weights)
    return write_graph(graph, opened, Path(path), target)
