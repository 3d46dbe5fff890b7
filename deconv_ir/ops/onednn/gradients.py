"""Gradients of elementwise operations, softmax and normalisations of oneDNN Graph."""

from __future__ import annotations

import abc
import math
from collections.abc import Sequence

from deconv_ir.errors import ShapeError
from deconv_ir.ir.dtypes import ElementType
from deconv_ir.ir.shapes import format_shape
from deconv_ir.ops.base import attribute, boolean, choice, element_type, integer, number
from deconv_ir.ops.checks import normalize_axis
from deconv_ir.ops.convolution.onednn import DATA_FORMAT, DataFormat
from deconv_ir.ops.onednn.decomposition import Composite, Decomposition, Ref, kind
from deconv_ir.ops.onednn.elementwise import GeluKind, align_slope
from deconv_ir.ops.onednn.term import Term


class _Gradient(Composite, abc.ABC):
    """diff_dst times the derivative at src, or the derivative in terms of dst."""

    @abc.abstractmethod
    def slope(self, x: Term) -> Term:
        """Return the derivative."""

    def decompose(self, steps: Decomposition) -> Sequence[Ref]:
        """Compute in f32, and round."""
        slope = self.slope(Term(steps, steps.wide(0)))
        found = Term(steps, steps.wide(1)) * slope
        return (found.cast(steps.infos[1].element_type),)


class _FromOutput(_Gradient):
    use_dst: bool = attribute(boolean(), True)


def _inside(x: Term, low: float, high: float) -> Term:
    return (x > low) & (x < high)


@kind("AbsBackward", ("src", "diff_dst"))
class AbsBackward(_Gradient):
    """diff_dst times the sign of src."""

    def slope(self, x: Term) -> Term:
        return x.apply("Sign")


@kind("ClampBackward", ("src", "diff_dst"))
class ClampBackward(_FromOutput):
    """diff_dst where min < src < max, and 0 elsewhere."""

    min: float = attribute(number())
    max: float = attribute(number())

    def slope(self, x: Term) -> Term:
        return _inside(x, self.min, self.max).where(1, 0, x)


@kind("EluBackward", ("src", "diff_dst"))
class EluBackward(_FromOutput):
    """diff_dst, times alpha * exp(src) where src is negative."""

    alpha: float = attribute(number())

    def slope(self, x: Term) -> Term:
        """Dst + alpha is alpha * exp(src)."""
        low = x + self.alpha if self.use_dst else x.apply("Exp") * self.alpha
        return (x > 0).where(1, low, x)


@kind("GELUBackward", ("src", "diff_dst"))
class GeluBackward(_Gradient):
    """diff_dst times the derivative of GELU."""

    mode: GeluKind = attribute(choice(GeluKind, fold=False), GeluKind.ERF)

    def slope(self, x: Term) -> Term:
        if self.mode is GeluKind.ERF:
            share = (x / math.sqrt(2)).apply("Erf") * 0.5 + 0.5
            return share + x * (x * x * -0.5).apply("Exp") / math.sqrt(2 * math.pi)
        scale = math.sqrt(2 / math.pi)
        square = x * x
        tanh = ((x + square * x * 0.044715) * scale).apply("Tanh")
        inner = x * (1 - tanh) * (square * (3 * 0.044715 * scale) + scale)
        return (tanh + 1) * 0.5 * (inner + 1)


@kind("HardSigmoidBackward", ("src", "diff_dst"))
class HardSigmoidBackward(_Gradient):
    """diff_dst * alpha where 0 < alpha * src + beta < 1, and 0 elsewhere."""

    alpha: float = attribute(number())
    beta: float = attribute(number())

    def slope(self, x: Term) -> Term:
        return _inside(x * self.alpha + self.beta, 0, 1).where(self.alpha, 0, x)


@kind("HardSwishBackward", ("src", "diff_dst"))
class HardSwishBackward(_Gradient):
    """diff_dst * (2 * src + 3) / 6 between -3 and 3, 0 below and diff_dst above."""

    def slope(self, x: Term) -> Term:
        return (x > -3).where((x < 3).where((x * 2 + 3) / 6, 1, x), 0, x)


@kind("MishBackward", ("src", "diff_dst"))
class MishBackward(_Gradient):
    """diff_dst times the derivative of Mish."""

    def slope(self, x: Term) -> Term:
        tanh = x.apply("SoftPlus").apply("Tanh")
        return tanh + x * x.apply("Sigmoid") * (1 - tanh * tanh)


