"""Checks that raise ShapeError, and small dim helpers that many operations share."""

from __future__ import annotations

from collections.abc import Sequence

from deconv_ir.errors import ShapeError
from deconv_ir.ir.dtypes import Array, ElementType
from deconv_ir.ir.folding import VALUE_LIMIT as VALUE_LIMIT
from deconv_ir.ir.geometry import UNKNOWN, Dim, monotone
from deconv_ir.ir.operation import Infos, TensorInfo
from deconv_ir.ir.shapes import Shape, compatible, format_shape, intersect
from deconv_ir.limits import DEFAULT_LIMITS

_FAMILIES = {
    "float": "a floating-point type",
    "integer": "an integer type",
    "numeric": "a numeric type",
    "boolean": "boolean",
    "bits": "an integer type or boolean",
    "any": "any type",
}


def misfit(
    rule: str,
    name: str,
    must: str,
    found: object,
    expected: object,
    attribute: str | None = None,
) -> ShapeError:
    """Return the error for a value that does not have the required form."""
    shown = format_shape(found) if isinstance(found, tuple) else found
    message = f"{name} must {must}, found {shown}"
    return ShapeError(message, attribute=attribute, expected=expected, actual=shown, rule=rule)


def shape_misfit(
    rule: str, name: str, found: Shape, must: str, expected: Shape, end: str = ""
) -> ShapeError:
    """Return the error ``NAME FOUND MUST EXPECTED END`` for two shapes."""
    wanted, actual = format_shape(expected), format_shape(found)
    message = f"{name} {actual} {must} {wanted}{end}"
    return ShapeError(message, expected=wanted, actual=actual, rule=rule)


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


def check_type(
    info: TensorInfo, name: str, family: str, rule: str = "element-type"
) -> ElementType | None:
    """Require the element type of an input to be of a family, and return it."""
    element_type = info.element_type
    if element_type is not None and not in_family(element_type, family):
        wanted = _FAMILIES[family]
        must = f"be {wanted}" if family == "boolean" else f"be of {wanted}"
        raise misfit(rule, name, must, element_type, wanted)
    return element_type


def merged_type(inputs: Infos, names: Sequence[str], family: str = "any") -> ElementType | None:
    """Return the element type that the named inputs share; None if none is determined."""
    found: ElementType | None = None
    first = ""
    for info, name in zip(inputs, names, strict=False):
        if check_type(info, name, family) is None:
            continue
        if found is not None and info.element_type is not found:
            message = f"element types differ: {first} is {found}, {name} is {info.element_type}"
            raise ShapeError(message, expected=found, actual=info.element_type, rule="element-type")
        found, first = info.element_type, first or name
    return found


def leading_type(
    inputs: Infos, names: Sequence[str], family: str, same: int = 1
) -> ElementType | None:
    """Return the element type that the first `same` inputs share; None if it is not determined.

    The others may be of any type of the family, as in files of which Model Optimizer compressed
    some constants to f16; OpenVINO reads these.
    """
    for info, name in zip(inputs[same:], names[same:], strict=False):
        check_type(info, name, family)
    return merged_type(inputs[:same], names, family)


def first_float_type(inputs: Infos, names: Sequence[str]) -> ElementType | None:
    """Return the type of the first input if all are floating-point, else the one that they share.

    OpenVINO reads files in which Model Optimizer compressed some constants to f16.
    """
    if all(info.element_type is not None and info.element_type.is_float for info in inputs):
        return inputs[0].element_type
    return merged_type(inputs, names)


def check_rank(info: TensorInfo, name: str, *ranks: int) -> None:
    """Require an input to have one of these ranks."""
    if info.shape is not None and len(info.shape) not in ranks:
        wanted = " or ".join(map(str, ranks))
        raise misfit("rank", name, f"have rank {wanted}", info.shape, f"rank {wanted}")


def check_integers(info: TensorInfo, name: str, *ranks: int) -> None:
    """Require an input to hold integers, and to have one of these ranks."""
    check_type(info, name, "integer")
    check_rank(info, name, *ranks)


def check_lists(inputs: Infos, names: Sequence[str], *ranks: int) -> None:
    """Require the named inputs, if present, to hold integers and to have one of these ranks."""
    for info, name in zip(inputs, names, strict=False):
        check_integers(info, name, *ranks)


def check_single(info: TensorInfo, name: str, family: str = "any") -> None:
    """Require an input to be one number of a family: a scalar, or a list of one element."""
    check_type(info, name, family)
    check_rank(info, name, 0, 1)
    if info.shape and isinstance(info.shape[0], int) and info.shape[0] != 1:
        message = f"{name} must have one element, found {format_shape(info.shape)}"
        raise ShapeError(message, expected=1, actual=info.shape[0], rule="input-shape")


