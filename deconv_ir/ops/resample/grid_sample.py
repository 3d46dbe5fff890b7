"""OpenVINO GridSample-9."""

from __future__ import annotations

import enum
from typing import TYPE_CHECKING, Any

from deconv_ir.ir.geometry import UNKNOWN
from deconv_ir.ir.operation import Arrays, Context, Infos, Operation, TensorInfo
from deconv_ir.ir.shapes import element_count, intersect_dims, static
from deconv_ir.ops.base import attribute, boolean, choice, operation
from deconv_ir.ops.checks import check_rank, check_type, misfit
from deconv_ir.ops.numeric import narrow, np, numpy_width, widen

if TYPE_CHECKING:
    from deconv_ir.ops.allowance import Bounds, Case


class SampleMode(enum.Enum):
    """Kind of interpolation."""

    BILINEAR = "bilinear"
    BICUBIC = "bicubic"
    NEAREST = "nearest"


class Beyond(enum.Enum):
    """The values beyond the edges."""

    ZEROS = "zeros"
    BORDER = "border"
    REFLECTION = "reflection"


@operation(
    "GridSample-9(data, grid)",
    "f32[2,3,5,6], f32[2,4,7,2] -> f32[2,3,4,7] | mode=bicubic padding_mode=border",
)
class GridSample(Operation):
    """Image sampled at the positions of a grid, with x and y from -1 to 1."""

    scratch_ratios = (0, 1)

    formula = "data {shape[data]}, grid {shape[grid]}"

    align_corners: bool = attribute(boolean(), False)
    mode: SampleMode = attribute(choice(SampleMode), SampleMode.BILINEAR)
    padding_mode: Beyond = attribute(choice(Beyond), Beyond.ZEROS)

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        data, grid = inputs
        element_type = check_type(data, "data", "any")
        check_type(grid, "grid", "float")
        for info, name in zip(inputs, self.inputs, strict=True):
            check_rank(info, name, 4)
        shape = data.shape or (UNKNOWN,) * 4
        points = grid.shape or (UNKNOWN,) * 4
        batch = intersect_dims(shape[0], points[0])
        if batch is None or intersect_dims(points[3], 2) is None:
            wanted = f"[{shape[0]},H,W,2]"
            raise misfit("grid", "grid", f"be {wanted}", grid.shape, wanted)
        return (TensorInfo((batch, shape[1], points[1], points[2]), element_type),)

    def allowance(self, case: Case) -> Bounds | None:
        from deconv_ir.ops.allowance import resampled

        (allowed,) = resampled(case)
        eps = max(case.precision.sums, case.precision.operand)
        for sign in (-1, 1):
            # Positions are rounded: the element that is nearest may be another one.
            grid = case.inputs[1] + sign * 16 * eps * (1 + np.abs(case.inputs[1]))
            change = np.abs(case.run([case.inputs[0], grid])[0] - case.outputs[0])
            allowed = allowed + np.where(np.isfinite(change), change, 0.0)
        return [allowed]

    def scratch(self, inputs: Infos, outputs: Infos, context: Context) -> int:
        """Count elements and their sums, and four rows and columns of each position, in NumPy."""
        width, found = numpy_width(inputs[0]), element_count(static(outputs[0].shape))
        points = element_count(static(inputs[1].shape)[:-1])
        computed = width and 5 * width * found + 24 * 8 * points
        return computed + super().scratch(inputs, outputs, context)

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        """Read and weight the elements around each position."""
        from deconv_ir.kernels.sampling import sample

        data, grid = inputs[0], widen(inputs[1])
        sampled = sample(
            widen(data), grid,
            mode=self.mode.value, padding=self.padding_mode.value, align=self.align_corners,
        )  # fmt: skip
        return (self._sample(data, grid) if sampled is None else narrow(sampled, data.dtype),)

    def _sample(self, data: Any, grid: Any) -> Any:
        height, width = data.shape[2:]
        with np.errstate(all="ignore"):
            x = self._position(grid[..., 0], width)
            y = self._position(grid[..., 1], height)
            if self.mode is SampleMode.NEAREST:
                picked = self._pick(data, np.rint(y), np.rint(x))
                return picked.astype(data.dtype)
            weigh = _linear if self.mode is SampleMode.BILINEAR else _cubic
            total: Any = 0
            wide = widen(data)
            rows, columns = weigh(y), weigh(x)
            for row, row_weight in rows:
                for column, weight in columns:
                    found = self._pick(wide, row, column)
                    total = total + found * (row_weight * weight)[:, None].astype(wide.dtype)
            return narrow(total, data.dtype)

    def _position(self, at: Any, extent: int) -> Any:
        """Map -1..1 to an index, reflected if requested."""
        span = extent - 1 if self.align_corners else extent
        index = ((at + 1) * span - (span == extent)) / 2
        if self.padding_mode is not Beyond.REFLECTION or self.mode is SampleMode.BICUBIC:
            return index
        return self._reflect(index, extent)

    def _reflect(self, index: Any, extent: int) -> Any:
        """Mirror an index at the centres, or at the outer edges, of the end elements."""
        if self.align_corners:
            if extent == 1:
                return np.zeros_like(index)
            period = 2 * (extent - 1)
            index = np.mod(np.abs(index), period)
            return np.where(index > extent - 1, period - index, index)
        period = 2 * extent
        index = np.mod(index + 0.5, period)
        return np.where(index > extent, period - index, index) - 0.5

    def _pick(self, data: Any, row: Any, column: Any) -> Any:
        """Return data[n, :, row, column], with the padding rule for positions outside."""
        height, width = data.shape[2:]
        if not data.size:
            return np.zeros((*data.shape[:2], *row.shape[1:]), data.dtype)
        if self.padding_mode is Beyond.REFLECTION and self.mode is SampleMode.BICUBIC:
            row, column = self._reflect(row, height), self._reflect(column, width)
        inside = (row >= 0) & (row < height) & (column >= 0) & (column < width)
        # NaN selects the first element, like a clipped index.
        r = np.clip(np.nan_to_num(row), 0, height - 1).astype(np.intp)
        k = np.clip(np.nan_to_num(column), 0, width - 1).astype(np.intp)
        n = np.arange(data.shape[0])[:, None, None]
        found = np.moveaxis(data[n, :, r, k], -1, 1)
        if self.padding_mode is Beyond.ZEROS:
            found = np.where(inside[:, None], found, data.dtype.type(0))
        return found


def _linear(at: Any) -> list[tuple[Any, Any]]:
    first = np.floor(at)
    weight = at - first
    return [(first, 1 - weight), (first + 1, weight)]


def _cubic(at: Any) -> list[tuple[Any, Any]]:
    """Four neighbours, weighted by the cubic convolution kernel with a = -0.75."""
    first, a = np.floor(at), -0.75
    t = at - first
    weights = [
        a * (t - 1) ** 2 * t,
        ((a + 2) * t - (a + 3)) * t * t + 1,
        (((-a - 2) * t + (2 * a + 3)) * t - a) * t,
        -a * t * t * (t - 1),
    ]
    return [(first + i - 1, weight) for i, weight in enumerate(weights)]
