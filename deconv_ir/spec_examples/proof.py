"""Proof that a printed output dim is wrong, and not an attribute, an input or a comment.

The computed dims follow from the other numbers of an example, any of which may be the wrong one.  A
printed dim is replaced only if no other number explains it, or if a statement that does not depend
on these numbers agrees with the computed dim:

- the text around the example, or a comment beside the dim, states it;
- another spatial axis with the same numbers prints it;
- other examples of the document print the inputs that may be wrong, and are right;
- the printed dim is not a number, and has the digits of the computed one.
"""

from __future__ import annotations

import enum
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from deconv_ir.errors import DeconvError
from deconv_ir.ir.geometry import UNKNOWN
from deconv_ir.ir.infer import infer_layer
from deconv_ir.ir.shapes import Shape, compatible, intersect_dims
from deconv_ir.ops.base import Form, attributes_of
from deconv_ir.spec_examples.dims import is_malformed, meant_number, printed_dim
from deconv_ir.spec_examples.rules import Verdict
from deconv_ir.spec_examples.values import value_in

if TYPE_CHECKING:
    from deconv_ir.ir.graph import Layer
    from deconv_ir.ir.operation import Context, TensorInfo
    from deconv_ir.spec_examples.rules import Judgement
    from deconv_ir.spec_examples.scanner import Example, PortText
    from deconv_ir.spec_examples.text import Document

Place = tuple[int, int | None]
"""Output port, and axis; None: the number of dims."""

MOST: Final = 32
"""Numbers of attributes are tried up to this one."""
MAX_TRIALS: Final = 40_000
"""Maximum number of inferences for one document."""
MAX_TEXT: Final = 20_000
"""Characters before and after an example that may state its shape."""
MIN_AXES: Final = 3
"""Axes of an input that examples hardly share by chance."""

_COMMENT: Final = re.compile(r"(?s)<!--.*?-->|&lt;!--.*?--&gt;")
_SHAPE: Final = re.compile(
    r"[\[({]\s*(\d+(?:\s*[,x\u00d7]\s*\d+)+)\s*[\])}]|\b(\d+(?:[x\u00d7]\d+)+)\b"
)


class _Doubt(NamedTuple):
    """An example in which one number is another one, or may be any."""

    layer: Layer
    inputs: Sequence[TensorInfo]
    input_: int | None
    """Index of the input whose printed dims change; None: an attribute, or a comment."""


class Prover:
    """Finds the output dims of a document that are wrong themselves."""

    def __init__(self, document: Document, judgements: Iterable[Judgement]) -> None:
        self.document = document
        found = list(judgements)
        self.starts = sorted(judgement.example.start for judgement in found)
        self.right = [j.example for j in found if j.verdict is Verdict.RIGHT]
        self.trials = 0

    def proven(
        self,
        example: Example,
        layer: Layer,
        inputs: Sequence[TensorInfo],
        computed: Sequence[Shape],
        context: Context,
    ) -> frozenset[Place]:
        """Return the places of output dims that are wrong themselves."""
        wrong = list(_wrong(example, computed))
        stated = self._stated_near(example)
        left = set()
        for place in wrong:
            port, shape = example.outputs[place[0]], computed[place[0]]
            if _printed(port) in stated or (
                shape not in stated
                and not (
                    _confirms_itself(example, place, computed, wrong)
                    or _has_twin(layer, inputs, place, computed)
                )
            ):
                left.add(place)
        doubtful = {place for place in left if _printed(example.outputs[place[0]]) in stated}
        for change in _changes(layer, inputs):
            if left == doubtful:
                break
            self.trials += 1
            if self.trials > MAX_TRIALS:
                doubtful = left
                break
            shapes = _infer(change, context)
            if shapes is not None:
                explained = {p for p in left - doubtful if _explains(example, shapes, p, wrong)}
                if explained and not self._is_confirmed(example, change):
                    doubtful |= explained
        return frozenset(wrong) - doubtful

    def _stated_near(self, example: Example) -> set[Shape]:
        """Return the shapes in the text between an example's neighbours."""
        at = self.starts.index(example.start)
        begin = self.starts[at - 1] if at else 0
        end = self.starts[at + 1] if at + 1 < len(self.starts) else len(self.document.text)
        begin, end = max(begin, example.start - MAX_TEXT), min(end, example.start + MAX_TEXT)
        text = _COMMENT.sub(" ", self.document.text[begin:end])
        return {
            tuple(map(int, re.findall(r"\d{1,18}", found.group())))
            for found in _SHAPE.finditer(text)
        }

    def _is_confirmed(self, example: Example, change: _Doubt) -> bool:
        """Whether right examples of the type print what a change would replace."""
        peers = [e for e in self.right if e.type == example.type]
        outputs = [_texts(port) for port in example.outputs]
        if any([_texts(port) for port in peer.outputs] == outputs for peer in peers):
            return False  # they print the outputs, too
        index = change.input_
        if index is None:
            # A document that shows what an attribute does has examples that differ in it alone.
            return any(_is_repeated(example, peer) for peer in peers) and not any(
                _differ_once(example, peer) for peer in peers
            )
        own = _texts(example.inputs[index])
        others = [_texts(peer.inputs[index]) for peer in peers if index < len(peer.inputs)]
        near = [
            other
            for other in others
            if len(other) == len(own) and sum(a != b for a, b in zip(own, other, strict=True)) < 2
        ]
        return len(own) >= MIN_AXES and bool(near) and all(other == own for other in near)


