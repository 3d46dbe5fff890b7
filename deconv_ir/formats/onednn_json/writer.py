"""Writing a graph of layers of opsets as a oneDNN Graph file, with its constants beside it."""

from __future__ import annotations

import io
from pathlib import Path

from deconv_ir.formats.files import output_errors, replace_file
from deconv_ir.formats.onednn_json.to_onednn import express
from deconv_ir.ir.dtypes import Array
from deconv_ir.ir.graph import Graph
from deconv_ir.ir.operation import ConstantSource, Context


def save(graph: Graph, weights: ConstantSource | None, path: Path) -> list[str]:
    """Write a graph, and its constants as .npz; see `Format.save`."""
    text, constants = express(graph, Context(weights=weights))
    files = [(path, text.encode())]
    if constants:
        files.append((path.with_suffix(".npz"), _archive(constants)))
    for target, data in reversed(files):
        with output_errors(target, "the file"), replace_file(target) as stream:
            stream.write(data)
    return [str(target) for target, _ in files]


def _archive(arrays: dict[str, Array]) -> bytes:
    import numpy as np

    stream = io.BytesIO()
    np.savez(stream, **arrays)  # type: ignore[arg-type]
    return stream.getvalue()
