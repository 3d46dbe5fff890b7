"""Fusion of attention: two products, with SoftMax, a scale and a mask between them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import NamedTuple

from deconv_ir.execute.joined import Joined, LayerGroup, Member, users_of, with_groups
from deconv_ir.execute.prepare import PreparedModel
from deconv_ir.ir.dtypes import F32, Array
from deconv_ir.ir.graph import Layer, Source
from deconv_ir.ir.operation import Arrays, Context, Infos, Operation, TensorInfo
from deconv_ir.ir.record import field
from deconv_ir.ir.shapes import element_count, static
from deconv_ir.ops.base import TakesOut
from deconv_ir.ops.elementwise.broadcasting import BroadcastRule

_MOST_SCALE = 1e6


class Attention(TakesOut, Joined):
    """softmax(query key * scale + mask) value, with the scores of few queries in memory at once."""

    scale: float = field()
    mask: int | None = field()
    """Index of the input that is added to the scores."""
    matrices: tuple[int, int, int] = field()
    """Indices of the inputs that are queries, keys and values."""
    transposed: tuple[bool, bool, bool] = field()
    """Whether the columns, not the rows, of each are its queries, keys or values."""

    def compute(self, inputs: Arrays, context: Context, out: Array | None) -> Array:
        """Compute the attention in one kernel, or else layer by layer."""
        from deconv_ir.kernels.products import attend

        query, key, value, mask = self._operands(inputs)
        found = attend(query, key, value, self.scale, mask, out)
        if found is not None:
            return found
        arrays: list[Array] = list(inputs)
        for member in self.members:
            arrays += member.operation.execute([arrays[i] for i in member.operands], context)
        return arrays[-1]

    def bind_arrays(self, inputs: Arrays, out: Array) -> Callable[[], object] | None:
        """Bind the kernel, if it is compiled."""
        from deconv_ir.kernels.products import bind_attention

        query, key, value, mask = self._operands(inputs)
        bound = bind_attention(query, key, value, self.scale, mask, out)
        return None if bound is None or bound[0] is not out else bound[1]

    def _operands(self, inputs: Arrays) -> tuple[Array, Array, Array, Array | None]:
        """Return queries, keys and values, a row each, and the mask."""
        query, key, value = (
            inputs[i].swapaxes(-1, -2) if transposed else inputs[i]
            for i, transposed in zip(self.matrices, self.transposed, strict=True)
        )
        return query, key, value, None if self.mask is None else inputs[self.mask]

    def scratch(self, inputs: Infos, outputs: Infos, context: Context) -> int:
        """Count the scores that are in memory at once."""
        from deconv_ir.kernels.products import attention_bytes

        *stack, queries, keys = static(self.infer_all(inputs, context)[len(inputs)].shape)
        depth = static(inputs[self.matrices[0]].shape)[-2 if self.transposed[0] else -1]
        found = attention_bytes(queries, depth, keys, static(outputs[0].shape)[-1])
        return 2 * 4 * element_count((*stack, queries, keys)) if found is None else found

    def work(self, inputs: Infos, output: TensorInfo) -> int | None:
        """Count the operations of both products."""
        infos = self.infer_all(inputs, Context())
        first, last = self.members[0], self.members[-1]
        counts = [
            member.operation.work([infos[i] for i in member.operands], made)
            for member, made in ((first, infos[len(inputs)]), (last, output))
        ]
        return None if None in counts else sum(count or 0 for count in counts)


def join_attention(
    prepared: PreparedModel, wanted: Sequence[Source], infos: Sequence[Infos]
) -> PreparedModel:
    """Join products, scale, mask and SoftMax in f32, see `join_layers`."""
    finder = _Finder(prepared, wanted, infos)
    found = [
        finder.around(i) for i in prepared.steps if _is_of_openvino(finder.layers[i], "SoftMax")
    ]
    return with_groups(prepared, [group for group in found if group is not None])


class _Scores(NamedTuple):
    """The layers from the first product to the one before SoftMax."""

    layers: tuple[int, ...]
    scale: float
    mask: Source | None


class _Finder:
    def __init__(
        self, prepared: PreparedModel, wanted: Sequence[Source], infos: Sequence[Infos]
    ) -> None:
        self.constants, self.kernels, self.infos = prepared.constants, prepared.kernels, infos
        self.layers, self.sources = prepared.graph.layers, prepared.graph.topology.sources
        self.users = users_of(prepared)
        self.wanted = set(wanted)

    def around(self, softmax: int) -> LayerGroup | None:
        """Return the layers around a SoftMax, if they are an attention."""
        users = self.users.get((softmax, 0), set())
        scores, last = self._scores(self.sources[softmax][0]), min(users, default=softmax)
        if scores is None or not self._is_product(last):
            return None
        layers = (*scores.layers, softmax, last)
        if not all(self._is_only_user(*pair) for pair in itertools.pairwise(layers)):
            return None
        rank = len(self.infos[softmax][0].shape or ())
        axis = getattr(self.layers[softmax].operation, "axis", 0)
        if rank < 2 or axis not in (-1, rank - 1) or self.sources[last][0] != (softmax, 0):
            return None
        return self._group(layers, scores)

    def _group(self, layers: tuple[int, ...], scores: _Scores) -> LayerGroup | None:
        """Return layers as one step, if their inputs are matrices in f32."""
        rows = [[s for s in self.sources[index] if s is not None] for index in layers]
        inputs = tuple(dict.fromkeys(s for row in rows for s in row if s[0] not in layers))
        operands = {source: i for i, source in enumerate(inputs)}
        given = (*rows[0], rows[-1][1])
        if not operands.keys() >= set(given) or not all(
            self._is_f32(s, 2 if s in given else 0) for s in inputs
        ):
            return None
        members: list[Member] = []
        for index, row in zip(layers, rows, strict=True):
            layer = self.layers[index]
            members.append(
                Member(layer.name, layer.type, layer.operation, tuple(operands[s] for s in row))
            )
            operands[index, 0] = len(inputs) + len(members) - 1
        before, after = (_transposed(self.layers[i].operation) for i in (layers[0], layers[-1]))
        operation = Attention(
            members=tuple(members),
            scale=scores.scale,
            mask=None if scores.mask is None else operands[scores.mask],
            matrices=(operands[given[0]], operands[given[1]], operands[given[2]]),
            transposed=(before[0], not before[1], after[1]),
        )
        return LayerGroup(layers, inputs, operation)

    def _scores(self, source: Source | None) -> _Scores | None:
        """Return the layers that compute scores: a product, optionally a scale and a mask."""
        added = self._operands(source, "Add")
        if source is None or added is None:
            return self._scaled(source)
        for product, mask in (added, added[::-1]):
            found = self._scaled(product)
            if found is not None:
                return _Scores((*found.layers, source[0]), found.scale, mask)
        return None

    def _scaled(self, source: Source | None) -> _Scores | None:
        """Return a product, and the layer that multiplies it by a number, if any."""
        if source is None or source in self.constants:
            return None
        if self._is_product(source[0]):
            return _Scores((source[0],), 1.0, None)
        divided = self._operands(source, "Divide")
        product, factor = divided or self._operands(source, "Multiply") or (None, None)
        if product in self.constants and divided is None:
            product, factor = factor, product
        number = None if factor is None else self.constants.get(factor)
        if product is None or product in self.constants or not self._is_product(product[0]):
            return None
        rank = len(self.infos[product[0]][0].shape or ())
        if number is None or number.size != 1 or number.ndim > rank:
            return None
        scale = float(number.item())
        # The kernel multiplies keys instead of scores.
        if not 1 / _MOST_SCALE <= abs(scale) <= _MOST_SCALE:
            return None
        return _Scores((product[0], source[0]), 1 / scale if divided else scale, None)

    def _operands(self, source: Source | None, type_name: str) -> tuple[Source, Source] | None:
        """Return the inputs of the elementwise layer that computes a tensor, if its kind fits."""
        if source is None or source in self.constants or self.layers[source[0]].type != type_name:
            return None
        if (
            getattr(self.layers[source[0]].operation, "auto_broadcast", None)
            is not BroadcastRule.NUMPY
        ):
            return None
        left, right = self.sources[source[0]]
        return None if left is None or right is None else (left, right)

    def _is_product(self, index: int) -> bool:
        return index not in self.kernels and _is_of_openvino(self.layers[index], "MatMul")

    def _is_only_user(self, index: int, user: int) -> bool:
        """Whether a layer is the only user of another's output."""
        return self.users.get((index, 0)) == {user} and (index, 0) not in self.wanted

    def _is_f32(self, source: Source, rank: int) -> bool:
        info = self.infos[source[0]][source[1]]
        return info.element_type is F32 and info.shape is not None and len(info.shape) >= rank


def _is_of_openvino(layer: Layer, type_name: str) -> bool:
    """Whether a layer is OpenVINO's operation; oneDNN's may have a bias or other modes."""
    return layer.type == type_name and bool(layer.operation.versions)


def _transposed(product: Operation) -> tuple[bool, bool]:
    """Return whether a MatMul transposes its inputs."""
    return bool(getattr(product, "transpose_a", False)), bool(
        getattr(product, "transpose_b", False)
    )
