"""What the implementations of a convolution have in common: the compiled kernel and NumPy's."""

from __future__ import annotations

import abc
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from deconv_ir.ir.scratchpad import AlgorithmCandidate, ScratchpadBudget, Whole
from deconv_ir.kernels.runtime.memory import empty

if TYPE_CHECKING:
    from deconv_ir.ir.dtypes import Array

NOTHING = AlgorithmCandidate(0.0, 0, 0)
"""The algorithm of runs without data or results."""


class RunShapes(NamedTuple):
    """The shapes of a run, as `check_run` found them valid for the problem."""

    data: tuple[int, ...]
    """``[N, groups * in, *X]``"""
    pads: tuple[int, ...]
    output: tuple[int, ...]
    """``[N, groups * out, *Y]``"""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to compute from."""
        return 0 in self.data or 0 in self.output


class ConvolutionKernel(Protocol):
    """A filter packed by one implementation, with its bias and activation."""

    @property
    def packed_bytes(self) -> int:
        """Bytes of filter and bias, in all forms that are kept."""
        ...

    @property
    def adds_in_cache(self) -> bool:
        """Whether runs add another tensor while results are in cache."""
        ...

    def plan(self, shapes: RunShapes, budget: ScratchpadBudget) -> ConvolutionPlan:
        """Plan runs of these shapes; no weights are packed."""
        ...

    def release(self) -> None:
        """Free packed weights that the next run can read again."""
        ...


class ConvolutionPlan(abc.ABC):
    """Runs of a packed convolution with data of one shape, on the current number of threads.

    An implementation computes arrays that are checked here.
    """

    name: str = "NumPy"

    def __init__(self, shapes: RunShapes, element: np.dtype[Any]) -> None:
        self.shapes = shapes
        self._element = element

    def __str__(self) -> str:
        details, name = self.details, self.name
        if details.get("depthwise"):
            name = "depthwise sums"
        if "winograd" in details:
            name = "Winograd " + " x ".join(f"F({m},{r})" for m, r in details["winograd"])
        text = f"{name}, scratchpad {self.scratchpad_bytes} B"
        if not details:
            return text
        tile = "x".join(map(str, details["tile"]))
        return f"{text}, tiles of {tile} positions on {details['threads']} threads"

    @property
    @abc.abstractmethod
    def algorithm(self) -> AlgorithmCandidate:
        """The algorithm of runs; the budget is raised if no tile fits."""

    @property
    def scratchpad_bytes(self) -> int:
        """Scratchpad bytes of a run."""
        return self.algorithm.scratch_bytes

    @property
    def candidates(self) -> tuple[AlgorithmCandidate, ...]:
        """The algorithms that a run within this scratchpad can choose from.

        They are compared for one image on two threads, so that the choice depends on neither the
        batch nor the threads of a run.  The first packs no further weights; a second one is listed
        if a run uses it within a sufficient budget.
        """
        return (self.algorithm,)

    @property
    def details(self) -> dict[str, Any]:
        """The tiling of the compiled kernel; empty if NumPy computes."""
        return {}

    @property
    def whole(self) -> Whole | None:
        """The extents that the bits of tiles depend on; None: each element is summed separately."""
        return None

    def run(self, data: Array, out: Array | None = None, addend: Array | None = None) -> Array:
        """Compute the output, into `out` if given; missing weights are packed first.

        The data are of the planned shape and the filter's dtype, any strides; `out` may overlap
        them.  For a kernel that `adds`, the result equals NumPy's addition of `addend`, activated.
        Raises `TypeError` or `ValueError` for an array of another dtype or shape.
        """
        shapes, element = self.shapes, self._element
        if data.dtype != element:
            raise TypeError(f"data is {data.dtype.name}, filter {element.name}")
        if data.shape != shapes.data:
            raise ValueError(f"data must be {list(shapes.data)}, not {list(data.shape)}")
        if not data.flags.aligned:
            data = data.copy()
        if addend is not None and addend.dtype != element:
            raise TypeError(f"addend is {addend.dtype.name}, filter {element.name}")
        if addend is not None and addend.shape != shapes.output:
            result = self.add(data, addend)
            if out is None:
                return result
            out[...] = result
            return out
        if out is None:
            out = empty(shapes.output, element)
        elif out.shape != shapes.output or out.dtype != element:
            raise ValueError(
                f"out must be {element.name} {list(shapes.output)}, "
                f"not {out.dtype.name} {list(out.shape)}"
            )
        elif np.may_share_memory(data, out) or (
            addend is not None and np.may_share_memory(addend, out)
        ):
            out[...] = self.run(data, None, addend)
            return out
        if out.size:
            self.compute(data, out, addend)
        return out

    def bind(self, data: Array, out: Array, addend: Array | None = None) -> Callable[[], object]:
        """Return a call for these arrays, whose memory must not move; parameters as in `run`."""
        return functools.partial(self.run, data, out, addend)

    @abc.abstractmethod
    def compute(self, data: Array, out: Array, addend: Array | None) -> None:
        """Compute arrays of the planned shapes and dtype into `out`, which overlaps no other.

        The data are aligned; there are results.
        """

    @abc.abstractmethod
    def add(self, data: Array, addend: Array) -> Array:
        """Return the output plus a tensor of another shape, both broadcast, activated."""
