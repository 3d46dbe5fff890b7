"""Elementwise operations and products of oneDNN Graph."""

from __future__ import annotations

import abc
import enum
import math
from collections.abc import Sequence
from typing import ClassVar

from deconv_ir.errors import InputError, UnsupportedError
from deconv_ir.ir.dtypes import F32, U8, ElementType
from deconv_ir.ir.operation import Arrays, Context, Infos, Operation, TensorInfo
from deconv_ir.ops.base import attribute, boolean, choice, element_type, integer, integers, number
from deconv_ir.ops.checks import check_single, normalize_axis, only
from deconv_ir.ops.convolution.onednn import DATA_FORMAT, DataFormat
from deconv_ir.ops.elementwise.activations import GeluMode
from deconv_ir.ops.elementwise.broadcasting import BroadcastRule
from deconv_ir.ops.onednn.decomposition import KINDS, Composite, Decomposition, Ref, kind
from deconv_ir.ops.onednn.term import Term
from deconv_ir.ops.onednn.windows import add_channels

BINARY = ("Add", "Subtract", "Multiply", "Divide", "Maximum", "Minimum", "SquaredDifference")


class OneDNNBinary(Composite):
    """Two arrays of any float types, computed in f32 if the types differ."""

    computes: ClassVar[str]

    auto_broadcast: BroadcastRule = attribute(choice(BroadcastRule), BroadcastRule.NUMPY)
    output_type: ElementType | None = attribute(element_type(), None)

    @property
    def is_sum(self) -> bool:
        return self.computes == "Add" and self.auto_broadcast is BroadcastRule.NUMPY

    @property
    def is_product(self) -> bool:
        return self.computes == "Multiply" and self.auto_broadcast is BroadcastRule.NUMPY

    def decompose(self, steps: Decomposition) -> Sequence[Ref]:
        """Compute, and round to the declared type."""
        infos = steps.infos[:2]
        mixed = infos[0].element_type is not infos[1].element_type
        refs = [steps.cast(ref, F32) if mixed else steps.wide(ref) for ref in (0, 1)]
        found = steps.add(type(self).computes, *refs, auto_broadcast=self.auto_broadcast)
        return (steps.cast(found, self.output_type or infos[0].element_type),)


for _name in BINARY:
    KINDS[_name] = kind(_name, ("src_0", "src_1"))(
        type(f"OneDNN{_name}", (OneDNNBinary,), {"computes": _name, "__module__": __name__})
    )
    globals()[f"OneDNN{_name}"] = KINDS[_name]


@kind("BiasAdd", ("src", "bias"))
class BiasAdd(Composite):
    """A bias added to each channel."""

    data_format: DataFormat = attribute(DATA_FORMAT, DataFormat.NXC)

    def decompose(self, steps: Decomposition) -> Sequence[Ref]:
        """Broadcast the bias along the channels."""
        data, bias = steps.wide(0), steps.wide(1)
        if self.data_format is DataFormat.NCX:
            bias = add_channels(steps, bias, data, "bias")
        found = steps.add("Add", data, bias)
        return (steps.cast(found, steps.infos[0].element_type),)


class Accumulation(enum.Enum):
    """The precision in which oneDNN may sum; here, sums are always in f32."""

    STRICT = "strict"
    RELAXED = "relaxed"
    ANY = "any"
    F32 = "f32"
    S32 = "s32"
    F16 = "f16"


@kind("MatMul", ("src", "weights", "bias"), 2)
class OneDNNMatMul(Composite):
    """Product of matrices, with an optional bias."""

    transpose_a: bool = attribute(boolean(), False)
    transpose_b: bool = attribute(boolean(), False)
    accumulation_mode: Accumulation = attribute(
        choice(Accumulation, fold=False), Accumulation.STRICT
    )
    output_type: ElementType | None = attribute(element_type(), None)

    def decompose(self, steps: Decomposition) -> Sequence[Ref]:
        """Multiply, and add the bias."""
        types = {info.element_type for info in steps.infos[:2]}
        refs = [steps.wide(ref) if len(types) == 1 else steps.cast(ref, F32) for ref in (0, 1)]
        found = steps.add(
            "MatMul", *refs, transpose_a=self.transpose_a, transpose_b=self.transpose_b
        )
        if steps.count > 2:
            found = steps.add("Add", found, steps.wide(2))
        return (steps.cast(found, self.output_type or steps.infos[0].element_type),)


