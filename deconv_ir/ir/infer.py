"""Shape inference over a graph, and its comparison with the declared shapes."""

from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from deconv_ir.errors import DeconvError, ShapeError
from deconv_ir.findings import Finding, GraphLocation, Severity
from deconv_ir.hints import Hint
from deconv_ir.ir.folding import fold
from deconv_ir.ir.geometry import Dim
from deconv_ir.ir.graph import Graph, Layer, Port
from deconv_ir.ir.operation import Context, Infos, TensorInfo
from deconv_ir.ir.shapes import format_shape, intersect_dims, size_error

Outputs = tuple[TensorInfo, ...]
"""The infos of the outputs of a layer."""


class Inference(NamedTuple):
    """The inferred shape, type and value of every tensor of a graph.

    `outputs` has the infos of each layer's outputs, by index.  `findings` reports declared dims and
    types that differ from them, and layers that runtimes compute differently; the location
    of a finding in a body has the body as its child.  `errors`, if collected, are those of layers
    whose inputs do not fit.
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

    `given` overrides the infos of Parameter layers, by index.  With `collect`, the error of a
    layer whose inputs do not fit is listed, and its declared dims are used.  `resume` takes the
    index of a layer whose declared outputs differ, and the computed outputs; it returns the outputs
    that the following layers see.
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
    # Layers whose elements are those of arrays of a run: they are left to the run.
    varying: set[int] = set()
    for index in topology.order:
        layer = layers[index]
        if given is not None and index in given:
            info = given[index]
            if info.value is not None or info.reals is not None:
                varying.add(index)
            known[index] = (pool.setdefault(info, info),)
            continue
        inputs = []
        for port, source in zip(layer.inputs, topology.sources[index], strict=True):
            if source is not None:
                inputs.append(known[source[0]][source[1]])
            else:
                info = declared(port)
                inputs.append(pool.setdefault(info, info))
        folds = not varying or not any(s and s[0] in varying for s in topology.sources[index])
        if not folds:
            varying.add(index)
        key = (id(layer.operation), id(layer.outputs), folds, *map(id, inputs))
        outputs = worked_out.get(key) if inputs else None
        if outputs is None:
            outputs, clean = _work_out(
                graph, index, inputs, context, findings, errors, collect=collect, folds=folds
            )
            if not clean and resume is not None:
                outputs = resume(index, outputs)
            outputs = tuple([pool.setdefault(info, info) for info in outputs])
            if clean:
                worked_out[key] = outputs
        known[index] = outputs
    if len(topology.order) < len(layers):  # layers on or after a cycle
        for index in set(range(len(layers))).difference(topology.order):
            known[index] = tuple(map(declared, layers[index].outputs))
    return Inference(tuple(known), tuple(findings), tuple(errors))


def _work_out(
    graph: Graph,
    index: int,
    inputs: Infos,
    context: Context,
    findings: list[Finding],
    errors: list[DeconvError],
    *,
    collect: bool,
    folds: bool,
) -> tuple[tuple[TensorInfo, ...], bool]:
    """Infer one layer and compare; also return whether it has no findings."""
    layer = graph.layers[index]
    if not layer.operation.implemented:
        return tuple(map(declared, layer.outputs)), True
    within: list[Finding] = []
    if layer.operation.bodies:
        context = context._replace(body_findings=within)
    try:
        outputs = infer_layer(layer, inputs, context, folds=folds)
        found = compare(graph, index, inputs, outputs, context)
    except DeconvError as error:
        error.locate(file=graph.file, line=layer.line, layer=layer.label)
        if error.location is None:
            error.location = GraphLocation(layer=index, attribute=error.attribute)
        elif isinstance(error.location, GraphLocation) and error.location.layer is None:
            error.location = error.location._replace(layer=index)  # in a body of the layer
        if not collect:
            raise
        errors.append(error)
        return tuple(map(declared, layer.outputs)), False
    found += (f._replace(location=f.part._replace(layer=index)) for f in within)
    findings += found
    return outputs, not found


def declared(port: Port) -> TensorInfo:
    """Return the info that a port declares."""
    return TensorInfo(port.shape, port.element_type)


def infer_layer(
    layer: Layer, inputs: Infos, context: Context, *, folds: bool = True
) -> tuple[TensorInfo, ...]:
    """Infer a layer's outputs, with the elements of small ones if `folds`; see `fold`."""
    operation = layer.operation
    least, most = operation.required_inputs, len(operation.inputs)
    if least is not None and not least <= len(inputs) <= most:
        wanted = str(least) if least == most else f"{least} to {most}"
        message = (
            f"{layer.type} takes {wanted} input{'' if most == 1 else 's'} "
            f"({', '.join(operation.inputs)}), "
            f"found {len(inputs)}"
        )
        raise ShapeError(message, expected=wanted, actual=len(inputs), rule="input-count")
    outputs = operation.infer(inputs, context)
    if folds:
        outputs = fold(operation, inputs, outputs, context)
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
        error = size_error(info.shape, 8 if info.element_type is None else info.element_type.bits)
        if error is not None:
            raise ShapeError(f"invalid output: {error}", rule="shape-overflow")
    return outputs


