"""Operations that the other format does not have, named all at once."""

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
        """Raise what was collected.

        Raises
        ------
        UnsupportedError
            Something was.
        """
        for first in self.found.values():
            raise UnsupportedError(
                f"{self.message}: {'; '.join(self.found)}",
                file=graph.file,
                line=first.line,
                layer=first.label,
                rule="unsupported-operation",
            )
