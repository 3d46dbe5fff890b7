"""Errors for operations that the other format does not support, reported together."""

from __future__ import annotations

from deconv_ir.errors import UnsupportedError
from deconv_ir.ir.graph import Graph, Layer


class Missing:
    """Collects refusals of a conversion; `message` begins the error."""

    def __init__(self, message: str) -> None:
        self.message = message
        self.found: dict[str, Layer] = {}

    def add(self, error: UnsupportedError, layer: Layer) -> None:
        """Collect a refusal; equal ones are reported once, at the first layer."""
        self.found.setdefault(error.message, layer)

    def refuse(self, graph: Graph) -> None:
        """Raise an error with all collected refusals.

        Raises
        ------
        UnsupportedError
            A refusal was collected.
        """
        for first in self.found.values():
            raise UnsupportedError(
                f"{self.message}: {'; '.join(self.found)}",
                file=graph.file,
                line=first.line,
                layer=first.label,
                rule="unsupported-operation",
            )
