"""Normalisation, resampling and movement operations of oneDNN Graph."""

from __future__ import annotations

import enum
import math
from collections.abc import Sequence

from deconv_ir.errors import ShapeError
from deconv_ir.ir.dtypes import F32, I32, ElementType
from deconv_ir.ops.base import (
    attribute,
    boolean,
    choice,
    element_type,
    integer,
    integers,
    number,
    numbers,
)
from deconv_ir.ops.checks import normalize_axis
from deconv_ir.ops.normalization.standardizing import EpsMode
from deconv_ir.ops.onednn.decomposition import Composite, Decomposition, Ref, kind
from deconv_ir.ops.onednn.term import Term
from deconv_ir.ops.onednn.windows import ByChannel
from deconv_ir.ops.resample.resample import Coordinates, InterpolationSettings, Mode, Nearest
from deconv_ir.ops.values import rounded


@kind("BatchNormInference", ("src", "gamma", "beta", "mean", "variance"))
class OneDNNBatchNorm(ByChannel):
    """(x - mean) / sqrt(variance + epsilon) * gamma + beta, for each channel."""

    epsilon: float = attribute(number(minimum=0))

    def decompose(self, steps: Decomposition) -> Sequence[Ref]:
        """Normalise in f32."""
        rest = [steps.wide(ref) for ref in range(1, 5)]
        data = self.enter(steps, 0)
        found = steps.add("BatchNormInference", data, *rest, epsilon=self.epsilon)
        return (self.leave(steps, found),)


def _statistics(steps: Decomposition, data: Ref, axes: Sequence[int]) -> tuple[Ref, Ref]:
    """Return mean and variance along some axes."""
    x = Term(steps, data)
    centred = x - x.reduce("Mean", axes, keep=True)
    return x.reduce("Mean", axes).ref, (centred * centred).reduce("Mean", axes).ref


@kind("BatchNormForwardTraining", ("src", "mean", "variance", "gamma", "beta"), 3)
class BatchNormForwardTraining(ByChannel):
    """Batch normalisation with the batch's own statistics.

    Outputs: the result; running mean and variance, momentum * old + (1 - momentum) * new;
    mean and variance of the batch.
    """

    epsilon: float = attribute(number(minimum=0))
    momentum: float = attribute(number(), 0.5)

    def decompose(self, steps: Decomposition) -> Sequence[Ref]:
        """Normalise in f32."""
        data = self.enter(steps, 0)
        rank = steps.rank(data)
        batch = _statistics(steps, data, (0, *range(2, rank)))
        if steps.count > 4:
            affine = [steps.wide(3), steps.wide(4)]
        else:
            channels = steps.shape(data)[1]
            affine = [
                Term(steps, data).constant((fill,), (1,)).apply("Tile", repeats).ref
                for fill in (1.0, 0.0)
                for repeats in [Term(steps, steps.constant((channels,)))]
            ]
        found = steps.add("BatchNormInference", data, *affine, *batch, epsilon=self.epsilon)
        result = [self.leave(steps, found)]
        for ref, new in zip((1, 2), batch, strict=True):
            old = Term(steps, steps.wide(ref)) * self.momentum
            running = old + Term(steps, new) * (1 - self.momentum)
            result.append(running.cast(steps.infos[1].element_type))
        return (*result, *(steps.cast(new, steps.infos[1].element_type) for new in batch))


@kind("LayerNorm", ("src", "gamma", "beta"), 1)
class LayerNorm(Composite):
    """(x - mean) / sqrt(variance + epsilon) * gamma + beta, over the last axes."""

    keep_stats: bool = attribute(boolean(), True)
    begin_norm_axis: int = attribute(integer(), -1)
    use_affine: bool = attribute(boolean(), True)
    epsilon: float = attribute(number(minimum=0), 1e-5)

    def decompose(self, steps: Decomposition) -> Sequence[Ref]:
        """Normalise in f32; mean and variance are outputs with keep_stats."""
        data = steps.wide(0)
        rank = steps.rank(data)
        first = normalize_axis(self.begin_norm_axis, rank, "begin_norm_axis")
        axes = tuple(range(first, rank))
        found = steps.add(
            "MVN",
            data,
            steps.constant(axes),
            normalize_variance=True,
            eps=self.epsilon,
            eps_mode=EpsMode.INSIDE_SQRT,
        )
        if steps.count > 1:
            found = steps.add("Multiply", found, steps.wide(1))
        if steps.count > 2:
            found = steps.add("Add", found, steps.wide(2))
        result = steps.cast(found, steps.infos[0].element_type)
        return (result, *_statistics(steps, data, axes)) if self.keep_stats else (result,)


