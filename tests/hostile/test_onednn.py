"""Load, lint, run and convert mutated oneDNN Graph files: results or clear errors."""

from __future__ import annotations

import functools
import json
import math
import random
import warnings
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
from onednn_forms import ZEROS, as_bytes, graph, op, tensor, windows
from onednn_kinds import EVERY_KIND, graph_of

import deconv_ir
from deconv_ir.errors import DeconvError
from deconv_ir.formats.onednn_json.kinds import KINDS
from deconv_ir.formats.onednn_json.to_openvino import lower
from deconv_ir.formats.reading import read_graph
from deconv_ir.limits import DEFAULT_LIMITS
from deconv_ir.linter.engine import check_bytes
from deconv_ir.linter.options import choose

VALUES: list[Any] = [
    *(0, -1, 1, 2, 3, 7, 2**31, 2**63 - 1, -(2**63), 2**64 - 1, 1.5, 1e30, 1e308, None, True),
    *("", "x", "f32", "NXC", "per_channel", "per_group", [], [0], [1, 1], [2**62] * 2, [1] * 70),
    *({}, {"id": 0}, [[1]], "s4", "f8_e5m2", "undef", "MatMul", "Interpolate", "Wildcard"),
]


def seeds() -> list[dict[str, Any]]:
    """Return small graphs of several operations, and one of each kind with all its attributes."""
    x, w, y = [1, 4, 3, 3], [4, 2, 2, 2], [1, 2, 4, 4]
    scale = {"scales": [0.5], "zps": [1], "qtype": "per_tensor", "axis": 1}
    window = windows([1, 1], [0, 0], [0, 0], weights_format="IOX", output_padding=ZEROS)
    pool = {"strides": [1, 1], "kernel": [2, 2], "pads_begin": [0, 0], "pads_end": [0, 0]}
    return [
        graph(
            op(0, "Dequantize", [tensor(0, x, "u8")], [tensor(1, x)], **scale),
            op(1, "Dequantize", [tensor(2, w, "s8")], [tensor(3, w)], **scale),
            op(2, "ConvTranspose", [tensor(1, x), tensor(3, w)], [tensor(4, y)], **window),
            op(3, "BiasAdd", [tensor(4, y), tensor(9, [2])], [tensor(5, y)], data_format="NCX"),
            op(4, "Quantize", [tensor(5, y)], [tensor(6, y, "s8")], **scale),
            input_ports=[0, 2, 9],
            output_ports=[6],
        ),
        graph(
            op(
                0,
                "Convolution",
                [tensor(0, y), tensor(1, [4, 2, 2, 2])],
                [tensor(2, x)],
                **windows([1, 1], [0, 0], [0, 0], weights_format="OIX"),
            ),
            op(
                1,
                "MaxPool",
                [tensor(2, x)],
                [tensor(3, [1, 4, 2, 2])],
                data_format="NCX",
                rounding_type="floor",
                **pool,
            ),
            op(
                2,
                "Interpolate",
                [tensor(3, [1, 4, 2, 2])],
                [tensor(4, x)],
                sizes=[3, 3],
                mode="nearest",
                data_format="NCX",
            ),
            op(
                3,
                "ReduceMean",
                [tensor(4, x)],
                [tensor(5, [1, 4, 1, 1])],
                axes=[2, 3],
                keep_dims=True,
            ),
        ),
        graph(
            op(
                0,
                "ConvTransposeBackwardWeights",
                [tensor(0, x), tensor(1, y)],
                [tensor(2, w)],
                weights_shape=w,
                **windows([1, 1], [0, 0], [0, 0], weights_format="IOX"),
            ),
            op(
                1,
                "StaticReshape",
                [tensor(2, w)],
                [tensor(3, [4, 8])],
                shape=[4, -1],
                special_zero=False,
            ),
            op(
                2,
                "LayerNorm",
                [tensor(3, [4, 8]), tensor(8, [8]), tensor(9, [8])],
                [tensor(4, [4, 8])],
                keep_stats=False,
            ),
            op(3, "SoftMax", [tensor(4, [4, 8])], [tensor(5, [4, 8])], axis=1),
        ),
        graph(
            op(
                0,
                "GroupNorm",
                [tensor(0, x), tensor(1, [4]), tensor(2, [4])],
                [tensor(3, x), tensor(4, [1, 2]), tensor(5, [1, 2])],
                groups=2,
                data_format="NCX",
            ),
            op(1, "SoftMax", [tensor(3, x)], [tensor(6, x), tensor(7, [1, 1, 3, 3])], axis=1),
            op(2, "End", [tensor(6, x)], []),
            op(3, "GenIndex", [tensor(6, x)], [tensor(8, x, "s32")], axis=-1),
            op(
                4,
                "BatchNormTrainingBackward",
                [tensor(6, x), tensor(0, x), *(tensor(i, [4]) for i in (9, 10, 1))],
                [tensor(11, x), tensor(12, [4]), tensor(13, [4])],
                epsilon=0.5,
                data_format="NCX",
            ),
            op(
                5,
                "PReLUBackward",
                [tensor(11, x), tensor(14, [4]), tensor(0, x)],
                [tensor(15, x), tensor(16, [4])],
                data_format="NCX",
            ),
            op(
                6,
                "Dropout",
                [tensor(15, x), *(tensor(i, [], "s64") for i in (17, 18)), tensor(19, [])],
                [tensor(20, x), tensor(21, x, "u8")],
            ),
        ),
        *map(graph_of, EVERY_KIND),
    ]


