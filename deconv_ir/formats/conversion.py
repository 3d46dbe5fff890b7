"""Files of one format written as files of the other."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from deconv_ir.errors import InputError
from deconv_ir.formats.files import output_errors, replace_file
from deconv_ir.formats.opening import ONEDNN, Readable, open_weights, read_graph
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
    from deconv_ir.formats.onednn_json.to_openvino import lower
    from deconv_ir.formats.openvino_xml.writer import write

    graph = read_graph(model, limits, overrides)
    if not any(info.tag == ONEDNN for info in graph.extras):
        raise InputError("the file is an IR already", file=graph.file)
    path = Path(target)
    lowered = lower(graph)
    written = [str(path)]
    if lowered.weights:
        _write(path.with_suffix(".bin"), lowered.weights)
        written.append(str(path.with_suffix(".bin")))
    write(lowered.graph, path)
    return written


def to_onednn(
    model: Readable,
    target: str | os.PathLike[str],
    weights: Readable | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> list[str]:
    """Write an IR as a oneDNN Graph file, and its constants as .npz beside it.

    Returns
    -------
    list of str
        The files that were written.

    Raises
    ------
    InputError
        The file is a oneDNN Graph file already.
    UnsupportedError
        An operation cannot be expressed; nothing is written.
    """
    from deconv_ir.formats.onednn_json.to_onednn import express

    graph = read_graph(model, limits)
    if any(info.tag == ONEDNN for info in graph.extras):
        raise InputError("the file is a oneDNN Graph file already", file=graph.file)
    context = Context(weights=open_weights(graph, graph.file, weights))
    text, constants = express(graph, context)
    path = Path(target)
    written = [str(path)]
    if constants:
        import io

        import numpy as np

        stream = io.BytesIO()
        np.savez(stream, **constants)  # type: ignore[arg-type]
        _write(path.with_suffix(".npz"), stream.getvalue())
        written.append(str(path.with_suffix(".npz")))
    _write(path, text.encode())
    return written


def _write(path: Path, data: bytes) -> None:
    with output_errors(path, "the file"), replace_file(path) as stream:
        stream.write(data)
