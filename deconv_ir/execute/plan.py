"""The plan of a run: its steps, and their memory."""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from deconv_ir.execute.memory import format_bytes
from deconv_ir.ir.dtypes import Array
from deconv_ir.ir.graph import Graph, Source
from deconv_ir.ir.operation import Infos, LayerPlan
from deconv_ir.ir.scratchpad import AlgorithmChoice

if TYPE_CHECKING:
    import numpy as np


class Step(NamedTuple):
    """A layer of a plan.

    Attributes
    ----------
    layer : int
        Index of the layer in `Graph.layers`.
    fused : tuple of int
        Following layers that are fused with it.
    inputs, outputs : tuple of int
        Slots of the tensors.
    overwrites : int or None
        Slot of the input whose array the output takes.
    shape, dtype : tuple of int, dtype
        Shape and dtype of the output, if they are known before the run; else None.
    offset : int or None
        Offset of the output in the arena, in bytes; None: it has memory of its own, or is a view of
        an input.
    views : bool
        Whether the outputs may be views of an input in the arena.
    frees : tuple of int
        Slots that are not needed after the step.
    plan : LayerPlan
        Computes the step.
    allocate : callable or None
        Allocates the output; None: the step makes an array of its own.

    Examples
    --------
    >>> import deconv_ir
    >>> model = deconv_ir.load("samples/block/block.xml")
    >>> (step,) = model.bind().plan.steps
    >>> isinstance(step, deconv_ir.Step)
    True
    >>> [model.graph.layers[index].name for index in (step.layer, *step.fused)]
    ['up', 'up/bias', 'up/relu']
    """

    layer: int
    fused: tuple[int, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    overwrites: int | None
    shape: tuple[int, ...] | None
    dtype: "np.dtype[Any] | None"
    offset: int | None
    views: bool
    frees: tuple[int, ...]
    plan: LayerPlan
    allocate: Callable[[], Array] | None

    @property
    def algorithm(self) -> AlgorithmChoice | None:
        """The choice of a kernel with several algorithms, else None."""
        return self.plan.choice

    @property
    def made(self) -> int:
        """Index of the layer whose output the step computes."""
        return self.fused[-1] if self.fused else self.layer


class Plan(NamedTuple):
    """The steps of a run and their memory, for inputs of certain shapes.

    Attributes
    ----------
    graph : Graph
        The graph of the steps: a layer may represent several elementwise ones.
    steps : tuple of Step
        In the order in which they run.
    slots : int
        Number of tensors.
    constants, inputs : dict
        (layer, output) of a constant, or index of a Parameter -> slot.
    values : dict
        Slot -> array, for tensors that depend only on the shapes of the inputs.
    wanted : tuple of int
        Slots of the results.
    infos : sequence
        For each layer, a `deconv_ir.operations.TensorInfo` for each of its outputs.
    arena_bytes : int
        Bytes of the arena, which holds tensors at fixed offsets and is kept between runs.
    constant_bytes : int
        Bytes of the constants, each counted once.
    weight_bytes : int
        Bytes of the constants in all forms in which they are packed.
    tensor_bytes : int
        Bytes of the largest set of tensors alive at once, without inputs and constants.
    bound_bytes : int
        The lower bound of `peak_bytes`: `tensor_bytes`, and every constant once.
    peak_bytes : int
        Peak memory of the model and its run in bytes, without the input arrays: arena, tensors
        outside of it, scratchpad, and weights in all forms in which they are packed.  A memory
        limit bounds this figure.
    scratch_bytes : int
        Bytes of the largest scratchpad of a layer.
    known : bool
        Whether the size of every tensor is known; otherwise the figures are too low.
    folded, dropped : int
        Number of layers that are computed once, and never.
    bodies : dict
        Index of a layer -> names and plans of the graphs that it runs.
    reasons : mapping
        Index of a layer whose data are quantised -> why it is computed in f32.
    precisions : mapping
        Index of a layer -> the types in which it computes, where these are not its output's:
        ``i8`` for integer sums, ``u8`` for codes, ``f32 (u4 weights)``.
    numbers : sequence
        Like `infos`, where these describe codes: the infos of the numbers.

    Examples
    --------
    >>> import deconv_ir
    >>> plan = deconv_ir.load("samples/block/block.xml").bind().plan
    >>> isinstance(plan, deconv_ir.Plan), len(plan.steps), plan.folded
    (True, 1, 2)
    >>> plan.tensor_bytes == 1 * 4 * 32 * 32 * 4  # the output, f32
    True
    """

    graph: Graph
    steps: tuple[Step, ...]
    slots: int
    constants: dict[Source, int]
    inputs: dict[int, int]
    values: dict[int, Array]
    wanted: tuple[int, ...]
    infos: Sequence[Infos]
    arena_bytes: int
    constant_bytes: int
    weight_bytes: int
    tensor_bytes: int
    bound_bytes: int
    peak_bytes: int
    scratch_bytes: int
    known: bool
    folded: int
    dropped: int
    bodies: "dict[int, tuple[tuple[str, Plan], ...]]"
    reasons: Mapping[int, str]
    precisions: Mapping[int, str]
    numbers: Sequence[Infos]

    def precision(self, step: Step) -> str:
        """Return the types in which a step computes; ``?`` if they are unknown."""
        infos = self.infos[step.made]
        own = str(infos[0].element_type or "?") if infos else "?"
        return self.precisions.get(step.layer) or self.precisions.get(step.made) or own

    def __repr__(self) -> str:
        least = "" if self.known else "at least "
        return (
            f"<Plan: {len(self.steps)} steps, {self.folded} layers folded, "
            f"{self.dropped} dropped; peak {least}{format_bytes(self.peak_bytes)} "
            f"(tensors {format_bytes(self.tensor_bytes)}, "
            f"weights {format_bytes(self.weight_bytes)}, "
            f"scratchpad {format_bytes(self.scratch_bytes)})>"
        )
