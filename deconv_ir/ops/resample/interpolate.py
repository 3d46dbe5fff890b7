"""OpenVINO Interpolate-1, Interpolate-4 and Interpolate-11."""

from __future__ import annotations

import abc
import enum
import math
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar, Final, NamedTuple

from deconv_ir.errors import ShapeError
from deconv_ir.ir.boxes import Boxes, LayerTile
from deconv_ir.ir.dtypes import F32, Array
from deconv_ir.ir.expression import SemanticsDifference
from deconv_ir.ir.geometry import UNKNOWN, Dim, bounds, interval
from deconv_ir.ir.operation import (
    Arrays,
    Call,
    Context,
    ElementOf,
    Infos,
    Operation,
    Sharing,
    TensorInfo,
)
from deconv_ir.ir.record import field
from deconv_ir.ir.shapes import element_count, format_shape, is_static, is_symbolic, static
from deconv_ir.ops.base import attribute, boolean, choice, choice_of, integers, number, operation
from deconv_ir.ops.checks import (
    axis_count,
    check_integers,
    check_least,
    check_rank,
    check_type,
    known_integers,
    misfit,
    normalize_axes,
)
from deconv_ir.ops.numeric import np
from deconv_ir.ops.resample.resample import (
    Coordinates,
    InterpolationSettings,
    Mode,
    Nearest,
    Taps,
    resample_bytes,
    resampler,
    table_bytes,
    taps_along,
)
from deconv_ir.ops.values import actual, as_dims, unknown_dims

if TYPE_CHECKING:
    from deconv_ir.ops.allowance import Bounds, Case

_F32_ERROR: Final = 6e-8
"""Relative error of a number that is rounded to f32: 2^-24."""
_MOST_DIVISOR: Final = 16
"""Products with such quotients are rounded as those with numbers up to extents of 50 000."""


class ShapeCalculation(enum.Enum):
    """The input that determines the shape of the output."""

    SIZES = "sizes"
    SCALES = "scales"


class ResampleTarget(NamedTuple):
    """Sizes or scales, one for each axis, as far as the inputs are known."""

    axes: tuple[int, ...] | None
    sizes: tuple[Dim, ...] | None = None
    scales: tuple[float, ...] | None = None


