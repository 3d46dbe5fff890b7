"""Decides, for given shapes, which memory each layer's output takes.

Tensors that may share memory (a view and what it shows, an array and what
overwrites it) form a group, which lives from its first tensor's making to its
last tensor's use.  The plan only proposes: before the executor overwrites an
array or uses a buffer again, it makes sure that nothing else holds it.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from ..model import Graph, Operation, Sharing, Source, TensorInfo
from ..ops.packed import PackedLayer
from ..shapes import element_count, is_static, static
from .prepare import Prepared

if TYPE_CHECKING:
    from ..dtypes import Array

NOWHERE = -1
"""The slot of a constant that a kernel has absorbed."""

# Below this, the allocator has warm memory at hand.
_SMALLEST_BUFFER = 1 << 20
# How far beyond the lower bound buffers may bring the peak.
_SLACK = 1.1


class Step(NamedTuple):
    """One layer of a plan.

    Attributes
    ----------
    layer : int
        Its index in the graph.
    fused : tuple of int
        The layers behind it that are computed with it.
    inputs, outputs : tuple of int
        Slots of the tensors.
    overwrites : int or None
        Slot of the input whose array the output takes.
    buffer : int or None
        Buffer that the output takes.
    holds : int or None
        Buffer in which the overwritten array is; None: it has its own memory.
    shape : tuple of int, or None
        Shape of the output, where that must be known before.
    frees : tuple of int
        Slots that nothing needs after it.
    drops : tuple of int
        Buffers that nothing needs after it.
    """

    layer: int
    fused: tuple[int, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    overwrites: int | None
    buffer: int | None
    holds: int | None
    shape: tuple[int, ...] | None
    frees: tuple[int, ...]
    drops: tuple[int, ...]

    @property
    def made(self) -> int:
        """The layer whose output it is."""
        return self.fused[-1] if self.fused else self.layer


class Plan(NamedTuple):
    """What runs, in which memory, for inputs of certain shapes.

    Attributes
    ----------
    steps : tuple of Step
    slots : int
        Number of tensors.
    constants, inputs : dict
        Source, or Parameter layer -> slot.
    values : dict
        Slot -> array, of what the shapes of the inputs determine.
    wanted : tuple of int
        Slots of the results.
    infos : sequence
        What is known of each output of each layer.
    capacities : tuple of int
        Bytes of each buffer.
    weight_bytes : int
        Bytes of the constants.
    bound_bytes : int
        The largest set of tensors alive at once, without inputs and constants.
    peak_bytes : int
        The same with what buffers hold idle, and with scratch.
    scratch_bytes : int
        The most that a kernel takes for itself while it runs.
    known : bool
        Whether the size of every tensor is known; else the figures are too low.
    folded, dropped : int
        Number of layers that are computed once, and never.
    """

    steps: tuple[Step, ...]
    slots: int
    constants: dict[Source, int]
    inputs: dict[int, int]
    values: dict[int, Array]
    wanted: tuple[int, ...]
    infos: Sequence[Sequence[TensorInfo]]
    capacities: tuple[int, ...]
    weight_bytes: int
    bound_bytes: int
    peak_bytes: int
    scratch_bytes: int
    known: bool
    folded: int
    dropped: int


class _Group:
    """Tensors that may share memory."""

    __slots__ = ("born", "buffer", "bytes", "end", "external", "takes_out")

    def __init__(self, born: int, size: int, *, external: bool = False, takes_out: bool = False):
        self.born = born
        self.end = born
        self.bytes = size
        self.external = external
        self.takes_out = takes_out
        self.buffer: int | None = None


def tensor_bytes(info: TensorInfo) -> int | None:
    """Return the bytes of a tensor as an array; None where they are not known."""
    if info.element_type is None or not is_static(info.shape):
        return None
    try:
        itemsize: int = info.element_type.numpy().itemsize
    except TypeError:  # strings
        return None
    return element_count(static(info.shape)) * itemsize


def known_array(info: TensorInfo) -> Array | None:
    """Return the elements of a tensor where inference has found them all, read-only."""
    value, element_type = info.value, info.element_type
    if value is None or element_type is None or not is_static(info.shape):
        return None
    if element_type.kind not in ("int", "uint") or not is_static(value):
        return None
    import numpy as np

    array: Array = np.array(value, element_type.numpy()).reshape(static(info.shape))
    array.flags.writeable = False
    return array


def make_plan(
    graph: Graph,
    prepared: Prepared,
    wanted: Sequence[Source],
    infos: Sequence[Sequence[TensorInfo]],
) -> Plan:
    """Plan the execution for inputs of which `infos` tells the shapes.

    Parameters
    ----------
    graph : Graph
    prepared : Prepared
        What is done already.
    wanted : sequence of Source
        The tensors asked for.
    infos : sequence
        For each layer, what is known of each of its outputs.
    """
    return _Planner(graph, prepared, wanted, infos).plan()


class _Planner:
    def __init__(
        self,
        graph: Graph,
        prepared: Prepared,
        wanted: Sequence[Source],
        infos: Sequence[Sequence[TensorInfo]],
    ) -> None:
        self.graph = graph
        self.prepared = prepared
        self.infos = infos
        self.known = True
        self.slot: dict[Source, int] = {}
        self.groups: list[_Group] = []  # by slot
        self.made_at: dict[int, int] = {}  # slot -> step
        self.partial: set[int] = set()  # slots that show another array in part
        self.constants = {s: self._external(s) for s in prepared.constants}
        self.inputs: dict[int, int] = {}
        for index in prepared.steps:
            if graph.layers[index].type == "Parameter":
                self.inputs[index] = self._external((index, 0))
        self.values: dict[int, Array] = {}
        self.wanted = wanted
        self.layers = self._layers()
        self.rows = [self._row(index) for index in self.layers]
        self.last_use = self._last_uses(wanted)

    def _layers(self) -> list[int]:
        """Find the layers to run: not those whose outputs the shapes determine."""
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
        """Make a slot for an array that is not ours to overwrite."""
        self.slot[source] = len(self.groups)
        self.groups.append(_Group(-1, 0, external=True))
        return self.slot[source]

    def _row(self, index: int) -> tuple[Source, ...]:
        return tuple(s for s in self.graph.topology.sources[index] if s is not None)

    def _made(self, index: int) -> tuple[Source, ...]:
        """Return the tensors that a step makes: a fused layer's own has no place."""
        fused = self.prepared.fused.get(index)
        if fused:
            return ((fused[-1], 0),)
        outputs = 1 if index in self.prepared.first_only else len(self.infos[index])
        return tuple((index, i) for i in range(outputs))

    def _last_uses(self, wanted: Sequence[Source]) -> dict[Source, int]:
        last: dict[Source, int] = {}
        for step, row in enumerate(self.rows):
            for source in row:
                last[source] = step
        for source in wanted:
            last[source] = len(self.rows)
        return last

    def plan(self) -> Plan:
        drafts = [self._draft(step, index) for step, index in enumerate(self.layers)]
        groups = list(dict.fromkeys(g for g in self.groups if not g.external))
        scratch = [self._scratch(step, index) for step, index in enumerate(self.layers)]
        live = _live_bytes(groups, len(drafts))
        bound = max(live, default=0)
        capacities = _assign_buffers(groups, live, bound)
        steps = self._finish(drafts)
        return Plan(
            steps,
            len(self.groups),
            self.constants,
            self.inputs,
            self.values,
            tuple(self.slot[s] for s in self.wanted),
            self.infos,
            tuple(capacities),
            self.prepared.weight_bytes,
            bound,
            max(map(operator.add, live, scratch), default=0),
            max(scratch, default=0),
            self.known,
            self.prepared.folded + len(self.prepared.steps) - len(self.inputs) - len(self.layers),
            self.prepared.dropped,
        )

    def _scratch(self, step: int, index: int) -> int:
        """Return the bytes that a step's kernel takes for the time it runs."""
        kernel = self.prepared.kernels.get(index)
        inputs = [self.infos[s[0]][s[1]] for s in self.rows[step]]
        if not isinstance(kernel, PackedLayer) or not all(is_static(i.shape) for i in inputs):
            return 0
        return kernel.scratch(inputs)

    def _draft(self, step: int, index: int) -> Step:
        """Find slots and groups of one step; buffers come later."""
        row = self.rows[step]
        made = self._made(index)
        inputs = tuple(self.slot.get(source, NOWHERE) for source in row)
        operation = self.graph.layers[index].operation
        row_infos = [self.infos[s[0]][s[1]] for s in row]
        info = self.infos[made[0][0]][made[0][1]] if made else TensorInfo(None)
        size = tensor_bytes(info)
        prepared = index in self.prepared.kernels
        writes = prepared or type(operation).execute_into is not Operation.execute_into
        takes_out = (
            writes
            and len(made) == 1
            and size is not None
            and operation.accepts_out(row_infos, info)
        )
        overwrites = None
        if takes_out and not prepared:
            overwrites = self._overwritten(step, inputs, row_infos, info, index)
        shared = None
        if overwrites is not None:
            shared = self.groups[overwrites]
        elif operation.sharing is not Sharing.NONE and row_infos:
            shared = self._shared(operation.sharing, inputs[0], row_infos[0], info)
        partial = shared is not None and operation.sharing is Sharing.PART
        outputs = []
        for source in made:
            known = tensor_bytes(self.infos[source[0]][source[1]])
            self.known = self.known and known is not None
            group = shared or _Group(step, known or 0, takes_out=takes_out)
            group.end = max(group.end, step, self.last_use.get(source, step))
            self.slot[source] = len(self.groups)
            outputs.append(len(self.groups))
            self.groups.append(group)
            self.made_at[self.slot[source]] = step
            if partial:
                self.partial.add(self.slot[source])
        shape = static(info.shape) if takes_out else None
        fused = self.prepared.fused.get(index, ())
        return Step(index, fused, inputs, tuple(outputs), overwrites, None, None, shape, (), ())

    def _overwritten(
        self,
        step: int,
        inputs: Sequence[int],
        row_infos: Sequence[TensorInfo],
        info: TensorInfo,
        index: int,
    ) -> int | None:
        """Choose the input whose array the output takes: one that dies here, held by none."""
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
                and slot not in self.partial
            ):
                return slot
        return None

    def _shared(
        self, sharing: Sharing, slot: int, given: TensorInfo, info: TensorInfo
    ) -> _Group | None:
        """Return the group that a view joins; None where it will be a copy."""
        if slot == NOWHERE or given.element_type is not info.element_type:
            return None
        if sharing is Sharing.WHOLE and slot in self.partial:
            # The elements are not there in their order: this makes a copy.
            return None
        return self.groups[slot]

    def _finish(self, drafts: Sequence[Step]) -> tuple[Step, ...]:
        """Put in buffers, and what each step frees."""
        frees: list[list[int]] = [[] for _ in drafts]
        for source, slot in self.slot.items():
            last = self.last_use.get(source, self.made_at.get(slot, NOWHERE))
            if source not in self.constants and 0 <= last < len(drafts):
                frees[last].append(slot)
        last_of_buffer: dict[int, int] = {}
        for group in self.groups:
            if group.buffer is not None:
                last_of_buffer[group.buffer] = max(last_of_buffer.get(group.buffer, 0), group.end)
        drops: list[list[int]] = [[] for _ in drafts]
        for buffer, end in last_of_buffer.items():
            if end < len(drafts):
                drops[end].append(buffer)
        steps = []
        for number, draft in enumerate(drafts):
            home = self.groups[draft.outputs[0]] if draft.outputs else None
            fresh = home is not None and home.born == number and home.takes_out
            steps.append(
                draft._replace(
                    buffer=home.buffer if home and fresh else None,
                    holds=home.buffer if home and draft.overwrites is not None else None,
                    frees=tuple(frees[number]),
                    drops=tuple(drops[number]),
                )
            )
        return tuple(steps)


