"""The conditions under which OpenVINO's CPU plugin computes a convolution in integers.

Each names the source file of OpenVINO that has it; docs/int8.md describes how they are checked.
"""

from __future__ import annotations

import enum
from typing import NamedTuple

_PLUGIN = "src/plugins/intel_cpu/src"
_PASSES = "src/common/low_precision_transformations/src"


class Int8Condition(enum.Enum):
    """Conditions of integers; the value is a sentence, and the source file that tests it."""

    NETWORK = (
        "the network has a FakeQuantize with 15, 16, 255 or 256 levels and constant ranges",
        f"{_PLUGIN}/transformations/transformation_pipeline.cpp",
    )
    OPERATION = (
        "the layer is not a GroupConvolutionBackpropData",
        f"{_PASSES}/low_precision.cpp",
    )
    RANK = ("the data have rank 3, 4 or 5", f"{_PLUGIN}/nodes/deconv.cpp")
    DATA_QUANTIZED = (
        "the data come from a FakeQuantize, or from i8 or u8 that are converted and scaled, "
        "without a layer between that computes other values",
        f"{_PASSES}/markup_precisions.cpp",
    )
    DATA_LEVELS = (
        "their FakeQuantize has 15, 16, 255 or 256 levels",
        f"{_PLUGIN}/transformations/transformation_pipeline.cpp",
    )
    DATA_RANGES = ("its ranges are constants", f"{_PASSES}/quantization_details.cpp")
    DATA_AXIS = (
        "ranges or scales of the data vary along the channels, not along another axis",
        f"{_PASSES}/layer_transformation.cpp",
    )
    DATA_SCALES = (
        "all channels of the data have one scale; in a GroupConvolution, all of a group",
        f"{_PASSES}/weightable_layer_transformation.cpp",
    )
    DATA_ZERO_POINT = (
        "the zero point of the data is a code of u8; a ConvolutionBackpropData, a depthwise "
        "convolution of rank 5, and data of i8, have none",
        f"{_PASSES}/network_helper.cpp",
    )
    WEIGHTS_QUANTIZED = (
        "the weights come from a FakeQuantize, or from integers that are converted and scaled",
        f"{_PASSES}/weightable_layer_transformation.cpp",
    )
    WEIGHTS_CONSTANT = (
        "the weights are constants; those of a Convolution and a GroupConvolution may be computed "
        "before a FakeQuantize if the data have no zero point",
        f"{_PLUGIN}/nodes/deconv.cpp",
    )
    WEIGHTS_LEVELS = (
        "their FakeQuantize has 255 or 256 levels",
        f"{_PASSES}/weightable_layer_transformation.cpp",
    )
    WEIGHTS_RANGES = (
        "its ranges are constants, and its output ranges have equal shapes",
        f"{_PASSES}/weightable_layer_transformation.cpp",
    )
    WEIGHTS_TYPE = (
        "integer weights are i8",
        f"{_PLUGIN}/transformations/transformation_pipeline.cpp",
    )
    WEIGHTS_AXIS = (
        "scales of the weights vary along the output channels only",
        f"{_PASSES}/weightable_layer_transformation.cpp",
    )
    WEIGHTS_ZERO_POINT = (
        "the weights have no zero point",
        f"{_PASSES}/weightable_layer_transformation.cpp",
    )
    OUTPUT_SHAPE = (
        "the output_shape of a ConvolutionBackpropData is a constant",
        f"{_PASSES}/convolution_backprop_data.cpp",
    )
    LAST_STRIDE = (
        "the last stride of a ConvolutionBackpropData is 3 or less",
        f"{_PLUGIN}/nodes/deconv.cpp",
    )
    KERNEL = (
        "the kernel of a ConvolutionBackpropData is as large as its stride, on each axis",
        f"{_PLUGIN}/nodes/deconv.cpp",
    )

    @property
    def text(self) -> str:
        """The condition as a sentence."""
        return str(self.value[0])

    @property
    def source(self) -> str:
        """The file of OpenVINO's repository."""
        return str(self.value[1])


class UnmetCondition(NamedTuple):
    """A condition that does not hold."""

    condition: Int8Condition
    text: str
    """The layer or number that breaks the condition."""


class Int8Answer(NamedTuple):
    """Whether the plugin computes a layer in integers.

    Attributes
    ----------
    integers : bool or None
        None: not known.
    reason : str
        Why not, or why it is not known.
    condition : Int8Condition or None
        The first condition that does not hold, if the layer stays in f32.
    """

    integers: bool | None
    reason: str = ""
    condition: Int8Condition | None = None

    def __str__(self) -> str:
        if self.integers:
            return "computed in integers"
        return f"computed in f32: {self.reason}" if self.integers is False else self._unknown

    @property
    def _unknown(self) -> str:
        return f"not known whether in integers: {self.reason}"
