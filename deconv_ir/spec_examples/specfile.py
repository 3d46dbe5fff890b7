"""SPEC files: examples of one operation, in TOML."""

from __future__ import annotations

import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from deconv_ir.errors import DeconvError
from deconv_ir.formats.files import read_input
from deconv_ir.ir.dtypes import ElementType, parse_element_type
from deconv_ir.ir.graph import Layer
from deconv_ir.ir.infer import infer_layer
from deconv_ir.ir.operation import Context, Operation, TensorInfo
from deconv_ir.ir.options import Semantics
from deconv_ir.ir.shapes import format_shape, is_static, static
from deconv_ir.ops import find_operation
from deconv_ir.ops.base import attributes_of, parse_attributes

MAX_BYTES = 4 << 20
MAX_RANK = 16
MAX_EXTENT = 2**31 - 1

_SLUG = re.compile(r"[a-z0-9][a-z0-9_.-]{0,63}")
_HEADER = re.compile(r"^\s*\[\[\s*example\s*\]\]", re.MULTILINE)

_SHARED_KEYS = ("element_type", "seed", "arrays", "profiles", "diagram")
_SPEC_KEYS = ("operation", "version", "title", "text", "source", "example", *_SHARED_KEYS)
_EXAMPLE_KEYS = (
    *("name", "title", "text", "layer", "attributes", "inputs", "values", "output"),
    *_SHARED_KEYS,
)


class Input(NamedTuple):
    """One input of an example."""

    name: str  # as in the operation
    shape: tuple[int, ...]
    element_type: ElementType
    value: tuple[int, ...] | None = None  # its elements, if given

    @property
    def info(self) -> TensorInfo:
        """The input for a shape rule."""
        return TensorInfo(self.shape, self.element_type, self.value)


class ExampleSpec(NamedTuple):
    """A valid example: its attributes parse, its inputs fit, and its shapes are computed."""

    name: str
    title: str
    text: str
    layer_id: int
    layer_name: str
    operation: Operation
    attributes: tuple[tuple[str, str], ...]  # as text, in the order of the file
    inputs: tuple[Input, ...]
    element_type: ElementType
    outputs: tuple[tuple[int, ...], ...]  # computed shapes
    output_types: tuple[ElementType, ...]
    seed: int
    arrays: bool  # whether golden arrays, and a picture, are requested
    diagram: bool
    # The profiles of the outputs; the example shows the first.
    profiles: tuple[Semantics, ...]

    @property
    def infos(self) -> list[TensorInfo]:
        """The inputs for a shape rule."""
        return [i.info for i in self.inputs]


class Spec(NamedTuple):
    """A SPEC file."""

    file: str
    operation: str
    version: str  # empty for an operation without versions
    title: str
    text: str
    source: str
    examples: tuple[ExampleSpec, ...]


def read_spec(path: str | os.PathLike[str]) -> Spec:
    """Read and check a SPEC file."""
    return parse_spec(read_input(path, MAX_BYTES), os.fspath(path))


def parse_spec(data: bytes, file: str = "<spec>") -> Spec:
    """Check the bytes of a SPEC file; see `read_spec`."""
    try:
        text = data.decode("utf-8-sig")
        table = tomllib.loads(text)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise DeconvError(f"invalid TOML: {reason}", file=file, rule="spec") from error
    lines = [text.count("\n", 0, m.end()) + 1 for m in _HEADER.finditer(text)]
    return spec_of(table, file, lines)


def spec_of(table: Mapping[str, Any], file: str, lines: Sequence[int] = ()) -> Spec:
    """Check the contents of a SPEC file; `lines` are those of its examples."""
    return _SpecReader(file, lines).spec(table)