class _Interpolate(Operation, abc.ABC):
    """Resampling along some axes."""

    sharing = Sharing.WHOLE

    pads_begin: tuple[int, ...] = attribute(integers(0), ())
    pads_end: tuple[int, ...] = attribute(integers(0), ())

    @abc.abstractmethod
    def settings(self, rank: int) -> InterpolationSettings:
        """Return the settings of the interpolation."""

    def settings_in(self, context: Context, rank: int) -> InterpolationSettings:
        """Return the settings under the semantics of a context."""
        return self.settings(rank)._replace(in_f32=self.follows_runtime(context))

    @abc.abstractmethod
    def target(self, inputs: Infos, rank: int | None) -> ResampleTarget:
        """Check the inputs after the data, and return the extents or scales that they request."""

    @property
    def only_moves(self) -> bool:
        """Whether all elements of the output are elements of the data."""
        padded = any(self.pads_begin) or any(self.pads_end)
        return self.settings(0).mode is Mode.NEAREST and not padded

    def on_fours(self, inputs: Infos, outputs: Infos, element: ElementOf) -> Operation | None:
        shape = inputs[0].shape
        if shape is None or not self.only_moves:
            return None
        axes = self.target(inputs, len(shape)).axes
        return None if axes is None or min(axes, default=2) < 2 else _MovedBits(layer=self)

    def pads(self, rank: int) -> list[tuple[int, int]]:
        """Return the pads of each axis; missing ones are 0."""
        begin, end = (
            (*pads, *(0,) * (rank - len(pads)))[:rank] for pads in (self.pads_begin, self.pads_end)
        )
        return list(zip(begin, end, strict=True))

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        data = inputs[0]
        element_type = check_type(data, self.inputs[0], "numeric")
        rank = None if data.shape is None else len(data.shape)
        target = self.target(inputs, rank)
        if data.shape is None or rank is None:
            return (TensorInfo(None, element_type),)
        if target.axes is None:
            return (TensorInfo(unknown_dims(rank), element_type),)
        dims = [
            _padded(dim, begin + end)
            for dim, (begin, end) in zip(data.shape, self.pads(rank), strict=True)
        ]
        for i, axis in enumerate(target.axes):
            if target.sizes is not None:
                dims[axis] = target.sizes[i]
            elif target.scales is not None:
                dims[axis] = scaled(dims[axis], target.scales[i])
            else:
                dims[axis] = UNKNOWN
        return (TensorInfo(tuple(dims), element_type),)

    def allowance(self, case: Case) -> Bounds | None:
        from deconv_ir.ops.allowance import resampled

        return resampled(case)

    def valid(self, case: Case, output: int, array: Array) -> Array | None:
        """Return which elements are nearest for coordinates that are rounded to f32."""
        import itertools

        from deconv_ir.ops.resample.coordinates import nearest_of_near

        data = case.inputs[0]
        how = self.settings(data.ndim)
        if how.mode is not Mode.NEAREST or not data.size or array.shape != case.outputs[0].shape:
            return None
        pads = self.pads(data.ndim)
        if any(map(any, pads)):
            data = np.pad(data, pads)
        names = how.coordinates.value, how.nearest.value
        choices = []
        scales = self._scales(_actual(case.inputs), data.shape)
        for axis, scale in sorted(scales.items()):
            low, high = nearest_of_near(*names, scale, data.shape[axis], array.shape[axis])
            rows = [low] if (low == high).all() else [low, high]
            choices.append([(axis, row) for row in rows])
        share = 2 * case.precision.result if data.dtype.kind == "f" else 0
        found: Array = np.zeros(array.shape, bool)
        for chosen in itertools.product(*choices):
            taken = data
            for axis, row in chosen:
                taken = np.take(taken, row, axis=axis)
            with np.errstate(all="ignore"):
                near = np.abs(array - taken) <= share * np.abs(taken)
            found |= near | (array == taken) | ((array != array) & (taken != taken))
        return found

    def explain(self, inputs: Infos, context: Context, output: int, axis: int) -> str | None:
        shape = inputs[0].shape
        if shape is None:
            return None
        target = self.target(inputs, len(shape))
        if target.axes is None or axis not in target.axes:
            return f"axis {axis} of data {format_shape(shape)}, with pads"
        position = target.axes.index(axis)
        if target.sizes is not None:
            return f"sizes[{position}] = {target.sizes[position]}"
        if target.scales is not None:
            return f"floor({shape[axis]} * {target.scales[position]}), with pads"
        return None

    def compare_semantics(self, inputs: Infos, context: Context) -> SemanticsDifference | None:
        """Compare the nearest elements of each axis: the runtime rounds coordinates to f32."""
        data = inputs[0].shape
        if not is_static(data) or not _are_known(inputs[1:]):
            return None
        how, shape = self.settings(len(static(data))), static(data)
        if how.mode is not Mode.NEAREST:
            return None
        output = self.infer(inputs, context)[0].shape
        shape = tuple(x + sum(pads) for x, pads in zip(shape, self.pads(len(shape)), strict=True))
        if not is_static(output) or 0 in (*shape, *static(output)):
            return None
        from deconv_ir.ops.resample.coordinates import first_nearest_difference

        for axis, scale in sorted(self._scales(inputs, shape).items()):
            x, y = shape[axis], static(output)[axis]
            if scale == 1 and x == y:
                continue
            names = how.coordinates.value, how.nearest.value
            found = first_nearest_difference(*names, scale, x, y)
            if found is not None:
                at, spec, runtime = found
                return SemanticsDifference(
                    f"gives element {at} of axis {axis} element {spec} of the data, of {x}",
                    f"element {runtime}",
                    (spec,),
                    (runtime,),
                )
        return None

    def accepts_out(self, inputs: Infos, output: TensorInfo) -> bool:
        """Write to an array unless the data may be the output."""
        data, result = inputs[0].shape, output.shape
        known = is_static(data) and is_static(result)
        return known and element_count(static(data)) != element_count(static(result))

    def execute_into(self, inputs: Arrays, context: Context, out: Array) -> None:
        self._function(_actual(inputs), context)(inputs[0], out)

    def bind(self, inputs: Infos, outputs: Infos, context: Context) -> Call:
        """Compute the weights once, if sizes or scales are known."""
        if not _are_known(inputs[1:]):
            return super().bind(inputs, outputs, context)
        run = self._function(inputs, context)
        return lambda arrays, out: (run(arrays[0], out),)

    def tile(self, boxes: Boxes, inputs: Infos, outputs: Infos, context: Context) -> LayerTile:
        (box,), shape = boxes, static(inputs[0].shape)
        if (
            box is None
            or not _are_known(inputs[1:])
            or any(map(any, self.pads(len(shape))))
            or 0 in shape
        ):
            return super().tile(boxes, inputs, outputs, context)
        how = self.settings_in(context, len(shape))
        scales = self._scales(inputs, shape)
        axes = taps_along(how, shape, static(outputs[0].shape), scales)
        spans, taps = list(box), []
        for axis, (index, *weights) in axes.items():
            some = slice(*box[axis])
            near = int(index[some].min())
            spans[axis] = (near, int(index[some].max()) + 1)
            taps.append((axis, Taps(index[some] - near, *(w[some] for w in weights))))
        operation = InterpolateTile(how=how, taps=tuple(taps))
        return LayerTile((tuple(spans), *(None,) * (len(inputs) - 1)), operation)

    def _scales(self, inputs: Infos, shape: tuple[int, ...]) -> dict[int, float]:
        """Return output extent over data extent, or the model's scale, axis by axis."""
        target = self.target(inputs, len(shape))
        assert target.axes is not None, "all elements are known"
        if target.scales is not None:
            return dict(zip(target.axes, target.scales, strict=True))
        assert target.sizes is not None, "one of the two is there"
        sizes = zip(target.axes, static(target.sizes), strict=True)
        return {axis: size / shape[axis] if shape[axis] else 1.0 for axis, size in sizes}

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        """Interpolate, one axis after the other."""
        return (self._function(_actual(inputs), context)(inputs[0], None),)

    def _function(self, infos: Infos, context: Context) -> Callable[[Array, Array | None], Array]:
        """Return a function that interpolates arrays of one shape, given the lists' elements."""
        shape = static(infos[0].shape)
        target = self.target(infos, len(shape))
        assert target.axes is not None, "all elements are known"
        output = static(self.infer(infos, context)[0].shape)
        pads = self.pads(len(shape))
        shape = tuple(x + begin + end for x, (begin, end) in zip(shape, pads, strict=True))
        if 0 in output:
            return lambda data, out: np.zeros(output, data.dtype) if out is None else out
        if 0 in shape:
            shown = format_shape(shape)
            message = f"there is nothing to interpolate in {shown}"
            raise ShapeError(message, actual=shown, rule="interpolate")
        how = self.settings_in(context, len(shape))
        taps = taps_along(how, shape, output, self._scales(infos, shape))
        run = resampler(how, shape, output, taps, context.scratch_bytes)
        return (lambda data, out: run(np.pad(data, pads), out)) if any(map(any, pads)) else run

    def scratch(self, inputs: Infos, outputs: Infos, context: Context) -> int:
        """Count the arrays between the axes, the taps, and the padded data."""
        data, output = static(inputs[0].shape), static(outputs[0].shape)
        element_type, pads = inputs[0].element_type, self.pads(len(data))
        padded = [x + sum(both) for x, both in zip(data, pads, strict=True)]
        taken = resample_bytes(padded, output, element_type, context.scratch_bytes)
        taken += table_bytes(self.settings_in(context, len(data)), padded, output)
        if not any(map(any, pads)) or element_type is None:
            return taken
        return taken + element_count(padded) * int(element_type.numpy().itemsize)


