"""Interp, Resample and Upsampling."""

from __future__ import annotations

import numpy as np

from .. import oracles
from .row import SQUARE, Const, Row

NEAREST, LINEAR, CUBIC = (f"caffe.ResampleParameter.{n}" for n in ("NEAREST", "LINEAR", "CUBIC"))
RESAMPLINGS: list[Row] = [
    (
        "Interp",
        [SQUARE],
        {"height": 9, "width": 7, "align_corners": 1, "pad_beg": 0, "pad_end": 0},
        {},
        [oracles.bilinear(SQUARE, (9, 7), corners=True)],
    ),
    (
        "Interp",
        [SQUARE],
        {"align_corners": 0, "pad_beg": 0, "pad_end": 0, "factor": 2},
        {},
        [oracles.bilinear(SQUARE, (8, 10), corners=False)],
    ),
    (
        "Interp",
        [SQUARE],
        {"align_corners": 1, "width": 3, "height": 2},
        {},
        [oracles.bilinear(SQUARE, (2, 3), corners=True)],
    ),
    (
        "Interp",
        [SQUARE],
        {"align_corners": 1, "width": 6, "height": 4, "pad_beg": -1, "pad_end": -1},
        {},
        [oracles.bilinear(SQUARE[:, :, 1:-1, 1:-1], (4, 6), corners=True)],
    ),
    # Pads add zeros, a negative one crops.
    (
        "Interp",
        [SQUARE],
        {"align_corners": 1, "width": 12, "height": 9, "pad_beg": 1, "pad_end": 2},
        {},
        [oracles.bilinear(np.pad(SQUARE, [(0, 0), (0, 0), (1, 2), (1, 2)]), (9, 12), corners=True)],
    ),
    (
        "Interp",
        [SQUARE],
        {"align_corners": 0, "factor": 2, "pad_beg": 2, "pad_end": -1},
        {},
        [
            oracles.bilinear(
                np.pad(SQUARE, [(0, 0), (0, 0), (2, 0), (2, 0)])[:, :, :-1, :-1],
                (10, 12),
                corners=False,
            )
        ],
    ),
    (
        "Resample",
        [SQUARE],
        {"type": NEAREST, "factor": 2, "antialias": 0},
        {},
        [SQUARE.repeat(2, 2).repeat(2, 3)],
    ),
    (
        "Resample",
        [SQUARE],
        {"type": NEAREST, "height": 6, "width": 3},
        {},
        [oracles.nearest(SQUARE, (6, 3))],
    ),
    (
        "Resample",
        [SQUARE, Const([2, 3, 8, 15])],
        {"type": NEAREST, "factor": 1},
        {},
        [SQUARE.repeat(2, 2).repeat(3, 3)],
    ),
    (
        "Resample",
        [SQUARE],
        {"type": LINEAR, "factor": 2, "antialias": 0},
        {},
        [oracles.resample(SQUARE, (8, 10), oracles.tent)],
    ),
    (
        "Resample",
        [SQUARE],
        {"type": LINEAR, "factor": 0.5, "antialias": 1},
        {},
        [oracles.resample(SQUARE, (2, 3), oracles.tent, antialias=True)],
    ),
    (
        "Resample",
        [SQUARE],
        {"type": LINEAR, "height": 4, "width": 2, "antialias": 1},
        {},
        [oracles.resample(SQUARE, (4, 2), oracles.tent, antialias=True)],
    ),
    (
        "Resample",
        [SQUARE],
        {"type": CUBIC, "height": 9, "width": 5, "antialias": 0},
        {},
        [oracles.resample(SQUARE, (9, 5), oracles.cubic)],
    ),
    (
        "Resample",
        [SQUARE],
        {"type": CUBIC, "factor": 0.5, "height": 0, "width": 3, "antialias": 1},
        {},
        [oracles.resample(SQUARE, (2, 3), oracles.cubic, antialias=True)],
    ),
    ("Upsampling", [SQUARE], {"scale": 3}, {}, [SQUARE.repeat(3, 2).repeat(3, 3)]),
]
