"""Shape inference over a graph, and its comparison with the declared shapes."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from deconv_ir.errors import DeconvError, ShapeError
from deconv_ir.ir.findings import Finding, Severity
from deconv_ir.ir.graph import Graph, GraphLocation, Layer, Port
from deconv_ir.ir.operation import Context, TensorInfo
from deconv_ir.ir.shapes import Shape, compatible, format_shape, intersect_dims, size_problem

Outputs = tuple[TensorInfo, ...]
"""What is known of the outputs of a layer."""


class Inference(NamedTuple):
    """The inferred shape, type and value of every tensor of a graph.

    Attributes
    ----------
    outputs : tuple
        For each layer (by index), a TensorInfo for each of its outputs.
    findings : tuple of Finding
        Declared dims and types that differ from the computed ones, and layers
        that the two semantics compute differently.
    errors : tuple of DeconvError
        Layers whose inputs do not fit (empty unless errors are collected).
    """

    outputs: tuple[tuple[TensorInfo, ...], ...]
    findings: tuple[Finding, ...]
    errors: tuple[DeconvError, ...] = ()


def infer(
    graph: Graph,
    context: Context,
    given: Mapping[int, TensorInfo] | None = None,
    *,
    collect: bool = False,
    resume: Callable[[int, Outputs], Outputs] | None = None,
) -> Inference:
    """Infer shape, type and value of every tensor.

    Parameters
    ----------
    graph : Graph
    context : Context
    given : mapping, optional
        Index of a Parameter layer -> its info, overriding the file's.
    collect : bool
        After a layer whose inputs do not fit, list the error and continue with
        its declared dims.
    resume : callable, optional
        Takes the index of a layer whose declared outputs differ, and the
        computed ones; returns those that the layers after it are given.

    Raises
    ------
    ShapeError
        The inputs of a layer do not fit it, or each other.
    """
    topology = graph.topology
    layers = graph.layers
    known: list[tuple[TensorInfo, ...]] = [()] * len(layers)
    findings: list[Finding] = []
    errors: list[DeconvError] = []
    # Networks repeat themselves.  Equal infos become one object, and layers with the
    # same operation, declared outputs and inputs (by identity) are inferred once,
    # unless they have findings.
    pool: dict[TensorInfo, TensorInfo] = {}
    worked_out: dict[tuple[int, ...], tuple[TensorInfo, ...]] = {}
    for index in topology.order:
        layer = layers[index]
        if given is not None and index in given:
            info = given[index]
            known[index] = (pool.setdefault(info, info),)
            continue
        inputs = []
        for port, source in zip(layer.inputs, topology.sources[index], strict=True):
            if source is not None:
                inputs.append(known[source[0]][source[1]])
            else:
                info = declared(port)
                inputs.append(pool.setdefault(info, info))
        key = (id(layer.operation), id(layer.outputs), *map(id, inputs))
        outputs = worked_out.get(key) if inputs else None
        if outputs is None:
            outputs, clean = _work_out(graph, index, inputs, context, findings, errors, collect)
            if not clean and resume is not None:
                outputs = resume(index, outputs)
            outputs = tuple([pool.setdefault(info, info) for info in outputs])
            if clean:
                worked_out[key] = outputs
        known[index] = outputs
    if len(topology.order) < len(layers):  # layers on or behind a cycle
        for index in set(range(len(layers))).difference(topology.order):
            known[index] = tuple(map(declared, layers[index].outputs))
    return Inference(tuple(known), tuple(findings), tuple(errors))


def _work_out(
    graph: Graph,
    index: int,
    inputs: Sequence[TensorInfo],
    context: Context,
    findings: list[Finding],
    errors: list[DeconvError],
    collect: bool,
) -> tuple[tuple[TensorInfo, ...], bool]:
    """Infer one layer and compare; also return whether it has no findings."""
    layer = graph.layers[index]
    if not layer.operation.implemented:
        return tuple(map(declared, layer.outputs)), True
    try:
        outputs = infer_layer(layer, inputs, context)
        found = compare(graph, index, inputs, outputs, context)
    except DeconvError as error:
        error.locate(file=graph.file, line=layer.line, layer=layer.label)
        if error.place is None:
            error.place = GraphLocation(layer=index, attribute=error.attribute)
        if not collect:
            raise
        errors.append(error)
        return tuple(map(declared, layer.outputs)), False
    findings += found
    return outputs, not found


def declared(port: Port) -> TensorInfo:
    """Return the info that a port declares."""
    return TensorInfo(port.shape, port.element_type)


def infer_layer(
    layer: Layer, inputs: Sequence[TensorInfo], context: Context
) -> tuple[TensorInfo, ...]:
    """Infer a layer's outputs.

    Raises
    ------
    ShapeError
        The number of inputs is wrong, or they do not fit.
    """
    operation = layer.operation
    least, most = operation.required_inputs, len(operation.inputs)
    if least is not None and not least <= len(inputs) <= most:
        wanted = str(least) if least == most else f"{least} to {most}"
        raise ShapeError(
            f"{layer.type} takes {wanted} inputs ({', '.join(operation.inputs)}), "
            f"found {len(inputs)}",
            expected=wanted,
            actual=len(inputs),
            rule="input-count",
        )
    outputs = operation.infer(inputs, context)
    if len(outputs) < len(layer.outputs):
        raise ShapeError(
            f"{layer.type} has {len(outputs)} output{'' if len(outputs) == 1 else 's'}, "
            f"found {len(layer.outputs)} declared",
            line=layer.line_of(layer.outputs[len(outputs)]),
            expected=len(outputs),
            actual=len(layer.outputs),
            rule="output-count",
        )
    for info in outputs:
        problem = size_problem(
            info.shape, 8 if info.element_type is None else info.element_type.bits
        )
        if problem is not None:
            raise ShapeError(f"invalid output: {problem}", rule="shape-overflow")
    return outputs


def compare(
    graph: Graph,
    index: int,
    inputs: Sequence[TensorInfo],
    outputs: Sequence[TensorInfo],
    context: Context,
) -> list[Finding]:
    """Compare a layer's declared outputs with the computed ones."""
    layer = graph.layers[index]
    found: list[Finding] = []
    for i, (port, info) in enumerate(zip(layer.outputs, outputs, strict=False)):
        if port.shape is not None and port.shape != info.shape:
            found += _compare_shapes(graph, index, i, inputs, info.shape, context)
        if (
            port.element_type is not None
            and info.element_type is not None
            and port.element_type is not info.element_type
        ):
            found.append(
                Finding(
                    "declared-type",
                    Severity.ERROR,
                    f"output {i} declares precision {port.element_type.ir_name}, "
                    f"computed is {info.element_type.ir_name}",
                    graph.file,
                    layer.line_of(port),
                    layer.label,
                    info.element_type,
                    port.element_type,
                    place=GraphLocation(layer=index, side="output", port=i, attribute="precision"),
                )
            )
    difference = layer.operation.compare_semantics(inputs, context)
    if difference is not None:
        found.append(
            Finding(
                "profiles-differ",
                Severity.WARNING,
                difference.message,
                graph.file,
                layer.line,
                layer.label,
                difference.spec,
                difference.openvino,
                "semantics='spec' or 'openvino' chooses",
                place=GraphLocation(layer=index),
            )
        )
    return found


