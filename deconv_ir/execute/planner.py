"""Planning of the memory of each layer's output, for given shapes.

Tensors that may share memory (a view and its array, an array and the one that overwrites it) form a
group, alive from its first tensor's step to its last tensor's use.  Most groups have a place in one
arena, which is kept between runs; other arrays are overwritten if they have no other references.
"""

import functools
import operator
from collections.abc import Callable, Container, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from deconv_ir.execute.checked import CheckedPlan, reads_unknown_lists
from deconv_ir.execute.memory import available_bytes, fits
from deconv_ir.execute.places import (
    ALIGNMENT,
    SharedPlace,
    Union,
    arrange,
    known_array,
    live_bytes,
    tensor_bytes,
)
from deconv_ir.execute.plan import Plan, Step
from deconv_ir.execute.prepare import PreparedModel
from deconv_ir.execute.scratchpad import (
    MIN_SCRATCHPAD,
    ChosenPlans,
    Grant,
    choose_within,
    extra_bytes,
    find_choosers,
    fit_grants,
    grant_winograd,
    missing_bytes,
)
from deconv_ir.ir.dtypes import Array
from deconv_ir.ir.graph import Layer, Source, locating
from deconv_ir.ir.operation import (
    Call,
    Context,
    Infos,
    LayerPlan,
    Sharing,
    TensorInfo,
)
from deconv_ir.ir.scratchpad import ScratchpadBudget
from deconv_ir.ir.shapes import is_static, static

if TYPE_CHECKING:
    import numpy as np


PlanBodies = Callable[[Layer, Infos], tuple[tuple[str, Plan], ...]]
"""A function from a layer and the infos of its inputs to the names and plans of its bodies."""


# Maximum bytes of results that are copied into the arena from arrays of their layers.
_MOST_COPIED = 64 << 10

NOWHERE = -1
"""The slot of constants that are packed in a kernel, and not read by a step."""


def make_plan(
    prepared: PreparedModel,
    wanted: Sequence[Source],
    infos: Sequence[Infos],
    context: Context,
    memory_limit: int | None = None,
    plan_bodies: PlanBodies | None = None,
    grants: Sequence[Grant] | None = None,
) -> Plan:
    """Plan the execution for inputs of known shapes.

    Parameters
    ----------
    prepared : PreparedModel
        The graph of the steps, folded constants and prepared kernels.
    wanted : sequence of Source
        The requested tensors.
    infos : sequence
        For each layer, the TensorInfo of each of its outputs.
    context : Context
        Bounds the scratchpad of a layer.
    memory_limit : int, optional
        Bound on the peak in bytes, kept if smaller scratchpads and fewer layers that use Winograd
        allow it.
    plan_bodies : callable, optional
        Plans the bodies of a layer; required if layers have bodies.
    grants : sequence of Grant, optional
        For a tile: the layers that use Winograd in a run of the whole network; default:
        `grant_winograd`.
    """
    numbers = infos
    if prepared.codes:
        from deconv_ir.execute.coded import as_stored

        infos = as_stored(prepared, infos)
    planner = _Planner(prepared, wanted, infos, numbers, context, memory_limit)
    if plan_bodies is not None:
        planner.plan_bodies(plan_bodies)
    if grants is None:
        return planner.plan(grant_winograd(prepared, infos))
    return planner.plan(grants, of_tile=True)


