"""One layer of blocks that repeat with another attribute: mistakes that change no shape."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import IR

from deconv_ir.linter.engine import check_bytes
from deconv_ir.linter.options import choose

BLOCK = {
    "MatMul": {"transpose_a": "false", "transpose_b": "true"},
    "MVN": {"eps": "1e-5", "normalize_variance": "true", "eps_mode": "inside_sqrt"},
    "CumSum": {"exclusive": "false", "reverse": "false"},
    "SoftMax": {"axis": "2"},
    "Add": {"auto_broadcast": "numpy"},
}
"""The layers of a block and their attributes; Add adds the block's input."""
VERSIONS = {"MVN": "opset6", "CumSum": "opset3", "SoftMax": "opset8"}


def network(changed: dict[int, tuple[str, str, str]], blocks: int = 9) -> IR:
    """Make a chain of blocks; in some, an attribute of a layer has another value."""
    ir = IR()
    at = ir.parameter("x", "1,8,8")
    for number in range(blocks):
        kind, name, value = changed.get(number, ("", "", ""))
        begin = at
        for layer, attributes in BLOCK.items():
            second = {
                "MatMul": lambda: ir.const(np.eye(8, dtype=np.float32)),
                "MVN": lambda: ir.const(np.array([2])),
                "CumSum": lambda: ir.const(np.array(1)),
                "Add": lambda begin=begin: begin,
            }
            inputs = [at, second[layer]()] if layer in second else [at]
            given = {**attributes, name: value} if layer == kind else attributes
            version = VERSIONS.get(layer, "opset1")
            at = ir.layer(layer, inputs, given, version=version, name=f"{layer}{number}")
    ir.result(at)
    return ir


def reported(ir: IR, folder: Path) -> list[str]:
    """Return the reports of the rule as "attribute actual expected layer"."""
    (folder / "m.bin").write_bytes(bytes(ir.weights))
    options = choose(severity="info", select=["IR809"])
    result = check_bytes(ir.xml().encode(), "m.xml", options, folder / "m.bin")
    return [
        f"{f.message.partition(' is ')[0]} {f.actual} {f.expected} {f.layer}"
        for f in result.findings
    ]


@pytest.mark.parametrize(
    ("layer", "name", "value"),
    [
        ("MatMul", "transpose_a", "true"),
        ("MatMul", "transpose_b", "false"),
        ("MVN", "normalize_variance", "false"),
        ("MVN", "eps_mode", "outside_sqrt"),
        ("CumSum", "exclusive", "true"),
        ("CumSum", "reverse", "true"),
        ("SoftMax", "axis", "1"),
        ("MVN", "eps", "0.001"),
    ],
)
def test_one_block_differs(layer: str, name: str, value: str, tmp_path: Path) -> None:
    (text,) = reported(network({4: (layer, name, value)}), tmp_path)
    theirs = BLOCK[layer][name].replace("e-5", "e-05")
    assert text.startswith(f"{name} {value} {theirs} '{layer}4'")


@pytest.mark.parametrize(
    "changed",
    [
        pytest.param({}, id="all blocks are equal"),
        pytest.param({4: ("SoftMax", "axis", "-1")}, id="the same axis"),
        pytest.param(
            {4: ("MVN", "eps", "1e-6"), 2: ("MVN", "eps", "2e-6")}, id="a measure of each block"
        ),
        pytest.param({4: ("Add", "auto_broadcast", "none")}, id="decides shapes alone"),
        pytest.param(dict.fromkeys((3, 5), ("CumSum", "reverse", "true")), id="two of nine"),
        pytest.param(dict.fromkeys(range(0, 9, 2), ("SoftMax", "axis", "1")), id="in turn"),
        pytest.param({8: ("SoftMax", "axis", "1")}, id="the last block"),
    ],
)
def test_no_block_differs(changed: dict[int, tuple[str, str, str]], tmp_path: Path) -> None:
    assert reported(network(changed), tmp_path) == []


def test_three_others_must_agree(tmp_path: Path) -> None:
    """The first and the last block have other layers around them."""
    changed = {2: ("SoftMax", "axis", "1")}
    assert reported(network(changed, blocks=5), tmp_path) == []
    assert reported(network(changed, blocks=6), tmp_path) != []


