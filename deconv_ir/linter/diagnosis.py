"""Search for a single correction of a layer's attributes that gives its declared outputs.

The search is bounded: some values of one attribute at a time, for a few layers of a file.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, NamedTuple

from deconv_ir.errors import DeconvError
from deconv_ir.ir.infer import infer_layer
from deconv_ir.ir.operation import Operation, TensorInfo
from deconv_ir.ir.shapes import Shape, declared_form, intersect_dims, is_static
from deconv_ir.ops import find_operation
from deconv_ir.ops.base import AttributeSpec, Form, attributes_of, parse_attributes
from deconv_ir.ops.convolution.deconvolution import Deconvolution

if TYPE_CHECKING:
    from deconv_ir.linter.context import LintContext

MAX_LAYERS = 8
"""Maximum number of diagnosed layers; others are reported without a diagnosis."""
MAX_SHOWN = 3
NEAR = 8
"""Upper bound of the numbers tried for strides, dilations, pads and axes."""


class Correction(NamedTuple):
    """A single change of a layer's attributes."""

    name: str
    value: str
    """The corrected value of the attribute."""
    misspelt: str | None = None
    """The attribute that currently has the value."""

    @property
    def changes(self) -> dict[str, str | None]:
        """The values of the attributes that change; None: removed."""
        removed: dict[str, str | None] = {} if self.misspelt is None else {self.misspelt: None}
        return {**removed, self.name: self.value}

    def __str__(self) -> str:
        place = f" in place of {self.misspelt}" if self.misspelt else ""
        return f'{self.name}="{self.value}"{place}'


class Diagnosis(NamedTuple):
    """Corrections of a layer that give all declared outputs, the most likely first."""

    corrections: tuple[Correction, ...] = ()
    is_certain: bool = False
    """Whether the first one is better founded than the others, or means the same."""


def diagnose(context: LintContext, index: int) -> Diagnosis:
    """Search for corrections that give all declared outputs."""
    layer = context.graph.layers[index]
    operation = type(layer.operation)
    written = dict(layer.attributes)
    known = {spec.name: spec for spec in attributes_of(operation)}
    unknown = [name for name in written if name not in known]
    found: list[tuple[int, int, Correction]] = []
    # Likelihood, number of different numbers, and the correction.
    for name, spec in known.items():
        if name in written:
            rank = 2
        elif spec.required:
            rank = 0
        else:
            rank = 3
        for misspelt in unknown:
            if name not in written and gives_declared(
                context, index, {misspelt: None, name: written[misspelt]}
            ):
                found.append((-1, 1, Correction(name, written[misspelt], misspelt)))
        for value in _corrections(context, index, spec):
            if value != written.get(name) and gives_declared(context, index, {name: value}):
                found.append((rank, len(set(value.split(","))), Correction(name, value)))
                break
    found.sort(key=lambda item: item[:2])
    # A missing or misspelt attribute is a better explanation than a changed one.
    least = found[0][0] if found else 0
    shown = [entry for entry in found if entry[0] == least or least >= 2][:MAX_SHOWN]
    corrections = tuple(correction for *_, correction in shown)
    if not corrections:
        return Diagnosis()
    first = corrections[0].changes
    # Written attributes are more likely wrong than absent ones, equal numbers more likely right.
    rivals = [entry[2] for entry in shown[1:] if entry[:2] == shown[0][:2]]
    is_certain = all(is_same_work(context, index, first, rival.changes) for rival in rivals)
    return Diagnosis(corrections, is_certain)


def count_contradicted(context: LintContext) -> dict[int, int]:
    """Count, for each disputed layer, the declared dims that its computed outputs contradict."""
    graph, evidence = context.graph, context.evidence
    assert evidence.plain is not None
    known = evidence.plain.outputs
    counts = dict.fromkeys(evidence.disputed, 0)
    for index, culprit in evidence.culprits.items():
        if culprit not in counts:
            continue
        layer = graph.layers[index]
        pairs = [(p.shape, i.shape) for p, i in zip(layer.outputs, known[index], strict=False)]
        for port, source in zip(layer.inputs, graph.topology.sources[index], strict=True):
            if source is not None and evidence.culprits.get(source[0]) is not None:
                pairs.append((port.shape, known[source[0]][source[1]].shape))
        counts[culprit] += sum(map(_differing, pairs))
    return counts


def _differing(shapes: tuple[Shape, Shape]) -> int:
    """Count the declared dims that contradict computed ones."""
    stated, computed = shapes
    if stated is None or computed is None:
        return 0
    if len(stated) != len(computed):
        return len(stated)
    pairs = zip(stated, computed, strict=True)
    return sum(intersect_dims(a, b) is None for a, b in pairs)


