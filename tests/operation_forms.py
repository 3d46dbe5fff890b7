"""Make an operation from its type, opset and attributes as written in files."""

from __future__ import annotations

from typing import Any

from deconv_ir.ir.operation import Operation
from deconv_ir.ops import find_operation
from deconv_ir.ops.base import parse_attributes


def make(kind: str, **attributes: Any) -> Operation:
    """Make an operation: ``Gather-8`` is a Gather of opset8."""
    name, _, opset = kind.partition("-")
    operation = find_operation(name, f"opset{opset or 1}")
    assert operation is not None, kind
    written = {key.replace("__", "-"): str(value) for key, value in attributes.items()}
    made, errors = parse_attributes(operation, written)
    if made is None:
        raise errors[0]
    return made
