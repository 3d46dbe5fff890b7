"""An IR as a oneDNN Graph file, for the operations that oneDNN Graph has."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from deconv_ir.errors import UnsupportedError
from deconv_ir.formats.onednn_json.kinds import DTYPES
from deconv_ir.formats.onednn_json.overrides import strides_of
from deconv_ir.ir.geometry import PadMode
from deconv_ir.ir.graph import Graph, Layer
from deconv_ir.ir.infer import infer
from deconv_ir.ir.operation import Context, Operation, TensorInfo
from deconv_ir.ir.shapes import is_static, static
from deconv_ir.ops.checks import known_integers
from deconv_ir.ops.constants.constant import Const
from deconv_ir.ops.convolution.deconvolution import Deconvolution
from deconv_ir.ops.convolution.onednn import OneDNNDeconvolution
from deconv_ir.ops.elementwise.unary import RoundMode

if TYPE_CHECKING:
    from deconv_ir.ir.dtypes import Array

_SPELLINGS: Final = {ours: theirs for theirs, ours in DTYPES.items()}
_MAX_RANK: Final = 12

_SAME: Final = {
    kind: kind
    for kind in (
        *("Abs", "Exp", "Log", "Mish", "ReLU", "Sigmoid", "Sqrt", "Tanh"),
        *("Add", "Subtract", "Multiply", "Divide", "Maximum", "Minimum", "SquaredDifference"),
        *("GreaterEqual", "Select"),
    )
} | {"HSwish": "HardSwish"}
"""Operations without attributes that matter -> kind."""
_AUTO_PAD: Final = {
    PadMode.EXPLICIT: "None",
    PadMode.SAME_UPPER: "SAME_UPPER",
    PadMode.SAME_LOWER: "SAME_LOWER",
    PadMode.VALID: "VALID",
}

Rule = Callable[["_Writer", Layer, Sequence[int], Sequence[TensorInfo], TensorInfo], None]


def express(graph: Graph, context: Context) -> tuple[str, dict[str, Array]]:
    """Return the JSON of a graph, and its constants by tensor id.

    Raises
    ------
    UnsupportedError
        Operations without a counterpart, by name, or shapes that are not static.
    """
    inference = infer(graph, context)
    writer = _Writer(context)
    missing: dict[str, Layer] = {}
    needed = _needed(graph)
    for index in graph.topology.order:
        layer = graph.layers[index]
        feeds = [source for source in graph.topology.sources[index] if source is not None]
        infos = [inference.outputs[source[0]][source[1]] for source in feeds]
        if isinstance(layer.operation, Const):
            if index in needed:
                writer.known[(index, 0)] = layer
            continue
        try:
            inputs = [writer.feed(source, info) for source, info in zip(feeds, infos, strict=True)]
            writer.layer(index, layer, inputs, infos, inference.outputs[index])
        except UnsupportedError as error:
            missing.setdefault(error.message, layer)
            # So that the layers behind it are looked at too.
            for output in range(len(layer.outputs)):
                writer.tensors[(index, output)] = next(writer.numbers)
    if missing:
        first = next(iter(missing.values()))
        raise UnsupportedError(
            f"the model cannot be written as a oneDNN Graph file: {'; '.join(missing)}",
            file=graph.file,
            line=first.line,
            layer=first.label,
            rule="unsupported-operation",
        )
    return writer.text(), writer.constants


def _needed(graph: Graph) -> set[int]:
    return {s[0] for row in graph.topology.sources for s in row if s is not None}


class _Writer:
    """Collects operations; constants become inputs that are stated constant."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.operations: list[dict[str, Any]] = []
        self.inputs: list[int] = []
        self.outputs: list[int] = []
        self.constants: dict[str, Array] = {}
        self.known: dict[tuple[int, int], Layer] = {}
        self.tensors: dict[tuple[int, int], int] = {}
        self.numbers = itertools.count()

    def text(self) -> str:
        """Return the file."""
        return (
            json.dumps(
                {
                    "version": "3.0.0",
                    "engine_kind": "cpu",
                    "fpmath_mode": "strict",
                    "input_ports": self.inputs,
                    "output_ports": self.outputs,
                    "graph": self.operations,
                },
                indent=2,
            )
            + "\n"
        )

    def feed(self, source: tuple[int, int], info: TensorInfo) -> int:
        """Return the reference of a tensor; a constant is -1 - its layer until it is used."""
        if source in self.known:
            return -1 - source[0]
        return self.tensors[source]

    def constant(self, reference: int, info: TensorInfo, shape: Sequence[int] | None = None) -> int:
        """Return the id of a tensor; that of a constant is made, perhaps in another shape."""
        if reference >= 0:
            return reference
        source = (-1 - reference, 0)
        if source in self.tensors and shape is None:
            return self.tensors[source]
        (array,) = self.known[source].operation.execute((), self.context)
        number = next(self.numbers)
        self.constants[str(number)] = array if shape is None else array.reshape(shape)
        self.inputs.append(number)
        if shape is None:
            self.tensors[source] = number
        return number

    def tensor(self, number: int, info: TensorInfo, shape: Sequence[int] | None) -> dict[str, Any]:
        """State a tensor."""
        if shape is None:
            if not is_static(info.shape):
                raise UnsupportedError("shapes that are not static have no counterpart")
            shape = static(info.shape)
        if len(shape) > _MAX_RANK:
            raise UnsupportedError(f"tensors of rank {len(shape)} have no counterpart")
        name = None if info.element_type is None else _SPELLINGS.get(info.element_type.name)
        if name is None:
            raise UnsupportedError(f"element type {info.element_type} has no counterpart")
        dense = strides_of(list(shape), "abcdefghijkl"[: len(shape)])
        return {
            "id": number,
            "dtype": name,
            "shape": list(shape),
            "stride": list(dense),
            "layout_type": "strided",
            "property_type": "constant" if str(number) in self.constants else "undef",
        }

    def layer(
        self,
        index: int,
        layer: Layer,
        inputs: Sequence[int],
        infos: Sequence[TensorInfo],
        results: Sequence[TensorInfo],
    ) -> None:
        """Write a layer."""
        operation = layer.operation
        if layer.type == "Parameter":
            number = self.tensors[(index, 0)] = next(self.numbers)
            self.inputs.append(number)
            self.tensor(number, results[0], None)  # checks that it can be stated
            return
        if layer.type == "Result":
            if inputs[0] < 0:
                raise UnsupportedError("a constant as output has no counterpart")
            self.outputs.append(inputs[0])
            return
        kind = _SAME.get(layer.type)
        if kind is not None and operation.implemented:
            attributes = _broadcast(operation)
            self.emit(index, layer, kind, inputs, infos, results[0], attributes)
            return
        rule = _RULES.get(layer.type)
        if rule is None or not operation.implemented:
            raise UnsupportedError(f"{layer.type} has no counterpart")
        rule(self, layer, inputs, infos, results[0])
        self.tensors[(index, 0)] = self.operations[-1]["outputs"][0]["id"]

    def emit(
        self,
        index: int | None,
        layer: Layer,
        kind: str,
        inputs: Sequence[int],
        infos: Sequence[TensorInfo],
        result: TensorInfo,
        attributes: dict[str, Any],
        shapes: Sequence[Sequence[int] | None] = (),
    ) -> int:
        """Write an operation, and return the id of its output."""
        stated = []
        for i, (reference, info) in enumerate(zip(inputs, infos, strict=True)):
            shape = shapes[i] if i < len(shapes) else None
            number = self.constant(reference, info, shape if reference < 0 else None)
            stated.append(self.tensor(number, info, shape))
        output = next(self.numbers)
        self.operations.append(
            {
                "id": len(self.operations),
                "name": layer.name,
                "kind": kind,
                "attrs": {name: _attribute(value) for name, value in attributes.items()},
                "inputs": stated,
                "outputs": [self.tensor(output, result, None)],
            }
        )
        if index is not None:
            self.tensors[(index, 0)] = output
        return output


