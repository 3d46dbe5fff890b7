"""Conversion rules from layers of an IR to operations of oneDNN Graph."""

from __future__ import annotations

from typing import Any, Final

from deconv_ir.errors import UnsupportedError
from deconv_ir.formats.onednn_json.emulations import EMULATIONS
from deconv_ir.formats.onednn_json.given import Feed, LayerWriter, Rule
from deconv_ir.ir.geometry import PadMode
from deconv_ir.ir.operation import Operation, TensorInfo
from deconv_ir.ir.shapes import is_static, static
from deconv_ir.ops.checks import known_integers
from deconv_ir.ops.convolution.deconvolution import Deconvolution
from deconv_ir.ops.convolution.onednn import OneDNNDeconvolution
from deconv_ir.ops.elementwise.unary import RoundMode
from deconv_ir.ops.resample.interpolate import ShapeCalculation
from deconv_ir.ops.resample.resample import Coordinates, Mode, Nearest

_AUTO_PAD: Final = {
    PadMode.EXPLICIT: "None",
    PadMode.SAME_UPPER: "SAME_UPPER",
    PadMode.SAME_LOWER: "SAME_LOWER",
    PadMode.VALID: "VALID",
}


def _plain(kind: str, *names: str, **others: Any) -> Rule:
    """Make the rule of an operation whose attributes have the same names."""

    def rule(given: LayerWriter) -> None:
        given.emit(kind, {name: getattr(given.operation, name) for name in names} | others)

    return rule


def _broadcasting(kind: str) -> Rule:
    """Make the rule of an operation whose only attribute is auto_broadcast."""

    def rule(given: LayerWriter) -> None:
        found = getattr(given.operation, "auto_broadcast", None)
        if found is not None and found.value == "pdpd":
            raise given.refuse("with pdpd broadcasting")
        given.emit(kind, {} if found is None else {"auto_broadcast": found.value})

    return rule


def _of_list(kind: str, name: str, **others: Any) -> Rule:
    """Make the rule of an operation whose second input is an attribute in oneDNN."""

    def rule(given: LayerWriter) -> None:
        values = known_integers(given.feeds[1].info)
        if name == "shape":
            values = static(given.result.shape) if is_static(given.result.shape) else None
        if values is None:
            raise given.refuse("of values that are not constant")
        attributes: dict[str, Any] = {name: values, **others}
        if "keep_dims" in given.operation.fields:
            attributes["keep_dims"] = given.operation.keep_dims
        given.emit(kind, attributes, given.feeds[:1])

    return rule


def _window(operation: Any, spatial: int) -> dict[str, Any]:
    return {
        "strides": operation.strides or (1,) * spatial,
        "pads_begin": operation.pads_begin or (0,) * spatial,
        "pads_end": operation.pads_end or (0,) * spatial,
        "auto_pad": _AUTO_PAD[operation.auto_pad],
        "data_format": "NCX",
    }


def _filter(given: LayerWriter) -> tuple[Feed, int, tuple[int, ...]]:
    """Return the filter without its axis of groups, the number of groups, and its shape.

    The axis of groups is merged with the channels that follow: a constant is reshaped, other
    filters pass through a StaticReshape.
    """
    feed = given.feeds[1]
    shape = static(feed.info.shape)
    if not given.layer.type.startswith("Group"):
        return feed._replace(shape=shape), 1, shape
    groups, first, *rest = shape
    joined = (groups * first, *rest)
    info = TensorInfo(joined, feed.info.element_type)
    reference = feed.reference
    if reference >= 0:
        attributes = {"shape": joined, "special_zero": False}
        reference = given.write(given.layer.name, "StaticReshape", [feed], info, attributes)
    return Feed(reference, info, joined), groups, joined


def _convolution(given: LayerWriter) -> None:
    weights, groups, shape = _filter(given)
    spatial = len(shape) - 2
    attributes = _window(given.operation, spatial) | {
        "dilations": given.operation.dilations or (1,) * spatial,
        "groups": groups,
        "weights_format": "OIX",
    }
    given.emit("Convolution", attributes, [given.feeds[0], weights])


def _deconvolution(given: LayerWriter) -> None:
    """Write explicit pads that give the inferred extents."""
    operation: Operation = given.operation
    assert isinstance(operation, Deconvolution)
    geometry = operation.geometry([feed.info for feed in given.feeds], given.context)
    if geometry is None:
        raise UnsupportedError("shapes that are not static have no counterpart")
    weights, groups, shape = _filter(given)
    spatial_first = isinstance(operation, OneDNNDeconvolution) and operation.spatial_first
    if isinstance(operation, OneDNNDeconvolution):
        groups = operation.groups
    kernel = shape[:-2] if spatial_first else shape[2:]
    axes = operation.axes(len(geometry))
    view = operation.data_dims(static(given.feeds[0].info.shape)).spatial
    ends = [
        axis.natural(x, k) - g.pad_begin - g.output
        for axis, g, x, k in zip(axes, geometry, view, kernel, strict=True)
        if isinstance(x, int)
    ]
    if any(g.pad_begin < 0 for g in geometry):
        raise given.refuse("with negative pads")
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
    bias = given.feeds[2:3] if operation.has_bias(len(given.feeds)) else []
    given.emit("ConvTranspose", attributes, [given.feeds[0], weights, *bias])


