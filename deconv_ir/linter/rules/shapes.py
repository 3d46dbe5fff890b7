"""Rules about shapes and element types: declared, computed and required."""

from __future__ import annotations

from collections.abc import Iterator

from deconv_ir.findings import Finding, GraphLocation
from deconv_ir.hints import Hint
from deconv_ir.ir.geometry import Interval
from deconv_ir.ir.shapes import (
    compatible,
    declared_form,
    dim_text,
    format_shape,
    intersect_dims,
    is_static,
)
from deconv_ir.linter.context import LintContext
from deconv_ir.linter.edits import diagnosis_fix, dims_fix, stated_type_fix, type_fix
from deconv_ir.linter.rule import ERROR, rule
from deconv_ir.linter.rules.fragments import output_shape


def has_no_interval(found: Finding) -> bool:
    """Whether the dims are known exactly: intervals belong to intervals-do-not-meet."""
    return not isinstance(found.expected, Interval) and not isinstance(found.actual, Interval)


def _output_at(found: Finding) -> tuple[int, int]:
    """Return the indices of the layer and of the output of a finding of inference."""
    assert found.part.layer is not None
    assert found.part.port is not None
    return found.part.layer, found.part.port


def with_computed_dims(found: Finding, context: LintContext) -> Finding | None:
    """Add the fix that declares the computed dims, unless layer-contradicted reports them."""
    layer, port = _output_at(found)
    if layer in context.disputed:
        return None
    shape = context.outputs(layer)[port].shape
    message = found.message + _expression(found, context, layer, port)
    return found._replace(message=message, fix=dims_fix(context, layer, "output", port, shape))


def _expression(found: Finding, context: LintContext, layer: int, port: int) -> str:
    """Return a text with the expression of a dynamic dim; empty if it has none."""
    shapes = context.symbolic.shapes[layer] if context.symbolic else ()
    shape, axis = shapes[port] if port < len(shapes) else None, found.part.axis
    if shape is None or axis is None or axis >= len(shape) or isinstance(shape[axis], int):
        return ""
    return f"; it is {shape[axis]}"


@rule(
    "IR401",
    "declared-dims-differ",
    ERROR,
    takes="declared-dims",
    fix="declares the computed dims",
    claims=has_no_interval,
    present=with_computed_dims,
)
def declared_dims(context: LintContext) -> Iterator[Finding]:
    """The declared dims of an output differ from the computed ones.

    OpenVINO ignores declared dims and computes its own.  A tool that trusts them allocates
    the wrong amount of memory, or shows a wrong model.  The message has the formula with
    its numbers for each axis.

        <output>
            <port id="2" precision="FP32"><dim>1</dim><dim>6</dim><dim>10</dim><dim>11</dim></port>
        </output>
    """
    if not context.graph.bare:
        yield from _without_dims(context)
        yield from _narrowed(context)


def _without_dims(context: LintContext) -> Iterator[Finding]:
    """Report outputs without dims that are neither scalars nor of dynamic rank."""
    for index, layer in enumerate(context.graph.layers):
        for port, declared in enumerate(layer.outputs):
            if declared.shape is not None or not layer.operation.implemented:
                continue
            if context.parsed.is_rank_unknown(index, port):
                continue
            computed = context.outputs(index)[port].shape
            # OpenVINO infers no rank for axes that are not constant.
            open_axes = layer.type == "Unsqueeze" and "-1" in declared_form(computed)
            if computed and not open_axes:
                yield Finding(
                    f"output {port} declares no dims, but rank {len(computed)} "
                    f"{format_shape(computed)} is computed",
                    GraphLocation(layer=index, side="output", port=port),
                    expected=format_shape(computed),
                    fix=dims_fix(context, index, "output", port, computed),
                )


_SHAPES = {"Parameter": "shape", "ReadValue": "variable_shape"}
"""The attributes that are the shape of a layer's output."""