def _attribute(value: Any) -> dict[str, Any]:
    """State an attribute with its type."""
    if isinstance(value, bool):
        return {"type": "bool", "value": int(value)}
    if isinstance(value, str):
        return {"type": "string", "value": value}
    if isinstance(value, int):
        return {"type": "s64", "value": value}
    if isinstance(value, float):
        if not math.isfinite(value):
            raise UnsupportedError(f"attribute value {value} has no counterpart")
        return {"type": "f32", "value": value}
    return {"type": "s64[]", "value": list(value)}


def _broadcast(operation: Operation) -> dict[str, Any]:
    rule = getattr(operation, "auto_broadcast", None)
    if rule is None:
        return {}
    if rule.value == "pdpd":
        raise UnsupportedError(f"{operation.type} with pdpd broadcasting has no counterpart")
    return {"auto_broadcast": rule.value}


def _window(operation: Any, spatial: int) -> dict[str, Any]:
    return {
        "strides": operation.strides or (1,) * spatial,
        "pads_begin": operation.pads_begin or (0,) * spatial,
        "pads_end": operation.pads_end or (0,) * spatial,
        "auto_pad": _AUTO_PAD[operation.auto_pad],
        "data_format": "NCX",
    }


def _grouped(
    writer: _Writer, layer: Layer, reference: int, info: TensorInfo
) -> tuple[int, TensorInfo, tuple[int, ...]]:
    """Join groups and the channels after them: a constant in place, others by StaticReshape."""
    groups, first, *rest = static(info.shape)
    shape = (groups * first, *rest)
    joined = TensorInfo(shape, info.element_type)
    if reference < 0:
        return reference, joined, shape
    attributes = {"shape": shape, "special_zero": False}
    found = writer.emit(None, layer, "StaticReshape", [reference], [info], joined, attributes)
    return found, joined, shape


