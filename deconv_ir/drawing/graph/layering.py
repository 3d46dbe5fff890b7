"""Rows and order of the boxes within each group: longest-path layering, then barycentres.

Source: K. Sugiyama, S. Tagawa and M. Toda, Methods for visual understanding of hierarchical
system structures, 1981.  Tensors that cross rows get a separate place in each row, unless there are
too many.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from deconv_ir.drawing.graph.blocks import DrawnBox
from deconv_ir.drawing.graph.bodies import Flat

SWEEPS = 4
"""Number of passes over the rows that order boxes by their neighbours."""

NOWHERE = -1
"""In place of a box: a tensor ends at the border of a group."""

Link = tuple[int, int, int]
"""A tensor, the entry that it leaves, and the entry that it enters."""


class Level(NamedTuple):
    """One group, laid out but not yet measured."""

    boxes: list[int]
    """Number of each box of the group.  Entries are numbered: first the boxes, then incoming
    tensors, outgoing tensors, and tensors that cross a row.
    """
    inputs: list[int]
    outputs: list[int]
    """Tensors that cross the group's border."""
    rows: list[list[int]]
    """Entries from left to right, top to bottom."""
    links: list[Link]
    """Lines between entries of different rows, each pointing down."""


class Scene(NamedTuple):
    """All boxes of a drawing."""

    boxes: list[DrawnBox]
    """The first is the outermost."""
    levels: dict[int, Level]
    """Number of a group -> its `Level`."""
    tensors: list[tuple[int, int]]
    """The tensors of lines: index of the layer and of its output."""


def arrange(flat: Flat) -> Scene:
    """Lay out every group of a drawing separately."""
    graph, flow = flat.graph, flat.flow
    boxes: list[DrawnBox] = []
    parents: list[int] = []
    number_of: dict[int, int] = {}  # of the box of a layer
    stack = [(flat.outermost, -1)]
    while stack:
        box, parent = stack.pop()
        number = len(boxes)
        boxes.append(box)
        parents.append(parent)
        if box.layer is not None:
            number_of[box.layer] = number
        stack += [(child, number) for child in reversed(box.children)]
    members: dict[int, list[int]] = {
        n: [] for n, box in enumerate(boxes) if box.layer is None or box.children
    }
    for number, parent in enumerate(parents):
        if parent >= 0:
            members[parent].append(number)
    wires = _Wires(members)
    tensors: dict[tuple[int, int], int] = {}
    rank = {layer: k for k, layer in enumerate(flow.order)}
    for index in flow.order:
        for port, source in enumerate(graph.topology.sources[index]):
            # On a cycle, a line that would point up is left out.
            if source is None or source[0] in flow.hidden or rank[source[0]] >= rank[index]:
                continue
            tensor = tensors.setdefault(source, len(tensors))
            # In and out of a layer with bodies, tensors lead to their Parameters and Results.
            for start in flat.exits.get(source, [source[0]]):
                for end in flat.entries.get((index, port), [index]):
                    wires.connect(tensor, number_of[start], number_of[end], parents)
    levels = {n: _level(members[n], wires, n) for n in members}
    return Scene(boxes, levels, list(tensors))


class _Wires:
    """The tensors that cross each box, group by group, without duplicates."""

    def __init__(self, groups: dict[int, list[int]]) -> None:
        self.inner: dict[int, dict[Link, None]] = {n: {} for n in groups}
        self.inputs: dict[int, dict[tuple[int, int], None]] = {n: {} for n in groups}
        self.outputs: dict[int, dict[tuple[int, int], None]] = {n: {} for n in groups}

    def connect(self, tensor: int, start: int, end: int, parents: Sequence[int]) -> None:
        """Lead a tensor out of the groups of its producer and into those of its consumer.

        Where an end is a layer whose bodies do not use the tensor, it ends at the border.
        """
        if start in self.outputs:
            self.outputs[start][tensor, NOWHERE] = None
        if end in self.inputs:
            self.inputs[end][tensor, NOWHERE] = None
        above = [end]
        while parents[above[-1]] >= 0:
            above.append(parents[above[-1]])
        # A box has a higher number than the groups around it.
        at = {parents[box]: box for box in above[:-1]}
        box = start
        while parents[box] not in at:
            self.outputs[parents[box]][tensor, box] = None
            box = parents[box]
        group = parents[box]
        self.inner[group][tensor, box, at[group]] = None
        group = at[group]
        while group in at:
            self.inputs[group][tensor, at[group]] = None
            group = at[group]


