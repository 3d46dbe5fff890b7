"""Every operation takes arrays of any layout, and outputs of a run are in C order.

Each worked example runs behind a layer that returns a view, a transposed or a reversed array; the
result is that of the same values in a contiguous array.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest
from support import IR, Out

import deconv_ir
from deconv_ir.ops import all_operations
from deconv_ir.ops.examples import OperationExample, parse_example

Shape = tuple[int, ...]


def ints(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


def transposed(ir: IR, shape: Shape) -> Out:
    x = ir.parameter("x", listed(shape[::-1]))
    return ir.layer("Transpose", [x, ir.const(ints(*range(len(shape))[::-1]))])


def exchanged(ir: IR, shape: Shape) -> Out:
    """Two axes exchanged, as a sum of products states it."""
    letters = "abcdefgh"[: len(shape)]
    swapped = letters[:-2] + letters[-1] + letters[-2]
    x = ir.parameter("x", listed((*shape[:-2], shape[-1], shape[-2])))
    return ir.layer("Einsum", [x], {"equation": f"{swapped}->{letters}"}, version="opset7")


def reversed_(ir: IR, shape: Shape) -> Out:
    rank = len(shape)
    ends = [ir.const(ints(*[value] * rank)) for value in (-1, -(1 << 40), -1)]
    return ir.layer("Slice", [ir.parameter("x", listed(shape)), *ends], version="opset8")


def stepped(ir: IR, shape: Shape) -> Out:
    mask = ",".join("1" * len(shape))
    x = ir.parameter("x", listed(tuple(2 * extent for extent in shape)))
    zeros, twos = (ir.const(ints(*[value] * len(shape))) for value in (0, 2))
    masks = {"begin_mask": mask, "end_mask": mask}
    return ir.layer("StridedSlice", [x, zeros, zeros, twos], masks)


def split(ir: IR, shape: Shape) -> Out:
    x = ir.parameter("x", listed((*shape[:-1], 2 * shape[-1])))
    layer, port = ir.layer(
        "Split", [x, ir.const(np.array(len(shape) - 1))], {"num_splits": "2"}, outputs=["", ""]
    )
    return layer, port + 1


def largest(ir: IR, shape: Shape) -> Out:
    """Elements along the axis before the last, which is moved to the end and back."""
    axis = len(shape) - 2
    attributes = {"axis": str(axis), "mode": "max", "sort": "value", "index_element_type": "i64"}
    x = ir.parameter("x", listed((*shape[:-2], shape[-2] + 1, shape[-1])))
    inputs = [x, ir.const(np.array(shape[-2]))]
    return ir.layer("TopK", inputs, attributes, outputs=["", ""], version="opset11")


def summed(ir: IR, shape: Shape) -> Out:
    inputs = [ir.parameter("x", listed(shape)), ir.const(np.array(0))]
    return ir.layer("CumSum", inputs, {"reverse": "true"}, version="opset3")


def repeated(ir: IR, shape: Shape) -> Out:
    x = ir.parameter("x", listed((*shape[:-1], 1)))
    return ir.layer("Broadcast", [x, ir.const(ints(*shape))], {"mode": "numpy"}, version="opset3")


PRODUCERS = [transposed, exchanged, reversed_, stepped, split, largest, summed, repeated]


def listed(shape: Shape) -> str:
    return ",".join(map(str, shape))


def is_plain(example: OperationExample) -> bool:
    """Whether the first input is data in f32 with two axes or more."""
    first = example.inputs[0] if example.inputs else None
    return (
        first is not None
        and first.element_type.name == "f32"
        and first.elements is None
        and len(first.shape or ()) > 1
        and all(given.element_type.name != "u1" for given in example.inputs)
    )


EXAMPLES = [
    (operation, parse_example(text))
    for operation in all_operations()
    for text in operation.examples
    if is_plain(parse_example(text))
    and operation.versions[:1]
    and operation.versions[0].startswith("opset")
]


def consumer(ir: IR, source: Out, operation: Any, example: OperationExample) -> Any:
    """Add the layer of an example, and an elementwise layer behind its first output."""
    inputs = [source]
    for i, given in enumerate(example.inputs[1:], 1):
        inputs.append(ir.const(given.array(i)))
    layer, first = ir.layer(
        operation.type,
        inputs,
        example.attributes,
        outputs=[""] * len(example.outputs),
        version=operation.versions[0],
        precision="dynamic",
    )
    if example.outputs[0].element_type.name == "f32":
        first_out = ir.layer("Sigmoid", [(layer, first)], precision="dynamic")
        ir.result(ir.layer("HSwish", [first_out], version="opset4", precision="dynamic"))
    for port in range(len(example.outputs)):
        ir.result((layer, first + port))
    return deconv_ir.load(ir.xml().encode(), bytes(ir.weights), warn=False)


@functools.cache
def alone(number: int) -> Any:
    """Return the model of an example alone."""
    operation, example = EXAMPLES[number]
    ir = IR()
    return consumer(
        ir, ir.parameter("x", listed(example.inputs[0].shape or ())), operation, example
    )


def agree(number: int, found: dict[str, np.ndarray], data: np.ndarray) -> None:
    """Compare with the result for a contiguous array."""
    expected = alone(number).run([np.array(data, np.float32, order="C")])
    for mine, wanted in zip(found.values(), expected.values(), strict=True):
        operation, example = EXAMPLES[number]
        where = f"{operation.type} {example.text}"
        assert mine.flags.c_contiguous, where
        assert mine.dtype.isnative, where
        np.testing.assert_allclose(mine, wanted, 1e-5, 1e-6, err_msg=where)


@pytest.mark.parametrize("turn", range(len(PRODUCERS)))
def test_operations_behind_views_and_transposed_arrays(turn: int) -> None:
    """Every operation is behind three of the producers, in turn."""
    producer = PRODUCERS[turn]
    rng = np.random.default_rng(0)
    before: dict[Shape, Any] = {}
    for number, (operation, example) in enumerate(EXAMPLES):
        if (number + turn) % len(PRODUCERS) > 2:
            continue
        shape = example.inputs[0].shape or ()
        if shape not in before:
            ir = IR()
            ir.result(producer(ir, shape))
            before[shape] = deconv_ir.load(ir.xml().encode(), bytes(ir.weights), warn=False)
        x = rng.uniform(0.25, 1, before[shape].inputs["x"].shape).astype(np.float32)
        (data,) = before[shape].run([x]).values()
        ir = IR()
        agree(number, consumer(ir, producer(ir, shape), operation, example).run([x]), data)


LAYOUTS = {
    "Fortran order": np.asfortranarray,
    "reversed": lambda x: np.ascontiguousarray(x[::-1])[::-1],
    "every second element": lambda x: np.repeat(x, 2, -1)[..., ::2],
    "big-endian": lambda x: x.astype(">f4"),
    "read-only": lambda x: np.broadcast_to(x, x.shape),
}


@pytest.mark.parametrize("layout", LAYOUTS)
def test_arrays_of_any_layout(layout: str) -> None:
    for number, (_, example) in enumerate(EXAMPLES):
        data = example.inputs[0].array(1)
        agree(number, alone(number).run([LAYOUTS[layout](data)]), data)
