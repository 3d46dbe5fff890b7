"""Load, lint and run IRs generated from the declarations of operations; see `runner`.

Each is one layer, with a few small ones around it.  Its attributes are drawn by
their declared kinds: allowed, at the edge, out of range, of another kind, of
another length, or missing.  Its inputs have any element type, ranks from 0 to 6
and extents from 0 on, and are arrays that are fed, dynamic ones too, or constants
of any value, which shape inference reads.  Half of them begin as a worked example
of the operation, so that one thing at a time is wrong.

    python tests/hostile/generate.py --count 100000 --seed 0

prints the figures of docs/reliability.md.
"""

from __future__ import annotations

import random
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

if __name__ == "__main__":  # run as a script, from anywhere
    sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np
from support import IR, Out

from deconv_ir.ir.dtypes import ELEMENT_TYPES, I32, I64, ElementType
from deconv_ir.ir.operation import Operation
from deconv_ir.ir.shapes import Shape, element_count, static
from deconv_ir.ops import all_operations
from deconv_ir.ops.base import AttributeSpec, attributes_of
from deconv_ir.ops.elementwise.elementwise import Unary
from deconv_ir.ops.examples import parse_example
from hostile.mutate import INTEGERS, WORDS
from hostile.runner import IRMaker, main
from hostile.seeds import Seed

EXTENTS = (0, 1, 1, 2, 2, 3, 4, 5, 7)
FAR = (10**4, 2**31 - 1, 2**31, 2**40, 2**62, 2**63 - 1)
SMALL = ("0", "1", "2", "3", "4", "-1", "-2", "0.5", "1e-5", "-0.25", "100")
NUMBERS = (0, 1, 1, 2, 3, 4, 5, -1, -2, -3, 7, 16, 1000)
ODD = (2**31 - 1, 2**31, -(2**31), 2**62, 2**63 - 1, -(2**63), 2**64 - 1, 10**9, -(10**9), 255)
REALS = (0.0, -0.0, 0.5, 1.0, 2.0, 2.5, 3.0, -0.5, -1.0, -2.0, 1e-30, 1e-5, 100.0, 1e9)
ODD_REALS = (float("nan"), float("inf"), -float("inf"), 1e38, -1e38, 3.4e38, 1e300, 5e-324, 2.0**63)
MAX_CONSTANT = 1 << 12
COMMON = [
    t for t in ELEMENT_TYPES if t.name in ("f32", "f16", "f64", "bf16", "i32", "i64", "boolean")
]


@dataclass(frozen=True)
class Input:
    """An input of a layer: a shape (None: of dynamic rank), and elements if their values matter."""

    element_type: ElementType
    shape: Shape
    elements: tuple[float, ...] | None = None