@functools.cache
def texts() -> list[str]:
    """Return the seeds as JSON, computed once."""
    return [json.dumps(document) for document in seeds()]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Iterate over the paths to all values."""
    if path:
        yield path
    items = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value if isinstance(value, list) else ())
    )
    for key, inner in list(items):
        yield from places(inner, (*path, key))


def rearranged(draw: random.Random, operations: list[dict[str, Any]]) -> None:
    """Repeat, swap or connect operations and tensors as in no valid graph."""
    one, other = draw.choice(operations), draw.choice(operations)
    side = draw.choice(["inputs", "outputs"])
    how = draw.randrange(6)
    if how == 0:
        operations.append(json.loads(json.dumps(one)))
    elif how == 1:
        draw.shuffle(operations)
    elif how == 2 and one["inputs"] and other["outputs"]:  # often a cycle
        one["inputs"][0]["id"] = other["outputs"][0]["id"]
    elif how == 3:
        one[side] = one[side] * draw.choice([2, 300])
    elif how == 4:
        del one[side][draw.randrange(3) :]
    else:
        one["id"] = other["id"]


def mutated(draw: random.Random) -> bytes:
    """Change values, members, kinds or bytes of a seed."""
    document = json.loads(draw.choice(texts()))
    if draw.random() < 0.3:
        rearranged(draw, document["graph"])
    for operation in document["graph"]:
        if draw.random() < 0.1:
            operation["kind"] = draw.choice(list(KINDS))
    for _ in range(draw.choice([0, 1, 1, 2, 3])):
        path = draw.choice(list(places(document)))
        at = document
        for step in path[:-1]:
            at = at[step]
        if draw.random() < 0.8:
            at[path[-1]] = json.loads(json.dumps(draw.choice(VALUES)))
        else:
            del at[path[-1]]
    data = bytearray(json.dumps(document).encode())
    if draw.random() < 0.1:
        at = draw.randrange(len(data))
        data[at : at + draw.choice([0, 1, 3])] = bytes([draw.choice(b'{}[]",:09eE.\\\0\xffn')])
    return bytes(data)


def run_if_small(data: bytes) -> None:
    model = deconv_ir.load(data)
    count = 0.0
    for port in model.inputs.values():
        if port.shape is None or port.element_type is None:
            return
        if not all(isinstance(d, int) for d in port.shape):
            return
        count += math.prod(float(d) for d in port.shape if isinstance(d, int))
    if count < 1e5:
        arrays = {
            name: np.zeros(tuple(port.shape or ()), port.element_type.numpy())
            for name, port in model.inputs.items()
            if port.element_type is not None
        }
        model.run(arrays)


@pytest.mark.parametrize("seed", range(20))
def test_mutated_graphs_are_errors_of_one_line(seed: int) -> None:
    draw = random.Random(f"onednn/{seed}")
    options = choose(severity="info")
    messages: list[str] = []
    for _ in range(25):
        data = mutated(draw)
        for action in (
            run_if_small,
            lambda data: lower(read_graph(data, DEFAULT_LIMITS)),
            lambda data: [str(f) for f in check_bytes(data, "g.json", options).findings],
        ):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                try:
                    action(data)
                except DeconvError as error:
                    messages.append(str(error))
    assert messages
    assert not [text for text in messages if "\n" in text]


def test_seeds_are_valid() -> None:
    """If a seed were invalid, all of its mutations would end at the same error."""
    for document in seeds():
        data = json.dumps(document).encode()
        deconv_ir.load(data, strict=True)
        assert as_bytes(*document["graph"])
        run_if_small(data)
