"""An LSTM over time applies its cell step by step, in both versions and every way to run it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support import IR

import deconv_ir
from deconv_ir.errors import UnsupportedError

RNG = np.random.default_rng(0)
DIRECTIONS = {"forward": [1], "reverse": [-1], "bidirectional": [1, -1]}
BATCH, INPUTS, HIDDEN = 2, 3, 4


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def inputs_of(time: int, directions: int) -> list[np.ndarray]:
    """Return X, both states, W, R and B."""
    shapes: list[tuple[int, ...]] = [(BATCH, time, INPUTS)]
    shapes += [(BATCH, directions, HIDDEN)] * 2
    shapes += [(directions, 4 * HIDDEN, *rest) for rest in ((INPUTS,), (HIDDEN,), ())]
    return [normal(*shape) for shape in shapes]


def by_cell(
    run: Any, kind: str, inputs: list[np.ndarray], direction: str, lengths: list[int], **how: str
) -> list[np.ndarray]:
    """Compute the outputs of a sequence, with one call of the cell per step."""
    x, h0, c0, w, r, b = inputs
    ways, time = DIRECTIONS[direction], x.shape[1]
    expected, last = np.zeros((BATCH, len(ways), time, HIDDEN), np.float32), [h0.copy(), c0.copy()]
    for d, way in enumerate(ways):
        for n in range(BATCH):
            one = slice(n, n + 1)
            for step in list(range(lengths[n]))[::way]:
                states = [state[one, d] for state in last]
                weights = (w[d], r[d], b[d])
                found = run(kind, x[one, step], *states, *weights, hidden_size=str(HIDDEN), **how)
                expected[n, d, step] = found[0][0]
                for state, new in zip(last, found, strict=True):
                    state[n, d] = new[0]
    return [expected, *last]


def check(found: Any, expected: list[np.ndarray]) -> None:
    for mine, theirs in zip(found, expected, strict=True):
        np.testing.assert_allclose(mine, theirs, atol=2e-6)


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("time", [0, 5])
@pytest.mark.parametrize(
    "attributes",
    [{}, {"clip": "0.3"}, {"activations": "sigmoid,relu,tanh"}],
    ids=["usual", "clip", "activations"],
)
@pytest.mark.parametrize("version", [1, 5])
def test_an_lstm_over_time_is_its_cell(
    run: Any, version: int, direction: str, time: int, attributes: dict[str, str]
) -> None:
    """LSTMSequence-1 and -5 apply the cell, whose formula is tested elsewhere, step by step."""
    inputs = inputs_of(time, len(DIRECTIONS[direction]))
    expected = by_cell(run, "LSTMCell-4", inputs, direction, [time] * BATCH, **attributes)
    found = run(
        f"LSTMSequence-{version}", *inputs[:3], [time] * BATCH, *inputs[3:],
        hidden_size=str(HIDDEN), direction=direction, **attributes,
    )  # fmt: skip
    check(found, expected)


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("lengths", [[4, 4], [4, 2], [0, 1]], ids=str)
@pytest.mark.parametrize(
    "how",
    [{}, {"weights_format": "iofc"}, {"input_forget": "true"}],
    ids=["plain", "weights_format", "input_forget"],
)
def test_attributes_of_lstm_sequence_1(
    run: Any, direction: str, lengths: list[int], how: dict[str, str]
) -> None:
    inputs = inputs_of(4, len(DIRECTIONS[direction]))
    expected = by_cell(run, "LSTMCell-1", inputs, direction, lengths, **how)
    found = run(
        "LSTMSequence-1", *inputs[:3], lengths, *inputs[3:],
        hidden_size=str(HIDDEN), direction=direction, **how,
    )  # fmt: skip
    check(found, expected)


@pytest.mark.parametrize("version", [1, 5])
@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("lengths", [[50, 50], [50, 17]], ids=["whole", "shorter"])
def test_constant_weights_are_arranged_once_and_time_is_cut(
    run: Any, version: int, direction: str, lengths: list[int], tmp_path: Path
) -> None:
    """With the smallest scratchpad, the gates are computed for 16 steps at a time."""
    x, h0, c0, w, r, b = inputs = inputs_of(50, len(DIRECTIONS[direction]))
    ir = IR()
    given = [
        ir.parameter(name, ",".join(map(str, array.shape)))
        for name, array in (("x", x), ("h", h0), ("c", c0))
    ]
    constants = [ir.const(np.array(lengths)), *map(ir.const, (w, r, b))]
    number, port = ir.layer(
        "LSTMSequence",
        [*given, *constants],
        {"hidden_size": str(HIDDEN), "direction": direction},
        version=f"opset{version}",
        outputs=("", "", ""),
    )
    for output in range(3):
        ir.result((number, port + output))
    model = deconv_ir.load(ir.save(tmp_path), scratch_bytes=1, warn=False)
    found = model.run([x, h0, c0])
    check(found.values(), by_cell(run, "LSTMCell-4", inputs, direction, lengths))


def test_peepholes_of_a_sequence_are_refused(run: Any) -> None:
    inputs = inputs_of(2, 1)
    arguments = (*inputs[:3], [2] * BATCH, *inputs[3:])
    how = {"hidden_size": str(HIDDEN), "direction": "forward"}
    run("LSTMSequence-1", *arguments, np.zeros((1, 3 * HIDDEN), np.float32), **how)
    with pytest.raises(UnsupportedError, match="peephole"):
        run("LSTMSequence-1", *arguments, np.ones((1, 3 * HIDDEN), np.float32), **how)
