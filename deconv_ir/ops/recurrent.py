"""Recurrent cells and sequences: RNN, GRU and LSTM.

Names of axes are those of `recurrence.py`.
"""

from __future__ import annotations

import enum
from typing import Any

from .base import attribute, boolean, choice, choices, operation
from .recurrence import SIGMOID, TANH, Activation, Direction, Recurrent, activate


class WeightsFormat(enum.Enum):
    """Order of the gates of an LSTM: forget, input, cell, output."""

    FICO = "fico"
    ICOF = "icof"
    IFCO = "ifco"
    IFOC = "ifoc"
    IOFC = "iofc"


class _RNN(Recurrent):
    """H = f(X W + H R + B)."""

    activations: tuple[Activation, ...] = attribute(choices(Activation), (TANH,))

    def functions(self) -> tuple[Activation, ...]:
        """Tell the functions of the gates."""
        return self.activations or (TANH,)

    def step(self, np: Any, x: Any, states: list[Any], r: Any, b: Any) -> list[Any]:
        """Compute the next state."""
        return [self.activate(np, 0, x + states[0] @ r.T + b)]


class _GRU(Recurrent):
    """Gates z (update), r (reset) and h, in this order."""

    gates = 3

    activations: tuple[Activation, ...] = attribute(choices(Activation), (SIGMOID, TANH))
    linear_before_reset: bool = attribute(boolean(), False)

    def functions(self) -> tuple[Activation, ...]:
        """Tell the functions of the gates."""
        return self.activations or (SIGMOID, TANH)

    def bias_rows(self) -> int:
        """Tell how many biases there are for each hidden unit."""
        return 4 if self.linear_before_reset else 3

    def step(self, np: Any, x: Any, states: list[Any], r: Any, b: Any) -> list[Any]:
        """Compute the next state."""
        (hidden,) = states
        h = self.hidden_size
        both = x[:, : 2 * h] + hidden @ r[: 2 * h].T + b[: 2 * h]
        update = self.activate(np, 0, both[:, :h])
        reset = self.activate(np, 0, both[:, h:])
        if self.linear_before_reset:
            inner = reset * (hidden @ r[2 * h :].T + b[3 * h :])
        else:
            inner = (reset * hidden) @ r[2 * h :].T
        candidate = self.activate(np, 1, x[:, 2 * h :] + inner + b[2 * h : 3 * h])
        return [(1 - update) * candidate + update * hidden]


class _LSTM(Recurrent):
    """Gates f (forget), i (input), c (cell) and o (output), in this order."""

    gates = 4
    states = 2

    activations: tuple[Activation, ...] = attribute(choices(Activation), (SIGMOID, TANH, TANH))

    def functions(self) -> tuple[Activation, ...]:
        """Tell the functions of the gates."""
        return self.activations or (SIGMOID, TANH, TANH)

    def forgets_by_input(self) -> bool:
        """Whether the forget gate is 1 minus the input gate."""
        return False

    def step(self, np: Any, x: Any, states: list[Any], r: Any, b: Any) -> list[Any]:
        """Compute the next hidden and cell state."""
        hidden, cell = states
        forget, enter, new, leave = np.split(x + hidden @ r.T + b, 4, axis=1)
        enter = self.activate(np, 0, enter)
        forget = 1 - enter if self.forgets_by_input() else self.activate(np, 0, forget)
        cell = forget * cell + enter * self.activate(np, 1, new)
        # The cell state itself is not clipped.
        function = self.functions()[2]
        alphas, betas = self.activations_alpha, self.activations_beta
        alpha = alphas[2] if len(alphas) > 2 else 0.2
        beta = betas[2] if len(betas) > 2 else 0.5
        leave = self.activate(np, 0, leave)
        return [leave * activate(np, function, cell, alpha, beta), cell]

    def run_whole(self, np: Any, x: Any, first: list[Any], weights: list[Any]) -> list[Any]:
        """Run over time; with the usual functions, all directions and gates at once.

        A step on small arrays takes as long as its calls do, so these are few:
        sigmoid(x) is (tanh(x / 2) + 1) / 2, and one tanh does for all gates.
        """
        if self.functions() != (SIGMOID, TANH, TANH) or self.clip:
            return Recurrent.run_whole(self, np, x, first, weights)
        from ..kernels.products import matmul

        h, (batch, time, _) = self.hidden_size, x.shape
        one, half = np.ones((), x.dtype), np.full((), 0.5, x.dtype)
        scale = np.repeat(np.array([0.5, 0.5, 1, 0.5], x.dtype), h)[:, None]
        w, r = (weight * scale for weight in weights[:2])
        gates = np.empty((time, self.directions, batch, 4 * h), x.dtype)
        for d in range(self.directions):
            projected = (matmul(x, w[d].T) + weights[2][d] * scale[:, 0]).transpose(1, 0, 2)
            gates[:, d] = projected[::-1] if self.reads_backwards(d) else projected
        hidden, cell = (state.transpose(1, 0, 2).copy() for state in first)
        # Sums of 1 and tanh are twice the gates.  The cell state is halved at once,
        # the hidden state in the end: until then the weights are halved for it.
        hidden *= 2
        r = np.ascontiguousarray(r.transpose(0, 2, 1)) * half
        product, inner = np.empty(gates.shape[1:], x.dtype), np.empty_like(cell)
        forget, enter, leave = (product[..., k * h : (k + 1) * h] for k in (0, 1, 3))
        found = np.empty((time, *hidden.shape), x.dtype)
        for moment, new, target in zip(gates, gates[..., 2 * h : 3 * h], found, strict=True):
            np.matmul(hidden, r, out=product)
            np.add(moment, product, out=moment)
            np.tanh(moment, out=moment)
            np.add(moment, one, out=product)
            np.multiply(cell, forget, out=cell)
            np.multiply(enter, new, out=inner)
            np.add(cell, inner, out=cell)
            np.multiply(cell, half, out=cell)
            np.tanh(cell, out=inner)
            hidden = np.multiply(leave, inner, out=target)
        found *= half
        hidden = hidden if time else hidden * half
        steps = np.empty((batch, self.directions, time, h), x.dtype)
        for d in range(self.directions):
            ours = found[::-1, d] if self.reads_backwards(d) else found[:, d]
            np.copyto(steps[:, d], ours.transpose(1, 0, 2))
        return [steps, hidden.transpose(1, 0, 2), cell.transpose(1, 0, 2)]


