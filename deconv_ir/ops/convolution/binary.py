"""OpenVINO BinaryConvolution-1: bits that agree with those of a filter, counted."""

from __future__ import annotations

import enum

from deconv_ir.errors import UnsupportedError
from deconv_ir.ir.dtypes import Array
from deconv_ir.ir.expression import SemanticsDifference
from deconv_ir.ir.geometry import PadMode, convolution_axis
from deconv_ir.ir.operation import Arrays, Context, Infos, Operation, TensorInfo
from deconv_ir.ir.options import Semantics
from deconv_ir.ops.base import attribute, choice, integers, number, operation
from deconv_ir.ops.checks import check_rank, check_type, misfit
from deconv_ir.ops.convolution.convolution import Convolution
from deconv_ir.ops.numeric import narrow, np
from deconv_ir.ops.windows import AUTO_PAD, static_geometry, window_axes


class BinaryMode(enum.Enum):
    """The meaning of the bits: 0 is -1 and 1 is 1."""

    XNOR_POPCOUNT = "xnor-popcount"


@operation(
    "BinaryConvolution-1(data, filter)",
    "f32[1,8,5,6], u1[3,8,3,3] -> f32[1,3,3,6]"
    " | strides=2,1 pads_begin=1,1 pads_end=1,1 dilations=1,1 mode=xnor-popcount pad_value=0",
)
class BinaryConvolution(Operation):
    """Binary convolution: the bits that equal the filter's, minus those that differ.

    Inputs: `data` [N, C_IN, Y, X], positive where the bit is 1, and `filter` [C_OUT, C_IN, K, K]
    of u1.  Output: [N, C_OUT, Y', X'], whole numbers in the type of the data.  Under the semantics
    of the specification pads are data of `pad_value`.  The OpenVINO runtime lets pads of
    `pad_value` 0 count nothing and those of any other than 1 be bits of 0, and takes a
    filter's bits from the lowest of each byte, as the converters of binary networks wrote them.
    """

    scratch_ratios = (8, 8)

    strides: tuple[int, ...] | None = attribute(integers(1, per_axis=True), None, required=True)
    pads_begin: tuple[int, ...] | None = attribute(integers(0, per_axis=True), None, required=True)
    pads_end: tuple[int, ...] | None = attribute(integers(0, per_axis=True), None, required=True)
    dilations: tuple[int, ...] | None = attribute(integers(1, per_axis=True), None, required=True)
    mode: BinaryMode = attribute(choice(BinaryMode))
    pad_value: float = attribute(number())
    auto_pad: PadMode = attribute(AUTO_PAD, PadMode.EXPLICIT)

    def _convolution(self) -> Convolution:
        """Return the convolution with the same shapes."""
        names = ("strides", "pads_begin", "pads_end", "dilations", "auto_pad")
        return Convolution(**{name: getattr(self, name) for name in names})

    def _with_one_type(self, inputs: Infos) -> tuple[TensorInfo, TensorInfo]:
        data, filter_ = inputs
        return data, TensorInfo(filter_.shape, data.element_type)

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        """Compute the shape of the output, which is that of a convolution."""
        check_type(inputs[0], "data", "numeric")
        found = inputs[1].element_type
        if found is not None and found.name != "u1":
            raise misfit("element-type", "filter", "be u1", found, "u1")
        for info, name in zip(inputs, self.inputs, strict=True):
            check_rank(info, name, 4)
        return self._convolution().infer(self._with_one_type(inputs), context)

    def explain(self, inputs: Infos, context: Context, output: int, axis: int) -> str | None:
        return self._convolution().explain(self._with_one_type(inputs), context, output, axis)

    def work(self, inputs: Infos, output: TensorInfo) -> int | None:
        return self._convolution().work(inputs, output)

    def compare_semantics(self, inputs: Infos, context: Context) -> SemanticsDifference | None:
        spec, openvino = self._pad(Semantics.SPEC), self._pad(Semantics.OPENVINO)
        return SemanticsDifference(
            f"pads with {spec} and reads a filter's most significant bits first",
            f"pads with {openvino} and reads the least significant first",
            (spec,),
            (openvino,),
        )

    def _pad(self, semantics: Semantics) -> int:
        """Return the value of a padding element for filter bits of 1."""
        if semantics is Semantics.OPENVINO:
            return {0.0: 0, 1.0: 1}.get(self.pad_value, -1)
        return 1 if self.pad_value > 0 else -1

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        data, filter_ = inputs
        if self.follows_runtime(context):
            filter_ = _from_the_lowest(filter_)
        axes = window_axes(self, 2)
        pads = static_geometry(
            axes,
            data.shape[2:],
            filter_.shape[2:],
            self.auto_pad,
            lambda axis, x, k: convolution_axis(axis, x, k, self.auto_pad),
        )
        padded = np.pad(
            np.where(data > 0, np.float32(1), np.float32(-1)),
            [(0, 0), (0, 0), *((g.pad_begin, g.pad_end) for g in pads)],
            constant_values=self._pad(context.semantics),
        )
        plain = Convolution(strides=self.strides, dilations=self.dilations)
        signs = np.where(filter_ != 0, np.float32(1), np.float32(-1))
        (result,) = plain.execute([padded, signs], context)
        return (narrow(result, data.dtype),)


def _from_the_lowest(bits: Array) -> Array:
    """Unpack a filter again, beginning with the lowest bit of each byte."""
    if bits.shape[1] % 8:
        raise UnsupportedError(
            "the OpenVINO runtime takes BinaryConvolution with a multiple of 8 input channels, "
            f"found {bits.shape[1]}; semantics='spec' takes any",
            rule="unsupported-operation",
        )
    return bits.reshape(-1, 8)[:, ::-1].reshape(bits.shape)