@kind("ReLUBackward", ("src", "diff_dst"))
class ReLUBackward(_FromOutput):
    """diff_dst where src is positive, and 0 elsewhere."""

    def slope(self, x: Term) -> Term:
        return (x > 0).where(1, 0, x)


@kind("SigmoidBackward", ("src", "diff_dst"))
class SigmoidBackward(_FromOutput):
    """diff_dst * dst * (1 - dst)."""

    def slope(self, x: Term) -> Term:
        y = x if self.use_dst else x.apply("Sigmoid")
        return y * (1 - y)


@kind("SoftPlusBackward", ("src", "diff_dst"))
class SoftPlusBackward(_Gradient):
    """diff_dst / (1 + exp(-beta * src))."""

    beta: float = attribute(number(), 1.0)

    def slope(self, x: Term) -> Term:
        return (x * self.beta).apply("Sigmoid")


@kind("SqrtBackward", ("src", "diff_dst"))
class SqrtBackward(_FromOutput):
    """diff_dst / (2 * dst)."""

    def slope(self, x: Term) -> Term:
        return 0.5 / (x if self.use_dst else x.apply("Sqrt"))


@kind("TanhBackward", ("src", "diff_dst"))
class TanhBackward(_FromOutput):
    """diff_dst * (1 - dst * dst)."""

    def slope(self, x: Term) -> Term:
        y = x if self.use_dst else x.apply("Tanh")
        return 1 - y * y


class _SoftmaxGradient(Composite, abc.ABC):
    output_type: ElementType | None = attribute(element_type(), None)

    axis: int

    def decompose(self, steps: Decomposition) -> Sequence[Ref]:
        """Compute in f32, and round."""
        grad, y = (Term(steps, steps.wide(ref)) for ref in (0, 1))
        axis = normalize_axis(self.axis, steps.rank(y.ref))
        found = self.gradient(grad, y, axis)
        return (found.cast(self.output_type or steps.infos[0].element_type),)

    @abc.abstractmethod
    def gradient(self, grad: Term, y: Term, axis: int) -> Term:
        """Return diff_src."""


@kind("SoftMaxBackward", ("diff_dst", "dst"))
class SoftMaxBackward(_SoftmaxGradient):
    """dst * (diff_dst - sum of diff_dst * dst)."""

    axis: int = attribute(integer(), 1)

    def gradient(self, grad: Term, y: Term, axis: int) -> Term:
        return y * (grad - (grad * y).reduce("Sum", [axis], keep=True))


@kind("LogSoftmaxBackward", ("diff_dst", "dst"))
class LogSoftmaxBackward(_SoftmaxGradient):
    """diff_dst - exp(dst) * sum of diff_dst."""

    axis: int = attribute(integer(), -1)

    def gradient(self, grad: Term, y: Term, axis: int) -> Term:
        return grad - y.apply("Exp") * grad.reduce("Sum", [axis], keep=True)


def _other_axes(steps: Decomposition, layout: DataFormat) -> tuple[list[int], int]:
    """Return all axes of the first input except that of the channels, and the latter."""
    rank = steps.rank(0)
    if rank < 2:
        raise ShapeError(f"rank 2 or greater is needed, found {rank}", rule="rank")
    channels = 1 if layout is DataFormat.NCX else rank - 1
    return [axis for axis in range(rank) if axis != channels], channels


@kind("BiasAddBackward", ("diff_dst",))
class BiasAddBackward(Composite):
    """The sum of diff_dst for each channel."""

    data_format: DataFormat = attribute(DATA_FORMAT, DataFormat.NXC)

    def decompose(self, steps: Decomposition) -> Sequence[Ref]:
        """Sum in f32, and round."""
        axes, _ = _other_axes(steps, self.data_format)
        found = Term(steps, steps.wide(0)).reduce("Sum", axes)
        return (found.cast(steps.infos[0].element_type),)


