"""Rules about mistakes that only oneDNN Graph files can have."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from deconv_ir.findings import Finding, GraphLocation
from deconv_ir.ir.shapes import format_shape, is_static, static
from deconv_ir.linter.context import LintContext
from deconv_ir.linter.rule import ERROR, WARNING, rule
from deconv_ir.suggestions import nearest

if TYPE_CHECKING:
    from deconv_ir.formats.onednn_json.parsed import LogicalTensor, ParsedJSON

_MADE: Final = ("Parameter", "Result")


def _tensors(
    context: LintContext,
) -> Iterator[tuple[int, str, int, LogicalTensor]]:
    """Iterate over the tensors of operations: index of the layer, side, position."""
    from deconv_ir.formats.onednn_json.parsed import ParsedJSON

    parsed = context.parsed
    assert isinstance(parsed, ParsedJSON), "the family is that of the format"
    for index, layer in enumerate(context.graph.layers):
        if layer.type in _MADE:
            continue
        stated = parsed.stated[index]
        for side, tensors in (("input", stated.inputs), ("output", stated.outputs)):
            for position, tensor in enumerate(tensors):
                yield index, side, position, tensor


@rule("IR703", "strides-do-not-cover-shape", ERROR)
def wrong_strides(context: LintContext) -> Iterator[Finding]:
    """Strides do not give every element of the tensor a place of its own.

    Elements would overlap in memory.  A stride must pass over all that the dims inside it
    span; gaps are allowed.

        {"graph": [
          {"id": 0, "kind": "ReLU",
           "inputs": [{"id": 0, "dtype": "f32", "shape": [2, 3], "stride": [2, 1],
                       "layout_type": "strided"}],
           "outputs": [{"id": 1, "dtype": "f32", "shape": [2, 3]}]}
        ]}
    """
    from deconv_ir.formats.onednn_json.layout import strides_error

    for index, side, position, tensor in _tensors(context):
        if tensor.layout_type != "strided" or tensor.strides is None or not is_static(tensor.shape):
            continue
        shape = static(tensor.shape)
        if side == "output" and not shape and tensor.strides:
            continue  # a rank that is not known
        error = strides_error(shape, tensor.strides)
        if error is not None:
            yield Finding(
                f"strides [{','.join(map(str, tensor.strides))}] of tensor {tensor.id} do not "
                f"cover shape {format_shape(shape)}: {error}",
                GraphLocation(layer=index, side=side, port=position, attribute="stride"),
                actual=",".join(map(str, tensor.strides)),
            )


@rule("IR704", "dtype-not-allowed", ERROR)
def wrong_dtypes(context: LintContext) -> Iterator[Finding]:
    """The operation's document does not list the element type of a tensor.

    oneDNN refuses to add the operation to a graph.

        {"graph": [
          {"id": 0, "kind": "ReLU",
           "inputs": [{"id": 0, "dtype": "s8", "shape": [2]}],
           "outputs": [{"id": 1, "dtype": "s8", "shape": [2]}]}
        ]}
    """
    from deconv_ir.formats.onednn_json.kinds import KINDS

    for index, side, position, tensor in _tensors(context):
        layer = context.graph.layers[index]
        op_kind = KINDS.get(layer.type)
        if op_kind is None or tensor.element_type is None:
            continue
        lists = op_kind.inputs if side == "input" else op_kind.outputs
        allowed = lists[min(position, len(lists) - 1)]
        if tensor.dtype not in allowed:
            yield Finding(
                f"{side} {position} of {layer.type} must be {_either(allowed)}, "
                f"found {tensor.dtype}",
                GraphLocation(layer=index, side=side, port=position, attribute="precision"),
                expected=_either(allowed),
                actual=tensor.dtype,
            )


def _either(names: tuple[str, ...]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


@rule("IR706", "port-names-no-tensor", WARNING)
def missing_ports(context: LintContext) -> Iterator[Finding]:
    """input_ports or output_ports names a tensor that is not an input or output.

    Inputs are the tensors that no operation produces; outputs must be produced.  oneDNN reads
    the lists and goes by the operations, so that such a port has no effect.

        {"input_ports": [0], "output_ports": [7], "graph": [
          {"id": 0, "kind": "ReLU",
           "inputs": [{"id": 0, "dtype": "f32", "shape": [2]}],
           "outputs": [{"id": 1, "dtype": "f32", "shape": [2]}]}
        ]}
    """
    from deconv_ir.formats.onednn_json.parsed import ParsedJSON

    parsed = context.parsed
    assert isinstance(parsed, ParsedJSON), "the family is that of the format"
    produced, used = _ids(parsed)
    for section, number, span in parsed.ports:
        wanted, other = (used, produced) if section == "input_ports" else (produced, used)
        if number in wanted and (section == "output_ports" or number not in produced):
            continue
        if number in wanted or number in other:
            what = "which an operation produces" if number in produced else "an input of the graph"
            yield Finding(f"{section} names tensor {number}, {what}", span, actual=number)
        else:
            message = f"{section} names tensor {number}, which no operation has"
            yield Finding(message, span, actual=number)


def _ids(parsed: ParsedJSON) -> tuple[set[int], set[int]]:
    assert parsed.graph is not None, "rules run on graphs"
    produced: set[int] = set()
    used: set[int] = set()
    for layer, stated in zip(parsed.graph.layers, parsed.stated, strict=True):
        if layer.type not in _MADE:
            produced |= {t.id for t in stated.outputs}
            used |= {t.id for t in stated.inputs}
    return produced, used


@rule("IR707", "unknown-kind", ERROR)
def unknown_kinds(context: LintContext) -> Iterator[Finding]:
    """oneDNN Graph has no operation of this kind.

    Neither oneDNN nor this project can run it.

        {"graph": [
          {"id": 0, "kind": "Relu",
           "inputs": [{"id": 0, "dtype": "f32", "shape": [2]}],
           "outputs": [{"id": 1, "dtype": "f32", "shape": [2]}]}
        ]}
    """  # noqa: D403
    from deconv_ir.formats.onednn_json.kinds import KINDS, UNSUPPORTED

    for type_name, indices in context.by_type.items():
        if type_name in KINDS or type_name in UNSUPPORTED or type_name in _MADE:
            continue
        for index in indices:
            yield Finding(
                f"oneDNN Graph has no operation {type_name[:60]!r}",
                GraphLocation(layer=index, attribute="kind"),
                actual=type_name[:60],
                hint=nearest(type_name, [*KINDS, *UNSUPPORTED]),
            )


@rule("IR701", "json-not-well-formed", ERROR, takes="json")
def json_not_well_formed() -> None:
    """The file is not well-formed JSON, or a member has the wrong form.

    Neither oneDNN nor this project reads it.  NaN and Infinity are not JSON, and of two
    equal keys in an object readers disagree on which one counts.

        {"graph": [], "version": "3.0.0", "version": "3.1.0"}
    """


@rule("IR702", "tensor-produced-twice", ERROR, takes="tensor-produced-twice")
def tensor_produced_twice() -> None:
    """Two operations produce the same tensor.

    Equal ids are the edges of the graph, so its consumers would have two sources.

        {"graph": [
          {"id": 0, "kind": "ReLU",
           "inputs": [{"id": 0, "dtype": "f32", "shape": [2]}],
           "outputs": [{"id": 1, "dtype": "f32", "shape": [2]}]},
          {"id": 1, "kind": "Tanh",
           "inputs": [{"id": 0, "dtype": "f32", "shape": [2]}],
           "outputs": [{"id": 1, "dtype": "f32", "shape": [2]}]}
        ]}
    """


@rule("IR705", "scales-do-not-fit", ERROR, takes="quantization")
def scales_do_not_fit() -> None:
    """The number of scales or zero points does not fit the axis of the tensor.

    per_tensor takes one, per_channel one for each element of the axis, per_group one for
    each group.

        {"graph": [
          {"id": 0, "kind": "Dequantize",
           "attrs": {"qtype": {"type": "string", "value": "per_channel"},
                     "axis": {"type": "s64", "value": 1},
                     "scales": {"type": "f32[]", "value": [0.5, 0.25]}},
           "inputs": [{"id": 0, "dtype": "u8", "shape": [2, 3]}],
           "outputs": [{"id": 1, "dtype": "f32", "shape": [2, 3]}]}
        ]}
    """
