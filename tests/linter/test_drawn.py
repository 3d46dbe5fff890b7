"""--fix on networks that no other test uses; `make mutate-lint` tries thousands of mutants."""

from __future__ import annotations

from pathlib import Path

import pytest

from deconv_ir.linter.engine import check_bytes
from deconv_ir.linter.options import choose

from .drawn import drawn_network, trial

FIRST = 100_000
"""`make mutate-lint` begins with 0."""


@pytest.mark.parametrize("chunk", range(2))
def test_fixed_networks_compute_the_same(chunk: int, tmp_path: Path) -> None:
    seeds = range(FIRST + 3 * chunk, FIRST + 3 * chunk + 3)
    ends, wrong = trial(seeds, tmp_path)
    assert wrong == []
    assert ends["fixed"] >= 5
    assert ends["left"] > 30


def test_drawn_networks_are_clean(tmp_path: Path) -> None:
    for seed in range(FIRST, FIRST + 12):
        text, weights = drawn_network(seed)
        (tmp_path / "m.bin").write_bytes(weights)
        assert check_bytes(text.encode(), "m.xml", choose(), tmp_path / "m.bin").findings == []


CYCLE = """<net name="n" version="11"><layers>
<layer id="0" name="w" type="Const" version="opset1">
<data element_type="f32" shape="1,1,1,1" offset="0" size="4"/>
<output><port id="0" precision="FP32"><dim>1</dim><dim>1</dim><dim>1</dim><dim>1</dim></port>
</output></layer>
<layer id="1" name="d" type="ConvolutionBackpropData" version="opset1">
<data strides="1,1" dilations="1,1" pads_begin="0,0" pads_end="0,0"/>
<input><port id="0"><dim>1</dim><dim>3</dim></port>
<port id="1"><dim>1</dim><dim>1</dim><dim>1</dim><dim>1</dim></port></input>
<output><port id="2" precision="FP32"><dim>1</dim><dim>3</dim></port></output></layer>
<layer id="2" name="y" type="Result" version="opset1">
<input><port id="0"><dim>1</dim><dim>3</dim></port></input></layer>
</layers><edges>
<edge from-layer="1" from-port="2" to-layer="1" to-port="0"/>
<edge from-layer="0" from-port="0" to-layer="1" to-port="1"/>
<edge from-layer="1" from-port="2" to-layer="2" to-port="0"/>
</edges></net>"""


def test_a_layer_on_a_cycle_with_impossible_dims() -> None:
    """Its declared dims stand for the computed ones, and no rule may trust them."""
    findings = check_bytes(CYCLE.encode(), "m.xml", choose(severity="info")).findings
    assert "IR207" in {f.code for f in findings}
