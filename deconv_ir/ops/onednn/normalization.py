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
from deconv_ir.ops.onednn.program import Composite, Decomposition, Ref, kind
from deconv_ir.ops.onednn.term import Term
from deconv_ir.ops.onednn.windows import ByChannel
from deconv_ir.ops.resample.resample import Coordinates, InterpolationSettings, Mode, Nearest
from deconv_ir.ops.values import rounded


@kind("BatchNormInference", ("src", "gamma", "beta", "mean", "variance"))
class OneDNNBatchNorm(ByChannel):
    """(x - mean) / sqrt(variance + epsilon) * gamma + beta, for each channel."""

    epsilon: float = attribute(number(minimum=0))

    def program(self, program: Decomposition) -> Sequence[Ref]:
        """Normalise in f32."""
        rest = [program.wide(ref) for ref in range(1, 5)]
        data = self.enter(program, 0)
        found = program.add("BatchNormInference", data, *rest, epsilon=self.epsilon)
        return (self.leave(program, found),)


def _statistics(program: Decomposition, data: Ref, axes: Sequence[int]) -> tuple[Ref, Ref]:
    """Return mean and variance along some axes."""
    x = Term(program, data)
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

    def program(self, program: Decomposition) -> Sequence[Ref]:
        """Normalise in f32."""
        data = self.enter(program, 0)
        rank = program.rank(data)
        batch = _statistics(program, data, (0, *range(2, rank)))
        if program.count > 4:
            affine = [program.wide(3), program.wide(4)]
        else:
            channels = program.shape(data)[1]
            affine = [
                Term(program, data).constant((fill,), (1,)).apply("Tile", repeats).ref
                for fill in (1.0, 0.0)
                for repeats in [Term(program, program.constant((channels,)))]
            ]
        found = program.add("BatchNormInference", data, *affine, *batch, epsilon=self.epsilon)
        result = [self.leave(program, found)]
        for ref, new in zip((1, 2), batch, strict=True):
            old = Term(program, program.wide(ref)) * self.momentum
            running = old + Term(program, new) * (1 - self.momentum)
            result.append(running.cast(program.infos[1].element_type))
        return (*result, *(program.cast(new, program.infos[1].element_type) for new in batch))


@kind("LayerNorm", ("src", "gamma", "beta"), 1)
class LayerNorm(Composite):
    """(x - mean) / sqrt(variance + epsilon) * gamma + beta, over the last axes."""

    keep_stats: bool = attribute(boolean(), True)
    begin_norm_axis: int = attribute(integer(), -1)
    use_affine: bool = attribute(boolean(), True)
    epsilon: float = attribute(number(minimum=0), 1e-5)

    def program(self, program: Decomposition) -> Sequence[Ref]:
        """Normalise in f32; mean and variance are outputs with keep_stats."""
        data = program.wide(0)
        rank = program.rank(data)
        first = normalize_axis(self.begin_norm_axis, rank, "begin_norm_axis")
        axes = tuple(range(first, rank))
        found = program.add(
            "MVN",
            data,
            program.constant(axes),
            normalize_variance=True,
            eps=self.epsilon,
            eps_mode=EpsMode.INSIDE_SQRT,
        )
        if program.count > 1:
            found = program.add("Multiply", found, program.wide(1))
        if program.count > 2:
            found = program.add("Add", found, program.wide(2))
        result = program.cast(found, program.infos[0].element_type)
        return (result, *_statistics(program, data, axes)) if self.keep_stats else (result,)


@kind("RMSNorm", ("src", "gamma"), 1)
class OneDNNRMSNorm(Composite):
    """x / sqrt(mean of x * x + epsilon) * gamma, over the last axes."""

    begin_norm_axis: int = attribute(integer(), -1)
    epsilon: float = attribute(number(minimum=0), 1e-5)

    def program(self, program: Decomposition) -> Sequence[Ref]:
        """Normalise in f32."""
        data = program.wide(0)
        rank = program.rank(data)
        first = normalize_axis(self.begin_norm_axis, rank, "begin_norm_axis")
        axes = program.constant(tuple(range(first, rank)))
        squares = program.add(
            "ReduceMean", program.add("Multiply", data, data), axes, keep_dims=True
        )
        wide = program.infos[data].element_type or F32
        total = program.add("Add", squares, program.constant((self.epsilon,), wide, ()))
        found = program.add("Divide", data, program.add("Sqrt", total))
        if program.count > 1:
            found = program.add("Multiply", found, program.wide(1))
        return (program.cast(found, program.infos[0].element_type),)


