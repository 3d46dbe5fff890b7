"""AvgPool-1, -14 and -16."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from deconv_ir.ir.dtypes import Array
from deconv_ir.ir.geometry import Axis, AxisGeometry, Rounding
from deconv_ir.ir.operation import Context, Infos
from deconv_ir.ir.options import Semantics
from deconv_ir.ir.record import field
from deconv_ir.ir.shapes import element_count, is_static, static
from deconv_ir.ops.base import attribute, boolean, integers, operation
from deconv_ir.ops.numeric import narrow, np, working_dtype
from deconv_ir.ops.pooling.pooling import ROUNDING, ROUNDING_TORCH, Pool, Pooling

if TYPE_CHECKING:
    from deconv_ir.ir.boxes import Box
    from deconv_ir.ir.expression import SemanticsDifference
    from deconv_ir.ops.allowance import Bounds, Case


class _AvgPool(Pooling):
    """Mean of the elements in a window."""

    exclude_pad: bool = attribute(boolean(), name="exclude-pad")

    counts: tuple[tuple[int, ...], ...] | None = field(default=None)
    """The divisors of a tile, axis by axis."""

    def sum_dtype(self, dtype: Any) -> Any:
        """Add integers in i64."""
        wide = working_dtype(dtype)
        return np.dtype(np.int64) if wide.kind in "iu" else wide

    def allowance(self, case: Case) -> Bounds | None:
        from deconv_ir.ops.allowance import sums

        return sums(case, math.prod(self.kernel), values=(0,))

    def scratch(self, inputs: Infos, outputs: Infos, context: Context) -> int:
        """Count the temporary arrays of `slide`, the divisors of a plane, and signs of sums."""
        result, element_type = static(outputs[0].shape), outputs[0].element_type
        signs = element_count(result) * (element_type is not None and not element_type.is_float)
        return self.slide_bytes(inputs, outputs, context) + 16 * element_count(result[2:]) + signs

    def pool(self, shape: tuple[int, ...], dtype: Any, context: Context) -> Pool:
        """Return a function that computes the means."""
        from deconv_ir.ops.pooling.sliding import slide

        wide = self.sum_dtype(dtype)
        windows = self.windows(shape[2:])
        divisors = self._divisors(shape[2:], context.semantics)
        add, divides = self.sliding(
            slide(np.add, 0, shape, windows, (dtype, wide), context.scratch_bytes),
            shape, dtype, divisors,
        )  # fmt: skip
        if divides:
            return add
        count = np.ones((), np.int64)
        for axis in divisors:
            count = count[..., None] * axis
        divisor = np.maximum(count, 1) if wide.kind in "iu" else count.astype(wide)

        def pool(data: Array, out: Array | None) -> Array:
            total = add(data, out)
            if wide.kind in "iu":
                negative = total < 0
                np.abs(total, out=total)
                total //= divisor
                return narrow(np.negative(total, out=total, where=negative), dtype)
            total /= divisor
            return narrow(total, dtype)

        return pool

    def placed_at(
        self,
        placed: tuple[AxisGeometry, ...],
        extents: tuple[int, ...],
        box: Box,
        semantics: Semantics,
    ) -> Pooling:
        divisors = self._divisors(extents, semantics)
        counts = tuple(
            tuple(map(int, count[slice(*span)])) for count, span in zip(divisors, box, strict=True)
        )
        return self.replace(placed=placed, counts=counts)

    def _divisors(self, extents: tuple[int, ...], semantics: Semantics) -> list[Array]:
        """Return the number of elements that each window averages, for each axis.

        A window that reaches beyond the padding because of `ceil` counts only the elements inside,
        as in torch and ONNX's AveragePool, to which the document refers.
        """
        if self.counts is not None:
            return list(map(np.array, self.counts))
        geometry = self.geometry(extents)
        if self._divides_by_kernel(geometry, semantics):
            return [np.full(geo.output, k) for k, geo in zip(self.kernel, geometry, strict=True)]
        padding = not self.exclude_pad
        return [
            _count(axis, geo, x, k, padding=padding)
            for axis, geo, x, k in zip(self.axes(), geometry, extents, self.kernel, strict=True)
        ]

    def _divides_by_kernel(self, geometry: Sequence[AxisGeometry], semantics: Semantics) -> bool:
        """Whether every window is divided by its full size: in OpenVINO if there is any padding."""
        return (
            semantics is Semantics.OPENVINO
            and not self.exclude_pad
            and any(g.pad_begin or g.pad_end for g in geometry)
        )

    def compare_semantics(self, inputs: Infos, context: Context) -> SemanticsDifference | None:
        shape = inputs[0].shape
        if not is_static(shape):
            return None
        extents = static(shape)[2:]
        geometry = self.geometry(extents)
        if not self._divides_by_kernel(geometry, Semantics.OPENVINO):
            return None
        axes = zip(self.axes(), geometry, extents, self.kernel, strict=True)
        last = [
            within(axis, (geo.output - 1) * axis.stride, geo.pad_begin + x + geo.pad_end, k)
            for axis, geo, x, k in axes
        ]
        spec, openvino = math.prod(last), math.prod(self.kernel)
        if spec == openvino:
            return None
        from deconv_ir.ir.expression import SemanticsDifference

        return SemanticsDifference(
            f"gives the last window the divisor {spec}",
            f"{openvino}",
            (spec,),
            (openvino,),
        )


def within(axis: Axis, start: int, end: int, kernel: int) -> int:
    """Return the number of elements before `end` of a window that begins at `start`."""
    return max(0, min(kernel, -(-(end - start) // axis.dilation)))


def _count(axis: Axis, geometry: AxisGeometry, data: int, kernel: int, *, padding: bool) -> Array:
    """Return the number of elements of each window in the data (and padding), on an axis."""
    if padding:
        ends = (0, geometry.pad_begin + data + geometry.pad_end)
    else:
        ends = (geometry.pad_begin, geometry.pad_begin + data)
    return np.array(
        [
            within(axis, start, ends[1], kernel) - within(axis, start, ends[0], kernel)
            for start in range(0, geometry.output * axis.stride, axis.stride)
        ],
        np.int64,
    )


@operation(
    "AvgPool-1(data)",
    "f32[1,2,5,6] -> f32[1,2,3,4]"
    " | kernel=2,2 strides=2,2 pads_begin=0,1 pads_end=0,1 exclude-pad=true rounding_type=ceil",
)
class AvgPool1(_AvgPool):
    """Mean of the elements in a window; integer means are truncated toward zero."""

    rounding_type: Rounding = attribute(ROUNDING, Rounding.FLOOR)


@operation(
    "AvgPool-14(data)",
    "f32[1,2,5,7] -> f32[1,2,3,3] | kernel=2,2 strides=2,3 pads_begin=0,0 pads_end=0,0 "
    "exclude-pad=false rounding_type=ceil_torch",
)
class AvgPool14(_AvgPool):
    """Mean of the elements in a window; integer means are truncated toward zero."""

    rounding_type: Rounding = attribute(ROUNDING_TORCH, Rounding.FLOOR)


@operation(
    "AvgPool-16(data)",
    "f32[1,2,5,7] -> f32[1,2,3,5]"
    " | kernel=2,2 strides=1,1 dilations=2,2 pads_begin=0,0 pads_end=0,0 exclude-pad=false",
)
class AvgPool16(_AvgPool):
    """Mean of the elements in a window; integer means are truncated toward zero."""

    dilations: tuple[int, ...] | None = attribute(integers(1, per_axis=True), None)
    rounding_type: Rounding = attribute(ROUNDING_TORCH, Rounding.FLOOR)
