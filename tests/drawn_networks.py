"""Networks for tests of drawings: seeded random ones, and one as large as real models."""

from __future__ import annotations

import random
from collections.abc import Callable

from support import IR, Out

import deconv_ir
from deconv_ir.drawing.graph.sketch import Sketch, sketch_of
from deconv_ir.ir.graph import Graph
from deconv_ir.ir.infer import infer
from deconv_ir.ir.operation import Context

UNARY = ("Abs", "Exp", "Sigmoid", "Tanh", "Sqrt")


def graph_of(ir: IR) -> Graph:
    return deconv_ir.load(ir.xml().encode(), bytes(ir.weights), warn=False).graph


def sketch(graph: Graph) -> Sketch:
    return sketch_of(graph, infer(graph, Context(), collect=True).outputs, Context())


def random_network(seed: int, layers: int) -> IR:
    """Add random pairs of earlier tensors, with names that make groups at random."""
    rng = random.Random(seed)
    ir = IR()
    tensors: list[Out] = [ir.parameter("x", "1,2,4,4"), ir.parameter("z", "1,2,4,4")]
    for k in range(layers):
        groups = "".join(f"g{rng.randrange(3)}/" for _ in range(rng.randrange(4)))
        recent = tensors[-6:] if rng.random() < 0.8 else tensors
        if rng.random() < 0.5:
            kind, inputs = "Add", [rng.choice(recent), rng.choice(recent)]
        else:
            kind, inputs = rng.choice(UNARY), [rng.choice(recent)]
        tensors.append(ir.layer(kind, inputs, outputs=("1,2,4,4",), name=f"{groups}n{k}"))
    ir.result(tensors[-1], "y")
    return ir


def chain(layers: int, name: Callable[[int], str]) -> IR:
    """Chain residual blocks of four layers."""
    ir = IR()
    before = at = ir.parameter("x", "1,2,4,4")
    for k in range(layers - 2):
        kind = ("ReLU", "Sigmoid", "Tanh", "Add")[k % 4]
        inputs = [at, before] if kind == "Add" else [at]
        at = ir.layer(kind, inputs, outputs=("1,2,4,4",), name=name(k))
        before = at if kind == "Add" else before
    ir.result(at, "y")
    return ir


def large(layers: int = 12_500) -> IR:
    """Many layers in stages of 50 blocks of four."""
    return chain(layers, lambda k: f"net/stage{k // 200}/block{k // 4 % 50}/layer{k % 4}")