@kind("GroupNorm", ("src", "gamma", "beta"), 1)
class GroupNorm(ByChannel):
    """Normalisation over groups of channels, then gamma and beta for each channel."""

    groups: int = attribute(integer(1))
    keep_stats: bool = attribute(boolean(), True)
    use_affine: bool = attribute(boolean(), True)
    epsilon: float = attribute(number(minimum=0), 1e-5)

    def program(self, program: Decomposition) -> Sequence[Ref]:
        """Normalise in f32; mean and variance are outputs with keep_stats."""
        data = self.enter(program, 0)
        batch, channels, *spatial = program.shape(data)
        if program.count > 2:
            gamma, beta = program.wide(1), program.wide(2)
        else:
            wide = program.infos[data].element_type or F32
            gamma = program.constant((1.0,) * channels, wide)
            beta = program.constant((0.0,) * channels, wide)
        found = program.add(
            "GroupNormalization", data, gamma, beta, num_groups=self.groups, epsilon=self.epsilon
        )
        result = self.leave(program, found)
        if not self.keep_stats:
            return (result,)
        inner = channels // self.groups * math.prod(spatial)
        grouped = program.reshape(data, (batch, self.groups, inner))
        return (result, *_statistics(program, grouped, (2,)))


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

    def program(self, program: Decomposition) -> Sequence[Ref]:
        """Find the sizes, and interpolate in f32; `nearest` rounds ties up."""
        from deconv_ir.ops.resample.interpolate import ShapeCalculation

        data = self.enter(program, 0)
        spatial = program.rank(data) - 2
        if program.count > 1:
            sizes = 1
        else:
            check_sizes(self.sizes, self.scales, spatial)
            extents = () if self.sizes else program.shape(data)[2:]
            sizes = program.constant(self.sizes or scaled(extents, self.scales or ()))
        how = settings(self.mode, self.coordinate_transformation_mode)
        found = program.add(
            "Interpolate",
            data,
            sizes,
            program.constant((1.0,) * spatial, F32),
            program.constant(tuple(range(2, spatial + 2))),
            version="opset4",
            mode=how.mode,
            shape_calculation_mode=ShapeCalculation.SIZES,
            coordinate_transformation_mode=how.coordinates,
            nearest_mode=how.nearest,
        )
        return (self.leave(program, found),)


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

    def program(self, program: Decomposition) -> Sequence[Ref]:
        """Convert; an array of the same type is returned unchanged."""
        to = self.output_type or program.infos[0].element_type
        if to is None or to is program.infos[0].element_type:
            return (0,)
        return (program.cast(0, to),)


@kind("Reorder", ("src",))
class Reorder(TypeCast):
    """The same values in another layout of memory; results are logical arrays."""


@kind("GenIndex", ("src",))
class GenIndex(Composite):
    """The index of each element along an axis, as s32."""

    axis: int = attribute(integer())

    def program(self, program: Decomposition) -> Sequence[Ref]:
        """Number the elements, and broadcast to the shape of the input."""
        shape = program.shape(0)
        axis = normalize_axis(self.axis, len(shape))
        bounds = [program.constant((value,), shape=()) for value in (0, shape[axis], 1)]
        count = program.add("Range", *bounds, output_type=I32)
        column = program.reshape(count, (-1, *(1,) * (len(shape) - axis - 1)))
        return (program.add("Broadcast", column, program.constant(shape)),)


@kind("StaticReshape", ("src",))
class StaticReshape(Composite):
    """The same elements in another shape."""

    shape: tuple[int, ...] = attribute(integers(-1))
    special_zero: bool = attribute(boolean())

    def program(self, program: Decomposition) -> Sequence[Ref]:
        """Reshape; 0 stands for an input's dim with special_zero."""
        shape = program.constant(self.shape)
        return (program.add("Reshape", 0, shape, special_zero=self.special_zero),)


@kind("StaticTranspose", ("src",))
class StaticTranspose(Composite):
    """Axes permuted."""

    order: tuple[int, ...] = attribute(integers())

    def program(self, program: Decomposition) -> Sequence[Ref]:
        """Transpose; negative numbers count from the end."""
        rank = program.rank(0)
        order = [normalize_axis(axis, rank, "order") for axis in self.order]
        if sorted(order) != list(range(rank)):
            message = f"order must be a permutation of {rank} axes, found {self.order}"
            raise ShapeError(
                message, attribute="order", expected=rank, actual=len(order), rule="transpose"
            )
        return (program.add("Transpose", 0, program.constant(order)),)
