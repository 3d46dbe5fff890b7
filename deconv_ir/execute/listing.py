"""A list of the steps of a plan, for people."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from deconv_ir.execute.joined import joined_layers
from deconv_ir.execute.places import tensor_bytes
from deconv_ir.execute.plan import Plan, Step
from deconv_ir.ir.operation import TensorInfo


class PlanRow(NamedTuple):
    """A row of the list of steps."""

    step: int
    layer: str
    type: str
    """Name and type of the layer."""
    inputs: tuple[TensorInfo, ...]
    outputs: tuple[TensorInfo, ...]
    fused: tuple[str, ...]
    """Names of the layers fused into it."""
    overwrites: str | None
    """The layer whose output is overwritten."""
    offset: int | None
    """Offset of its output in the arena, in bytes; None: outside of the arena."""
    bytes: int | None
    """Size of its outputs; None if unknown."""
    within: str = ""
    """The layer and body that contain the step, as ``loop/body``; empty: the main graph."""
    algorithm: str | None = None
    """The algorithm of a convolution; None: the step has no choice."""
    cycles: float | None = None
    """Clock cycles predicted by the cost model."""
    precision: str = ""
    """The types in which it computes, such as ``f32`` or ``i8``."""
    reason: str | None = None
    """Why a layer of quantised data is computed in f32."""


def _described(step: Step, reasons: Mapping[int, str]) -> str:
    """Return the algorithm of a convolution, and why a quantised one is computed in f32."""
    reason = reasons.get(step.layer)
    return f"{step.algorithm}" + ("" if reason is None else f"; in f32: {reason}")


def as_rows(plan: Plan, within: str = "") -> list[PlanRow]:
    """List the steps of a plan; those of bodies follow their layer."""
    graph = plan.graph
    producer: dict[int, str] = {}
    for source, slot in plan.constants.items():
        producer[slot] = graph.layers[source[0]].name
    for index, slot in plan.inputs.items():
        producer[slot] = graph.layers[index].name
    rows = []
    for number, step in enumerate(plan.steps):
        layer = graph.layers[step.layer]
        made = step.made
        for slot in step.outputs:
            producer[slot] = graph.layers[made].name
        sources = [s for s in graph.topology.sources[step.layer] if s is not None]
        sizes = [tensor_bytes(info) for info in plan.infos[made]]
        rows.append(
            PlanRow(
                number,
                layer.name,
                layer.type,
                tuple(plan.infos[s[0]][s[1]] for s in sources),
                tuple(plan.infos[made]),
                (*joined_layers(layer), *(graph.layers[i].name for i in step.fused)),
                None if step.overwrites is None else producer[step.overwrites],
                step.offset,
                None if None in sizes else sum(s for s in sizes if s is not None),
                within,
                None if step.algorithm is None else _described(step, plan.reasons),
                None if step.algorithm is None else step.algorithm.algorithm.cycles or None,
                plan.precision(step),
                plan.reasons.get(step.layer),
            )
        )
        for name, inner in plan.bodies.get(step.layer, ()):
            place = f"{layer.name}/{name}"
            rows += as_rows(inner, f"{within}/{place}" if within else place)
    return rows
