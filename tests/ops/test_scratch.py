"""Scratch memory of operations is as declared, and a smaller budget gives the same results."""

from __future__ import annotations

import contextlib
import math
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from operation_forms import make
from support import traced_peak

from deconv_ir import set_memory_pool_limit
from deconv_ir.errors import DeconvError
from deconv_ir.ir.dtypes import F32, from_numpy, parse_element_type
from deconv_ir.ir.operation import Context, Operation, Sharing, TensorInfo
from deconv_ir.ir.scratchpad import ScratchpadBudget
from deconv_ir.ir.shapes import is_static, largest
from deconv_ir.ops import all_operations
from deconv_ir.ops.examples import OperationExample, parse_example
from deconv_ir.ops.onednn.elementwise import KINDS

RNG = np.random.default_rng(0)
POOL = {"strides": "2,2", "kernel": "3,3", "pads_begin": "1,1", "pads_end": "1,1"}
LSTM = {"hidden_size": "32", "direction": "bidirectional"}
INTERPOLATE = {"shape_calculation_mode": "sizes"}
IMAGE = "2,12,128,120"

# Operation, shapes of the data inputs, further inputs as integer lists, attributes.
CASES: dict[str, tuple[str, tuple[str, ...], tuple[Any, ...], dict[str, str]]] = {
    "Tanh": ("Tanh", (IMAGE,), (), {}),
    "Sigmoid": ("Sigmoid", (IMAGE,), (), {}),
    "Gelu": ("Gelu-7", (IMAGE,), (), {}),
    "Elu": ("Elu", (IMAGE,), (), {"alpha": "0.5"}),
    "Selu": ("Selu", (IMAGE, "1", "1"), (), {}),
    "Swish": ("Swish-4", (IMAGE,), (), {}),
    "SoftPlus": ("SoftPlus-4", (IMAGE,), (), {}),
    "Mish": ("Mish-4", (IMAGE,), (), {}),
    "HSwish": ("HSwish-4", (IMAGE,), (), {}),
    "Erf": ("Erf", (IMAGE,), (), {}),
    "PReLU": ("PReLU", (IMAGE, "12"), (), {}),
    "Clamp": ("Clamp", (IMAGE,), (), {"min": "-1", "max": "1"}),
    "Add": ("Add", (IMAGE, "12,1,1"), (), {}),
    "SquaredDifference": ("SquaredDifference", (IMAGE, "12,1,1"), (), {}),
    "Greater": ("Greater", (IMAGE, IMAGE), (), {}),
    "MaxPool": ("MaxPool", (IMAGE,), (), POOL | {"rounding_type": "ceil"}),
    "MaxPool-8": ("MaxPool-8", (IMAGE,), (), POOL | {"dilations": "2,1"}),
    "AvgPool": ("AvgPool", (IMAGE,), (), POOL | {"exclude-pad": "true"}),
    "AvgPool-3d": (
        "AvgPool",
        ("1,2,20,30,40",),
        (),
        {"kernel": "2,3,2", "strides": "1,2,2", "exclude-pad": "true"},
    ),
    "MVN": (
        "MVN-6",
        (IMAGE,),
        ([2, 3],),
        {"normalize_variance": "true", "eps": "1e-5", "eps_mode": "inside_sqrt"},
    ),
    "GroupNormalization": (
        "GroupNormalization-12",
        (IMAGE, "12", "12"),
        (),
        {"num_groups": "2", "epsilon": "1e-5"},
    ),
    "BatchNormInference": (
        "BatchNormInference-5",
        (IMAGE, "12", "12", "12", "12"),
        (),
        {"epsilon": "1e-5"},
    ),
    "SoftMax": ("SoftMax-8", (IMAGE,), (), {"axis": "1"}),
    "Interpolate-linear": (
        "Interpolate-11",
        ("1,12,40,30",),
        ([128, 120], [2, 3]),
        INTERPOLATE | {"mode": "linear_onnx"},
    ),
    "Interpolate-cubic": (
        "Interpolate-11",
        (IMAGE,),
        ([40, 100], [2, 3]),
        INTERPOLATE | {"mode": "cubic"},
    ),
    "Interpolate-nearest": (
        "Interpolate-11",
        ("1,12,40,30",),
        ([1, 12, 128, 120],),
        INTERPOLATE | {"mode": "nearest"},
    ),
    "Pad": ("Pad-12", (IMAGE,), ([0, 0, 3, 4], [0, 0, 5, 6]), {"pad_mode": "reflect"}),
    "LSTMSequence": (
        "LSTMSequence-5",
        ("1,120,40", "1,2,32", "1,2,32", "2,128,40", "2,128,32", "2,128"),
        ([120],),
        LSTM,
    ),
    "GRUSequence": (
        "GRUSequence-5",
        ("1,120,40", "1,2,32", "2,96,40", "2,96,32", "2,96"),
        ([120],),
        LSTM,
    ),
}
LIKE_OTHERS = {"Sigmoid", "Elu", "SoftPlus", "Mish", "HSwish", "AvgPool-3d", "Interpolate-cubic"}
"""In f16 they take the path of another row: Tanh, AvgPool or Interpolate-linear."""
# Elements of a long input.
LONG = 200_000
SLOW = {
    "DeformableConvolution1",
    "DeformableConvolution8",
    "DetectionOutput1",
    "DetectionOutput8",
    "ExperimentalDetectronROIFeatureExtractor",
    "GatherTree",
    "Interpolate11",
    "MatrixNms",
    "MulticlassNms8",
    "MulticlassNms9",
    "NMSRotated",
    "NonMaxSuppression",
    "NonMaxSuppression3",
    "NonMaxSuppression5",
    "Proposal1",
    "Proposal4",
    "SearchSorted",
}
"""Operations that take long for such inputs: a twentieth, in f32 and f16."""
# Python's own objects, and NumPy's buffers of two threads for three arrays.
BOOKKEEPING = (16 << 10) + 2 * 3 * 8192 * 4
TYPES = ("f32", "f16", "f64", "i32", "u8")
F32_DATA = re.compile(r"f32(?!\[[0-9,]*\]\{)")