class _CompositeUnary(Composite, abc.ABC):
    @abc.abstractmethod
    def compute(self, x: Term) -> Term:
        """Compute in f32."""

    def decompose(self, steps: Decomposition) -> Sequence[Ref]:
        """Compute in f32, and round."""
        found = self.compute(Term(steps, steps.wide(0)))
        return (found.cast(steps.infos[0].element_type),)


@kind("Square", ("src",))
class Square(_CompositeUnary):
    """The product of each element with itself."""

    def compute(self, x: Term) -> Term:
        return x * x


@kind("Reciprocal", ("src",))
class Reciprocal(_CompositeUnary):
    """One divided by each element."""

    def compute(self, x: Term) -> Term:
        return 1 / x


@kind("Pow", ("src",))
class Pow(_CompositeUnary):
    """Each element to the power of beta."""

    beta: float = attribute(number())

    def compute(self, x: Term) -> Term:
        return x.apply("Power", self.beta)


@kind("LeakyReLU", ("src",))
class LeakyReLU(_CompositeUnary):
    """x, or alpha * x where x is negative."""

    alpha: float = attribute(number())

    def compute(self, x: Term) -> Term:
        return x.apply("PReLU", x.constant((self.alpha,)))


@kind("SoftPlus", ("src",))
class OneDNNSoftPlus(_CompositeUnary):
    """log(1 + exp(beta * x)) / beta."""

    beta: float = attribute(number(), 1.0)

    def compute(self, x: Term) -> Term:
        if self.beta == 1:
            return x.apply("SoftPlus")
        return (x * self.beta).apply("SoftPlus") / self.beta


@kind("HardSigmoid", ("src",))
class OneDNNHardSigmoid(_CompositeUnary):
    """max(0, min(1, alpha * x + beta))."""

    alpha: float = attribute(number())
    beta: float = attribute(number())

    def compute(self, x: Term) -> Term:
        return x.apply("HardSigmoid", self.alpha, self.beta)


class GeluKind(enum.Enum):
    """The formula of GELU."""

    ERF = "gelu_erf"
    TANH = "gelu_tanh"


@kind("GELU", ("src",))
class OneDNNGelu(_CompositeUnary):
    """x * (1 + erf(x / sqrt 2)) / 2, or its approximation by tanh."""

    mode: GeluKind = attribute(choice(GeluKind, fold=False), GeluKind.ERF)

    def compute(self, x: Term) -> Term:
        mode = GeluMode.ERF if self.mode is GeluKind.ERF else GeluMode.TANH
        return x.apply("Gelu", approximation_mode=mode)


def align_slope(steps: Decomposition, slope: Ref, data: Ref, *, channels_last: bool) -> Ref:
    """Reshape a list of slopes, one for each channel, to broadcast to the data."""
    shape = steps.infos[slope].shape
    if channels_last or steps.rank(slope) != 1 or shape == (1,):
        return slope
    return steps.reshape(slope, (-1, *(1,) * (steps.rank(data) - 2)))


@kind("PReLU", ("src", "slope"))
class OneDNNPReLU(Composite):
    """x, or slope * x where x is negative."""

    data_format: DataFormat = attribute(DATA_FORMAT, DataFormat.NXC)
    per_channel_broadcast: bool = attribute(boolean(), True)

    def decompose(self, steps: Decomposition) -> Sequence[Ref]:
        """Broadcast the slope; a list has one number for each channel."""
        data, slope = steps.wide(0), steps.wide(1)
        zero = steps.constant((0.0,), steps.infos[data].element_type or F32, ())
        last = self.data_format is DataFormat.NXC or not self.per_channel_broadcast
        slope = align_slope(steps, slope, data, channels_last=last)
        low = steps.add("Multiply", slope, steps.add("Minimum", data, zero))
        found = steps.add("Add", steps.add("Maximum", data, zero), low)
        return (steps.cast(found, steps.infos[0].element_type),)


