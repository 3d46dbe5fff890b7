"""How much a layer may take for itself, and what the ways to compute one take."""

from __future__ import annotations

from typing import NamedTuple


class ScratchpadBudget(NamedTuple):
    """What a layer may take while it runs, beside inputs, constants and outputs.

    Attributes
    ----------
    scratch_bytes : int
        For what comes and goes, on all threads; exceeded only where the work
        can not be cut into parts that are small enough.
    weight_bytes : int
        For a further form of a filter, which is kept from then on.
    """

    scratch_bytes: int
    weight_bytes: int


UNLIMITED = ScratchpadBudget(1 << 40, 1 << 40)
"""As much as makes it fast."""


class AlgorithmCandidate(NamedTuple):
    """A way to compute a layer.

    Attributes
    ----------
    cycles : float
        What it takes, by the kernel's own estimate; infinite: not to be taken
        while there is another.
    scratch_bytes : int
        Scratch of all threads.
    weight_bytes : int
        Of a form of the filter that is not there yet.
    """

    cycles: float
    scratch_bytes: int
    weight_bytes: int
