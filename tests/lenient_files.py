"""IRs that the documents do not describe to the letter, and that OpenVINO runs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from support import IR, Out

RNG = np.random.default_rng(0)


def normal(*shape: int) -> np.ndarray:
    return RNG.standard_normal(shape).astype(np.float32)


def prelu(data: str, slope: type) -> Callable[[IR], Out]:
    """Data and slope of different types, as Model Optimizer compressed them."""

    def build(ir: IR) -> Out:
        x = ir.parameter("x", "2,3,4", data)
        slopes = ir.const(np.array([0.5, -0.25, 2.0], slope))
        return ir.layer("PReLU", [x, slopes], precision="dynamic")

    return build


def case_of(kind: str, **attributes: str) -> Callable[[IR], Out]:
    def build(ir: IR) -> Out:
        x = ir.parameter("x", "2,3,4")
        others = [ir.const(np.full(3, 0.25, np.float32))] if kind == "PRelu" else []
        return ir.layer(kind, [x, *others], attributes)

    return build


def read_value(ir: IR) -> Out:
    """A variable without its shape and type."""
    x = ir.parameter("x", "2,3")
    read = ir.layer("ReadValue", [x], {"variable_id": "v"}, version="opset6")
    ir.layer("Assign", [read], {"variable_id": "v"}, version="opset6")
    return read


def reorg(shape: str) -> Callable[[IR], Out]:
    """Channels that are no multiple of stride^2."""

    def build(ir: IR) -> Out:
        x = ir.parameter("x", shape)
        return ir.layer("ReorgYolo", [x], {"stride": "2"}, version="opset2")

    return build


def of_opset1(kind: str, attributes: dict[str, str], *others: np.ndarray) -> Callable[[IR], Out]:
    """Types that opset2 has first."""

    def build(ir: IR) -> Out:
        inputs = [ir.parameter("x", "1,4,6,8"), *map(ir.const, others)]
        return ir.layer(kind, inputs, attributes)

    return build


def rnn_cell(ir: IR) -> Out:
    inputs = [ir.parameter("x", "2,3"), *map(ir.const, (normal(2, 4), normal(4, 3), normal(4, 4)))]
    inputs.append(ir.const(normal(4)))
    return ir.layer("RNNCell", inputs, {"hidden_size": "4"}, version="experimental")


def sequence(kind: str, gates: int, **given: str) -> Callable[[IR], Out]:
    """A sequence without direction: forward."""

    def build(ir: IR) -> Out:
        states = [normal(2, 1, 4)] * (2 if kind.startswith("LSTM") else 1)
        weights = [normal(1, gates * 4, n) for n in (3, 4)]
        arrays = [*states, np.array([5, 3]), *weights, normal(1, gates * 4)]
        x = ir.parameter("x", "2,5,3")
        functions = {1: "tanh", 3: "sigmoid,tanh", 4: "sigmoid,tanh,tanh"}[gates]
        attributes = {"hidden_size": "4", "activations": functions} | given
        outputs = [""] * (1 + len(states))
        inputs = [x, *map(ir.const, arrays)]
        return ir.layer(kind, inputs, attributes, outputs=outputs, version="opset5")

    return build


def attention(mask: bool, causal: str, sink: tuple[int, ...]) -> Callable[[IR], Out]:
    """A sixth input: the score of one more key."""

    def build(ir: IR) -> Out:
        x = ir.parameter("x", "1,2,5,8")
        scores = normal(5, 6) if mask else np.zeros((), np.float32)
        others = [normal(1, 2, 6, 8), normal(1, 2, 6, 8), scores, np.array(0.5, np.float32)]
        inputs = [x, *map(ir.const, others), ir.const(normal(*sink))]
        return ir.layer("ScaledDotProductAttention", inputs, {"causal": causal}, version="opset13")

    return build


LENIENT: dict[str, Callable[[IR], Out]] = {
    "PReLU of f16 with a slope of f32": prelu("f16", np.float32),
    "PReLU of f32 with a slope of f16": prelu("f32", np.float16),
    **{kind: case_of(kind) for kind in ("Relu", "relu", "RELU", "PRelu", "sigmoid")},
    "ELU": case_of("ELU", alpha="1.5"),
    "Softmax": case_of("Softmax", axis="1"),
    "ReadValue": read_value,
    **{f"ReorgYolo {s}": reorg(s) for s in ("1,5,4,6", "1,7,2,4", "2,5,4,6", "3,11,4,2")},
    "MVN": of_opset1(
        "MVN", {"across_channels": "false", "normalize_variance": "true", "eps": "1e-9"}
    ),
    "ReorgYolo of opset1": of_opset1("ReorgYolo", {"stride": "2"}),
    "RNNCell": rnn_cell,
    **{f"{n}Sequence": sequence(f"{n}Sequence", g) for n, g in
       (("RNN", 1), ("GRU", 3), ("LSTM", 4))},
    "sink": attention(True, "false", (1, 2, 1, 1)),
    "sink without mask": attention(False, "false", (1, 2, 1, 1)),
}  # fmt: skip


def model_of(name: str) -> tuple[IR, np.ndarray]:
    """Return a model with one input `x` and one output, and an array for its input."""
    global RNG
    RNG = np.random.default_rng(sum(map(ord, name)))
    ir = IR()
    ir.result(LENIENT[name](ir), "y")
    return ir, RNG.standard_normal(1 << 12).astype(np.float32)