@kind("PReLUBackward", ("src", "slope", "diff_dst"))
class PReLUBackward(Composite):
    """Gradients with respect to src and to slope."""

    data_format: DataFormat = attribute(DATA_FORMAT, DataFormat.NXC)

    def decompose(self, steps: Decomposition) -> Sequence[Ref]:
        """Compute in f32; the slope's gradient is summed where it was broadcast."""
        x, grad = (Term(steps, steps.wide(ref)) for ref in (0, 2))
        last = self.data_format is DataFormat.NXC
        slope = Term(steps, align_slope(steps, steps.wide(1), x.ref, channels_last=last))
        positive = x > 0
        shape, wide = steps.shape(x.ref), steps.shape(slope.ref)
        wide = (1,) * (len(shape) - len(wide)) + wide
        axes = [axis for axis, (n, m) in enumerate(zip(shape, wide, strict=False)) if n != m]
        found = positive.where(0, x, x) * grad
        if axes:
            found = found.reduce("Sum", axes, keep=True)
        original = steps.shape(1)
        result = steps.reshape(found.ref, original)
        types = [steps.infos[i].element_type for i in (0, 1)]
        return (
            (positive.where(1, slope, x) * grad).cast(types[0]),
            steps.cast(result, types[1]),
        )


class _NormalizationGradient(Composite):
    """Gradients of (x - mean) / sqrt(variance + epsilon) * gamma + beta."""

    output_count: int = attribute(integer(1), 3)
    epsilon: float

    def gradients(
        self,
        steps: Decomposition,
        shape: Sequence[int],
        gamma: Term | None,
        gamma_shape: Sequence[int],
        axes: tuple[Sequence[int], Sequence[int]],
    ) -> Sequence[Ref]:
        """Return the gradients.

        Parameters
        ----------
        decomposition : Decomposition
        shape, gamma_shape : sequence of int
            Shapes of mean and variance, and of gamma, that broadcast to src.
        gamma : Term or None
        axes : pair of sequences of int
            Axes of the normalisation, and axes along which gamma was broadcast.
        """
        x, grad = (Term(steps, steps.wide(ref)) for ref in (0, 1))
        mean, variance = (Term(steps, steps.reshape(steps.wide(ref), shape)) for ref in (2, 3))
        scale = 1 / (variance + self.epsilon).apply("Sqrt")
        normal = (x - mean) * scale
        inner = grad
        if gamma is not None:
            inner = grad * Term(steps, steps.reshape(gamma.ref, gamma_shape))
        over, along = axes
        through = inner - inner.reduce("Mean", over, keep=True)
        through = through - normal * (inner * normal).reduce("Mean", over, keep=True)
        result = [(through * scale).cast(steps.infos[1].element_type)]
        if self.output_count > 1:
            to = steps.infos[2].element_type
            result += [
                (grad * normal).reduce("Sum", along).cast(to),
                grad.reduce("Sum", along).cast(to),
            ]
        return result


@kind("BatchNormTrainingBackward", ("src", "diff_dst", "mean", "variance", "gamma"), 4)
class BatchNormTrainingBackward(_NormalizationGradient):
    """Gradients of batch normalisation with the statistics of the batch."""

    data_format: DataFormat = attribute(DATA_FORMAT, DataFormat.NXC)
    epsilon: float = attribute(number(minimum=0))

    def decompose(self, steps: Decomposition) -> Sequence[Ref]:
        """Compute in f32."""
        axes, channels = _other_axes(steps, self.data_format)
        shape = [1] * (len(axes) + 1)
        shape[channels] = -1
        gamma = Term(steps, steps.wide(4)) if steps.count > 4 else None
        return self.gradients(steps, shape, gamma, shape, (axes, axes))


@kind("LayerNormBackward", ("src", "diff_dst", "mean", "variance", "gamma", "beta"), 4)
class LayerNormBackward(_NormalizationGradient):
    """Gradients of LayerNorm."""

    begin_norm_axis: int = attribute(integer(), -1)
    use_affine: bool = attribute(boolean(), True)
    epsilon: float = attribute(number(minimum=0), 1e-5)

    def decompose(self, steps: Decomposition) -> Sequence[Ref]:
        """Compute in f32."""
        extents = steps.shape(0)
        rank = len(extents)
        first = normalize_axis(self.begin_norm_axis, rank, "begin_norm_axis")
        shape = (*extents[:first], *(1,) * (rank - first))
        for ref in (2, 3):
            if steps.shape(ref) not in (shape, extents[:first]):
                raise ShapeError(
                    f"{self.inputs[ref]} must have shape {format_shape(extents[:first])}, "
                    f"found {format_shape(steps.shape(ref))}",
                    rule="rank",
                )
        gamma = Term(steps, steps.wide(4)) if steps.count > 4 else None
        axes = (range(first, rank), range(first))
        return self.gradients(steps, shape, gamma, extents[first:], axes)
