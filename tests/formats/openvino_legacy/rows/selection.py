"""ArgMax, TopK, Gather and reductions."""

from __future__ import annotations

import numpy as np

from .row import N34, POSITIVE, SQUARE, Const, Row, real

ORDER = np.argsort(-SQUARE, 1, kind="stable")[:, :2]
TABLE_DATA = real(6, 12, 10, 4)
SELECTIONS: list[Row] = [
    ("ArgMax", [SQUARE], {"axis": 1, "top_k": 2, "out_max_val": 0}, {}, [ORDER.astype("f4")]),
    (
        "ArgMax",
        [SQUARE],
        {"axis": 1, "top_k": 1, "out_max_val": 1},
        {},
        [SQUARE.max(1, keepdims=True)],
    ),
    (
        "ArgMax",
        [SQUARE],
        {"top_k": 1, "out_max_val": 0},
        {},
        [SQUARE.reshape(2, -1).argmax(1).astype("f4").reshape(2, 1, 1)],
    ),
    (
        "ArgMax",
        [SQUARE],
        {"top_k": 1, "out_max_val": 1},
        {},
        [
            np.stack([SQUARE.reshape(2, -1).argmax(1), SQUARE.reshape(2, -1).max(1)], 1)
            .astype("f4")
            .reshape(2, 2, 1)
        ],
    ),
    (
        "TopK",
        [SQUARE, Const(2)],
        {"axis": 1, "mode": "max", "sort": "value"},
        {},
        [np.take_along_axis(SQUARE, ORDER, 1), ORDER.astype("i4")],
    ),
    (
        "TopK",
        [SQUARE, Const([1], "f4")],
        {"axis": -1, "mode": "min", "sort": "index"},
        {},
        [SQUARE.min(3, keepdims=True)],
    ),
    ("Gather", [N34, Const([[1, 0], [2, 2]])], {"axis": 0}, {}, [N34[[[1, 0], [2, 2]]]]),
    ("Gather", [N34, Const([3, 1], "f4")], {"axis": -1}, {}, [N34[:, [3, 1]]]),
    # The catalogue's order: the indices first.
    (
        "Gather",
        [np.int32([[[1, 0, 11]]]), Const(TABLE_DATA, "f4")],
        {"axis": 1},
        {},
        [TABLE_DATA[:, [[[1, 0, 11]]]]],
    ),
    *(
        (
            f"Reduce{name}",
            [POSITIVE, Const([1, -1])],
            {"keep_dims": "True"},
            {},
            [function(POSITIVE.astype(np.float64), axis=(1, 3), keepdims=True)],
        )
        for name, function in {
            "Max": np.max,
            "Min": np.min,
            "Mean": np.mean,
            "Sum": np.sum,
            "Prod": np.prod,
        }.items()
    ),
    ("ReduceSum", [POSITIVE, Const([2], "f4")], {"keep_dims": "False"}, {}, [POSITIVE.sum(2)]),
    ("ReduceL1", [SQUARE, Const([1])], {"keep_dims": 0}, {}, [np.abs(SQUARE).sum(1)]),
    ("ReduceL2", [SQUARE, Const([1])], {"keep_dims": 0}, {}, [np.sqrt((SQUARE**2).sum(1))]),
    ("ReduceLogSum", [POSITIVE, Const([1])], {"keep_dims": 0}, {}, [np.log(POSITIVE.sum(1))]),
    (
        "ReduceLogSumExp",
        [SQUARE, Const([1])],
        {"keep_dims": 0},
        {},
        [np.log(np.exp(SQUARE).sum(1))],
    ),
    ("ReduceSumSquare", [SQUARE, Const([1])], {"keep_dims": 0}, {}, [(SQUARE**2).sum(1)]),
    (
        "ReduceAnd",
        [np.round(SQUARE), Const([3])],
        {"keep_dims": 1},
        {},
        [np.round(SQUARE).all(3, keepdims=True).astype("f4")],
    ),
    (
        "ReduceOr",
        [np.round(SQUARE), Const([3])],
        {"keep_dims": 1},
        {},
        [np.round(SQUARE).any(3, keepdims=True).astype("f4")],
    ),
]
