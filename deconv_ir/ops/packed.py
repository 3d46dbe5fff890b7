"""A convolution whose filter is packed, as an executor runs it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ..model import TensorInfo

if TYPE_CHECKING:
    from ..dtypes import Array


class PackedLayer:
    """A prepared layer that can tell how much temporary memory it takes.

    Parameters
    ----------
    run : callable
        Takes the inputs and `out`, and returns the output.
    scratch : callable
        Takes what is known of the inputs, all shapes static; returns bytes.
    """

    def __init__(
        self,
        run: Callable[[Sequence[Array], Array | None], Array],
        scratch: Callable[[Sequence[TensorInfo]], int],
    ) -> None:
        self._run = run
        self.scratch = scratch

    def __call__(self, inputs: Sequence[Array], out: Array | None = None) -> tuple[Array, ...]:
        """Compute the output."""
        return (self._run(inputs, out),)