@kind("RMSNorm", ("src", "gamma"), 1)
class OneDNNRMSNorm(Composite):
    """x / sqrt(mean of x * x + epsilon) * gamma, over the last axes."""

    begin_norm_axis: int = attribute(integer(), -1)
    epsilon: float = attribute(number(minimum=0), 1e-5)

    def decompose(self, steps: Decomposition) -> Sequence[Ref]:
        """Normalise in f32."""
        data = steps.wide(0)
        rank = steps.rank(data)
        first = normalize_axis(self.begin_norm_axis, rank, "begin_norm_axis")
        axes = steps.constant(tuple(range(first, rank)))
        squares = steps.add("ReduceMean", steps.add("Multiply", data, data), axes, keep_dims=True)
        wide = steps.infos[data].element_type or F32
        total = steps.add("Add", squares, steps.constant((self.epsilon,), wide, ()))
        found = steps.add("Divide", data, steps.add("Sqrt", total))
        if steps.count > 1:
            found = steps.add("Multiply", found, steps.wide(1))
        return (steps.cast(found, steps.infos[0].element_type),)


@kind("GroupNorm", ("src", "gamma", "beta"), 1)
class GroupNorm(ByChannel):
    """Normalisation over groups of channels, then gamma and beta for each channel."""

    groups: int = attribute(integer(1))
    keep_stats: bool = attribute(boolean(), True)
    use_affine: bool = attribute(boolean(), True)
    epsilon: float = attribute(number(minimum=0), 1e-5)

    def decompose(self, steps: Decomposition) -> Sequence[Ref]:
        """Normalise in f32; mean and variance are outputs with keep_stats."""
        data = self.enter(steps, 0)
        batch, channels, *spatial = steps.shape(data)
        if steps.count > 2:
            gamma, beta = steps.wide(1), steps.wide(2)
        else:
            wide = steps.infos[data].element_type or F32
            gamma = steps.constant((1.0,) * channels, wide)
            beta = steps.constant((0.0,) * channels, wide)
        found = steps.add(
            "GroupNormalization", data, gamma, beta, num_groups=self.groups, epsilon=self.epsilon
        )
        result = self.leave(steps, found)
        if not self.keep_stats:
            return (result,)
        inner = channels // self.groups * math.prod(spatial)
        grouped = steps.reshape(data, (batch, self.groups, inner))
        return (result, *_statistics(steps, grouped, (2,)))


class Interpolation(enum.Enum):
    """The interpolation mode; `linear` and its like depend on the number of axes."""

    NEAREST = "nearest"
    LINEAR = "linear"
    BILINEAR = "bilinear"
    TRILINEAR = "trilinear"


class CoordinateMode(enum.Enum):
    """The mapping of coordinates in the output to coordinates in the data."""

    HALF_PIXEL = "half_pixel"
    ALIGN_CORNERS = "align_corners"


@kind("Interpolate", ("src", "sizes"), 1)
class OneDNNInterpolate(ByChannel):
    """Resampling along the spatial axes."""

    mode: Interpolation = attribute(choice(Interpolation, fold=False))
    coordinate_transformation_mode: CoordinateMode = attribute(
        choice(CoordinateMode, fold=False), CoordinateMode.HALF_PIXEL
    )
    sizes: tuple[int, ...] | None = attribute(integers(1), None)
    scales: tuple[float, ...] | None = attribute(numbers(), None)

    def decompose(self, steps: Decomposition) -> Sequence[Ref]:
        """Find the sizes, and interpolate in f32; `nearest` rounds ties up."""
        from deconv_ir.ops.resample.interpolate import ShapeCalculation

        data = self.enter(steps, 0)
        spatial = steps.rank(data) - 2
        if steps.count > 1:
            sizes = 1
        else:
            check_sizes(self.sizes, self.scales, spatial)
            extents = () if self.sizes else steps.shape(data)[2:]
            sizes = steps.constant(self.sizes or scaled(extents, self.scales or ()))
        how = settings(self.mode, self.coordinate_transformation_mode)
        found = steps.add(
            "Interpolate",
            data,
            sizes,
            steps.constant((1.0,) * spatial, F32),
            steps.constant(tuple(range(2, spatial + 2))),
            version="opset4",
            mode=how.mode,
            shape_calculation_mode=ShapeCalculation.SIZES,
            coordinate_transformation_mode=how.coordinates,
            nearest_mode=how.nearest,
        )
        return (self.leave(steps, found),)


