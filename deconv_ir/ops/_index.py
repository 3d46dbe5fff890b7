"""Index of the files of operation types; written by `make regen`."""

_TYPES = """
color.yuv: I420toBGR I420toRGB NV12toBGR NV12toRGB
constants.constant: Const
constants.constant_like: ConvertLike Eye Identity
constants.multinomial: Multinomial
constants.parameter: Parameter Result
constants.random_uniform: RandomUniform
constants.range: Range
constants.variables: Assign ReadValue
control_flow.branches: If
control_flow.loops: Loop TensorIterator
convolution.binary: BinaryConvolution
convolution.convolution: Convolution GroupConvolution
convolution.deformable: DeformableConvolution
convolution.onednn: ConvTranspose ConvolutionBackwardData
convolution.openvino: ConvolutionBackpropData GroupConvolutionBackpropData
detection.detection_output: DetectionOutput
detection.detectron: ExperimentalDetectronDetectionOutput
    ExperimentalDetectronPriorGridGenerator ExperimentalDetectronROIFeatureExtractor
    ExperimentalDetectronTopKROIs
detection.generate_proposals: ExperimentalDetectronGenerateProposalsSingleImage
    GenerateProposals
detection.multiclass: MatrixNms MulticlassNms
detection.nms: NMSRotated NonMaxSuppression
detection.prior_box: PriorBox PriorBoxClustered
detection.proposal: Proposal
detection.roi_align: ROIAlign ROIAlignRotated
detection.roi_pooling: DeformablePSROIPooling PSROIPooling ROIPooling
detection.yolo: RegionYolo ReorgYolo
elementwise.activations: Clamp Elu Gelu HardSigmoid PReLU Selu Swish
elementwise.arithmetic: Add BitwiseAnd BitwiseLeftShift BitwiseOr BitwiseRightShift BitwiseXor
    Divide Equal FloorMod Greater GreaterEqual Less LessEqual LogicalAnd LogicalOr LogicalXor
    Maximum Minimum Mod Multiply NotEqual Power SquaredDifference Subtract Xor
elementwise.convert: Convert
elementwise.promote: ConvertPromoteTypes
elementwise.select: Select
elementwise.unary: Abs Acos Acosh Asin Asinh Atan Atanh BitwiseNot Ceiling Cos Cosh Erf Exp
    Floor HSigmoid HSwish IsFinite IsInf IsNaN Log LogicalNot Mish Negative ReLU Round Sigmoid
    Sign Sin Sinh SoftPlus SoftSign Sqrt Tan Tanh
gather_scatter.embedding: EmbeddingBagOffsets EmbeddingBagOffsetsSum EmbeddingBagPacked
    EmbeddingBagPackedSum EmbeddingSegmentsSum
gather_scatter.gather: Gather
gather_scatter.gather_elements: GatherElements GatherND
gather_scatter.gather_tree: GatherTree
gather_scatter.scatter: ScatterElementsUpdate ScatterNDUpdate ScatterUpdate SliceScatter
gather_scatter.searching: Bucketize SearchSorted Unique
gather_scatter.segment_max: SegmentMax
gather_scatter.sorting: NonZero TopK
gather_scatter.sparse: SparseFillEmptyRows
linear_algebra.attention: Einsum ScaledDotProductAttention
linear_algebra.fourier: DFT IDFT IRDFT RDFT
linear_algebra.matmul: Inverse MatMul
linear_algebra.stft: ISTFT STFT
normalization.normalization: BatchNormInference GRN GroupNormalization LRN MVN NormalizeL2
normalization.rms_norm: RMSNorm
normalization.softmax: LogSoftmax SoftMax
pooling.adaptive: AdaptiveAvgPool AdaptiveMaxPool
pooling.avg_pool: AvgPool
pooling.max_pool: MaxPool
quantization.fake_convert: FakeConvert
quantization.quantize: FakeQuantize
recurrent.ctc: CTCGreedyDecoder CTCGreedyDecoderSeqLen CTCLoss
recurrent.recurrent: GRUCell GRUSequence LSTMCell LSTMSequence RNNCell RNNSequence
reduction.reduction: ReduceL1 ReduceL2 ReduceLogicalAnd ReduceLogicalOr ReduceMax ReduceMean
    ReduceMin ReduceProd ReduceSum
resample.grid_sample: GridSample
resample.interpolate: Interpolate
shape.broadcast: Broadcast Tile
shape.concat: Concat Split VariadicSplit
shape.order: CumSum OneHot Reverse ReverseSequence Roll Transpose
shape.pad: Pad
shape.patches: Col2Im ExtractImagePatches
shape.reshape: Reshape ShapeOf
shape.slicing: Slice StridedSlice
shape.space: BatchToSpace DepthToSpace ShuffleChannels SpaceToBatch SpaceToDepth
shape.squeeze: Squeeze Unsqueeze
shape.strings: StringTensorPack StringTensorUnpack
"""

MODULES: dict[str, str] = {}
for _word in _TYPES.split():
    if _word.endswith(":"):
        _module = _word[:-1]
    else:
        MODULES[_word] = _module
