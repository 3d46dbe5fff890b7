"""Reading a model of any format: its graph, and its weights file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from deconv_ir.errors import DeconvError, InputError, WeightsError
from deconv_ir.findings import Finding, Severity
from deconv_ir.formats import parse_bytes, read_file
from deconv_ir.formats.openvino_xml.weights import Weights, WeightsInMemory, weights_error
from deconv_ir.formats.registry import format_of
from deconv_ir.hints import Hint
from deconv_ir.ir.graph import Graph, Layer, locating, walk_graphs
from deconv_ir.ir.options import Accuracy, Semantics
from deconv_ir.limits import Limits
from deconv_ir.ops.constants.constant import Const

if TYPE_CHECKING:
    from deconv_ir.formats.onednn_json.overrides import Overrides

Readable = str | os.PathLike[str] | bytes | bytearray | memoryview
"""A file: its path, or its contents."""


_ALIGNMENT = 64
"""Bytes after the last constant that may be padding."""


def read_graph(model: Readable, limits: Limits, overrides: Overrides | None = None) -> Graph:
    """Read a model whose layers are connected, or raise the first problem of the file."""
    graph, errors = read_model(model, limits, overrides)
    if errors:
        raise errors[0]
    assert graph is not None, "no graph without a problem"
    for part in walk_graphs(graph):
        if part.topology.errors:
            raise part.topology.errors[0]
    return graph


def read_model(
    model: Readable, limits: Limits, overrides: Overrides | None = None
) -> tuple[Graph | None, Sequence[DeconvError]]:
    """Read a file of any format, or its contents; `overrides` are for oneDNN Graph only."""
    file: str | None = None
    if isinstance(model, bytes | bytearray | memoryview):
        data = bytes(model)
    else:
        file = _as_path("path", model)
        try:
            data = read_file(file, limits)
        except DeconvError as error:
            return None, [error]
    parsed = parse_bytes(data, file, limits, overrides)
    return parsed.graph, parsed.located_errors()


def _as_path(name: str, given: object) -> str:
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


def with_weights(
    graph: Graph,
    weights: Readable | None,
    semantics: Semantics = Semantics.SPEC,
    accuracy: Accuracy = Accuracy.FAST,
) -> tuple[Graph, Weights | None]:
    """Open the weights file of a graph; return both, as they are computed.

    The layers of a `<pre-process>` are added; with the semantics of OpenVINO, element types of
    version 10 and of f16 are those of its runtime.
    """
    opened = open_weights(graph, graph.file, weights)
    own = format_of(graph)
    graph, opened = own.complete(graph, opened)
    if any(info.tag == "pre-process" for info in graph.extras):
        from deconv_ir.formats.openvino_xml import pre_process

        graph, opened = pre_process.apply(graph, opened, states_type=own.states_image_type)
    return as_computed(graph, semantics, accuracy), opened


def as_computed(graph: Graph, semantics: Semantics, accuracy: Accuracy) -> Graph:
    """Return a graph with the element types in which it is computed.

    Convert layers are added for them: what is written to files is `stored`.
    """
    computed = graph
    if semantics is Semantics.OPENVINO and graph.ir_version is not None:
        from deconv_ir.formats.openvino_xml import version10
        from deconv_ir.ops.precision import compare_rounding, in_f32

        computed = version10.change_types(graph)
        computed = computed if compare_rounding(computed) is None else in_f32(computed)
    if accuracy.is_float64:
        from deconv_ir.ops.precision import in_f64

        computed = in_f64(computed, rounded=accuracy is Accuracy.FLOAT64_ROUNDED)
    return graph if computed is graph else computed.replace(stored=graph)


def open_weights(graph: Graph, path: str | None, weights: Readable | None) -> Weights | None:
    """Open the weights file, and check that every constant is in it.

    `path` is the path of the XML, or None if it was given as bytes; the default weights file is the
    one beside it.
    """
    layers = (layer for part in walk_graphs(graph) for layer in part.layers)
    constants = [layer for layer in layers if isinstance(layer.operation, Const)]
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
                    hint=Hint.OTHER_WEIGHTS(),
                    rule="weights-missing",
                )
            return None
        opened = Weights(beside)
    filled = [c for c in constants if _bytes_of(c, graph)]
    error = weights_error(opened) if filled else None
    if error is not None:
        raise WeightsError(
            f"the model has constants, but {opened.name}: {error}",
            file=graph.file,
            line=filled[0].line,
            layer=filled[0].label,
            hint=Hint.OTHER_WEIGHTS() if weights is None else None,
            rule="weights-missing",
        )
    for layer in constants:
        operation = layer.operation
        assert isinstance(operation, Const)
        with locating(graph, layer):
            size = _bytes_of(layer, graph)
            if size:
                # As in OpenVINO's reader, even unused constants must be in the file.
                opened.check(operation.offset, max(size, operation.size))
    return opened


def compare_size(graph: Graph, weights: Readable | None) -> Finding | None:
    """Report given weights that go on after the last constant, as those of another model may."""
    if weights is None or graph.ir_version is None:
        return None
    if isinstance(weights, bytes | bytearray | memoryview):
        size, name = memoryview(weights).nbytes, "the given weights"
    else:
        path = Path(_as_path("weights", weights))
        size, name = path.stat().st_size, path.name
    ends = [0]
    for part in walk_graphs(graph):
        for layer in part.layers:
            operation = layer.operation
            if isinstance(operation, Const):
                ends.append(operation.offset + max(_bytes_of(layer, graph), operation.size))
    if any(info.tag == "pre-process" for info in graph.extras):
        from deconv_ir.formats.openvino_xml.pre_process import image_spans

        stated = format_of(graph).states_image_type
        ends += [end for _, end in image_spans(graph, states_type=stated)]
    if size < max(ends) + _ALIGNMENT:
        return None
    return Finding(
        f"the last constant ends at byte {max(ends)} of {name}, which has {size}",
        file=graph.file,
        expected=str(max(ends)),
        actual=str(size),
        hint=Hint.OTHER_MODEL(),
        rule="weights-longer",
        severity=Severity.WARNING,
    )


def _bytes_of(layer: Layer, graph: Graph) -> int:
    """Return the end of a constant in the weights file, in bytes."""
    operation = layer.operation
    assert isinstance(operation, Const)
    with locating(graph, layer):
        count = operation.check()
    return operation.element_type.size_of(count) if operation.element_type else 0
