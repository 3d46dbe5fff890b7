"""Einsum-7 and ScaledDotProductAttention-13: products of many axes."""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from deconv_ir.errors import ShapeError
from deconv_ir.ir.dtypes import BOOLEAN, F64, Array
from deconv_ir.ir.geometry import UNKNOWN, Dim
from deconv_ir.ir.operation import Arrays, Context, Infos, Operation, TensorInfo
from deconv_ir.ir.shapes import Shape, element_count, format_shape, intersect_dims, static
from deconv_ir.ops.base import TakesOut, attribute, boolean, operation, text
from deconv_ir.ops.checks import (
    check_least_rank,
    check_single,
    merged_type,
    only,
    shape_misfit,
)
from deconv_ir.ops.elementwise.broadcasting import (
    BroadcastRule,
    broadcast_dim,
    broadcast_shapes,
    broadcasts_to,
)
from deconv_ir.ops.numeric import narrow, np, widen

if TYPE_CHECKING:
    from deconv_ir.ops.allowance import Bounds, Case

_MOST_KEPT_SCORES = 1 << 16
"""Of a causal mask that is kept for further runs."""
_MOST_SCORES = 1 << 18
"""At once, where excluded scores are not finite."""
_LABELS = r"[A-Za-z]*(?:\.\.\.[A-Za-z]*)?"  # none of a scalar
_EQUATION = re.compile(rf"(?a:{_LABELS}(?:,{_LABELS})*(?:->{_LABELS})?)")


@operation(
    "Einsum-7(inputs...)",
    "f32[2,3,4], f32[2,4,5] -> f32[2,3,5] | equation=bij,bjk->bik",
    "f32[2,3,3] -> f32[2] | equation=...ii->...",
)
class Einsum(Operation):
    """Sum of products by Einstein's convention."""

    scratch_ratios = (0, 1)

    equation: str = attribute(text())

    @property
    def in_order(self) -> bool:
        """NumPy chooses an order."""
        return False

    def subscripts(self, count: int) -> tuple[list[str], str]:
        """Split the equation into the labels of each input, and of the output."""
        written = self.equation.replace(" ", "")
        if not _EQUATION.fullmatch(written):
            message = f"equation {self.equation!r} is not of the form 'ij,jk->ik'"
            raise ShapeError(message, attribute="equation", actual=self.equation, rule="einsum")
        left, arrow, right = written.partition("->")
        parts = left.split(",")
        if len(parts) != count:
            message = f"equation {self.equation!r} is for {len(parts)} inputs, there are {count}"
            raise ShapeError(
                message, attribute="equation", expected=len(parts), actual=count, rule="input-count"
            )
        if not arrow:
            letters = left.replace(",", "").replace(".", "")
            once = sorted(c for c in set(letters) if letters.count(c) == 1)
            right = ("..." if "..." in left else "") + "".join(once)
        return parts, right

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        names = [f"input {i}" for i in range(len(inputs))]
        element_type = merged_type(inputs, names, "numeric")
        parts, right = self.subscripts(len(inputs))
        open_rank = any(
            info.shape is None and "..." in labels
            for info, labels in zip(inputs, parts, strict=True)
        )
        if open_rank and "..." in right:
            return (TensorInfo(None, element_type),)
        return (TensorInfo(_known(parts, right, inputs), element_type),)

    def explain(self, inputs: Infos, context: Context, output: int, axis: int) -> str | None:
        shapes = ", ".join(format_shape(info.shape) for info in inputs)
        return f"equation {self.equation!r} for {shapes}"

    def allowance(self, case: Case) -> Bounds | None:
        from deconv_ir.ops.allowance import sums

        taken = max(data.size for data in case.inputs) / max(1, case.outputs[0].size)
        return sums(case, max(1, taken))

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        equation = self.equation.replace(" ", "")
        with np.errstate(all="ignore"):
            result = np.einsum(equation, *map(widen, inputs), optimize=True)
            return (narrow(result, inputs[0].dtype),)


def _known(parts: Sequence[str], right: str, inputs: Infos) -> Shape:
    """Match the dims of each label, and return them in the order of the output."""
    dims: dict[str, Dim] = {}
    ellipsis: Shape = ()
    for i, (labels, info) in enumerate(zip(parts, inputs, strict=True)):
        if info.shape is None:
            continue
        before, dots, after = labels.partition("...")
        named = len(before) + len(after)
        if named > len(info.shape) or (not dots and named != len(info.shape)):
            message = f"input {i} {format_shape(info.shape)} does not have the axes {labels!r}"
            raise ShapeError(
                message, expected=labels, actual=format_shape(info.shape), rule="einsum"
            )
        rest = len(info.shape) - len(after)
        ellipsis = broadcast_shapes(ellipsis, info.shape[len(before) : rest], BroadcastRule.NUMPY)
        pairs = [
            *zip(before, info.shape, strict=False),
            *zip(after, info.shape[rest:], strict=True),
        ]
        own: dict[str, Dim] = {}
        for label, dim in pairs:
            if label in own:  # a diagonal; between inputs, 1 is broadcast
                common = intersect_dims(own[label], dim)
            else:
                common = broadcast_dim(dims[label], dim) if label in dims else dim
            if common is None:
                message = f"label {label!r} is {own.get(label, dims[label])} and {dim}"
                raise ShapeError(
                    message, expected=own.get(label, dims[label]), actual=dim, rule="einsum"
                )
            dims[label] = common
            own.setdefault(label, dim)
    before, dots, after = right.partition("...")
    head, tail = ([dims.get(label, UNKNOWN) for label in part] for part in (before, after))
    return (*head, *((ellipsis or ()) if dots else ()), *tail)


