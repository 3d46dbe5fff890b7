"""Transposed convolution of NumPy arrays."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence, Set
from itertools import islice
from operator import index
from typing import TYPE_CHECKING, Any

import numpy as np

from deconv_ir.arrays.foreign import as_array
from deconv_ir.errors import InputError, ResourceError, one_line
from deconv_ir.execute.memory import out_of_memory, require_memory
from deconv_ir.ir.dtypes import Array, from_numpy
from deconv_ir.ir.geometry import PadMode
from deconv_ir.ir.operation import Context, TensorInfo
from deconv_ir.ir.options import Accuracy, Semantics
from deconv_ir.ir.shapes import MAX_RANK, size_error, static
from deconv_ir.ops.base import MAX_INTEGER
from deconv_ir.ops.convolution.deconvolution import AUTO_PAD
from deconv_ir.ops.convolution.dims import describe_requested
from deconv_ir.ops.convolution.openvino import GroupConvolutionBackpropData

if TYPE_CHECKING:
    from numpy.typing import ArrayLike


_VALUE_SHOWN = 200


def conv_transpose(
    x: ArrayLike,
    filter: ArrayLike,  # noqa: A002 - the documents' name
    bias: ArrayLike | None = None,
    *,
    strides: int | Sequence[int] = 1,
    dilations: int | Sequence[int] = 1,
    pads_begin: int | Sequence[int] = 0,
    pads_end: int | Sequence[int] = 0,
    output_padding: int | Sequence[int] = 0,
    groups: int = 1,
    auto_pad: str | PadMode = PadMode.EXPLICIT,
    output_shape: Sequence[int] | None = None,
    semantics: str | Semantics = Semantics.SPEC,
    accuracy: str | Accuracy = Accuracy.FAST,
) -> Array:
    """Compute a transposed convolution.

    Parameters
    ----------
    x : array, [N, C_IN, X...]
        One or more spatial axes.
    filter : array, [C_IN, C_OUT / groups, K...]
        Array with the element type of `x`.
    bias : array, [C_OUT], optional
        Added to every output element.
    strides, dilations : int or sequence of int
        Positive; one number stands for all spatial axes.
    pads_begin, pads_end, output_padding : int or sequence of int
        Non-negative; one number stands for all spatial axes.
    groups : int
        Divides C_IN and C_OUT.
    auto_pad : PadMode or str
        ``explicit``, ``same_upper``, ``same_lower`` or ``valid``.
    output_shape : sequence of int, optional
        Spatial extents of the output; the pads follow from it.
    semantics : Semantics or str
        ``spec`` or ``openvino``; they differ only with `output_shape`.
    accuracy : Accuracy or str
        ``fast``, or ``direct``: direct sums, without Winograd.  ``float64``: computed in f64;
        ``float64-rounded``: then rounded to the element type of `x`.  ``bf16`` equals ``fast``: the
        filter of a single call is not rounded.

    Returns
    -------
    array, [N, C_OUT, Y...]
        ``Y = stride*(X - 1) + ((K - 1)*dilation + 1) - pad_begin - pad_end + output_padding``,
        or `output_shape`.  f32 and f64 are computed in their own precision,
        f16 and bf16 in f32 and rounded once, integers exactly modulo 2^bits.

    Raises
    ------
    InputError
        An argument is of the wrong kind or out of range.
    UnsupportedError
        The element type is not supported.
    ResourceError
        The arrays do not fit into memory.
    ShapeError
        The shapes do not fit together.

    Notes
    -----
    Source: OpenVINO operation specification, ConvolutionBackpropData-1, 'Detailed description'.

    Examples
    --------
    >>> import numpy as np
    >>> from deconv_ir import conv_transpose
    >>> conv_transpose(np.array([[[1., 2., 3.]]]), np.array([[[1., 10.]]]), strides=2)
    array([[[ 1., 10.,  2., 20.,  3., 30.]]])
    """
    from deconv_ir.ops.convolution.packed import PackedConvolution

    data, weights = _array("x", x), _array("filter", filter)
    offsets = None if bias is None else _array("bias", bias)
    spatial = max(1, data.ndim - 2)
    grouped_shape = _grouped(groups, weights.shape)
    operation = _FunctionalConvTranspose(
        strides=_per_axis("strides", strides, spatial, 1),
        dilations=_per_axis("dilations", dilations, spatial, 1),
        pads_begin=_per_axis("pads_begin", pads_begin, spatial, 0),
        pads_end=_per_axis("pads_end", pads_end, spatial, 0),
        output_padding=_per_axis("output_padding", output_padding, spatial, 0),
        auto_pad=_pad_mode(auto_pad),
    )
    infos = [
        TensorInfo(data.shape, from_numpy(data.dtype)),
        TensorInfo(grouped_shape, from_numpy(weights.dtype)),
    ]
    requested = []
    if output_shape is not None:
        extents = _per_axis("output_shape", output_shape, None, 0)
        requested = [np.array(extents, np.int64)]
        infos.append(describe_requested(requested[0]))
    context = Context(Semantics.of(semantics), accuracy=Accuracy.of(accuracy))
    (output,) = operation.infer(infos, context)
    _check_bias(offsets, output)
    element_type = output.element_type
    if context.accuracy.is_float64 and element_type is not None and element_type.is_float:
        data, weights = data.astype(np.float64), weights.astype(np.float64)
        offsets = None if offsets is None else offsets.astype(np.float64)
    needed = _bytes_needed(static(output.shape), data, weights)
    require_memory(needed, subject="conv_transpose", hint=None)
    try:
        kernel = operation.kernel(weights.reshape(grouped_shape), offsets, context)
        kept = (None, None, *requested)
        packed = PackedConvolution(operation, kernel, grouped_shape, kept, context)
        (result,) = packed([data, weights, *requested])
        if context.accuracy is Accuracy.FLOAT64_ROUNDED and element_type is not None:
            return result.astype(element_type.numpy(), copy=False)
        return result
    except MemoryError as error:
        raise out_of_memory(needed, error, subject="conv_transpose") from error
    except (TypeError, ValueError, OverflowError) as error:
        raise InputError(str(error)) from error


class _FunctionalConvTranspose(GroupConvolutionBackpropData):
    """The operation; its inputs have the names of the function's arguments, for messages."""

    inputs = ("x", "filter", "output_shape")


