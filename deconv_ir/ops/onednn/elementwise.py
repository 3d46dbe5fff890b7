"""Elementwise operations and products of oneDNN Graph."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import ClassVar

from deconv_ir.errors import UnsupportedError
from deconv_ir.ir.dtypes import F32, ElementType
from deconv_ir.ops.base import attribute, boolean, choice, element_type, integer, integers, number
from deconv_ir.ops.convolution.onednn import DATA_FORMAT, DataFormat
from deconv_ir.ops.elementwise.activations import GeluMode
from deconv_ir.ops.elementwise.broadcasting import Broadcast
from deconv_ir.ops.onednn.program import KINDS, Composite, Program, Ref, kind
from deconv_ir.ops.onednn.windows import add_channels

BINARY = ("Add", "Subtract", "Multiply", "Divide", "Maximum", "Minimum", "SquaredDifference")


class Binary(Composite):
    """Two arrays of any float types, computed in f32 where they are not the same."""

    computes: ClassVar[str]

    auto_broadcast: Broadcast = attribute(choice(Broadcast), Broadcast.NUMPY)
    output_type: ElementType | None = attribute(element_type(), None)

    def program(self, program: Program) -> Sequence[Ref]:
        """Compute, and round to the declared type."""
        infos = program.infos[:2]
        mixed = infos[0].element_type is not infos[1].element_type
        refs = [program.cast(ref, F32) if mixed else program.wide(ref) for ref in (0, 1)]
        found = program.add(type(self).computes, *refs, auto_broadcast=self.auto_broadcast)
        return (program.cast(found, self.output_type or infos[0].element_type),)


for _name in BINARY:
    KINDS[_name] = kind(_name, ("src_0", "src_1"))(
        type(f"OneDNN{_name}", (Binary,), {"computes": _name, "__module__": __name__})
    )
    globals()[f"OneDNN{_name}"] = KINDS[_name]


@kind("BiasAdd", ("src", "bias"))
class BiasAdd(Composite):
    """One number added to each channel."""

    data_format: DataFormat = attribute(DATA_FORMAT, DataFormat.NXC)

    def program(self, program: Program) -> Sequence[Ref]:
        """Broadcast the bias along the channels."""
        data, bias = program.wide(0), program.wide(1)
        if self.data_format is DataFormat.NCX:
            bias = add_channels(program, bias, data, "bias")
        found = program.add("Add", data, bias)
        return (program.cast(found, program.infos[0].element_type),)


@kind("MatMul", ("src", "weights", "bias"), 2)
class OneDNNMatMul(Composite):
    """Product of matrices, with an optional bias."""

    transpose_a: bool = attribute(boolean(), False)
    transpose_b: bool = attribute(boolean(), False)
    output_type: ElementType | None = attribute(element_type(), None)

    def program(self, program: Program) -> Sequence[Ref]:
        """Multiply, and add the bias."""
        types = {info.element_type for info in program.infos[:2]}
        refs = [program.wide(ref) if len(types) == 1 else program.cast(ref, F32) for ref in (0, 1)]
        found = program.add(
            "MatMul", *refs, transpose_a=self.transpose_a, transpose_b=self.transpose_b
        )
        if program.count > 2:
            found = program.add("Add", found, program.wide(2))
        return (program.cast(found, self.output_type or program.infos[0].element_type),)


class _Unary(Composite):
    def compute(self, program: Program, data: Ref) -> Ref:
        """Compute in f32."""
        raise NotImplementedError

    def program(self, program: Program) -> Sequence[Ref]:
        """Compute in f32, and round."""
        found = self.compute(program, program.wide(0))
        return (program.cast(found, program.infos[0].element_type),)


@kind("Square", ("src",))
class Square(_Unary):
    """The product of each element with itself."""

    def compute(self, program: Program, data: Ref) -> Ref:
        """Multiply."""
        return program.add("Multiply", data, data)


@kind("Reciprocal", ("src",))
class Reciprocal(_Unary):
    """One divided by each element."""

    def compute(self, program: Program, data: Ref) -> Ref:
        """Divide."""
        one = program.constant((1.0,), program.infos[data].element_type or F32, ())
        return program.add("Divide", one, data)


@kind("LeakyReLU", ("src",))
class LeakyReLU(_Unary):
    """x, or alpha * x where x is negative."""

    alpha: float = attribute(number())

    def compute(self, program: Program, data: Ref) -> Ref:
        """Take the operation with a slope."""
        slope = program.constant((self.alpha,), program.infos[data].element_type or F32)
        return program.add("PReLU", data, slope)


@kind("SoftPlus", ("src",))
class OneDNNSoftPlus(_Unary):
    """log(1 + exp(beta * x)) / beta."""

    beta: float = attribute(number(), 1.0)

    def compute(self, program: Program, data: Ref) -> Ref:
        """Scale before and after."""
        if self.beta == 1:
            return program.add("SoftPlus", data)
        beta = program.constant((self.beta,), program.infos[data].element_type or F32, ())
        inner = program.add("SoftPlus", program.add("Multiply", data, beta))
        return program.add("Divide", inner, beta)


@kind("HardSigmoid", ("src",))
class OneDNNHardSigmoid(_Unary):
    """max(0, min(1, alpha * x + beta))."""

    alpha: float = attribute(number())
    beta: float = attribute(number())

    def compute(self, program: Program, data: Ref) -> Ref:
        """Take the operation with parameters as inputs."""
        wide = program.infos[data].element_type or F32
        parameters = [program.constant((v,), wide, ()) for v in (self.alpha, self.beta)]
        return program.add("HardSigmoid", data, *parameters)


class _GeluKind(enum.Enum):
    ERF = "gelu_erf"
    TANH = "gelu_tanh"


@kind("GELU", ("src",))
class OneDNNGelu(_Unary):
    """x * (1 + erf(x / sqrt 2)) / 2, or its approximation by tanh."""

    mode: _GeluKind = attribute(choice(_GeluKind, fold=False), _GeluKind.ERF)

    def compute(self, program: Program, data: Ref) -> Ref:
        """Take the operation of the mode."""
        mode = GeluMode.ERF if self.mode is _GeluKind.ERF else GeluMode.TANH
        return program.add("Gelu", data, approximation_mode=mode)


@kind("PReLU", ("src", "slope"))
class OneDNNPReLU(Composite):
    """x, or slope * x where x is negative."""

    data_format: DataFormat = attribute(DATA_FORMAT, DataFormat.NXC)
    per_channel_broadcast: bool = attribute(boolean(), True)

    def program(self, program: Program) -> Sequence[Ref]:
        """Broadcast the slope; a list has one number for each channel."""
        data, slope = program.wide(0), program.wide(1)
        zero = program.constant((0.0,), program.infos[data].element_type or F32, ())
        rank = program.rank(data)
        listed = program.rank(slope) == 1 and program.infos[slope].shape != (1,)
        if listed and self.per_channel_broadcast and self.data_format is DataFormat.NCX:
            slope = program.reshape(slope, (-1, *(1,) * (rank - 2)))
        low = program.add("Multiply", slope, program.add("Minimum", data, zero))
        found = program.add("Add", program.add("Maximum", data, zero), low)
        return (program.cast(found, program.infos[0].element_type),)


class _SoftmaxMode(enum.Enum):
    NONE = "none"
    INF_AS_ZERO = "inf_as_zero"


@kind("SoftMax", ("src",))
class OneDNNSoftMax(Composite):
    """exp(x) divided by its sum along an axis."""

    axis: int = attribute(integer(), 1)
    mode: _SoftmaxMode = attribute(choice(_SoftmaxMode, fold=False), _SoftmaxMode.NONE)
    output_type: ElementType | None = attribute(element_type(), None)

    def program(self, program: Program) -> Sequence[Ref]:
        """Compute in f32; a second output would be the logarithms of the sums."""
        if self.mode is not _SoftmaxMode.NONE:
            raise UnsupportedError(
                f"mode {self.mode.value} is not supported", rule="unsupported-operation"
            )
        found = program.add("SoftMax", program.wide(0), axis=self.axis)
        return (program.cast(found, self.output_type or program.infos[0].element_type),)


class _Reduce(Composite):
    computes: ClassVar[str]

    axes: tuple[int, ...] | None = attribute(integers(), None)
    keep_dims: bool = attribute(boolean(), False)

    def program(self, program: Program) -> Sequence[Ref]:
        """Take the axes from the input or from the attribute."""
        axes = 1 if program.count > 1 else program.constant(self.axes or ())
        data = program.wide(0)
        found = program.add(type(self).computes, data, axes, keep_dims=self.keep_dims)
        return (program.cast(found, program.infos[0].element_type),)


for _name in ("L1", "L2", "Max", "Mean", "Min", "Prod", "Sum"):
    _full = f"Reduce{_name}"
    globals()[f"OneDNN{_full}"] = kind(_full, ("src", "axes"), 1)(
        type(f"OneDNN{_full}", (_Reduce,), {"computes": _full, "__module__": __name__})
    )