def _pool(given: LayerWriter) -> None:
    operation = given.operation
    rounding = operation.rounding_type.value
    if rounding == "ceil_torch" or given.is_read(1):
        raise given.refuse(f"with {rounding} or indices")
    attributes = _window(operation, len(operation.kernel)) | {
        "kernel": operation.kernel,
        "rounding_type": rounding,
    }
    if given.layer.type == "AvgPool":
        attributes["exclude_pad"] = operation.exclude_pad
    elif getattr(operation, "dilations", None):
        attributes["dilations"] = operation.dilations
    given.emit(given.layer.type, attributes)


def _normalization(given: LayerWriter) -> None:
    names = ("data", "gamma", "beta", "mean", "variance")
    feeds = [given.feeds[given.operation.inputs.index(name)] for name in names]
    attributes = {"epsilon": given.operation.epsilon, "data_format": "NCX"}
    given.emit("BatchNormInference", attributes, feeds)


def _round(given: LayerWriter) -> None:
    if given.operation.mode is not RoundMode.HALF_TO_EVEN:
        raise given.refuse("away from zero")
    given.emit("Round", {})


def _gelu(given: LayerWriter) -> None:
    mode = getattr(given.operation, "approximation_mode", None)
    tanh = mode is not None and mode.value == "tanh"
    given.emit("GELU", {"mode": "gelu_tanh" if tanh else "gelu_erf"})


def _hard_sigmoid(given: LayerWriter) -> None:
    values = [feed.info.reals for feed in given.feeds[1:]]
    if None in values:
        raise given.refuse("of values that are not constant")
    alpha, beta = (float(value[0]) for value in values if value is not None)
    given.emit("HardSigmoid", {"alpha": alpha, "beta": beta}, given.feeds[:1])


def _group_norm(given: LayerWriter) -> None:
    attributes = {
        "groups": given.operation.num_groups,
        "epsilon": given.operation.epsilon,
        "keep_stats": False,
        "data_format": "NCX",
    }
    given.emit("GroupNorm", attributes)


def _interpolate(given: LayerWriter) -> None:
    """Write sizes of the spatial axes, with the modes and coordinates that oneDNN supports."""
    operation = given.operation
    mode = {Mode.NEAREST: "nearest", Mode.LINEAR_ONNX: "linear"}.get(operation.mode)
    coordinates = getattr(operation, "coordinate_transformation_mode", None)
    if mode is None or coordinates not in (Coordinates.HALF_PIXEL, Coordinates.ALIGN_CORNERS):
        raise given.refuse("of this mode or these coordinates")
    if mode == "nearest" and operation.nearest_mode is not Nearest.ROUND_PREFER_CEIL:
        raise given.refuse(f"with nearest_mode {operation.nearest_mode.value}")
    before, after = given.feeds[0].info.shape, given.result.shape
    if not is_static(before) or not is_static(after) or static(before)[:2] != static(after)[:2]:
        raise given.refuse("of other axes than the spatial ones")
    if operation.shape_calculation_mode is not ShapeCalculation.SIZES or operation.antialias:
        raise given.refuse("by scales or with antialias")
    attributes = {
        "mode": mode,
        "coordinate_transformation_mode": coordinates.value,
        "sizes": static(after)[2:],
        "data_format": "NCX",
    }
    given.emit("Interpolate", attributes, given.feeds[:1])


RULES: Final[dict[str, Rule]] = {
    **EMULATIONS,
    "AvgPool": _pool,
    "BatchNormInference": _normalization,
    "Clamp": _plain("Clamp", "min", "max"),
    "Concat": _plain("Concat", "axis"),
    "ConvTranspose": _deconvolution,
    "Convolution": _convolution,
    "ConvolutionBackpropData": _deconvolution,
    "ConvolutionBackwardData": _deconvolution,
    "Elu": _plain("Elu", "alpha"),
    "Gelu": _gelu,
    "GroupConvolution": _convolution,
    "GroupConvolutionBackpropData": _deconvolution,
    "GroupNormalization": _group_norm,
    "HSwish": _broadcasting("HardSwish"),
    "HardSigmoid": _hard_sigmoid,
    "Interpolate": _interpolate,
    "LogSoftmax": _plain("LogSoftmax", "axis"),
    "MatMul": _plain("MatMul", "transpose_a", "transpose_b"),
    "MaxPool": _pool,
    "PReLU": _plain("PReLU", data_format="NCX", per_channel_broadcast=True),
    "Reshape": _of_list("StaticReshape", "shape", special_zero=False),
    "Round": _round,
    "SoftMax": _plain("SoftMax", "axis"),
    "SoftPlus": _plain("SoftPlus"),
    "Squeeze": _of_list("StaticReshape", "shape", special_zero=False),
    "Transpose": _of_list("StaticTranspose", "order"),
    "Unsqueeze": _of_list("StaticReshape", "shape", special_zero=False),
    **{
        kind: _broadcasting(kind)
        for kind in (
            *("Abs", "Exp", "Log", "Mish", "ReLU", "Sigmoid", "Sqrt", "Tanh"),
            *("Add", "Subtract", "Multiply", "Divide", "Maximum", "Minimum", "SquaredDifference"),
            *("GreaterEqual", "Select"),
        )
    },
    **{
        f"Reduce{name}": _of_list(f"Reduce{name}", "axes")
        for name in ("L1", "L2", "Max", "Mean", "Min", "Prod", "Sum")
    },
}
