"""Worked examples of each operation in tiles have the same bits, on all axes that can be tiled."""

from __future__ import annotations

import numpy as np
import pytest
from support import IR, batches
from tiling.exactness import in_tiles, is_exact

import deconv_ir
from deconv_ir import Model
from deconv_ir.ir.shapes import is_static
from deconv_ir.ops import all_operations
from deconv_ir.ops.examples import OperationExample, parse_example

CASES = [
    (operation.type, operation.versions[0], text)
    for operation in all_operations()
    for text in operation.examples
    if operation.versions
]


def one_layer(
    kind: str, version: str, example: OperationExample, **options: str
) -> tuple[Model, dict[str, np.ndarray]]:
    """Make a model of one layer; inputs whose elements matter are constants."""
    ir = IR()
    arrays = {}
    sources = []
    for i, given in enumerate(example.inputs):
        array = given.array(i + 1)
        if given.element_type.name == "u1":
            sources.append(ir.raw_const(np.packbits(array).tobytes(), "u1", array.shape))
        elif given.elements is not None:
            sources.append(ir.const(array))
        else:
            shape = ",".join(map(str, given.shape))
            sources.append(ir.parameter(f"x{i}", shape, given.element_type.name))
            arrays[f"x{i}"] = array
    layer, first = ir.layer(
        kind,
        sources,
        example.attributes,
        outputs=[""] * len(example.outputs),
        version=version,
        precision="dynamic",
        name="layer",
    )
    for port in range(len(example.outputs)):
        ir.result((layer, first + port))
    text, weights = ir.xml(), bytes(ir.weights)
    options = {"accuracy": "direct"} | options
    return deconv_ir.load(text.encode(), weights, warn=False, **options), arrays


@pytest.mark.parametrize("numbers", batches(len(CASES), 20), ids=str)
def test_an_axis_that_can_be_tiled_gives_the_bits_of_the_whole(numbers: range) -> None:
    for number in numbers:
        require_the_bits_of_the_whole(*CASES[number])


def require_the_bits_of_the_whole(kind: str, version: str, text: str) -> None:
    model, arrays = one_layer(kind, version, parse_example(text))
    if not arrays:
        return  # the inputs are all constants: nothing is run
    expected = model.run(arrays)
    for name, result in expected.items():
        if not all(map(is_static, model.infer_shapes().values())):
            with pytest.raises(deconv_ir.UnsupportedError, match="depends on input values"):
                model.tiled(output=name)
            continue
        run = model.tiled(output=name)
        for extent in (1, 2):
            tile = [extent if a in run.tileable_axes else n for a, n in enumerate(run.shape)]
            found = in_tiles(model, arrays, tile, name)
            assert is_exact(found, result), (name, tile)


TILED = {
    "BatchNormInference": "012",
    "Broadcast": "012",
    "Concat": "12",
    "Convolution": "23",
    "ConvolutionBackpropData": "23",
    "DepthToSpace": "23",
    "FakeQuantize": "123",
    "Gather": "012",
    "GroupConvolutionBackpropData": "2",
    "Interpolate": "123",
    "MaxPool": "123",
    "NormalizeL2": "02",
    "PReLU": "0123",
    "Pad": "01",
    "ReLU": "01",
    "Reshape": "01",
    "Roll": "01",
    "Slice": "01",
    "SoftMax": "0",
    "SpaceToDepth": "23",
    "Split": "01",
    "Tile": "012",
    "StridedSlice": "01",
    "Transpose": "012",
    "Unsqueeze": "12",
    "VariadicSplit": "0",
    "MVN": "01",
    "GroupNormalization": "0",
}
"""By hand: the axes, of more than one element, of the first example's first output."""


@pytest.mark.parametrize("kind", TILED)
def test_the_axes_that_can_be_tiled(kind: str) -> None:
    version, text = next((v, t) for k, v, t in CASES if k == kind)
    model, _ = one_layer(kind, version, parse_example(text))
    run = model.tiled(output=next(iter(model.outputs)))
    free = [axis for axis in run.tileable_axes if run.shape[axis] > 1]
    assert "".join(map(str, free)) == TILED[kind]


def integers(*values: int) -> np.ndarray:
    return np.array(values, np.int64)


