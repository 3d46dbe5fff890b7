"""Recurrent cells and sequences: RNN, GRU and LSTM.

Names of axes are those of `recurrence.py`.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from deconv_ir.ir.dtypes import Array
from deconv_ir.ir.lazy_tensor import Constant, whole
from deconv_ir.ir.operation import Arrays, Context, Infos, Kernel, Operation
from deconv_ir.ir.shapes import element_count, static
from deconv_ir.ops.base import attribute, boolean, choice, choices, operation
from deconv_ir.ops.numeric import narrow, np, widen, working_dtype
from deconv_ir.ops.recurrent.recurrence import (
    SIGMOID,
    TANH,
    Direction,
    GateFunction,
    Recurrent,
    check_peepholes,
    takes_all,
)

if TYPE_CHECKING:
    from deconv_ir.ir.scratchpad import ScratchpadBudget
    from deconv_ir.kernels.recurrent import PackedCells


class GateOrder(enum.Enum):
    """Order of the gates of an LSTM: forget, input, cell, output."""

    FICO = "fico"
    ICOF = "icof"
    IFCO = "ifco"
    IFOC = "ifoc"
    IOFC = "iofc"


class _RNN(Recurrent):
    """H = f(X W + H R + B)."""

    usual = (TANH,)

    activations: tuple[GateFunction, ...] = attribute(choices(GateFunction), usual)

    def step(self, x: Any, states: list[Any], r: Any, b: Any) -> list[Any]:
        return [self.activate(0, x + states[0] @ r.T + b)]


class _Compiled(Recurrent):
    """A cell with a compiled loop over time, for the usual activations."""

    def is_usual(self) -> bool:
        """Whether the activations are those of the compiled cell."""
        return self.functions == self.usual and not self.clip

    def run_whole(
        self, x: Any, first: list[Any], weights: list[Any], scratch_bytes: int
    ) -> list[Any]:
        from deconv_ir.kernels.recurrent import pack

        packed = pack(*weights) if self.is_usual() else None
        if packed is None:
            return super().run_whole(x, first, weights, scratch_bytes)
        return self.run_packed(x, first, packed, scratch_bytes)

    def run_packed(
        self, x: Any, first: list[Any], packed: PackedCells, scratch_bytes: int
    ) -> list[Any]:
        """Run over time; every sequence has the full length."""
        from deconv_ir.kernels.recurrent import recur

        at_once = _moments_at_once(x.shape[1], first[0].nbytes, scratch_bytes)
        return recur(x, first, packed, self.reads_backwards, at_once)

    def prepare(self, constants: Sequence[Constant | None], context: Context) -> Kernel | None:
        """Pack the weights of a sequence, if they are constant."""
        from deconv_ir.kernels.recurrent import pack

        names = {n: a for n, a in zip(self.inputs, constants, strict=False) if a is not None}
        if not self.sequence or not self.is_usual() or not names.keys() >= set("WRB"):
            return None
        w, r, b = (names.pop(name) for name in "WRB")
        packed = pack(w, r, self.ordered(widen(whole(b))), self.gate_order)
        kept = {name: whole(constant) for name, constant in names.items()}
        return None if packed is None else _PackedSequence(self, context, packed, kept)

    def scratch(self, inputs: Infos, outputs: Infos, context: Context) -> int:
        """Count the gates of the time steps that are computed at once."""
        from deconv_ir.kernels.runtime.extension import compiled_module

        dtype = None if inputs[0].element_type is None else inputs[0].element_type.numpy()
        compiled = self.sequence and self.is_usual() and compiled_module() is not None
        if dtype is None or not compiled or working_dtype(dtype) != np.float32:
            return super().scratch(inputs, outputs, context)
        batch, time, _ = static(inputs[0].shape)
        moment = self.directions * batch * self.hidden_size * 4
        weights = [i for i, n in zip(inputs, self.inputs, strict=False) if n in "WRB"]
        counts = [element_count(static(i.shape)) for i in weights if i.shape is not None]
        # Weights that are not constant are packed, and widened, in each run.
        copies = (2 if dtype == np.float32 else 3) * sum(counts)
        if dtype != np.float32:
            copies += sum(element_count(static(i.shape)) for i in (inputs[0], *outputs))
        at_once = _moments_at_once(time, moment, context.scratch_bytes)
        return 4 * copies + (_MOMENT * at_once + 7) * moment


# Minimum number of time steps at once, for efficient products; and memory of a step in states, at
# most: inputs of four gates, before and after reordering, and the hidden state.
_LEAST_MOMENTS, _MOMENT = 16, 9


def _moments_at_once(time: int, moment_bytes: int, scratch_bytes: int) -> int:
    """Return the number of time steps whose inputs are multiplied by W at once."""
    fitting = scratch_bytes // max(1, _MOMENT * moment_bytes)
    return max(1, min(time, max(_LEAST_MOMENTS, fitting)))


class _GRU(_Compiled):
    """Gates z (update), r (reset) and h, in this order."""

    gates = 3
    usual = (SIGMOID, TANH)

    activations: tuple[GateFunction, ...] = attribute(choices(GateFunction), usual)
    linear_before_reset: bool = attribute(boolean(), False)

    @property
    def bias_rows(self) -> int:
        return 4 if self.linear_before_reset else 3

    def step(self, x: Any, states: list[Any], r: Any, b: Any) -> list[Any]:
        (hidden,) = states
        h = self.hidden_size
        both = x[:, : 2 * h] + hidden @ r[: 2 * h].T + b[: 2 * h]
        update = self.activate(0, both[:, :h])
        reset = self.activate(0, both[:, h:])
        if self.linear_before_reset:
            inner = reset * (hidden @ r[2 * h :].T + b[3 * h :])
        else:
            inner = (reset * hidden) @ r[2 * h :].T
        candidate = self.activate(1, x[:, 2 * h :] + inner + b[2 * h : 3 * h])
        return [(1 - update) * candidate + update * hidden]

    def is_usual(self) -> bool:
        return super().is_usual() and self.linear_before_reset


class _LSTM(_Compiled):
    """Gates f (forget), i (input), c (cell) and o (output), in this order."""

    gates = 4
    states = 2
    usual = (SIGMOID, TANH, TANH)

    activations: tuple[GateFunction, ...] = attribute(choices(GateFunction), usual)
    input_forget: bool = False

    def step(self, x: Any, states: list[Any], r: Any, b: Any) -> list[Any]:
        hidden, cell = states
        forget, enter, new, leave = np.split(x + hidden @ r.T + b, 4, axis=1)
        enter = self.activate(0, enter)
        forget = 1 - enter if self.input_forget else self.activate(0, forget)
        cell = forget * cell + enter * self.activate(1, new)
        # The cell state itself is not clipped.
        return [self.activate(0, leave) * self.activate(2, cell, clip=False), cell]

    def is_usual(self) -> bool:
        return super().is_usual() and not self.input_forget


class _PackedSequence(Kernel):
    """An LSTM or a GRU over time with packed weights."""

    def __init__(
        self,
        operation: _Compiled,
        context: Context,
        packed: PackedCells,
        kept: dict[str, Array],
    ) -> None:
        self._operation = operation
        self._context = context
        self.packed = packed
        self._kept = kept

    def tiled(self, operation: Operation) -> Kernel:
        """Return a kernel with the same weights, for the sequences of a tile."""
        assert isinstance(operation, _Compiled), "a tile of one is one"
        if operation.batch is None:
            return self
        part = slice(*operation.batch)
        kept = {n: array if n == "P" else array[part] for n, array in self._kept.items()}
        return _PackedSequence(operation, self._context, self.packed, kept)

    def __call__(
        self, inputs: Arrays, out: Array | None = None, budget: ScratchpadBudget | None = None
    ) -> Arrays:
        from deconv_ir.kernels.recurrent import unpack

        operation, packed = self._operation, self.packed
        named = dict(zip(operation.inputs, inputs, strict=False)) | self._kept
        check_peepholes(named)
        x = widen(named["X"])
        names = ("initial_hidden_state", "initial_cell_state")[: operation.states]
        first = [widen(named[name]) for name in names]
        bound = self._context.scratch_bytes if budget is None else budget.scratch_bytes
        with np.errstate(all="ignore"):
            if takes_all(named["sequence_lengths"], x.shape[1]):
                found = operation.run_packed(x, first, packed, bound)
            else:
                weights = unpack(packed)
                found = operation.run(x, first, named["sequence_lengths"], weights, bound)
        return tuple(narrow(array, named["X"].dtype) for array in found)


_DIRECTION = choice(Direction)


@operation(
    "RNNCell-1(X, initial_hidden_state, W, R, B?)",
    "f32[2,3], f32[2,4], f32[4,3], f32[4,4], f32[4] -> f32[2,4] | hidden_size=4",
)
class RNNCell(_RNN):
    """H = f(X W + H R + B).

    Source: OpenVINO operation specification, RNNCell-3.
    """


@operation(
    "RNNSequence-5(X, initial_hidden_state, sequence_lengths, W, R, B)",
    "f32[2,5,3], f32[2,2,4], i64[2]{5,3}, f32[2,4,3], f32[2,4,4], f32[2,4]"
    " -> f32[2,2,5,4], f32[2,2,4] | hidden_size=4 direction=bidirectional",
)
class RNNSequence(_RNN):
    """RNNCell over time."""

    sequence = True

    direction: Direction = attribute(_DIRECTION, Direction.FORWARD, required=True)


@operation(
    "GRUCell-3(X, initial_hidden_state, W, R, B?)",
    "f32[2,3], f32[2,4], f32[12,3], f32[12,4], f32[12] -> f32[2,4] | hidden_size=4",
    "f32[2,3], f32[2,4], f32[12,3], f32[12,4], f32[16] -> f32[2,4]"
    " | hidden_size=4 linear_before_reset=true",
)
class GRUCell(_GRU):
    """Gated recurrent unit."""


@operation(
    "GRUSequence-5(X, initial_hidden_state, sequence_lengths, W, R, B)",
    "f32[2,5,3], f32[2,1,4], i64[2]{5,3}, f32[1,12,3], f32[1,12,4], f32[1,12]"
    " -> f32[2,1,5,4], f32[2,1,4] | hidden_size=4 direction=reverse",
)
class GRUSequence(_GRU):
    """GRUCell over time."""

    sequence = True
    takes_lazy = (3, 4)

    direction: Direction = attribute(_DIRECTION, Direction.FORWARD, required=True)


class _LSTM1(_LSTM):
    """Attributes of the first versions only."""

    input_forget: bool = attribute(boolean(), False)
    weights_format: GateOrder = attribute(choice(GateOrder), GateOrder.FICO)

    @property
    def gate_order(self) -> list[int]:
        return [self.weights_format.value.index(gate) for gate in "fico"]


@operation(
    "LSTMCell-1(X, initial_hidden_state, initial_cell_state, W, R, B?, P?)",
    "f32[2,3], f32[2,4], f32[2,4], f32[16,3], f32[16,4], f32[16] -> f32[2,4], f32[2,4]"
    " | hidden_size=4 weights_format=ifco input_forget=true",
)
class LSTMCell1(_LSTM1):
    """Long short-term memory."""


@operation(
    "LSTMCell-4(X, initial_hidden_state, initial_cell_state, W, R, B?)",
    "f32[2,3], f32[2,4], f32[2,4], f32[16,3], f32[16,4], f32[16] -> f32[2,4], f32[2,4]"
    " | hidden_size=4 clip=0.5",
)
class LSTMCell4(_LSTM):
    """Long short-term memory."""


@operation(
    "LSTMSequence-1(X, initial_hidden_state, initial_cell_state, sequence_lengths, W, R, B, P?)",
    "f32[2,5,3], f32[2,1,4], f32[2,1,4], i64[2]{5,3}, f32[1,16,3], f32[1,16,4], f32[1,16]"
    " -> f32[2,1,5,4], f32[2,1,4], f32[2,1,4] | hidden_size=4 direction=reverse",
    "f32[1,2,3], f32[1,2,2], f32[1,2,2], i64[1]{2}, f32[2,8,3], f32[2,8,2], f32[2,8]"
    " -> f32[1,2,2,2], f32[1,2,2], f32[1,2,2]"
    " | hidden_size=2 direction=bidirectional weights_format=ifco input_forget=true",
)
class LSTMSequence1(_LSTM1):
    """LSTMCell over time.

    Source: OpenVINO operation specification, LSTMSequence-1.  What is beside
    it was written by OpenVINO's class of this version, as of LSTMCell-1.
    """

    sequence = True
    takes_lazy = (4, 5)

    direction: Direction = attribute(_DIRECTION, Direction.FORWARD, required=True)


@operation(
    "LSTMSequence-5(X, initial_hidden_state, initial_cell_state, sequence_lengths, W, R, B)",
    "f32[2,5,3], f32[2,2,4], f32[2,2,4], i64[2]{5,3}, f32[2,16,3], f32[2,16,4], f32[2,16]"
    " -> f32[2,2,5,4], f32[2,2,4], f32[2,2,4] | hidden_size=4 direction=bidirectional",
)
class LSTMSequence5(_LSTM):
    """LSTMCell over time."""

    sequence = True
    takes_lazy = (4, 5)

    direction: Direction = attribute(_DIRECTION, Direction.FORWARD, required=True)
