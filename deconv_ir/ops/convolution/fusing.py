"""Bias and activation of a convolution's epilogue, from the layers that follow."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deconv_ir.ir.dtypes import Array
from deconv_ir.ir.operation import Arrays, Epilogue, Operation
from deconv_ir.ops.numeric import np

if TYPE_CHECKING:
    from deconv_ir.kernels import Activation

_FUNCTIONS = (
    "HSwish", "HSigmoid", "Swish", "Sigmoid", "Tanh", "Gelu", "Mish", "Elu", "SoftPlus"
)  # fmt: skip
_ACTIVATIONS = ("ReLU", "Clamp", "PReLU", *_FUNCTIONS)


def as_bias(addend: Array, rank: int, axis: int, channels: int, dtype: Any) -> Array | None:
    """Return the addend of an array of this rank and dtype as one number per channel.

    Returns None if it has another form; `axis` is the axis of the channels.
    """
    if addend.ndim > rank or addend.dtype != dtype:
        return None
    shape = (1,) * (rank - addend.ndim) + addend.shape
    found = shape[axis]
    if addend.size != found or found not in (1, channels):
        return None
    return np.ascontiguousarray(np.broadcast_to(addend.reshape(-1), (channels,)))


def _as_slopes(slopes: Array, rank: int, axis: int, channels: int) -> Array | None:
    """Return the slopes of PReLU as one number per channel; None if they have another form."""
    if slopes.shape == (channels,):  # they run along the channels, unlike NumPy's rule
        return slopes
    return as_bias(slopes, rank, axis, channels, slopes.dtype)


def is_activation(operation: Operation) -> bool:
    """Whether the kernels support an operation as activation, for some parameters and types."""
    return operation.type in _ACTIVATIONS


def as_activation(
    operation: Any, parameters: Arrays, dtype: Any, slopes: Array | None = None
) -> Activation | None:
    """Return an operation with its constant inputs as an activation; None: not supported.

    `slopes` are those of PReLU for each channel, if the kernel can have them.
    """
    from deconv_ir.kernels import Activation, ActivationType

    if operation.type == "ReLU":
        return Activation(ActivationType.RELU)
    if dtype.kind in "iu":
        return None
    if operation.type == "Clamp":
        return Activation(ActivationType.CLAMP, low=operation.min, high=operation.max)
    if operation.type == "PReLU" and parameters[0].size == 1:
        return Activation(ActivationType.LEAKY_RELU, slope=float(parameters[0].reshape(())))
    if operation.type == "PReLU" and slopes is not None:
        return Activation(ActivationType.LEAKY_RELU, slopes=tuple(slopes.tolist()))
    if operation.type in _FUNCTIONS and dtype == np.float32 and not parameters:
        return _as_function(operation, dtype)
    return None


def _as_function(operation: Any, dtype: Any) -> Activation | None:
    """Return an activation that is compiled like an elementwise program."""
    from deconv_ir.kernels import Activation, ActivationType
    from deconv_ir.kernels.pointwise import PointwiseExpression

    expression = PointwiseExpression()
    value = operation.compile(expression, [expression.input(dtype)], ())
    found = None if value is None else expression.unary(value)
    if found is None:
        return None
    name, (low, high, *_) = found[0], (*found[1], 0.0, 0.0)
    return Activation(ActivationType.FUNCTION, low, high, 0.0, name, operation.apply)


def as_kernel_epilogue(
    epilogue: Epilogue, rank: int, axis: int, channels: int, dtype: Any, *, slopes: bool = False
) -> tuple[Array | None, Activation | None] | None:
    """Return bias and activation for a kernel; None if the epilogue is not supported.

    Parameters are those of `as_bias`, and whether the kernel can have a slope for each channel.
    """
    bias = activation = of_channels = None
    if epilogue.addend is not None:
        bias = as_bias(epilogue.addend, rank, axis, channels, dtype)
        if bias is None:
            return None
    if epilogue.activation is not None:
        if slopes and epilogue.activation.type == "PReLU":
            of_channels = _as_slopes(epilogue.parameters[0], rank, axis, channels)
        activation = as_activation(epilogue.activation, epilogue.parameters, dtype, of_channels)
        if activation is None:
            return None
    numbers = epilogue.scale, epilogue.offset
    if activation is not None and numbers != (None, None):
        if activation.in_numpy is None or any(n is not None and n.dtype != dtype for n in numbers):
            return None
        scale, offset = (None if n is None else float(n.reshape(())) for n in numbers)
        activation = activation._replace(
            scale=1.0 if scale is None else scale, offset=-0.0 if offset is None else offset
        )
    return bias, activation
