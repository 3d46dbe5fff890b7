"""A convolution whose filter is packed, as an executor runs it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from ..model import TensorInfo

if TYPE_CHECKING:
    from ..dtypes import Array


class Packed(Protocol):
    """A kernel that has packed its filter."""

    @property
    def packed_bytes(self) -> int:
        """Bytes of the packed filter."""
        ...


class PackedLayer:
    """A prepared layer that can tell how much temporary memory it takes.

    Parameters
    ----------
    run : callable
        Takes the inputs and `out`, and returns the output.
    scratch : callable
        Takes what is known of the inputs, all shapes static; returns bytes.
    kernel : object
        Tells the bytes of its packed filter, `packed_bytes`, which may grow
        when a plan is made: some forms of it depend on the extents.
    """

    def __init__(
        self,
        run: Callable[[Sequence[Array], Array | None], Array],
        scratch: Callable[[Sequence[TensorInfo]], int],
        kernel: Packed,
    ) -> None:
        self._run = run
        self._kernel = kernel
        self.scratch = scratch

    @property
    def packed_bytes(self) -> int:
        """Bytes of the packed filter."""
        return self._kernel.packed_bytes

    def __call__(self, inputs: Sequence[Array], out: Array | None = None) -> tuple[Array, ...]:
        """Compute the output."""
        return (self._run(inputs, out),)