def _live_bytes(groups: Sequence[_Group], steps: int) -> list[int]:
    """Return the bytes alive during each step."""
    change = [0] * (steps + 2)
    for group in groups:
        change[group.born] += group.bytes
        change[min(group.end, steps - 1) + 1] -= group.bytes
    live, total = [], 0
    for step in range(steps):
        total += change[step]
        live.append(total)
    return live


def _assign_buffers(groups: Sequence[_Group], live: list[int], bound: int) -> list[int]:
    """Let big tensors take the memory of others that are dead, where that costs no peak.

    `live` grows by what buffers hold idle.
    """
    limit = int(bound * _SLACK)
    last = len(live)
    capacities: list[int] = []
    free_since: dict[int, int] = {}
    busy: list[tuple[int, int]] = []
    for group in sorted(groups, key=lambda g: g.born):
        if not group.takes_out or group.bytes < _SMALLEST_BUFFER or group.end >= last:
            continue
        for end, buffer in [b for b in busy if b[0] < group.born]:
            free_since[buffer] = end + 1
            busy.remove((end, buffer))
        fitting = sorted((capacities[b], b) for b in free_since if capacities[b] >= group.bytes)
        for capacity, buffer in fitting:
            idle = range(free_since[buffer], group.born)
            waste = range(group.born, group.end + 1)
            extra = capacity - group.bytes
            if all(live[i] + capacity <= limit for i in idle) and all(
                live[i] + extra <= limit for i in waste
            ):
                for i in idle:
                    live[i] += capacity
                for i in waste:
                    live[i] += extra
                group.buffer = buffer
                del free_since[buffer]
                break
        if group.buffer is None:
            group.buffer = len(capacities)
            capacities.append(group.bytes)
        busy.append((group.end, group.buffer))
    return capacities


