"""Small networks of one operation each, from the worked examples of the operations.

One thing at a time differs from an example: element types, the inputs that are constants, the rank,
dynamic dims, and each value of each attribute that is a word. Networks in which the linter finds an
error are left out: they are invalid.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from support import IR  # noqa: E402

from deconv_ir.errors import DeconvError  # noqa: E402
from deconv_ir.findings import Severity  # noqa: E402
from deconv_ir.formats import parse_bytes  # noqa: E402
from deconv_ir.ir.dtypes import ELEMENT_TYPES, ElementType  # noqa: E402
from deconv_ir.ir.operation import Operation  # noqa: E402
from deconv_ir.ir.shapes import format_shape, static  # noqa: E402
from deconv_ir.limits import DEFAULT_LIMITS  # noqa: E402
from deconv_ir.linter.engine import check_parsed, open_context  # noqa: E402
from deconv_ir.linter.options import choose  # noqa: E402
from deconv_ir.linter.targets.layers import layer_forms  # noqa: E402
from deconv_ir.ops import all_operations, find_operation, opset_number  # noqa: E402
from deconv_ir.ops.base import Form, attributes_of  # noqa: E402
from deconv_ir.ops.examples import ExampleTensor, parse_example  # noqa: E402
from deconv_ir.ops.opsets import LAST_OPSET, OPERATIONS  # noqa: E402

OPTIONS = choose(ignore=("IR401", "IR402", "IR210"))
"""The small networks declare neither the dims of ports nor the precisions of inputs."""
NAME = "layer_of_the_form"
MAX_RANK = 8
PADDING = f"<!--{' a small network of tools/check_targets.py' * 12} -->\n"
"""Releases up to 2023 read no network that ends within the first 512 bytes of the file."""
READ_WITH: dict[str, dict[str, str]] = {
    "Col2Im": dict.fromkeys(("strides", "dilations"), "1,1")
    | dict.fromkeys(("pads_begin", "pads_end"), "0,0"),
    "DeformableConvolution": {"group": "1", "deformable_group": "1"},
}
"""Attributes that OpenVINO's reader requires."""
READ_AS: dict[str, dict[str, str]] = {"GenerateProposals": {"nms_eta": "1"}}
"""Attributes of which it reads one value."""
BODIES = ROOT / "tests/fixtures"
COMMON = ("f32", "f16", "bf16", "f64", "i8", "u8", "i32", "i64", "boolean")
INTEGERS = ("i32", "i64", "u8")


class Network(NamedTuple):
    """A network to try."""

    operation: str
    """As ``Pad-12``."""
    parts: tuple[str, ...]
    base: int
    """Number of the network that it differs from in one thing; its own: an example."""
    text: str
    weights: bytes


class Draft(NamedTuple):
    """One layer, its inputs and attributes."""

    tensors: tuple[ExampleTensor, ...]
    attributes: dict[str, str]
    constant: tuple[bool, ...]
    outputs: int
    dynamic: str = ""
    """``dims``, ``batch`` or ``rank``, or ``first``: of the first input only."""


def networks() -> Iterator[Network]:
    """Iterate over the networks of all operations of opsets."""
    count = 0
    for operation in all_operations():
        for version in operation.versions:
            drafts = list(_drafts(operation))
            base = -1
            seen = set()
            for is_base, draft in drafts:
                made = _network(operation, version, draft)
                if made is None or (made[2], made[3]) in seen:
                    continue
                seen.add((made[2], made[3]))
                base = count if is_base else base
                yield Network(*made[:2], base, *made[2:])
                count += 1
    for path in sorted(BODIES.glob("*/*.xml")):
        data, weights = path.read_bytes(), path.with_suffix(".bin").read_bytes()
        parsed = parse_bytes(data, "m.xml", DEFAULT_LIMITS)
        context = open_context(parsed, OPTIONS, path.with_suffix(".bin"))
        for form in layer_forms(context):
            if form.operation and context.graph.layers[form.layer].operation.bodies:
                yield Network(form.operation, form.parts, count, data.decode(), weights)
                count += 1


