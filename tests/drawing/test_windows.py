"""Receptive fields and taps, against loops and against the effects seen in runs."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from drawn_networks import graph_of, sketch
from onednn_forms import as_bytes, op, tensor
from support import IR

import deconv_ir
from deconv_ir.drawing.page.windows import advice_of, reaches_of, taps_of, windows_of
from deconv_ir.ir.dtypes import F32
from deconv_ir.ir.operation import Context, TensorInfo
from deconv_ir.ir.options import Semantics
from deconv_ir.ir.window import Window

X = 24


def stack(layers: list[tuple[str, int, int, int, int]]) -> IR:
    """Build layers on one axis: kind, kernel, stride, pad, dilation."""
    ir = IR()
    at = ir.parameter("x", f"1,1,{X}")
    for kind, kernel, stride, pad, dilation in layers:
        if kind == "skip":
            at = ir.layer("Add", [at, ir.layer("Abs", [at])])
            continue
        w = ir.const(np.ones((1, 1, kernel), np.float32))
        values = {"strides": stride, "pads_begin": pad, "pads_end": pad, "dilations": dilation}
        attributes = {name: str(value) for name, value in values.items()}
        at = ir.layer(kind, [at, w], attributes)
    ir.result(at, "y")
    return ir


UP, DOWN = "ConvolutionBackpropData", "Convolution"


@pytest.mark.parametrize(
    "layers",
    [
        [(DOWN, 3, 1, 1, 1)],
        [(DOWN, 5, 2, 2, 1)],
        [(DOWN, 3, 1, 2, 2)],
        [(UP, 4, 2, 1, 1)],
        [(UP, 3, 2, 1, 1)],
        [(UP, 2, 3, 0, 1)],
        [(UP, 3, 3, 0, 2)],
        [(DOWN, 3, 2, 1, 1), (UP, 4, 2, 1, 1)],
        [(UP, 4, 2, 1, 1), (DOWN, 3, 1, 1, 1), (DOWN, 3, 2, 1, 1)],
        [(DOWN, 3, 1, 1, 1), ("skip", 0, 0, 0, 0), (DOWN, 3, 1, 1, 1), (UP, 2, 2, 0, 1)],
    ],
    ids=str,
)
def test_receptive_fields_are_those_that_a_run_shows(
    layers: list[tuple[str, int, int, int, int]],
) -> None:
    """The test changes an input and observes which outputs change."""
    ir = stack(layers)
    model = deconv_ir.load(ir.xml().encode(), bytes(ir.weights), warn=False)
    drawn = sketch(model.graph)
    reaches = reaches_of(drawn.graph, drawn.outputs, drawn.flow.hidden, Context())
    (reach,) = reaches[len(drawn.graph.layers) - 1]
    results = [
        next(iter(model.run(row.reshape(1, 1, X)).values())) for row in np.eye(X, dtype="f4")
    ]
    seen = np.array([result.ravel() != 0 for result in results])  # input, output
    fields = seen.sum(axis=0)
    outputs = seen.shape[1]
    inner = range(outputs // 3, 2 * outputs // 3)
    assert max(fields[y] for y in inner) <= reach.field
    # With gaps in a window, or behind a coarser tensor, the figures are bounds.
    dense = all(kernel >= stride and dilation == 1 for _, kernel, stride, _, dilation in layers)
    dense = dense and layers[0][:3] != (DOWN, 3, 2)
    if dense:
        assert max(fields[y] for y in inner) == reach.field
    before = after = 0
    # Tiles that begin and end at whole input elements.
    whole = reach.step.denominator
    for start, stop in itertools.combinations(range(0, outputs + 1, whole), 2):
        if start < inner[0] or stop > inner[-1]:
            continue
        needed = np.flatnonzero(seen[:, start:stop].any(axis=1))
        before = max(before, int(reach.step * start) - int(needed[0]))
        after = max(after, int(needed[-1]) + 1 - int(reach.step * stop))
    assert before <= reach.halo[0]
    assert after <= reach.halo[1]
    if dense:
        assert (before, after) == reach.halo


def window(kernel: int, stride: int, dilation: int = 1, pad: int = 0) -> Window:
    output = stride * 5 + (kernel - 1) * dilation + 1 - 2 * pad
    return Window(6, kernel, stride, dilation, 0, pad, pad, output)


@pytest.mark.parametrize(
    ("kernel", "stride", "dilation"), list(itertools.product((1, 2, 3, 4, 5, 6), (1, 2, 3), (1, 2)))
)
def test_taps_are_counted_as_loops_do(kernel: int, stride: int, dilation: int) -> None:
    w = window(kernel, stride, dilation, pad=1 if kernel > 2 else 0)
    counts = [0] * w.output
    for x, k in itertools.product(range(w.data), range(w.kernel)):
        y = stride * x + dilation * k - w.pad_begin
        if 0 <= y < w.output:
            counts[y] += 1
    taps = taps_of(w)
    assert list(taps.counts) == counts
    wide = [0] * (stride * 60 + kernel * dilation)
    for x, k in itertools.product(range(60), range(kernel)):
        wide[stride * x + dilation * k] += 1
    inside = wide[30 * stride : 31 * stride]
    assert (taps.least, taps.most) == (min(inside), max(inside))


def test_advice() -> None:
    assert advice_of([window(4, 2), window(2, 2)]) == ""
    uneven = advice_of([window(4, 2), window(3, 2)])
    assert "On axis 1, outputs alternate between 1 and 2 taps" in uneven
    assert "A kernel of 4 sums evenly" in uneven
    assert "bias alone" in advice_of([window(2, 3)])


def test_two_inputs_at_different_scales_have_no_one_receptive_field() -> None:
    ir = IR()
    x = ir.parameter("x", "1,1,8")
    w = ir.const(np.ones((1, 1, 2), np.float32))
    down = {"strides": "2", "pads_begin": "0", "pads_end": "0", "dilations": "1"}
    half = ir.layer("Convolution", [x, w], down)
    pair = ir.layer("Concat", [half, x], {"axis": "2"})
    ir.result(pair, "y")
    drawn = sketch(graph_of(ir))
    reaches = reaches_of(drawn.graph, drawn.outputs, drawn.flow.hidden, Context())
    assert half[0] in reaches
    assert pair[0] not in reaches


def test_a_layer_that_moves_positions_ends_the_receptive_field() -> None:
    ir = IR()
    x = ir.parameter("x", "1,1,8")
    both = ir.layer("Concat", [x, x], {"axis": "2"})
    beside = ir.layer("Concat", [x, x], {"axis": "1"})
    ir.result(both, "y")
    ir.result(beside, "z")
    drawn = sketch(graph_of(ir))
    reaches = reaches_of(drawn.graph, drawn.outputs, drawn.flow.hidden, Context())
    assert both[0] not in reaches
    assert beside[0] in reaches


NXC = {"data_format": "NXC", "strides": [2, 1], "pads_begin": [1, 0], "pads_end": [0, 2]}
SLIDING: list[tuple[str, Any, list[Any], dict[str, Any]]] = [
    ("Convolution", [1, 9, 8, 2], [[3, 2, 2, 4]], {"dilations": [1, 3], "weights_format": "XIO"}),
    ("ConvTransposeBackwardData", [1, 9, 8, 4], [[3, 2, 4, 2]],
     {"dilations": [1, 3], "weights_format": "XOI"}),
    ("MaxPool", [1, 9, 8, 2], [], {"kernel": [3, 2], "dilations": [1, 3, *[1] * 10]}),
    ("AvgPool", [1, 9, 8, 2], [], {"kernel": [3, 2], "exclude_pad": True}),
]  # fmt: skip


@pytest.mark.parametrize(("kind", "data", "weights", "attributes"), SLIDING)
def test_operations_of_graph_files_have_windows(
    kind: str, data: Any, weights: list[Any], attributes: Any
) -> None:
    inputs = [tensor(0, data), *(tensor(1, shape) for shape in weights)]
    file = as_bytes(op(0, kind, inputs, [tensor(2, [])], **NXC | attributes))
    operation = deconv_ir.load(file).graph.of_type(kind)[0].operation
    infos = [TensorInfo(tuple(shape), F32) for shape in (data, *weights)]
    dilation = 1 if kind == "AvgPool" else 3
    width = 8 + 2 - dilation
    assert windows_of(operation, infos, Context(), Semantics.SPEC) == (
        Window(9, 3, 2, 1, 0, 1, 0, 4),
        Window(8, 2, 1, dilation, 0, 0, 2, width),
    )
