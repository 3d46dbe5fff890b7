"""Division of the memory above a plan's lower bound among Winograd weights and scratchpads.

Larger tiles and weights transformed for Winograd make kernels faster but need memory.  The use of
Winograd changes the last bits of results, so it depends on neither the batch nor the run's
scratchpad, which affects only tiles.
"""

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from deconv_ir.execute.prepare import PreparedModel
from deconv_ir.ir.operation import Context, Infos, Kernel, LayerPlan
from deconv_ir.ir.scratchpad import DIRECT, UNLIMITED, AlgorithmCandidate, ScratchpadBudget, Whole
from deconv_ir.ir.shapes import is_static

MIN_SCRATCHPAD = 16 << 10
"""Minimum scratchpad in bytes: smaller tiles are mostly halo."""

_SHARE, _LEAST_EXTRA = 0.25, 64 << 20
# The same for models whose constants are mostly compressed filters.
_COMPRESSED_SHARE, _LEAST_COMPRESSED = 0.15, 1 << 20

LEAST_GAIN = 0.02
"""Cycles that a run must save for each byte of weights, whose transform takes 0.6."""


def extra_bytes(bound: int, *, is_compressed: bool = False) -> int:
    """Return the bytes that may be used above the lower bound of a plan's peak.

    They buy speed: packed weights, weights transformed for Winograd, larger tiles.  Models of
    compressed filters are compressed to be small, and have fewer.
    """
    if is_compressed:
        return max(int(bound * _COMPRESSED_SHARE), _LEAST_COMPRESSED)
    return max(int(bound * _SHARE), _LEAST_EXTRA)


class Grant(NamedTuple):
    """A layer that uses Winograd.

    For tiles, `whole` is the run for which it was chosen, and `spatial` the first spatial axis.
    """

    layer: int
    candidate: AlgorithmCandidate
    whole: Whole | None = None
    spatial: int = 2


def choose_winograd(
    candidates: Mapping[int, Sequence[AlgorithmCandidate]], budget_bytes: int
) -> list[Grant]:
    """Choose the layers that use Winograd, sorted by time saved per byte of memory.

    Those that save less than `LEAST_GAIN` do not use it: many processes run a model once.

    Parameters
    ----------
    candidates : mapping
        Layer -> its algorithms, direct sums first.
    budget_bytes : int
        Bound on the largest scratchpad plus the transformed weights of all layers, without the
        packed filters that they replace.
    """
    gains = [
        ((direct.cycles - other.cycles) / max(1, _more(other)), Grant(layer, other))
        for layer, (direct, *others) in candidates.items()
        for other in others
        if direct.cycles - other.cycles > LEAST_GAIN * other.weight_bytes
    ]
    scratch = (other.scratch_bytes for row in candidates.values() for other in row)
    left = budget_bytes - max(scratch, default=0)
    grants = []
    for _, grant in sorted(gains, key=lambda entry: -entry[0]):
        # Weights that runs transform need no memory of their own.
        if _more(grant.candidate) <= max(left, 0):
            left -= _more(grant.candidate)
            grants.append(grant)
    return grants


def find_choosers(
    prepared: PreparedModel, infos: Sequence[Infos]
) -> dict[int, tuple[Kernel, Infos]]:
    """Find the layers whose kernels choose their algorithm by their budget, with their inputs."""
    found: dict[int, tuple[Kernel, Infos]] = {}
    for layer, kernel in prepared.kernels.items():
        sources = (s for s in prepared.graph.topology.sources[layer] if s is not None)
        inputs = [infos[source][output] for source, output in sources]
        static = all(is_static(info.shape) for info in inputs)
        if static and kernel.plan(inputs, UNLIMITED).choice is not None:
            found[layer] = kernel, inputs
    return found


def grant_winograd(prepared: PreparedModel, infos: Sequence[Infos]) -> list[Grant]:
    """Choose the layers that use Winograd, for a run or for all tiles of a run.

    The choice depends neither on the batch of a run, if the model leaves it open, nor on the memory
    limit and on weights that were packed for other shapes.
    """
    parameters = [layer for layer in prepared.graph.layers if layer.type == "Parameter"]
    declared = [layer.operation.infer((), Context())[0].shape for layer in parameters]
    fixed = all(map(is_static, declared))
    plans = {
        layer: kernel.plan(inputs, UNLIMITED._replace(fixed_batch=fixed))
        for layer, (kernel, inputs) in find_choosers(prepared, infos).items()
    }
    budget = prepared.constant_bytes - prepared.first_bytes
    budget += extra_bytes(prepared.constant_bytes, is_compressed=prepared.is_compressed)
    candidates = {layer: plan.choice.candidates for layer, plan in plans.items() if plan.choice}
    chosen, found = choose_winograd(candidates, budget), []
    left = budget - sum(_more(grant.candidate) for grant in chosen)
    for grant in chosen:
        plan = plans[grant.layer]
        if not grant.candidate.weight_bytes and grant.candidate.scratch_bytes > left:
            continue
        whole = plan.choice.whole if plan.choice else None
        found.append(grant._replace(whole=whole, spatial=plan.spatial))
    return found


