"""Reductions, products of matrices, and layers that select elements.

Sources: catalogue, sections ArgMax, Gather, TopK and Memory; Inference Engine 2020.3,
ie_layer_validators.cpp, Gemm and Gather (defaults and order of inputs); Model Optimizer 2020.3,
extensions/back, ReadValueAssignToMemory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from deconv_ir.formats.openvino_legacy.attributes import REQUIRED
from deconv_ir.formats.openvino_legacy.conversion import LayerConversion, Rule
from deconv_ir.formats.openvino_legacy.rules.elementwise import BOOLEAN, alike, truth
from deconv_ir.formats.openvino_legacy.rules.shapes import scalar
from deconv_ir.ir.dtypes import F32, I32, I64
from deconv_ir.ir.graph import Source
from deconv_ir.ops.gather_scatter.sorting import Extreme, Order


def arg_max(step: LayerConversion) -> Source:
    """Convert ArgMax: indices as floats; with `out_max_val`, values too or, on an axis, alone."""
    data = step.input()
    count = step.integer("top_k", default=1, minimum=1)
    with_values = step.flag("out_max_val")
    dims = step.dims(data)
    found = step.integer("axis", default=None)
    if found is None:
        data = step.reshape(data, (0, -1))
        axis = 1
    else:
        axis = step.axis(found, len(dims))
    most = step.literal((count,), I64, (), suffix="k")
    values, indices = step.many(
        "TopK", data, most, outputs=2, axis=axis, mode=Extreme.MAX, sort=Order.VALUE
    )
    if found is not None:
        return values if with_values else step.convert(indices, F32)
    made = step.convert(indices, F32)
    if with_values:
        rows = [step.reshape(part, (0, 1, -1)) for part in (made, values)]
        made = step.add("Concat", *rows, axis=1)
    return step.reshape(made, step.declared() or (0, 2 if with_values else 1, count))


def top_k(step: LayerConversion) -> Sequence[Source]:
    """Convert TopK; `k` is input 1."""
    data, count = step.input(0), scalar(step, step.integral(step.input(1)))
    mode, sort = step.text("mode", default="max").lower(), step.text("sort", default="value")
    if mode not in ("max", "min"):
        raise step.fault("mode", "must be max or min", mode)
    if sort not in ("value", "index", "none"):
        raise step.fault("sort", "must be value, index or none", sort)
    axis = step.axis(step.integer("axis", default=REQUIRED), step.rank(data))
    made = step.many(
        "TopK", data, count, outputs=2, axis=axis, mode=Extreme(mode), sort=Order(sort)
    )
    return made[: max(1, len(step.layer.outputs))]


def gather(step: LayerConversion) -> Source:
    """Convert Gather: input 0 is the data and input 1 the indices.

    The catalogue describes files with the indices first: the declared dims tell which ones they
    are.
    """
    first, second = step.input(0), step.input(1)
    stated = step.declared()
    axis = step.integer("axis", default=0)

    def result(data: Source, indices: Source) -> tuple[int, ...] | None:
        dims = step.dims(data)
        if not -len(dims) <= axis < len(dims):
            return None
        at = axis % len(dims)
        return (*dims[:at], *step.dims(indices), *dims[at + 1 :])

    swapped = stated is not None and result(first, second) != stated == result(second, first)
    data, indices = (second, first) if swapped else (first, second)
    at = step.axis(axis, step.rank(data))
    along = step.literal((at,), I64, (), suffix="axis")
    return step.add("Gather", data, step.integral(indices), along)


def gemm(step: LayerConversion) -> Source:
    """Convert Gemm: alpha * A * B + beta * C."""
    first, second = alike(step, step.input(0), step.input(1))
    made = step.add(
        "MatMul",
        first,
        second,
        transpose_a=step.flag("transpose_a"),
        transpose_b=step.flag("transpose_b"),
    )
    alpha, beta = step.number("alpha", default=1.0), step.number("beta", default=1.0)
    if alpha != 1:
        made = step.add("Multiply", made, step.scalar(alpha))
    if len(step.inputs) < 3:
        return made
    addend = step.input(2)
    if beta != 1:
        addend = step.add("Multiply", addend, step.scalar(beta))
    return step.add("Add", made, addend)


def reduction(kind: str, before: str = "", after: str = "") -> Callable[[LayerConversion], Source]:
    """Return the rule of a reduction over the axes of input 1, with functions around it."""

    def rule(step: LayerConversion) -> Source:
        data, axes = step.input(0), step.integral(step.input(1))
        if before:
            data = step.add(before, data)
        keep = step.flag("keep_dims", default=True)
        made = step.add(kind, data, axes, keep_dims=keep)
        return step.add(after, made) if after else made

    return rule


def reduce_logical(kind: str) -> Callable[[LayerConversion], Source]:
    """Return the rule of a reduction of truth values."""

    def rule(step: LayerConversion) -> Source:
        data, axes = step.convert(step.input(0), BOOLEAN), step.integral(step.input(1))
        keep = step.flag("keep_dims", default=True)
        return truth(step, step.add(kind, data, axes, keep_dims=keep))

    return rule


def reduce_sum_square(step: LayerConversion) -> Source:
    """Convert ReduceSumSquare."""
    data, axes = step.input(0), step.integral(step.input(1))
    squares = step.add("Multiply", data, data)
    return step.add("ReduceSum", squares, axes, keep_dims=step.flag("keep_dims", default=True))


def memory(step: LayerConversion) -> list[Source]:
    """Convert Memory: a layer with an output reads the variable `id`, one without stores it."""
    name = step.text("id")
    if not name:
        raise step.fault("id", "must name the variable", name)
    if not step.layer.outputs:
        step.many("Assign", step.input(), outputs=0, version="opset3", variable_id=name)
        return []
    dims = step.literal(step.stated(), I64, suffix="shape")
    start = step.add("Broadcast", step.scalar(0.0), dims)
    return [step.add("ReadValue", start, version="opset3", variable_id=name)]


def bucketize(step: LayerConversion) -> Source:
    """Convert Bucketize."""
    return step.add(
        "Bucketize",
        step.input(0),
        step.input(1),
        version="opset3",
        output_type=I32,
        with_right_bound=step.flag("with_right_bound", default=True),
    )


RULES: Final[dict[str, Rule]] = {
    "ArgMax": arg_max,
    "Bucketize": bucketize,
    "Gather": gather,
    "Gemm": gemm,
    "Memory": memory,
    "ReduceAnd": reduce_logical("ReduceLogicalAnd"),
    "ReduceL1": reduction("ReduceL1"),
    "ReduceL2": reduction("ReduceL2"),
    "ReduceLogSum": reduction("ReduceSum", after="Log"),
    "ReduceLogSumExp": reduction("ReduceSum", before="Exp", after="Log"),
    "ReduceMax": reduction("ReduceMax"),
    "ReduceMean": reduction("ReduceMean"),
    "ReduceMin": reduction("ReduceMin"),
    "ReduceOr": reduce_logical("ReduceLogicalOr"),
    "ReduceProd": reduction("ReduceProd"),
    "ReduceSum": reduction("ReduceSum"),
    "ReduceSumSquare": reduce_sum_square,
    "TopK": top_k,
}