class Generator(IRMaker):
    """Generate IRs from a seed and a number; equal seeds and numbers give equal IRs."""

    def __init__(self) -> None:
        self.operations = all_operations()
        self.unary = [o for o in self.operations if issubclass(o, Unary)]

    def make(self, seed: int, number: int) -> Seed:
        """Return the IR with a number."""
        draw = random.Random(f"generate/{seed}/{number}")
        operation = self.operations[number % len(self.operations)]
        examples = [parse_example(text) for text in operation.examples]
        example = draw.choice(examples) if examples and draw.random() < 0.6 else None
        if example is not None:
            inputs = [Input(t.element_type, t.shape, t.elements) for t in example.inputs]
            attributes = dict(example.attributes)
        else:
            inputs = _free_inputs(draw, operation)
            attributes = _free_attributes(draw, operation, inputs)
        for _ in range(draw.choice((0, 1, 1, 1, 2, 2, 3))):
            if draw.random() < 0.5:
                _disturb_inputs(draw, inputs)
            else:
                _disturb_attributes(draw, operation, inputs, attributes)
        outputs = len(draw.choice(examples).outputs) if examples else 1
        ir = self._network(draw, operation, inputs, attributes, outputs)
        return Seed(operation.type, ir.xml().encode("utf-8", "surrogatepass"), bytes(ir.weights))

    def _network(
        self,
        draw: random.Random,
        operation: type[Operation],
        inputs: list[Input],
        attributes: dict[str, str],
        outputs: int,
    ) -> IR:
        ir = IR()
        sources = [self._source(draw, ir, f"x{i}", given) for i, given in enumerate(inputs)]
        if len(sources) > 1 and draw.random() < 0.03:
            sources[-1] = sources[0]
        if draw.random() < 0.03:
            outputs = draw.choice((0, 1, 2, 5))
        layer, first = ir.layer(
            operation.type,
            sources,
            {name: _escaped(value) for name, value in attributes.items()},
            outputs=[""] * outputs,
            version=draw.choice(operation.versions) if operation.versions else "",
            precision="dynamic",
        )
        for port in range(outputs):
            out = (layer, first + port)
            if draw.random() < 0.2:
                out = self._elementwise(draw, ir, out)
            if draw.random() < 0.05:
                kind = {"output_type": draw.choice(("i32", "i64"))}
                out = ir.layer("ShapeOf", [out], kind, version="opset3", precision="dynamic")
            ir.result(out)
        return ir

    def _elementwise(self, draw: random.Random, ir: IR, source: Out) -> Out:
        operation = draw.choice(self.unary)
        version = operation.versions[0]
        return ir.layer(operation.type, [source], version=version, precision="dynamic")

    def _source(self, draw: random.Random, ir: IR, name: str, given: Input) -> Out:
        """Add a Parameter or a constant, sometimes with a layer behind it."""
        chance = 0.8 if given.elements is not None else 0.25
        constant = draw.random() < chance and given.shape is not None
        if constant and element_count(static(given.shape)) <= MAX_CONSTANT:
            out = ir.raw_const(
                _bytes(draw, given), given.element_type.name, static(given.shape), name
            )
        else:
            shape = _dynamic(draw, given.shape)
            out = ir.parameter(name, shape, given.element_type.name)
        if draw.random() < 0.08:
            out = self._elementwise(draw, ir, out)
        return out

    def array(self, seed: int, number: int, port: Any, index: int) -> Any:
        """Return small numbers, ones, or numbers that an operation may not expect."""
        draw = random.Random(f"feed/{seed}/{number}/{index}")
        if port.shape is None:
            shape = tuple(draw.choice(EXTENTS) for _ in range(draw.randrange(6)))
        else:
            shape = tuple(d if isinstance(d, int) else _extent(draw, d) for d in port.shape)
        element_type = port.element_type or COMMON[0]
        dtype = element_type.numpy()
        values = _values(draw, element_type, element_count(shape))
        with np.errstate(all="ignore"):
            if element_type.is_float:
                return np.array(values, np.float64).astype(dtype).reshape(shape)
            mask = (1 << 64) - 1
            whole = np.array([int(v) & mask for v in values], np.uint64)
            if dtype.kind == "b":
                return (whole % 2 == 1).reshape(shape)
            # Types that NumPy lacks convert from signed integers of their range only.
            if dtype.kind not in "iu":
                whole = whole % 8
            return whole.astype(dtype).reshape(shape)


def _extent(draw: random.Random, dim: Any) -> int:
    high = dim.min + 4 if dim.max is None else min(dim.max, dim.min + 4)
    return draw.randint(dim.min, high)


def _free_inputs(draw: random.Random, operation: type[Operation]) -> list[Input]:
    """Draw inputs: some share a type and extents, so that not all of them are refused."""
    least = operation.required_inputs
    most = max(1, len(operation.inputs)) if least is not None else 4
    count = draw.randint(least if least is not None else 1, max(most, least or 0))
    element_type = draw.choice(COMMON[:2] if draw.random() < 0.5 else ELEMENT_TYPES)
    shape = _shape(draw, draw.randrange(7))
    inputs = []
    for position in range(count):
        kind = draw.random()
        if position and kind < 0.35:  # a list of integers, or one
            length = draw.choice((None, 0, 1, 1, 2, len(shape), max(0, len(shape) - 2)))
            dims = () if length is None else (length,)
            whole = draw.choice((I32, I64, I64))
            values = tuple(draw.choice(NUMBERS) for _ in range(element_count(dims)))
            inputs.append(Input(whole, dims, values))
        elif kind < 0.65:
            inputs.append(Input(element_type, shape))
        else:
            inputs.append(Input(element_type, _shape(draw, draw.randrange(7))))
    return inputs


def _shape(draw: random.Random, rank: int) -> tuple[int, ...]:
    return tuple(draw.choice(EXTENTS) for _ in range(rank))


def _free_attributes(
    draw: random.Random, operation: type[Operation], inputs: list[Input]
) -> dict[str, str]:
    found = {}
    for spec in attributes_of(operation):
        if not spec.has_default or draw.random() < 0.5:
            found[spec.name] = _allowed(draw, spec, inputs)
    return found


def _allowed(draw: random.Random, spec: AttributeSpec, inputs: list[Input]) -> str:
    """Return a text that the attribute's kind accepts, if one is found."""
    ranks = [len(i.shape) for i in inputs if i.shape is not None]
    rank = ranks[0] if ranks else draw.randrange(7)
    length = draw.choice((max(0, rank - 2), max(0, rank - 2), max(0, rank - 2), rank, 1, 2, 3))
    one_of = spec.kind.values.words or ("",)
    whole = [text for text in SMALL if "." not in text and "e" not in text]
    candidates = [
        ",".join(draw.choice(whole) for _ in range(length)),
        ",".join(draw.choice(("1", "1", "2", "0")) for _ in range(length)),
        draw.choice(one_of),
        draw.choice(SMALL),
        draw.choice(("true", "false")),
        draw.choice(ELEMENT_TYPES).name,
        "1",
    ]
    draw.shuffle(candidates)
    return next((text for text in candidates if _parses(spec, text)), "")