def _narrowed(context: LintContext) -> Iterator[Finding]:
    """Report dims that the computed ones allow, but that differ from an attribute.

    Assign returns its input.  Elsewhere a dim that is declared unknown must not be computed as
    0 from static inputs: the output is always empty.  With other inputs OpenVINO leaves it unknown,
    as after a Loop without iterations.
    """
    for index, layer in enumerate(context.graph.layers):
        for port, (declared, info) in enumerate(
            zip(layer.outputs, context.outputs(index), strict=False)
        ):
            stated, computed = declared.shape, info.shape
            if layer.type == "Assign" and layer.inputs:
                computed = layer.inputs[0].shape
            if not stated or not computed or len(stated) != len(computed) or stated == computed:
                continue
            name = _SHAPES.get(layer.type, "")
            exact = hasattr(layer.operation, name)
            says = f"the attribute {name} says" if exact else "computed"
            if layer.type == "Assign":
                exact, says = True, "the input has"
            from_static = all(is_static(port.shape) for port in layer.inputs)
            for axis, (a, b) in enumerate(zip(stated, computed, strict=True)):
                wrong = dim_text(a) != dim_text(b) and (exact or (b == 0 and from_static))
                if wrong and intersect_dims(a, b) is not None:
                    yield Finding(
                        f"output {port}, axis {axis}: declared {a}, {says} {b}",
                        GraphLocation(layer=index, side="output", port=port, axis=axis),
                        expected=str(b),
                        actual=str(a),
                        fix=dims_fix(context, index, "output", port, computed),
                    )
                    break


@rule(
    "IR416",
    "layer-contradicted",
    ERROR,
    when="disputed",
    fix="corrects the layer, or declares the computed dims if no correction fits (unsafe)",
)
def contradicted_layers(context: LintContext) -> Iterator[Finding]:
    """The declared dims all around a layer contradict its attributes or constants.

    Its own outputs and all layers that they lead to declare the same dims, and the layer
    computes others.  An attribute is more likely wrong than all of these dims: the hint has
    the single correction that would make them right.

        <data strides="3,2" dilations="1,1" pads_begin="1,1" pads_end="1,1"/>
    """
    from deconv_ir.linter.diagnosis import MAX_LAYERS, Diagnosis, count_contradicted, diagnose

    counts = count_contradicted(context)
    for number, (index, computed) in enumerate(sorted(context.disputed.items())):
        layer = context.graph.layers[index]
        port, shape = next(
            (i, info.shape)
            for i, (stated, info) in enumerate(zip(layer.outputs, computed, strict=False))
            if not compatible(stated.shape, info.shape)
        )
        stated = layer.outputs[port].shape
        assert stated is not None
        assert shape is not None
        axes = [i for i, (a, b) in enumerate(zip(stated, shape, strict=False)) if a != b]
        formula = layer.operation.explain(
            context.inputs(index), context.inference_context, port, axes[0] if axes else 0
        )
        diagnosis = diagnose(context, index) if number < MAX_LAYERS else Diagnosis()
        found = diagnosis.corrections
        them = f"all {counts[index]} declared dims" if counts[index] > 1 else "the declared dim"
        yield Finding(
            f"{counts[index]} declared dims contradict this layer: output {port} is declared "
            f"{format_shape(stated)} at both ends of its edges, but "
            f"{format_shape(shape)} is computed" + (f": {formula}" if formula else ""),
            GraphLocation(layer=index),
            expected=format_shape(stated),
            actual=format_shape(shape),
            hint=Hint.CORRECTION(" or ".join(map(str, found)), them) if found else None,
            fix=diagnosis_fix(context, index, diagnosis)
            if found
            else dims_fix(context, index, "output", port, shape),
        )


@rule("IR417", "no-size-fits", ERROR, when="contradictions")
def contradictions(context: LintContext) -> Iterator[Finding]:
    """A layer of a dynamic model does not fit at any size of the model's input.

    Dims that depend on the input are not known before the model runs, so a wrong stride or pad
    is not seen in them.  Sizes are tried: multiples of the total stride, of different ratios.
    A layer that fits at none of them, nor at any size in between, is reported.

        <layer id="0">
            <data shape="1,4,?,6" element_type="f32"/>
            <output>
                <port id="0" precision="FP32">
                    <dim>1</dim> <dim>4</dim> <dim>-1</dim> <dim>6</dim>
                </port>
            </output>
        </layer>
        <output>
            <port id="2" precision="FP32"><dim>1</dim><dim>6</dim><dim>10</dim><dim>11</dim></port>
        </output>
    """
    for error, parameter, sizes in context.contradictions:
        tried = ", ".join(map(str, sizes))
        yield Finding(
            f"does not fit at any size of {parameter!r} (tried {tried}); "
            f"at {sizes[0]}: {error.message}",
            error.location,
            expected=error.expected,
            actual=error.actual,
            hint=error.hint,
        )