def _check_bias(bias: Array | None, output: TensorInfo) -> None:
    if bias is None:
        return
    element_type = from_numpy(bias.dtype)
    if element_type is not output.element_type:
        raise InputError(
            f"bias must be of the element type of x, {output.element_type}, found {element_type}"
        )
    wanted = static(output.shape)[1:2]
    if bias.shape != wanted:
        raise InputError(f"bias must have shape {list(wanted)}, found {list(bias.shape)}")


def _bytes_needed(output: tuple[int, ...], data: Array, weights: Array) -> int:
    """Return the bytes of the output, the packed filter and copies of broadcast data."""
    error = size_error(output, 8 * data.itemsize)
    if error is not None:
        raise ResourceError(f"invalid output: {error}", rule="memory")
    copied = 0 if data.flags.c_contiguous else data.nbytes
    return math.prod(output) * data.itemsize + weights.nbytes + copied


def _array(name: str, given: object) -> Array:
    array = as_array(given, name)
    if from_numpy(array.dtype) is None:
        raise InputError(f"{name}: arrays of dtype {array.dtype} are not supported")
    return array if array.dtype.isnative else array.astype(array.dtype.newbyteorder("="))


def _grouped(groups: object, shape: tuple[int, ...]) -> tuple[int, ...]:
    if not 3 <= len(shape) < MAX_RANK:
        raise InputError(
            f"filter must have rank 3 or greater, and less than {MAX_RANK}, "
            f"found shape {list(shape)}"
        )
    try:
        count = index(groups)  # type: ignore[arg-type]
    except Exception:  # of any class
        raise InputError(f"groups must be a whole number, found {_shown(groups)}") from None
    if count < 1 or shape[0] % count:
        raise InputError(f"groups={count} must be positive and divide the {shape[0]} channels")
    return (count, shape[0] // count, *shape[1:])


def _pad_mode(auto_pad: object) -> PadMode:
    if isinstance(auto_pad, PadMode):
        return auto_pad
    try:
        if isinstance(auto_pad, str):
            mode: PadMode = AUTO_PAD.parse(auto_pad)
            return mode
    except ValueError:
        pass
    raise InputError(f"auto_pad must be {AUTO_PAD.allowed}, found {_shown(auto_pad)}")


def _per_axis(name: str, value: Any, spatial: int | None, minimum: int) -> tuple[int, ...]:
    """Return one value for each spatial axis; with `spatial` None, a single number is an error."""
    try:
        if isinstance(value, str | bytes | Mapping | Set):
            raise TypeError
        if isinstance(value, Iterable) and getattr(value, "ndim", None) != 0:
            values = tuple(index(v) for v in islice(value, MAX_RANK + 1))
        elif spatial is None:
            raise TypeError
        else:
            values = (index(value),) * spatial
    except Exception:  # an iterable can raise any error
        what = "a sequence of whole numbers" if spatial is None else "whole numbers"
        raise InputError(f"{name} must be {what}, found {_shown(value)}") from None
    if any(not minimum <= v <= MAX_INTEGER for v in values):
        raise InputError(f"{name} must be >= {minimum}, and < 2^63, found {_shown(value)}")
    return values


def _shown(value: object) -> str:
    """Return the text of a value of any kind for a message."""
    try:
        return one_line(repr(value), _VALUE_SHOWN)
    except Exception:  # of any class
        return f"an object of type {type(value).__name__}"