def _wrong(example: Example, computed: Sequence[Shape]) -> Iterator[Place]:
    """Iterate over the places where printed and computed dims differ."""
    for index, (port, shape) in enumerate(zip(example.outputs, computed, strict=False)):
        if port.elided or not port.dims or shape is None:
            continue
        if len(port.dims) != len(shape):
            yield index, None
            continue
        for axis, (stated, dim) in enumerate(zip(port.dims, shape, strict=True)):
            if is_malformed(stated.text) or intersect_dims(printed_dim(stated.text), dim) is None:
                yield index, axis


def _confirms_itself(
    example: Example, place: Place, computed: Sequence[Shape], wrong: Sequence[Place]
) -> bool:
    """Whether the digits of a malformed dim, or a comment of the port, state the computed dim."""
    index, axis = place
    shape, port = computed[index], example.outputs[index]
    if shape is None or axis is None:
        return False
    text = port.dims[axis].text
    if is_malformed(text):
        digits = "".join(filter(str.isdigit, text))
        return str(shape[axis]) in (digits, meant_number(text))
    if len([p for p in wrong if p[0] == index]) > 1:
        return False
    numbers = [value[0] for c in port.comments if (value := value_in(c)) and len(value) == 1]
    return shape[axis] in numbers and printed_dim(text) not in numbers


def _printed(port: PortText) -> Shape:
    return tuple(printed_dim(dim.text) for dim in port.dims)


def _texts(port: PortText) -> list[str]:
    return [dim.text for dim in port.dims]


def _is_repeated(example: Example, peer: Example) -> bool:
    """Whether two examples have the same attributes, inputs and comments."""
    return example.data == peer.data and [(_texts(p), p.comments) for p in example.inputs] == [
        (_texts(p), p.comments) for p in peer.inputs
    ]


def _differ_once(example: Example, peer: Example) -> bool:
    """Whether two examples have the same inputs, and one other attribute."""
    names = example.data.keys() | peer.data.keys()
    differing = [name for name in names if example.data.get(name) != peer.data.get(name)]
    return len(differing) == 1 and [_texts(p) for p in example.inputs] == [
        _texts(p) for p in peer.inputs
    ]