def at_the_requested_shape(found: Finding, context: LintContext) -> Finding:
    """Locate the finding at the input that requests the shape, unless an attribute does."""
    by_attribute = found.part.attribute is not None
    return found if by_attribute else found.moved(side="input", port=2)


@rule(
    "IR402",
    "intervals-do-not-meet",
    ERROR,
    takes="declared-dims",
    fix="declares the computed dims",
    present=with_computed_dims,
)
def intervals_do_not_meet() -> None:
    """A declared dim is outside the computed interval.

    The dim depends on the sizes of the inputs, but it has bounds, and no input gives the
    declared value.

        <layer id="0">
            <data shape="1,4,1..5,6" element_type="f32"/>
            <output>
                <port id="0" precision="FP32">
                    <dim>1</dim> <dim>4</dim> <dim>-1</dim> <dim>6</dim>
                </port>
            </output>
        </layer>
        <output>
            <port id="2" precision="FP32"><dim>1</dim><dim>6</dim><dim>10</dim><dim>11</dim></port>
        </output>
    """


@rule(
    "IR403",
    "declared-precision-differs",
    ERROR,
    takes="declared-type",
    fix="declares the computed precision",
)
def with_computed_precision(found: Finding, context: LintContext) -> Finding | None:
    """The declared precision of an output differs from the computed one.

    A transposed convolution gives the element type of its data, a Convert the one that it
    names.  A tensor has a single element type.

        <output>
            <port id="2" precision="FP16"><dim>1</dim><dim>6</dim><dim>9</dim><dim>11</dim></port>
        </output>
    """
    layer, port = _output_at(found)
    if context.evidence.is_decompressed_result(layer):
        inputs = context.inputs(layer)
        if inputs and inputs[0].element_type is found.actual:
            return None
    if layer in context.evidence.mistyped:
        # Both ends of the edges declare another type: the attribute is wrong, if there is one.
        own = stated_type_fix(context, layer, found.expected, found.actual)
        if own is not None:
            return found._replace(fix=own)
    return found._replace(fix=type_fix(context, layer, "output", port, found.expected))


@rule("IR404", "rank-mismatch", ERROR, takes="rank")
def rank_mismatch() -> None:
    """The ranks of the inputs fit neither the operation nor each other.

    Data of rank 4 needs a filter of rank 4, or of rank 5 where the filter has an axis for
    groups.

        <layer id="0">
            <data shape="1,4,30" element_type="f32"/>
        </layer>
    """


@rule("IR405", "channels-differ", ERROR, takes="channels")
def at_the_channels(found: Finding, context: LintContext) -> Finding:
    """Data and filter have different numbers of input channels.

    A filter [C_INPUT, C_OUTPUT, ...] needs data of C_INPUT channels, a filter with groups
    data of GROUPS * C_INPUT.

        <layer id="0">
            <data shape="1,5,5,6" element_type="f32"/>
        </layer>
    """
    index = found.part.layer
    if index is None:
        return found
    operation = context.graph.layers[index].operation
    shape = context.inputs(index)[0].shape or ()
    axis = len(shape) - 1 if getattr(operation, "channels_last", False) else 1
    return found.moved(side="input", port=0, axis=axis)


@rule("IR406", "groups-do-not-divide", ERROR, takes="groups")
def groups_do_not_divide() -> None:
    """The number of groups does not divide the channels.

    Each group takes the same number of input channels and gives the same number of output
    channels.

        <layer id="7" name="up" type="ConvTranspose">
            <data strides="2,2" pads_begin="1,1" pads_end="1,1" dilations="1,1" groups="3"
                  data_format="NCX" filter_format="IOX"/>
            <input>
                <port id="0"><dim>1</dim><dim>4</dim><dim>5</dim><dim>6</dim></port>
                <port id="1"><dim>4</dim><dim>2</dim><dim>3</dim><dim>3</dim></port>
            </input>
            <output>
                <port id="2"><dim>1</dim><dim>6</dim><dim>9</dim><dim>11</dim></port>
            </output>
        </layer>
    """


