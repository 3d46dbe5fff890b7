"""Checks the user's arrays against a model's inputs; their form in files; random arrays.

The .npy form of element types that NumPy lacks (bf16, f8 and so on) is raw
bytes: dtype ``|V2`` or ``|V1``, which loads back, without loss, with
``array.view(ml_dtypes.bfloat16)``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib.array_utils import byte_bounds

from deconv_ir.arrays import foreign
from deconv_ir.arrays.casting import Cast, convert
from deconv_ir.errors import InputError
from deconv_ir.hints import Advice, Hint
from deconv_ir.ir.dtypes import Array, ElementType, from_numpy
from deconv_ir.ir.folding import VALUE_LIMIT
from deconv_ir.ir.geometry import Interval, bounds
from deconv_ir.ir.operation import TensorInfo
from deconv_ir.ir.shapes import Shape, compatible, format_shape
from deconv_ir.kernels.copies import contiguous

if TYPE_CHECKING:
    from numpy.typing import ArrayLike

# Up to this number of arrays, comparing all pairs is faster than sorting their spans.
_FEW = 8
_DRAWN_AT_ONCE = 1 << 16
"""Elements of a block of random values."""


def fit(
    given: ArrayLike,
    name: str,
    shape: Shape,
    element_type: ElementType | None,
    *,
    cast: Cast,
    narrow: bool = False,
    what: str = "input",
) -> Array:
    """Return an array in the form of a model's input `name`; see `casting.convert`.

    An `element_type` of None accepts any type.  With `narrow`, f32 arrays are accepted for f16,
    and rounded.  Messages say `what` has that name.
    """
    if (
        type(given) is np.ndarray
        and element_type is not None
        and element_type.kind != "string"
        and given.dtype is element_type.numpy()
        and given.shape == shape
    ):
        return given
    array = foreign.as_array(given, f"{what} {name!r}")
    if not compatible(array.shape, shape):
        raise InputError(
            f"{what} {name!r} takes shape {format_shape(shape)}, "
            f"the array has {format_shape(array.shape)}",
            expected=format_shape(shape),
            actual=format_shape(array.shape),
            hint=_axes_hint(array.shape, shape) or _reshape_hint(name, array.shape, shape, what),
            rule="input-shape",
        )
    if element_type is not None and element_type.kind == "string":
        return _texts(array, f"{what} {name!r}")
    if not array.dtype.isnative:
        array = array.astype(np.dtype(array.dtype.type))
    if element_type is None:
        if from_numpy(array.dtype) is None:
            message = f"{what} {name!r}: arrays of dtype {array.dtype} are not supported"
            raise InputError(message, actual=str(array.dtype), rule="input-type")
        return array
    wanted = element_type.numpy()
    if array.dtype == wanted:
        return array
    raw = array.dtype.kind == "V" and array.dtype.names is None and not is_extension(array.dtype)
    if raw and is_extension(wanted) and array.dtype.itemsize == wanted.itemsize:
        return array.view(wanted)  # the stored form of a type that NumPy lacks
    if narrow and narrows(array.dtype, wanted):
        return convert(array, element_type, name=name, wrap=True, what=what)
    castable = _kind(array.dtype) != "?" and _kind(wanted) != "?"
    if cast and castable:
        return convert(array, element_type, name=name, wrap=cast == "wrap", what=what)
    found = None if array.dtype.hasobject else from_numpy(array.dtype)
    raise InputError(
        f"{what} {name!r} takes {element_type}, the array is {found or array.dtype}",
        expected=element_type,
        actual=found or array.dtype,
        hint=Hint.CAST() if castable else None,
        rule="input-type",
    )


def _axes_hint(found: tuple[int, ...], wanted: Shape) -> Advice | None:
    """Return the hint for an image whose axes look exchanged, or that has no axis of the batch."""
    if wanted is None:
        return None
    rank = len(wanted)
    if len(found) == rank >= 3:
        if compatible((found[0], found[-1], *found[1:-1]), wanted):
            return Hint.CHANNELS_LAST()
        if compatible((found[0], *found[2:], found[1]), wanted):
            return Hint.CHANNELS_FIRST()
    if len(found) == rank - 1 >= 2 and compatible((1,), wanted[:1]):
        if compatible(found, wanted[1:]):
            return Hint.BATCH_MISSING()
        if compatible((found[-1], *found[:-1]), wanted[1:]):
            return Hint.ONE_IMAGE_LAST()
        if compatible((*found[1:], found[0]), wanted[1:]):
            return Hint.ONE_IMAGE_FIRST()
    return None


def _reshape_hint(name: str, found: tuple[int, ...], wanted: Shape, what: str) -> Advice | None:
    """Return the hint for another batch or other sizes, which the model may take.

    Axis 1 of images is channels, which weights fix.
    """
    if what != "input" or wanted is None or len(found) != len(wanted) or 0 in found:
        return None
    if len(found) > 2 and not compatible(found[1:2], wanted[1:2]):
        return None
    return Hint.RESHAPE_TO(name, ",".join(map(str, found)), found)


def _texts(array: Array, name: str) -> Array:
    """Return an array of `str` from one of any strings or bytes, which are UTF-8."""
    found: Array = array.astype(object) if array.dtype.kind in "USTO" else array
    texts = np.empty(array.size, object)
    for place, text in enumerate(found.ravel().tolist()):
        if isinstance(text, bytes):
            text = text.decode("utf-8", "surrogateescape")
        if not isinstance(text, str):
            actual = from_numpy(array.dtype) if array.dtype.kind != "O" else type(text).__name__
            raise InputError(
                f"{name} takes string, the array is {actual}",
                expected="string",
                actual=actual,
                rule="input-type",
            )
        texts[place] = text
    return texts.reshape(array.shape)


def narrows(found: np.dtype[Any], wanted: np.dtype[Any]) -> bool:
    """Whether an array of f32 is given for f16."""
    return found == np.float32 and wanted == np.float16


def _kind(dtype: np.dtype[Any]) -> str:
    element_type = from_numpy(dtype)
    if element_type is None:
        return "?"
    return {"float": "f", "int": "i", "uint": "u", "bool": "b"}.get(element_type.kind, "?")


def own(results: Sequence[Array], given: Sequence[Array]) -> list[Array]:
    """Return results in C order and native byte order.

    They are copied if they share memory with each other, an input or the model.
    """
    results = [_in_order(result) for result in results]
    if len(results) + len(given) <= _FEW:
        kept: list[Array] = []
        for result in results:
            shared = not result.flags.writeable or _overlaps(result, given)
            kept.append(result.copy() if shared or _overlaps(result, kept) else result)
        return kept
    alone = _without_overlap([*given, *results])
    return [
        result if number in alone and result.flags.writeable else result.copy()
        for number, result in enumerate(results, len(given))
    ]


def _overlaps(array: Array, others: Sequence[Array]) -> bool:
    for other in others:  # noqa: SIM110 - a generator would take longer than a small layer
        if np.may_share_memory(array, other):
            return True
    return False


def _in_order(array: Array) -> Array:
    """Return an array in C order and native byte order."""
    if not array.dtype.isnative:
        return array.astype(array.dtype.newbyteorder("="), order="C")
    return array if array.flags.c_contiguous else contiguous(array)


def _without_overlap(arrays: Sequence[Array]) -> set[int]:
    """Return the indices of arrays that overlap no array before them.

    Only the first of several overlapping arrays is returned.
    """
    spans = sorted((*byte_bounds(array), number) for number, array in enumerate(arrays))
    found: set[int] = set()
    first, reached = -1, -1
    for start, end, number in spans:
        if not arrays[number].size:
            found.add(number)
        elif start < reached:
            first, reached = min(first, number), max(reached, end)
        else:
            if first >= 0:
                found.add(first)
            first, reached = number, end
    if first >= 0:
        found.add(first)
    return found


def describe(array: Array) -> TensorInfo:
    """Return the info of an array, with the value if it is a small integer array."""
    value = None
    if array.dtype.kind in "iu" and array.size <= VALUE_LIMIT:
        value = tuple(array.ravel().tolist())
    return TensorInfo(array.shape, from_numpy(array.dtype), value)


def is_extension(dtype: np.dtype[Any]) -> bool:
    """Whether NumPy does not support this type (bf16, f8 and so on)."""
    return dtype.type.__module__.partition(".")[0] == "ml_dtypes"


def to_storable(array: Array) -> Array:
    """Return an array in its stored form for a .npy file.

    Raises
    ------
    InputError
        A string ends in a null character, which NumPy's arrays of strings cannot hold.
    """
    if array.dtype.hasobject:
        texts = [str(text) for text in array.ravel().tolist()]
        if any(text.endswith("\0") for text in texts):
            raise InputError("a string ends in a null character, which .npy files cannot hold")
        return np.array(texts or [""])[: len(texts)].reshape(array.shape)
    if is_extension(array.dtype):
        return np.ascontiguousarray(array).view(f"V{array.dtype.itemsize}")
    return array


def random_array(shape: Shape, element_type: ElementType | None, seed: int, index: int) -> Array:
    """Make a seeded array for an input: standard normal floats, integers or digits from 0 to 9.

    Values are drawn in the element type of the input (f16 and narrower floats
    from f32), in blocks that bound the temporary memory.  Unknown dims get the
    smallest allowed extent above 0.
    """
    if shape is None:
        raise InputError("random values need a shape, and the rank of the input is dynamic")
    extents = tuple(max(1, bounds(d)[0]) if isinstance(d, Interval) else d for d in shape)
    generator = np.random.default_rng([seed, index])
    dtype = np.dtype(np.float32) if element_type is None else element_type.numpy()
    kind = "f" if element_type is None else _kind(dtype)
    most = 2 ** min(element_type.bits or 8, 8) if element_type is not None else 10

    def draw(count: int) -> Array:
        if kind != "f":
            drawn = generator.integers(0, 2 if kind == "b" else min(most, 10), count, np.uint8)
            return drawn.astype(str).astype(object) if dtype.hasobject else drawn
        if dtype == np.float64:
            return generator.standard_normal(count)
        return generator.standard_normal(count, np.float32)

    array = np.empty(extents, dtype)
    flat = array.reshape(-1)
    for start in range(0, flat.size, _DRAWN_AT_ONCE):
        block = flat[start : start + _DRAWN_AT_ONCE]
        block[...] = draw(block.size)
    return array
