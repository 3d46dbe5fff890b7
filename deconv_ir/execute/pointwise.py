"""Joins chains and small trees of elementwise layers, each computed by one compiled program."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from deconv_ir.execute.prepare import Prepared
from deconv_ir.ir.boxes import Box, Boxes, LayerTile, hull
from deconv_ir.ir.dtypes import Array, ElementType
from deconv_ir.ir.graph import Layer, Source, rewire
from deconv_ir.ir.operation import Call, Context, Infos, Operation, TensorInfo
from deconv_ir.ir.record import NamedTuple, field
from deconv_ir.ir.shapes import Shape, static

if TYPE_CHECKING:
    from deconv_ir.kernels.pointwise import Program

_TYPES = ("f32", "f16", "bf16", "boolean")
_MOST_RANK = 8


class Member(NamedTuple):
    """A layer of a program."""

    name: str
    type: str
    """Of the layer."""
    operation: Operation
    operands: tuple[int, ...]
    """Inputs of the program, counted from 0, then its earlier members."""


class Pointwise(Operation):
    """Elementwise layers that one program computes; the last one's output is its output."""

    checks_values = False

    members: tuple[Member, ...] = field()
    program: Program = field()

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        """Infer each layer in turn."""
        infos = list(inputs)
        for member in self.members:
            infos += member.operation.infer([infos[i] for i in member.operands], context)
        return (infos[-1],)

    def accepts_out(self, inputs: Infos, output: TensorInfo) -> bool:
        """Write to an array."""
        return True

    def overwritable(self, inputs: Infos, output: TensorInfo) -> tuple[int, ...]:
        """Overwrite an input of the output's shape."""
        return tuple(i for i, info in enumerate(inputs) if info.shape == output.shape)

    def execute(self, inputs: Sequence[Array], context: Context) -> Sequence[Array]:
        """Run the program."""
        from deconv_ir.kernels import empty
        from deconv_ir.ops.values import actual

        types: list[ElementType | None] = [None] * len(inputs)
        (info,) = self.infer(list(map(actual, inputs, types)), context)
        out = empty(static(info.shape), self.program.dtype)
        self.execute_into(inputs, context, out)
        return (out,)

    def execute_into(self, inputs: Sequence[Array], context: Context, out: Array) -> None:
        """Run the program."""
        self.program.bind()(inputs, out)

    def bind(self, inputs: Infos, outputs: Infos, context: Context) -> Call:
        """Fix the shape of the output, and the number of threads."""
        from deconv_ir.kernels import empty

        run, shape, dtype = self.program.bind(), static(outputs[0].shape), self.program.dtype

        def call(arrays: Sequence[Array], out: Array | None) -> Sequence[Array]:
            if out is None:
                out = empty(shape, dtype)
            run(arrays, out)
            return (out,)

        return call

    def tile(self, boxes: Boxes, inputs: Infos, outputs: Infos, context: Context) -> LayerTile:
        """Find the boxes of the inputs by the layers, last to first."""
        infos = list(inputs)
        for member in self.members:
            infos += member.operation.infer([infos[i] for i in member.operands], context)
        needed: list[list[Box]] = [[] for _ in infos]
        needed[-1] = [box for box in boxes if box is not None]
        for at, member in reversed(list(enumerate(self.members, len(inputs)))):
            given = [infos[i] for i in member.operands]
            tile = member.operation.tile([hull(needed[at])], given, [infos[at]], context)
            for i, box in zip(member.operands, tile.inputs, strict=True):
                if box is not None:
                    needed[i].append(box)
        return LayerTile(tuple(map(hull, needed[: len(inputs)])), self)

    def scratch(self, inputs: Infos, outputs: Infos, context: Context) -> int:
        """Count the registers of all threads."""
        from deconv_ir.kernels import get_threads

        return self.program.scratch_bytes * get_threads()

    def work(self, inputs: Infos, output: TensorInfo) -> int | None:
        """Count the operations of all layers."""
        counts = [member.operation.work([output, output], output) for member in self.members]
        known = [count for count in counts if count is not None]
        return sum(known) if len(known) == len(counts) else None


def joined_layers(layer: Layer) -> tuple[str, ...]:
    """Return the names of the layers that a layer computes beside its own."""
    members: tuple[Member, ...] = getattr(layer.operation, "members", ())
    return tuple(member.name for member in members[:-1])