@rule(
    "IR407",
    "output-shape-length",
    ERROR,
    fails=output_shape(3, size=24),
    weights="ones 888, i64 6 9 11",
    takes="output-shape-length",
    present=at_the_requested_shape,
)
def output_shape_length() -> None:
    """The requested output shape has the wrong number of elements.

    OpenVINO's output_shape contains the spatial axes only; oneDNN's dst_shape contains
    batch and channels too.
    """


@rule(
    "IR408",
    "output-shape-type",
    ERROR,
    fails=output_shape(element_type="f32", size=8),
    weights="ones 888, f32 9 11",
    takes="output-shape-type",
    present=at_the_requested_shape,
)
def output_shape_type() -> None:
    """The requested output shape does not have an integer type.

    The documents allow any integer type (T2).
    """


@rule(
    "IR409",
    "output-shape-value",
    ERROR,
    fails=output_shape(),
    weights="ones 888, i64 -9 11",
    takes="output-shape-value",
    present=at_the_requested_shape,
)
def output_shape_value() -> None:
    """The requested output shape has invalid values.

    An extent is not negative, and batch and channels of a dst_shape are those of the
    inputs.
    """


@rule("IR410", "element-types-differ", ERROR, takes="element-type")
def element_types_differ() -> None:
    """Inputs have different element types, or one that the operation does not allow.

    Nothing is converted implicitly: insert a Convert.

        <layer id="0">
            <data shape="1,4,5,6" element_type="f16"/>
        </layer>
    """


@rule("IR411", "impossible-extent", ERROR, takes="negative-extent empty-kernel")
def at_the_pads(found: Finding, context: LintContext) -> Finding:
    """An output would have a negative extent, or a kernel is empty.

    The pads remove more than there is.  OpenVINO reads such a file and fails, or reads
    invalid memory, when it runs.

        <data strides="2,2" dilations="1,1" pads_begin="7,1" pads_end="7,1"/>
    """
    return found.moved(attribute="pads_begin") if found.rule == "negative-extent" else found


@rule("IR412", "broadcast-mismatch", ERROR, takes="broadcast")
def broadcast_mismatch() -> None:
    """Shapes cannot be broadcast to each other.

    On each axis, counted from the last one, dims are equal or one of them is 1.

        <layer id="3">
            <data element_type="f32" shape="1,3,1,2" offset="864" size="24"/>
        </layer>
    """


@rule("IR413", "reshape-mismatch", ERROR, weights="ones 864, i64 6 9 12", takes="reshape")
def reshape_mismatch() -> None:
    """A Reshape asks for a shape with another number of elements.

    -1 may appear once, for the dim that follows from the others; 0 with special_zero for
    the dim of the data on the same axis.

        <layer id="3">
            <data element_type="i64" shape="3" offset="864" size="24"/>
            <output>
                <port id="0" precision="I64"><dim>3</dim></port>
            </output>
        </layer>
        <layer id="4" type="Reshape">
            <data special_zero="false"/>
        </layer>
    """


@rule("IR414", "bias-mismatch", ERROR, takes="bias-shape")
def bias_mismatch() -> None:
    """A bias does not have one element for each output channel.

    The bias of ConvTranspose is one-dimensional.

        <layer id="7" name="up" type="ConvTranspose">
            <data strides="2,2" pads_begin="1,1" pads_end="1,1" dilations="1,1"
                  data_format="NCX" filter_format="IOX"/>
            <input>
                <port id="0"><dim>1</dim><dim>4</dim><dim>5</dim><dim>6</dim></port>
                <port id="1"><dim>4</dim><dim>6</dim><dim>3</dim><dim>3</dim></port>
                <port id="2"><dim>5</dim></port>
            </input>
            <output>
                <port id="3"><dim>1</dim><dim>6</dim><dim>9</dim><dim>11</dim></port>
            </output>
        </layer>
    """


@rule("IR415", "inputs-do-not-fit", ERROR)
def inputs_do_not_fit() -> None:
    """The inputs of a layer do not fit its operation.

    The operation's shape rule refuses them for a reason that has no rule of its own, so
    the layer cannot be computed.

        <layer id="4" type="Concat">
            <data axis="0"/>
        </layer>
    """
