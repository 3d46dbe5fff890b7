"""Dims of a deconvolution's data and filter by role, and the shape that a model requests."""

from collections.abc import Mapping, Sequence
from typing import Final, NamedTuple

from deconv_ir.errors import ShapeError
from deconv_ir.ir.dtypes import Array, from_numpy
from deconv_ir.ir.geometry import UNKNOWN, Dim, bounds, interval
from deconv_ir.ir.operation import TensorInfo
from deconv_ir.ir.shapes import intersect_dims
from deconv_ir.ops.checks import check_least, check_type, misfit, product
from deconv_ir.ops.values import as_dims

OUTPUT_CHANNEL_AXES: Final[Mapping[str, tuple[int, ...]]] = {
    "Convolution": (0,),
    "GroupConvolution": (0, 1),
    "ConvolutionBackpropData": (1,),
    "GroupConvolutionBackpropData": (0, 2),
}
"""Type -> axes of its filter along which output channels lie."""
INPUT_CHANNEL_AXIS: Final[Mapping[str, int]] = {
    "Convolution": 1,
    "GroupConvolution": 2,
    "ConvolutionBackpropData": 0,
    "GroupConvolutionBackpropData": 1,
}
"""Type -> axis of its filter along which the input channels of a group lie."""


class DataDims(NamedTuple):
    """Dims of the data (or output), by role."""

    batch: Dim
    channels: Dim
    spatial: tuple[Dim, ...]


class FilterDims(NamedTuple):
    """Dims of the filter, by role; channels are those of one group."""

    groups: Dim
    inputs: Dim
    outputs: Dim
    kernel: tuple[Dim, ...]


Requested = tuple[tuple[Dim, ...] | None, DataDims | None]
"""The requested spatial extents, and all dims if these are requested; None: not requested."""


def channel_misfit(names: Sequence[str], channels: Dim, filter_: FilterDims) -> ShapeError:
    """Return the error for data and filter, of these names, with different channels."""
    wanted = product(filter_.groups, filter_.inputs)
    takes = f"{wanted}"
    if filter_.groups != 1:
        takes = f"{filter_.groups} groups * {filter_.inputs} = {wanted}"
    message = f"channels do not fit: {names[0]} has {channels}, {names[1]} takes {takes}"
    return ShapeError(message, expected=wanted, actual=channels, rule="channels")


def quotient(a: Dim, divisor: int) -> Dim | None:
    """Divide a dim; None if it cannot be a multiple."""
    if isinstance(a, int):
        return a // divisor if a % divisor == 0 else None
    low, high = bounds(a)
    if high is not None and high // divisor < -(-low // divisor):
        return None
    return interval(-(-low // divisor), None if high is None else high // divisor)


def describe_requested(array: Array) -> TensorInfo:
    """Return the info of an actual array; a list of integers has its value."""
    element_type = from_numpy(array.dtype)
    whole = element_type is not None and element_type.kind in ("int", "uint")
    value = tuple(map(int, array.ravel())) if whole and array.ndim < 2 else None
    return TensorInfo(array.shape, element_type, value)


def merge_requested(dims: DataDims, full: DataDims) -> DataDims:
    """Require that a requested full shape agrees with batch and channels."""
    common = []
    for name, computed, requested in (
        ("batch", dims.batch, full.batch),
        ("channels", dims.channels, full.channels),
    ):
        both = intersect_dims(computed, requested)
        if both is None:
            message = f"dst_shape asks for {name} {requested}, the inputs give {computed}"
            raise ShapeError(
                message, expected=computed, actual=requested, rule="output-shape-value"
            )
        common.append(both)
    return DataDims(common[0], common[1], dims.spatial)


def missing_shape(name: str, place: str) -> ShapeError:
    """Return the error for a shape that is neither an attribute nor an input."""
    message = f"{name} is missing: it must be given as an attribute or as the {place} input"
    return ShapeError(message, attribute=name, rule="attribute-missing")


def stated_shape(
    name: str, place: str, stated: tuple[int, ...] | None, declared: tuple[int, ...] | None
) -> tuple[int, ...]:
    """Return the shape given by an attribute, else the declared one."""
    found = stated if stated and any(stated) else declared  # zeros also mean that it is absent
    if found is None:
        raise missing_shape(name, place)
    return found


def check_output_shape(info: TensorInfo, name: str, length: int) -> tuple[Dim, ...]:
    """Check the input that requests an output shape, and return its elements."""
    check_type(info, name, "integer", "output-shape-type")
    if info.shape is not None and (
        len(info.shape) != 1 or intersect_dims(info.shape[0], length) is None
    ):
        wanted = f"[{length}]"
        raise misfit("output-shape-length", name, f"have shape {wanted}", info.shape, wanted)
    if info.value is None:
        return (UNKNOWN,) * length
    check_least(info.value, name, 0, "output-shape-value")
    return as_dims(info.value)
