"""Checks and small dim helpers that many operations share."""

from __future__ import annotations

from collections.abc import Sequence

from deconv_ir.errors import ShapeError
from deconv_ir.ir.dtypes import Array, ElementType
from deconv_ir.ir.geometry import UNKNOWN, Dim, monotone
from deconv_ir.ir.operation import Infos, TensorInfo
from deconv_ir.ir.shapes import Shape, compatible, format_shape, intersect
from deconv_ir.limits import DEFAULT_LIMITS

VALUE_LIMIT = 64
"""A tensor with more elements is no shape, and its value does not travel."""

_FAMILIES = {
    "float": "a floating-point type",
    "integer": "an integer type",
    "numeric": "a numeric type",
    "boolean": "boolean",
    "bits": "an integer type or boolean",
    "any": "any type",
}


def in_family(element_type: ElementType, family: str) -> bool:
    """Whether a type is of a family: float, integer, numeric, boolean, bits or any."""
    return {
        "float": element_type.is_float,
        "integer": element_type.is_integer,
        "numeric": element_type.is_float or element_type.is_integer,
        "boolean": element_type.kind == "bool",
        "bits": element_type.is_integer or element_type.kind == "bool",
        "any": True,
    }[family]


def check_type(info: TensorInfo, name: str, family: str) -> ElementType | None:
    """Require the element type of an input to be of a family, and return it.

    Raises
    ------
    ShapeError
        It is of another.
    """
    element_type = info.element_type
    if element_type is not None and not in_family(element_type, family):
        wanted = _FAMILIES[family]
        raise ShapeError(
            f"{name} must be of {wanted}, found {element_type}"
            if family != "boolean"
            else f"{name} must be boolean, found {element_type}",
            expected=wanted,
            actual=element_type,
            rule="element-type",
        )
    return element_type


def merged_type(inputs: Infos, names: Sequence[str], family: str = "any") -> ElementType | None:
    """Return the element type that the named inputs share; None where none is determined.

    Raises
    ------
    ShapeError
        The types differ, or are not of the family.
    """
    found: ElementType | None = None
    first = ""
    for info, name in zip(inputs, names, strict=False):
        if check_type(info, name, family) is None:
            continue
        if found is not None and info.element_type is not found:
            raise ShapeError(
                f"element types differ: {first} is {found}, {name} is {info.element_type}",
                expected=found,
                actual=info.element_type,
                rule="element-type",
            )
        found, first = info.element_type, first or name
    return found


def check_rank(info: TensorInfo, name: str, *ranks: int) -> None:
    """Require an input to have one of these ranks.

    Raises
    ------
    ShapeError
        It has another.
    """
    if info.shape is not None and len(info.shape) not in ranks:
        wanted = " or ".join(map(str, ranks))
        raise ShapeError(
            f"{name} must have rank {wanted}, found {format_shape(info.shape)}",
            expected=f"rank {wanted}",
            actual=format_shape(info.shape),
            rule="rank",
        )


def check_single(info: TensorInfo, name: str) -> None:
    """Require an input to be one number: a scalar, or a list of one element.

    Raises
    ------
    ShapeError
        It is not.
    """
    check_rank(info, name, 0, 1)
    if info.shape and isinstance(info.shape[0], int) and info.shape[0] != 1:
        raise ShapeError(
            f"{name} must have one element, found {format_shape(info.shape)}",
            expected=1,
            actual=info.shape[0],
            rule="input-shape",
        )


def check_least_rank(info: TensorInfo, name: str, least: int) -> None:
    """Require an input to have at least this rank.

    Raises
    ------
    ShapeError
        It has a smaller one.
    """
    if info.shape is not None and len(info.shape) < least:
        raise ShapeError(
            f"{name} must have rank {least} or greater, found {format_shape(info.shape)}",
            expected=f"rank >= {least}",
            actual=format_shape(info.shape),
            rule="rank",
        )


def check_axis_count(count: int) -> None:
    """Require a number of axes that an array can have.

    Raises
    ------
    ShapeError
        They are too many.
    """
    if count > DEFAULT_LIMITS.rank:
        raise ShapeError(
            f"the output would have {count} axes, the limit is {DEFAULT_LIMITS.rank}",
            expected=f"<= {DEFAULT_LIMITS.rank}",
            actual=count,
            rule="rank",
        )


