"""The nested boxes of a drawing: layers, groups of a common name, repeated blocks."""

from __future__ import annotations

import heapq
import re
from collections.abc import Hashable, Iterator, Sequence
from typing import NamedTuple

from deconv_ir.ir.graph import Graph, constant_layers

MAX_DEPTH = 8
"""Maximum parts of a name that form groups; the rest is the name in the innermost group."""
MAX_PERIOD = 64
"""Maximum number of boxes in a repeated block."""
LEAST_REPEATS = 3
LEAST_SINGLE_REPEATS = 5
"""Minimum repetitions that are drawn as one box, for blocks and for single layers."""
LEAST_LAYERS = 3
"""Minimum number of layers with a common name in a group."""
_SEPARATORS = "/."
_ROOT = re.compile(r"^__module[/.]+(?=[^/.])")
"""The root of all names from PyTorch."""
FAR = 2 * MAX_PERIOD
"""Distance to a source above which all distances are considered equal."""


class DrawnBox:
    """A box of the drawing: a layer, or a group of boxes in topological order.

    A layer that runs bodies is both: its children are the boxes of its bodies.

    Attributes
    ----------
    label : str
        Name of the group, or of the layer within its group.
    layer : int or None
        Index of the layer; None for other groups.
    children : list of DrawnBox
    count : int
        Repetitions of a block that the group stands for; 1 for other groups.
    size : int
        Number of layers in the box, without those of bodies.
    """

    __slots__ = ("children", "count", "label", "layer", "size")

    def __init__(
        self,
        label: str,
        layer: int | None = None,
        children: Sequence[DrawnBox] = (),
        count: int = 1,
    ) -> None:
        self.label = label
        self.layer = layer
        self.children = list(children)
        self.count = count
        self.size: int = sum(child.size for child in children) if layer is None else 1

    def leaves(self) -> Iterator[int]:
        """Iterate over the layers in the box."""
        stack = [self]
        while stack:
            box = stack.pop()
            if box.layer is not None:
                yield box.layer
            stack += reversed(box.children)


class Flow(NamedTuple):
    """The drawn layers of a graph and their connections."""

    order: tuple[int, ...]
    """The drawn layers in topological order; layers on a cycle come last."""
    sources: dict[int, tuple[int, ...]]
    """Drawn layer -> the drawn layers whose tensors it uses."""
    hidden: dict[int, int]
    """Layer that does not depend on inputs -> the first drawn layer that uses it."""


def flow_of(graph: Graph) -> Flow:
    """Find the layers to draw: constants belong to the layers that use them."""
    topology = graph.topology
    order = (*topology.order, *sorted(set(range(len(graph.layers))) - set(topology.order)))
    constant = constant_layers(graph, topology.order)
    hidden: dict[int, int] = {}
    for index in reversed(order):
        # Later users are visited first, so that the first user remains.
        owner = hidden.get(index, index)
        if index in constant and index not in hidden:
            continue  # an unused layer is drawn
        for source in topology.sources[index]:
            if source is not None and source[0] in constant:
                hidden[source[0]] = owner
    drawn = tuple(i for i in order if i not in hidden)
    sources = {
        i: tuple(
            dict.fromkeys(s[0] for s in topology.sources[i] if s is not None and s[0] not in hidden)
        )
        for i in drawn
    }
    return Flow(drawn, sources, hidden)


def name_parts(name: str) -> list[str]:
    """Split a name at its separators: ``a/b.0/Conv`` is ``a``, ``b``, ``0``, ``Conv``."""
    found = re.split(rf"[{_SEPARATORS}]+", _ROOT.sub("", name), maxsplit=MAX_DEPTH)
    return [part for part in found if part] or [name]


def box_of(graph: Graph, flow: Flow) -> DrawnBox:
    """Group the layers of a graph; the result is the outermost box.

    Boxes of a group are connected without cycles: a group with other layers in between is drawn in
    several parts.
    """
    return _FlowBuilder(graph, flow).build()


