"""Layers that move elements, or that deal with shapes."""

from __future__ import annotations

import numpy as np

from .row import COLUMN, N34, POSITIVE, SQUARE, Array, Const, Row, X, real


def blocks(x: Array, b: int) -> Array:
    """The catalogue's formula of DepthToSpace, of two spatial axes."""
    n, c, h, w = x.shape
    split = x.reshape(n, b, b, c // b**2, h, w)
    return split.transpose(0, 3, 4, 1, 5, 2).reshape(n, c // b**2, h * b, w * b)


DEEP = real(5, 4, 2, 3)
MOVES: list[Row] = [
    ("Concat", [SQUARE, POSITIVE], {"axis": 1}, {}, [np.concatenate([SQUARE, POSITIVE], 1)]),
    (
        "Concat",
        [SQUARE, POSITIVE, SQUARE],
        {"axis": -1},
        {},
        [np.concatenate([SQUARE, POSITIVE, SQUARE], 3)],
    ),
    ("Split", [SQUARE], {"axis": 0, "num_split": 2}, {}, list(np.split(SQUARE, 2))),
    ("Split", [SQUARE], {"axis": 3}, {}, [SQUARE[..., :4], SQUARE[..., 4:]]),
    ("Slice", [SQUARE], {"axis": 1}, {}, [SQUARE[:, :1], SQUARE[:, 1:]]),
    (
        "Crop",
        [X, POSITIVE[:, :, :4, :3]],
        {"axis": "2,3", "offset": "1,2"},
        {},
        [X[:, :, 1:5, 2:5]],
    ),
    ("Crop", [X], {"axis": "2,3", "offset": "0,3", "dim": "4,2"}, {}, [X[:, :, :4, 3:5]]),
    ("Crop", [X], {"axis": "2,3", "crop_begin": "1,0", "crop_end": "0,6"}, {}, [X[:, :, 1:, :2]]),
    # The catalogue's examples of Pad.
    (
        "Pad",
        [N34],
        {"pads_begin": "0,1", "pads_end": "2,3", "pad_mode": "constant"},
        {},
        [np.pad(N34, [(0, 2), (1, 3)])],
    ),
    (
        "Pad",
        [N34],
        {"pads_begin": "0,1", "pads_end": "2,3", "pad_mode": "constant", "pad_value": 666},
        {},
        [np.pad(N34, [(0, 2), (1, 3)], constant_values=666)],
    ),
    (
        "Pad",
        [N34],
        {"pads_begin": "0,1", "pads_end": "2,3", "pad_mode": "edge"},
        {},
        [
            np.float32(
                [
                    [1, 1, 2, 3, 4, 4, 4, 4],
                    [5, 5, 6, 7, 8, 8, 8, 8],
                    *[[9, 9, 10, 11] + [12] * 4] * 3,
                ]
            )
        ],
    ),
    (
        "Pad",
        [N34],
        {"pads_begin": "0,1", "pads_end": "2,3", "pad_mode": "reflect"},
        {},
        [
            np.float32(
                [
                    [2, 1, 2, 3, 4, 3, 2, 1],
                    [6, 5, 6, 7, 8, 7, 6, 5],
                    [10, 9, 10, 11, 12, 11, 10, 9],
                    [6, 5, 6, 7, 8, 7, 6, 5],
                    [2, 1, 2, 3, 4, 3, 2, 1],
                ]
            )
        ],
    ),
    (
        "Pad",
        [N34],
        {"pads_begin": "0,1", "pads_end": "2,3", "pad_mode": "symmetric"},
        {},
        [
            np.float32(
                [
                    [1, 1, 2, 3, 4, 4, 3, 2],
                    [5, 5, 6, 7, 8, 8, 7, 6],
                    [9, 9, 10, 11, 12, 12, 11, 10],
                    [9, 9, 10, 11, 12, 12, 11, 10],
                    [5, 5, 6, 7, 8, 8, 7, 6],
                ]
            )
        ],
    ),
    ("Reshape", [SQUARE], {"dim": "0,-1,5"}, {}, [SQUARE.reshape(2, 12, 5)]),
    ("Reshape", [SQUARE, Const([0, -1, 4])], {}, {}, [SQUARE.reshape(2, 15, 4)]),
    ("Reshape", [SQUARE, Const([0, -1, 4], "f4")], {}, {}, [SQUARE.reshape(2, 15, 4)]),
    ("Reshape", [SQUARE], {"dim": ""}, {}, [SQUARE.reshape(6, 20)]),
    ("Reshape", [SQUARE], {"axis": 1, "dim": "-1", "num_axes": 2}, {}, [SQUARE.reshape(2, 12, 5)]),
    ("Flatten", [SQUARE], {"axis": 1, "end_axis": -1}, {}, [SQUARE.reshape(2, 60)]),
    ("Flatten", [SQUARE], {"axis": 1, "end_axis": 2}, {}, [SQUARE.reshape(2, 12, 5)]),
    ("Flatten", [SQUARE], {}, {}, [SQUARE.reshape(-1)]),
    ("Permute", [SQUARE], {"order": "0,2,3,1"}, {}, [SQUARE.transpose(0, 2, 3, 1)]),
    ("Squeeze", [COLUMN, Const([2, -1])], {}, {}, [COLUMN[:, :, 0, 0]]),
    ("Squeeze", [COLUMN, Const([2], "f4")], {}, {}, [COLUMN[:, :, 0]]),
    ("Squeeze", [COLUMN], {}, {}, [COLUMN[:, :, 0, 0]]),
    ("Unsqueeze", [N34, Const([0, 3])], {}, {}, [N34.reshape(1, 3, 4, 1)]),
    ("Tile", [SQUARE], {"axis": 3, "tiles": 3}, {}, [np.tile(SQUARE, (1, 1, 1, 3))]),
    # begin_mask and end_mask of 0: the bound is ignored; the catalogue's example is of this kind
    (
        "StridedSlice",
        [SQUARE, Const([0, 1, 0, 0]), Const([0, 2, 0, 0]), Const([1, 1, 1, 2])],
        {
            "begin_mask": "0,1,0,0",
            "end_mask": "0,1,0,0",
            "ellipsis_mask": "0,0,0,0",
            "new_axis_mask": "0,0,0,0",
            "shrink_axis_mask": "0,1,0,0",
        },
        {},
        [SQUARE[:, 1, :, ::2]],
    ),
    (
        "StridedSlice",
        [N34, Const([1, -3]), Const([3, 4])],
        {"begin_mask": "1,1", "end_mask": "1,1"},
        {},
        [N34[1:3, -3:4]],
    ),
    (
        "ShuffleChannels",
        [X],
        {"axis": 1, "group": 3},
        {},
        [X.reshape(2, 3, 2, 56).transpose(0, 2, 1, 3).reshape(X.shape)],
    ),
    ("DepthToSpace", [DEEP], {"block_size": 2}, {}, [blocks(DEEP, 2)]),
    ("SpaceToDepth", [blocks(DEEP, 2)], {"block_size": 2}, {}, [DEEP]),
    ("Shape", [SQUARE], {}, {}, [np.int32([2, 3, 4, 5])]),
    ("ShapeOf", [SQUARE], {}, {}, [np.int32([2, 3, 4, 5])]),
    ("Fill", [Const([3, 4]), Const(5.0, "f4")], {}, {}, [np.full((3, 4), 5, np.float32)]),
    ("Broadcast", [COLUMN, Const([2, 3, 4, 5])], {}, {}, [np.broadcast_to(COLUMN, SQUARE.shape)]),
    ("Range", [Const(5), Const(15), Const(1)], {}, {}, [np.arange(5, 15, dtype=np.int32)]),
    ("OneHot", [np.int32([0, 1, 2])], {"axis": -1, "depth": 3}, {}, [np.eye(3, dtype="f4")]),
    (
        "OneHot",
        [np.float32([1, 5])],
        {"axis": 0, "depth": 2, "on_value": 7, "off_value": -1},
        {},
        [np.float32([[-1, -1], [7, -1]])],
    ),
    (
        "ReverseSequence",
        [SQUARE, Const([2, 3])],
        {"batch_axis": 0, "seq_axis": 1},
        {},
        [np.stack([SQUARE[0, [1, 0, 2]], SQUARE[1, ::-1]])],
    ),
    (
        "Bucketize",
        [np.float32([0.5, 2, 9]), Const([1, 2, 3], "f4")],
        {"with_right_bound": "True"},
        {},
        [np.int32([0, 1, 3])],
    ),
]
