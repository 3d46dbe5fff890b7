"""Convolution and transposed convolution: arrays in, arrays out.

This package knows no layers, no attributes and no padding rules: an axis is
given by its stride and dilation, by the position in the natural output at
which the output begins, and by the output's extent (`deconv_ir.ir.geometry`
finds the two).
"""

from deconv_ir.kernels.activation import Activation, ActivationType
from deconv_ir.kernels.dispatch import (
    DEFAULT_SCRATCH_BYTES,
    pack_convolution,
    pack_deconvolution,
    pack_filter,
)
from deconv_ir.kernels.info import KernelInfo, kernel_info
from deconv_ir.kernels.native import background_packer
from deconv_ir.kernels.plan import ConvolutionKernel, ConvolutionPlan
from deconv_ir.kernels.reference import naive, naive_convolution
from deconv_ir.kernels.runtime.memory import empty, reuse_within, set_memory_pool_limit
from deconv_ir.kernels.runtime.threads import get_threads, set_threads

__all__ = [
    "DEFAULT_SCRATCH_BYTES",
    "Activation",
    "ActivationType",
    "ConvolutionKernel",
    "ConvolutionPlan",
    "KernelInfo",
    "background_packer",
    "empty",
    "get_threads",
    "kernel_info",
    "naive",
    "naive_convolution",
    "pack_convolution",
    "pack_deconvolution",
    "pack_filter",
    "reuse_within",
    "set_memory_pool_limit",
    "set_threads",
]
