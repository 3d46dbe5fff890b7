"""The names of OpenVINO's operations in IRs.

Source: OpenVINO documentation, "Available Operation Sets", opset1 to opset17.
"""

from __future__ import annotations

from typing import Final

from deconv_ir.hints import Advice
from deconv_ir.suggestions import nearest

LAST_OPSET: Final = 17

_NAMES = """
Abs Acos Acosh AdaptiveAvgPool AdaptiveMaxPool Add Asin Asinh Assign Atan Atanh AvgPool
BatchNormInference BatchToSpace BinaryConvolution BitwiseAnd BitwiseLeftShift BitwiseNot
BitwiseOr BitwiseRightShift BitwiseXor Broadcast Bucketize CTCGreedyDecoder
CTCGreedyDecoderSeqLen CTCLoss Ceiling Clamp Col2Im Concat Const Convert ConvertLike
ConvertPromoteTypes Convolution ConvolutionBackpropData Cos Cosh CumSum DFT
DeformableConvolution DeformablePSROIPooling DepthToSpace DetectionOutput Divide Einsum Elu
EmbeddingBagOffsets EmbeddingBagOffsetsSum EmbeddingBagPacked EmbeddingBagPackedSum
EmbeddingSegmentsSum Equal Erf ErfInv Exp ExperimentalDetectronDetectionOutput
ExperimentalDetectronGenerateProposalsSingleImage ExperimentalDetectronPriorGridGenerator
ExperimentalDetectronROIFeatureExtractor ExperimentalDetectronTopKROIs ExtractImagePatches Eye
FakeConvert FakeQuantize Floor FloorMod GRN GRUCell GRUSequence Gather GatherElements GatherND
GatherTree Gelu GenerateProposals Greater GreaterEqual GridSample GroupConvolution
GroupConvolutionBackpropData GroupNormalization GroupedMatMul HSigmoid HSwish HardSigmoid I420toBGR
I420toRGB IDFT IRDFT ISTFT Identity If Interpolate Inverse IsFinite IsInf IsNaN LRN LSTMCell
LSTMSequence Less LessEqual Log LogSoftmax LogicalAnd LogicalNot LogicalOr LogicalXor Loop MVN
MatMul MatrixNms MaxPool Maximum Minimum Mish Mod MulticlassNms Multinomial Multiply
NMSRotated NV12toBGR NV12toRGB Negative NonMaxSuppression NonZero NormalizeL2 NotEqual OneHot
PReLU PSROIPooling Pad Parameter Power PriorBox PriorBoxClustered Proposal RDFT RMSNorm
RNNCell RNNSequence ROIAlign ROIAlignRotated ROIPooling RandomUniform Range ReLU ReadValue
ReduceL1 ReduceL2 ReduceLogicalAnd ReduceLogicalOr ReduceMax ReduceMean ReduceMin ReduceProd
ReduceSum RegionYolo ReorgYolo Reshape Result ReverseSequence Roll Round STFT
ScaledDotProductAttention ScatterElementsUpdate ScatterNDUpdate ScatterUpdate SearchSorted
SegmentMax Select Selu ShapeOf ShuffleChannels Sigmoid Sign Sin Sinh Slice SliceScatter
SoftMax SoftPlus SoftSign SpaceToBatch SpaceToDepth SparseFillEmptyRows Split Sqrt
SquaredDifference Squeeze StridedSlice StringTensorPack StringTensorUnpack Subtract Swish Tan
Tanh TensorIterator Tile TopK Transpose Unique Unsqueeze VariadicSplit Xor
"""

OPERATIONS: Final = frozenset(_NAMES.split())

EXTENSIONS: Final = frozenset(
    {"", "extension", "experimental", "ie_internal_opset", "type_relaxed_opset"}
)
"""Versions of layers that belong to no opset."""

OF_OPSET_2: Final = frozenset({"MVN", "ROIPooling", "ReorgYolo"})
"""Types that OpenVINO's reader takes from opset2 if the version is opset1, as early files say."""

_OF_OPSET_6 = """
ExperimentalDetectronDetectionOutput ExperimentalDetectronGenerateProposalsSingleImage
ExperimentalDetectronPriorGridGenerator ExperimentalDetectronROIFeatureExtractor
ExperimentalDetectronTopKROIs GRUCell RNNCell Proposal
"""
OF_OPSET_6: Final = frozenset(_OF_OPSET_6.split())
"""Types that OpenVINO's reader takes from opset6 if the version is extension or experimental."""


OF_OPSET_17: Final = frozenset({"Convert", "ErfInv", "GroupedMatMul", "Parameter", "ShapeOf"})
"""Types that opset17 of OpenVINO 2026.4 has, whose opset is not complete."""


def nearest_operation(type_name: str, version: str | None) -> Advice | None:
    """Return a hint for a type that is in no opset; None: an extension, or no similar name."""
    if type_name in OPERATIONS or (version and not version.startswith("opset")):
        return None
    return nearest(type_name, OPERATIONS)