@pytest.mark.parametrize(("blocks", "found"), [(6, 0), (7, 1)])
def test_measures_need_five_others(blocks: int, found: int, tmp_path: Path) -> None:
    """The first block has another layer before it, and is not compared."""
    assert len(reported(network({3: ("MVN", "eps", "1e-3")}, blocks), tmp_path)) == found


Chain = Callable[[IR, Any, int], Any]


def normalized(odd: dict[str, Any]) -> Chain:
    """Make a block: x / sqrt(mean(x^2, axis) + epsilon), transposed, and x again."""

    def make(ir: IR, x: Any, number: int) -> Any:
        given = {"axis": [2], "order": [0, 2, 1], "epsilon": 1e-5, "merged": 1}
        given |= odd if number == 4 else {}
        square = ir.layer("Multiply", [x, x])
        axes = ir.const(np.array(given["axis"]))
        mean = ir.layer("ReduceMean", [square, axes], {"keep_dims": "true"})
        epsilon = ir.const(np.array(given["epsilon"], np.float32))
        root = ir.layer("Sqrt", [ir.layer("Add", [mean, epsilon])])
        y = ir.layer("Divide", [x, root], version="opset1")
        y = ir.layer("Transpose", [y, ir.const(np.array(given["order"]))])
        both = ir.layer("Concat", [y, y], {"axis": str(given["merged"])})
        flat = ir.layer("Reshape", [both, ir.const(np.array([1, 16, 8]))], {"special_zero": "true"})
        return ir.layer("ReLU", [ir.layer("MatMul", [flat_half(ir), flat], MATMUL)])

    return make


MATMUL = {"transpose_a": "false", "transpose_b": "false"}


def flat_half(ir: IR) -> Any:
    """Make the constant that sums pairs of rows."""
    return ir.const(np.kron(np.eye(8), [[1, 1]]).astype(np.float32)[None])


@pytest.mark.parametrize(
    ("odd", "texts"),
    [
        ({}, []),
        ({"axis": [1]}, ["axes 1 2 ReduceMean"]),
        ({"axis": [-1]}, []),  # the same axis
        ({"order": [0, 1, 2]}, ["input_order 0,1,2 0,2,1 Transpose"]),
        ({"epsilon": 1e-3}, ["b 0.001 1e-05 Add"]),
        ({"merged": 2}, ["axis 2 1 Concat"]),  # a Reshape behind it takes either
    ],
    ids=str,
)
def test_constants_and_shapes_that_a_layer_behind_takes(
    odd: dict[str, Any], texts: list[str], tmp_path: Path
) -> None:
    ir = IR()
    x = ir.parameter("x", "1,8,8")
    for number in range(9):
        x = normalized(odd)(ir, x, number)
    ir.result(x)
    found = [re.sub(r"'.*\((\w+), id \d+\)", r"\1", text) for text in reported(ir, tmp_path)]
    assert found == texts


@pytest.mark.parametrize(("shape", "found"), [((5, 8), 0), ((8, 8), 1)])
def test_weights_of_another_order(shape: tuple[int, int], found: int, tmp_path: Path) -> None:
    """One head of five keeps its weights transposed: only square ones would fit either way."""
    ir = IR()
    x = ir.parameter("x", "1,4,8")
    heads = []
    for number in range(5):
        weights = np.ones(shape[::-1] if number == 3 else shape, np.float32)
        flags = {"transpose_a": "false", "transpose_b": "false" if number == 3 else "true"}
        heads.append(ir.layer("MatMul", [x, ir.const(weights)], flags))
    ir.result(ir.layer("Concat", heads, {"axis": "2"}))
    assert len(reported(ir, tmp_path)) == found


def test_strides_where_dims_are_not_known(tmp_path: Path) -> None:
    """The last of four equal convolutions keeps the extents, as in monai.networks.nets.UNet."""
    ir = IR()
    x = ir.parameter("x", "1,1,?,?")
    for strides in ("2,2", "2,2", "2,2", "1,1"):
        kernel = ir.const(np.ones((1, 1, 3, 3), np.float32))
        pads = {"dilations": "1,1", "pads_begin": "1,1", "pads_end": "1,1"}
        ir.result(ir.layer("Convolution", [x, kernel], {"strides": strides, **pads}))
    assert reported(ir, tmp_path) == []
