"""Dims of dynamic models as expressions: worked out by hand, and true for random sizes."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable

import numpy as np
import pytest
from ir.symbolic_truth import require_true
from support import IR, Out
from tiling.random_networks import Network

import deconv_ir
from deconv_ir.formats import parse_bytes
from deconv_ir.ir.geometry import UNKNOWN
from deconv_ir.ir.graph import Layer, Port
from deconv_ir.ir.infer import infer
from deconv_ir.ir.operation import Context
from deconv_ir.ir.symbolic import infer_symbolic
from deconv_ir.limits import DEFAULT_LIMITS
from deconv_ir.ops import all_operations
from deconv_ir.ops.examples import parse_example
from deconv_ir.ops.single_layer import wrap_layer

OPERATIONS = [o for o in all_operations() if o.examples]
WINDOWS = {"strides": "2,2", "pads_begin": "1,1", "pads_end": "1,1", "dilations": "1,1"}


def shapes(ir: IR) -> deconv_ir.SymbolicShapes:
    """Load the network, and return its shapes."""
    return deconv_ir.load(ir.xml().encode(), bytes(ir.weights), warn=False).symbolic_shapes()


def weights(ir: IR, *shape: int) -> Out:
    return ir.const(np.ones(shape, np.float32))


def integers(ir: IR, *values: int) -> Out:
    return ir.const(np.array(values, np.int64))


def shape_of(ir: IR, x: Out, *axes: int) -> Out:
    """Return some dims of a tensor as a list that the graph computes."""
    shape = ir.layer("ShapeOf", [x], {"output_type": "i64"}, version="opset3")
    picked = [shape, integers(ir, *axes), ir.const(np.array(0, np.int64))]
    return ir.layer("Gather", picked, version="opset8")


def convolution(ir: IR, x: Out) -> Out:
    return ir.layer("Convolution", [x, weights(ir, 8, 3, 3, 3)], WINDOWS)


def deconvolution(ir: IR, x: Out) -> Out:
    return ir.layer("ConvolutionBackpropData", [x, weights(ir, 3, 4, 4, 4)], WINDOWS)


def flattened(ir: IR, x: Out) -> Out:
    return ir.layer("Reshape", [x, integers(ir, 0, -1)], {"special_zero": "true"})


def as_tokens(ir: IR, x: Out) -> Out:
    """``[N, C, H, W]`` to ``[N, C, H*W]``, through a shape that the graph computes."""
    lists = [shape_of(ir, x, 0, 1), integers(ir, -1)]
    target = ir.layer("Concat", lists, {"axis": "0"})
    return ir.layer("Reshape", [x, target], {"special_zero": "false"})


def halved(ir: IR, x: Out) -> Out:
    """Interpolate to half the size, which the graph computes."""
    half = ir.layer("Divide", [shape_of(ir, x, 2, 3), integers(ir, 2)])
    inputs = [x, half, ir.const(np.ones(2, np.float32)), integers(ir, 2, 3)]
    attributes = {"mode": "nearest", "shape_calculation_mode": "sizes"}
    return ir.layer("Interpolate", inputs, attributes, version="opset4")


def cropped(ir: IR, x: Out) -> Out:
    lists = [integers(ir, *v) for v in ((1, 0), (-1, 2**62), (1, 3), (2, 3))]
    return ir.layer("Slice", [x, *lists], version="opset8")


def part(begin: int, end: int, step: int = 1) -> Callable[[IR, Out], Out]:
    """Slice the rows."""

    def network(ir: IR, x: Out) -> Out:
        lists = [integers(ir, v) for v in (begin, end, step, 2)]
        return ir.layer("Slice", [x, *lists], version="opset8")

    return network


def by_scale(scale: float, element_type: type = np.float32) -> Callable[[IR, Out], Out]:
    """Interpolate by a scale of height and width."""

    def network(ir: IR, x: Out) -> Out:
        scales = ir.const(np.array([scale, scale], element_type))
        attributes = {"mode": "nearest", "shape_calculation_mode": "scales"}
        inputs = [x, integers(ir, 1, 1), scales, integers(ir, 2, 3)]
        return ir.layer("Interpolate", inputs, attributes, version="opset4")

    return network


def filled(kind: str) -> Callable[[IR, Out], Out]:
    """Broadcast to the larger or smaller of the height and 10."""

    def network(ir: IR, x: Out) -> Out:
        target = ir.layer(kind, [shape_of(ir, x, 2), integers(ir, 10)])
        one = ir.const(np.ones((1, 3, 1, 1), np.float32))
        target = ir.layer("Concat", [integers(ir, 1, 3), target, integers(ir, 4)], {"axis": "0"})
        return ir.layer("Broadcast", [one, target], {"mode": "numpy"}, version="opset3")

    return network


def added(ir: IR, x: Out) -> Out:
    """Add the transpose, to which rows or columns may be broadcast."""
    return ir.layer("Add", [x, ir.layer("Transpose", [x, integers(ir, 0, 1, 3, 2)])])


def blocks(ir: IR, x: Out) -> Out:
    return ir.layer("SpaceToDepth", [x], {"block_size": "2", "mode": "blocks_first"})


def skip(ir: IR, x: Out) -> Out:
    """Max pooling by 2, doubled again, beside its input."""
    pooled = {"kernel": "2,2", "strides": "2,2", "pads_begin": "0,0", "pads_end": "0,0"}
    down, _ = ir.layer("MaxPool", [x], pooled, version="opset1"), None
    sizes = ir.layer("Multiply", [shape_of(ir, down, 2, 3), integers(ir, 2)])
    inputs = [down, sizes, ir.const(np.ones(2, np.float32)), integers(ir, 2, 3)]
    attributes = {"mode": "nearest", "shape_calculation_mode": "sizes"}
    up = ir.layer("Interpolate", inputs, attributes, version="opset4")
    return ir.layer("Concat", [x, up], {"axis": "1"})


def turned(ir: IR, x: Out) -> Out:
    other = ir.layer("Transpose", [x, integers(ir, 0, 1, 3, 2)])
    return ir.layer("Concat", [x, other], {"axis": "1"})


# The output of a network of the input [N,3,H,W], by the formulas of the documents, and the sizes
# that fit.
NETWORKS = [
    # Convolution-1: floor((H + 1 + 1 - 3)/2) + 1
    (convolution, "N 8 ceil(H/2) ceil(W/2)", ()),
    # ConvolutionBackpropData-1: 2*(H - 1) + 4 - 1 - 1
    (deconvolution, "N 4 2*H 2*W", ()),
    (flattened, "N 3*H*W", ()),
    (as_tokens, "N 3 H*W", ()),
    (halved, "N 3 floor(H/2) floor(W/2)", ()),
    (cropped, "N 3 H - 2 ceil(W/3)", ()),
    # Slice-8 clips begin and end to the axis.
    (part(0, 100), "N 3 min(H, 100) W", ()),
    (part(-100, 2**31 - 1), "N 3 min(H, 100) W", ()),
    (part(5, 100, 2), "N 3 floor(min(H, 100)/2) - 2 W", ()),
    (part(10, 0, -1), "N 3 min(H, 11) - 1 W", ()),
    (part(-(2**62), -7), "N 3 H - 7 W", ()),
    # Interpolate-4: floor(H*scale)
    (by_scale(1.5), "N 3 H + floor(H/2) W + floor(W/2)", ()),
    (by_scale(0.5), "N 3 floor(H/2) floor(W/2)", ()),
    (by_scale(0.7), "N 3 floor(7*H/10) floor(7*W/10)", ()),
    (by_scale(4 / 3), "N 3 H + floor(H/3) W + floor(W/3)", ()),
    # No quotients of small integers: 4/3 is 1365/1024 in f16.
    (by_scale(4 / 3, np.float16), "N 3 d1 d2", ()),
    (by_scale(0.31415), "N 3 d1 d2", ()),
    (filled("Minimum"), "1 3 min(H, 10) 4", ()),
    (filled("Maximum"), "1 3 max(H, 10) 4", ()),
    (added, "N 3 max(H, W) max(H, W)", ("H = W (or 1)",)),
    (blocks, "N 12 floor(H/2) floor(W/2)", ("H a multiple of 2", "W a multiple of 2")),
    (skip, "N 6 H W", ("H a multiple of 2", "W a multiple of 2")),
    (turned, "N 6 H W", ("H = W",)),
]


@pytest.mark.parametrize(("network", "expected", "conditions"), NETWORKS)
def test_by_hand(network, expected: str, conditions: tuple[str, ...]) -> None:
    ir = IR()
    ir.result(network(ir, ir.parameter("x", "?,3,?,?")))
    model = deconv_ir.load(ir.xml().encode(), bytes(ir.weights), warn=False)
    require_true(model.graph, 1, rounds=15, context=model.context)
    found = model.symbolic_shapes()
    assert list(found.inputs.values()) == [("N", 3, "H", "W")]
    (shape,) = found.outputs.values()
    assert shape is not None
    assert " ".join(map(str, shape)) == expected
    assert found.conditions == conditions


JOINED = [
    ("Concat", {"axis": "1"}, ("?,3,?,?", "?,5,?,?"), ["N 3 H W", "N 5 H W"], "N 8 H W"),
    ("Concat", {"axis": "0"}, ("?,?", "?,?"), ["N L", "N2 L"], "N + N2 L"),
    ("Add", {}, ("?,3,?", "?,3,?"), ["N 3 L", "N 3 L"], "N 3 L"),
    ("Add", {}, ("?,3,?", "1,3,1"), ["N 3 L", "1 3 1"], "N 3 L"),
    ("MatMul", {}, ("?,?,64", "64,?"), ["N L 64", "64 L2"], "N L L2"),
    ("MatMul", {}, ("?,?", "?,?"), ["N L", "L L2"], "N L2"),
    ("MatMul", {}, ("?,7", "?,?"), ["N 7", "7 L"], "N L"),
]


@pytest.mark.parametrize(("kind", "attributes", "inputs", "named", "expected"), JOINED)
def test_inputs_share_names(kind, attributes, inputs, named: list[str], expected: str) -> None:
    """Names of sizes that must be equal are joined, the first one remains."""
    ir = IR()
    ir.result(ir.layer(kind, [ir.parameter(f"x{i}", s) for i, s in enumerate(inputs)], attributes))
    found = shapes(ir)
    assert [" ".join(map(str, shape or ())) for shape in found.inputs.values()] == named
    assert [" ".join(map(str, shape or ())) for shape in found.outputs.values()] == [expected]
    assert found.conditions == ()


def test_sizes_that_are_known_and_those_that_are_not() -> None:
    ir = IR()
    x = ir.parameter("x", "2,3")
    ir.result(ir.layer("NonZero", [x], {"output_type": "i64"}, version="opset3"))
    ir.result(ir.layer("ReLU", [x]))
    ir.result(ir.parameter("any", "..."))
    assert list(shapes(ir).outputs.values()) == [(2, "d1"), (2, 3), None]


def test_a_layout_names_the_axes() -> None:
    ir = IR()
    x = ir.parameter("x", "?,?,?,3")
    ir.result(ir.layer("ReLU", [x]))
    model = deconv_ir.load(ir.xml().encode(), bytes(ir.weights), warn=False)
    rows = model.reshape({"x": (-1, -1, -1, -1)})
    assert list(rows.symbolic_shapes().outputs.values()) == [("N", "C", "H", "W")]
    (layer,) = rows.graph.of_type("Parameter")
    stated = layer._replace(
        outputs=tuple(deconv_ir.ir.layouts.with_layout(p, "nhwc") for p in layer.outputs)
    )
    layers = tuple(stated if own is layer else own for own in rows.graph.layers)
    changed = deconv_ir.Model(rows.graph.replace(layers=layers), None)
    assert list(changed.symbolic_shapes().outputs.values()) == [("N", "H", "W", "C")]


def test_bounds_of_names_are_kept() -> None:
    """A slice of at most 100 rows keeps them all if there are no more."""
    ir = IR()
    ir.result(part(0, 100)(ir, ir.parameter("x", "?,3,1..100,?")))
    assert list(shapes(ir).outputs.values()) == [("N", 3, "H", "W")]


@pytest.mark.parametrize(
    ("more", "never", "conditions"), [(1, True, []), (0, False, ["H = min(H, 100)"])]
)
def test_a_clipped_size_is_never_larger(more: int, never: bool, conditions: list[str]) -> None:
    """The first 100 rows are joined with all rows, which fits up to 100, and with one row more."""
    ir = IR()
    x = ir.parameter("x", "1,3,?,2")
    rows = ir.layer("Concat", [x, weights(ir, 1, 3, more, 2)], {"axis": "2"}) if more else x
    ir.result(ir.layer("Concat", [rows, part(0, 100)(ir, x)], {"axis": "1"}))
    model = deconv_ir.load(ir.xml().encode(), bytes(ir.weights), warn=False)
    found = infer_symbolic(model.graph, model.context, infer(model.graph, model.context))
    assert found is not None
    assert [model.graph.layers[c.layer].type for c in found.contradictions] == ["Concat"] * never
    assert list(map(str, found.conditions)) == conditions


def test_deep_networks_have_short_expressions() -> None:
    """Each layer takes a third off and adds a half: no closed form is short."""
    ir = IR()
    x = ir.parameter("x", "1,1,?")
    for number in range(500):
        stride, pads = (("3", "1"), ("1", "2"))[number % 2]
        attributes = {"strides": stride, "pads_begin": pads, "pads_end": pads, "dilations": "1"}
        kind = ("Convolution", "ConvolutionBackpropData")[number % 2]
        if number % 2:
            attributes = {**attributes, "strides": "2", "pads_begin": "0", "pads_end": "0"}
        x = ir.layer(kind, [x, weights(ir, 1, 1, 3)], attributes)
        x = ir.layer("Concat", [x, x], {"axis": "2"}) if number % 10 == 0 else x
    ir.result(x)
    (shape,) = shapes(ir).outputs.values()
    assert shape is not None
    assert len(str(shape[2])) < 300


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda o: f"{o.type}-{o.versions[-1:]}")
def test_every_operation_is_true(operation) -> None:
    """The dims of an operation's example become dynamic, all or some of them."""
    draw = random.Random(operation.type)
    for text in operation.examples:
        example = parse_example(text)
        made = example.operation(operation)
        outputs = tuple(Port(100 + i, None, t.element_type) for i, t in enumerate(example.outputs))
        for share in (1.0, 0.5):
            dynamic = [
                t.info()._replace(
                    shape=t.shape
                    if t.elements is not None
                    else tuple(UNKNOWN if draw.random() < share else d for d in t.shape or ())
                )
                for t in example.inputs
            ]
            ports = [Port(i, info.shape, info.element_type) for i, info in enumerate(dynamic)]
            layer = Layer(0, "x", made, operation.type, "", tuple(ports), outputs)
            graph = wrap_layer(layer)
            require_true(graph, 1, given=dict(enumerate(dynamic)))


