"""A filter that is packed for one set of phases after the other."""

from __future__ import annotations

from typing import Any

import numpy as np

from deconv_ir.kernels.box import Box, Scratch, Source
from deconv_ir.kernels.problem import PhaseSet, Problem
from deconv_ir.kernels.writer import Writer

__all__ = ["BySet"]

Array = np.ndarray[Any, np.dtype[Any]]


class BySet:
    """What the methods share that compute each set of phases by itself.

    Parameters
    ----------
    problem : Problem
        What is computed.
    weights : ndarray
        ``[groups, in, out, *K]``.
    sets : list of PhaseSet
        All phases that have taps.
    """

    def __init__(self, problem: Problem, weights: Array, sets: list[PhaseSet]) -> None:
        self.problem = problem
        self.sets = sets
        self.packed = [self.pack(weights, phases) for phases in sets]

    @staticmethod
    def pack(weights: Array, phases: PhaseSet) -> Array:
        """Return the weights of a set, in the order in which the method reads them."""
        raise NotImplementedError

    def compute(self, box: Box, source: Source, writer: Writer, scratch: Scratch) -> None:
        """Compute one tile."""
        raise NotImplementedError