def _convolution(
    writer: _Writer,
    layer: Layer,
    inputs: Sequence[int],
    infos: Sequence[TensorInfo],
    result: TensorInfo,
) -> None:
    operation: Any = layer.operation
    data, weights = infos[:2]
    reference, groups, shape = inputs[1], 1, static(weights.shape)
    if layer.type == "GroupConvolution":
        groups = shape[0]
        reference, weights, shape = _grouped(writer, layer, reference, weights)
    spatial = len(shape) - 2
    attributes = _window(operation, spatial) | {
        "dilations": operation.dilations or (1,) * spatial,
        "groups": groups,
        "weights_format": "OIX",
    }
    writer.emit(
        None,
        layer,
        "Convolution",
        [inputs[0], reference],
        [data, weights],
        result,
        attributes,
        [None, shape],
    )


def _deconvolution(
    writer: _Writer,
    layer: Layer,
    inputs: Sequence[int],
    infos: Sequence[TensorInfo],
    result: TensorInfo,
) -> None:
    """Write pads that give the extents, whatever asks for them."""
    operation = layer.operation
    assert isinstance(operation, Deconvolution)
    geometry = operation.geometry(infos, writer.context)
    if geometry is None:
        raise UnsupportedError("shapes that are not static have no counterpart")
    reference, weights = inputs[1], infos[1]
    shape, groups = static(weights.shape), 1
    if layer.type == "GroupConvolutionBackpropData":
        groups = shape[0]
        reference, weights, shape = _grouped(writer, layer, reference, weights)
    spatial_first = isinstance(operation, OneDNNDeconvolution) and operation.spatial_first
    if isinstance(operation, OneDNNDeconvolution):
        groups = operation.groups
    kernel = shape[:-2] if spatial_first else shape[2:]
    axes = operation.axes(len(geometry))
    view = operation.data_view(static(infos[0].shape)).spatial
    ends = [
        axis.natural(x, k) - g.pad_begin - g.output
        for axis, g, x, k in zip(axes, geometry, view, kernel, strict=True)
        if isinstance(x, int)
    ]
    if any(g.pad_begin < 0 for g in geometry):
        raise UnsupportedError(f"{layer.type} with negative pads has no counterpart")
    attributes = {
        "strides": [a.stride for a in axes],
        "pads_begin": [g.pad_begin for g in geometry],
        "pads_end": [max(0, end) for end in ends],
        "output_padding": [max(0, -end) for end in ends],
        "dilations": [a.dilation for a in axes],
        "auto_pad": "None",
        "groups": groups,
        "data_format": "NXC" if operation.channels_last else "NCX",
        "weights_format": "XOI" if spatial_first else "IOX",
    }
    references, stated = [inputs[0], reference], [infos[0], weights]
    if operation.has_bias(len(inputs)):
        references.append(inputs[2])
        stated.append(infos[2])
    writer.emit(None, layer, "ConvTranspose", references, stated, result, attributes, [None, shape])


def _plain(kind: str, *names: str) -> Rule:
    """Make the rule of an operation whose attributes have the same names."""

    def rule(
        writer: _Writer,
        layer: Layer,
        inputs: Sequence[int],
        infos: Sequence[TensorInfo],
        result: TensorInfo,
    ) -> None:
        attributes = {name: getattr(layer.operation, name) for name in names}
        writer.emit(None, layer, kind, inputs, infos, result, attributes)

    return rule


def _of_list(kind: str, name: str, **others: Any) -> Rule:
    """Make the rule of an operation whose second input is an attribute in oneDNN."""

    def rule(
        writer: _Writer,
        layer: Layer,
        inputs: Sequence[int],
        infos: Sequence[TensorInfo],
        result: TensorInfo,
    ) -> None:
        values = known_integers(infos[1])
        if name == "shape":
            values = static(result.shape) if is_static(result.shape) else None
        if values is None:
            raise UnsupportedError(
                f"{layer.type} of values that are not constant has no counterpart"
            )
        attributes: dict[str, Any] = {name: values, **others}
        if "keep_dims" in layer.operation.fields:
            attributes["keep_dims"] = getattr(layer.operation, "keep_dims")  # noqa: B009
        writer.emit(None, layer, kind, inputs[:1], infos[:1], result, attributes)

    return rule


