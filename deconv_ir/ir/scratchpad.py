"""Scratchpad budgets of layers, and the algorithms to choose from within them."""

from __future__ import annotations

from typing import NamedTuple


class ScratchpadBudget(NamedTuple):
    """Memory that a layer may take while it runs, beside inputs, constants and outputs.

    Attributes
    ----------
    scratch_bytes : int
        Bytes for temporary arrays of all threads; exceeded only where the work
        cannot be cut into parts that are small enough.
    weight_bytes : int
        Bytes for a further packed form of a filter, which is kept after the run.

    Examples
    --------
    >>> from deconv_ir.operations import ScratchpadBudget
    >>> ScratchpadBudget(scratch_bytes=1 << 20, weight_bytes=0)
    ScratchpadBudget(scratch_bytes=1048576, weight_bytes=0)
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

    Examples
    --------
    >>> from deconv_ir.operations import AlgorithmCandidate
    >>> AlgorithmCandidate(cycles=1e6, scratch_bytes=1 << 20, weight_bytes=0).scratch_bytes
    1048576
    """

    cycles: float
    scratch_bytes: int
    weight_bytes: int
