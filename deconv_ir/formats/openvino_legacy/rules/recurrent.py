"""Recurrent cells and sequences, and CTCGreedyDecoder.

Sources: catalogue, sections LSTMCell, GRUCell, RNNCell and CTCGreedyDecoder; Inference Engine
2020.3, mkldnn_rnn.cpp: the weights are [gates, hidden, input + hidden], the gates of an LSTM in the
order f, i, c, o, those of a GRU u, r, o.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from deconv_ir.formats.openvino_legacy.conversion import LayerConversion, Rule
from deconv_ir.ir.dtypes import F32, I64
from deconv_ir.ir.graph import Source
from deconv_ir.ops.recurrent.ctc import CTCGreedyDecoder

_GATES: Final = {"LSTM": 4, "GRU": 3, "RNN": 1}
_COMMON: Final = ("activations", "activations_alpha", "activations_beta", "clip")


def weights(step: LayerConversion, kind: str, size: int, hidden: int) -> tuple[Source, Source]:
    """Return the weights of the input and those of the state."""
    gates = _GATES[kind]
    packed = step.blob("weights", (gates * hidden, size + hidden))
    axis = step.literal((1,), I64, (), suffix="axis")
    lengths = step.literal((size, hidden), suffix="lengths")
    first, second = step.many("VariadicSplit", packed, axis, lengths, outputs=2)
    return first, second


def biases(step: LayerConversion, kind: str, hidden: int) -> Source:
    """Return the biases; without the blob, zeros."""
    own = _GATES[kind] + (kind == "GRU" and step.flag("linear_before_reset"))
    if step.has_blob("biases"):
        return step.blob("biases", (own * hidden,))
    return step.add("Broadcast", step.scalar(0.0), step.literal((own * hidden,), suffix="shape"))


def attributes(step: LayerConversion, kind: str, hidden: int) -> dict[str, str]:
    """Return the attributes of a cell."""
    given = {name: step.text(name) for name in _COMMON if step.has(name)}
    given["hidden_size"] = str(hidden)
    if kind == "GRU":
        given["linear_before_reset"] = "true" if step.flag("linear_before_reset") else "false"
    return given


def hidden_size(step: LayerConversion, state: Source | None) -> int:
    """Return the extent of the state."""
    found = step.integer("hidden_size", default=None, minimum=1)
    if found is not None:
        return int(found)
    return step.dims(state, 1)[-1] if state is not None else step.stated(least=1)[-1]


def cell(kind: str) -> Callable[[LayerConversion], Sequence[Source]]:
    """Return the rule of a cell."""
    states = 2 if kind == "LSTM" else 1
    versions = {"LSTM": "opset4", "GRU": "opset3", "RNN": "opset3"}

    def rule(step: LayerConversion) -> Sequence[Source]:
        data, *given = (step.input(i) for i in range(1 + states))
        hidden = hidden_size(step, given[0])
        both = weights(step, kind, step.dims(data, 1)[-1], hidden)
        made = step.written(
            f"{kind}Cell",
            data,
            *given,
            *both,
            biases(step, kind, hidden),
            version=versions[kind],
            outputs=states,
            given=attributes(step, kind, hidden),
        )
        return made[: max(1, len(step.layer.outputs))]

    return rule


_DIRECTIONS: Final = {"forward": "forward", "backward": "reverse", "reverse": "reverse"}


def sequence(kind: str) -> Callable[[LayerConversion], Sequence[Source]]:
    """Return the rule of a sequence along `axis`, 0 or 1; missing states are zeros."""
    states = 2 if kind == "LSTM" else 1

    def rule(step: LayerConversion) -> Sequence[Source]:
        data = step.input()
        direction = step.text("direction", default="Forward").lower()
        if direction == "bidirectional":
            # Model Optimizer wrote two sequences; `direction_from` of ie_layer_validators.cpp
            # takes the word for Forward, so no release computed it.
            what = "direction 'Bidirectional' has no meaning: the Inference Engine ran it forward"
            raise step.unsupported(what, "direction")
        if direction not in _DIRECTIONS:
            raise step.fault("direction", "must be Forward or Backward", step.text("direction"))
        axis = step.integer("axis", default=1)
        if axis not in (0, 1):
            raise step.fault("axis", "must be 0 or 1", axis)
        if axis == 0:
            data = step.add("Transpose", data, step.literal((1, 0, 2), suffix="order"))
        given = step.inputs[1 : 1 + states]
        hidden = hidden_size(step, given[0] if given else None)
        batch, length, size = step.dims(data, 3, 3)
        one = step.literal((1,), suffix="directions")
        starts = [step.add("Unsqueeze", state, one) for state in given]
        while len(starts) < states:
            shape = step.literal((batch, 1, hidden), suffix="shape")
            starts.append(step.add("Broadcast", step.scalar(0.0), shape))
        lengths = step.add(
            "Broadcast", step.literal((length,), I64, ()), step.literal((batch,), suffix="batch")
        )
        zero = step.literal((0,), suffix="direction")
        both = [step.add("Unsqueeze", w, zero) for w in weights(step, kind, size, hidden)]
        bias = step.add("Unsqueeze", biases(step, kind, hidden), zero)
        made = step.written(
            f"{kind}Sequence",
            data,
            *starts,
            lengths,
            *both,
            bias,
            version="opset5",
            outputs=1 + states,
            given={**attributes(step, kind, hidden), "direction": _DIRECTIONS[direction]},
        )
        whole = step.add("Squeeze", made[0], one)
        if axis == 0:
            whole = step.add("Transpose", whole, step.literal((1, 0, 2), suffix="order"))
        wanted = made[1 : max(1, len(step.layer.outputs))]
        return [whole, *(step.add("Squeeze", end, one) for end in wanted)]

    return rule


def ctc(step: LayerConversion) -> Source:
    """Convert CTCGreedyDecoder of sequences [T, N, C], with or without their mask [T, N]."""
    data = step.input()
    if len(step.inputs) > 1:
        mask = step.input(1)
    else:
        length, batch, _ = step.dims(data, 3, 3)
        mask = step.add(
            "Broadcast", step.literal((1,), F32, ()), step.literal((length, batch), suffix="shape")
        )
    merges = step.flag("ctc_merge_repeated", default=True)
    (made,) = step.apply(CTCGreedyDecoder(ctc_merge_repeated=merges), data, mask)
    stated = step.declared()
    return made if stated is None or len(stated) == 4 else step.reshape(made, stated)


RULES: Final[dict[str, Rule]] = {
    "CTCGreedyDecoder": ctc,
    **{f"{kind}Cell": cell(kind) for kind in _GATES},
    **{f"{kind}Sequence": sequence(kind) for kind in _GATES},
}
