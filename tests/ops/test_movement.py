"""Operations that move elements: the documents' examples, NumPy as the oracle, errors."""

from __future__ import annotations

import numpy as np
import pytest

from deconv_ir.errors import DeconvError, InputError, ShapeError

A = np.arange(24.0, dtype=np.float32).reshape(2, 3, 4)
V = np.arange(10)

# Examples from the operations' documents, and the same in NumPy.
EXAMPLES = [
    # Gather-8, examples 1, 5 and 7.
    ("Gather-8", ([1, 2, 3, 4, 5], [0, 0, 4], 0), {}, [1, 1, 5]),
    ("Gather-8", ([1, 2, 3, 4, 5], [0, -2, -1], 0), {}, [1, 4, 5]),
    ("Gather-8", ([1, 2, 3, 4, 5], [3, 10, -20], 0), {}, [4, 0, 0]),
    # Gather-7, example 2: batch_dims = 1.
    (
        "Gather-7",
        ([[1, 2, 3, 4, 5], [6, 7, 8, 9, 10]], [[0, 0, 4], [4, 0, 0]], 1),
        {"batch_dims": "1"},
        [[1, 1, 5], [10, 6, 6]],
    ),
    ("Concat", (A, A), {"axis": "-1"}, np.concatenate([A, A], -1)),
    ("Transpose", (A, [2, 0, 1]), {}, A.transpose(2, 0, 1)),
    ("Tile", (A, [2, 1, 1]), {}, np.tile(A, (2, 1, 1))),
    ("Broadcast-3", ([[1], [2]], [1, 3]), {"mode": "bidirectional"}, [[1, 1, 1], [2, 2, 2]]),
    ("Broadcast", ([1, 2], [2, 3], [0]), {"mode": "explicit"}, [[1, 1, 1], [2, 2, 2]]),
    # Slice-8, examples: positive, negative and clamped ends, negative steps.
    ("Slice-8", (V, [1], [8], [1]), {}, V[1:8]),
    ("Slice-8", (V, [0], [9223372036854775807], [2]), {}, V[::2]),
    ("Slice-8", (V, [9], [-11], [-1]), {}, V[::-1]),
    ("Slice-8", (A, [-1, 0], [-9, 2], [-2, 1], [2, 1]), {}, A[:, 0:2, -1:-9:-2]),
    (
        "StridedSlice",
        (A, [1, 0, 0], [0, 0, 2], [1, 1, 1]),
        {"begin_mask": "0,1,1", "end_mask": "1,1,0"},
        A[1:, :, :2],
    ),
    (
        "StridedSlice",
        (A, [0, -1], [0, 0]),
        {"begin_mask": "", "end_mask": "", "ellipsis_mask": "1", "shrink_axis_mask": "0,1"},
        A[..., -1],
    ),
    (
        "StridedSlice",
        (V, [0, 2], [0, 5]),
        {"begin_mask": "", "end_mask": "", "new_axis_mask": "1"},
        V[None, 2:5],
    ),
    ("Squeeze", (A[None, :, :, None],), {}, A),
    ("Unsqueeze", (A, [0, -1]), {}, A[None, ..., None]),
    ("Range-4", (23, 2, -3), {"output_type": "i32"}, [23, 20, 17, 14, 11, 8, 5]),
    ("Range-4", (1.0, 2.5, 0.5), {"output_type": "f32"}, [1, 1.5, 2]),
    ("Range", (3, 3, 1), {}, []),
    ("ShapeOf-3", (A,), {"output_type": "i32"}, [2, 3, 4]),
    (
        "Pad",
        ([[1, 2], [3, 4]], [1, 0], [0, 1], 9),
        {"pad_mode": "constant"},
        [[9] * 3, [1, 2, 9], [3, 4, 9]],
    ),
    ("Pad-12", (V, [-2], [-3]), {"pad_mode": "constant"}, V[2:-3]),
    # Elements are taken from all of the data, including the cropped part.
    ("Pad-12", ([1, 2, 3], [-1], [2]), {"pad_mode": "reflect"}, [2, 3, 2, 1]),
    ("Pad-12", ([1, 2, 3], [2], [0]), {"pad_mode": "symmetric"}, [2, 1, 1, 2, 3]),
    ("Pad-12", ([1, 2, 3], [1], [2]), {"pad_mode": "edge"}, [1, 1, 2, 3, 3, 3]),
    # ScatterElementsUpdate-12, examples 1, 2 and 4.
    (
        "ScatterElementsUpdate-12",
        ([2, 3, 4, 6], [1, 0, 0, -2, -1, 2], [10, 20, 30, 40, 70, 60], 0),
        {"reduction": "sum"},
        [52, 13, 104, 76],
    ),
    (
        "ScatterElementsUpdate-12",
        ([2, 3, 4, 6], [1, 0, 0, 2, 3, 2], [10, 20, 30, 40, 70, 60], 0),
        {"reduction": "sum", "use_init_val": "false"},
        [50, 10, 100, 70],
    ),
    (
        "ScatterElementsUpdate-12",
        ([[1] * 4] * 3, [[1, 1], [0, 3]], [[11, 12], [13, 14]], 1),
        {"reduction": "sum"},
        [[1, 24, 1, 1], [14, 1, 1, 15], [1, 1, 1, 1]],
    ),
    # The neutral element of the minimum of booleans, which is AND, is true.
    (
        "ScatterElementsUpdate-12",
        (np.array([False, False]), [0], np.array([True]), 0),
        {"reduction": "min", "use_init_val": "false"},
        [True, False],
    ),
    # ScatterElementsUpdate-12, 'mean': integers are rounded down; OpenVINO truncates to zero.
    (
        "ScatterElementsUpdate-12",
        ([0, 0], [0, 0], [-1, -2], 0),
        {"reduction": "mean", "use_init_val": "false"},
        [-2, 0],
    ),
    ("ScatterUpdate-3", ([1, 2, 3], [2, 0], [9, 8], 0), {}, [8, 2, 9]),
    ("ScatterNDUpdate-3", ([1, 2, 3, 4], [[3], [1]], [9, 8]), {}, [1, 8, 3, 9]),
    ("ScatterNDUpdate-15", ([1, 2, 3], [[0], [0]], [5, 6]), {"reduction": "sum"}, [12, 2, 3]),
    ("GatherElements-6", ([[1, 2], [3, 4]], [[0, 1], [0, 0]]), {"axis": "0"}, [[1, 4], [1, 2]]),
    ("GatherND-8", (A, [[[1]], [[0]]]), {"batch_dims": "1"}, [[A[0, 1]], [A[1, 0]]]),
    ("GatherND-5", (A, [[[1]], [[0]]]), {"batch_dims": "1"}, [[A[0, 1]], [A[1, 0]]]),
    (
        "OneHot",
        ([0, 2, -1, 5], 3, 5, 1),
        {"axis": "-1"},
        [[5, 1, 1], [1, 1, 5], [1, 1, 1], [1, 1, 1]],
    ),
    (
        "OneHot-16",
        ([-1], 3, 5, 1),
        {"axis": "0", "negative_indices_mode": "normalize"},
        [[1], [1], [5]],
    ),
    ("CumSum-3", ([1, 2, 3, 4], 0), {"exclusive": "true"}, [0, 1, 3, 6]),
    ("CumSum-3", ([1, 2, 3, 4], 0), {"reverse": "true"}, [10, 9, 7, 4]),
    ("CumSum-3", ([1, 2, 3, 4], 0), {"exclusive": "true", "reverse": "true"}, [9, 7, 4, 0]),
    ("Reverse", (A, [0, 2]), {"mode": "index"}, A[::-1, :, ::-1]),
    ("Reverse", (A, [False, True, False]), {"mode": "mask"}, A[:, ::-1]),
    ("ReverseSequence", ([[1, 2, 3], [4, 5, 6]], [2, 3]), {}, [[2, 1, 3], [6, 5, 4]]),
    ("Roll-7", (V, [-3], [0]), {}, np.roll(V, -3)),
    ("NonZero-3", ([[1, 0], [2, 3]],), {}, [[0, 1, 1], [0, 0, 1]]),
    ("ReduceSum", (A, [0, -1]), {}, A.sum((0, 2))),
    ("ReduceMean", ([[-3, 0], [1, 1]], [1]), {}, [-1, 1]),
    ("ReduceMax", (np.zeros((0, 2), np.float32), [0]), {}, [-np.inf, -np.inf]),
    ("ReduceL1-4", ([[-3.0, 4.0]], [1]), {}, [7]),
    ("ReduceL2-4", ([[-3.0, 4.0]], [1]), {"keep_dims": "true"}, [[5]]),
    ("ReduceLogicalAnd", ([[True, False], [True, True]], [1]), {}, [False, True]),
]