class _MovedBits(Operation):
    """An Interpolate that moves elements of 32 bits."""

    checks_values = False

    layer: _Interpolate = field()

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        (found,) = self.layer.execute([inputs[0].view(np.float32), *inputs[1:]], context)
        return (found.view(np.uint32),)

    def scratch(self, inputs: Infos, outputs: Infos, context: Context) -> int:
        given, found = (infos[0]._replace(element_type=F32) for infos in (inputs, outputs))
        return self.layer.scratch((given, *inputs[1:]), (found,), context)


class InterpolateTile(Operation):
    """A box of an interpolated array, with the taps of each axis that changes."""

    sharing = Sharing.WHOLE

    how: InterpolationSettings = field()
    taps: tuple[tuple[int, Taps], ...] = field()

    def bind(self, inputs: Infos, outputs: Infos, context: Context) -> Call:
        shapes = static(inputs[0].shape), static(outputs[0].shape)
        run = resampler(self.how, *shapes, dict(self.taps), context.scratch_bytes)
        return lambda arrays, out: (run(arrays[0], None),)

    def scratch(self, inputs: Infos, outputs: Infos, context: Context) -> int:
        data, output = static(inputs[0].shape), static(outputs[0].shape)
        return resample_bytes(data, output, inputs[0].element_type, context.scratch_bytes)


