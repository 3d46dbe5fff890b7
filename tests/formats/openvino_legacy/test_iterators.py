"""TensorIterator, whose body has old layers, too."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from old_ir import OldIR

import deconv_ir
from deconv_ir.linter.engine import check_file
from deconv_ir.linter.options import choose

from .rows.recurrent import CELL, LSTM_B, LSTM_W, SEQUENCE, STATE, run_lstm

ITERATOR = """<port_map>
    <input axis="1" external_port_id="0" internal_layer_id="1" internal_port_id="0" {range}/>
    <input external_port_id="1" internal_layer_id="2" internal_port_id="1"/>
    <input external_port_id="2" internal_layer_id="2" internal_port_id="2"/>
    <output axis="1" external_port_id="3" internal_layer_id="4" internal_port_id="2" {range}/>
    <output external_port_id="4" internal_layer_id="2" internal_port_id="6"/>
</port_map>
<back_edges>
    <edge from-layer="2" from-port="5" to-layer="2" to-port="1"/>
    <edge from-layer="2" from-port="6" to-layer="2" to-port="2"/>
</back_edges>
<body>
    <layers>
        <layer id="0" name="shape" type="Const">
            <output><port id="1" precision="I32"><dim>2</dim></port></output>
            <blobs>{shape}</blobs>
        </layer>
        <layer id="1" name="squeeze" type="Reshape" precision="FP32">
            <input><port id="0"><dim>2</dim><dim>1</dim><dim>3</dim></port>
            <port id="1"><dim>2</dim></port></input>
            <output><port id="2"><dim>2</dim><dim>3</dim></port></output>
        </layer>
        <layer id="2" name="cell" type="LSTMCell" precision="FP32">
            <data hidden_size="4" activations="sigmoid,tanh,tanh" activations_alpha="" clip="0"/>
            <input><port id="0"><dim>2</dim><dim>3</dim></port>
            <port id="1"><dim>2</dim><dim>4</dim></port>
            <port id="2"><dim>2</dim><dim>4</dim></port></input>
            <output><port id="5"><dim>2</dim><dim>4</dim></port>
            <port id="6"><dim>2</dim><dim>4</dim></port></output>
            <blobs>{weights}{biases}</blobs>
        </layer>
        <layer id="4" name="unsqueeze" type="Reshape" precision="FP32">
            <data dim="2,1,4"/>
            <input><port id="0"><dim>2</dim><dim>4</dim></port></input>
            <output><port id="2"><dim>2</dim><dim>1</dim><dim>4</dim></port></output>
        </layer>
    </layers>
    <edges>
        <edge from-layer="0" from-port="1" to-layer="1" to-port="1"/>
        <edge from-layer="1" from-port="2" to-layer="2" to-port="0"/>
        <edge from-layer="2" from-port="5" to-layer="4" to-port="0"/>
    </edges>
</body>"""


def iterator(range_: str = 'start="0"') -> OldIR:
    """An LSTM as Model Optimizer wrote those of TensorFlow and ONNX."""
    ir = OldIR(6)
    inputs = [ir.input(2, 5, 3, name="x0"), ir.input(2, 4, name="x1"), ir.input(2, 4, name="x2")]
    places = {
        "shape": ir.place("custom", np.array([2, 3], np.int32)),
        "weights": ir.place("weights", LSTM_W),
        "biases": ir.place("biases", LSTM_B),
    }
    ir.layer(
        "TensorIterator",
        inputs,
        (2, 5, 4),
        (2, 4),
        name="it",
        inner=ITERATOR.format(range=range_, **places),
    )
    return ir


GIVEN_STATES = {"x0": SEQUENCE, "x1": STATE, "x2": CELL}


@pytest.mark.parametrize("backward", [False, True])
def test_tensor_iterator(backward: bool, tmp_path: Path) -> None:
    ir = iterator('start="-1" end="0" stride="-1"' if backward else 'start="0"')
    model = deconv_ir.load(ir.write(tmp_path))
    deconv_ir.save(model, tmp_path / "new.xml")
    given = SEQUENCE[:, ::-1] if backward else SEQUENCE
    steps, _, cell = run_lstm(given, STATE, CELL)
    for again in (model, deconv_ir.load(tmp_path / "new.xml")):
        found = list(again.run(GIVEN_STATES).values())
        np.testing.assert_allclose(found[0], steps[:, ::-1] if backward else steps, 2e-5, 2e-5)
        np.testing.assert_allclose(found[1], cell, 2e-5, 2e-5)


@pytest.mark.parametrize(
    ("was", "now", "message"),
    [
        ('internal_layer_id="4"', 'internal_layer_id="9"', "names layer 9"),
        (
            'layer_id="2" internal_port_id="2"',
            'layer_id="2" internal_port_id="7"',
            "names input port 7 of layer 2",
        ),
        ('to-port="2"/>', 'to-port="x"/>', "must be a whole number"),
        ('type="LSTMCell"', 'type="Strange"', "Strange (1)"),
        ('hidden_size="4"', 'hidden_size="x"', "hidden_size"),
        ('from-layer="1" from-port="2"', 'from-layer="8" from-port="2"', "names layer 8"),
    ],
)
def test_invalid_bodies(was: str, now: str, message: str, tmp_path: Path) -> None:
    path = iterator().write(tmp_path)
    text = path.read_text()
    assert was in text
    path.write_text(text.replace(was, now))
    with pytest.raises(deconv_ir.DeconvError) as caught:
        deconv_ir.load(path)
    assert message in str(caught.value)
    assert caught.value.line is not None


def test_a_right_body_has_no_finding(tmp_path: Path) -> None:
    assert not check_file(iterator().write(tmp_path), choose()).findings


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ('<port id="5"><dim>2</dim><dim>4</dim>', "declared 7, computed 4"),
        ('<port id="1"><dim>2</dim><dim>4</dim>', "brings [2,4] to the input 'cell/input_1'"),
    ],
)
def test_wrong_dims_in_a_body_are_reported(right: str, wrong: str, tmp_path: Path) -> None:
    path = iterator().write(tmp_path)
    text = path.read_text()
    start = text.index(right, text.index("<body>"))
    path.write_text(text[:start] + text[start:].replace(right, right.replace("4", "7"), 1))
    (found,) = check_file(path, choose()).findings
    assert wrong in found.message
    assert found.layer == "'cell' (LSTMCell, id 2)"
    places = text[:start].count("\n") + 1, text[: text.index('name="cell"')].count("\n") + 1
    assert found.line in places  # the port, or its layer
