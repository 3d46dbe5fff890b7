"""The table of operations of `deconv-run --list-operations` and the documents.

The table is made from the registry: attributes are the declared ones; element types are those with
which an operation's shape rule accepts its worked example.
"""

from __future__ import annotations

from typing import NamedTuple

from deconv_ir.errors import DeconvError
from deconv_ir.ir.dtypes import ELEMENT_TYPES, ElementType
from deconv_ir.ir.operation import Context, Operation
from deconv_ir.ops import all_operations
from deconv_ir.ops.base import attributes_of
from deconv_ir.ops.examples import OperationExample, parse_example


class Row(NamedTuple):
    """One version of an operation, which is valid until the opset of the next row."""

    type: str
    versions: tuple[str, ...]
    attributes: tuple[str, ...]
    element_types: str
    summary: str


def operations_table() -> tuple[Row, ...]:
    """List every operation that is implemented, by type, then version."""
    return tuple(
        Row(
            operation.type,
            operation.versions,
            tuple(spec.name for spec in attributes_of(operation)),
            describe_types(element_types(operation)),
            (operation.__doc__ or "").strip().split("\n")[0],
        )
        for operation in sorted(all_operations(), key=_order)
    )


def _order(operation: type[Operation]) -> tuple[str, int]:
    first = operation.versions[0] if operation.versions else "opset0"
    return operation.type, int(first.removeprefix("opset"))


def element_types(operation: type[Operation]) -> tuple[ElementType, ...]:
    """Return the element types that the first input of an operation may have."""
    if not operation.examples:
        return ELEMENT_TYPES
    return tuple(
        element_type
        for element_type in ELEMENT_TYPES
        if any(_takes(operation, parse_example(text), element_type) for text in operation.examples)
    )


def _takes(
    operation: type[Operation], example: OperationExample, element_type: ElementType
) -> bool:
    """Whether an example is still valid with another type of its first input."""
    own = example.inputs[0].element_type
    infos = [
        info._replace(element_type=element_type) if info.element_type is own else info
        for info in (tensor.info() for tensor in example.inputs)
    ]
    try:
        example.operation(operation).infer(infos, Context())
    except DeconvError:
        return False
    return True


def describe_types(types: tuple[ElementType, ...]) -> str:
    """Describe a set of element types in few words."""
    left = list(types)
    words = []
    if len(left) == len(ELEMENT_TYPES):
        return "any"
    for word, families in (
        ("numeric", ("float", "int", "uint")),
        ("floating-point", ("float",)),
        ("integer", ("int", "uint")),
    ):
        family = [t for t in ELEMENT_TYPES if t.kind in families]
        if all(t in left for t in family):
            words.append(word)
            left = [t for t in left if t not in family]
    return ", ".join([*words, *(t.name for t in left)])
