"""Fourier transforms: DFT-7, IDFT-7, RDFT-9 and IRDFT-9.

Complex numbers are a last axis of extent 2: real and imaginary part.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from deconv_ir.errors import ShapeError
from deconv_ir.ir.geometry import UNKNOWN, Dim, monotone
from deconv_ir.ir.operation import Arrays, Context, Infos, Operation, TensorInfo
from deconv_ir.ir.shapes import format_shape, intersect_dims, static
from deconv_ir.ops.base import operation
from deconv_ir.ops.checks import (
    axis_count,
    check_least_rank,
    check_lists,
    check_type,
    integers,
    known_integers,
    misfit,
    normalize_axes,
)
from deconv_ir.ops.numeric import narrow, np, widen
from deconv_ir.ops.values import as_dims, unknown_dims

if TYPE_CHECKING:
    from deconv_ir.ops.allowance import Bounds, Case


class _Fourier(Operation):
    """A transform along axes, after the data is cropped or zero-padded to `signal_size`."""

    scratch_ratios = (1.25, 2)

    formula = "data {shape[data]}, axes {value[axes]}"

    complex_in: ClassVar[bool] = True
    complex_out: ClassVar[bool] = True
    inverse: ClassVar[bool] = False

    def allowance(self, case: Case) -> Bounds | None:
        from deconv_ir.ops.allowance import composed

        return composed(case, arguments=16)

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        data = inputs[0]
        element_type = check_type(data, "data", "float")
        check_lists(inputs[1:], self.inputs[1:], 1)
        check_least_rank(data, "data", 2 if self.complex_in else 1)
        if data.shape is None:
            return (TensorInfo(None, element_type),)
        shape = data.shape
        if self.complex_in:
            if intersect_dims(shape[-1], 2) is None:
                message = (
                    f"the last axis of data must be 2, real and imaginary part, "
                    f"found {format_shape(shape)}"
                )
                raise ShapeError(message, expected=2, actual=shape[-1], rule="fourier")
            shape = shape[:-1]
        pair: tuple[Dim, ...] = (2,) if self.complex_out else ()
        axes = known_integers(inputs[1])
        if axes is None:
            return (TensorInfo((*unknown_dims(len(shape)), *pair), element_type),)
        axes = normalize_axes(axes, len(shape))
        dims = list(shape)
        sizes = self._sizes(inputs, len(axes))
        for i, axis in enumerate(axes):
            size = sizes[i]
            last = i == len(axes) - 1
            if size != -1:
                dims[axis] = size
            elif last and self.complex_in and not self.complex_out:
                dims[axis] = monotone(lambda n: max(0, 2 * (n - 1)), dims[axis])
            if last and not self.complex_in:
                dims[axis] = monotone(lambda n: n // 2 + 1 if n else 0, dims[axis])
        return (TensorInfo((*dims, *pair), element_type),)

    @staticmethod
    def _sizes(inputs: Infos, count: int) -> tuple[Dim, ...]:
        """Return the signal sizes; -1: the extent of the data."""
        if len(inputs) < 3:
            return (-1,) * count
        length = axis_count(inputs[2])
        if length not in (None, count):
            must = f"have {count} elements as axes has"
            raise misfit("input-shape", "signal_size", must, length, count)
        value = inputs[2].value
        if value is None:
            return (UNKNOWN,) * count
        for size in value:
            if isinstance(size, int) and (size < -1 or size == 0):
                message = f"signal_size must be positive, or -1, found {format_shape(value)}"
                raise ShapeError(message, expected=">= 1 or -1", actual=size, rule="fourier")
        return as_dims(value)

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        """Transform, in the precision of the data."""
        from scipy import fft

        data = widen(inputs[0])
        rank = data.ndim - self.complex_in
        axes = normalize_axes(integers(inputs[1]), rank)
        sizes: Any = integers(inputs[2]) if len(inputs) > 2 else (-1,) * len(axes)
        known = [TensorInfo((len(v),), None, tuple(v)) for v in map(integers, inputs[1:])]
        output = static(self.infer([TensorInfo(data.shape), *known], context)[0].shape)
        if 0 in output or 0 in data.shape:  # no elements, or empty sums
            return (np.zeros(output, inputs[0].dtype),)
        if self.complex_in:
            data = data[..., 0] + 1j * data[..., 1]
        wanted = [data.shape[a] if s == -1 else s for a, s in zip(axes, sizes, strict=True)]
        if not axes:
            result = data
        elif not self.complex_in:
            result = fft.rfftn(data, wanted, axes)
        elif not self.complex_out:
            if sizes[-1] == -1:
                wanted[-1] = 2 * (data.shape[axes[-1]] - 1)
            result = fft.irfftn(data, wanted, axes)
        else:
            result = (fft.ifftn if self.inverse else fft.fftn)(data, wanted, axes)
        return (narrow(self._parts(result), inputs[0].dtype),)

    def scratch(self, inputs: Infos, outputs: Infos, context: Context) -> int:
        """Count the factors of the longest axis as well, of a convolution if it is prime."""
        longest = max(*static(inputs[0].shape), *static(outputs[0].shape), 1)
        return 200 * longest + super().scratch(inputs, outputs, context)

    def _parts(self, result: Any) -> Any:
        return np.stack([result.real, result.imag], -1) if self.complex_out else result.real


@operation(
    "DFT-7(data, axes, signal_size?)",
    "f32[3,4,2], i64[2]{0,-1}, i64[2]{-1,5} -> f32[3,5,2]",
)
class DFT(_Fourier):
    """Discrete Fourier transform, complex to complex."""


@operation("IDFT-7(data, axes, signal_size?)", "f32[3,4,2], i64[1]{1} -> f32[3,4,2]")
class IDFT(_Fourier):
    """Inverse discrete Fourier transform, complex to complex."""

    inverse = True


@operation("RDFT-9(data, axes, signal_size?)", "f32[3,6], i64[1]{1} -> f32[3,4,2]")
class RDFT(_Fourier):
    """Discrete Fourier transform, real to complex: half of the last axis."""

    complex_in = False


@operation("IRDFT-9(data, axes, signal_size?)", "f32[3,4,2], i64[1]{1} -> f32[3,6]")
class IRDFT(_Fourier):
    """Inverse discrete Fourier transform, complex to real."""

    complex_out = False
    inverse = True
