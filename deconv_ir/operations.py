"""Operations: typed access to the attributes of layers, and operations of other packages.

`register` adds an operation of another package.

Examples
--------
>>> import deconv_ir
>>> from deconv_ir.operations import ConvolutionBackpropData
>>> graph = deconv_ir.load("samples/block/block.xml").graph
>>> graph.operation("up", ConvolutionBackpropData).pads_begin
(1, 1)
"""

from __future__ import annotations

from deconv_ir.ir.body import Body, Joint, Slices
from deconv_ir.ir.boxes import LayerTile, Statistic
from deconv_ir.ir.expression import Expression, SemanticsDifference
from deconv_ir.ir.lazy_tensor import Codes, LazyTensor
from deconv_ir.ir.operation import (
    ConstantSource,
    Context,
    Epilogue,
    Kernel,
    LayerPlan,
    Operation,
    Sharing,
    TensorInfo,
)
from deconv_ir.ir.quantization import LayerQuantization, Levels, WeightLevels
from deconv_ir.ir.scratchpad import AlgorithmCandidate, AlgorithmChoice, ScratchpadBudget, Whole
from deconv_ir.ops import all_operations, find_operation
from deconv_ir.ops.base import (
    Allowed,
    Form,
    Kind,
    attribute,
    boolean,
    choice,
    element_type,
    flags,
    integer,
    integers,
    number,
    numbers,
    shape,
    text,
)
from deconv_ir.ops.convolution.onednn import (
    ConvolutionBackwardData,
    ConvTranspose,
    DataFormat,
    FilterFormat,
    WeightsFormat,
)
from deconv_ir.ops.convolution.openvino import ConvolutionBackpropData, GroupConvolutionBackpropData
from deconv_ir.ops.plugins import register

# Transposed convolutions
__all__ = [
    "ConvTranspose",
    "ConvolutionBackpropData",
    "ConvolutionBackwardData",
    "DataFormat",
    "FilterFormat",
    "GroupConvolutionBackpropData",
    "WeightsFormat",
]
# Registration
__all__ += ["Operation", "all_operations", "find_operation", "register"]
# Attributes
__all__ += ["Allowed", "Form", "Kind", "attribute", "boolean", "choice", "element_type", "flags"]
__all__ += ["integer", "integers", "number", "numbers", "shape", "text"]
# Inference and execution
__all__ += ["AlgorithmCandidate", "AlgorithmChoice", "Body", "ConstantSource", "Context"]
__all__ += ["Epilogue", "Expression", "Joint", "Kernel", "LayerPlan", "LayerQuantization", "Levels"]
__all__ += ["Codes", "LayerTile", "LazyTensor", "Statistic", "WeightLevels"]
__all__ += ["ScratchpadBudget", "SemanticsDifference", "Sharing", "Slices", "TensorInfo", "Whole"]
