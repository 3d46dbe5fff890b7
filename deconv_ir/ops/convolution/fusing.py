"""What a convolution's kernel can take over from the layers behind it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from deconv_ir.ir.dtypes import Array
from deconv_ir.ir.operation import Arrays, Epilogue, Operation
from deconv_ir.ops.numeric import np

if TYPE_CHECKING:
    from deconv_ir.kernels import Activation


def as_bias(addend: Array, rank: int, axis: int, channels: int, dtype: Any) -> Array | None:
    """Return an addend as one number a channel; None where it is something else.

    Parameters
    ----------
    addend : ndarray
        What is added, broadcast by NumPy's rule.
    rank : int
        Rank of what it is added to.
    axis : int
        The axis of the channels.
    channels : int
        Extent of that axis.
    dtype : dtype
        Element type of what it is added to.

    Returns
    -------
    ndarray, [channels]
    """
    if addend.ndim > rank or addend.dtype != dtype:
        return None
    shape = (1,) * (rank - addend.ndim) + addend.shape
    found = shape[axis]
    if addend.size != found or found not in (1, channels):
        return None
    return np.ascontiguousarray(np.broadcast_to(addend.reshape(-1), (channels,)))


def as_activation(operation: Operation, parameters: Arrays, dtype: Any) -> Activation | None:
    """Return an operation as an activation of the kernels; None where they have none such.

    Parameters
    ----------
    operation : Operation
    parameters : sequence of ndarray
        Its constant inputs beside the first.
    dtype : dtype
        Element type that it is applied to.
    """
    found = _ACTIVATIONS.get(operation.type)
    return None if found is None else found(operation, parameters, dtype)


def is_activation(operation: Operation) -> bool:
    """Whether the kernels have an operation as an activation, for some parameters and types."""
    return operation.type in _ACTIVATIONS


def _relu(operation: Operation, parameters: Arrays, dtype: Any) -> Activation | None:
    from deconv_ir.kernels import Activation, ActivationKind

    return Activation(ActivationKind.RELU)


def _clamp(operation: Any, parameters: Arrays, dtype: Any) -> Activation | None:
    from deconv_ir.kernels import Activation, ActivationKind

    if dtype.kind in "iu":
        return None
    return Activation(ActivationKind.CLAMP, low=operation.min, high=operation.max)


def _prelu(operation: Operation, parameters: Arrays, dtype: Any) -> Activation | None:
    from deconv_ir.kernels import Activation, ActivationKind

    if dtype.kind in "iu" or parameters[0].size != 1:
        return None
    return Activation(ActivationKind.LEAKY_RELU, slope=float(parameters[0].reshape(())))


_ACTIVATIONS: dict[str, Callable[[Operation, Arrays, Any], Activation | None]] = {
    "ReLU": _relu,
    "Clamp": _clamp,
    "PReLU": _prelu,
}


def as_kernel_epilogue(
    epilogue: Epilogue, rank: int, axis: int, channels: int, dtype: Any
) -> tuple[Array | None, Activation | None] | None:
    """Return bias and activation for a kernel; None where it cannot take the epilogue.

    Parameters are those of `as_bias`.
    """
    bias = activation = None
    if epilogue.addend is not None:
        bias = as_bias(epilogue.addend, rank, axis, channels, dtype)
        if bias is None:
            return None
    if epilogue.activation is not None:
        activation = as_activation(epilogue.activation, epilogue.parameters, dtype)
        if activation is None:
            return None
    return bias, activation
