"""OpenVINO Multinomial-13: classes drawn by their probabilities."""

from __future__ import annotations

from typing import Any

from deconv_ir.ir.dtypes import F32, I32, I64, Array, ElementType
from deconv_ir.ir.geometry import UNKNOWN
from deconv_ir.ir.operation import Arrays, Context, Infos, Operation, TensorInfo
from deconv_ir.ops.base import Kind, attribute, boolean, integer, one_of, operation
from deconv_ir.ops.checks import check_rank, check_single, check_type, misfit, only
from deconv_ir.ops.constants.random_uniform import uniform
from deconv_ir.ops.numeric import np
from deconv_ir.ops.values import as_dims

_INDICES = {"i32": I32, "i64": I64}


def _index_type() -> Kind:
    def parse(text: str) -> ElementType:
        if text not in _INDICES:
            raise ValueError(text)
        return _INDICES[text]

    return Kind(parse, one_of(_INDICES), lambda value: value.name)


@operation(
    "Multinomial-13(probs, num_samples)",
    "f32[2,5], i64[]{3} -> i32[2,3]"
    " | convert_type=i32 with_replacement=false log_probs=true global_seed=1 op_seed=2",
)
class Multinomial(Operation):
    """Classes sampled by their probabilities; without seeds, each run differs.

    Inputs: `probs` [N, CLASSES], which need not sum to 1, and `num_samples`, one number.
    Output: [N, num_samples], indices of classes.  The specification defines which class a random
    number selects, not the numbers: here they are those that RandomUniform-8 draws in f32
    from 0 to 1, row by row; the OpenVINO runtime draws others.
    """

    scratch_ratios = (8, 8)

    formula = "probs {shape[probs]}, num_samples {element[num_samples]}"

    convert_type: ElementType = attribute(_index_type())
    with_replacement: bool = attribute(boolean())
    log_probs: bool = attribute(boolean())
    global_seed: int = attribute(integer(0), 0)
    op_seed: int = attribute(integer(0), 0)

    @property
    def is_repeatable(self) -> bool:
        return bool(self.global_seed or self.op_seed)

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        probs, samples = inputs
        check_type(probs, "probs", "float")
        check_rank(probs, "probs", 2)
        check_single(samples, "num_samples", "integer")
        batch, classes = probs.shape or (UNKNOWN, UNKNOWN)
        count = UNKNOWN if samples.value is None else as_dims(samples.value)[0]
        if isinstance(classes, int) and isinstance(count, int):
            self._check_count(count, classes)
        return (TensorInfo((batch, count), self.convert_type),)

    def _check_count(self, count: int, classes: int) -> None:
        if count < 0 or (count > classes and not self.with_replacement):
            most = "0 or greater" if self.with_replacement else f"from 0 to {classes}, the classes"
            raise misfit("range", "num_samples", f"be {most}", count, most)

    def allowance(self, case: Any) -> None:
        """Return that nothing is known: no document defines the numbers that are drawn."""
        return

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        count = int(only(inputs[1], "num_samples"))
        weights = _weights(inputs[0].astype(np.float64), self.log_probs)
        batch, classes = weights.shape
        self._check_count(count, classes)
        numbers = uniform(self.global_seed, self.op_seed, batch * count, F32)
        # A class of probability 0 is never drawn, not even by the number 0.
        numbers = np.maximum(numbers, np.finfo(np.float64).tiny).reshape(batch, count)
        draw = _with_replacement if self.with_replacement else _without_replacement
        return (draw(weights, numbers).astype(self.convert_type.numpy()),)


def _weights(probs: Array, are_logarithms: bool) -> Array:
    """Return weights of classes; their sums are positive."""
    if are_logarithms:
        with np.errstate(invalid="ignore"):
            probs = np.exp(probs - probs.max(-1, keepdims=True, initial=-np.inf))
    totals = probs.sum(-1)
    if not ((probs >= 0).all() and np.isfinite(totals).all() and (totals > 0).all()):
        must = "be non-negative and finite, with a sum above 0"
        raise misfit("range", "the probabilities", must, "others", must)
    weights: Array = probs
    return weights


def _cumulative(weights: Array) -> Array:
    """Return cumulative sums of the weights, divided by their total."""
    sums = np.cumsum(weights, -1)
    result: Array = sums / sums[..., -1:]
    return result


def _with_replacement(weights: Array, numbers: Array) -> Array:
    result = np.empty(numbers.shape, np.int64)
    for at, (sums, chosen) in enumerate(zip(_cumulative(weights), numbers, strict=True)):
        result[at] = np.searchsorted(sums, chosen, side="left")
    return result


def _without_replacement(weights: Array, numbers: Array) -> Array:
    """Draw for all rows at once; the probability of a drawn class becomes 0."""
    possible = int((weights > 0).sum(-1).min(initial=numbers.shape[1]))
    if possible < numbers.shape[1]:
        must = f"be at most {possible}, the classes of a row that are not impossible"
        raise misfit("range", "num_samples", must, numbers.shape[1], f"<= {possible}")
    result = np.empty(numbers.shape, np.int64)
    left, rows = weights.copy(), np.arange(len(weights))
    for at in range(numbers.shape[1]):
        drawn = (_cumulative(left) < numbers[:, at, None]).sum(-1)
        left[rows, drawn] = 0
        result[:, at] = drawn
    return result
