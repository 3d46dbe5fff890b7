"""The operations there are, for a reader."""

from __future__ import annotations

from typing import NamedTuple

from . import all_operations
from .base import attributes_of


class OperationRow(NamedTuple):
    """One operation.

    Attributes
    ----------
    type : str
        `type` of the layer.
    versions : tuple of str
        The versions that differ; a layer gets the newest that its opset has.
    inputs, attributes : tuple of str
        Names; those of inputs that may be absent end in ``?``.
    summary : str
        What it computes.
    """

    type: str
    versions: tuple[str, ...]
    inputs: tuple[str, ...]
    attributes: tuple[str, ...]
    summary: str


def list_operations() -> tuple[OperationRow, ...]:
    """Return all operations of the registry, sorted by type, then version."""
    rows = []
    for operation in all_operations():
        least = operation.required_inputs
        inputs = [
            name if least is None or position < least else f"{name}?"
            for position, name in enumerate(operation.inputs)
        ]
        if least is None:
            inputs = [f"{name}..." for name in operation.inputs]
        rows.append(
            OperationRow(
                operation.type,
                operation.versions,
                tuple(inputs),
                tuple(spec.name for spec in attributes_of(operation)),
                (operation.__doc__ or "").partition("\n")[0],
            )
        )
    return tuple(rows)
