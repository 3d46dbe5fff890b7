"""Operations: what layers do, and how another package adds its own.

    from deconv_ir.operations import ConvolutionBackpropData
    model.graph.operation("up", ConvolutionBackpropData).strides

See `register` for an operation of another package, and docs/extending.md.
"""

from __future__ import annotations

from deconv_ir.ir.operation import Context, Operation, TensorInfo
from deconv_ir.ops import all_operations, find_operation
from deconv_ir.ops.base import (
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
from deconv_ir.ops.convolution.conv_transpose import ConvTranspose
from deconv_ir.ops.convolution.convolution_backprop_data import ConvolutionBackpropData
from deconv_ir.ops.convolution.convolution_backward_data import ConvolutionBackwardData
from deconv_ir.ops.convolution.group_convolution_backprop_data import GroupConvolutionBackpropData
from deconv_ir.ops.plugins import register

__all__ = [
    "Context",
    "ConvTranspose",
    "ConvolutionBackpropData",
    "ConvolutionBackwardData",
    "GroupConvolutionBackpropData",
    "Operation",
    "TensorInfo",
    "all_operations",
    "attribute",
    "boolean",
    "choice",
    "element_type",
    "find_operation",
    "flags",
    "integer",
    "integers",
    "number",
    "numbers",
    "register",
    "shape",
    "text",
]