def _level(boxes: list[int], wires: _Wires, group: int) -> Level:
    entry = {box: k for k, box in enumerate(boxes)}
    into, out = wires.inputs[group], wires.outputs[group]
    inputs = list(dict.fromkeys(tensor for tensor, _ in into))
    outputs = list(dict.fromkeys(tensor for tensor, _ in out))
    first_input, first_output = len(boxes), len(boxes) + len(inputs)
    input_of = {tensor: first_input + k for k, tensor in enumerate(inputs)}
    output_of = {tensor: first_output + k for k, tensor in enumerate(outputs)}
    links = [(tensor, entry[a], entry[b]) for tensor, a, b in wires.inner[group]]
    links += [(tensor, input_of[tensor], entry[b]) for tensor, b in into if b != NOWHERE]
    links += [(tensor, entry[a], output_of[tensor]) for tensor, a in out if a != NOWHERE]
    rows_of = _rows(len(boxes), inputs, outputs, links)
    rows, links = _pass_rows(rows_of, links)
    _order(rows, links)
    return Level(boxes, inputs, outputs, rows, links)


def _rows(count: int, inputs: list[int], outputs: list[int], links: list[Link]) -> list[int]:
    """Return the row of each entry: the longest path from the top.

    Boxes are in topological order, so their links go from lower to higher numbers.
    """
    total = count + len(inputs) + len(outputs)
    top = 1 if inputs else 0
    rows = [top] * count + [0] * len(inputs) + [top] * len(outputs)
    below: list[list[int]] = [[] for _ in range(total)]
    has_source = [False] * total
    for _, a, b in links:
        below[a].append(b)
        has_source[b] = True
    for a in range(count):
        for b in below[a]:
            rows[b] = max(rows[b], rows[a] + 1)
    # A layer without inputs is placed directly above its user, not at the top.
    for a in range(count):
        if not has_source[a] and below[a]:
            rows[a] = min(rows[b] for b in below[a]) - 1
    last = max(rows, default=0)
    for k in range(count + len(inputs), total):
        rows[k] = last
    if outputs and any(rows[k] == last for k in range(count)):
        for k in range(count + len(inputs), total):
            rows[k] = last + 1
    return rows


def _pass_rows(rows_of: list[int], links: list[Link]) -> tuple[list[list[int]], list[Link]]:
    """Give tensors that cross rows a place in each row, the shortest ones first."""
    height = max(rows_of, default=-1) + 1
    rows: list[list[int]] = [[] for _ in range(height)]
    for entry, row in enumerate(rows_of):
        rows[row].append(entry)
    budget = 3 * len(rows_of) + 500
    reach: dict[tuple[int, int], int] = {}
    for tensor, a, b in links:
        reach[tensor, a] = max(reach.get((tensor, a), 0), rows_of[b])
    passing: dict[tuple[int, int], int] = {}  # first entry of each tensor's places
    total = len(rows_of)
    found: list[Link] = []
    for (tensor, a), last in sorted(reach.items(), key=lambda item: item[1] - rows_of[item[0][1]]):
        needed = last - rows_of[a] - 1
        if needed < 1 or needed > budget:
            continue
        budget -= needed
        passing[tensor, a] = total
        for k in range(needed):
            rows[rows_of[a] + 1 + k].append(total + k)
            found.append((tensor, a if k == 0 else total + k - 1, total + k))
        total += needed
    for tensor, a, b in links:
        between = rows_of[b] - rows_of[a] - 1
        start = passing.get((tensor, a))
        found.append((tensor, a if start is None or not between else start + between - 1, b))
    return rows, found


def _order(rows: list[list[int]], links: list[Link]) -> None:
    """Order each row by the positions of neighbours, alternately down and up."""
    if all(len(row) < 2 for row in rows):
        return
    total = 1 + max((max(row) for row in rows if row), default=0)
    above: list[list[int]] = [[] for _ in range(total)]
    below: list[list[int]] = [[] for _ in range(total)]
    for _, a, b in links:
        below[a].append(b)
        above[b].append(a)
    place = [0.0] * total
    for row in rows:
        for k, entry in enumerate(row):
            place[entry] = (k + 0.5) / len(row)
    for sweep in range(SWEEPS):
        neighbours = below if sweep % 2 else above
        for row in reversed(rows) if sweep % 2 else rows:
            if len(row) < 2:
                continue
            mean = {
                entry: sum(place[n] for n in near) / len(near) if near else place[entry]
                for entry in row
                for near in (neighbours[entry],)
            }
            row.sort(key=mean.__getitem__)
            for k, entry in enumerate(row):
                place[entry] = (k + 0.5) / len(row)