def check_least_rank(info: TensorInfo, name: str, least: int) -> None:
    """Require an input to have at least this rank."""
    if info.shape is not None and len(info.shape) < least:
        raise misfit("rank", name, f"have rank {least} or greater", info.shape, f"rank >= {least}")


def check_count(count: int | None, name: str, wanted: int, rule: str = "input-shape") -> None:
    """Require a list to have `wanted` elements, unless a number is None: not known."""
    if count not in (None, wanted):
        raise misfit(rule, name, f"have {wanted} elements", count, wanted)


def check_least(values: Sequence[object], name: str, least: int, rule: str) -> None:
    """Require the known elements of a list to be at least 0, or 1."""
    if any(isinstance(v, int) and v < least for v in values):
        must = "be positive" if least else "not be negative"
        raise misfit(rule, name, must, tuple(values), f">= {least}")


def check_axes(info: TensorInfo, data: Shape) -> tuple[int, ...] | None:
    """Check the input `axes`, and return its elements counted from the start, if known."""
    check_integers(info, "axes", 0, 1)
    axes = known_integers(info)
    return axes if axes is None or data is None else normalize_axes(axes, len(data))


def check_axis_count(count: int) -> None:
    """Require a number of axes to be one that an array can have."""
    if count > DEFAULT_LIMITS.rank:
        message = f"the output would have {count} axes, the limit is {DEFAULT_LIMITS.rank}"
        raise ShapeError(message, expected=f"<= {DEFAULT_LIMITS.rank}", actual=count, rule="rank")


def check_shape(info: TensorInfo, name: str, wanted: Shape) -> Shape:
    """Require an input to be compatible with a shape; return their intersection."""
    if not compatible(info.shape, wanted):
        asked = format_shape(wanted)
        raise misfit("input-shape", name, f"have shape {asked}", info.shape, asked)
    return intersect(info.shape, wanted)


def normalize_axis(axis: int, rank: int, name: str = "axis") -> int:
    """Count an axis from the start."""
    if not -rank <= axis < rank:
        message = f"{name} {axis} is outside a rank of {rank}"
        raise ShapeError(
            message, attribute=name, expected=f"{-rank}..{rank - 1}", actual=axis, rule="axis"
        )
    return axis + rank if axis < 0 else axis


def normalize_axes(axes: Sequence[int], rank: int, name: str = "axes") -> tuple[int, ...]:
    """Count axes from the start, and require them to be different."""
    found = tuple(normalize_axis(axis, rank, name) for axis in axes)
    if len(set(found)) != len(found):
        message = f"{name} {format_shape(tuple(axes))} has an axis twice"
        raise ShapeError(message, attribute=name, actual=format_shape(tuple(axes)), rule="axis")
    return found


def only(array: Array, name: str) -> Array:
    """Return the only element of an array, as an array without axes."""
    if array.size != 1:
        message = f"{name} must have one element, found {format_shape(array.shape)}"
        raise ShapeError(message, expected=1, actual=array.size, rule="input-shape")
    return array.reshape(())


def known_integers(info: TensorInfo) -> tuple[int, ...] | None:
    """Return the elements of a tensor; None unless all are known."""
    if info.value is None:
        return None
    found = tuple(v for v in info.value if isinstance(v, int))
    return found if len(found) == len(info.value) else None


def known_integer(info: TensorInfo, name: str) -> int | None:
    """Return the only element of a tensor; None if it is not known."""
    values = known_integers(info)
    if values is None:
        return None
    if len(values) != 1:
        raise misfit("rank", name, "be a scalar", info.shape, "a scalar")
    return values[0]


def list_length(info: TensorInfo) -> int | None:
    """Return the number of elements of a list (or scalar); None if it is not known."""
    if info.value is not None:
        return len(info.value)
    if info.shape is None:
        return None
    length = info.shape[0] if info.shape else 1
    return length if isinstance(length, int) else None


def axis_count(info: TensorInfo) -> int | None:
    """Return the number of axes that a list describes; None if it is not known."""
    length = list_length(info)
    if length is not None:
        check_axis_count(length)
    return length


def unknown_shape(info: TensorInfo) -> Shape:
    """Return the shape that a tensor of unknown values requests: only its rank is known."""
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
    # Anything times 0 is 0, even without a bound.
    return 0 if any(d == 0 for d in dims) else total


def integers(array: Array) -> tuple[int, ...]:
    """Return the elements of an array of integers, flattened."""
    if array.dtype.isbuiltin == 1:
        return tuple(array.ravel().tolist())
    return tuple(int(v) for v in array.ravel())
