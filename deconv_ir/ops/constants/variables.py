"""OpenVINO ReadValue and Assign: variables that keep their values between runs.

A run without a `deconv_ir.State`, which keeps values, reads the initial values.
"""

from __future__ import annotations

from deconv_ir.errors import ShapeError, UnsupportedError
from deconv_ir.ir.dtypes import ElementType
from deconv_ir.ir.operation import Arrays, Context, Infos, Operation, Sharing, TensorInfo
from deconv_ir.ir.shapes import Shape, compatible, format_shape
from deconv_ir.ops.base import attribute, element_type, operation, shape, text
from deconv_ir.ops.numeric import np


class _Variable(Operation):
    """An operation on a variable that returns its input."""

    sharing = Sharing.WHOLE
    is_repeatable = False

    variable_id: str = attribute(text())

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        return (inputs[0],)


@operation("ReadValue-3(init_value)", "f32[1,2] -> f32[1,2] | variable_id=memory")
class ReadValue(_Variable):
    """Value of a variable; `init_value` before it is assigned."""

    @property
    def read_variable(self) -> str:
        return self.variable_id

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        # Other runs may read other elements.
        return (TensorInfo(inputs[0].shape, inputs[0].element_type),)


@operation(
    "ReadValue-6(init_value?)",
    "f32[1,2] -> f32[1,2] | variable_id=memory variable_type=f32 variable_shape=1,2",
)
class ReadValue6(_Variable):
    """Value of a variable; `init_value` or zeros before it is assigned.

    Without its shape or type, those of `init_value` are used.
    """

    variable_type: ElementType | None = attribute(element_type(), None, required=True)
    variable_shape: Shape = attribute(shape(), None, required=True)

    @property
    def read_variable(self) -> str:
        return self.variable_id

    @property
    def variable_info(self) -> TensorInfo:
        return TensorInfo(self.variable_shape, self.variable_type)

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        for info in inputs:
            if not compatible(info.shape, self.variable_shape):
                raise ShapeError(
                    f"variable {self.variable_id!r} has shape {format_shape(self.variable_shape)}, "
                    f"init_value has {format_shape(info.shape)}",
                    attribute="variable_shape",
                    expected=format_shape(self.variable_shape),
                    actual=format_shape(info.shape),
                    rule="input-shape",
                )
            if None not in (info.element_type, self.variable_type) and (
                info.element_type is not self.variable_type
            ):
                raise ShapeError(
                    f"variable {self.variable_id!r} is {self.variable_type}, "
                    f"init_value is {info.element_type}",
                    attribute="variable_type",
                    expected=self.variable_type,
                    actual=info.element_type,
                    rule="element-type",
                )
        found = self.variable_info
        if inputs and found.shape is None:
            found = found._replace(shape=inputs[0].shape)
        if inputs and found.element_type is None:
            found = found._replace(element_type=inputs[0].element_type)
        return (found,)

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        if inputs:
            return (inputs[0],)
        if self.variable_shape is None:
            raise UnsupportedError(
                f"variable {self.variable_id!r} has no value before it is assigned: there is no "
                "init_value, and no variable_shape"
            )
        least = tuple(dim if isinstance(dim, int) else dim.min for dim in self.variable_shape or ())
        return (
            np.zeros(least, None if self.variable_type is None else self.variable_type.numpy()),
        )


@operation("Assign-3,6(new_value)", "f32[1,2] -> f32[1,2] | variable_id=memory")
class Assign(_Variable):
    """Sets a variable for the next run."""

    @property
    def assigned_variable(self) -> str:
        return self.variable_id

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        return (inputs[0],)