def arrays_of(
    kind: str, shapes: tuple[str, ...], lists: tuple[Any, ...], element_type: str
) -> list[np.ndarray]:
    dtype = parse_element_type(element_type).numpy()
    arrays = [
        RNG.standard_normal(tuple(map(int, s.split(",")))).astype(dtype)
        if s != "1"
        else np.array(0.5, dtype)
        for s in shapes
    ]
    if kind.startswith("BatchNorm"):
        arrays[-1] = np.abs(arrays[-1])
    # The lengths of sequences come before the weights, other lists at the end.
    place = len(arrays) - 3 if "Sequence" in kind else len(arrays)
    return [*arrays[:place], *map(np.array, lists), *arrays[place:]]


def describe(array: np.ndarray) -> TensorInfo:
    value = tuple(array.ravel().tolist()) if array.dtype.kind == "i" else None
    return TensorInfo(array.shape, from_numpy(array.dtype), value)


def run(
    operation: Operation,
    arrays: list[np.ndarray],
    context: Context,
    infos: list[TensorInfo] | None = None,
) -> tuple[Any, int, int]:
    """Return the outputs, the bytes allocated besides them, and the declared bytes."""
    infos = list(map(describe, arrays)) if infos is None else infos
    outputs = [i._replace(shape=largest(i.shape)) for i in operation.infer(infos, context)]
    out = None
    if operation.computes_in_place and operation.accepts_out(infos, outputs[0]):
        out = np.empty(outputs[0].shape, outputs[0].element_type.numpy())  # type: ignore[arg-type, union-attr]
    told = operation.scratch(infos, outputs, context)
    if out is None:
        results = operation.execute(arrays, context)
        peak = traced_peak(lambda: operation.execute(arrays, context))
        own = [r for r in results if not any(np.may_share_memory(r, a) for a in arrays)]
        # Runs return arrays in C order.
        moved = sum(result.nbytes for result in own if not result.flags.c_contiguous)
        peak += moved * operation.in_order
        return results, peak - sum(result.nbytes for result in own), told
    peak = traced_peak(lambda: operation.execute_into(arrays, context, out))
    return (out,), peak, told


@pytest.mark.parametrize(
    ("case", "element_type"),
    [
        *((case, "f32") for case in CASES),
        *((case, "f16") for case in CASES if case not in LIKE_OTHERS),
    ],
)
def test_scratch_is_as_declared(case: str, element_type: str) -> None:
    kind, shapes, lists, attributes = CASES[case]
    operation = make(kind, **attributes)
    arrays = arrays_of(kind, shapes, lists, element_type)
    expected, *_ = run(operation, arrays, Context())
    unit = 1e-5 if element_type == "f32" else 2e-3
    for scratch_bytes in (64 << 20, 1 << 18, 1):
        results, taken, told = run(operation, arrays, Context(scratch_bytes=scratch_bytes))
        assert taken <= told + BOOKKEEPING, scratch_bytes
        for found, whole in zip(results, expected, strict=True):
            np.testing.assert_allclose(
                found.astype(np.float64), whole.astype(np.float64), rtol=unit, atol=unit
            )


@pytest.mark.parametrize("case", [c for c in CASES if c not in ("SoftMax", "BatchNormInference")])
def test_a_smaller_budget_is_kept(case: str) -> None:
    """The budget may be exceeded by one block: 4096 elements, 16 steps, or a row of windows."""
    kind, shapes, lists, attributes = CASES[case]
    operation = make(kind, **attributes)
    infos = [describe(a) for a in arrays_of(kind, shapes, lists, "f32")]
    outputs = operation.infer(infos, Context())
    limit = 300 << 10
    told = operation.scratch(infos, outputs, Context(scratch_bytes=limit))
    assert told <= 1.6 * limit or case in ("MaxPool-8", "GRUSequence", "Greater"), told