class _Draft(NamedTuple):
    """A step before offsets and budgets are known."""

    layer: int
    fused: tuple[int, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    overwrites: int | None
    shape: tuple[int, ...] | None
    dtype: "np.dtype[Any] | None"
    takes_out: bool


class _Planner:
    def __init__(
        self,
        prepared: PreparedModel,
        wanted: Sequence[Source],
        infos: Sequence[Infos],
        numbers: Sequence[Infos],
        context: Context,
        memory_limit: int | None,
    ) -> None:
        self.graph = graph = prepared.graph
        self.context = context
        self.memory_limit = memory_limit
        self.fits = True
        self.prepared = prepared
        self.infos, self.numbers = infos, numbers
        self.known = True
        self.plans: dict[int, LayerPlan] = {}  # of the steps that choose their algorithm
        self.slot: dict[Source, int] = {}
        self.groups: list[SharedPlace] = []  # by slot
        self.made_at: dict[int, int] = {}  # slot -> step
        # Slots whose arrays may be in another order, or a part of another array.
        self.apart: set[int] = set()
        self.constants = {s: self._external(s) for s in prepared.constants}
        self.inputs: dict[int, int] = {}
        for index in prepared.steps:
            if graph.layers[index].type == "Parameter":
                self.inputs[index] = self._external((index, 0))
        self.values: dict[int, Array] = {}
        self.wanted = wanted
        self.layers = self._layers()
        self.rows = [self._row(index) for index in self.layers]
        self.last_use = self._last_uses()
        self.drafts = [self._draft(step, index) for step, index in enumerate(self.layers)]
        self.placed = list(dict.fromkeys(g for g in self.groups if not g.external))
        self.placed += self._copies()
        self.live = live_bytes(self.placed, len(self.drafts))
        self.bound = max(self.live, default=0)
        self.bodies: dict[int, tuple[tuple[str, Plan], ...]] = {}
        self.body_weights = 0

    def plan_bodies(self, plan_bodies: PlanBodies) -> None:
        """Plan the graphs that layers run."""
        for step, index in enumerate(self.layers):
            layer = self.graph.layers[index]
            if layer.operation.bodies:
                plans = plan_bodies(layer, self._infos_of(self.rows[step]))
                self.bodies[index] = plans
                self.body_weights += sum(plan.weight_bytes for _, plan in plans)
                self.known = self.known and all(plan.known for _, plan in plans)

    def _layers(self) -> list[int]:
        """Find the layers to run; outputs that depend only on shapes are computed here."""
        steps = [i for i in self.prepared.steps if i not in self.inputs]
        makers = {source: index for index in steps for source in self._made(index)}
        needed: set[int] = set()
        stack = list(self.wanted)
        while stack:
            source = stack.pop()
            index = makers.get(source)
            if index is None or index in needed or source in self.slot:
                continue
            value = known_array(self.infos[source[0]][source[1]])
            if value is None:
                needed.add(index)
                stack += self._row(index)
            else:
                self.values[self._external(source)] = value
        return [index for index in steps if index in needed]

    def _external(self, source: Source) -> int:
        """Make a slot for an array that must not be overwritten."""
        self.slot[source] = len(self.groups)
        self.groups.append(SharedPlace(-1, 0, external=True))
        return self.slot[source]

    def _row(self, index: int) -> tuple[Source, ...]:
        return tuple(s for s in self.graph.topology.sources[index] if s is not None)

    def _made(self, index: int) -> tuple[Source, ...]:
        """Return the tensors that a step computes; for fused layers, only the last output."""
        fused = self.prepared.fused.get(index)
        if fused:
            return ((fused[-1], 0),)
        outputs = 1 if index in self.prepared.first_only else len(self.infos[index])
        return tuple((index, i) for i in range(outputs))

    def _copies(self) -> list[SharedPlace]:
        """Return groups for the requested tensors that are copied.

        They have gaps or another order, or share memory with the model, an input or each other.
        """
        sizes, seen = [], set()
        for layer, output in self.wanted:
            slot = self.slot[layer, output]
            group = self.groups[slot]
            if slot in self.apart or group.external or id(group) in seen:
                sizes.append(tensor_bytes(self.infos[layer][output]) or 0)
            seen.add(id(group))
        return [SharedPlace(len(self.drafts) - 1, size) for size in sizes]

    def _last_uses(self) -> dict[Source, int]:
        last = {source: step for step, row in enumerate(self.rows) for source in row}
        return last | dict.fromkeys(self.wanted, len(self.rows))

    def plan(self, grants: Sequence[Grant], *, of_tile: bool = False) -> Plan:
        budgets, peak, scratch, missing = self._choose_budgets(grants, of_tile)
        held = self.prepared.weight_bytes
        peak = max(peak + held + missing + self.body_weights, self.prepared.least_bytes)
        self.fits = fits(peak, self.memory_limit, held=held)
        steps = self._finish(self.drafts, budgets)
        return Plan(
            self.graph,
            steps,
            len(self.groups),
            self.constants,
            self.inputs,
            self.values,
            tuple(self.slot[s] for s in self.wanted),
            self.infos,
            self.arena_bytes,
            self.prepared.constant_bytes,
            held + missing + self.body_weights,
            self.bound,
            self.bound + self.prepared.constant_bytes,
            peak,
            scratch,
            self.known,
            self.prepared.folded + len(self.prepared.steps) - len(self.inputs) - len(self.layers),
            self.prepared.dropped,
            self.bodies,
            self.prepared.reasons,
            self._precisions(),
            self.numbers,
        )

    def _precisions(self) -> dict[int, str]:
        """Return the types in which steps compute, where these are not their output's."""
        found = {index: "u8" for index, _ in self.prepared.codes}
        for index, row in zip(self.layers, self.rows, strict=True):
            own = self.graph.layers[index].operation.computes_in(self._infos_of(row))
            if own is not None:
                found[index] = own
        return found | self.prepared.precisions

    def _choose_budgets(
        self, grants: Sequence[Grant], of_tile: bool
    ) -> tuple[list[ScratchpadBudget], int, int, int]:
        """Return each step's budget, peak without weights, scratchpad, and weights to be packed."""
        held, lowest = self.prepared.weight_bytes, self.bound
        most, limit = lowest + self.prepared.constant_bytes, self.memory_limit
        most += extra_bytes(most, is_compressed=self.prepared.is_compressed)
        found = find_choosers(self.prepared, self.infos)
        if limit is None and not fits(most, held=held):
            limit = available_bytes() + held
        if limit is not None:
            # Filters stay beside weights that are made from them: some data need both.
            most = min(most - sum(grant.candidate.filter_bytes for grant in grants), limit)
            grants = [g._replace(candidate=g.candidate._replace(filter_bytes=0)) for g in grants]
            if of_tile:  # all tiles use the same algorithm, which a scratchpad must not decide
                grants = [grant for grant in grants if grant.candidate.weight_bytes]
            grants = fit_grants(grants, limit - self.bound - held)
            lowest = self._lowest(found)
        granted = {grant.layer: grant for grant in grants}
        choosers = [
            (step, *found[index], granted.get(index))
            for step, index in enumerate(self.layers)
            if index in found
        ]
        left = most - lowest - held
        if limit is not None or not of_tile:  # all tiles share their weights
            left -= sum(missing_bytes(grant.candidate) for grant in grants)
        # The arena, which may be partly idle, has what scratchpads leave.
        chosen = choose_within(choosers, left)
        self.plans, kept = chosen.plans, chosen.kept
        _, taken = self._take(chosen, most - held)
        least = max(map(operator.add, self.live, taken), default=0)
        self.arena_bytes, self.live = arrange(
            self.placed, taken, max(least, lowest + left - kept), self._unions()
        )
        budgets, taken = self._take(chosen, most - held)
        peak = kept + max(map(operator.add, self.live, taken), default=0)
        return budgets, peak, kept + max(taken, default=0), chosen.missing

    def _lowest(self, choosers: Container[int]) -> int:
        """Return the fewest bytes of tensors and scratchpads of steps without a choice."""
        own = ScratchpadBudget(MIN_SCRATCHPAD)
        return max(
            (
                live + self._copied(step) + (0 if index in choosers else self._scratch(step, own))
                for step, (live, index) in enumerate(zip(self.live, self.layers, strict=True))
            ),
            default=0,
        )

    def _take(self, chosen: ChosenPlans, most: int) -> tuple[list[ScratchpadBudget], list[int]]:
        """Return the budget of each step, and the scratchpad of steps without a choice."""
        budgets, taken = [], []
        for step, live in enumerate(self.live):
            free = max(most - chosen.missing - chosen.kept - live, MIN_SCRATCHPAD)
            own = ScratchpadBudget(min(free, self.context.scratch_bytes))
            budgets.append(chosen.budgets.get(step, own))
            scratch = 0 if step in chosen.plans else self._scratch(step, own)
            taken.append(scratch + self._copied(step))
        return budgets, taken

    def _plan_step(self, step: int, draft: _Draft, budget: ScratchpadBudget) -> LayerPlan:
        """Plan a step, as far as its shapes are known."""
        kernel = self.prepared.kernels.get(draft.layer)
        inputs = self._infos_of(self.rows[step])
        outputs = self._infos_of(self._made(draft.layer))
        layer = self.graph.layers[draft.layer]
        known = all(i.element_type and is_static(i.shape) for i in (*inputs, *outputs))
        context = self.context._replace(scratch_bytes=budget.scratch_bytes)
        call: Call
        if not known or not self.fits:
            if kernel is not None:
                call = functools.partial(kernel, budget=budget)
            else:
                call = layer.operation.bind_any(context)
            # If the run does not fit into memory, the tables of bound layers may not fit either.
            if not known:
                plan = LayerPlan(call)
                return CheckedPlan(
                    layer, inputs, context, self.memory_limit, plan, is_counted=False
                )
            return LayerPlan(call)
        with locating(self.graph, layer):
            if kernel is None:
                plan = layer.operation.plan(inputs, outputs, context)
            else:
                plan = self.plans.get(step) or kernel.plan(inputs, budget)
        if reads_unknown_lists(layer, inputs):
            return CheckedPlan(layer, inputs, context, self.memory_limit, plan, is_counted=True)
        return plan

    def _infos_of(self, sources: Sequence[Source]) -> list[TensorInfo]:
        return [self.infos[layer][output] for layer, output in sources]

    def _scratch(self, step: int, budget: ScratchpadBudget) -> int:
        """Return the scratchpad bytes of a layer, and those of its bodies."""
        index = self.layers[step]
        runs = (plan.peak_bytes - plan.weight_bytes for _, plan in self.bodies.get(index, ()))
        inner = max(runs, default=0)
        inputs, outputs = self._infos_of(self.rows[step]), self._infos_of(self._made(index))
        if not all(is_static(i.shape) for i in (*inputs, *outputs)):
            return inner
        absorbed = [source not in self.slot for source in self.rows[step]]
        inputs = [TensorInfo(None) if a else i for i, a in zip(inputs, absorbed, strict=True)]
        context = self.context._replace(scratch_bytes=budget.scratch_bytes)
        layer = self.graph.layers[index]
        with locating(self.graph, layer):
            return inner + layer.operation.scratch(inputs, outputs, context)

    def _copied(self, step: int) -> int:
        """Return the bytes of inputs that a layer copies first: many do if these are `apart`."""
        row, index = self.rows[step], self.layers[step]
        turned = [source for source in row if self.slot.get(source) in self.apart]
        if turned and self.graph.layers[index].operation.sharing is not Sharing.NONE:
            given, made = self._infos_of((row[0], self._made(index)[0]))
            home = self.groups[self.drafts[step].outputs[0]]
            same = made.element_type is given.element_type
            if home.begin < step or (same and tensor_bytes(made) == tensor_bytes(given)):
                return 0  # a view, or the copy is its output
        return sum(tensor_bytes(info) or 0 for info in self._infos_of(turned))

    def _draft(self, step: int, index: int) -> _Draft:
        """Find slots and groups of one step; offsets come later."""
        row = self.rows[step]
        made = self._made(index)
        inputs = tuple(self.slot.get(source, NOWHERE) for source in row)
        operation = self.graph.layers[index].operation
        row_infos = [self.infos[s[0]][s[1]] for s in row]
        info = self.infos[made[0][0]][made[0][1]] if made else TensorInfo(None)
        size = tensor_bytes(info)
        prepared = index in self.prepared.kernels
        writes = prepared or operation.computes_in_place
        alone = len(made) == 1 and size is not None
        takes_out = writes and alone and operation.accepts_out(row_infos, info)
        overwrites = None
        if takes_out and not prepared:
            overwrites = self._overwritten(step, inputs, row_infos, info, index)
        shared, partial = None, False
        if overwrites is not None:
            shared = self.groups[overwrites]
        elif operation.sharing is not Sharing.NONE and row_infos:
            shared = self._shared(operation.sharing, inputs[0], row_infos[0], info)
            takes_out = takes_out and shared is None
            of_part = operation.sharing is Sharing.PART or inputs[0] in self.apart
            partial = shared is not None and of_part
        # Steps that read it can then be bound to its address.
        copied = (
            not takes_out
            and alone
            and operation.sharing is Sharing.NONE
            and not operation.bodies
            and size is not None
            and size <= _MOST_COPIED
        )
        moves = shared is None and not (takes_out or copied or operation.in_order)
        outputs = []
        for source in made:
            known = tensor_bytes(self.infos[source[0]][source[1]])
            self.known = self.known and known is not None
            group = shared or SharedPlace(step, known or 0, takes_out=takes_out or copied)
            group.end = max(group.end, step, self.last_use.get(source, step))
            self.slot[source] = len(self.groups)
            outputs.append(len(self.groups))
            self.groups.append(group)
            self.made_at[self.slot[source]] = step
            if partial or moves:
                self.apart.add(self.slot[source])
        fused = self.prepared.fused.get(index, ())
        shape = dtype = None
        if (takes_out or copied) and info.element_type is not None:
            shape, dtype = static(info.shape), info.element_type.numpy()
        return _Draft(index, fused, inputs, tuple(outputs), overwrites, shape, dtype, takes_out)

    def _unions(self) -> list[Union]:
        """Find the inputs of Concat that can be computed at their place in its output."""
        found: dict[SharedPlace, Union] = {}
        parts: set[SharedPlace] = set()
        for step, draft in enumerate(self.drafts):
            home = self.groups[draft.outputs[0]] if draft.takes_out else None
            if home is None or home.begin != step or home.end >= len(self.drafts):
                continue
            (output,) = self._infos_of(self._made(draft.layer))
            operation = self.graph.layers[draft.layer].operation
            distances = operation.distances(self._infos_of(self.rows[step]), output)
            members = [(home, 0)]
            for slot, distance in zip(draft.inputs, distances, strict=False):
                group = self.groups[slot]
                if (
                    slot != NOWHERE
                    and slot not in self.apart
                    and group.takes_out
                    and not group.external
                    and group.end == step
                    and distance % ALIGNMENT == 0
                    and group not in parts
                ):
                    parts.add(group)
                    inner = found.pop(group, None)
                    own = ((group, 0),) if inner is None else inner.members
                    members += [(member, distance + start) for member, start in own]
            if len(members) > 1:
                found[home] = Union(members)
        return list(found.values())

    def _overwritten(
        self,
        step: int,
        inputs: Sequence[int],
        row_infos: Infos,
        info: TensorInfo,
        index: int,
    ) -> int | None:
        """Choose the input whose array the output reuses: one of the plan's, last used here."""
        size = tensor_bytes(info)
        for position in self.graph.layers[index].operation.overwritable(row_infos, info):
            slot = inputs[position]
            given = row_infos[position]
            if slot == NOWHERE or given.shape != info.shape:
                continue
            group = self.groups[slot]
            others = [s for s in inputs if s not in (slot, NOWHERE) and self.groups[s] is group]
            if (
                not group.external
                and group.end == step
                and group.bytes == size
                and given.element_type is info.element_type
                and not others
                and slot not in self.apart
            ):
                return slot
        return None

    def _shared(
        self, sharing: Sharing, slot: int, given: TensorInfo, info: TensorInfo
    ) -> SharedPlace | None:
        """Return the group that a view joins; None if it will be a copy."""
        if slot == NOWHERE or given.element_type is not info.element_type:
            return None
        if sharing is Sharing.WHOLE and (
            slot in self.apart or tensor_bytes(given) != tensor_bytes(info)
        ):
            # Elements are missing or in another order, so that NumPy copies.
            return None
        return self.groups[slot]

    def _finish(
        self, drafts: Sequence[_Draft], budgets: Sequence[ScratchpadBudget]
    ) -> tuple[Step, ...]:
        """Complete the steps: offsets, the tensors that each frees, and its call."""
        frees: list[list[int]] = [[] for _ in drafts]
        for source, slot in self.slot.items():
            last = self.last_use.get(source, self.made_at.get(slot, NOWHERE))
            if source not in self.constants and 0 <= last < len(drafts):
                frees[last].append(slot)
        steps = []
        for number, draft in enumerate(drafts):
            home = self.groups[draft.outputs[0]] if draft.outputs else None
            fresh = home is not None and home.begin == number and home.takes_out
            writes = fresh or draft.overwrites is not None
            steps.append(
                Step(
                    *draft[:-1],
                    offset=home.offset if home and writes else None,
                    views=bool(home and not writes and home.offset is not None),
                    frees=tuple(frees[number]),
                    plan=self._plan_step(number, draft, budgets[number]),
                    allocate=_allocator(draft),
                )
            )
        return tuple(steps)


def _allocator(draft: _Draft) -> Callable[[], Array] | None:
    if not draft.takes_out or draft.shape is None or draft.dtype is None:
        return None
    from deconv_ir.kernels.runtime.memory import allocator

    return allocator(draft.shape, draft.dtype)
