"""The interface of a convolution's two implementations: the compiled kernel and NumPy's."""

from __future__ import annotations

import abc
import math
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from deconv_ir.ir.operation import LayerPlan
from deconv_ir.ir.scratchpad import DIRECT, UNLIMITED, AlgorithmCandidate, ScratchpadBudget, Whole
from deconv_ir.kernels.algorithm import Algorithm
from deconv_ir.kernels.problem import Problem, check_run
from deconv_ir.kernels.runtime.memory import empty

if TYPE_CHECKING:
    from deconv_ir.ir.dtypes import Array

# Time to transform weights for Winograd, for each byte of the result: mostly that of memory.
_TRANSFORM_CYCLES = 0.6
NOTHING = AlgorithmCandidate(0.0, 0, 0)
"""The algorithm of runs without data or results."""


class RunShapes(NamedTuple):
    """The shapes of a run, as `check_run` found them valid for the problem, channels first."""

    data: tuple[int, ...]
    """``[N, groups * in, *X]``"""
    pads: tuple[int, ...]
    output: tuple[int, ...]
    """``[N, groups * out, *Y]``"""
    channels_last: bool = False
    """Whether arrays are laid out ``[N, *X, C]``."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to compute from."""
        return 0 in self.data or 0 in self.output


class ConvolutionKernel(abc.ABC):
    """A filter packed by one implementation, with its bias and activation.

    Attributes
    ----------
    problem : Problem
        The convolution, without extents.
    element : numpy.dtype
        The dtype of filter, data and output.
    scratch_bytes : int
        Bound on the scratchpad of a run.
    adds : bool
        Whether every run adds another tensor, before the activation.
    reads_codes : bool
        Whether the data of runs are codes of 8 bits, those of four channels in an element of u32.
    precision : str or None
        The types in which it computes, ``f32 (u4 weights)``; None: `element`.
    why_f32 : str or None
        Why it computes in f32, where bf16 was allowed.
    """

    reads_codes = False
    precision: str | None = None
    why_f32: str | None = None

    def __init__(
        self, problem: Problem, element: np.dtype[Any], scratch_bytes: int, *, adds: bool
    ) -> None:
        self.problem, self.element = problem, element
        self.scratch_bytes, self.adds = scratch_bytes, adds

    @property
    @abc.abstractmethod
    def algorithm(self) -> Algorithm:
        """The algorithms from which runs choose."""

    @property
    @abc.abstractmethod
    def packed_bytes(self) -> int:
        """Bytes of filter and bias, in all forms that are kept."""

    @property
    def adds_in_cache(self) -> bool:
        """Whether runs add another tensor while results are in cache."""
        return False

    def release(self) -> None:  # noqa: B027 - a filter that cannot be read again is kept
        """Free packed weights that the next run can read again."""

    @abc.abstractmethod
    def plan_shapes(self, shapes: RunShapes, budget: ScratchpadBudget) -> ConvolutionPlan:
        """Plan runs of these shapes; no weights are packed."""

    def plan(
        self,
        data: tuple[int, ...],
        pads_begin: Sequence[int],
        output: Sequence[int],
        budget: ScratchpadBudget = UNLIMITED,
        *,
        channels_last: bool = False,
    ) -> ConvolutionPlan:
        """Plan runs with data of one shape, for the present number of threads.

        Weights are not packed, unless the filter was released before a first plan checked whether
        it is fit for Winograd: then it is read from its file again.

        Parameters
        ----------
        data : tuple of int
            ``[N, groups * in, *X]``; N and the X may be 0.
        pads_begin : sequence of int
            One entry for each axis; may be negative or beyond the kernel.  Transposed: natural
            output position of the first output element.  Convolution: number of positions before
            the data at which the first window begins.
        output : sequence of int
            Extents of the output, one for each axis; may exceed the natural ones.
        budget : ScratchpadBudget
            Bound on the scratchpad, within `scratch_bytes`.
        channels_last : bool
            Whether arrays are laid out ``[N, *X, C]``, unlike `data`.

        Raises
        ------
        ValueError
            Rank, channels or lengths do not fit the problem, or the result no address space.
        """
        pads, extents = check_run(self.problem, data, tuple(pads_begin), tuple(output))
        shape = (data[0], self.problem.groups * self.problem.channels_out, *extents)
        # Cost models multiply extents in 64 bits.
        if math.prod(shape) * self.element.itemsize > sys.maxsize:
            raise ValueError(f"a result of {list(shape)} is larger than the address space")
        return self.plan_shapes(RunShapes(data, pads, shape, channels_last), budget)

    def plan_once(
        self,
        data: tuple[int, ...],
        pads_begin: Sequence[int],
        output: Sequence[int],
        *,
        channels_last: bool = False,
    ) -> ConvolutionPlan:
        """Plan the only run of a filter; parameters as in `plan`.

        Winograd is used if it saves more time than the transform of the weights takes.
        """
        plan = self.plan(data, pads_begin, output, channels_last=channels_last)
        if self.algorithm is not Algorithm.COMPILED:
            return plan
        direct, *others = plan.candidates
        for other in others:
            transform = _TRANSFORM_CYCLES * other.weight_bytes
            if not other.packed and other.cycles + transform > direct.cycles:
                return self.plan_shapes(plan.shapes, DIRECT)
        return plan

    def run(
        self,
        data: Array,
        pads_begin: Sequence[int],
        output: Sequence[int],
        out: Array | None = None,
        budget: ScratchpadBudget | None = None,
        addend: Array | None = None,
    ) -> Array:
        """Plan and run; parameters as in `plan` and `ConvolutionPlan.run`.

        Without a budget, the filter is packed for this run alone.
        """
        if addend is not None and not self.adds:
            raise ValueError("the kernel was packed without `adds`, and takes no addend")
        if budget is None and addend is None:
            plan = self.plan_once(data.shape, pads_begin, output)
        else:
            plan = self.plan(data.shape, pads_begin, output, budget or UNLIMITED)
        (result,) = plan.run([data] if addend is None else [data, addend], out)
        return result