def _has_twin(
    layer: Layer, inputs: Sequence[TensorInfo], place: Place, computed: Sequence[Shape]
) -> bool:
    """Whether another spatial axis has all numbers of a wrong one, and prints the computed dim."""
    index, axis = place
    shape, printed = computed[index], layer.outputs[index].shape
    if axis is None or axis < 2 or shape is None or printed is None or len(shape) < 4:
        return False
    if not hasattr(layer.operation, "strides"):
        return False
    count = len(shape) - 2
    lists = [shape[2:], *(info.value or () for info in inputs)]
    lists += [(info.shape or ())[-count:] for info in inputs if len(info.shape or ()) > count]
    lists += [
        value
        for spec in attributes_of(type(layer.operation))
        if isinstance(value := getattr(layer.operation, spec.field), tuple)
    ]
    if any(len(set(numbers)) > 1 for numbers in lists if len(numbers) == count):
        return False
    return any(dim == shape[axis] for dim in printed[2:])


def _infer(change: _Doubt, context: Context) -> list[Shape] | None:
    try:
        return [info.shape for info in infer_layer(change.layer, change.inputs, context)]
    except DeconvError:
        return None


def _explains(
    example: Example, shapes: Sequence[Shape], place: Place, wrong: Sequence[Place]
) -> bool:
    """Whether printed dims fit other shapes: one that is wrong, and all that are right."""
    for index, (port, shape) in enumerate(zip(example.outputs, shapes, strict=False)):
        if port.elided or not port.dims or shape is None:
            continue
        printed = _printed(port)
        assert printed is not None
        if len(shape) != len(printed):
            if (index, None) not in wrong or place == (index, None):
                return False
            continue
        free = [(index, axis) in wrong and place != (index, axis) for axis in range(len(printed))]
        loose = tuple(
            UNKNOWN if is_free else dim for dim, is_free in zip(printed, free, strict=True)
        )
        if not compatible(loose, shape):
            return False
    return True


def _changes(layer: Layer, inputs: Sequence[TensorInfo]) -> Iterator[_Doubt]:
    """Iterate over the numbers of an example, each of which may be wrong."""
    for index, info in enumerate(inputs):
        for changed in _of_input(info):
            yield _Doubt(
                layer, [*inputs[:index], changed, *inputs[index + 1 :]], _or_comment(index, info)
            )
    ranks = {len(info.shape or ()) for info in inputs}
    for spec in attributes_of(type(layer.operation)):
        now, allowed = getattr(layer.operation, spec.field), spec.kind.values
        least = None if allowed.minimum is None else int(allowed.minimum)
        values: list[object] = []
        if isinstance(now, bool):
            values = [not now]
        elif isinstance(now, enum.Enum):
            values = [member for member in type(now) if member is not now]
        elif isinstance(now, int):
            values = [n for n in range(-MOST if least is None else least, MOST) if n != now]
        elif allowed.form is Form.INTEGER and isinstance(now, tuple | None):
            least = least or 0
            for length in {len(now)} if now else {rank - 2 for rank in ranks if rank > 2}:
                start = now or (least,) * length
                values += [
                    (*start[:i], n, *start[i + 1 :])
                    for i in range(length)
                    for n in range(least, MOST)
                ]
                values += [(n,) * length for n in range(least, MOST)]
        for value in values:
            other = layer._replace(operation=layer.operation.replace(**{spec.field: value}))
            yield _Doubt(other, inputs, None)


def _or_comment(index: int, info: TensorInfo) -> int | None:
    """Return the index of an input whose dims are decisive; None: its comment is."""
    return index if info.value is None and info.reals is None else None


def _of_input(info: TensorInfo) -> Iterator[TensorInfo]:
    """Iterate over an input with any number in one place, or one dim more or less."""
    shape = info.shape or ()
    for i in range(len(info.value or ())):
        value = info.value or ()
        yield info._replace(value=(*value[:i], UNKNOWN, *value[i + 1 :]), reals=None)
    if info.reals is not None:
        yield info._replace(value=None, reals=None)
    if info.value is not None:
        return
    for axis in range(len(shape)):
        yield info._replace(shape=(*shape[:axis], UNKNOWN, *shape[axis + 1 :]))
    for axis in range(len(shape)):
        yield info._replace(shape=(*shape[:axis], *shape[axis + 1 :]))
    for axis in range(len(shape) + 1):
        yield info._replace(shape=(*shape[:axis], UNKNOWN, *shape[axis:]))