def literals() -> Iterator[tuple[str, str]]:
    """Iterate over type and opset of all operations that an opset has, and some that it lacks."""
    for type_name in sorted(OPERATIONS):
        for number in range(1, LAST_OPSET + 1):
            yield type_name, f"opset{number}"


def _drafts(operation: type[Operation]) -> Iterator[tuple[bool, Draft]]:
    for number, text in enumerate(operation.examples or ("",)):
        if not text:
            yield from _ends(operation)
            return
        example = parse_example(text)
        base = Draft(
            example.inputs,
            READ_WITH.get(operation.type, {})
            | example.attributes
            | READ_AS.get(operation.type, {}),
            tuple(tensor.elements is not None for tensor in example.inputs),
            len(example.outputs),
        )
        yield True, base
        variants = [*_masks(base), *_ranks(operation, base)]
        variants += _types(base) if number == 0 else _whole_types(base)
        fixed = base._replace(constant=(False, *[True] * (len(base.tensors) - 1)))
        for start in (base, fixed) if base.tensors and fixed != base else (base,):
            variants += [*_dynamic(start), *_words(operation, start)]
        for draft in variants:
            yield False, draft


def _ends(operation: type[Operation]) -> Iterator[tuple[bool, Draft]]:
    """Iterate over Const, Parameter, Result and Assign of each element type and some ranks."""
    if operation.type not in ("Const", "Parameter", "Result", "Assign"):
        return
    f32 = next(t for t in ELEMENT_TYPES if t.name == "f32")
    for kind in ELEMENT_TYPES:
        tensor = ExampleTensor(kind, (2, 3))
        yield kind is f32, Draft((tensor,), {}, (operation.type == "Const",), 1)
    yield False, Draft((ExampleTensor(f32, (0, 3)),), {}, (False,), 1)
    if operation.type == "Result":
        for kind in ELEMENT_TYPES:
            yield False, Draft((ExampleTensor(kind, (2, 3)),), {}, (True,), 1)
    for rank in range(MAX_RANK + 1):
        tensor = ExampleTensor(f32, (2,) * rank)
        yield False, Draft((tensor,), {}, (operation.type == "Const",), 1)
    if operation.type != "Const":
        for dynamic in ("dims", "batch", "rank"):
            yield False, Draft((ExampleTensor(f32, (2, 3)),), {}, (False,), 1, dynamic)


def _masks(base: Draft) -> Iterator[Draft]:
    """Make other inputs constants."""
    count = len(base.tensors)
    own = base.constant
    if count <= 3:
        masks = [tuple(bool(n >> i & 1) for i in range(count)) for n in range(2**count)]
    else:
        masks = [(False,) * count, (False,) + (True,) * (count - 1), (True,) * count]
        masks += [(*own[:i], not own[i], *own[i + 1 :]) for i in range(count)]
    for mask in masks:
        if mask != own:
            yield base._replace(constant=mask)


def _types(base: Draft) -> Iterator[Draft]:
    """Replace the element type of all inputs that share one."""
    count = len(base.tensors)
    masks = dict.fromkeys((base.constant, (False,) + (True,) * (count - 1)))
    rare = [base.constant] if count > 1 else [(False,), (True,)]
    main = base.tensors[0].element_type if base.tensors else None
    for kind in ELEMENT_TYPES:
        changed = _retyped(base, main, kind)
        for mask in masks if kind.name in COMMON else rare:
            yield changed._replace(constant=mask)
    yield from _whole_types(base)


def _whole_types(base: Draft) -> Iterator[Draft]:
    """Replace the type of the integers beside the data."""
    count = len(base.tensors)
    main = base.tensors[0].element_type if base.tensors else None
    masks = dict.fromkeys(
        (base.constant, (False,) * count, (False,) + (True,) * (count - 1), (True,) * count)
    )
    whole = {t.element_type for t in base.tensors if t.element_type.is_integer} - {main}
    for old in sorted(whole, key=str):
        for name in INTEGERS:
            kind = next(t for t in ELEMENT_TYPES if t.name == name)
            for mask in masks:
                yield _retyped(base, old, kind)._replace(constant=mask)