def settings(mode: Interpolation, coordinates: CoordinateMode) -> InterpolationSettings:
    """Return the settings of the interpolation; `nearest` rounds ties up."""
    nearest = mode is Interpolation.NEAREST
    half = coordinates is CoordinateMode.HALF_PIXEL
    return InterpolationSettings(
        Mode.NEAREST if nearest else Mode.LINEAR_ONNX,
        Coordinates.HALF_PIXEL if half else Coordinates.ALIGN_CORNERS,
        Nearest.ROUND_PREFER_CEIL,
        antialias=False,
        cube_coeff=-0.75,
    )


def check_sizes(
    sizes: tuple[int, ...] | None, scales: tuple[float, ...] | None, spatial: int
) -> None:
    """Require sizes, or else scales, for each spatial axis.

    Raises
    ------
    ShapeError
        Both are missing, or their number is wrong.
    """
    given = sizes or scales
    if given is None:
        raise ShapeError("sizes or scales is missing", attribute="sizes", rule="attribute-missing")
    name = "sizes" if sizes else "scales"
    if len(given) != spatial:
        message = (
            f"{name} must have {spatial} elements, one for each spatial axis, found {len(given)}"
        )
        raise ShapeError(
            message, attribute=name, expected=spatial, actual=len(given), rule="attribute-length"
        )


def scaled(extents: Sequence[int], scales: Sequence[float]) -> tuple[int, ...]:
    """Return extents times scales, in f32 as in oneDNN, rounded down: 100 by 0.29 is 29."""
    factors = rounded(scales, F32) or scales
    products = tuple(x * s for x, s in zip(extents, factors, strict=True))
    return tuple(map(math.floor, rounded(products, F32) or products))


@kind("TypeCast", ("src",))
class TypeCast(Composite):
    """The same values in another element type."""

    output_type: ElementType | None = attribute(element_type(), None)

    def decompose(self, steps: Decomposition) -> Sequence[Ref]:
        """Convert; an array of the same type is returned unchanged."""
        to = self.output_type or steps.infos[0].element_type
        if to is None or to is steps.infos[0].element_type:
            return (0,)
        return (steps.cast(0, to),)


@kind("Reorder", ("src",))
class Reorder(TypeCast):
    """The same values in another layout of memory; results are logical arrays."""


@kind("GenIndex", ("src",))
class GenIndex(Composite):
    """The index of each element along an axis, as s32."""

    axis: int = attribute(integer())

    def decompose(self, steps: Decomposition) -> Sequence[Ref]:
        """Number the elements, and broadcast to the shape of the input."""
        shape = steps.shape(0)
        axis = normalize_axis(self.axis, len(shape))
        bounds = [steps.constant((value,), shape=()) for value in (0, shape[axis], 1)]
        count = steps.add("Range", *bounds, output_type=I32)
        column = steps.reshape(count, (-1, *(1,) * (len(shape) - axis - 1)))
        return (steps.add("Broadcast", column, steps.constant(shape)),)


@kind("StaticReshape", ("src",))
class StaticReshape(Composite):
    """The same elements in another shape."""

    shape: tuple[int, ...] = attribute(integers(-1))
    special_zero: bool = attribute(boolean())

    def decompose(self, steps: Decomposition) -> Sequence[Ref]:
        """Reshape; 0 stands for an input's dim with special_zero."""
        shape = steps.constant(self.shape)
        return (steps.add("Reshape", 0, shape, special_zero=self.special_zero),)


@kind("StaticTranspose", ("src",))
class StaticTranspose(Composite):
    """Axes permuted."""

    order: tuple[int, ...] = attribute(integers())

    def decompose(self, steps: Decomposition) -> Sequence[Ref]:
        """Transpose; negative numbers count from the end."""
        rank = steps.rank(0)
        order = [normalize_axis(axis, rank, "order") for axis in self.order]
        if sorted(order) != list(range(rank)):
            message = f"order must be a permutation of {rank} axes, found {self.order}"
            raise ShapeError(
                message, attribute="order", expected=rank, actual=len(order), rule="transpose"
            )
        return (steps.add("Transpose", 0, steps.constant(order)),)