def _compare_shapes(
    graph: Graph,
    index: int,
    output: int,
    inputs: Sequence[TensorInfo],
    computed: Shape,
    context: Context,
) -> list[Finding]:
    layer = graph.layers[index]
    port = layer.outputs[output]
    if compatible(port.shape, computed) or port.shape is None or computed is None:
        return []
    if len(port.shape) != len(computed):
        explained = layer.operation.explain(inputs, context, output, 0)
        return [
            Finding(
                "declared-dims",
                Severity.ERROR,
                f"output {output} declares rank {len(port.shape)} {format_shape(port.shape)}, "
                f"computed is rank {len(computed)} {format_shape(computed)}"
                + (f": {explained}" if explained else ""),
                graph.file,
                layer.line_of(port),
                layer.label,
                format_shape(computed),
                format_shape(port.shape),
                place=GraphLocation(layer=index, side="output", port=output),
            )
        ]
    found = []
    for axis, (stated, dim) in enumerate(zip(port.shape, computed, strict=True)):
        if intersect_dims(stated, dim) is None:
            explained = layer.operation.explain(inputs, context, output, axis)
            found.append(
                Finding(
                    "declared-dims",
                    Severity.ERROR,
                    f"output {output}, axis {axis}: declared {stated}, computed {dim}"
                    + (f": {explained}" if explained else ""),
                    graph.file,
                    layer.line_of(port),
                    layer.label,
                    dim,
                    stated,
                    place=GraphLocation(layer=index, side="output", port=output, axis=axis),
                )
            )
    return found