class _FlowBuilder:
    def __init__(self, graph: Graph, flow: Flow) -> None:
        self.graph = graph
        self.flow = flow
        self.parts = {i: name_parts(graph.layers[i].name) for i in flow.order}
        self.place = {layer: k for k, layer in enumerate(flow.order)}
        self.known: dict[Hashable, int] = {}

    def build(self) -> DrawnBox:
        return DrawnBox(self.graph.name, None, self._boxes(list(self.flow.order), 0))

    def _boxes(self, leaves: list[int], depth: int) -> list[DrawnBox]:
        """Make the boxes of one level, in topological order."""
        boxes = []
        for label, members in self._split(leaves, depth):
            if len(members) < LEAST_LAYERS:
                boxes += [DrawnBox(self._end_of_name(m, depth) or label, m) for m in members]
                continue
            children = self._boxes(members, depth + 1)
            if len(children) == 1 and children[0].layer is None:
                (only,) = children
                boxes.append(DrawnBox(f"{label}.{only.label}", None, only.children, only.count))
            else:
                boxes.append(DrawnBox(label, None, children))
        return self._collapse(boxes)

    def _end_of_name(self, layer: int, depth: int) -> str:
        """Return the name of a layer without its first parts, with its own separators."""
        name = _ROOT.sub("", self.graph.layers[layer].name)
        for part in self.parts[layer][:depth]:
            name = name.lstrip(_SEPARATORS)[len(part) :]
        return name.strip(_SEPARATORS)

    def _split(self, leaves: list[int], depth: int) -> list[tuple[str, list[int]]]:
        """Group layers with the same name if that creates no cycle."""
        key_of: dict[int, tuple[str, int]] = {}
        for leaf in leaves:
            parts = self.parts[leaf]
            alone = len(parts) <= depth + 1
            key_of[leaf] = (parts[-1], leaf) if alone else (parts[depth], -1)
        groups: dict[tuple[str, int], list[int]] = {}
        for leaf in leaves:
            groups.setdefault(key_of[leaf], []).append(leaf)
        if len(groups) < len(leaves):
            names = list(groups)
            numbers = {key: k for k, key in enumerate(names)}
            links = self._links(groups, numbers, key_of)
            tangled = [part for part in _components(links) if len(part) > 1]
            for part in tangled:
                self._untangle([names[k] for k in part], groups, key_of)
        return self._sorted(groups, key_of)

    def _links(
        self,
        groups: dict[tuple[str, int], list[int]],
        numbers: dict[tuple[str, int], int],
        key_of: dict[int, tuple[str, int]],
    ) -> list[list[int]]:
        """Return, for each group, the groups whose tensors it uses."""
        return [
            list(
                {
                    numbers[key_of[source]]
                    for leaf in members
                    for source in self.flow.sources[leaf]
                    if source in key_of and key_of[source] != key
                }
            )
            for key, members in groups.items()
        ]

    def _untangle(
        self,
        keys: list[tuple[str, int]],
        groups: dict[tuple[str, int], list[int]],
        key_of: dict[int, tuple[str, int]],
    ) -> None:
        """Split groups that form a cycle into runs of the topological order."""
        leaves = sorted((leaf for key in keys for leaf in groups.pop(key)), key=self.place.get)  # type: ignore[arg-type]
        last: tuple[str, int] | None = None
        run: list[int] = []
        for leaf in leaves:
            key = key_of[leaf]
            if key != last:
                run = groups[(key[0], leaf)] = []
                last = key
            run.append(leaf)
            key_of[leaf] = (key[0], run[0])

    def _sorted(
        self, groups: dict[tuple[str, int], list[int]], key_of: dict[int, tuple[str, int]]
    ) -> list[tuple[str, list[int]]]:
        """Sort groups topologically, and by their order in the file if possible."""
        names = list(groups)
        numbers = {key: k for k, key in enumerate(names)}
        links = self._links(groups, numbers, key_of)
        missing = [len(sources) for sources in links]
        takers: list[list[int]] = [[] for _ in names]
        for k, sources in enumerate(links):
            for source in sources:
                takers[source].append(k)
        first = [self.place[groups[key][0]] for key in names]
        ready = [(first[k], k) for k, count in enumerate(missing) if count == 0]
        heapq.heapify(ready)
        found = []
        waiting = set(range(len(names)))
        while waiting:
            # Only layers on a cycle of the graph itself wait for each other.
            k = heapq.heappop(ready)[1] if ready else min(waiting, key=first.__getitem__)
            if k not in waiting:
                continue
            waiting.remove(k)
            found.append((names[k][0], groups[names[k]]))
            for taker in takers[k]:
                missing[taker] -= 1
                if missing[taker] == 0:
                    heapq.heappush(ready, (first[taker], taker))
        return found

    # Repeated blocks

    def _number(self, thing: Hashable) -> int:
        """Return the number of a description; equal descriptions have equal numbers."""
        return self.known.setdefault(thing, len(self.known))

    def _shape(self, box: DrawnBox) -> int:
        """Return the number of the structure of a box; equal numbers give equal pictures."""
        if box.layer is None:
            inner = (self._shape(child) for child in box.children)
            return self._number((box.count, *inner))
        layer = self.graph.layers[box.layer]
        ports = tuple((port.shape, port.element_type) for port in layer.outputs)
        return self._number((layer.type, layer.attributes, ports))

    def _collapse(self, boxes: list[DrawnBox]) -> list[DrawnBox]:
        """Merge consecutive repeated blocks into one box with a count."""
        if len(boxes) < LEAST_REPEATS:
            return boxes
        at = {leaf: k for k, box in enumerate(boxes) for leaf in box.leaves()}
        shapes = [self._shape(box) for box in boxes]
        marks = []
        for k, box in enumerate(boxes):
            offsets = {
                min(k - at[source], FAR)
                for leaf in box.leaves()
                for source in self.flow.sources[leaf]
                if source in at and at[source] != k
            }
            marks.append(self._number((shapes[k], *sorted(offsets))))
        return _wrap(boxes, marks, shapes)