_CELL = ("X", "initial_hidden_state", "W", "R", "B")
_LSTM_CELL = ("X", "initial_hidden_state", "initial_cell_state", "W", "R", "B")
_SEQUENCE = ("X", "initial_hidden_state", "sequence_lengths", "W", "R", "B")
_LSTM_SEQUENCE = (
    "X",
    "initial_hidden_state",
    "initial_cell_state",
    "sequence_lengths",
    "W",
    "R",
    "B",
)


@operation(
    "RNNCell",
    "opset1",
    inputs=_CELL,
    required=4,
    examples=("f32[2,3], f32[2,4], f32[4,3], f32[4,4], f32[4] -> f32[2,4] | hidden_size=4",),
)
class RNNCell(_RNN):
    """H = f(X W + H R + B).

    Source: OpenVINO operation specification, RNNCell-3.

    Attributes
    ----------
    hidden_size : int
    activations : tuple of Activation
        f; tanh by default.
    activations_alpha, activations_beta : tuple of float
        Parameters of hardsigmoid.
    clip : float
        Bound of what goes into f; 0: none.
    """


@operation(
    "RNNSequence",
    "opset5",
    inputs=_SEQUENCE,
    examples=(
        "f32[2,5,3], f32[2,2,4], i64[2]{5,3}, f32[2,4,3], f32[2,4,4], f32[2,4]"
        " -> f32[2,2,5,4], f32[2,2,4] | hidden_size=4 direction=bidirectional",
    ),
)
class RNNSequence(_RNN):
    """RNNCell over time.

    Source: OpenVINO operation specification, RNNSequence-5.

    Attributes
    ----------
    hidden_size, activations, activations_alpha, activations_beta, clip
        As of `RNNCell`.
    direction : Direction
        forward, reverse or bidirectional.
    """

    sequence = True

    direction: Direction = attribute(choice(Direction))

    def chosen_direction(self) -> Direction:
        """Tell which way the sequence is read."""
        return self.direction


