"""Options of deconv-run for oneDNN Graph files: physical layout, conversion."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from deconv_ir.errors import InputError

from ..shared.common import (
    EXIT_OK,
    STREAM,
    Mistake,
    model_name,
    note,
    read_standard_input,
    require_absent,
)

if TYPE_CHECKING:
    from deconv_ir import Model
    from deconv_ir.ir.dtypes import Array

    from .request import RunRequest


def convert(request: RunRequest) -> int:
    """Write an IR as a oneDNN Graph file, and return the exit code."""
    from deconv_ir.formats.conversion import convert as write_as
    from deconv_ir.formats.onednn_json import ONEDNN_JSON

    target = request.save_onednn
    assert target is not None, "the option was given"
    given: str | bytes = request.model
    if given == STREAM:
        given = read_standard_input(request.limits.xml_bytes)
    require_absent(Path(target), request.force)
    written = write_as(given, target, ONEDNN_JSON, request.weights, request.limits)
    if not request.quiet:
        note(f"wrote {' and '.join(written)}")
    return EXIT_OK


def save_xml(model: Model, request: RunRequest) -> int:
    """Write a oneDNN Graph file, an old IR, or a changed one, as an IR; return the exit code."""
    from deconv_ir.formats.openvino_xml import OPENVINO_XML
    from deconv_ir.formats.registry import format_of
    from deconv_ir.loading import write_model

    from .models import guard_run, report_findings

    assert request.save_xml is not None, "the option was given"
    target = Path(request.save_xml)
    if format_of(model.graph) is OPENVINO_XML and not request.changes_model:
        raise Mistake(
            f"--save-xml: {model_name(model)} is an IR already "
            "(--shape, --set, --layout, --mean and others change it)"
        )
    guard = guard_run(model, request, ())
    for path in (target, target.with_suffix(".bin")):
        guard.allow("--save-xml", path)
    require_absent(target, request.force)
    report_findings([f for f in model.findings if f.rule == "reshape-constant"], strict=False)
    written = write_model(model, target, OPENVINO_XML)
    if not request.quiet:
        for line in format_of(model.graph).changes(model.graph):
            note(line)
        note(f"wrote {' and '.join(written)}")
    return EXIT_OK


def physical(model: Model, results: Mapping[str, Array]) -> dict[str, Array]:
    """Lay out results by the strides of their tensors; a tensor without strides is dense.

    Raises
    ------
    DeconvError
        Strides do not describe a valid layout, or their span does not fit into memory.
    """
    from deconv_ir.execute.memory import require_memory
    from deconv_ir.formats.onednn_json.layout import span, strides_of, to_physical
    from deconv_ir.ir.tensor_names import find_tensors

    graph, found = model.graph, {}
    for name, array in results.items():
        ((layer, output),) = find_tensors(graph, [name]).values()
        strides = strides_of(graph.layers[layer].outputs[output])
        if strides is None:
            found[name] = array.reshape(-1)
            continue
        if len(strides) == array.ndim:
            needed = span(array.shape, strides) * array.dtype.itemsize
            require_memory(needed, model.memory_limit, file=graph.file)
        try:
            found[name] = to_physical(array, strides)
        except InputError as error:
            error.locate(file=graph.file, layer=graph.layers[layer].label)
            raise
    return found