def _pool(
    writer: _Writer,
    layer: Layer,
    inputs: Sequence[int],
    infos: Sequence[TensorInfo],
    result: TensorInfo,
) -> None:
    operation: Any = layer.operation
    rounding = operation.rounding_type.value
    if rounding == "ceil_torch" or len(layer.outputs) > 1:
        raise UnsupportedError(f"{layer.type} with {rounding} or indices has no counterpart")
    spatial = len(operation.kernel)
    attributes = _window(operation, spatial) | {
        "kernel": operation.kernel,
        "rounding_type": rounding,
    }
    if layer.type == "AvgPool":
        attributes["exclude_pad"] = operation.exclude_pad
    elif getattr(operation, "dilations", None):
        attributes["dilations"] = operation.dilations
    writer.emit(None, layer, layer.type, inputs, infos, result, attributes)


def _normalization(
    writer: _Writer,
    layer: Layer,
    inputs: Sequence[int],
    infos: Sequence[TensorInfo],
    result: TensorInfo,
) -> None:
    names = ("data", "gamma", "beta", "mean", "variance")
    order = [layer.operation.inputs.index(name) for name in names]
    attributes = {"epsilon": getattr(layer.operation, "epsilon"), "data_format": "NCX"}  # noqa: B009
    writer.emit(
        None,
        layer,
        "BatchNormInference",
        [inputs[i] for i in order],
        [infos[i] for i in order],
        result,
        attributes,
    )


def _typecast(
    writer: _Writer,
    layer: Layer,
    inputs: Sequence[int],
    infos: Sequence[TensorInfo],
    result: TensorInfo,
) -> None:
    for info in (*infos, result):
        if info.element_type is None or not info.element_type.is_float:
            raise UnsupportedError(f"Convert of {info.element_type} has no counterpart")
    writer.emit(None, layer, "TypeCast", inputs, infos, result, {})


def _round(
    writer: _Writer,
    layer: Layer,
    inputs: Sequence[int],
    infos: Sequence[TensorInfo],
    result: TensorInfo,
) -> None:
    if getattr(layer.operation, "mode", None) is not RoundMode.HALF_TO_EVEN:
        raise UnsupportedError("Round away from zero has no counterpart")
    writer.emit(None, layer, "Round", inputs, infos, result, {})


def _prelu(
    writer: _Writer,
    layer: Layer,
    inputs: Sequence[int],
    infos: Sequence[TensorInfo],
    result: TensorInfo,
) -> None:
    attributes = {"data_format": "NCX", "per_channel_broadcast": True}
    writer.emit(None, layer, "PReLU", inputs, infos, result, attributes)


def _gelu(
    writer: _Writer,
    layer: Layer,
    inputs: Sequence[int],
    infos: Sequence[TensorInfo],
    result: TensorInfo,
) -> None:
    mode = getattr(layer.operation, "approximation_mode", None)
    attributes = {"mode": "gelu_tanh" if mode is not None and mode.value == "tanh" else "gelu_erf"}
    writer.emit(None, layer, "GELU", inputs, infos, result, attributes)


_RULES: Final[dict[str, Rule]] = {
    "AvgPool": _pool,
    "BatchNormInference": _normalization,
    "Clamp": _plain("Clamp", "min", "max"),
    "Concat": _plain("Concat", "axis"),
    "ConvTranspose": _deconvolution,
    "Convert": _typecast,
    "Convolution": _convolution,
    "ConvolutionBackpropData": _deconvolution,
    "ConvolutionBackwardData": _deconvolution,
    "Elu": _plain("Elu", "alpha"),
    "Gelu": _gelu,
    "GroupConvolution": _convolution,
    "GroupConvolutionBackpropData": _deconvolution,
    "LogSoftmax": _plain("LogSoftmax", "axis"),
    "MatMul": _plain("MatMul", "transpose_a", "transpose_b"),
    "MaxPool": _pool,
    "PReLU": _prelu,
    "Reshape": _of_list("StaticReshape", "shape", special_zero=False),
    "Round": _round,
    "SoftMax": _plain("SoftMax", "axis"),
    "Squeeze": _of_list("StaticReshape", "shape", special_zero=False),
    "Transpose": _of_list("StaticTranspose", "order"),
    "Unsqueeze": _of_list("StaticReshape", "shape", special_zero=False),
} | {
    f"Reduce{name}": _of_list(f"Reduce{name}", "axes")
    for name in ("L1", "L2", "Max", "Mean", "Min", "Prod", "Sum")
}