def as_rows(graph: Graph, plan: Plan) -> list[PlanRow]:
    """List the steps of a plan for a reader."""
    producer: dict[int, str] = {}
    for source, slot in plan.constants.items():
        producer[slot] = graph.layers[source[0]].name
    for index, slot in plan.inputs.items():
        producer[slot] = graph.layers[index].name
    rows = []
    for number, step in enumerate(plan.steps):
        layer = graph.layers[step.layer]
        made = step.made
        for slot in step.outputs:
            producer[slot] = graph.layers[made].name
        sources = [s for s in graph.topology.sources[step.layer] if s is not None]
        sizes = [tensor_bytes(info) for info in plan.infos[made]]
        rows.append(
            PlanRow(
                number,
                layer.name,
                layer.type,
                tuple(plan.infos[s[0]][s[1]] for s in sources),
                tuple(plan.infos[made]),
                tuple(graph.layers[i].name for i in step.fused),
                None if step.overwrites is None else producer[step.overwrites],
                step.buffer,
                None if None in sizes else sum(s for s in sizes if s is not None),
            )
        )
    return rows


class PlanRow(NamedTuple):
    """A step of a plan, for a reader.

    Attributes
    ----------
    step : int
    layer, type : str
        Name and type of the layer.
    inputs, outputs : tuple of TensorInfo
    fused : tuple of str
        The layers behind it that are computed with it.
    overwrites : str or None
        The layer whose output its output overwrites.
    buffer : int or None
        The buffer that its output takes.
    bytes : int or None
        Size of its outputs; None where it is not known.
    """

    step: int
    layer: str
    type: str
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    fused: tuple[str, ...]
    overwrites: str | None
    buffer: int | None
    bytes: int | None