def _actual(inputs: Arrays) -> Infos:
    return [TensorInfo(inputs[0].shape), *map(actual, inputs[1:])]


def _are_known(infos: Infos) -> bool:
    return all(known_integers(info) is not None or info.reals is not None for info in infos)


def _padded(dim: Dim, pads: int) -> Dim:
    low, high = bounds(dim)
    return interval(low + pads, None if high is None else high + pads)


def scaled(dim: Dim, scale: float) -> Dim:
    """Return floor(dim * scale), with a scale in f32 as models store it.

    Such a scale is seldom exact: 1.1 in f32 is slightly larger, 0.7 slightly smaller.  A product
    within this error of a whole number is rounded to it.
    """

    def times(extent: int) -> int:
        if is_symbolic(extent) and (quotient := _as_quotient(scale)) is not None:
            return extent * quotient[0] // quotient[1]
        exact = min(extent * scale, 1e300)  # beyond any extent, but not infinite
        near = round(exact)
        return near if abs(exact - near) <= 1e-6 * max(1.0, abs(exact)) else math.floor(exact)

    low, high = bounds(dim)
    return interval(times(low), None if high is None else times(high))


@lru_cache(maxsize=256)
def _as_quotient(scale: float) -> tuple[int, int] | None:
    """Return the smallest (p, q) for which p/q in f32 is a scale; None if q would be large."""
    for q in range(1, _MOST_DIVISOR + 1):
        exact = scale * q
        p = round(min(exact, 1e300))
        if abs(p - exact) <= _F32_ERROR * exact:
            return p, q
    return None


def _axes_of(
    info: TensorInfo | None, rank: int | None, asked: int | None
) -> tuple[int, ...] | None:
    """Return the axes; all of them if the input is absent."""
    if rank is None:
        return None
    if info is None:
        found = tuple(range(rank))
    else:
        check_integers(info, "axes", 1)
        axes = known_integers(info)
        if axes is None:
            return None
        found = normalize_axes(axes, rank)
    _check_asked(len(found), asked, "sizes or scales")
    return found


def _check_asked(axes: int, asked: int | None, what: str) -> None:
    if asked not in (None, axes):
        message = f"there are {axes} axes, but {asked} {what}"
        raise ShapeError(message, expected=axes, actual=asked, rule="interpolate")


def _sizes_of(info: TensorInfo, name: str) -> tuple[Dim, ...] | None:
    check_integers(info, name, 1)
    if info.value is None:
        return None
    check_least(info.value, name, 0, "interpolate")
    return as_dims(info.value)


def _scales_of(info: TensorInfo, name: str) -> tuple[float, ...] | None:
    check_type(info, name, "float")
    check_rank(info, name, 1)
    if info.reals is not None and not all(0 < s < math.inf for s in info.reals):
        raise misfit("interpolate", name, "be positive", ",".join(map(str, info.reals)), "> 0")
    return info.reals