class ConvolutionPlan(LayerPlan, abc.ABC):
    """Runs of a packed convolution with data of one shape, on the current number of threads.

    An implementation computes arrays that are checked here.  The data are the first input; the
    last one is added by a kernel that `adds`.  A constant filter or bias is not read again.
    """

    name: str = "NumPy"
    winograd_name: str = "Winograd"

    def __init__(self, kernel: ConvolutionKernel, shapes: RunShapes) -> None:
        self.shapes = shapes
        self.spatial = 1 if shapes.channels_last else 2
        self._element, self._adds = kernel.element, kernel.adds

    @property
    def choice(self) -> ConvolutionPlan:
        """The plan itself: it chooses its algorithm."""
        return self

    def __str__(self) -> str:
        details, name = self.details, self.name
        if details.get("depthwise"):
            name = "depthwise sums"
        if "winograd" in details:
            forms = " x ".join(f"F({m},{r})" for m, r in details["winograd"])
            name = f"{self.winograd_name} {forms}"
        text = f"{name}, scratchpad {self.scratchpad_bytes} B"
        if not details:
            return text
        tile = "x".join(map(str, details["tile"]))
        threads = details["threads"]
        return f"{text}, tiles of {tile} positions on {threads} thread{'s' * (threads > 1)}"

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

        They are compared for one image, or a batch that all runs have, on two threads, so that the
        choice depends on neither the batch nor the threads of a run.  The first packs no further
        weights; a second one is listed if a run uses it within a sufficient budget.
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

    def run(self, inputs: Sequence[Any], out: Array | None = None) -> tuple[Array, ...]:
        """Compute the output, into `out` if given; missing weights are packed first.

        The data are of the planned shape and the filter's dtype, any strides; `out` may overlap
        them.  For a kernel that `adds`, the result equals NumPy's addition of the last input,
        activated.

        Raises
        ------
        TypeError, ValueError
            An array has another dtype or shape, or an addend is missing or too many.
        """
        data, addend = self._split(inputs)
        if not self.shapes.channels_last:
            return (self._run(data, out, addend),)
        result = np.moveaxis(self._run(np.moveaxis(data, -1, 1), None, addend), 1, -1)
        if out is None:
            return (result,)
        out[...] = result
        return (out,)

    def _split(self, inputs: Sequence[Any]) -> tuple[Array, Array | None]:
        """Return the data and the addend of a call."""
        if not self._adds:
            return inputs[0], None
        if len(inputs) < 2:
            raise ValueError("the kernel was packed with `adds`, so the last input is an addend")
        return inputs[0], inputs[-1]

    def _run(self, data: Array, out: Array | None, addend: Array | None) -> Array:
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
            out[...] = self._run(data, None, addend)
            return out
        if out.size:
            self.compute(data, out, addend)
        return out

    @abc.abstractmethod
    def compute(self, data: Array, out: Array, addend: Array | None) -> None:
        """Compute arrays of the planned shapes and dtype into `out`, which overlaps no other.

        The data are aligned; there are results.
        """

    @abc.abstractmethod
    def add(self, data: Array, addend: Array) -> Array:
        """Return the output plus a tensor of another shape, both broadcast, activated."""
