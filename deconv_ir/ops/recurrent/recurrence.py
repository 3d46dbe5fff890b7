"""The base of recurrent cells and sequences: attributes, shape rule, the run over time.

Names of axes: N batch, T time, D directions (1 or 2), I input size, H hidden
size.  A sequence runs its cell over time, for each direction; the two are one
computation here.
"""

from __future__ import annotations

import abc
import enum
from typing import TYPE_CHECKING, Any, ClassVar

from deconv_ir.errors import ShapeError, UnsupportedError
from deconv_ir.ir.boxes import Boxes, LayerTile, Span, partial_axes
from deconv_ir.ir.geometry import UNKNOWN, Dim
from deconv_ir.ir.operation import Arrays, Context, Infos, Operation, TensorInfo
from deconv_ir.ir.record import field
from deconv_ir.ir.shapes import element_count, format_shape, intersect_dims, static
from deconv_ir.ops.base import attribute, integer, number, numbers
from deconv_ir.ops.checks import check_rank, check_type, integers, merged_type, misfit
from deconv_ir.ops.numeric import narrow, np, widen, working_dtype

if TYPE_CHECKING:
    from deconv_ir.ops.allowance import Bounds, Case


class Direction(enum.Enum):
    """The direction in which a sequence is read."""

    FORWARD = "forward"
    REVERSE = "reverse"
    BIDIRECTIONAL = "bidirectional"


class GateFunction(enum.Enum):
    """Functions of a gate."""

    SIGMOID = "sigmoid"
    TANH = "tanh"
    RELU = "relu"
    HARDSIGMOID = "hardsigmoid"


SIGMOID, TANH = GateFunction.SIGMOID, GateFunction.TANH


def _counts(lengths: Any, time: int) -> Any:
    return np.clip(np.array(integers(lengths), np.int64), 0, time)


def takes_all(lengths: Any, time: int) -> bool:
    """Whether every sequence has the full length."""
    return bool((_counts(lengths, time) == time).all())


def check_peepholes(named: dict[str, Any]) -> None:
    """Raise an error for peephole weights."""
    if "P" in named and named["P"].any():
        raise UnsupportedError(
            "peephole weights (input P) other than 0 are not supported",
            rule="unsupported-operation",
        )