def join_pointwise(
    prepared: Prepared, wanted: Sequence[Source], infos: Sequence[Infos]
) -> Prepared:
    """Join elementwise layers where no other layer needs what is between them.

    Layers that a kernel has taken over stay with it.  Layers keep their indices:
    the last one of a program stands for all of it.
    """
    from deconv_ir.kernels.runtime.extension import compiled_module

    if compiled_module() is None:
        return prepared
    graph = prepared.graph
    groups = _Grouping(prepared, wanted, infos).group()
    layers, sources = list(graph.layers), list(graph.topology.sources)
    inner: set[int] = set()
    for root, group in groups.items():
        kinds = "+".join(member.type for member in group.operation.members)
        layers[root] = layers[root]._replace(operation=group.operation, type=kinds)
        sources[root] = group.inputs
        inner.update(group.layers[:-1])
    steps = tuple(index for index in prepared.steps if index not in inner)
    return prepared._replace(graph=rewire(graph, layers, sources), steps=steps)


class _Group(NamedTuple):
    """Layers that one program computes, in order; the last one makes its output."""

    layers: tuple[int, ...]
    inputs: tuple[Source, ...]
    operation: Pointwise


class _Grouping:
    def __init__(
        self,
        prepared: Prepared,
        wanted: Sequence[Source],
        infos: Sequence[Infos],
    ) -> None:
        self.graph = prepared.graph
        self.infos = infos
        self.constants = prepared.constants
        self.free = [index for index in prepared.steps if index not in prepared.kernels]
        self.sources = self.graph.topology.sources
        self.place = {index: at for at, index in enumerate(prepared.steps)}
        self.users: dict[Source, set[int]] = {}
        for index in prepared.steps:
            for source in self.sources[index]:
                if source is not None:
                    self.users.setdefault(source, set()).add(index)
        self.wanted = set(wanted)

    def group(self) -> Mapping[int, _Group]:
        """Return the groups by their roots; each layer joins those before it where it can."""
        groups: dict[int, _Group] = {}
        for index in self.free:
            group = self._compiled((index,))
            if group is None:
                continue
            for source in dict.fromkeys(self.sources[index]):
                before = None if source is None else groups.get(source[0])
                if source is None or before is None or not self._may_move(before, index):
                    continue
                # In order, so that each comes after its operands.
                layers = tuple(sorted({*before.layers, *group.layers}, key=self.place.__getitem__))
                larger = self._compiled(layers)
                if larger is not None:
                    group = larger
                    del groups[source[0]]
            groups[index] = group
        return groups

    def _may_move(self, group: _Group, index: int) -> bool:
        """Whether a group may be computed with a layer that uses its output, not before."""
        root = group.layers[-1]
        shape, after = self.infos[root][0].shape, self.infos[index][0].shape
        if self.users[root, 0] != {index} or (root, 0) in self.wanted or shape != after:
            return False
        between = range(self.place[root] + 1, self.place[index])
        if len(between) == 0:
            return True
        # Its inputs stay alive until then, instead of its output.
        alive = [s for s in group.inputs if s not in self.constants and self._shape(s) == shape]
        return len(alive) <= 1

    def _shape(self, source: Source) -> Shape:
        return self.infos[source[0]][source[1]].shape

    def _compiled(self, layers: tuple[int, ...]) -> _Group | None:
        """Compile layers as one program; None where that cannot be."""
        from deconv_ir.kernels.pointwise import Expression

        inside = set(layers)
        rows = [[s for s in self.sources[index] if s is not None] for index in layers]
        inputs = tuple(dict.fromkeys(s for row in rows for s in row if s[0] not in inside))
        if not all(map(self._is_float, inputs)):
            return None
        expression = Expression()
        values: dict[Source, int] = {}
        numbers: dict[Source, int] = {}
        for number, source in enumerate(inputs):
            values[source] = expression.input(self._dtype(source))
            numbers[source] = number
        members: list[Member] = []
        for index, row in zip(layers, rows, strict=True):
            layer, made = self.graph.layers[index], (index, 0)
            given = [self.infos[s[0]][s[1]] for s in row]
            value = None
            if len(self.infos[index]) == 1 and self._is_float(made):
                value = layer.operation.compile(expression, [values[s] for s in row], given)
            if value is None:
                return None
            values[made], numbers[made] = value, len(inputs) + len(members)
            operands = tuple(numbers[s] for s in row)
            members.append(Member(layer.name, layer.type, layer.operation, operands))
        root = (layers[-1], 0)
        program = expression.program(values[root], self._dtype(root))
        if program is None:
            return None
        return _Group(layers, inputs, Pointwise(members=tuple(members), program=program))

    def _is_float(self, source: Source) -> bool:
        info = self.infos[source[0]][source[1]]
        if info.element_type is None or info.element_type.name not in _TYPES:
            return False
        return info.shape is not None and len(info.shape) <= _MOST_RANK

    def _dtype(self, source: Source) -> Any:
        element_type = self.infos[source[0]][source[1]].element_type
        assert element_type is not None, "the caller has seen that it is one"
        return element_type.numpy()
