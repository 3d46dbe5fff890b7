"""The kinds of operations in oneDNN Graph files, and the class of each.

Sources: oneDNN, src/graph/interface/op_def.hpp and doc/graph/operations.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from deconv_ir.ir.operation import Operation
from deconv_ir.ops import find_operation
from deconv_ir.ops.base import attributes_of
from deconv_ir.ops.onednn import class_of

DTYPES: Final = {
    "f32": "f32",
    "f16": "f16",
    "bf16": "bf16",
    "s32": "i32",
    "s8": "i8",
    "u8": "u8",
    "boolean": "boolean",
    "f8_e5m2": "f8e5m2",
    "f8_e4m3": "f8e4m3",
    "s4": "i4",
    "u4": "u4",
    "s64": "i64",
}
"""Element types: oneDNN's spelling -> the IR's.  ``undef`` stands for None."""

_FLOAT: Final = ("f32", "bf16", "f16")
_QUANTIZED: Final = ("u8", "s8", "f8_e5m2", "f8_e4m3")
_PACKED: Final = (*_QUANTIZED, "s4", "u4")
_ZERO_POINTS: Final = ("u8", "s8", "s4", "u4", "s32")
_FEW: Final = ("f32", "bf16")
_S32: Final = ("s32",)
_ANY: Final = tuple(DTYPES)


class OpKind(NamedTuple):
    """A kind of operation.

    Attributes
    ----------
    opset_type, version : str
        The equivalent operation of an OpenVINO opset (or of oneDNN Graph, among the operations that
        IRs have); empty: a class of `module`.
    module : str
        The module of `deconv_ir.ops.onednn` that has its class.
    defaults : mapping
        Attribute -> its default, if that of the class differs.
    inputs, outputs : tuple
        The element types of each; the last entry applies to all further ones.
    plain : bool
        The opset's operation is used if all element types are equal, and `module` only if they
        differ.
    foreign : tuple of str
        Attributes of the opset's operation that the kind does not have.
    """

    opset_type: str = ""
    version: str | None = None
    module: str = ""
    defaults: Mapping[str, str] = {}
    inputs: tuple[tuple[str, ...], ...] = (_FLOAT,)
    outputs: tuple[tuple[str, ...], ...] = (_FLOAT,)
    plain: bool = False
    foreign: tuple[str, ...] = ()

    def attributes(self, cls: type[Operation]) -> dict[str, str]:
        """Return a mapping of the kind's documented attributes to those of the class."""
        return {
            spec.name.replace("-", "_"): spec.name
            for spec in attributes_of(cls)
            if spec.name not in _OWN and spec.name not in self.foreign
        }

    def operation(self, name: str, types: set[object]) -> type[Operation]:
        """Return the class for tensors of some element types."""
        if self.opset_type and (not self.module or (self.plain and len(types) == 1)):
            found = find_operation(self.opset_type, self.version)
            assert found is not None, f"{self.opset_type} is implemented"
            return found
        return class_of(name, self.module)


_OWN: Final = (
    *("output_type", "declared_shape", "output_count", "auto_broadcast.auto_broadcast_axis"),
    "m_pythondiv",
)
"""Attributes that classes have and files do not."""
SPELLINGS: Final = {"filter_format": "weights_format", "weights_format": "filter_format"}
"""Two names of one attribute: weights_format, and filter_format in early files."""
_BINARY: Final = OpKind(module="elementwise")
_REDUCE: Final = OpKind(module="elementwise", inputs=(_FLOAT, _S32))


def _binary(kind: str) -> OpKind:
    return OpKind(kind, module="elementwise", plain=True)


