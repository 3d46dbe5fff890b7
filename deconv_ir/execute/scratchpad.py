"""Division of the memory above a plan's lower bound among Winograd weights and scratchpads.

Larger tiles and weights transformed for Winograd make kernels faster but need memory.  The use of
Winograd changes the last bits of results, so it is chosen for one image; scratchpads affect only
tiles and are chosen for the run.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from deconv_ir.ir.operation import Infos, Kernel, LayerPlan
from deconv_ir.ir.record import NamedTuple
from deconv_ir.ir.scratchpad import AlgorithmCandidate, ScratchpadBudget, Whole

MIN_SCRATCHPAD = 16 << 10
"""Minimum scratchpad in bytes: smaller tiles are mostly halo."""

_SHARE, _LEAST_EXTRA = 0.25, 64 << 20
# Scratchpad sizes that are tried: the whole budget, a half, a quarter and so on.
_TRIED = 4


def extra_bytes(bound: int) -> int:
    """Return the bytes that may be used above the lower bound of a plan's peak.

    They buy speed: packed weights, weights transformed for Winograd, larger tiles.
    """
    return max(int(bound * _SHARE), _LEAST_EXTRA)


Ask = Callable[[int, bool], Sequence[AlgorithmCandidate]]
"""A function from the bytes of a scratchpad, and whether transformed weights are kept, to the
algorithms of a layer; the first one packs no further weights."""


class Grant(NamedTuple):
    """A layer that uses Winograd, as chosen for one image with a scratchpad of `judged_bytes`.

    For tiles, `whole` is the run for which it was chosen, and `spatial` the first spatial axis.
    """

    layer: int
    judged_bytes: int
    candidate: AlgorithmCandidate
    whole: Whole | None = None
    spatial: int = 2


def choose_winograd(asks: Mapping[int, Ask], budget_bytes: int) -> list[Grant]:
    """Choose the layers that use Winograd, and among them those that keep transformed weights.

    The budget bounds the largest scratchpad plus the further weights of all layers.  Grants are
    sorted by time saved per byte; those that keep no weights are last.
    """
    asks = {layer: _remember(ask) for layer, ask in asks.items()}
    least_cycles, best = 0.0, None
    wanted: set[int] = set()
    for halvings in range(_TRIED):
        scratch = max(budget_bytes >> halvings, MIN_SCRATCHPAD)
        cycles, grants, gaining = _with_scratch(asks, scratch, budget_bytes)
        if best is None or cycles < least_cycles:
            least_cycles, best = cycles, grants
        wanted |= gaining
        if len(gaining) == len(grants) or scratch == MIN_SCRATCHPAD:
            break
    best = best or []
    if len(best) == len(wanted):
        return best
    few = {layer: asks[layer] for layer in sorted(wanted)}
    # The larger scratchpad first: `_remember` answers for smaller ones.
    return min((_without_weights(few, kept, budget_bytes) for kept in ([], best)), key=_first)[1]


def _remember(ask: Ask) -> Ask:
    """Cache the best algorithms once they fit: they are the best for smaller scratchpads, too."""
    known: dict[bool, Sequence[AlgorithmCandidate]] = {}

    def asked(scratch_bytes: int, keeps_weights: bool) -> Sequence[AlgorithmCandidate]:
        found = known.get(keeps_weights)
        if found is None or any(c.scratch_bytes > scratch_bytes for c in found):
            found = known[keeps_weights] = ask(scratch_bytes, keeps_weights)
        return found

    return asked


def _first(entry: tuple[float, list[Grant]]) -> float:
    return entry[0]


def _without_weights(
    asks: Mapping[int, Ask], kept: list[Grant], budget_bytes: int
) -> tuple[float, list[Grant]]:
    """Let more layers use Winograd, with weights that each run computes.

    Returns the cycles of all, and the grants.
    """
    weights = sum(grant.candidate.weight_bytes for grant in kept)
    scratch = max(budget_bytes - weights, MIN_SCRATCHPAD)
    done = {grant.layer for grant in kept}
    cycles, grants = sum(grant.candidate.cycles for grant in kept), list(kept)
    for layer, ask in asks.items():
        if layer in done:
            continue
        direct, *others = ask(scratch, False)
        cycles += direct.cycles
        for candidate in others:
            if candidate.cycles < direct.cycles and candidate.scratch_bytes <= scratch:
                cycles += candidate.cycles - direct.cycles
                grants.append(Grant(layer, scratch, candidate))
    return cycles, grants


def _with_scratch(
    asks: Mapping[int, Ask], scratch: int, budget_bytes: int
) -> tuple[float, list[Grant], set[int]]:
    """Return the cycles of all layers, those that use Winograd, and those that would benefit."""
    cycles, most = 0.0, 0
    gains: list[tuple[float, float, Grant]] = []
    for layer, ask in asks.items():
        direct, *others = candidates = ask(scratch, True)
        cycles += direct.cycles
        most = max(most, *(candidate.scratch_bytes for candidate in candidates))
        for candidate in others:
            gain = direct.cycles - candidate.cycles
            if gain > 0:
                grant = Grant(layer, scratch, candidate)
                gains.append((gain / candidate.weight_bytes, gain, grant))
    left = budget_bytes - most
    grants: list[Grant] = []
    for _, gain, grant in sorted(gains, key=lambda entry: entry[:2], reverse=True):
        if grant.candidate.weight_bytes <= left:
            left -= grant.candidate.weight_bytes
            cycles -= gain
            grants.append(grant)
    return cycles, grants, {grant.layer for _, _, grant in gains}


def fit_grants(grants: Sequence[Grant], limit_bytes: int) -> list[Grant]:
    """Return the first grants whose missing weights and scratchpad fit."""
    fitting: list[Grant] = []
    weights = scratch = 0
    for grant in grants:
        weights += missing_bytes(grant.candidate)
        scratch = max(scratch, grant.candidate.scratch_bytes)
        if weights + scratch > limit_bytes:
            break
        fitting.append(grant)
    return fitting


def missing_bytes(candidate: AlgorithmCandidate) -> int:
    """Return the bytes of weights that are not yet packed for an algorithm."""
    return 0 if candidate.packed else candidate.weight_bytes


def candidates_for(
    kernel: Kernel, inputs: Infos, scratch_bytes: int, keeps_weights: bool
) -> Sequence[AlgorithmCandidate]:
    """Return the algorithms from which a kernel chooses, given a scratchpad."""
    budget = ScratchpadBudget(scratch_bytes, 0, keeps_weights=keeps_weights)
    choice = kernel.plan(inputs, budget).choice
    assert choice is not None, "for any budget"
    return choice.candidates


def algorithm_of(plan: LayerPlan) -> AlgorithmCandidate:
    """Return the algorithm that a layer has chosen."""
    assert plan.choice is not None, "or it is not asked"
    return plan.choice.algorithm


class Chosen(NamedTuple):
    """The plans of the steps that choose their algorithm within a scratchpad."""

    plans: dict[int, LayerPlan]
    budgets: dict[int, ScratchpadBudget]
    kept: int
    """Bytes of the scratchpad, which threads keep from one layer to the next."""
    missing: int
    """Bytes of weights to be packed."""
    cycles: float
    """Predicted clock cycles."""


def choose_within(choosers: Sequence[tuple[int, Kernel, Infos, Grant | None]], left: int) -> Chosen:
    """Plan the steps that choose their algorithm, with at most `left` bytes of scratchpad.

    `choosers` has steps, their kernels and inputs, and whether they may use Winograd.
    """
    plans, budgets = {}, {}
    kept, missing, cycles = 0, 0, 0.0
    for step, kernel, inputs, grant in choosers:
        budget = ScratchpadBudget(max(left, MIN_SCRATCHPAD), 0)
        if grant is not None:
            keeps = grant.candidate.weight_bytes > 0
            budget = ScratchpadBudget(budget.scratch_bytes, grant.judged_bytes, grant.whole, keeps)
        budgets[step], plans[step] = budget, kernel.plan(inputs, budget)
        found = algorithm_of(plans[step])
        kept = max(kept, found.scratch_bytes)
        missing += missing_bytes(found)
        cycles += found.cycles
    return Chosen(plans, budgets, kept, missing, cycles)
