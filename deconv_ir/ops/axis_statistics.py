"""Statistics over whole axes, collected tile by tile: the first of two passes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from deconv_ir.ir.boxes import Box, Boxes, LayerTile, inside, sole, whole_box
from deconv_ir.ir.dtypes import Array, from_numpy
from deconv_ir.ir.operation import Arrays, Context, Infos, Operation, TensorInfo
from deconv_ir.ir.record import field
from deconv_ir.ir.shapes import static
from deconv_ir.ops.numeric import narrow, np, widen
from deconv_ir.ops.tile_rules import FixedArrays


class KnownArrays(Operation):
    """An operation that returns an array computed earlier."""

    value: FixedArrays = field()

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        (array,) = self.value
        return (TensorInfo(array.shape, from_numpy(array.dtype)),)

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        return tuple(self.value)


class Standardize(Operation):
    """(x - mean) * factor, both broadcast along the reduced axes.

    Further inputs are the scale and bias of each channel.
    """

    moments: FixedArrays = field()

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        return (TensorInfo(inputs[0].shape, inputs[0].element_type),)

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        mean, factor = self.moments
        data = (widen(inputs[0]) - mean) * factor
        if len(inputs) > 1:
            per_channel = (-1,) + (1,) * (data.ndim - 2)
            scale, bias = (widen(array).reshape(per_channel) for array in inputs[1:])
            data = data * scale + bias
        return (narrow(data, inputs[0].dtype),)

    def tile(self, boxes: Boxes, inputs: Infos, outputs: Infos, context: Context) -> LayerTile:
        box = sole(boxes)
        parts = (array[_kept(box, array.shape)] for array in self.moments)
        channels = ((box[1],),) * (len(inputs) - 1)
        return LayerTile((box, *channels), Standardize(moments=FixedArrays(*parts)))


def _kept(box: Box, shape: Sequence[int]) -> tuple[slice, ...]:
    """Return the index of a box in an array with extent 1 along the reduced axes."""
    spans = [(0, 1) if n == 1 else span for n, span in zip(shape, box, strict=True)]
    return inside(tuple(spans), whole_box(shape))


class UfuncReduction:
    """A reduction of transformed elements by a ufunc in f64; the result is rounded once."""

    inputs = 0

    def __init__(
        self,
        data: TensorInfo,
        output: TensorInfo,
        axes: tuple[int, ...],
        fold: Any,
        before: Callable[[Array], Array],
        after: Callable[[Array], Array],
    ) -> None:
        shape = static(data.shape)
        self._axes, self._fold, self._before, self._after = axes, fold, before, after
        self._output = output
        kept = tuple(1 if axis in axes else extent for axis, extent in enumerate(shape))
        start = {np.maximum: -np.inf, np.minimum: np.inf}.get(fold, 0.0)
        self._total = np.full(kept, start, np.float64)

    def measure(self, array: Array) -> Array:
        """Reduce the elements of a box."""
        part = self._before(array.astype(np.float64))
        folded: Array = self._fold.reduce(part, axis=self._axes, keepdims=True)
        return folded

    def add(self, box: Box, measured: Array) -> None:
        """Combine the result of a box with those before."""
        at = _kept(box, self._total.shape)
        self._total[at] = self._fold(self._total[at], measured)

    def result(self) -> Operation:
        """Return the reduced array."""
        assert self._output.element_type is not None, "the model is static"
        value = self._after(self._total).astype(self._output.element_type.numpy())
        return KnownArrays(value=FixedArrays(value.reshape(static(self._output.shape))))


class Moments:
    """Mean and variance along axes, by the pairwise formula of Chan, Golub and LeVeque, in f64.

    With groups, the moments of a group's channels are merged; scale and bias of the channels
    follow.
    """

    def __init__(
        self,
        data: TensorInfo,
        axes: tuple[int, ...],
        factor: Callable[[Array], Array],
        groups: int | None = None,
    ) -> None:
        self.inputs, self._groups = 1 if groups is None else 3, groups
        assert data.element_type is not None, "the model is static"
        shape = static(data.shape)
        kept = tuple(1 if axis in axes else extent for axis, extent in enumerate(shape))
        self._axes, self._factor = axes, factor
        self._dtype = widen(np.empty(0, data.element_type.numpy())).dtype
        self._count, self._mean, self._squares = (np.zeros(kept) for _ in range(3))

    def measure(self, array: Array) -> tuple[float, Array, Array]:
        """Return count, mean and squared deviations of a box."""
        part = array.astype(np.float64)
        mean = part.mean(axis=self._axes, keepdims=True)
        squares = np.square(part - mean).sum(axis=self._axes, keepdims=True)
        return float(part.size // max(1, mean.size)), mean, squares

    def add(self, box: Box, measured: tuple[float, Array, Array]) -> None:
        """Merge count, mean and squared deviations of a box with those before."""
        new, mean, squares = measured
        at = _kept(box, self._mean.shape)
        old = self._count[at].copy()
        step = mean - self._mean[at]
        self._count[at] = old + new
        self._mean[at] += step * new / (old + new)
        self._squares[at] += squares + step * step * old * new / (old + new)

    def result(self) -> Operation:
        """Return the operation that subtracts the mean and multiplies."""
        mean, variance = self._mean, self._squares / self._count
        if self._groups is not None:
            mean, variance = _merge(mean, variance, self._groups)
        arrays = (array.astype(self._dtype) for array in (mean, self._factor(variance)))
        return Standardize(moments=FixedArrays(*arrays))


def _merge(mean: Array, variance: Array, groups: int) -> tuple[Array, Array]:
    """Return mean and variance of each channel's group, from those of the channels."""
    rows = mean.shape[0], groups, -1
    means, variances = mean.reshape(rows), variance.reshape(rows)
    common = means.mean(axis=2, keepdims=True)
    spread = (variances + np.square(means - common)).mean(axis=2, keepdims=True)
    merged = (np.broadcast_to(array, means.shape) for array in (common, spread))
    first, second = (array.reshape(mean.shape) for array in merged)
    return first, second