def fit_grants(grants: Sequence[Grant], limit_bytes: int) -> list[Grant]:
    """Return the first grants whose missing weights and scratchpad fit.

    Those without weights, which runs transform, need no more than a scratchpad: `choose_within`
    decides.
    """
    fitting: list[Grant] = []
    weights = scratch = 0
    full = False
    for grant in grants:
        if not grant.candidate.weight_bytes:
            fitting.append(grant)
            continue
        if full:
            continue
        weights += missing_bytes(grant.candidate)
        scratch = max(scratch, grant.candidate.scratch_bytes)
        full = weights + scratch > limit_bytes
        if not full:
            fitting.append(grant)
    return fitting


def missing_bytes(candidate: AlgorithmCandidate) -> int:
    """Return the bytes by which packing weights for an algorithm increases the memory."""
    return 0 if candidate.packed else _more(candidate)


def _more(candidate: AlgorithmCandidate) -> int:
    return candidate.weight_bytes + candidate.filter_bytes


def algorithm_of(plan: LayerPlan) -> AlgorithmCandidate:
    """Return the algorithm that a layer has chosen."""
    assert plan.choice is not None, "or it is not asked"
    return plan.choice.algorithm


class ChosenPlans(NamedTuple):
    """The plans of the steps that choose their algorithm within a scratchpad."""

    plans: dict[int, LayerPlan]
    budgets: dict[int, ScratchpadBudget]
    kept: int
    """Bytes of the scratchpad, which threads keep from one layer to the next."""
    missing: int
    """Bytes of weights to be packed."""


def _fit(
    kernel: Kernel, inputs: Infos, budget: ScratchpadBudget, left: int
) -> tuple[ScratchpadBudget, LayerPlan]:
    """Bound the scratchpad of a layer's fastest plan, and halve it until it fits."""
    plan = kernel.plan(inputs, budget)
    if algorithm_of(plan).scratch_bytes > left:
        budget = budget.within(max(left, MIN_SCRATCHPAD))
        plan = kernel.plan(inputs, budget)
    while (
        found := algorithm_of(plan)
    ).scratch_bytes > left and budget.scratch_bytes > MIN_SCRATCHPAD:
        smaller = min(found.scratch_bytes, budget.scratch_bytes) // 2
        budget = budget.within(max(smaller, MIN_SCRATCHPAD))
        plan = kernel.plan(inputs, budget)
    return budget, plan


def choose_within(
    choosers: Sequence[tuple[int, Kernel, Infos, Grant | None]], left: int
) -> ChosenPlans:
    """Plan the steps that choose their algorithm, with at most `left` bytes of scratchpad.

    Each step bounds the scratchpad of its fastest plan until it fits, so that it makes the same
    choice within the scratchpad that it has chosen: a plan fits into its own peak.

    Parameters
    ----------
    choosers : sequence
        Steps, their kernels and inputs, and whether they may use Winograd.
    left : int
        Exceeded if `MIN_SCRATCHPAD` does not fit.
    """
    plans, budgets = {}, {}
    kept = missing = 0
    freed: dict[Kernel, int] = {}
    direct: set[Kernel] = set()
    for step, kernel, inputs, grant in choosers:
        budget = DIRECT
        if grant is not None:
            budget = budget._replace(winograd=True, whole=grant.whole)
        budget, plan = _fit(kernel, inputs, budget, left)
        no_weights = grant is not None and not grant.candidate.weight_bytes
        if no_weights and algorithm_of(plan).scratch_bytes > left:
            budget, plan = _fit(kernel, inputs, DIRECT, left)
        found = algorithm_of(plan)
        budgets[step], plans[step] = budget, plan
        kept = max(kept, found.scratch_bytes)
        missing += missing_bytes(found)
        if found.filter_bytes < 0:
            freed[kernel] = -found.filter_bytes
        else:
            direct.add(kernel)
    # Layers that share a filter may need both forms.
    missing += sum(freed[kernel] for kernel in freed.keys() & direct)
    return ChosenPlans(plans, budgets, kept, missing)