def alternatives(context: LintContext, index: int, name: str) -> Iterator[str]:
    """Iterate over the values of an attribute that are worth trying."""
    operation = find_operation(
        context.graph.layers[index].type, context.graph.layers[index].version
    )
    for spec in attributes_of(operation) if operation is not None else ():
        if spec.name == name:
            yield from _corrections(context, index, spec)


def gives_declared(context: LintContext, index: int, changes: Mapping[str, str | None]) -> bool:
    """Whether a layer has the declared outputs when attributes are changed.

    `changes` has the value of each; None: the attribute is removed.
    """
    layer = context.graph.layers[index]
    outputs = _outputs(context, index, changes)
    if outputs is None or len(outputs) < len(layer.outputs):
        return False
    return all(
        port.shape is not None
        and is_static(port.shape)
        and declared_form(info.shape) == declared_form(port.shape)
        and port.element_type in (None, info.element_type)
        for port, info in zip(layer.outputs, outputs, strict=False)
    )


def is_same_work(
    context: LintContext, index: int, a: Mapping[str, str | None], b: Mapping[str, str | None]
) -> bool:
    """Whether two changes of a transposed convolution are equivalent."""
    work = []
    for changes in (a, b):
        operation = _changed(context, index, changes)
        if not isinstance(operation, Deconvolution):
            return False
        found = operation.geometry(context.inputs(index), context.inference_context)
        axes = (getattr(operation, name, None) for name in ("strides", "dilations"))
        work.append(([(g.pad_begin, g.output) for g in found or ()], *axes))
    return work[0] == work[1]


def _changed(
    context: LintContext, index: int, changes: Mapping[str, str | None]
) -> Operation | None:
    layer = context.graph.layers[index]
    operation = find_operation(layer.type, layer.version)
    if operation is None:
        return None
    merged = {**dict(layer.attributes), **changes}
    return parse_attributes(operation, {k: v for k, v in merged.items() if v is not None})[0]


def _outputs(
    context: LintContext, index: int, changes: Mapping[str, str | None]
) -> tuple[TensorInfo, ...] | None:
    operation = _changed(context, index, changes)
    if operation is None:
        return None
    layer = context.graph.layers[index]._replace(operation=operation)
    try:
        return infer_layer(layer, context.inputs(index), context.inference_context)
    except DeconvError:
        return None


def _corrections(context: LintContext, index: int, spec: AttributeSpec) -> Iterator[str]:
    """Iterate over plausible values of an attribute."""
    layer = context.graph.layers[index]
    allowed = spec.kind.values
    if spec.kind.per_axis:
        yield from _per_axis(context, index, spec)
    elif spec.name == "shape" and layer.outputs and layer.outputs[0].shape is not None:
        yield ",".join(declared_form(layer.outputs[0].shape))
    elif allowed.form is Form.ELEMENT_TYPE:
        for port in layer.outputs:
            if port.element_type is not None:
                yield port.element_type.name
    elif allowed.form is Form.BOOLEAN:
        yield from ("true", "false")
    elif isinstance(spec.default, enum.Enum):
        for member in type(spec.default):
            try:
                text = spec.kind.format(member)
            except KeyError:  # a value of another version
                continue
            yield text
    elif allowed.form is Form.INTEGER and not allowed.is_list:
        yield from map(str, range(-NEAR, NEAR))


def _per_axis(context: LintContext, index: int, spec: AttributeSpec) -> Iterator[str]:
    """Iterate over lists with one number for each axis: equal ones, then each axis alone."""
    layer = context.graph.layers[index]
    declared: Shape = layer.outputs[0].shape if layer.outputs else None
    if declared is None or len(declared) < 3:
        return
    spatial = len(declared) - 2
    least = max(0, int(spec.kind.values.minimum or 0))
    current = getattr(layer.operation, spec.field, None) or (least,) * spatial
    for number in range(least, NEAR):
        yield ",".join([str(number)] * spatial)
    # The spatial axes are independent.
    best = list(current)
    first = 1 if getattr(layer.operation, "channels_last", False) else 2
    if len(best) != spatial:
        return
    for axis in range(spatial):
        for number in (best[axis], *range(least, NEAR)):
            trial = [*best[:axis], number, *best[axis + 1 :]]
            outputs = _outputs(context, index, {spec.name: ",".join(map(str, trial))})
            shape = outputs[0].shape if outputs else None
            if shape is not None and shape[first + axis] == declared[first + axis]:
                best = trial
                break
            if spatial <= 2:
                yield ",".join(map(str, trial))
    yield ",".join(map(str, best))