class _SpecReader:
    """Reads one SPEC file; tracks the location for messages."""

    def __init__(self, file: str, lines: Sequence[int]) -> None:
        self.file = file
        self.lines = lines
        self.where = "the file"
        self.line: int | None = None

    def error(self, message: str, **fields: Any) -> DeconvError:
        """Make an error with the current location."""
        return DeconvError(
            f"{self.where}: {message}", file=self.file, line=self.line, rule="spec", **fields
        )

    def get(self, table: Mapping[str, Any], key: str, wanted: type, default: Any = None) -> Any:
        value = table.get(key, default)
        if key not in table and default is None:
            raise self.error(f"{key!r} is missing", expected=wanted.__name__)
        # In Python, True is an int.
        if not isinstance(value, wanted) or (wanted is int and isinstance(value, bool)):
            raise self.error(
                f"{key!r} must be {_TYPE_NAMES[wanted]}, found {value!r}",
                expected=_TYPE_NAMES[wanted],
                actual=value,
            )
        return value

    def known(self, table: Mapping[str, Any], keys: Sequence[str]) -> None:
        unknown = [k for k in table if k not in keys]
        if unknown:
            raise self.error(f"unknown key {unknown[0]!r}; known are {', '.join(keys)}")

    def spec(self, table: Mapping[str, Any]) -> Spec:
        self.known(table, _SPEC_KEYS)
        type_name = self.get(table, "operation", str)
        version = self.get(table, "version", str, "")
        cls = find_operation(type_name, version or None)
        if cls is None:
            named = f"{type_name} of {version}" if version else type_name
            raise self.error(f"operation {named} is not known", actual=named)
        shared = {k: table[k] for k in _SHARED_KEYS if k in table}
        examples: list[ExampleSpec] = []
        listed = self.get(table, "example", list)
        for i, entry in enumerate(listed):
            self.line = self.lines[i] if len(self.lines) == len(listed) else None
            self.where = f"example {i + 1}"
            if not isinstance(entry, dict):
                raise self.error("an example must be a table, [[example]]")
            example = self.example(shared | entry, cls)
            if any(e.name == example.name for e in examples):
                raise self.error(f"the name {example.name!r} is taken")
            examples.append(example)
        return Spec(
            self.file,
            type_name,
            version or (cls.versions[-1] if cls.versions else ""),
            self.get(table, "title", str, type_name),
            self.get(table, "text", str, "").strip(),
            self.get(table, "source", str, ""),
            tuple(examples),
        )

    def example(self, table: Mapping[str, Any], cls: type[Operation]) -> ExampleSpec:
        name = self.get(table, "name", str)
        if not _SLUG.fullmatch(name):
            raise self.error(f"'name' must be lower-case letters, digits, '-', '_', found {name!r}")
        self.where = f"example {name!r}"
        self.known(table, _EXAMPLE_KEYS)
        attributes = tuple(
            (key, self.attribute(key, value))
            for key, value in self.get(table, "attributes", dict, {}).items()
        )
        known = [s.name for s in attributes_of(cls)]
        for key, _ in attributes:
            if key not in known:
                raise self.error(f"unknown attribute {key!r}; the operation has {', '.join(known)}")
        operation, errors = parse_attributes(cls, dict(attributes))
        if operation is None:
            raise self.error(errors[0].message, expected=errors[0].expected)
        element_type = self.element_type(self.get(table, "element_type", str, "f32"))
        inputs = self.inputs(table, cls, element_type)
        profiles = self.profiles(self.get(table, "profiles", list, ["spec"]))
        infos = self.infer(name, operation, inputs, profiles[0])
        outputs = tuple(static(info.shape) for info in infos)
        types = tuple(info.element_type or element_type for info in infos)
        self.expect(table, outputs)
        layer = self.get(table, "layer", dict, {})
        self.known(layer, ("id", "name"))
        return ExampleSpec(
            name,
            self.get(table, "title", str, name),
            self.get(table, "text", str, "").strip(),
            self.get(layer, "id", int, 5),
            self.get(layer, "name", str, name),
            operation,
            attributes,
            inputs,
            element_type,
            outputs,
            types,
            self.get(table, "seed", int, 0),
            self.get(table, "arrays", bool, True),
            self.get(table, "diagram", bool, True),
            profiles,
        )

    def attribute(self, key: str, value: Any) -> str:
        """Return the XML text of an attribute."""
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, list) and all(type(v) in (int, float, str) for v in value):
            return ",".join(map(str, value))
        if isinstance(value, int | float | str):
            return str(value)
        raise self.error(f"attribute {key!r} must be text, a number or a list, found {value!r}")

    def element_type(self, text: str) -> ElementType:
        try:
            found = parse_element_type(text)
        except ValueError as error:
            raise self.error(str(error)) from None
        if not (found.is_float or found.is_integer) or found.is_packed:
            raise self.error(f"'element_type' must be one that arrays can have, found {text!r}")
        return found

    def inputs(
        self, table: Mapping[str, Any], cls: type[Operation], element_type: ElementType
    ) -> tuple[Input, ...]:
        """Read shapes and values of the inputs, in the operation's order."""
        shapes = self.get(table, "inputs", dict)
        values = self.get(table, "values", dict, {})
        names = list(cls.inputs) or [*shapes, *values]
        for name in (*shapes, *values):
            if name not in names:
                raise self.error(f"unknown input {name!r}; the operation has {', '.join(names)}")
        found = []
        for name in names:
            if name in values:
                value = self.numbers(f"values.{name}", values[name], -MAX_EXTENT)
                given = shapes.get(name, [len(value)])
                if given != [len(value)]:
                    raise self.error(f"inputs.{name} must be [{len(value)}], found {given}")
                # S4 has s32 for dst_shape; OpenVINO writes i64.
                element_type = parse_element_type("i32" if name == "dst_shape" else "i64")
                found.append(Input(name, (len(value),), element_type, value))
            elif name in shapes:
                shape = self.numbers(f"inputs.{name}", shapes[name], 0)
                found.append(Input(name, shape, element_type))
        return tuple(found)

    def numbers(self, key: str, value: Any, minimum: int) -> tuple[int, ...]:
        if (
            not isinstance(value, list)
            or len(value) > MAX_RANK
            or not all(type(v) is int and minimum <= v <= MAX_EXTENT for v in value)
        ):
            raise self.error(
                f"{key!r} must be at most {MAX_RANK} whole numbers from {minimum}, found {value!r}"
            )
        return tuple(value)

    def profiles(self, names: Sequence[Any]) -> tuple[Semantics, ...]:
        known = {s.value: s for s in Semantics}
        stated = [n if isinstance(n, str) else "" for n in names]
        if not stated or len(set(stated)) < len(stated) or not all(n in known for n in stated):
            raise self.error(f"'profiles' must be of {', '.join(known)}, found {list(names)!r}")
        return tuple(known[n] for n in stated)

    def infer(
        self, name: str, operation: Operation, inputs: Sequence[Input], semantics: Semantics
    ) -> tuple[TensorInfo, ...]:
        layer = Layer(0, name, operation, operation.type)
        try:
            outputs = infer_layer(layer, [i.info for i in inputs], Context(semantics))
        except DeconvError as error:
            raise self.error(error.message, expected=error.expected, actual=error.actual) from error
        if not all(is_static(info.shape) for info in outputs):
            shapes = ", ".join(format_shape(info.shape) for info in outputs)
            raise self.error(f"the inputs leave the output's shape open: {shapes}")
        return outputs

    def expect(self, table: Mapping[str, Any], outputs: Sequence[tuple[int, ...]]) -> None:
        """Compare a given output shape with the computed one."""
        if "output" not in table:
            return
        stated = self.numbers("output", table["output"], 0)
        if stated != outputs[0]:
            raise self.error(
                f"'output' is {format_shape(stated)}, "
                f"but the inputs give {format_shape(outputs[0])}",
                expected=format_shape(outputs[0]),
                actual=format_shape(stated),
            )


_TYPE_NAMES = {
    str: "text",
    int: "a whole number",
    bool: "true or false",
    list: "a list",
    dict: "a table",
}