class Recurrent(Operation, abc.ABC):
    """Attributes and shape rule of every recurrent operation."""

    formula = "hidden_size={self.hidden_size}, {self.directions} directions, X {shape[X]}"
    sequence: ClassVar[bool] = False
    """Whether there is a time axis."""
    usual: ClassVar[tuple[GateFunction, ...]]
    """The default activations."""
    gates: ClassVar[int] = 1
    states: ClassVar[int] = 1
    """1: hidden state; 2: cell state too."""

    hidden_size: int = attribute(integer(1))
    activations_alpha: tuple[float, ...] = attribute(numbers(), ())
    activations_beta: tuple[float, ...] = attribute(numbers(), ())
    clip: float = attribute(number(minimum=0), 0.0)

    activations: tuple[GateFunction, ...] = ()
    direction: Direction = Direction.FORWARD
    batch: Span | None = field(default=None)
    """The sequences that a tile computes."""

    def allowance(self, case: Case) -> Bounds | None:
        from deconv_ir.ops.allowance import composed

        return composed(case, arguments=16)

    @abc.abstractmethod
    def step(self, x: Any, states: list[Any], r: Any, b: Any) -> list[Any]:
        """Compute the next states from ``x @ w.T`` and the states of one time step."""

    @property
    def functions(self) -> tuple[GateFunction, ...]:
        """The activations of the gates."""
        return self.activations or self.usual

    @property
    def bias_rows(self) -> int:
        """Biases of each hidden unit."""
        return self.gates

    def activate(self, index: int, x: Any, *, clip: bool = True) -> Any:
        """Clip, and apply the function of a gate."""
        if clip and self.clip:
            x = np.clip(x, -self.clip, self.clip)
        alphas, betas = self.activations_alpha, self.activations_beta
        alpha = alphas[index] if index < len(alphas) else 0.2
        beta = betas[index] if index < len(betas) else 0.5
        function = self.functions[index]
        if function is GateFunction.SIGMOID:
            return 1 / (1 + np.exp(-x))
        if function is GateFunction.TANH:
            return np.tanh(x)
        if function is GateFunction.RELU:
            return np.maximum(x, 0)
        return np.minimum(np.maximum(alpha * x + beta, 0), 1)

    @property
    def directions(self) -> int:
        """Number of directions."""
        return 2 if self.direction is Direction.BIDIRECTIONAL else 1

    def infer(self, inputs: Infos, context: Context) -> tuple[TensorInfo, ...]:
        floats = [
            (info, name)
            for info, name in zip(inputs, self.inputs, strict=False)
            if name != "sequence_lengths"
        ]
        element_type = merged_type([f[0] for f in floats], [f[1] for f in floats], "float")
        known: dict[str, Dim] = {"H": self.hidden_size, "D": self.directions}
        for info, name in zip(inputs, self.inputs, strict=False):
            self._check(info, name, known)
        if len(self.functions) != len(self.usual):
            needed, name = len(self.usual), "activations"
            must = f"have {needed} elements"
            raise misfit("attribute-length", name, must, len(self.functions), needed, name)
        batch, time = known.get("N", UNKNOWN), known.get("T", UNKNOWN)
        state: tuple[Dim, ...] = (batch, self.hidden_size)
        if self.sequence:
            state = (batch, self.directions, self.hidden_size)
        found = [TensorInfo(state, element_type)] * self.states
        if self.sequence:
            all_steps = (batch, self.directions, time, self.hidden_size)
            found.insert(0, TensorInfo(all_steps, element_type))
        return tuple(found)

    def _check(self, info: TensorInfo, name: str, known: dict[str, Dim]) -> None:
        """Match the dims of an input with the known N, T and I."""
        layout = self._layout(name)
        if name == "sequence_lengths":
            check_type(info, name, "integer")
        check_rank(info, name, len(layout))
        if info.shape is None:
            return
        for dim, axis in zip(info.shape, layout, strict=True):
            wanted: Dim = axis if isinstance(axis, int) else known.get(axis, UNKNOWN)
            common = intersect_dims(dim, wanted)
            if common is None:
                message = (
                    f"{name} {format_shape(info.shape)} does not fit: {dim} where {wanted} "
                    f"is needed ({axis if isinstance(axis, str) else 'gates * hidden_size'})"
                )
                raise ShapeError(message, expected=wanted, actual=dim, rule="recurrent")
            if isinstance(axis, str):
                known[axis] = common

    def _layout(self, name: str) -> tuple[str | int, ...]:
        """Return the axes of an input: names, or extents."""
        rows = self.gates * self.hidden_size
        layouts: dict[str, tuple[str | int, ...]] = {
            "X": ("N", "T", "I") if self.sequence else ("N", "I"),
            "initial_hidden_state": ("N", "D", "H") if self.sequence else ("N", "H"),
            "sequence_lengths": ("N",),
            "W": (rows, "I"),
            "R": (rows, "H"),
            "B": (self.bias_rows * self.hidden_size,),
            "P": (3 * self.hidden_size,),
        }
        layouts["initial_cell_state"] = layouts["initial_hidden_state"]
        found = layouts[name]
        return ("D", *found) if self.sequence and name in "WRBP" else found

    def tile(self, boxes: Boxes, inputs: Infos, outputs: Infos, context: Context) -> LayerTile:
        """Return the tile of some sequences; all other axes are needed whole."""
        wanted = [
            (b, static(i.shape)) for b, i in zip(boxes, outputs, strict=True) if b is not None
        ]
        batch, *others = {box[0] for box, _ in wanted}
        blocked = {axis for box, shape in wanted for axis in partial_axes(box, shape)} - {0}
        # The order of BLAS's sums depends on the extents.
        is_part = batch != (0, wanted[0][1][0])
        if others or (is_part and context.accuracy.is_direct):
            blocked.add(0)
        found = tuple(
            tuple(
                batch if axis == "N" else (0, extent)
                for axis, extent in zip(self._layout(name), static(info.shape), strict=True)
            )
            for info, name in zip(inputs, self.inputs, strict=False)
        )
        operation = self.replace(batch=batch) if is_part else self
        return LayerTile(found, operation, tuple(sorted(blocked)))

    def execute(self, inputs: Arrays, context: Context) -> Arrays:
        """Run the cell, over time for a sequence."""
        named = {
            name: array if name == "sequence_lengths" else widen(array)
            for name, array in zip(self.inputs, inputs, strict=False)
        }
        check_peepholes(named)
        first = [named[n] for n in ("initial_hidden_state", "initial_cell_state") if n in named]
        weights = [self.ordered(named[n]) for n in "WRB" if n in named]
        if len(weights) < 3:
            shape = (*weights[0].shape[:-2], self.bias_rows * self.hidden_size)
            weights.append(np.zeros(shape, weights[0].dtype))
        with np.errstate(all="ignore"):
            if self.sequence:
                lengths = named["sequence_lengths"]
                found = self.run(named["X"], first, lengths, weights, context.scratch_bytes)
            else:
                w, r, b = weights
                found = self.step(named["X"] @ w.T, first, r, b)
            return tuple(narrow(array, inputs[0].dtype) for array in found)

    @property
    def gate_order(self) -> list[int]:
        """The place in the weights of each gate, in the order that `step` requires."""
        return list(range(self.gates))

    def ordered(self, weights: Any) -> Any:
        """Reorder the gates as `step` requires."""
        order = self.gate_order
        if order == sorted(order):
            return weights
        axis = 1 if self.sequence else 0
        gates = np.split(weights, self.gates, axis)
        return np.concatenate([gates[place] for place in order], axis)

    def scratch(self, inputs: Infos, outputs: Infos, context: Context) -> int:
        """Count the inputs of the gates, and copies in f32 of narrow floats."""
        if inputs[0].element_type is None:
            return 0
        dtype = inputs[0].element_type.numpy()
        width = int(working_dtype(dtype).itemsize)
        copies = (
            sum(element_count(static(i.shape)) for i in inputs) if width != dtype.itemsize else 0
        )
        if copies:
            copies += sum(element_count(static(i.shape)) for i in outputs)
        if self.gate_order != list(range(self.gates)):  # weights are reordered
            copies += sum(element_count(static(i.shape)) for i in inputs) * (1 if copies else 2)
        moments = element_count(static(inputs[0].shape)[:-1])
        # A step makes several arrays as large as the inputs of all gates.
        arrays = 1 if self.sequence else 4
        return width * (copies + arrays * moments * self.gates * self.hidden_size)

    def run(
        self,
        x: Any,
        first: list[Any],
        lengths: Any,
        weights: list[Any],
        scratch_bytes: int,
    ) -> list[Any]:
        """Run the cell over time, for each direction."""
        if takes_all(lengths, x.shape[1]):
            return self.run_whole(x, first, weights, scratch_bytes)
        return self._walk(x, first, weights, _counts(lengths, x.shape[1]))

    def run_whole(
        self, x: Any, first: list[Any], weights: list[Any], scratch_bytes: int
    ) -> list[Any]:
        """Run the cell over time; every sequence has the full length."""
        return self._walk(x, first, weights, None)

    def _walk(self, x: Any, first: list[Any], weights: list[Any], counts: Any) -> list[Any]:
        """Run the cell for `counts` steps of each sequence; None: the full length."""
        batch, time, _ = x.shape
        steps = np.zeros((batch, self.directions, time, self.hidden_size), x.dtype)
        last = [state.copy() for state in first]
        for d in range(self.directions):
            w, r, b = (weight[d] for weight in weights)
            reverse = self.reads_backwards(d)
            projected = x @ w.T
            states = [state[:, d].copy() for state in first]
            for t in range(time if counts is None else int(counts.max(initial=0))):
                if counts is None:
                    now = time - 1 - t if reverse else t
                    states = self.step(projected[:, now], states, r, b)
                    steps[:, d, now] = states[0]
                    continue
                # Shorter sequences keep their state, and their output is 0.
                running = np.flatnonzero(t < counts)
                at = counts[running] - 1 - t if reverse else np.full(len(running), t)
                moment = projected[running, at]
                found = self.step(moment, [s[running] for s in states], r, b)
                for state, new in zip(states, found, strict=True):
                    state[running] = new
                steps[running, d, at] = found[0]
            for state, new in zip(last, states, strict=True):
                state[:, d] = new
            del projected  # freed before the next one is computed
        return [steps, *last]

    def reads_backwards(self, direction: int) -> bool:
        """Whether a direction starts with the last element."""
        return direction == 1 or self.direction is Direction.REVERSE