@pytest.mark.parametrize("seed", range(60))
def test_random_networks_are_true(seed: int) -> None:
    network = Network(seed)
    dims = tuple(-1 if axis != 1 else d for axis, d in enumerate(network.shape))
    model = network.model().reshape({"x": dims})
    found, _ = require_true(model.graph, seed, rounds=15)
    assert found is not None


def test_caches_of_a_decoder_share_names() -> None:
    """Keys of earlier tokens are joined with new ones, and the mask covers both."""
    ir = IR()
    x, mask = ir.parameter("tokens", "?,?,6"), ir.parameter("mask", "?,1,?,?")
    for number in range(3):
        heads = ir.layer("Reshape", [x, integers(ir, 0, 0, 2, 3)], {"special_zero": "true"})
        q = ir.layer("Transpose", [heads, integers(ir, 0, 2, 1, 3)])
        k = ir.layer("Concat", [ir.parameter(f"cache{number}", "?,2,?,3"), q], {"axis": "2"})
        scores = ir.layer("MatMul", [q, k], {"transpose_b": "true"})
        scores = ir.layer("Softmax", [ir.layer("Add", [scores, mask])], {"axis": "3"})
        y = ir.layer("Transpose", [ir.layer("MatMul", [scores, k]), integers(ir, 0, 2, 1, 3)])
        x = ir.layer("Reshape", [y, integers(ir, 0, 0, 6)], {"special_zero": "true"})
        ir.result(k)
    ir.result(x)
    found = shapes(ir)
    assert list(found.inputs.values()) == [
        ("N", "L", 6),
        ("N", 1, "L", "L + H2"),
        *[("N", 2, "H2", 3)] * 3,
    ]
    assert list(found.outputs.values()) == [*[("N", 2, "L + H2", 3)] * 3, ("N", "L", 6)]
    assert found.conditions == ()