def _wrap(boxes: list[DrawnBox], marks: list[int], shapes: list[int]) -> list[DrawnBox]:
    """Replace runs of repeated blocks by one box each."""
    result: list[DrawnBox] = []
    at = 0
    single = [box.layer is not None for box in boxes]
    for start, period, count in _runs(marks, shapes, single):
        result += boxes[at:start]
        blocks = []
        for k in range(start, start + period * count, period):
            members = boxes[k : k + period]
            if period == 1:
                blocks.append(members[0])
            else:
                part = slice(k, k + period)
                inner = _wrap(members, marks[part], shapes[part])
                blocks.append(DrawnBox(_between(members[0].label, members[-1].label), None, inner))
        label = _between(blocks[0].label, blocks[-1].label)
        result.append(DrawnBox(label, None, blocks, count))
        at = start + period * count
    return result + boxes[at:]


_TO = " \N{HORIZONTAL ELLIPSIS} "


def _between(first: str, last: str) -> str:
    first, last = first.partition(_TO)[0], last.rpartition(_TO)[2]
    return first if first == last else f"{first}{_TO}{last}"


def _runs(
    marks: list[int], shapes: list[int], single: Sequence[bool]
) -> list[tuple[int, int, int]]:
    """Find consecutive repeated blocks: start, length and count; the longest runs have priority.

    The first block of a run may use other tensors: it only has the shapes of the others.
    """
    import numpy as np

    if len(marks) < LEAST_REPEATS or len(set(marks)) == len(marks):
        return []
    row = np.array(marks)
    found: list[tuple[int, int, int, int]] = []
    for period in range(1, min(MAX_PERIOD, len(marks) // LEAST_REPEATS) + 1):
        same = np.concatenate(([False], row[period:] == row[:-period], [False]))
        edges = np.flatnonzero(np.diff(same.astype(np.int8)))
        for start, stop in zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True):
            count = (stop - start) // period + 1
            before = start - period
            if before >= 0 and shapes[before:start] == shapes[start : start + period]:
                start, count = before, count + 1
            least = LEAST_SINGLE_REPEATS if period == 1 and single[start] else LEAST_REPEATS
            if count >= least:
                found.append((-count * period, period, start, count))
    taken = np.zeros(len(marks), bool)
    chosen = []
    for length, period, start, count in sorted(found):
        if not taken[start : start - length].any():
            taken[start : start - length] = True
            chosen.append((start, period, count))
    return sorted(chosen)


def _components(links: list[list[int]]) -> list[list[int]]:
    """Find the strongly connected components of a graph, without recursion.

    Source: R. Tarjan, Depth-first search and linear graph algorithms, 1972.
    """
    numbers = [-1] * len(links)
    low = [0] * len(links)
    on_stack = [False] * len(links)
    stack: list[int] = []
    found: list[list[int]] = []
    count = 0
    for root in range(len(links)):
        if numbers[root] >= 0:
            continue
        work = [(root, 0)]
        while work:
            node, at = work.pop()
            if at == 0:
                numbers[node] = low[node] = count
                count += 1
                stack.append(node)
                on_stack[node] = True
            elif low[links[node][at - 1]] < low[node]:
                low[node] = low[links[node][at - 1]]
            for k in range(at, len(links[node])):
                target = links[node][k]
                if numbers[target] < 0:
                    work.append((node, k + 1))
                    work.append((target, 0))
                    break
                if on_stack[target]:
                    low[node] = min(low[node], numbers[target])
            else:
                if low[node] == numbers[node]:
                    part = []
                    while True:
                        last = stack.pop()
                        on_stack[last] = False
                        part.append(last)
                        if last == node:
                            break
                    found.append(part)
    return found