@pytest.mark.parametrize(("kind", "inputs", "attributes", "expected"), EXAMPLES)
def test_example(run, kind: str, inputs, attributes, expected) -> None:
    result = run(kind, *inputs, **attributes)
    expected = np.array(expected)
    assert result.shape == expected.shape
    np.testing.assert_array_equal(result, expected)


def test_depth_to_space_and_back(run) -> None:
    """DepthToSpace-1, 'Detailed description': blocks_first reads [b, b, C, H, W]."""
    data = np.arange(16).reshape(1, 8, 1, 2)
    blocks = run("DepthToSpace", data, block_size="2", mode="blocks_first")
    by_hand = np.array([[[[0, 4, 1, 5], [8, 12, 9, 13]], [[2, 6, 3, 7], [10, 14, 11, 15]]]])
    np.testing.assert_array_equal(blocks, by_hand)
    for mode in ("blocks_first", "depth_first"):
        there = run("DepthToSpace", data, block_size="2", mode=mode)
        back = run("SpaceToDepth", there, block_size="2", mode=mode)
        np.testing.assert_array_equal(back, data)


def test_space_to_batch_and_back(run) -> None:
    data = np.arange(24).reshape(1, 2, 3, 4)
    there = run("SpaceToBatch-2", data, [1, 1, 2, 2], [0, 0, 1, 0], [0, 0, 0, 0])
    assert there.shape == (4, 2, 2, 2)
    back = run("BatchToSpace-2", there, [1, 1, 2, 2], [0, 0, 1, 0], [0, 0, 0, 0])
    np.testing.assert_array_equal(back, data)