class TestInferredShapes:
    def test_expressions_are_a_second_field(self) -> None:
        ir = IR()
        ir.result(deconvolution(ir, ir.parameter("x", "?,3,?,?")), "y")
        model = deconv_ir.load(ir.xml().encode(), bytes(ir.weights), warn=False)
        found = model.infer_shapes()
        (name,) = found
        # Y = 2*(X - 1) + 4 - 1 - 1 = 2*X
        assert found.expressions == {name: ("N", 4, "2*H", "2*W")}
        assert model.infer_shapes({"x": (1, 3, 5, 7)}).expressions == {name: (1, 4, 10, 14)}
        assert pickle.loads(pickle.dumps(found)) == dict(found)


@pytest.mark.parametrize("broadcast", ["nothing", "others", "these"])
def test_sizes_that_are_never_equal_beside_a_broadcast(broadcast: str) -> None:
    """A kernel of 2 gives 2*H, one of 3 gives 2*H + 1, by stride 2 without pads: never equal.

    Where one of the two heights may be 1 instead, as it may be broadcast, nothing is said.
    """
    ir = IR()
    x, other = ir.parameter("x", "1,3,?,6"), ir.parameter("z", "1,3,?,6")
    places = WINDOWS | {"pads_begin": "0,0", "pads_end": "0,0"}
    sides = [
        ir.layer("ConvolutionBackpropData", [source, weights(ir, 3, 3, k, 2)], places)
        for source, k in ((x, 2), (other if broadcast == "these" else x, 3))
    ]
    if broadcast != "nothing":
        first = x if broadcast == "these" else ir.parameter("p", "1,3,?,6")
        ir.result(ir.layer("Add", [first, other]))
    joined = ir.layer("Concat", sides, {"axis": "1"}, name="joined")
    ir.result(joined)
    parsed = parse_bytes(ir.xml().encode(), "m.xml", DEFAULT_LIMITS)
    assert parsed.graph is not None
    context = Context(weights=None)
    inference = infer(parsed.graph, context, collect=True)
    found = infer_symbolic(parsed.graph, context, inference)
    assert found is not None
    names = [parsed.graph.layers[c.layer].name for c in found.contradictions]
    assert names == ([] if broadcast == "these" else ["joined"])
