"""The computation itself, for NumPy users."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import TYPE_CHECKING

from .errors import InputError
from .geometry import PadMode, Semantics
from .model import Context
from .ops.deconvolution import AUTO_PAD
from .ops.deconvolution_views import describe_requested
from .ops.group_convolution_backprop_data import GroupConvolutionBackpropData

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

    from .dtypes import Array


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
) -> Array:
    """Compute a transposed convolution.

    Parameters
    ----------
    x : array, [N, C_IN, X...]
        Any number of spatial axes, from 1.
    filter : array, [C_IN, C_OUT / groups, K...]
        Of the element type of `x`.
    bias : array, [C_OUT], optional
        Added to every output element.
    strides, dilations : int or sequence of int
        Positive; one number stands for all spatial axes.
    pads_begin, pads_end, output_padding : int or sequence of int
        Non-negative; one number stands for all spatial axes.
    groups : int
        Divides C_IN and C_OUT.
    auto_pad : str
        explicit, same_upper, same_lower or valid.
    output_shape : sequence of int, optional
        Spatial extents of the output; the pads follow from it.
    semantics : str
        ``spec`` or ``openvino``.

    Returns
    -------
    array, [N, C_OUT, Y...]
        ``Y = stride*(X - 1) + ((K - 1)*dilation + 1) - pad_begin - pad_end + output_padding``,
        or `output_shape`.  f32 and f64 are computed in their own precision,
        f16 and bf16 in f32 and rounded once, integers exactly modulo 2^bits.

    Raises
    ------
    InputError
        An argument is out of range, or the element types have no arithmetic here.
    ShapeError
        The shapes do not fit together.

    Notes
    -----
    OpenVINO documents, ConvolutionBackpropData-1, 'Detailed description'.

    Examples
    --------
    >>> import numpy as np
    >>> conv_transpose(np.array([[[1., 2., 3.]]]), np.array([[[1., 10.]]]), strides=2)
    array([[[ 1., 10.,  2., 20.,  3., 30.]]])
    """
    import numpy as np

    from .opening import as_semantics

    data, weights = np.asarray(x), np.asarray(filter)
    spatial = max(1, data.ndim - 2)
    _check_groups(groups, weights.shape)
    try:
        mode = auto_pad if isinstance(auto_pad, PadMode) else AUTO_PAD.parse(auto_pad)
    except ValueError:
        raise InputError(f"auto_pad must be {AUTO_PAD.allowed}, found {auto_pad!r}") from None
    operation = GroupConvolutionBackpropData(
        strides=_per_axis("strides", strides, spatial, 1),
        dilations=_per_axis("dilations", dilations, spatial, 1),
        pads_begin=_per_axis("pads_begin", pads_begin, spatial, 0),
        pads_end=_per_axis("pads_end", pads_end, spatial, 0),
        output_padding=_per_axis("output_padding", output_padding, spatial, 0),
        auto_pad=mode,
    )
    grouped = weights.reshape(groups, weights.shape[0] // groups, *weights.shape[1:])
    inputs = [data, grouped]
    if output_shape is not None:
        inputs.append(np.array(_per_axis("output_shape", output_shape, spatial, 0), np.int64))
    context = Context(as_semantics(semantics))
    operation.infer([describe_requested(a) for a in inputs], context)
    try:
        kernel = operation.kernel(grouped, None if bias is None else np.asarray(bias), context)
        return operation.apply(kernel, grouped.shape, inputs, context)
    except (TypeError, ValueError) as error:
        raise InputError(str(error)) from error


def _check_groups(groups: int, shape: tuple[int, ...]) -> None:
    if len(shape) < 3:
        raise InputError(f"filter must have rank 3 or greater, found shape {list(shape)}")
    if groups < 1 or shape[0] % groups:
        raise InputError(f"groups={groups} must be positive and divide the {shape[0]} channels")


def _per_axis(name: str, value: int | Sequence[int], spatial: int, minimum: int) -> tuple[int, ...]:
    """Return one value for each spatial axis."""
    try:
        if isinstance(value, Sequence) or not hasattr(value, "__index__"):
            values = tuple(index(v) for v in value)  # type: ignore[union-attr]
        else:
            values = (index(value),) * spatial
    except TypeError:
        raise InputError(f"{name} must be whole numbers, found {value!r}") from None
    if any(v < minimum for v in values):
        raise InputError(f"{name} must be >= {minimum}, found {value!r}")
    return values