class _SoftmaxMode(enum.Enum):
    NONE = "none"
    INF_AS_ZERO = "inf_as_zero"


@kind("SoftMax", ("src",))
class OneDNNSoftMax(Composite):
    """exp(x) divided by its sum along an axis; a second output is the logarithm of that sum."""

    axis: int = attribute(integer(), 1)
    mode: _SoftmaxMode = attribute(choice(_SoftmaxMode, fold=False), _SoftmaxMode.NONE)
    output_type: ElementType | None = attribute(element_type(), None)
    output_count: int = attribute(integer(1), 1)

    def decompose(self, steps: Decomposition) -> Sequence[Ref]:
        """Compute in f32; inf_as_zero: zeros where all elements are -inf."""
        x = Term(steps, steps.wide(0))
        axes = [normalize_axis(self.axis, steps.rank(x.ref))]
        found = x.apply("SoftMax", axis=axes[0])
        safe = self.mode is _SoftmaxMode.INF_AS_ZERO
        if not safe and self.output_count < 2:
            return (found.cast(self.output_type or steps.infos[0].element_type),)
        most = x.reduce("Max", axes, keep=True)
        if safe:
            nothing = most.apply("Equal", -math.inf)
            found = nothing.where(0, found, x)
            most = nothing.where(0, most, x)
        result = [found.cast(self.output_type or steps.infos[0].element_type)]
        if self.output_count > 1:
            total = (x - most).apply("Exp").reduce("Sum", axes, keep=True)
            result.append((most + total.apply("Log")).cast(F32))
        return result


class _Reduce(Composite):
    computes: ClassVar[str]

    axes: tuple[int, ...] | None = attribute(integers(), None)
    keep_dims: bool = attribute(boolean(), False)

    def decompose(self, steps: Decomposition) -> Sequence[Ref]:
        """Read the axes from the input or from the attribute."""
        axes = 1 if steps.count > 1 else steps.constant(self.axes or ())
        data = steps.wide(0)
        found = steps.add(type(self).computes, data, axes, keep_dims=self.keep_dims)
        return (steps.cast(found, steps.infos[0].element_type),)


for _name, _doc in {
    "L1": "The sum of the absolute values along some axes.",
    "L2": "The square root of the sum of the squares along some axes.",
    "Max": "Maximum along some axes.",
    "Mean": "The mean along some axes.",
    "Min": "Minimum along some axes.",
    "Prod": "The product along some axes.",
    "Sum": "The sum along some axes.",
}.items():
    _full = f"Reduce{_name}"
    _members = {"computes": _full, "__module__": __name__, "__doc__": _doc}
    globals()[f"OneDNN{_full}"] = kind(_full, ("src", "axes"), 1)(
        type(f"OneDNN{_full}", (_Reduce,), _members)
    )


@kind("Dropout", ("src", "seed", "offset", "probability"))
class Dropout(Operation):
    """Without effect where probability is 0; oneDNN does not define its random numbers."""

    output_count: int = attribute(integer(1), 1)

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        """Keep shape and type; a second output is the mask."""
        for name, info in zip(self.inputs[1:], inputs[1:], strict=True):
            check_single(info, name)
        found = TensorInfo(inputs[0].shape, inputs[0].element_type)
        return (found, found._replace(element_type=U8))[: self.output_count]

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        """Return the input, and ones as mask."""
        import numpy as np

        probability = float(only(inputs[3], "probability"))
        if probability:
            if not 0 <= probability <= 1:
                raise InputError(f"probability must be from 0 to 1, found {probability:g}")
            raise UnsupportedError(
                f"Dropout with probability {probability:g} is random, "
                "and can only be run with probability 0",
                rule="unsupported-operation",
            )
        return (inputs[0], np.ones(inputs[0].shape, np.uint8))[: self.output_count]
