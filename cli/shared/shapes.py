"""The option --shape: shapes of a model's inputs in text form."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, TypeVar

from deconv_ir.ir.geometry import bounds
from deconv_ir.ir.shapes import compatible, format_shape, intersect, is_static, parse_shape

from .common import Mistake, warn

if TYPE_CHECKING:
    from deconv_ir import Model
    from deconv_ir.ir.geometry import Dim
    from deconv_ir.ir.graph import Port
    from deconv_ir.ir.shapes import Shape

_Value = TypeVar("_Value")
OPTION = "--shape"


def parse_named_shape(text: str) -> tuple[str, Shape]:
    """Parse ``NAME=1,3,64,64``; the name is empty if it is not given."""
    name, _, dims = text.rpartition("=")
    try:
        return name, parse_shape(dims)
    except ValueError as error:
        raise Mistake(f"{OPTION} {text}: {error}") from None


def by_input(
    option: str,
    given: Sequence[str],
    names: Sequence[str],
    parse: Callable[[str], _Value],
    what: str = "VALUE",
) -> dict[str, _Value]:
    """Return the values of an option, ``NAME=VALUE``, by input.

    The name may be left out if the model has one input.  `parse` raises a ValueError.
    """
    known = ", ".join(map(repr, names)) or "none"
    found: dict[str, _Value] = {}
    for text in given:
        name, _, value = text.rpartition("=")
        if not name and len(names) == 1:
            (name,) = names
        if not name:
            raise Mistake(f"{option} {text}: which input? The model has {known} (use NAME={what})")
        if name not in names:
            raise Mistake(f"{option} {text}: the model has no input {name!r}; it has {known}")
        if name in found:
            raise Mistake(f"{option} {name!r} is given twice")
        try:
            found[name] = parse(value)
        except ValueError as error:
            raise Mistake(f"{option} {text}: {error}") from None
    return found


def named_shapes(model: Model, given: Sequence[str]) -> dict[str, Shape]:
    """Return the shapes of --shape by input."""
    return by_input(OPTION, given, list(model.inputs), parse_shape, "SHAPE")


def reshaped(model: Model, given: Sequence[str], *, always: bool = False) -> Model:
    """Return the model with the shapes of --shape, if it declares others, or `always`."""
    shapes = named_shapes(model, given)
    fits = all(_is_within(shape, model.inputs[name].shape) for name, shape in shapes.items())
    return model if not shapes or (fits and not always) else model.reshape(shapes)


def _is_within(shape: Shape, declared: Shape) -> bool:
    return compatible(shape, declared) and intersect(shape, declared) == shape


def input_shapes(model: Model, given: Sequence[str]) -> dict[str, Shape]:
    """Return the shape of each input: declared, and narrowed by --shape.

    The model is the result of `reshaped`.
    """
    shapes = {name: port.shape for name, port in model.inputs.items()}
    for name, shape in named_shapes(model, given).items():
        shapes[name] = intersect(shape, shapes[name])
    return shapes


def drawn_shapes(
    model: Model, shapes: Mapping[str, Shape], drawn: Sequence[str]
) -> dict[str, tuple[int, ...]]:
    """Return shapes of random arrays for some inputs, with a warning about dims that were chosen.

    `shapes` are those of all inputs.  Dynamic dims get sizes that fit all layers, if any are found.
    """
    known: dict[str, tuple[Dim, ...]] = {}
    for name, shape in shapes.items():
        if shape is None and name in drawn:
            raise Mistake(
                f"input {name!r} has a dynamic rank: --random-inputs needs a shape "
                f"(use {OPTION} {name}=1,3,64,64)"
            )
        if shape is not None:
            known[name] = shape
    dynamic = [name for name in drawn if not is_static(known[name])]
    fitting = model.fitting_shapes(known) if dynamic else None
    found = {}
    for name in drawn:
        shape = known[name]
        least = tuple(d if isinstance(d, int) else max(1, bounds(d)[0]) for d in shape)
        found[name] = least if fitting is None else fitting[name]
        if name in dynamic:
            fits = "" if fitting is None else ", which fits all layers"
            warn(
                f"input {name!r} {format_shape(shape)}: a random array of "
                f"{format_shape(found[name])}{fits} "
                f"(use {OPTION} {name}=... to choose)"
            )
    return found


def describe_port(port: Port, shape: Shape) -> str:
    """Describe an input or output in a word: ``f32[1,3,?,?]``."""
    return f"{port.element_type or '?'}{format_shape(shape)}"