def _retyped(draft: Draft, old: ElementType | None, new: ElementType) -> Draft:
    tensors = tuple(
        t._replace(element_type=new) if t.element_type is old else t for t in draft.tensors
    )
    return draft._replace(tensors=tensors)


def _ranks(operation: type[Operation], base: Draft) -> Iterator[Draft]:
    """Add or remove leading dims of 1, or spatial dims and their elements of attributes."""
    for change in range(-MAX_RANK, MAX_RANK + 1):
        if change:
            yield base._replace(tensors=tuple(_led(t, change, base) for t in base.tensors))
    free = sum(t.elements is None for t in base.tensors)
    for rank in range(MAX_RANK + 1) if free > 1 else ():
        yield base._replace(
            tensors=tuple(
                t if t.elements is not None else t._replace(shape=(2,) * rank) for t in base.tensors
            )
        )
    spatial = [s.name for s in attributes_of(operation) if s.kind.per_axis]
    for change in (-2, -1, 1, 2):
        attributes = {
            name: _resized(value, change) if name in spatial else value
            for name, value in base.attributes.items()
        }
        tensors = tuple(_trailed(t, change, base) for t in base.tensors)
        yield base._replace(tensors=tensors, attributes=attributes)


def _resized(value: str, change: int) -> str:
    words = value.split(",")
    return ",".join(words[:change] if change < 0 else words + words[-1:] * change)


def _led(tensor: ExampleTensor, change: int, base: Draft) -> ExampleTensor:
    shape = static(tensor.shape)
    if tensor.elements is not None or len(shape) != len(static(base.tensors[0].shape)):
        return tensor
    return tensor._replace(shape=(1,) * change + shape if change > 0 else shape[-change:])


def _trailed(tensor: ExampleTensor, change: int, base: Draft) -> ExampleTensor:
    shape = static(tensor.shape)
    if tensor.elements is not None or not shape or len(shape) < len(static(base.tensors[0].shape)):
        return tensor
    return tensor._replace(shape=shape[:change] if change < 0 else shape + shape[-1:] * change)


def _dynamic(base: Draft) -> Iterator[Draft]:
    for dynamic in ("dims", "batch", "first", "first batch", "rank"):
        yield base._replace(dynamic=dynamic)


def _words(operation: type[Operation], base: Draft) -> Iterator[Draft]:
    """Give each attribute that is a word, or a list of words, each of its values."""
    for spec in attributes_of(operation):
        allowed = spec.kind.values
        words: Sequence[str] = ()
        if allowed.form is Form.BOOLEAN:
            words = ("true", "false")
        elif allowed.form is Form.ELEMENT_TYPE:
            words = [t.name for t in ELEMENT_TYPES]
        elif allowed.form is Form.WORD and "0" not in allowed.words:
            words = allowed.words
        length = base.attributes.get(spec.name, "").count(",") + 1
        for word in words:
            value = ",".join([word] * length) if allowed.is_list else word
            changed = base._replace(attributes=base.attributes | {spec.name: value})
            yield changed
            if word == "none":  # no broadcast: equal shapes
                shape = base.tensors[0].shape
                yield changed._replace(tensors=tuple(t._replace(shape=shape) for t in base.tensors))