@operation(
    "ScaledDotProductAttention-13(query, key, value, attention_mask?, scale?, sink?)",
    "f32[2,4,5,8], f32[2,4,6,8], f32[2,4,6,7] -> f32[2,4,5,7] | causal=true",
    "f32[2,5,8], f32[2,6,8], f32[2,6,7], f32[5,6], f32[] -> f32[2,5,7] | causal=false",
    "f32[1,2,5,8], f32[1,2,6,8], f32[1,2,6,7], f32[5,6], f32[], f32[1,2,1,1] -> f32[1,2,5,7]"
    " | causal=false",
)
class ScaledDotProductAttention(TakesOut):
    """softmax(query key^T * scale + mask) value; default `scale`: 1 / sqrt(last extent).

    `sink` is the score of one more key, whose value is 0.
    """

    scratch_ratios = (0.5, 1.75)

    formula = "query {shape[query]}, key {shape[key]}, value {shape[value]}"

    causal: bool = attribute(boolean())

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        element_type = merged_type(inputs[:3], self.inputs, "float")
        for info, name in zip(inputs[:3], self.inputs, strict=False):
            check_least_rank(info, name, 3)
        if len(inputs) > 4:
            check_single(inputs[4], "scale", "float")
        query, key, value = (info.shape for info in inputs[:3])
        if query is None or key is None or value is None:
            return (TensorInfo(None, element_type),)
        stack = broadcast_shapes(
            broadcast_shapes(query[:-2], key[:-2], BroadcastRule.NUMPY),
            value[:-2],
            BroadcastRule.NUMPY,
        )
        for a, b, what in (
            (query[-1], key[-1], "widths of query and key"),
            (key[-2], value[-2], "lengths of key and value"),
        ):
            if intersect_dims(a, b) is None:
                raise ShapeError(f"{what} differ: {a} and {b}", expected=a, actual=b, rule="sdpa")
        assert stack is not None, "all ranks are known"
        mask = inputs[3].shape if len(inputs) > 3 and not self.causal else None
        scores = (*stack, query[-2], key[-2])
        if mask is not None and not broadcasts_to(mask, scores):
            must = f"does not fit the scores of {query[-2]} queries and {key[-2]} keys,"
            raise shape_misfit("sdpa", "attention_mask", mask, must, scores)
        sink = inputs[5].shape if len(inputs) > 5 else None
        if sink is not None and not broadcasts_to(sink, (*stack, query[-2], 1)):
            must = "does not fit the scores of one more key,"
            raise shape_misfit("sdpa", "sink", sink, must, (*stack, query[-2], 1))
        return (TensorInfo((*stack, query[-2], value[-1]), element_type),)

    def allowance(self, case: Case) -> Bounds | None:
        from deconv_ir.ops.allowance import composed

        return composed(case, arguments=16)

    def scratch(self, inputs: Infos, outputs: Infos, context: Context) -> int:
        """Count the scores that are in memory at once, and a mask that is made for them.

        Where excluded scores are not finite, NumPy computes some rows again.
        """
        from deconv_ir.kernels.products import attention_bytes

        query, key = static(inputs[0].shape), static(inputs[1].shape)
        shape, in_f64 = static(outputs[0].shape), outputs[0].element_type is F64
        excluded, again = 0, 0
        if self.causal:
            excluded = query[-2] * key[-2]
        elif len(inputs) > 3 and inputs[3].element_type is BOOLEAN:
            excluded = element_count(static(inputs[3].shape))
        if excluded:
            again = 12 * max(_MOST_SCORES, key[-2]) + 4 * element_count(key[-2:])
        found = attention_bytes(query[-2], query[-1], key[-2], shape[-1])
        scores = (8 if in_f64 else 4) * element_count(shape[:-1]) * key[-2]
        taken = 3 * scores if found is None or in_f64 or len(inputs) > 5 else found + again
        return taken + 4 * excluded + super().scratch(inputs, outputs, context)

    def bind_arrays(self, inputs: Arrays, out: Array) -> Callable[[], object] | None:
        """Bind the kernel; a mask of one element, and a scale, are read in each run."""
        from deconv_ir.kernels.products import bind_attention

        query, key, value = inputs[:3]
        mask = inputs[3] if len(inputs) > 3 and not self.causal else None
        if len(inputs) > 5 or (mask is not None and mask.dtype == bool):
            return None
        added = None if mask is None or mask.size == 1 else mask
        if self.causal:
            added = _causal_mask(query.shape[-2], key.shape[-2])
        scale = _scale_of(inputs)
        bound = bind_attention(query, key, value, scale, added, out)
        if bound is None or bound[0] is not out:
            return None
        compute = bound[1]

        def call() -> None:
            absent = added is not None or mask is None or not mask.any()
            if absent and _scale_of(inputs) == scale:
                compute()
                if not self.causal or not np.isnan(out).any():
                    return
            self.execute_into(inputs, Context(), out)

        return call if len(inputs) > 3 or self.causal else compute

    def compute(self, inputs: Arrays, context: Context, out: Array | None) -> Array:
        from deconv_ir.kernels.products import attend

        query, key, value = map(widen, inputs[:3])
        scale = _scale_of(inputs)
        mask = inputs[3] if len(inputs) > 3 else None
        if mask is not None and mask.dtype != bool:
            # Converters write a zero for an absent mask.
            mask = None if mask.size == 1 and not mask.any() else widen(mask)
        if len(inputs) < 6:
            added = mask
            if self.causal:
                added = _causal_mask(query.shape[-2], key.shape[-2])
            elif mask is not None and mask.dtype == bool:
                added = _excluding(mask)
            compiled = attend(query, key, value, scale, added, out)
            if compiled is not None:
                if added is not mask:
                    self._exclude(query, scale, key, value, mask, compiled)
                return narrow(compiled, inputs[0].dtype)
        sink = widen(inputs[5]) if len(inputs) > 5 else None
        found = self._in_numpy(query, scale, key, value, mask, sink)
        return narrow(found, inputs[0].dtype)

    def _exclude(
        self,
        query: Array,
        scale: float,
        key: Array,
        value: Array,
        mask: Array | None,
        out: Array,
    ) -> None:
        """Compute rows of NaN again, in parts: adding a mask kept excluded scores of inf or NaN."""
        stack, (queries, keys) = out.shape[:-2], (query.shape[-2], key.shape[-2])
        query, key, value = (
            np.broadcast_to(a, (*stack, *a.shape[-2:])) for a in (query, key, value)
        )
        if mask is not None:
            mask = np.broadcast_to(mask, (*stack, queries, keys))
        rows = max(1, _MOST_SCORES // max(1, keys))
        for index in np.ndindex(stack):
            for first in range(0, queries, rows):
                part = (*index, slice(first, first + rows))
                if np.isnan(out[part]).any():
                    own = None if mask is None else mask[part]
                    out[part] = self._in_numpy(
                        query[part], scale, key[index], value[index], own, None, first
                    )

    def _in_numpy(
        self,
        query: Array,
        scale: float,
        key: Array,
        value: Array,
        mask: Array | None,
        sink: Array | None,
        first: int = 0,
    ) -> Array:
        """Return the rows of queries that follow the first ones."""
        from deconv_ir.kernels.products import matmul
        from deconv_ir.ops.normalization.softmax import Softmax8

        with np.errstate(all="ignore"):
            weights = matmul(query * query.dtype.type(scale), np.swapaxes(key, -1, -2))
            if self.causal:
                weights = np.where(
                    np.tri(query.shape[-2], key.shape[-2], first, bool), weights, -np.inf
                )
            elif mask is not None and mask.dtype == bool:
                weights = np.where(mask, weights, -np.inf)
            elif mask is not None:
                weights = weights + mask
            if sink is not None:
                sink = np.broadcast_to(sink, (*weights.shape[:-1], 1))
                weights = np.concatenate([weights, sink], -1)
            (weights,) = Softmax8(axis=-1).execute([weights], Context())
            return matmul(weights[..., : value.shape[-2]], value)


def _scale_of(inputs: Arrays) -> Any:
    """Return the factor of the scores."""
    if len(inputs) > 4:
        return only(widen(inputs[4]), "scale")
    # If the width is 0 the products are 0, for any scale.
    return 1 / math.sqrt(max(1, inputs[0].shape[-1]))


def _excluding(mask: Array) -> Array:
    """Return what is added to scores: 0, and -infinity where the mask is false."""
    return np.where(mask, np.float32(0), np.float32(-np.inf))


def _causal_mask(queries: int, keys: int) -> Array:
    if queries * keys > _MOST_KEPT_SCORES:
        return _excluding(np.tri(queries, keys, dtype=bool))
    return _kept_causal_mask(queries, keys)


@functools.lru_cache(maxsize=8)
def _kept_causal_mask(queries: int, keys: int) -> Array:
    mask = _excluding(np.tri(queries, keys, dtype=bool))
    mask.flags.writeable = False
    return mask