@pytest.mark.parametrize("kind", ["SoftPlus", "GELU"])
def test_scratch_of_a_decomposition_has_that_of_its_steps(kind: str) -> None:
    """The output may be in pooled memory, which is not traced."""
    operation = KINDS[kind]()
    data = RNG.standard_normal((2, 12, 128, 120)).astype(np.float32)
    infos = [describe(data)]
    told = operation.scratch(infos, operation.infer(infos, Context()), Context())
    operation.execute([data], Context())
    taken = traced_peak(lambda: operation.execute([data], Context()))
    assert BOOKKEEPING < taken <= told + data.nbytes + BOOKKEEPING


def longer(
    operation: Operation, example: OperationExample, axis: int
) -> tuple[list[np.ndarray], list[TensorInfo]] | None:
    """Return inputs that are long along an axis, and the outputs; None if that is not possible.

    Other inputs of the same extent get longer as well, or they do not.
    """
    data = next(t for t in example.inputs if t.elements is None)
    if axis >= len(data.shape):
        return None
    most = LONG // 20 if type(operation).__name__ in SLOW else LONG
    factor = max(2, most // max(1, math.prod(data.shape)))
    for together in (True, False):
        inputs = []
        for tensor in example.inputs:
            shape = list(tensor.shape)
            same = axis < len(shape) and shape[axis] == data.shape[axis] and together
            if tensor is data or (same and tensor.elements is None):
                shape[axis] *= factor
            inputs.append(tensor._replace(shape=tuple(shape)))
        with contextlib.suppress(DeconvError, ValueError):
            outputs = operation.infer([t.info() for t in inputs], Context())
            if all(is_static(largest(info.shape)) for info in outputs):
                arrays = [t.array(seed) for seed, t in enumerate(inputs)]
                operation.execute(arrays, Context())
                return arrays, [t.info() for t in inputs]
    return None


@pytest.fixture
def unpooled() -> Iterator[None]:
    """Have NumPy allocate arrays, so that they are traced."""
    set_memory_pool_limit(0)
    yield
    set_memory_pool_limit(192 << 20)


@pytest.mark.usefixtures("unpooled")
@pytest.mark.parametrize("kind", all_operations(), ids=lambda o: o.__name__)
def test_scratch_is_a_bound_for_long_axes_of_every_example(kind: type[Operation]) -> None:
    """In the types of the example, and in those that may be in place of f32.

    Plans add the bytes of inputs in another order, which may be copied first.
    """
    types = TYPES[:2] if kind.__name__ in SLOW else TYPES
    for text in kind.examples:
        for written in dict.fromkeys(F32_DATA.sub(to, text) for to in types):
            example = parse_example(written)
            if all(t.elements is not None for t in example.inputs):
                continue
            operation = example.operation(kind)
            for axis in range(4):
                found = longer(operation, example, axis)
                if found is None:
                    continue
                arrays, infos = found
                _, taken, told = run(operation, arrays, Context(), infos)
                # NumPy's buffers have up to eight bytes an element: integers are added in i64.
                assert taken <= told + 2 * BOOKKEEPING, (written, axis)
                if axis == 0 and kind.sharing is Sharing.NONE and kind.__name__ not in SLOW:
                    turned = [np.asfortranarray(array) for array in arrays]
                    _, taken, told = run(operation, turned, Context(), infos)
                    told += sum(a.nbytes for a in turned if not a.flags.c_contiguous)
                    assert taken <= told + 2 * BOOKKEEPING, written


def test_a_product_needs_memory_for_its_rows() -> None:
    """Bytes for 4 rows of 2048 terms are those of 4, not of all elements; none of no terms."""
    few, many = (
        make("MatMul").scratch(
            [TensorInfo((rows, 2048), F32), TensorInfo((2048, 64), F32)],
            [TensorInfo((rows, 64), F32)],
            Context(),
        )
        for rows in (4, 4096)
    )
    assert few < many or not few
    empty = [TensorInfo((2, 0), F32), TensorInfo((0, 3), F32)]
    assert make("MatMul").scratch(empty, [TensorInfo((2, 3), F32)], Context()) == 0


def test_the_windows_of_a_row_are_those_of_the_plane() -> None:
    """Windows of any stride, dilation and pads overlap where the first axis is divided."""
    for kernel, strides, dilations, begin, end in [
        ((3, 2), (1, 1), (1, 1), (1, 0), (2, 1)),
        ((5, 1), (2, 3), (1, 1), (2, 0), (0, 0)),
        ((2, 3), (3, 1), (4, 2), (3, 3), (4, 1)),
        ((4, 4), (7, 2), (1, 1), (0, 0), (0, 0)),
    ]:
        words = {
            "kernel": kernel,
            "strides": strides,
            "dilations": dilations,
            "pads_begin": begin,
            "pads_end": end,
        }
        attributes = {k: ",".join(map(str, v)) for k, v in words.items()}
        for dtype in (np.float32, np.float16, np.int8):
            data = (RNG.standard_normal((2, 3, 33, 17)) * 9).astype(dtype)
            pool = make("MaxPool-8", **attributes)
            first = pool.prepare_first(Context())
            assert first is not None
            (cut,) = first([data], None, ScratchpadBudget(1))
            whole, _ = pool.execute([data], Context())
            np.testing.assert_array_equal(cut, whole)
