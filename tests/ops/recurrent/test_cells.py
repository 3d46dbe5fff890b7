"""Recurrent cells follow their formulas, and sequences apply cells over time."""

from __future__ import annotations

import numpy as np
import pytest

from deconv_ir.errors import UnsupportedError

RNG = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def test_lstm_cell_is_its_formula(run) -> None:
    """LSTMCell-4, 'Detailed description'; gates f, i, c, o."""
    n, i, h = 2, 3, 4
    x, h0, c0 = normal(n, i), normal(n, h), normal(n, h)
    w, r, b = normal(4 * h, i), normal(4 * h, h), normal(4 * h)
    gates = x @ w.T + h0 @ r.T + b
    f, enter, c, o = (gates[:, k * h : (k + 1) * h] for k in range(4))
    cell = sigmoid(f) * c0 + sigmoid(enter) * np.tanh(c)
    hidden, state = run("LSTMCell-4", x, h0, c0, w, r, b, hidden_size="4")
    np.testing.assert_allclose(state, cell, atol=1e-5)
    np.testing.assert_allclose(hidden, sigmoid(o) * np.tanh(cell), atol=1e-5)
    # Weights for gates f, i, c, o are reordered to i, o, f, c.
    moved = [np.concatenate([np.split(m, 4)[k] for k in (1, 3, 0, 2)]) for m in (w, r, b)]
    again, _ = run("LSTMCell", x, h0, c0, *moved, hidden_size="4", weights_format="iofc")
    np.testing.assert_allclose(again, hidden, atol=1e-6)


@pytest.mark.parametrize("direction", ["forward", "reverse", "bidirectional"])
def test_a_sequence_is_its_cell_over_time(run, direction: str) -> None:
    """Shorter sequences end early: later outputs are 0, and the state is the one at their end."""
    n, t, i, h = 2, 4, 3, 2
    lengths = [4, 2]
    ways = {"forward": [1], "reverse": [-1], "bidirectional": [1, -1]}[direction]
    x, h0 = normal(n, t, i), normal(n, len(ways), h)
    w, r, b = normal(len(ways), 3 * h, i), normal(len(ways), 3 * h, h), normal(len(ways), 3 * h)
    expected = np.zeros((n, len(ways), t, h), np.float32)
    last = h0.copy()
    for d, way in enumerate(ways):
        for k in range(n):
            for step in list(range(lengths[k]))[::way]:
                state = run(
                    "GRUCell-3",
                    x[k : k + 1, step],
                    last[k : k + 1, d],
                    w[d],
                    r[d],
                    b[d],
                    hidden_size="2",
                )
                last[k, d] = expected[k, d, step] = state[0]
    found, final = run(
        "GRUSequence-5", x, h0, lengths, w, r, b, hidden_size="2", direction=direction
    )
    np.testing.assert_allclose(found, expected, atol=1e-6)
    np.testing.assert_allclose(final, last, atol=1e-6)


def test_peepholes_are_refused(run) -> None:
    n, i, h = 1, 2, 2
    inputs = (normal(n, i), normal(n, h), normal(n, h), normal(8, i), normal(8, h), normal(8))
    run("LSTMCell", *inputs, np.zeros(6, np.float32), hidden_size="2")
    with pytest.raises(UnsupportedError, match="peephole"):
        run("LSTMCell", *inputs, np.ones(6, np.float32), hidden_size="2")