def check_shape(info: TensorInfo, name: str, wanted: Shape) -> Shape:
    """Require an input to be compatible with a shape; return what they have in common.

    Raises
    ------
    ShapeError
        It is not.
    """
    if not compatible(info.shape, wanted):
        raise ShapeError(
            f"{name} must have shape {format_shape(wanted)}, found {format_shape(info.shape)}",
            expected=format_shape(wanted),
            actual=format_shape(info.shape),
            rule="input-shape",
        )
    return intersect(info.shape, wanted)


def normalize_axis(axis: int, rank: int, name: str = "axis") -> int:
    """Count an axis from the start.

    Raises
    ------
    ShapeError
        There is no such axis.
    """
    if not -rank <= axis < rank:
        raise ShapeError(
            f"{name} {axis} is outside a rank of {rank}",
            attribute=name,
            expected=f"{-rank}..{rank - 1}",
            actual=axis,
            rule="axis",
        )
    return axis + rank if axis < 0 else axis


def normalize_axes(axes: Sequence[int], rank: int, name: str = "axes") -> tuple[int, ...]:
    """Count axes from the start, and require them to be different.

    Raises
    ------
    ShapeError
        There is no such axis, or one stands twice.
    """
    found = tuple(normalize_axis(axis, rank, name) for axis in axes)
    if len(set(found)) != len(found):
        raise ShapeError(
            f"{name} {format_shape(tuple(axes))} has an axis twice",
            attribute=name,
            actual=format_shape(tuple(axes)),
            rule="axis",
        )
    return found


def only(array: Array, name: str) -> Array:
    """Return the only element of an array, as an array without axes.

    Raises
    ------
    ShapeError
        There are more elements, or none.
    """
    if array.size != 1:
        raise ShapeError(
            f"{name} must have one element, found {format_shape(array.shape)}",
            expected=1,
            actual=array.size,
            rule="input-shape",
        )
    return array.reshape(())


def known_integers(info: TensorInfo) -> tuple[int, ...] | None:
    """Return the elements of a tensor; None unless every one is known."""
    if info.value is None:
        return None
    found = tuple(v for v in info.value if isinstance(v, int))
    return found if len(found) == len(info.value) else None


def known_integer(info: TensorInfo, name: str) -> int | None:
    """Return the only element of a tensor; None where it is not known.

    Raises
    ------
    ShapeError
        There are more elements, or none.
    """
    values = known_integers(info)
    if values is None:
        return None
    if len(values) != 1:
        raise ShapeError(
            f"{name} must be a scalar, found {format_shape(info.shape)}",
            expected="a scalar",
            actual=format_shape(info.shape),
            rule="rank",
        )
    return values[0]


def list_length(info: TensorInfo) -> int | None:
    """Return how many elements a list (or scalar) has; None where it is not known."""
    if info.value is not None:
        return len(info.value)
    if info.shape is None:
        return None
    length = info.shape[0] if info.shape else 1
    return length if isinstance(length, int) else None


def axis_count(info: TensorInfo) -> int | None:
    """Return how many axes a list has an element for; None where it is not known.

    Raises
    ------
    ShapeError
        No array has that many axes.
    """
    length = list_length(info)
    if length is not None:
        check_axis_count(length)
    return length


def unknown_shape(info: TensorInfo) -> Shape:
    """Return the shape that a tensor of unknown values asks for: only its rank is known.

    Raises
    ------
    ShapeError
        No array has that many axes.
    """
    length = axis_count(info)
    return None if length is None else (UNKNOWN,) * length


def add(*dims: Dim) -> Dim:
    """Add dims."""
    return monotone(lambda *ends: sum(ends), *dims)


def product(*dims: Dim) -> Dim:
    """Multiply dims."""
    total: Dim = 1
    for dim in dims:
        total = monotone(lambda x, y: x * y, total, dim)
    # Anything times 0 is 0, whatever its bound.
    return 0 if any(d == 0 for d in dims) else total


def integers(array: Array) -> tuple[int, ...]:
    """Return the elements of an array of integers, flattened."""
    if array.dtype.isbuiltin == 1:
        return tuple(array.ravel().tolist())
    return tuple(int(v) for v in array.ravel())
