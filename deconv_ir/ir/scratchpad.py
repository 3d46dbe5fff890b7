"""Scratchpad budgets of layers, and the algorithms to choose from within them."""

from __future__ import annotations

from typing import NamedTuple


class ScratchpadBudget(NamedTuple):
    """Memory of a layer beside its inputs, constants and outputs.

    Attributes
    ----------
    scratch_bytes : int
        Scratchpad of all threads; exceeded only where the work cannot be cut
        into tiles that are small enough.
    weight_bytes : int
        Weights packed in a further form, which are kept.
    """

    scratch_bytes: int
    weight_bytes: int


UNLIMITED = ScratchpadBudget(1 << 40, 1 << 40)
"""No limit."""


class AlgorithmCandidate(NamedTuple):
    """An algorithm that can compute a layer.

    Attributes
    ----------
    cycles : float
        Time predicted by the kernel's cost model; infinite: the last resort.
    scratch_bytes : int
        Scratchpad of all threads.
    weight_bytes : int
        Weights that are still to be packed for it.
    """

    cycles: float
    scratch_bytes: int
    weight_bytes: int