def _parses(spec: AttributeSpec, text: str) -> bool:
    try:
        spec.kind.parse(text)
    except ValueError:
        return False
    return True


def _disturb_attributes(
    draw: random.Random,
    operation: type[Operation],
    inputs: list[Input],
    attributes: dict[str, str],
) -> None:
    specs = attributes_of(operation)
    if not specs:
        return
    spec = draw.choice(specs)
    kind = draw.random()
    if kind < 0.15:
        attributes.pop(spec.name, None)
    elif kind < 0.5:
        attributes[spec.name] = _allowed(draw, spec, inputs)
    elif kind < 0.8:  # the limits of its kind
        far = [text for text in INTEGERS if _parses(spec, text)]
        old = attributes.get(spec.name, "1")
        parts = old.split(",")
        parts[draw.randrange(len(parts))] = draw.choice(far or INTEGERS)
        attributes[spec.name] = ",".join(parts)
    elif kind < 0.9:
        attributes[spec.name] = draw.choice((*INTEGERS, *WORDS))
    else:
        count = draw.choice((0, 1, 2, 3, 7, 70))
        attributes[spec.name] = ",".join(draw.choice(INTEGERS[:8]) for _ in range(count))


def _disturb_inputs(draw: random.Random, inputs: list[Input]) -> None:
    if not inputs or draw.random() < 0.05:
        inputs.append(Input(draw.choice(COMMON), _shape(draw, draw.randrange(5))))
        return
    place = draw.randrange(len(inputs))
    old = inputs[place]
    kind = draw.random()
    if kind < 0.25 or old.shape is None:
        inputs[place] = Input(old.element_type, _shape(draw, draw.randrange(7)))
    elif kind < 0.55:
        if not old.shape:
            inputs[place] = replace(old, shape=(draw.choice(EXTENTS),), elements=None)
            return
        dims = list(old.shape)
        new = draw.choice(FAR) if draw.random() < 0.1 else draw.choice((0, 0, 0, *EXTENTS))
        dims[draw.randrange(len(dims))] = new
        inputs[place] = replace(old, shape=tuple(dims), elements=None)
    elif kind < 0.7:
        types = ELEMENT_TYPES if draw.random() < 0.6 else COMMON
        inputs[place] = replace(old, element_type=draw.choice(types))
    elif kind < 0.95:
        if element_count(static(old.shape)) <= MAX_CONSTANT:
            count = element_count(static(old.shape))
            inputs[place] = replace(old, elements=tuple(_values(draw, old.element_type, count)))
    else:
        del inputs[place]


def _values(draw: random.Random, element_type: ElementType, count: int) -> list[float]:
    plain, odd = (REALS, ODD_REALS) if element_type.is_float else (NUMBERS, ODD)
    kind = draw.random()
    if kind < 0.5:
        return [draw.choice(plain) for _ in range(count)]
    if kind < 0.6:
        return [draw.choice((*plain, *odd))] * count
    if kind < 0.7:
        return [draw.choice(odd) for _ in range(count)]
    if kind < 0.85:
        return [float(n) if element_type.is_float else n for n in range(count)]
    values: list[float] = [draw.choice(plain) for _ in range(count)]
    if values:
        values[draw.randrange(count)] = draw.choice(odd)
    return values


def _bytes(draw: random.Random, given: Input) -> bytes:
    """Return the stored bytes of a constant: its elements, or random bytes."""
    count = element_count(static(given.shape))
    kind = given.element_type
    if kind.is_packed or not kind.bits or kind.name in ("f8e8m0", "f8e4m3", "f8e5m2"):
        return draw.randbytes(kind.size_of(count))
    values = given.elements if given.elements is not None else _values(draw, kind, count)
    if kind.is_float:
        with np.errstate(all="ignore"):
            return np.array(values, np.float64).astype(kind.numpy()).tobytes()
    mask = (1 << kind.bits) - 1 if kind.kind != "bool" else 1
    whole = [int(v) if np.isfinite(v) else 0 for v in values]
    return b"".join((v & mask).to_bytes(kind.bits // 8, "little") for v in whole)


def _dynamic(draw: random.Random, shape: Shape) -> str:
    """Write a shape, sometimes with unknown dims."""
    if shape is None or draw.random() < 0.03:
        return "..."
    if draw.random() < 0.85:
        return ",".join(map(str, shape))
    forms = ("{0}", "{0}", "?", "-1", "0..{0}", "{0}..", "..{0}")
    return ",".join(draw.choice(forms).format(dim) for dim in shape)


def _escaped(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace('"', "&quot;")


if __name__ == "__main__":
    sys.exit(main(Generator, __doc__))
