"""What the two OpenVINO operations share: types, `output_shape`, pads."""

from __future__ import annotations

from deconv_ir.errors import ShapeError
from deconv_ir.ir.dtypes import ElementType
from deconv_ir.ir.geometry import Axis, AxisGeometry, Dim, openvino_axis
from deconv_ir.ir.operation import Context, Infos, SemanticsDifference
from deconv_ir.ir.options import Semantics
from deconv_ir.ops.checks import merged_type
from deconv_ir.ops.convolution.deconvolution import Deconvolution
from deconv_ir.ops.convolution.views import DataView, check_output_shape


class OpenVINODeconvolution(Deconvolution):
    """What the two OpenVINO operations share: types, `output_shape`, pads."""

    def axis_geometry(
        self, axis: Axis, data: int, kernel: int, output: int | None, semantics: Semantics
    ) -> AxisGeometry:
        """Find pads and extent of one axis; see `geometry.openvino_axis`."""
        return openvino_axis(axis, data, kernel, self.auto_pad, output, semantics)

    def requested_output(
        self, inputs: Infos, spatial: int
    ) -> tuple[tuple[Dim, ...] | None, DataView | None]:
        """Return the elements of the `output_shape` input."""
        if len(inputs) < 3:
            return None, None
        return check_output_shape(inputs[2], "output_shape", spatial), None

    def compare_semantics(self, inputs: Infos, context: Context) -> SemanticsDifference | None:
        """Compare the pads; they can differ only where `output_shape` is given."""
        if len(inputs) < 3:
            return None
        pads = []
        for semantics in (Semantics.SPEC, Semantics.OPENVINO):
            geometry = self.geometry(inputs, Context(semantics, context.weights))
            if geometry is None:
                return None
            pads.append(tuple(axis.pad_begin for axis in geometry))
        spec, openvino = pads
        if spec == openvino:
            return None
        return SemanticsDifference(
            f"the specification gives pads_begin {','.join(map(str, spec))}, the OpenVINO runtime "
            f"{','.join(map(str, openvino))}; used is {context.semantics.value}",
            spec,
            openvino,
        )

    def check_types(self, inputs: Infos) -> ElementType | None:
        """Require one numeric type (T1) for data and filter."""
        element_type = merged_type(inputs[:2], self.inputs)
        if element_type is not None and not (element_type.is_float or element_type.is_integer):
            raise ShapeError(
                f"{self.inputs[0]} must be of a numeric type, found {element_type}",
                expected="a numeric type",
                actual=element_type,
                rule="element-type",
            )
        return element_type
