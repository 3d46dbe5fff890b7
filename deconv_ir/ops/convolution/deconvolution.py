"""The base of the four transposed convolutions: shape rule and pads."""

from __future__ import annotations

import abc
from typing import TYPE_CHECKING, ClassVar

from deconv_ir.errors import ShapeError
from deconv_ir.ir.geometry import Axis, AxisGeometry, Dim, PadMode, bounds, monotone
from deconv_ir.ir.operation import Context, Infos, TensorInfo
from deconv_ir.ir.options import Semantics
from deconv_ir.ir.shapes import element_count, is_static, static
from deconv_ir.ops.base import attribute, choice, integers
from deconv_ir.ops.convolution.base import AnyConvolution
from deconv_ir.ops.convolution.dims import DataDims, FilterDims
from deconv_ir.ops.windows import check_length, window_axes

if TYPE_CHECKING:
    from deconv_ir.ir.expression import SemanticsDifference

AUTO_PAD = choice(PadMode, none=PadMode.EXPLICIT)


class Deconvolution(AnyConvolution):
    """Attributes and behaviour that all four operations share."""

    transposed: ClassVar[bool] = True

    pads_begin: tuple[int, ...] | None = attribute(integers(0, per_axis=True), None, required=True)
    pads_end: tuple[int, ...] | None = attribute(integers(0, per_axis=True), None, required=True)
    auto_pad: PadMode = attribute(AUTO_PAD, PadMode.EXPLICIT)
    output_padding: tuple[int, ...] | None = attribute(integers(0, per_axis=True), None)

    @abc.abstractmethod
    def axis_geometry(
        self, axis: Axis, data: int, kernel: int, output: int | None, semantics: Semantics
    ) -> AxisGeometry:
        """Find pads and extent of one axis."""

    def axes(self, spatial: int) -> tuple[Axis, ...]:
        axes = window_axes(self, spatial)
        self.check_output_padding(spatial)
        if not self.output_padding:
            return axes
        pairs = zip(axes, self.output_padding, strict=False)
        return tuple(axis._replace(output_padding=padding) for axis, padding in pairs)

    def check_output_padding(self, spatial: int) -> None:
        """Require one value for each spatial axis."""
        check_length("output_padding", self.output_padding or None, spatial)

    def check_kernel(self, filter_: FilterDims) -> None:
        for index, extent in enumerate(filter_.kernel):
            if extent == 0:
                raise ShapeError(
                    f"{self.inputs[1]} is empty on spatial axis {index}", rule="empty-kernel"
                )

    def extent(self, index: int, axis: Axis, data: Dim, kernel: Dim, semantics: Semantics) -> Dim:
        def output(x: int, k: int) -> int:
            # An unknown dim is assumed to be at least 1, as in OpenVINO.
            return self.axis_geometry(axis, max(1, x), max(1, k), None, semantics).output

        if isinstance(data, int) and isinstance(kernel, int):
            geometry = self.axis_geometry(axis, data, kernel, None, semantics)
            if geometry.output < 0:
                raise ShapeError(
                    f"the output would have a negative extent on spatial axis {index}: "
                    f"{geometry.formula}",
                    actual=geometry.output,
                    expected=">= 0",
                    rule="negative-extent",
                )
            return geometry.output
        return monotone(output, data, kernel)

    def geometry(self, inputs: Infos, context: Context) -> tuple[AxisGeometry, ...] | None:
        spatial = self.spatial_count(inputs)
        if spatial is None:
            return None
        data, filter_ = self.dims(inputs, spatial)
        requested, _ = self.requested_output(inputs, spatial)
        outputs: tuple[Dim | None, ...] = requested or (None,) * spatial
        found = []
        for axis, x, k, y in zip(
            self.axes(spatial), data.spatial, filter_.kernel, outputs, strict=True
        ):
            if not isinstance(x, int) or not isinstance(k, int):
                return None
            if y is not None and not isinstance(y, int):
                return None
            found.append(self.axis_geometry(axis, x, k, y, context.semantics))
        return tuple(found)

    def compare_pads(self, inputs: Infos, context: Context) -> SemanticsDifference | None:
        """Compare the pads by the specification with those of the runtime."""
        found = [
            self.geometry(inputs, context._replace(semantics=semantics))
            for semantics in (Semantics.SPEC, self.runtime)
        ]
        if found[0] is None or found[1] is None:
            return None
        pads = [tuple(axis.pad_begin for axis in geometry) for geometry in found if geometry]
        outputs = [tuple(axis.output for axis in geometry) for geometry in found if geometry]
        texts = [",".join(map(str, each)) for each in pads]
        if outputs[0] != outputs[1]:
            pads = [begin + output for begin, output in zip(pads, outputs, strict=True)]
            extents = [",".join(map(str, output)) for output in outputs]
            texts = [f"{t} and extents {e}" for t, e in zip(texts, extents, strict=True)]
        if pads[0] == pads[1]:
            return None
        from deconv_ir.ir.expression import SemanticsDifference

        return SemanticsDifference(f"gives pads_begin {texts[0]}", texts[1], pads[0], pads[1])

    def explain_axis(
        self, inputs: Infos, context: Context, data: DataDims, filter_: FilterDims, index: int
    ) -> str:
        geometry = self.geometry(inputs, context)
        if geometry is not None:
            return geometry[index].formula
        spatial = len(data.spatial)
        requested, _ = self.requested_output(inputs, spatial)
        if requested is not None:
            return f"Y = {self.inputs[2]}[{index}] = {requested[index]}"
        ends = [bounds(d) for d in (data.spatial[index], filter_.kernel[index])]
        axis_ = self.axes(spatial)[index]
        low = self.axis_geometry(axis_, ends[0][0], ends[1][0], None, context.semantics)
        if ends[0][1] is None or ends[1][1] is None:
            return f"at least: {low.formula}"
        high = self.axis_geometry(axis_, ends[0][1], ends[1][1], None, context.semantics)
        return f"from {low.formula} to {high.formula}"

    def work(self, inputs: Infos, output: TensorInfo) -> int | None:
        """Count two operations for each tap of each input element and output channel."""
        if not is_static(inputs[0].shape) or not is_static(inputs[1].shape):
            return None
        data, filter_ = static(inputs[0].shape), static(inputs[1].shape)
        outputs = bounds(self.filter_dims(filter_).outputs)[0]
        kernel = element_count([bounds(k)[0] for k in self.filter_dims(filter_).kernel])
        return 2 * element_count(data) * outputs * kernel