class _InterpolateFrom4(_Interpolate):
    """The base of versions 4 and 11."""

    scales_at: ClassVar[int] = 1
    """Index of the scales among the inputs; axes follow."""

    shape_calculation_mode: ShapeCalculation = attribute(choice(ShapeCalculation))
    coordinate_transformation_mode: Coordinates = attribute(
        choice(Coordinates), Coordinates.HALF_PIXEL
    )
    nearest_mode: Nearest = attribute(choice(Nearest), Nearest.ROUND_PREFER_FLOOR)
    antialias: bool = attribute(boolean(), False)
    cube_coeff: float = attribute(number(), -0.75)

    mode: Mode = Mode.NEAREST

    def settings(self, rank: int) -> InterpolationSettings:
        return InterpolationSettings(
            self.mode,
            self.coordinate_transformation_mode,
            self.nearest_mode,
            self.antialias,
            self.cube_coeff,
        )

    def target(self, inputs: Infos, rank: int | None) -> ResampleTarget:
        by_sizes = self.shape_calculation_mode is ShapeCalculation.SIZES
        at = 1 if by_sizes else self.scales_at
        sizes = _sizes_of(inputs[at], self.inputs[at]) if by_sizes else None
        scales = None if by_sizes else _scales_of(inputs[at], self.inputs[at])
        axes = inputs[self.scales_at + 1] if len(inputs) > self.scales_at + 1 else None
        return ResampleTarget(_axes_of(axes, rank, axis_count(inputs[at])), sizes, scales)


_MODES_4 = {m.value: m for m in (Mode.NEAREST, Mode.LINEAR, Mode.LINEAR_ONNX, Mode.CUBIC)}
_MODES_1 = {m.value: m for m in (Mode.NEAREST, Mode.LINEAR, Mode.CUBIC)}


@operation(
    "Interpolate-4(data, sizes, scales, axes?)",
    "f32[1,2,4,5], i64[2]{8,9}, f32[2]{2,1.8}, i64[2]{2,3} -> f32[1,2,8,9]"
    " | mode=linear_onnx shape_calculation_mode=sizes",
    "f32[1,2,4,5], i64[2]{8,9}, f32[2]{2,1.7}, i64[2]{2,3} -> f32[1,2,8,8] | mode=nearest "
    "shape_calculation_mode=scales nearest_mode=floor coordinate_transformation_mode=asymmetric",
)
class Interpolate4(_InterpolateFrom4):
    """Resampling along some axes; default `axes`: all."""

    mode: Mode = attribute(choice_of(_MODES_4))

    scales_at = 2


@operation(
    "Interpolate-11(image, scales_or_sizes, axes?)",
    "f32[1,2,8,9], i64[2]{4,5}, i64[2]{2,3} -> f32[1,2,4,5]"
    " | mode=bicubic_pillow shape_calculation_mode=sizes cube_coeff=-0.5",
    "f32[4,5], f32[2]{0.5,2} -> f32[2,10] | mode=cubic shape_calculation_mode=scales",
)
class Interpolate11(_InterpolateFrom4):
    """Resampling along some axes; default `axes`: all."""

    mode: Mode = attribute(choice(Mode))


@operation(
    "Interpolate-1(data, target_spatial_shape)",
    "f32[1,2,4,5], i64[2]{8,9} -> f32[1,2,8,9] | axes=2,3 mode=linear align_corners=false",
)
class Interpolate1(_Interpolate):
    """Resampling along some axes.

    Where the document is silent, this follows OpenVINO, which converts this version to version 4
    and takes `axes` as a set: sizes are those of the axes in ascending order.
    """

    axes: tuple[int, ...] = attribute(integers(0))
    mode: Mode = attribute(choice_of(_MODES_1))
    align_corners: bool = attribute(boolean(), True)
    antialias: bool = attribute(boolean(), False)

    def settings(self, rank: int) -> InterpolationSettings:
        mode = self.mode
        if mode is Mode.LINEAR and rank < 5:
            mode = Mode.LINEAR_ONNX
        where = Coordinates.ALIGN_CORNERS if self.align_corners else Coordinates.ASYMMETRIC
        return InterpolationSettings(mode, where, Nearest.SIMPLE, self.antialias, -0.75)

    def target(self, inputs: Infos, rank: int | None) -> ResampleTarget:
        sizes = _sizes_of(inputs[1], "target_spatial_shape")
        if rank is None:
            return ResampleTarget(None, sizes)
        axes = tuple(sorted(normalize_axes(self.axes, rank)))
        _check_asked(len(axes), axis_count(inputs[1]), "sizes")
        return ResampleTarget(axes, sizes)
