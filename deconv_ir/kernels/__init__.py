"""Transposed convolution, and convolution: arrays in, arrays out.

This room knows no layers, no attributes and no padding rules: an axis is
given by its stride and dilation, by the position in the natural output at
which the output begins, and by the output's extent (`deconv_ir.geometry`
finds the two).
"""

from deconv_ir.kernels.convolution import Convolution
from deconv_ir.kernels.dispatch import DEFAULT_SCRATCH_BYTES, Deconvolution
from deconv_ir.kernels.naive import naive

__all__ = ["DEFAULT_SCRATCH_BYTES", "Convolution", "Deconvolution", "naive"]
