"""Ranges of FakeQuantize that their data or the ranges of other layers contradict."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import IR

from deconv_ir.linter.engine import check_bytes
from deconv_ir.linter.options import choose

OPTIONS = choose(select=["IR804", "IR809", "IR812"], severity="info")
WIDTHS = (4.0, 3.0, 5.0, 2.5, 4.4, 6.0, 3.3, 4.2)

Ranges = tuple[float, float, float, float]


def fake_quantize(ir: IR, x: Any, ranges: Ranges, levels: int = 256) -> Any:
    bounds = [ir.const(np.array(bound, np.float32)) for bound in ranges]
    return ir.layer("FakeQuantize", [x, *bounds], {"levels": str(levels)})


def network(
    odd: Ranges | None = None, weights: Ranges | None = None, levels: int = 256, blocks: int = 8
) -> IR:
    """Build a chain of quantized convolutions; one has other ranges."""
    ir = IR()
    x = ir.parameter("x", "1,4,8,8")
    values = np.linspace(-0.5, 0.5, 16, dtype=np.float32).reshape(4, 4, 1, 1)
    attributes = {"strides": "1,1", "dilations": "1,1", "pads_begin": "0,0", "pads_end": "0,0"}
    for number in range(blocks):
        at = WIDTHS[number % len(WIDTHS)] / 2
        ranges, of_weights = (-at, at, -at, at), (-0.5, 0.5, -0.5, 0.5)
        given = 256
        if number == 4:
            ranges, of_weights, given = odd or ranges, weights or of_weights, levels
        x = fake_quantize(ir, x, ranges, given)
        filter_ = fake_quantize(ir, ir.const(values), of_weights, 255)
        x = ir.layer("Convolution", [x, filter_], attributes)
        x = ir.layer("ReLU", [x])
    ir.result(x)
    return ir


def reported(ir: IR, folder: Path) -> list[str]:
    (folder / "m.bin").write_bytes(bytes(ir.weights))
    found = check_bytes(ir.xml().encode(), "m.xml", OPTIONS, folder / "m.bin").findings
    return [f"{f.code} {f.message}" for f in found]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({}, []),
        ({"odd": (-4.0, 4.0, -4.0, 4.0)}, []),
        ({"odd": (-220.0, 220.0, -220.0, 220.0)}, ["IR812 the input range has a width of 440"]),
        ({"odd": (-0.02, 0.02, -0.02, 0.02)}, ["IR812 the input range has a width of 0.04"]),
        ({"odd": (2.2, -2.2, -2.2, 2.2)}, ["IR804 input_low is larger"]),
        ({"odd": (-2.2, 2.2, -220.0, 220.0)}, ["IR812 the output range is from -220 to 220"]),
        ({"odd": (1.0, 4.4, 1.0, 4.4)}, ["IR812 the input range is from 1 to 4.4, without 0"]),
        ({"levels": 16}, ["IR809 levels is 16, but 256"]),
        ({"weights": (-0.05, 0.05, -0.05, 0.05)}, ["IR812 the input range is from -0.05 to 0.05"]),
        ({"weights": (-50.0, 50.0, -50.0, 50.0)}, ["IR812 the input range is from -50 to 50"]),
        ({"weights": (-0.4, 0.4, -0.4, 0.4)}, []),  # a few are clipped
        ({"weights": (-2.0, 2.0, -2.0, 2.0)}, []),
    ],
    ids=str,
)
def test_one_layer_differs(changes: dict[str, Any], words: list[str], tmp_path: Path) -> None:
    found = reported(network(**changes), tmp_path)
    assert len(found) == len(words), found
    assert all(text.startswith(begin) for text, begin in zip(found, words, strict=True))


def test_few_layers_have_no_majority(tmp_path: Path) -> None:
    odd = (-2.2, 2.2, -220.0, 220.0)
    assert reported(network(odd=odd, blocks=5), tmp_path) == []


@pytest.mark.parametrize(("high", "count"), [(0.5, 0), (0.01, 1)])
def test_ranges_of_channels_and_integers(high: float, count: int, tmp_path: Path) -> None:
    """Weights of i8 behind Convert and Multiply are not constants; behind Convert they are."""
    ir = IR()
    x = ir.parameter("x", "1,4,8,8")
    values = ir.const(np.arange(-8, 8, dtype=np.float16).reshape(4, 4, 1, 1) / 16)
    wide = ir.layer("Convert", [values], {"destination_type": "f32"})
    bounds = np.full((4, 1, 1, 1), high, np.float32)
    ends = [ir.const(sign * bounds) for sign in (-1, 1, -1, 1)]
    filter_ = ir.layer("FakeQuantize", [wide, *ends], {"levels": "255"})
    attributes = {"strides": "1,1", "dilations": "1,1", "pads_begin": "0,0", "pads_end": "0,0"}
    ir.result(ir.layer("Convolution", [x, filter_], attributes))
    assert len(reported(ir, tmp_path)) == count