@operation(
    "GRUCell",
    "opset3",
    inputs=_CELL,
    required=4,
    examples=(
        "f32[2,3], f32[2,4], f32[12,3], f32[12,4], f32[12] -> f32[2,4] | hidden_size=4",
        "f32[2,3], f32[2,4], f32[12,3], f32[12,4], f32[16] -> f32[2,4]"
        " | hidden_size=4 linear_before_reset=true",
    ),
)
class GRUCell(_GRU):
    """Gated recurrent unit.

    Source: OpenVINO operation specification, GRUCell-3.

    Attributes
    ----------
    hidden_size : int
    activations : tuple of Activation
        Functions of the gates and of the candidate; sigmoid, tanh by default.
    activations_alpha, activations_beta : tuple of float
        Parameters of hardsigmoid.
    clip : float
        Bound of what goes into a function; 0: none.
    linear_before_reset : bool
        The reset gate is applied after the product with R; B has a fourth part.
    """


@operation(
    "GRUSequence",
    "opset5",
    inputs=_SEQUENCE,
    examples=(
        "f32[2,5,3], f32[2,1,4], i64[2]{5,3}, f32[1,12,3], f32[1,12,4], f32[1,12]"
        " -> f32[2,1,5,4], f32[2,1,4] | hidden_size=4 direction=reverse",
    ),
)
class GRUSequence(_GRU):
    """GRUCell over time.

    Source: OpenVINO operation specification, GRUSequence-5.

    Attributes
    ----------
    hidden_size, activations, activations_alpha, activations_beta, clip, linear_before_reset
        As of `GRUCell`.
    direction : Direction
        forward, reverse or bidirectional.
    """

    sequence = True

    direction: Direction = attribute(choice(Direction))

    def chosen_direction(self) -> Direction:
        """Tell which way the sequence is read."""
        return self.direction


@operation(
    "LSTMCell",
    "opset1",
    inputs=(*_LSTM_CELL, "P"),
    required=5,
    examples=(
        "f32[2,3], f32[2,4], f32[2,4], f32[16,3], f32[16,4], f32[16] -> f32[2,4], f32[2,4]"
        " | hidden_size=4 weights_format=ifco input_forget=true",
    ),
)
class LSTMCell1(_LSTM):
    """Long short-term memory.

    Source: OpenVINO operation specification, LSTMCell-1.

    Attributes
    ----------
    hidden_size : int
    activations : tuple of Activation
        Functions of the gates, of the new cell state, and of the output;
        sigmoid, tanh, tanh by default.
    activations_alpha, activations_beta : tuple of float
        Parameters of hardsigmoid.
    clip : float
        Bound of what goes into a gate; 0: none.
    input_forget : bool
        The forget gate is 1 minus the input gate.
    weights_format : WeightsFormat
        Order of the gates in W, R and B.
    """

    input_forget: bool = attribute(boolean(), False)
    weights_format: WeightsFormat = attribute(choice(WeightsFormat), WeightsFormat.FICO)

    def forgets_by_input(self) -> bool:
        """Whether the forget gate is 1 minus the input gate."""
        return self.input_forget

    def ordered(self, np: Any, weights: Any) -> Any:
        """Put the gates in the order f, i, c, o."""
        parts = dict(zip(self.weights_format.value, np.split(weights, 4), strict=True))
        return np.concatenate([parts[gate] for gate in "fico"])


@operation(
    "LSTMCell",
    "opset4",
    inputs=_LSTM_CELL,
    required=5,
    examples=(
        "f32[2,3], f32[2,4], f32[2,4], f32[16,3], f32[16,4], f32[16] -> f32[2,4], f32[2,4]"
        " | hidden_size=4 clip=0.5",
    ),
)
class LSTMCell4(_LSTM):
    """Long short-term memory.

    Source: OpenVINO operation specification, LSTMCell-4.

    Attributes
    ----------
    hidden_size, activations, activations_alpha, activations_beta, clip
        As of `LSTMCell1`.
    """


@operation(
    "LSTMSequence",
    "opset5",
    inputs=_LSTM_SEQUENCE,
    examples=(
        "f32[2,5,3], f32[2,2,4], f32[2,2,4], i64[2]{5,3}, f32[2,16,3], f32[2,16,4], f32[2,16]"
        " -> f32[2,2,5,4], f32[2,2,4], f32[2,2,4] | hidden_size=4 direction=bidirectional",
    ),
)
class LSTMSequence(_LSTM):
    """LSTMCell over time.

    Source: OpenVINO operation specification, LSTMSequence-5.

    Attributes
    ----------
    hidden_size, activations, activations_alpha, activations_beta, clip
        As of `LSTMCell1`.
    direction : Direction
        forward, reverse or bidirectional.
    """

    sequence = True

    direction: Direction = attribute(choice(Direction))

    def chosen_direction(self) -> Direction:
        """Tell which way the sequence is read."""
        return self.direction
