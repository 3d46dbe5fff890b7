"""Cells, sequences and CTCGreedyDecoder."""

from __future__ import annotations

import numpy as np

from .. import oracles
from .row import Array, Row, real

STATE, CELL, DATA = real(2, 4), real(2, 4), real(2, 3)
LSTM_W, LSTM_B = real(16, 7), real(16)
GRU_W, GRU_B = real(12, 7), real(12)
LBR_B = real(16)
RNN_W, RNN_B = real(4, 7), real(4)
SEQUENCE = real(2, 5, 3)


def run_lstm(x: Array, h: Array, c: Array) -> tuple[Array, Array, Array]:
    steps = []
    for t in range(x.shape[1]):
        h, c = oracles.lstm(x[:, t], h, c, LSTM_W, LSTM_B)
        steps.append(h)
    return np.stack(steps, 1), h, c


def run_gru(x: Array, h: Array) -> tuple[Array, Array]:
    steps = []
    for t in range(x.shape[1]):
        h = oracles.gru(x[:, t], h, GRU_W, GRU_B, linear_before_reset=False)
        steps.append(h)
    return np.stack(steps, 1), h


def run_rnn(x: Array, h: Array) -> tuple[Array, Array]:
    steps = []
    for t in range(x.shape[1]):
        h = np.tanh(np.concatenate([x[:, t], h], 1) @ RNN_W.T + RNN_B)
        steps.append(h)
    return np.stack(steps, 1), h


ZERO = np.zeros((2, 4), np.float32)
LOGITS = np.float32([[0.1, 0.9, 0.0], [0.2, 0.7, 0.1], [0.1, 0.2, 0.7], [0.6, 0.3, 0.1]])
RECURRENT: list[Row] = [
    (
        "LSTMCell",
        [DATA, STATE, CELL],
        {"hidden_size": 4},
        {"weights": LSTM_W, "biases": LSTM_B},
        list(oracles.lstm(DATA, STATE, CELL, LSTM_W, LSTM_B)),
    ),
    (
        "LSTMCell",
        [DATA, STATE, CELL],
        {},
        {"weights": LSTM_W},
        list(oracles.lstm(DATA, STATE, CELL, LSTM_W, LSTM_B * 0)),
    ),
    (
        "GRUCell",
        [DATA, STATE],
        {"hidden_size": 4},
        {"weights": GRU_W, "biases": GRU_B},
        [oracles.gru(DATA, STATE, GRU_W, GRU_B, linear_before_reset=False)],
    ),
    (
        "GRUCell",
        [DATA, STATE],
        {"hidden_size": 4, "linear_before_reset": 1},
        {"weights": GRU_W, "biases": LBR_B},
        [oracles.gru(DATA, STATE, GRU_W, LBR_B, linear_before_reset=True)],
    ),
    (
        "RNNCell",
        [DATA, STATE],
        {"hidden_size": 4, "activations": "tanh"},
        {"weights": RNN_W, "biases": RNN_B},
        [np.tanh(np.concatenate([DATA, STATE], 1) @ RNN_W.T + RNN_B)],
    ),
    (
        "LSTMSequence",
        [SEQUENCE, STATE, CELL],
        {"hidden_size": 4, "direction": "Forward", "axis": 1},
        {"weights": LSTM_W, "biases": LSTM_B},
        list(run_lstm(SEQUENCE, STATE, CELL)),
    ),
    (
        "LSTMSequence",
        [SEQUENCE.swapaxes(0, 1)],
        {"hidden_size": 4, "direction": "Backward", "axis": 0},
        {"weights": LSTM_W, "biases": LSTM_B},
        [run_lstm(SEQUENCE[:, ::-1], ZERO, ZERO)[0][:, ::-1].swapaxes(0, 1)],
    ),
    (
        "GRUSequence",
        [SEQUENCE, STATE],
        {"hidden_size": 4, "direction": "Forward", "axis": 1},
        {"weights": GRU_W, "biases": GRU_B},
        list(run_gru(SEQUENCE, STATE)),
    ),
    (
        "RNNSequence",
        [SEQUENCE, STATE],
        {"hidden_size": 4, "activations": "tanh"},
        {"weights": RNN_W, "biases": RNN_B},
        list(run_rnn(SEQUENCE, STATE)),
    ),
    (
        "CTCGreedyDecoder",
        [LOGITS.reshape(4, 1, 3), np.ones((4, 1), np.float32)],
        {"ctc_merge_repeated": 1},
        {},
        [np.float32([1, 0, -1, -1]).reshape(1, 4, 1, 1)],
    ),
    (
        "CTCGreedyDecoder",
        [LOGITS.reshape(4, 1, 3), np.ones((4, 1), np.float32)],
        {"ctc_merge_repeated": 0},
        {},
        [np.float32([1, 1, 0, -1]).reshape(1, 4, 1, 1)],
    ),
]
