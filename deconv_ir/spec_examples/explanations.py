"""Other explanations of wrong dims: one number elsewhere in the example, with which they are right.

Printed dims are statements, too.  If several of them agree with another attribute, input or
comment, that one is more likely wrong, and `fix` must not copy its consequences.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from deconv_ir.errors import DeconvError
from deconv_ir.ir.graph import Layer
from deconv_ir.ir.infer import infer_layer
from deconv_ir.ir.operation import Context, TensorInfo
from deconv_ir.ir.shapes import Shape
from deconv_ir.ops.base import Form, attributes_of

NEAR = 8
"""Attributes are tried up to this number, and values within half of it."""
MAX_TRIALS = 4000
"""Maximum number of inferences for one example."""


class _Change(NamedTuple):
    """The example with another number in one place."""

    words: str
    layer: Layer
    inputs: Sequence[TensorInfo]
    before: Sequence[object]
    """The numbers of the place: a list, or the spatial dims of data."""
    after: Sequence[object]


def other_explanation(
    layer: Layer,
    inputs: Sequence[TensorInfo],
    computed: Sequence[Shape],
    context: Context,
) -> str:
    """Return one change with which all printed dims are right; empty if none is as likely.

    A change that explains several wrong dims is more likely than these dims.  One wrong dim is more
    likely than a change, unless that makes all numbers of its place equal.
    """
    printed = [port.shape for port in layer.outputs]
    wrong = [
        (stated, dim)
        for shape, infos in zip(printed, computed, strict=False)
        if shape is not None and infos is not None
        for stated, dim in (
            zip(shape, infos, strict=True) if len(shape) == len(infos) else [(len(shape), None)]
        )
        if isinstance(stated, int) and stated != dim
    ]
    if not wrong:
        return ""
    numbers = sorted({dim for shape in printed for dim in shape or () if isinstance(dim, int)})
    for trial, change in enumerate(_changes(layer, inputs, numbers)):
        if trial > MAX_TRIALS:
            break
        gets_equal = len(set(change.after)) == 1 < len(set(change.before))
        if len(wrong) < 2 and not gets_equal:
            continue
        if _gives(change, printed, context):
            return change.words
    return ""


def _gives(change: _Change, printed: Sequence[Shape], context: Context) -> bool:
    """Whether a change gives all printed dims."""
    try:
        outputs = infer_layer(change.layer, change.inputs, context)
    except DeconvError:
        return False
    return len(outputs) >= len(printed) and all(
        shape is None
        or (
            info.shape is not None
            and len(shape) == len(info.shape)
            and all(
                a == b or not isinstance(a, int) for a, b in zip(shape, info.shape, strict=True)
            )
        )
        for shape, info in zip(printed, outputs, strict=False)
    )


def _changes(
    layer: Layer, inputs: Sequence[TensorInfo], numbers: Sequence[int]
) -> Iterator[_Change]:
    yield from _of_comments(layer, inputs, numbers)
    yield from _of_attributes(layer, inputs)
    yield from _of_inputs(layer, inputs, numbers)


def _of_attributes(layer: Layer, inputs: Sequence[TensorInfo]) -> Iterator[_Change]:
    """Iterate over attributes with another number, or all numbers equal, or another word."""
    written = dict(layer.attributes)
    for spec in attributes_of(type(layer.operation)):
        if spec.name not in written:
            continue
        now = getattr(layer.operation, spec.field)
        allowed = spec.kind.values
        values: list[object] = []
        if isinstance(now, bool):
            values = [not now]
        elif isinstance(now, enum.Enum):
            values = [member for member in type(now) if member is not now]
        elif isinstance(now, int):
            start = -NEAR if allowed.minimum is None else int(allowed.minimum)
            values = [n for n in range(start, NEAR) if n != now]
        elif isinstance(now, tuple) and allowed.form is Form.INTEGER:
            least = int(allowed.minimum or 0)
            equal = [(n,) * len(now) for n in range(least, NEAR)]
            single = [
                (*now[:i], n, *now[i + 1 :]) for i in range(len(now)) for n in range(least, NEAR)
            ]
            values = [v for v in dict.fromkeys((*equal, *single)) if v != now]
        for value in values:
            try:
                words = f'{spec.name}="{spec.kind.format(value)}"'
            except KeyError:  # a word of another version
                continue
            changed = layer._replace(operation=layer.operation.replace(**{spec.field: value}))
            places = [v if isinstance(v, tuple) else (v,) for v in (now, value)]
            yield _Change(words, changed, inputs, *places)


def _of_comments(
    layer: Layer, inputs: Sequence[TensorInfo], numbers: Sequence[int]
) -> Iterator[_Change]:
    """Iterate over values of inputs with another number."""
    for number, info in enumerate(inputs):
        value = info.value
        for i, now in enumerate(value or ()):
            if not isinstance(now, int) or value is None:
                continue
            for n in _near(now, (*numbers, *(v for v in value if isinstance(v, int)))):
                after = (*value[:i], n, *value[i + 1 :])
                words = f"the value [{','.join(map(str, after))}] of input {number}"
                changed = info._replace(value=after, reals=None)
                given = [*inputs[:number], changed, *inputs[number + 1 :]]
                yield _Change(words, layer, given, value, after)


def _of_inputs(
    layer: Layer, inputs: Sequence[TensorInfo], numbers: Sequence[int]
) -> Iterator[_Change]:
    """Iterate over inputs with another dim."""
    for number, info in enumerate(inputs):
        shape = info.shape or ()
        if info.value is not None:
            continue
        for axis, now in enumerate(shape):
            if not isinstance(now, int):
                continue
            for n in _near(now, (*numbers, *(dim for dim in shape if isinstance(dim, int)))):
                after = (*shape[:axis], n, *shape[axis + 1 :])
                words = f"a dim {n} on axis {axis} of input {number}"
                given = [*inputs[:number], info._replace(shape=after), *inputs[number + 1 :]]
                yield _Change(words, layer, given, shape[2:], after[2:])


def _near(now: int, more: Sequence[int]) -> list[int]:
    """Return the numbers near one, and others, that may have been meant."""
    least = 1 if now > 0 else now - NEAR // 2
    near = range(max(least, now - NEAR // 2), now + NEAR // 2 + 1)
    return [n for n in dict.fromkeys((*more, *near)) if n != now]