REPEATED = {
    "Roll": (
        ("opset7", [integers(3, -8, 4), integers(0, -1, 0)], {}),
        lambda x: np.roll(x, (3, -8, 4), (0, -1, 0)),
    ),
    "Tile": (("opset1", [integers(2, 1, 3)], {}), lambda x: np.tile(x, (2, 1, 3))),
    "Broadcast": (
        ("opset3", [integers(5, 2, 6), integers(0, 2)], {"mode": "explicit"}),
        lambda x: np.broadcast_to(x[:, None], (5, 2, 6)),
    ),
    "Gather": (
        ("opset8", [np.array([[5, -1, 0], [2, 2, 7]]), integers(1)], {}),
        lambda x: np.pad(x, ((0, 0), (0, 2)))[:, [[5, 5, 0], [2, 2, 7]]],
    ),
}


@pytest.mark.parametrize("kind", REPEATED)
def test_elements_from_elsewhere(kind: str) -> None:
    (version, lists, attributes), oracle = REPEATED[kind]
    ir = IR()
    sources = [ir.parameter("x", "5,6"), *map(ir.const, lists)]
    ir.result(ir.layer(kind, sources, attributes, version=version))
    model = deconv_ir.load(ir.xml().encode(), bytes(ir.weights), warn=False)
    x = np.arange(30, dtype=np.float32).reshape(5, 6)
    expected = oracle(x)
    assert model.tiled().tileable_axes == tuple(range(expected.ndim))
    for extent in (1, 2, 3, 4, 5, 7):
        found = in_tiles(model, {"x": x}, [min(extent, n) for n in expected.shape])
        assert found.tobytes() == expected.tobytes(), extent


@pytest.mark.parametrize(("first", "needed"), [(0, (2, 6)), (1, (1, 3)), (3, (0, 2))])
def test_a_gather_needs_what_its_indices_pick(first: int, needed: tuple[int, int]) -> None:
    ir = IR()
    picked = [ir.const(integers(-1, 2, 1, 0, 1)), ir.const(integers(0))]
    ir.result(ir.layer("Gather", [ir.parameter("x", "6"), *picked], version="opset8"))
    model = deconv_ir.load(ir.xml().encode(), bytes(ir.weights), warn=False)
    assert model.tiled().tile(((first, first + 2),)).inputs == {"x": (needed,)}
    x = np.arange(6, dtype=np.float32)
    assert in_tiles(model, {"x": x}, [2]).tolist() == [5, 2, 1, 0, 1]


@pytest.mark.parametrize("kind", ["AdaptiveAvgPool", "AdaptiveMaxPool"])
def test_an_adaptive_pool_needs_its_windows(kind: str) -> None:
    ir = IR()
    shape, target = (2, 3, 37, 11), ir.const(integers(5, 16))
    pool = ir.layer(kind, [ir.parameter("x", "2,3,37,11"), target], version="opset8")
    ir.result(pool)
    model = deconv_ir.load(ir.xml().encode(), bytes(ir.weights), warn=False)
    run = model.tiled()
    assert run.tileable_axes == (0, 1, 2, 3)
    # By hand: rows 2 * 37 / 5 = 14.8 to 4 * 37 / 5 = 29.6, columns 0 to 11 / 16.
    needed = run.tile(((0, 1), (2, 3), (2, 4), (0, 1))).inputs["x"]
    assert needed == ((0, 1), (2, 3), (14, 30), (0, 1))
    x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
    (expected,) = model.run(x).values()
    for tile in ((1, 1), (2, 5), (5, 3)):
        assert is_exact(in_tiles(model, {"x": x}, tile), expected), tile


@pytest.mark.parametrize(("first", "needed"), [(3, (0, 2)), (0, (3, 5)), (2, (0, 6))])
def test_a_roll_needs_the_whole_axis_only_where_it_wraps(
    first: int, needed: tuple[int, int]
) -> None:
    ir = IR()
    x = ir.parameter("x", "6")
    ir.result(ir.layer("Roll", [x, ir.const(integers(3)), ir.const(integers(0))], version="opset7"))
    run = deconv_ir.load(ir.xml().encode(), bytes(ir.weights), warn=False).tiled()
    assert run.tile(((first, first + 2),)).inputs == {"x": (needed,)}
