"""A small graph for every kind of operation of oneDNN Graph, with all its attributes.

Source: oneDNN, doc/graph/operations.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from onednn_forms import ZEROS, graph, op, tensor

X, ROW, HALF = [1, 4, 3, 3], [4], [1, 4, 2, 2]
Tensor = list[int] | tuple[list[int], str]


class Form(NamedTuple):
    """Tensors, each as a shape (of f32) or a shape and an element type, and attributes."""

    inputs: tuple[Tensor, ...] = (X,)
    outputs: tuple[Tensor, ...] = (X,)
    attributes: Mapping[str, Any] = {}


NCX: dict[str, Any] = {"data_format": "NCX"}
NUMPY = {"auto_broadcast": "numpy"}
PADS = {"strides": [1, 1], "pads_begin": [0, 0], "pads_end": [0, 0], "auto_pad": "None"} | NCX
WINDOW = PADS | {"dilations": [1, 1], "groups": 2}
FORWARD, TURNED = {"weights_format": "OIX"}, {"weights_format": "IOX"}
POOL = PADS | {"kernel": [2, 2]}
MAX_POOL = POOL | {"dilations": [1, 1]}
BATCH = NCX | {"epsilon": 0.25}
ALONG = {"begin_norm_axis": -1, "epsilon": 0.25}
RESIZE = NCX | {"mode": "nearest", "coordinate_transformation_mode": "half_pixel", "sizes": [3, 3]}
FIXED = {"qtype": "per_tensor", "axis": 1, "scales": [0.5], "zps": [3]}
GROUPS = {"qtype": "per_group", "axis": 1, "group_shape": [1, 2, 1, 1]}
STATES = [1, 2, 3, 3]
REDUCE = Form(outputs=([1, 4, 1, 1],), attributes={"axes": [2, 3], "keep_dims": True})
BOTH = (X, X)
ONE_DST = Form(BOTH, attributes={"use_dst": True})
WHOLE: tuple[Tensor, ...] = ([], "s64"), ([], "s64"), []
SMALL = [4, 2, 2, 2]
"""Weights (O, I / groups, X) from X to HALF, and (I, O / groups, X) back again."""

PLAIN = (
    *("Abs", "Exp", "HardSwish", "Log", "Mish", "ReLU", "Reciprocal", "Reorder", "Round"),
    *("Sigmoid", "Sqrt", "Square", "Tanh"),
)
BINARY = (*("Add", "Divide", "Maximum", "Minimum", "Multiply", "SquaredDifference", "Subtract"),)

EVERY_KIND: dict[str, Form] = {
    **dict.fromkeys(PLAIN, Form()),
    **dict.fromkeys(["AbsBackward", "HardSwishBackward", "MishBackward"], Form(BOTH)),
    **dict.fromkeys(BINARY, Form((X, [4, 1, 1]), attributes=NUMPY)),
    **{f"{name}Backward": ONE_DST for name in ("ReLU", "Sigmoid", "Sqrt", "Tanh")},
    **{f"Reduce{name}": REDUCE for name in ("L1", "L2", "Max", "Mean", "Min", "Prod", "Sum")},
    "AvgPool": Form((X,), (HALF,), POOL | {"rounding_type": "floor", "exclude_pad": True}),
    "AvgPoolBackward": Form((HALF,), (X,), POOL | {"exclude_pad": False, "src_shape": X}),
    "BatchNormForwardTraining": Form((X, *[ROW] * 4), (X, *[ROW] * 4), BATCH | {"momentum": 0.5}),
    "BatchNormInference": Form((X, *[ROW] * 4), (X,), BATCH),
    "BatchNormTrainingBackward": Form((X, X, *[ROW] * 3), (X, ROW, ROW), BATCH),
    "BiasAdd": Form((X, ROW), (X,), NCX),
    "BiasAddBackward": Form((X,), (ROW,), NCX),
    "Clamp": Form(attributes={"min": -1.0, "max": 1.0}),
    "ClampBackward": Form(BOTH, (X,), {"min": -1.0, "max": 1.0, "use_dst": True}),
    "Concat": Form(BOTH, ([1, 8, 3, 3],), {"axis": 1}),
    "Convolution": Form((X, SMALL, ROW), (HALF,), WINDOW | FORWARD),
    "ConvolutionBackwardData": Form(
        (HALF, SMALL), (X,), WINDOW | FORWARD | {"output_padding": ZEROS, "dst_shape": X}
    ),
    "ConvolutionBackwardWeights": Form(
        (X, HALF), (SMALL,), WINDOW | FORWARD | {"weights_shape": SMALL}
    ),
    "ConvTranspose": Form((HALF, SMALL, ROW), (X,), WINDOW | TURNED | {"output_padding": ZEROS}),
    "ConvTransposeBackwardData": Form((X, SMALL), (HALF,), WINDOW | TURNED),
    "ConvTransposeBackwardWeights": Form(
        (HALF, X), (SMALL,), WINDOW | TURNED | {"weights_shape": SMALL}
    ),
    "Dequantize": Form(((X, "u8"),), (X,), FIXED),
    "Dropout": Form((X, *WHOLE), (X, (X, "u8"))),
    "DynamicDequantize": Form(((X, "s4"), STATES, (STATES, "s8")), (X,), GROUPS),
    "DynamicQuantize": Form((X, STATES, (STATES, "s32")), ((X, "u8"),), GROUPS),
    "Elu": Form(attributes={"alpha": 0.5}),
    "EluBackward": Form(BOTH, (X,), {"alpha": 0.5, "use_dst": True}),
    "End": Form(outputs=()),
    "GELU": Form(attributes={"mode": "gelu_erf"}),
    "GELUBackward": Form(BOTH, (X,), {"mode": "gelu_tanh"}),
    "GenIndex": Form((X,), ((X, "s32"),), {"axis": 2}),
    "GreaterEqual": Form((X, [4, 1, 1]), ((X, "boolean"),), NUMPY),
    "GroupNorm": Form(
        (X, ROW, ROW),
        (X, [1, 2], [1, 2]),
        BATCH | {"groups": 2, "keep_stats": True, "use_affine": True},
    ),
    "HardSigmoid": Form(attributes={"alpha": 0.5, "beta": 0.25}),
    "HardSigmoidBackward": Form(BOTH, (X,), {"alpha": 0.5, "beta": 0.25}),
    "Interpolate": Form((HALF,), (X,), RESIZE),
    "InterpolateBackward": Form((HALF, X), (HALF,), RESIZE),
    "LayerNorm": Form(
        (X, [3], [3]), (X, X[:3], X[:3]), ALONG | {"keep_stats": True, "use_affine": True}
    ),
    "LayerNormBackward": Form(
        (X, X, X[:3], X[:3], [3], [3]), (X, [3], [3]), ALONG | {"use_affine": True}
    ),
    "LeakyReLU": Form(attributes={"alpha": 0.5}),
    "LogSoftmax": Form(attributes={"axis": 1}),
    **dict.fromkeys(["LogSoftmaxBackward", "SoftMaxBackward"], Form(BOTH, attributes={"axis": -1})),
    "MatMul": Form(
        ([2, 3], [4, 3], [4]),
        ([2, 4],),
        {"transpose_a": False, "transpose_b": True, "accumulation_mode": "strict"},
    ),
    "MaxPool": Form((X,), (HALF,), MAX_POOL | {"rounding_type": "ceil"}),
    "MaxPoolBackward": Form((X, HALF), (X,), MAX_POOL),
    "Pow": Form(attributes={"beta": 2.0}),
    "PReLU": Form((X, ROW), (X,), NCX | {"per_channel_broadcast": True}),
    "PReLUBackward": Form((X, ROW, X), (X, ROW), NCX),
    "Quantize": Form((X,), ((X, "s8"),), FIXED),
    "RMSNorm": Form((X, [3]), (X,), ALONG),
    "Select": Form(((X, "boolean"), X, [1]), (X,), NUMPY),
    "SoftMax": Form((X,), (X, [1, 1, 3, 3]), {"axis": 1, "mode": "inf_as_zero"}),
    "SoftPlus": Form(attributes={"beta": 2.0}),
    "SoftPlusBackward": Form(BOTH, (X,), {"beta": 2.0}),
    "StaticReshape": Form((X,), ([4, 9],), {"shape": [4, -1], "special_zero": False}),
    "StaticTranspose": Form((X,), ([1, 3, 3, 4],), {"order": [0, 2, 3, 1]}),
    "TypeCast": Form((X,), ((X, "bf16"),)),
}


def graph_of(kind: str, **changes: Any) -> dict[str, Any]:
    """Return a graph of one kind; `changes` are its other attributes."""
    form = EVERY_KIND[kind]
    stated = [
        tensor(number, *(one if isinstance(one, tuple) else (one,)))
        for number, one in enumerate((*form.inputs, *form.outputs))
    ]
    count = len(form.inputs)
    made = op(1, kind, stated[:count], stated[count:], **{**form.attributes, **changes})
    if kind != "End":
        return graph(made)
    return graph(op(0, "ReLU", [tensor(7, X)], stated[:1]), made)