def test_splits(run) -> None:
    parts = run("Split", A, 2, num_splits="2")
    np.testing.assert_array_equal(np.concatenate(parts, 2), A)
    assert [p.shape for p in parts] == [(2, 3, 2)] * 2
    parts = run("VariadicSplit", A, -1, [1, -1])
    np.testing.assert_array_equal(np.concatenate(parts, 2), A)
    assert [p.shape[2] for p in parts] == [1, 3]


@pytest.mark.parametrize("kind", ["TopK", "TopK-3", "TopK-11"])
def test_top_k(run, kind: str) -> None:
    """Equal elements are returned in their order, for max and min alike."""
    data = [[3, 1, 3, 0, 1]]
    values, indices = run(kind, data, 3, axis="1", mode="max", sort="value")
    assert values.tolist() == [[3, 3, 1]]
    assert indices.tolist() == [[0, 2, 1]]
    values, indices = run(kind, data, 3, axis="1", mode="min", sort="index")
    assert values.tolist() == [[1, 0, 1]]
    assert indices.tolist() == [[1, 3, 4]]


@pytest.mark.parametrize(
    ("kind", "inputs", "attributes"),
    [
        ("Gather", ([1, 2], [-1], 0), {}),
        ("Gather-7", ([1, 2], [2], 0), {}),
        ("GatherElements-6", ([1, 2], [2]), {"axis": "0"}),
        ("GatherND-8", ([1, 2], [[-3]]), {}),
        ("ScatterUpdate-3", ([1, 2], [2], [5], 0), {}),
        ("ScatterElementsUpdate-3", ([1, 2], [2], [5], 0), {}),
        (
            "StridedSlice",
            ([1, 2], [2], [3]),
            {"begin_mask": "", "end_mask": "", "shrink_axis_mask": "1"},
        ),
        ("ReverseSequence", ([[1, 2]], [3]), {}),
    ],
)
def test_an_index_out_of_range_is_an_error_of_ours(run, kind: str, inputs, attributes) -> None:
    with pytest.raises(DeconvError) as caught:
        run(kind, *inputs, **attributes)
    assert isinstance(caught.value, InputError | ShapeError)
