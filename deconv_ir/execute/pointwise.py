"""Fusion of chains and small trees of elementwise layers into compiled programs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from deconv_ir.execute.joined import Joined, LayerGroup, Member, users_of, with_groups
from deconv_ir.execute.prepare import PreparedModel
from deconv_ir.ir.dtypes import Array, ElementType
from deconv_ir.ir.graph import Source
from deconv_ir.ir.operation import Context, Infos, LayerPlan, TensorInfo
from deconv_ir.ir.record import field
from deconv_ir.ir.shapes import Shape, static

if TYPE_CHECKING:
    from deconv_ir.kernels.pointwise import PointwiseProgram

_TYPES = ("f32", "f16", "bf16", "boolean")
_MOST_RANK = 8


class Pointwise(Joined):
    """Elementwise layers that one program computes."""

    program: PointwiseProgram = field()

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
        self.program.run(inputs, out)

    def plan(self, inputs: Infos, outputs: Infos, context: Context) -> LayerPlan:
        """Fix the shape of the output."""
        return _PointwisePlan(self.program, static(outputs[0].shape))

    def scratch(self, inputs: Infos, outputs: Infos, context: Context) -> int:
        """Count the registers of all threads."""
        from deconv_ir.kernels import get_threads

        return self.program.scratch_bytes * get_threads()

    def work(self, inputs: Infos, output: TensorInfo) -> int | None:
        """Count the operations of all layers."""
        counts = [member.operation.work([output, output], output) for member in self.members]
        known = [count for count in counts if count is not None]
        return sum(known) if len(known) == len(counts) else None


class _PointwisePlan(LayerPlan):
    def __init__(self, program: PointwiseProgram, shape: tuple[int, ...]) -> None:
        self._program = program
        self._shape = shape
        super().__init__(self._compute)

    def _compute(self, inputs: Sequence[Array], out: Array | None) -> Sequence[Array]:
        if out is None:
            from deconv_ir.kernels import empty

            out = empty(self._shape, self._program.dtype)
        self._program.run(inputs, out)
        return (out,)

    def bind(self, inputs: Sequence[Array], out: Array) -> Callable[[], object]:
        return self._program.bind(inputs, out)


def join_layers(
    prepared: PreparedModel, wanted: Sequence[Source], infos: Sequence[Infos]
) -> PreparedModel:
    """Join the layers of attentions, then elementwise layers, if compiled code supports them.

    No other layer may need their intermediate results, and layers that are fused into a kernel stay
    with it.  Layers keep their indices.
    """
    from deconv_ir.kernels.runtime.extension import compiled_module

    if compiled_module() is None:
        return prepared
    if prepared.graph.of_type("SoftMax"):
        from deconv_ir.execute.attention import join_attention

        prepared = join_attention(prepared, wanted, infos)
    return with_groups(prepared, _Grouping(prepared, wanted, infos).group().values())


class _Grouping:
    def __init__(
        self,
        prepared: PreparedModel,
        wanted: Sequence[Source],
        infos: Sequence[Infos],
    ) -> None:
        self.graph = prepared.graph
        self.infos = infos
        self.constants = prepared.constants
        self.free = [index for index in prepared.steps if index not in prepared.kernels]
        self.sources = self.graph.topology.sources
        self.place = {index: at for at, index in enumerate(prepared.steps)}
        self.users = users_of(prepared)
        self.wanted = set(wanted)

    def group(self) -> Mapping[int, LayerGroup]:
        """Return the groups by their roots; each layer joins the groups before it if possible."""
        groups: dict[int, LayerGroup] = {}
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

    def _may_move(self, group: LayerGroup, index: int) -> bool:
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

    def _compiled(self, layers: tuple[int, ...]) -> LayerGroup | None:
        """Compile layers as one program; None if that is not possible."""
        from deconv_ir.kernels.pointwise import PointwiseExpression

        inside = set(layers)
        rows = [[s for s in self.sources[index] if s is not None] for index in layers]
        inputs = tuple(dict.fromkeys(s for row in rows for s in row if s[0] not in inside))
        if not all(map(self._is_float, inputs)):
            return None
        expression = PointwiseExpression()
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
        return LayerGroup(layers, inputs, Pointwise(members=tuple(members), program=program))

    def _is_float(self, source: Source) -> bool:
        info = self.infos[source[0]][source[1]]
        if info.element_type is None or info.element_type.name not in _TYPES:
            return False
        return info.shape is not None and len(info.shape) <= _MOST_RANK

    def _dtype(self, source: Source) -> Any:
        element_type = self.infos[source[0]][source[1]].element_type
        assert element_type is not None, "the caller has seen that it is one"
        return element_type.numpy()