KINDS: Final[dict[str, OpKind]] = {
    # Transposed convolutions and gradients
    "ConvTranspose": OpKind("ConvTranspose"),
    "ConvolutionBackwardData": OpKind("ConvolutionBackwardData", inputs=(_FLOAT, _FLOAT, _S32)),
    "ConvTransposeBackwardData": OpKind(module="windows"),
    "ConvTransposeBackwardWeights": OpKind(
        module="weights_gradient", inputs=(_FLOAT, _FLOAT, _S32)
    ),
    "ConvolutionBackwardWeights": OpKind(module="weights_gradient", inputs=(_FLOAT, _FLOAT, _S32)),
    # Windows
    "Convolution": OpKind(module="windows"),
    "MaxPool": OpKind(module="windows"),
    "AvgPool": OpKind(module="windows"),
    "MaxPoolBackward": OpKind(module="pool_gradients"),
    "AvgPoolBackward": OpKind(module="pool_gradients", inputs=(_FLOAT, _S32)),
    "InterpolateBackward": OpKind(module="resample_gradient", inputs=(_FLOAT, _FLOAT, _S32)),
    # Quantization
    "Quantize": OpKind(module="quantization", inputs=(("f32",),), outputs=(_QUANTIZED,)),
    "Dequantize": OpKind(module="quantization", inputs=(_QUANTIZED,)),
    "DynamicQuantize": OpKind(
        module="quantization", inputs=(("f32",), ("f32",), _ZERO_POINTS), outputs=(_QUANTIZED,)
    ),
    "DynamicDequantize": OpKind(module="quantization", inputs=(_PACKED, _FLOAT, _ZERO_POINTS)),
    # Two arrays
    **{
        kind: _binary(kind)
        for kind in (*("Multiply", "Divide", "Maximum", "Minimum", "SquaredDifference"),)
    },
    **{
        kind: _binary(kind)._replace(inputs=((*_FLOAT, "s32"),), outputs=((*_FLOAT, "s32"),))
        for kind in ("Add", "Subtract")
    },
    "GreaterEqual": OpKind("GreaterEqual", inputs=((*_FLOAT, "s32"),), outputs=(("boolean",),)),
    "Select": OpKind("Select", inputs=(("boolean",), _FLOAT)),
    "BiasAdd": OpKind(module="elementwise"),
    "MatMul": OpKind(module="elementwise"),
    "PReLU": OpKind(module="elementwise"),
    # One array
    **{
        kind: OpKind(kind)
        for kind in ("Abs", "Exp", "Log", "Mish", "ReLU", "Sigmoid", "Sqrt", "Tanh")
    },
    "Round": OpKind("Round", foreign=("mode",)),
    "Clamp": OpKind("Clamp"),
    "Elu": OpKind("Elu"),
    "HardSwish": OpKind("HSwish"),
    "LogSoftmax": OpKind("LogSoftmax", defaults={"axis": "-1"}),
    **{
        kind: OpKind(module="elementwise")
        for kind in (
            *("GELU", "HardSigmoid", "LeakyReLU", "Pow", "Reciprocal", "SoftPlus", "Square"),
        )
    },
    **{f"Reduce{name}": _REDUCE for name in ("L1", "L2", "Max", "Mean", "Min", "Prod", "Sum")},
    "SoftMax": OpKind(module="elementwise", outputs=(_FLOAT, ("f32",))),
    "Dropout": OpKind(
        module="elementwise",
        inputs=(_FLOAT, ("s64",), ("s64",), ("f32",)),
        outputs=(_FLOAT, ("u8",)),
    ),
    "End": OpKind("Result", inputs=(_ANY,), outputs=()),
    # Gradients
    **{
        f"{kind}Backward": OpKind(module="gradients")
        for kind in (
            *("Abs", "BiasAdd", "Clamp", "Elu", "GELU", "HardSigmoid", "HardSwish", "LayerNorm"),
            *("LogSoftmax", "Mish", "PReLU", "ReLU", "Sigmoid", "SoftMax", "SoftPlus", "Sqrt"),
            "Tanh",
        )
    },
    "BatchNormTrainingBackward": OpKind(
        module="gradients", inputs=(_FLOAT, _FLOAT, _FEW), outputs=(_FLOAT, _FEW)
    ),
    # Normalisation, resampling, movement
    "BatchNormForwardTraining": OpKind(
        module="normalization", inputs=(_FLOAT, _FEW), outputs=(_FLOAT, _FEW)
    ),
    "GenIndex": OpKind(module="normalization", outputs=(_S32,)),
    "BatchNormInference": OpKind(module="normalization", inputs=(_FLOAT, _FEW)),
    "LayerNorm": OpKind(module="normalization"),
    "RMSNorm": OpKind(module="normalization"),
    "GroupNorm": OpKind(module="normalization"),
    "Interpolate": OpKind(module="normalization", inputs=(_FLOAT, _S32)),
    "TypeCast": OpKind(module="normalization"),
    "Reorder": OpKind(module="normalization"),
    "StaticReshape": OpKind(module="normalization"),
    "StaticTranspose": OpKind(module="normalization"),
    "Concat": OpKind("Concat"),
}

UNSUPPORTED: Final = frozenset(["Wildcard"])
"""Kinds that oneDNN documents and this project does not implement."""


class KindRow(NamedTuple):
    """A row of the table of kinds, with the names used in files."""

    kind: str
    attributes: tuple[str, ...]
    inputs: str
    outputs: str
    summary: str


def kinds_table() -> list[KindRow]:
    """List every kind that is implemented."""
    rows = []
    for name, kind in sorted(KINDS.items(), key=lambda item: item[0].lower()):
        cls = kind.operation(name, {None})
        names = kind.attributes(cls)
        attributes = tuple(SPELLINGS[n] if n == "filter_format" else n for n in names)
        inputs, outputs = ("; ".join(map(", ".join, s)) for s in (kind.inputs, kind.outputs))
        summary = (cls.__doc__ or "").strip().partition("\n")[0]
        rows.append(KindRow(name, attributes, inputs, outputs, summary))
    return rows