def compare(
    graph: Graph,
    index: int,
    inputs: Infos,
    outputs: Infos,
    context: Context,
) -> list[Finding]:
    """Compare a layer's declared outputs with the computed ones."""
    layer = graph.layers[index]
    found: list[Finding] = []

    def add(
        rule: str,
        message: str,
        expected: object,
        actual: object,
        port: int | None = None,
        axis: int | None = None,
        attribute: str | None = None,
    ) -> None:
        line = layer.line if port is None else layer.line_of(layer.outputs[port])
        side = None if port is None else "output"
        location = GraphLocation(index, None, side, port, axis, attribute)
        where = (graph.file, line, None, None, layer.label)
        found.append(Finding(message, location, expected, actual, None, None, *where, rule=rule))

    for i, (port, info) in enumerate(zip(layer.outputs, outputs, strict=False)):
        if port.shape is not None and info.shape is not None and port.shape != info.shape:
            for axis, message, expected, actual in _differences(port.shape, info.shape):
                explained = layer.operation.explain(inputs, context, i, axis or 0)
                formula = f": {explained}" if explained else ""
                message = f"output {i}{message}{formula}"
                add("declared-dims", message, expected, actual, i, axis)
        declared_type, element_type = port.element_type, info.element_type
        if declared_type and element_type and declared_type is not element_type:
            message = (
                f"output {i} declares precision {declared_type.ir_name}, "
                f"but {element_type.ir_name} is computed"
            )
            add("declared-type", message, element_type, declared_type, i, attribute="precision")
    difference = layer.operation.compare_semantics(inputs, context)
    if difference is not None:
        runtime = layer.operation.runtime
        message = difference.message(runtime, context.semantics)
        add("profiles-differ", message, difference.spec, difference.runtime)
        hint = Hint.OTHER_SEMANTICS(runtime.value)
        found[-1] = found[-1]._replace(severity=Severity.WARNING, hint=hint)
    return found


def _differences(
    stated: tuple[Dim, ...], computed: tuple[Dim, ...]
) -> Iterator[tuple[int | None, str, object, object]]:
    """Yield axis, message, computed and declared value of each wrong dim, or of the rank."""
    if len(stated) != len(computed):
        declared, expected = format_shape(stated), format_shape(computed)
        yield (
            None,
            f" declares rank {len(stated)} {declared}, "
            f"but rank {len(computed)} {expected} is computed",
            expected,
            declared,
        )
        return
    for axis, (dim, wanted) in enumerate(zip(stated, computed, strict=True)):
        if intersect_dims(dim, wanted) is None:
            yield axis, f", axis {axis}: declared {dim}, computed {wanted}", wanted, dim