def _network(
    operation: type[Operation], version: str, draft: Draft
) -> tuple[str, tuple[str, ...], str, bytes] | None:
    """Write a network, or return None if the linter finds an error in it."""
    ir = IR()
    try:
        name = _write(ir, operation, version, draft)
    except (ValueError, TypeError, OverflowError, DeconvError):
        return None  # the elements do not fit the type
    data = padded(ir.xml()).encode()
    parsed = parse_bytes(data, "m.xml", DEFAULT_LIMITS)
    path = _weights_file(bytes(ir.weights))
    result = check_parsed(parsed, OPTIONS, path, resume=False)
    if any(f.severity is Severity.ERROR for f in result.findings):
        return None
    context = open_context(parsed, OPTIONS, path, resume=False)
    assert parsed.graph is not None
    for form in layer_forms(context):
        layer = parsed.graph.layers[form.layer]
        # An early version, as MVN of opset1, may be read as a later one.
        if layer.name == name and form.operation == f"{operation.type}-{opset_number(version)}":
            return form.operation, form.parts, data.decode(), bytes(ir.weights)
    return None


def _weights_file(data: bytes) -> Path:
    path = Path("/dev/shm" if Path("/dev/shm").is_dir() else "/tmp") / "deconv-target-forms.bin"
    path.write_bytes(data or b"\0")
    return path


def _write(ir: IR, operation: type[Operation], version: str, draft: Draft) -> str:
    ends = operation.type in ("Const", "Parameter", "Result", "Assign")
    sources = []
    for number, (tensor, fixed) in enumerate(zip(draft.tensors, draft.constant, strict=True)):
        name = NAME if operation.type in ("Const", "Parameter") else f"x{number}"
        if fixed:
            data = b"\0" * tensor.element_type.size_of(_count(tensor))
            if tensor.elements is not None or not tensor.element_type.is_packed:
                data = _bytes(tensor, number)
            shape = static(tensor.shape)
            sources.append(ir.raw_const(data, tensor.element_type.name, shape, name))
        else:
            dynamic = "" if number and "first" in draft.dynamic else draft.dynamic
            shape = _shown(tensor, dynamic)
            sources.append(ir.parameter(name, shape, tensor.element_type.name))
    if operation.type == "Assign":
        state = {"variable_id": "memory"}
        if version != "opset3":
            shape = _shown(draft.tensors[0], draft.dynamic)
            state |= {"variable_type": draft.tensors[0].element_type.name, "variable_shape": shape}
        read = ir.layer("ReadValue", sources, state, version=version, precision="dynamic")
        ir.layer("Assign", [read], state, name=NAME, version=version, precision="dynamic")
        ir.result(read)
        return NAME
    if ends:
        ir.result(sources[0], NAME if operation.type == "Result" else "y")
        return NAME
    layer, first = ir.layer(
        operation.type,
        sources,
        draft.attributes,
        outputs=[""] * draft.outputs,
        name=NAME,
        version=version,
        precision="dynamic",
    )
    for port in range(draft.outputs):
        ir.result((layer, first + port))
    return NAME


def _count(tensor: ExampleTensor) -> int:
    count = 1
    for dim in static(tensor.shape):
        count *= dim
    return count


def _shown(tensor: ExampleTensor, dynamic: str) -> str:
    shape = static(tensor.shape)
    if dynamic == "rank":
        return "..."
    if dynamic and shape:
        batch = dynamic.endswith("batch")
        return ",".join("?" if not (batch and i) else str(d) for i, d in enumerate(shape))
    return format_shape(shape)[1:-1].replace(" ", "")


def _bytes(tensor: ExampleTensor, seed: int) -> bytes:
    from deconv_ir.ops.constants.packing import pack

    array: Any = tensor.array(seed)
    if tensor.element_type.is_packed:
        return bytes(pack(array, tensor.element_type))
    if tensor.element_type.name == "string":
        raise ValueError("strings are tried as inputs")
    return bytes(array.tobytes())


def literal_network(type_name: str, version: str) -> tuple[str, bytes] | None:
    """Write the first example of an operation with another opset as its version."""
    operation = find_operation(type_name, version) or find_operation(type_name)
    if operation is None or not operation.examples:
        return None
    _, draft = next(iter(_drafts(operation)))
    ir = IR()
    _write(ir, operation, version, draft)
    return padded(ir.xml()), bytes(ir.weights)


def padded(text: str) -> str:
    """Make a file long enough for all releases."""
    return text.replace("<layers>", f"{PADDING}<layers>", 1)
