"""Scratchpad budgets of layers, and the algorithms that fit into them."""

from typing import NamedTuple, Protocol


class Whole(NamedTuple):
    """A layer that is computed tile by tile.

    Attributes
    ----------
    data, pads_begin, output : tuple of int
        Shape of its data, pads, and extents of its output: the algorithm is chosen for them.
    steps : tuple of int
        For each spatial axis: boxes of the output that begin and end at multiples of it are bitwise
        equal to the whole, except near their ends.
    margins : tuple of int
        For each spatial axis, the number of steps at either end of a box whose bits may differ.

    Examples
    --------
    >>> from deconv_ir.operations import Whole
    >>> Whole((1, 8, 64), (1,), (64,), steps=(2,), margins=(0,)).steps
    (2,)
    """

    data: tuple[int, ...]
    pads_begin: tuple[int, ...]
    output: tuple[int, ...]
    steps: tuple[int, ...]
    margins: tuple[int, ...]


class ScratchpadBudget(NamedTuple):
    """Memory that a layer may use while it runs, in addition to inputs, constants and outputs.

    Attributes
    ----------
    scratch_bytes : int
        Bytes for temporary arrays of all threads; exceeded only if the work cannot be divided into
        small enough parts.
    winograd : bool
        Whether the kernel may choose Winograd, whose transformed weights it keeps.
    whole : Whole or None
        The layer for which the kernel chooses the algorithm, if a tile is computed.
    fixed_batch : bool
        Whether all runs have the planned batch, for which algorithms are then compared; else they
        are compared for one image.

    Examples
    --------
    >>> from deconv_ir.operations import ScratchpadBudget
    >>> ScratchpadBudget(scratch_bytes=1 << 20)
    ScratchpadBudget(scratch_bytes=1048576, winograd=False, whole=None, fixed_batch=False)
    """

    scratch_bytes: int
    winograd: bool = False
    whole: Whole | None = None
    fixed_batch: bool = False

    def within(self, scratch_bytes: int) -> "ScratchpadBudget":
        """Return the budget with at most this scratchpad.

        Examples
        --------
        >>> from deconv_ir.operations import ScratchpadBudget
        >>> ScratchpadBudget(1 << 20).within(1 << 10).scratch_bytes
        1024
        """
        return self._replace(scratch_bytes=min(self.scratch_bytes, scratch_bytes))


UNLIMITED = ScratchpadBudget(1 << 40, winograd=True)
"""No limit."""
DIRECT = ScratchpadBudget(1 << 40)
"""No limit, but direct sums."""


class AlgorithmCandidate(NamedTuple):
    """An algorithm that can compute a layer.

    Attributes
    ----------
    cycles : float
        Time predicted by the kernel's cost model.
    scratch_bytes : int
        Scratchpad of all threads; of a candidate whose weights runs transform, the smallest one.
    weight_bytes : int
        Bytes of additional packed weights that the algorithm keeps; 0: none.
    packed : bool
        Whether these weights are already packed.
    filter_bytes : int
        Bytes by which the memory of the packed filter grows, if it has to be packed again; negative
        if it is freed while these weights are packed.

    Examples
    --------
    >>> from deconv_ir.operations import AlgorithmCandidate
    >>> AlgorithmCandidate(cycles=1e6, scratch_bytes=1 << 20, weight_bytes=0).scratch_bytes
    1048576
    """

    cycles: float
    scratch_bytes: int
    weight_bytes: int
    packed: bool = False
    filter_bytes: int = 0


class AlgorithmChoice(Protocol):
    """A plan that chooses its algorithm by its scratchpad budget.

    Examples
    --------
    >>> import numpy as np
    >>> from deconv_ir.ir.scratchpad import UNLIMITED
    >>> from deconv_ir.operations import AlgorithmChoice, Context, ConvolutionBackpropData
    >>> from deconv_ir.operations import TensorInfo
    >>> up = ConvolutionBackpropData(
    ...     strides=(2,), dilations=(1,), pads_begin=(0,), pads_end=(0,)
    ... )
    >>> kernel = up.prepare([None, np.array([[[1.0, 10.0]]])], Context())
    >>> choice: AlgorithmChoice = kernel.plan([TensorInfo((1, 1, 2))], UNLIMITED).choice
    >>> choice.algorithm.weight_bytes  # it packs no further weights
    0
    """

    @property
    def algorithm(self) -> AlgorithmCandidate:
        """The chosen algorithm."""
        ...

    @property
    def whole(self) -> Whole | None:
        """The run that determines the bits of tiles; None: they do not depend on a run."""
        ...

    @property
    def candidates(self) -> tuple[AlgorithmCandidate, ...]:
        """The algorithms for one image, or a fixed batch; the first packs no further weights."""
        ...
