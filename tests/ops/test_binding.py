"""Edge cases of layers bound to shapes: nothing to do, empty results, no axes."""

from __future__ import annotations

import numpy as np
import pytest
from operation_forms import make

from deconv_ir.ir.dtypes import from_numpy
from deconv_ir.ir.operation import Context, TensorInfo

MVN = {"normalize_variance": "true", "eps": "1e-5", "eps_mode": "inside_sqrt"}


def filled(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize(
    ("kind", "attributes", "inputs"),
    [
        *(
            ("Pad-12", {"pad_mode": mode}, (filled(*shape), begin, end))
            for mode in ("constant", "edge", "reflect", "symmetric")
            for shape, begin, end in (
                ((0, 3), (0, 1), (0, 1)),
                ((2, 3), (1, -1), (0, -2)),
                ((4,), (-2,), (-2,)),
                ((3, 3), (0, 0), (0, -3)),
            )
        ),
        ("MatMul", {}, (filled(2, 3, 0), filled(0, 4))),
        ("MatMul", {"transpose_b": "true"}, (filled(0, 3, 2), filled(4, 2))),
        ("Gather", {}, (filled(5), 3, 0)),
        ("Gather", {}, (filled(2, 5), (4, 0, 4), 1)),
        ("Gather", {}, (filled(2, 0), np.zeros((0, 3), np.int64), 1)),
        ("Gather-8", {}, (filled(2, 5, 3), -1, -2)),
        ("Gather-8", {}, (filled(2, 5), ((-5, 4), (-6, 5)), 1)),
        ("Gather-8", {"batch_dims": "1"}, (filled(2, 5), ((-5, 4), (0, 1)), 1)),
        ("ReduceMean", {}, (filled(2, 3), ())),
        ("ReduceSum", {"keep_dims": "true"}, (filled(2, 0), (1,))),
        ("MVN-6", MVN, (filled(0, 3, 4), (1, 2))),
        ("MVN-6", MVN, (filled(2, 3, 4), (0,))),
        ("SoftMax-8", {"axis": "1"}, (filled(2, 0),)),
        ("Slice-8", {}, (filled(5, 4), (9, -1), (-(2**63), 2**63 - 1), (-2, 1))),
        ("Split", {"num_splits": "2"}, (filled(4, 0), (0,))),
        ("VariadicSplit", {}, (filled(4, 3), (0,), (0, -1, 1))),
        ("Concat", {"axis": "-1"}, (filled(2, 0), filled(2, 3))),
        ("Reshape", {"special_zero": "true"}, (filled(2, 8, 3).transpose(0, 2, 1), (0, -1))),
        ("MaxPool", {"strides": "2,2", "kernel": "2,2", "pads_begin": "0,0", "pads_end": "0,0"},
         (filled(0, 2, 4, 4),)),
        ("PReLU", {}, (filled(2, 3, 4), np.float32([0.5, 1, 0.25]))),
        ("PReLU", {}, (filled(2, 3, 4), np.float32([0.5, -1, 2]))),
        ("Erf", {}, (np.float32(0.5),)),
        ("Gelu-7", {}, (np.float32(-0.5),)),
    ],
    ids=lambda v: v if isinstance(v, str) else None,
)  # fmt: skip
def test_bound_operations_on_empty_and_extreme_inputs(
    kind: str, attributes: dict[str, str], inputs: tuple[object, ...]
) -> None:
    arrays = [
        np.asarray(x, None if isinstance(x, np.generic | np.ndarray) else np.int64) for x in inputs
    ]
    known = [
        TensorInfo(
            a.shape,
            from_numpy(a.dtype),
            tuple(a.ravel().tolist()) if a.dtype.kind == "i" else None,
            tuple(a.ravel().tolist()) if a.dtype.kind == "f" and a.size <= 3 else None,
        )
        for a in arrays
    ]
    operation = make(kind, **attributes)
    expected = operation.execute(arrays, Context())
    outputs = operation.infer(known, Context())
    with np.errstate(all="ignore"):
        actual = operation.bind(known, outputs, Context())(arrays, None)
    for found, right, info in zip(actual, expected, outputs, strict=True):
        assert found.shape == right.shape == info.shape
        np.testing.assert_allclose(found, right, 1e-6)
