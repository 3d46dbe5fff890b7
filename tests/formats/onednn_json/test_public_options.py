"""Option lines with which benchdnn runs its graphs that have deconvolutions.

The graphs are written here with the structure of oneDNN's, and options are read and applied by a
parser of the test's own, so that shapes and values come from loops in f64 and exact integers.
Source of the lines: oneDNN, tests/benchdnn/inputs/graph/{op,pattern}/harness_*.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from onednn_forms import ZEROS, deconvolution, graph, op, tensor, windows

import deconv_ir
from deconv_ir import Overrides

UP, DOWN = [1, 32, 28, 28], [1, 128, 16, 16]
KERNEL = [32, 128, 3, 3]
STRIDED = {"strides": [2, 2], "pads_end": [41, 41]}


def backward(kind: str, inputs: Any, output: Any, **others: Any) -> list[Any]:
    tensors = [tensor(i, shape) for i, shape in enumerate(inputs)]
    spatial = len(output) - 2
    attributes = windows([1] * spatial, [0] * spatial, [0] * spatial) | others
    return [op(0, kind, tensors, [tensor(2, output)], **attributes)]


def data_gradient(data: Any, weights: Any, output: Any, **others: Any) -> list[Any]:
    attributes = {"weights_format": "OIX", "dst_shape": output, "output_padding": ZEROS} | others
    return backward("ConvolutionBackwardData", [data, weights], output, **attributes)


def quantized(
    x: Any, w: Any, y: Any, *after: str, bias: bool = False, pad: int = 0, **others: Any
) -> list[Any]:
    """Return two Dequantize, ConvTranspose of operation 5, further operations, and Quantize."""
    scale = {"axis": 0, "qtype": "per_tensor", "zps": [0], "scales": [1.0]}
    zero = scale | {"zps": [2]}
    pads = {"pads_begin": [pad, pad], "pads_end": [pad, pad]}
    up = deconvolution(x, w, y, **pads, **others)
    up |= {
        "id": 5,
        "inputs": [tensor(37, x), tensor(101, w)],
        "outputs": [tensor(165, y)],
    }
    result = [
        op(2065, "Dequantize", [tensor(0, x, "s8")], [tensor(37, x)], **(zero if bias else scale)),
        op(
            4113,
            "Dequantize",
            [tensor(1, w, "s8", property_type="constant")],
            [tensor(101, w)],
            **scale | {"scales": [2.25]},
        ),
        up,
    ]
    free = 2
    if bias:
        up["inputs"].append(tensor(2, [y[1]], property_type="constant"))
        free = 3
    last = 165
    for number, kind in enumerate(after):
        inputs, output = [tensor(last, y)], 6319 + number
        if kind == "Add" and len(after) == 1:  # of a tensor that is dequantized
            result.append(
                op(
                    8209,
                    "Dequantize",
                    [tensor(free, y, "s8")],
                    [tensor(6223, y)],
                    **scale | {"axis": 1},
                )
            )
            inputs.append(tensor(6223, y))
        elif kind != "Square":
            inputs.append(tensor(free, [1] * len(y)))
            free += 1
        broadcast = {} if kind == "Square" else {"auto_broadcast": "numpy"}
        result.append(op(6159 + number, kind, inputs, [tensor(output, y)], **broadcast))
        last = output
    quantize = scale | {"zps": [3 if bias else 0]}
    result.append(op(10256, "Quantize", [tensor(last, y)], [tensor(10416, y, "s8")], **quantize))
    return result


GRAPHS: dict[str, list[Any]] = {
    "deconv": [deconvolution(UP, KERNEL, DOWN, **STRIDED)],
    "deconv_bwd_d": backward(
        "ConvTransposeBackwardData", [DOWN, KERNEL], UP, weights_format="IOX", **STRIDED
    ),
    "deconv_bwd_w": backward(
        "ConvTransposeBackwardWeights",
        [UP, DOWN],
        KERNEL,
        weights_format="IOX",
        weights_shape=KERNEL,
        **STRIDED,
    ),
    "conv_bwd_d_2d": data_gradient(
        [1, 128, 14, 14], [128, 32, 1, 1], [1, 32, 28, 28], strides=[2, 2]
    ),
    "conv_bwd_d_3d": data_gradient([1, 32, 6, 5, 4], [32, 3, 3, 3, 3], [1, 3, 8, 7, 6]),
    "post_ops": [
        deconvolution(
            [2, 17, 5, 5], [17, 16, 3, 3], [2, 16, 5, 5], pads_begin=[1, 1], pads_end=[1, 1]
        )
    ],
    "int8": quantized([2, 17, 5, 5], [17, 16, 3, 3], [2, 16, 5, 5], pad=1),
    "square": quantized([2, 16, 5, 5], [16, 16, 1, 1], [2, 16, 5, 5], "Square"),
    "chain": quantized([2, 16, 5, 5], [16, 16, 1, 1], [2, 16, 5, 5], "Add", "Multiply"),
    "sum": quantized([2, 16, 5, 5], [16, 16, 1, 1], [2, 16, 5, 5], "Add"),
    "add": quantized([2, 16, 5, 5], [16, 16, 1, 1], [2, 16, 5, 5], "Add", bias=True),
    "sum_2": quantized(
        [2, 16, 5, 5], [16, 1, 3, 3], [2, 16, 5, 5], "Add", bias=True, pad=1, groups=16
    ),
}

PADS = ["SAME_UPPER", "SAME_LOWER", "VALID"]


def window(number: int, strides: str, begin: str, end: str, groups: int) -> str:
    ones = "x".join("1" * len(strides.split("x")))
    return (
        f"{number}:strides:{strides}*dilations:{ones}*pads_begin:{begin}*pads_end:{end}"
        f"*groups:{groups}"
    )


def auto_pads(name: str) -> list[tuple[str, str, str]]:
    return [(name, "", ""), *((name, "", f"0:auto_pad:{pad}") for pad in PADS)]


PLAIN: list[tuple[str, str, str]] = [
    *auto_pads("deconv"),
    ("deconv", "", "0:output_padding:1x1"),
    ("deconv", "0:1x28x28x32", "0:data_format:NXC"),
    ("deconv", "1:3x3x128x32", "0:weights_format:XOI"),
    *auto_pads("deconv_bwd_d"),
    ("deconv_bwd_d", "", ""),
    ("deconv_bwd_d", "0:1x16x16x128", "0:data_format:NXC"),
    ("deconv_bwd_d", "1:3x3x128x32", "0:weights_format:XOI"),
    ("deconv_bwd_w", "", ""),
    ("deconv_bwd_w", "", ""),
    ("deconv_bwd_w", "", "0:weights_format:XOI*weights_shape:3x3x128x32"),
    ("deconv_bwd_w", "1:1x128x56x56", "0:auto_pad:SAME_UPPER"),
    ("deconv_bwd_w", "1:1x128x56x56", "0:auto_pad:SAME_LOWER"),
    ("deconv_bwd_w", "1:1x128x57x57", "0:auto_pad:VALID"),
    ("deconv_bwd_w", "0:1x28x28x32+1:1x16x16x128", "0:data_format:NXC"),
]
"""The lines of ConvTranspose and its gradients, which f32, bf16 and f16 share."""
FLAT: list[tuple[str, str, str]] = [
    *auto_pads("conv_bwd_d_2d"),
    ("conv_bwd_d_2d", "", "0:output_padding:2x2"),
    ("conv_bwd_d_2d", "0:1x14x14x128", "0:data_format:NXC*dst_shape:1x28x28x32"),
    ("conv_bwd_d_2d", "1:1x1x32x128", "0:weights_format:XIO"),
]
"""The lines of ConvolutionBackwardData in bf16 and f16."""
TO_2D = "pads_end:0x0*dilations:1x1*pads_begin:0x0*strides:2x2"
_IMAGE, _FILTER = "0:1x128x14x14*abcd", "1:128x32x1x1*abcd"
NXC_2D = (
    "conv_bwd_d_3d",
    f"0:1x14x14x128*abcd+{_FILTER}",
    f"0:data_format:NXC*dst_shape:1x28x28x32*{TO_2D}",
)
SOLID: list[tuple[str, str, str]] = [
    *(
        ("conv_bwd_d_3d", f"{_IMAGE}+{_FILTER}", f"0:dst_shape:1x32x28x28*{TO_2D}{more}")
        for more in ("", *(f"*auto_pad:{pad}" for pad in PADS), "*output_padding:2x2")
    ),
    NXC_2D,
    (
        "conv_bwd_d_3d",
        f"{_IMAGE}+1:1x1x32x128*abcd",
        f"0:weights_format:XIO*dst_shape:1x32x28x28*{TO_2D}",
    ),
    # Smaller here than in oneDNN: there 114x130x130, and a batch of 50 with 64 channels.
    (
        "conv_bwd_d_3d",
        "0:1x32x4x5x6+1:32x3x3x3x3",
        f"{window(0, '1x1x1', '0x0x0', '0x0x0', 1)}*dst_shape:1x3x6x7x8",
    ),
    (
        "conv_bwd_d_3d",
        "0:2x8x56x56+1:8x8x1x1",
        f"{window(0, '1x1', '0x0', '0x0', 1)}*dst_shape:2x8x56x56",
    ),
]
DATA: list[tuple[str, str, str]] = [
    *(
        ("deconv_bwd_d", f"0:{data}+1:{weights}", window(0, "1x1", begin, end, 1))
        for data, weights, begin, end in (
            ("2x16x5x5", "17x16x3x3", "3x3", "2x2"),
            ("2x16x5x5", "16x16x1x1", "0x0", "0x0"),
            ("2x16x5x5", "16x16x3x3", "1x1", "1x1"),
            ("2x17x5x5", "16x17x1x1", "0x0", "0x0"),
            ("2x17x5x5", "16x17x3x3", "1x1", "1x1"),
            ("2x3x5x5", "16x3x3x3", "1x1", "1x1"),
            ("2x16x5x5", "16x16x3x3", "3x3", "2x2"),
            ("2x17x5x5", "16x17x3x3", "3x3", "2x2"),
            ("2x16x5x5", "17x16x1x1", "0x0", "0x0"),
            ("2x16x5x5", "17x16x3x3", "1x1", "1x1"),
            ("2x3x5x5", "17x3x3x3", "1x1", "1x1"),
        )
    ),
    *(
        (
            "deconv_bwd_d",
            f"0:{data}x5x5x5+1:{weights}x3x3x3",
            window(0, "1x1x1", "1x1x1", "1x1x1", groups),
        )
        for data, weights, groups in (
            ("2x16", "20x4", 4),
            ("2x16", "16x1", 16),
            ("2x17", "17x1", 17),
            ("2x16", "16x4", 4),
            ("2x20", "16x5", 4),
        )
    ),
]
SUMS: list[tuple[str, str, str]] = [
    *(
        ("sum", f"0:2x{x}+1:{w}+2:2x{y}x5x5", window(5, "1x1", begin, end, 1))
        for x, w, y, begin, end in (
            ("17x8x8", "17x16x3x3", 16, "3x3", "2x2"),
            ("16x5x5", "16x16x1x1", 16, "0x0", "0x0"),
            ("16x5x5", "16x16x3x3", 16, "1x1", "1x1"),
            ("16x5x5", "16x17x1x1", 17, "0x0", "0x0"),
            ("16x5x5", "16x17x3x3", 17, "1x1", "1x1"),
            ("16x5x5", "16x3x3x3", 3, "1x1", "1x1"),
            ("16x8x8", "16x16x3x3", 16, "3x3", "2x2"),
            ("16x8x8", "16x17x3x3", 17, "3x3", "2x2"),
            ("17x5x5", "17x16x1x1", 16, "0x0", "0x0"),
            ("17x5x5", "17x16x3x3", 16, "1x1", "1x1"),
            ("17x5x5", "17x3x3x3", 3, "1x1", "1x1"),
        )
    ),
    ("sum", "", "8209:zps:4"),
]
INT8: list[tuple[str, str, str]] = [
    ("int8", "", ""),
    ("square", "0:2x16x5x5+1:16x4x3x3", window(5, "1x1", "1x1", "1x1", 4)),
    # The public line has a batch of 50.
    (
        "chain",
        "0:2x64x56x56+1:64x64x1x1+2:1x1x1x1+3:1x64x1x1",
        window(5, "1x1", "0x0", "0x0", 1),
    ),
    *SUMS,
    ("add", "0:2x20x5x5+1:20x4x3x3+2:16+3:1x1x1x1", window(5, "1x1", "1x1", "1x1", 4)),
    (
        "add",
        "0:2x16x8x8+1:16x17x3x3+2:17+3:2x17x5x5",
        f"{window(5, '1x1', '3x3', '2x2', 1)}+8209:zps:4",
    ),
    ("sum_2", "0:2x16x5x5+1:16x5x3x3+2:20+3:2x20x5x5", window(5, "1x1", "1x1", "1x1", 4)),
]
LINES: list[tuple[str, str, str, str]] = [
    *((*line, "") for line in (*PLAIN, *SOLID, *DATA, *INT8, ("post_ops", "", ""))),
    *((*line, dt) for dt in ("bf16", "f16") for line in (*FLAT, *PLAIN, ("post_ops", "", ""))),
    # The lines of CI, which are among those above.
    (*NXC_2D, ""),
    ("deconv", "", "", ""),
    ("deconv_bwd_d", "", "0:auto_pad:SAME_LOWER", ""),
    ("deconv_bwd_w", "", "0:weights_format:XOI*weights_shape:3x3x128x32", ""),
]


def changed(name: str, in_shapes: str, op_attrs: str) -> list[Any]:
    """Apply options to a graph: shapes of inputs, and attributes."""
    operations = json.loads(json.dumps(GRAPHS[name]))
    shapes = {}
    for entry in filter(None, in_shapes.split("+")):
        number, _, text = entry.partition(":")
        shapes[int(number)] = [int(d) for d in text.partition("*")[0].split("x")]
    for operation in operations:
        for one in operation["inputs"]:
            one["shape"] = shapes.get(one["id"], one["shape"])
    for entry in filter(None, op_attrs.split("+")):
        number, _, text = entry.partition(":")
        (operation,) = [o for o in operations if o["id"] == int(number)]
        for pair in text.split("*"):
            key, _, value = pair.partition(":")
            found = operation["attrs"][key]
            listed = isinstance(found["value"], list)
            whole = [int(v) for v in value.split("x")] if value[0].isdigit() else []
            found["value"] = value if not whole else (whole if listed else whole[0])
    return operations


def begin_of_pads(attributes: Any, extents: Any, outer: Any, kernel: Any) -> list[int]:
    """Return the pads before: `extents` of a convolution's output, `outer` of its input."""
    strides = attributes["strides"]
    how = attributes["auto_pad"]
    if how == "None":
        return list(attributes["pads_begin"])
    if how == "VALID":
        return [0] * len(strides)
    totals = [
        max(0, (y - 1) * s + k - x)
        for y, s, k, x in zip(extents, strides, kernel, outer, strict=True)
    ]
    return [t // 2 if how == "SAME_UPPER" else t - t // 2 for t in totals]


def taps(small: Any, outer: Sequence[int], kernel: Sequence[int], strides: Any, begin: Any) -> Any:
    """Iterate over taps: the slice of `small`, and its place in the outer tensor."""
    for tap in itertools.product(*map(range, kernel)):
        inner, place = [], []
        for k, n, x, s, p in zip(tap, small, outer, strides, begin, strict=True):
            ok = [y for y in range(n) if 0 <= y * s + k - p < x]
            if not ok:
                break
            inner.append(slice(ok[0], ok[-1] + 1))
            place.append(slice(ok[0] * s + k - p, ok[-1] * s + k - p + 1, s))
        else:
            yield tap, (..., *inner), (..., *place)


def compute(kind: str, attributes: Any, arrays: list[Any]) -> Any:
    """Compute a transposed convolution or a gradient, with sums over taps."""
    last = attributes["data_format"] == "NXC"
    turned = attributes["weights_format"] in ("XOI", "XIO")

    def ncx(array: Any) -> Any:
        return np.moveaxis(array, -1, 1) if last else array

    def iox(array: Any) -> Any:
        return np.moveaxis(array, (-1, -2), (0, 1)) if turned else array

    strides, groups = attributes["strides"], attributes["groups"]
    if kind == "ConvTransposeBackwardWeights":
        shape = attributes["weights_shape"]
        kernel = shape[:-2] if turned else shape[2:]
        small, large = ncx(arrays[0]), ncx(arrays[1])
        begin = begin_of_pads(attributes, small.shape[2:], large.shape[2:], kernel)
        count, share = small.shape[1], large.shape[1] // groups
        result = np.zeros((count, share, *kernel))
        a = small.reshape(len(small), groups, -1, *small.shape[2:])
        b = large.reshape(len(large), groups, -1, *large.shape[2:])
        for tap, inner, place in taps(small.shape[2:], large.shape[2:], kernel, strides, begin):
            found = np.einsum("ngi...,ngo...->gio", a[inner], b[place], optimize=True)
            result[(..., *tap)] = found.reshape(count, share)
        return np.moveaxis(result, (0, 1), (-1, -2)) if turned else result
    weights = iox(arrays[1])
    kernel = weights.shape[2:]
    per = weights.reshape(groups, -1, *weights.shape[1:])
    data = ncx(arrays[0])
    parts = data.reshape(len(data), groups, -1, *data.shape[2:])
    if kind == "ConvTransposeBackwardData":
        outer = data.shape[2:]
        extents = [
            -(-x // s) if attributes["auto_pad"].startswith("SAME") else (x + p + q - k) // s + 1
            for x, s, k, p, q in zip(
                outer,
                strides,
                kernel,
                *(
                    [[0] * len(outer)] * 2
                    if attributes["auto_pad"] == "VALID"
                    else [attributes["pads_begin"], attributes["pads_end"]]
                ),
                strict=True,
            )
        ]
        begin = begin_of_pads(attributes, extents, outer, kernel)
        result = np.zeros((len(data), groups, per.shape[1], *extents))
        for tap, inner, place in taps(extents, outer, kernel, strides, begin):
            result[inner] += np.einsum(
                "gio,ngo...->ngi...", per[(..., *tap)], parts[place], optimize=True
            )
    else:
        natural = [(x - 1) * s + k for x, s, k in zip(data.shape[2:], strides, kernel, strict=True)]
        if kind == "ConvolutionBackwardData":
            shape = attributes["dst_shape"]
            extents = shape[1:-1] if last else shape[2:]
        elif attributes["auto_pad"] == "None":
            extents = [
                n - p - q + o
                for n, p, q, o in zip(
                    natural,
                    attributes["pads_begin"],
                    attributes["pads_end"],
                    attributes["output_padding"][: len(natural)],
                    strict=True,
                )
            ]
        elif attributes["auto_pad"] == "VALID":
            extents = natural
        else:
            extents = [x * s for x, s in zip(data.shape[2:], strides, strict=True)]
        begin = begin_of_pads(attributes, data.shape[2:], extents, kernel)
        if kind == "ConvolutionBackwardData" and attributes["auto_pad"] == "SAME_LOWER":
            # The document rounds down, and does not clamp at 0 as oneDNN's code does.
            begin = [(n - y) // 2 for n, y in zip(natural, extents, strict=True)]
        result = np.zeros((len(data), groups, per.shape[2], *extents))
        for tap, inner, place in taps(data.shape[2:], extents, kernel, strides, begin):
            result[place] += np.einsum(
                "gio,ngi...->ngo...", per[(..., *tap)], parts[inner], optimize=True
            )
    result = result.reshape(len(data), -1, *result.shape[3:])
    if len(arrays) > 2:
        result = result + arrays[2].reshape(-1, *[1] * len(kernel))
    return np.moveaxis(result, 1, -1) if last else result


def evaluate(operations: list[Any], values: dict[int, Any]) -> dict[int, Any]:
    """Compute a graph in f64; tensors of an int8 pattern are rounded to f32 one by one."""
    values = {number: array.astype(float) for number, array in values.items()}
    exact = len(operations) > 1
    for operation in operations:
        attributes = {name: found["value"] for name, found in operation["attrs"].items()}
        arrays = [values[one["id"]] for one in operation["inputs"]]
        kind = operation["kind"]
        if kind == "Dequantize":
            found = (arrays[0] - attributes["zps"][0]) * attributes["scales"][0]
        elif kind == "Quantize":
            levels = np.rint(arrays[0] / attributes["scales"][0] + attributes["zps"][0])
            found = np.clip(levels, -128, 127)
        elif kind in ("Add", "Multiply", "Square"):
            with np.errstate(over="ignore"):
                found = {
                    "Add": lambda a: a[0] + a[1],
                    "Multiply": lambda a: a[0] * a[1],
                    "Square": lambda a: a[0] * a[0],
                }[kind](arrays)
        else:
            found = compute(kind, attributes, arrays)
        rounded = found.astype(np.float32).astype(float) if exact else found
        values[operation["outputs"][0]["id"]] = rounded
    return values


def test_there_are_as_many_lines_as_published() -> None:
    """There are 127 lines, of 12 graphs."""
    assert len(LINES) == 127
    assert {line[0] for line in LINES} == set(GRAPHS)


@pytest.mark.parametrize(
    ("name", "in_shapes", "op_attrs", "dt"),
    LINES,
    ids=[f"{i}-{line[0]}-{line[3] or 'as-is'}" for i, line in enumerate(LINES)],
)
def test_lines(name: str, in_shapes: str, op_attrs: str, dt: str) -> None:
    """Shapes are inferred, and values agree; those of int8 patterns exactly."""
    data = json.dumps(graph(*GRAPHS[name])).encode()
    changes = Overrides(in_shapes=in_shapes, op_attrs=op_attrs, dt=dt)
    model = deconv_ir.load(data, overrides=changes, warn=False)
    rng = np.random.default_rng(len(in_shapes) + len(op_attrs))
    given: dict[str, Any] = {}
    for key, port in model.inputs.items():
        assert port.element_type is not None
        assert port.shape is not None
        dtype = port.element_type.numpy()
        shape = tuple(d for d in port.shape if isinstance(d, int))
        if port.element_type.is_integer:
            low = 0 if dtype == np.uint8 else -3
            given[key] = rng.integers(low, 4, shape).astype(dtype)
        elif name in ("chain", "add", "sum_2"):  # sixteenths, so that f32 holds the sums
            given[key] = (rng.integers(-8, 8, shape) / 16).astype(dtype)
        else:
            given[key] = rng.uniform(-1, 1, shape).astype(dtype)
    (found,) = model.run(given).values()
    values = evaluate(
        changed(name, in_shapes, op_attrs), {int(key): array for key, array in given.items()}
    )
    wanted = values[GRAPHS[name][-1]["outputs"][0]["id"]]
    assert found.shape == wanted.shape
    if found.dtype == np.int8:
        np.testing.assert_array_equal(found, wanted)
        assert len(np.unique(found)) > 3
        return
    assert str(found.dtype) == {"": "float32", "bf16": "bfloat16", "f16": "float16"}[dt]
    step = {"": 2e-6, "bf16": 2**-8, "f16": 2**-11}[dt]
    largest = np.abs(wanted).max()
    np.testing.assert_allclose(found.astype(float), wanted, step, step * largest / 2)
