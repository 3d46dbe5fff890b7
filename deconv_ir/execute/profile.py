"""Where the time of a run goes."""

from __future__ import annotations

import os
import threading
from collections.abc import Sequence
from typing import Any, NamedTuple

from deconv_ir.execute.executor import Observer
from deconv_ir.execute.plan import Plan, Step
from deconv_ir.ir.graph import Graph
from deconv_ir.ir.operation import TensorInfo
from deconv_ir.ir.shapes import format_shape
from deconv_ir.kernels.runtime.locks import ForkSafeLock


class LayerTime(NamedTuple):
    """What one layer took.

    Attributes
    ----------
    layer, type : str
        Name and type; with a fused addition, ``Convolution+Add``.
    output : str
        Type and shape of its first output.
    start, seconds : float
        When it began, counted from the first layer, and how long it took.
    operations : int or None
        Arithmetic operations, a multiply-add counted as two; None: not told.
    """

    layer: str
    type: str
    output: str
    start: float
    seconds: float
    operations: int | None

    @property
    def rate(self) -> float | None:
        """Arithmetic operations a second."""
        return self.operations / self.seconds if self.operations and self.seconds else None


class Profile:
    """Takes note of the time of each layer; given to `Model.run`.

    Attributes
    ----------
    layers : list of LayerTime
        In the order in which they ran, of all runs that it was given to.
    """

    def __init__(self) -> None:
        self.layers: list[LayerTime] = []
        self._threads: list[int] = []
        self._origin: float | None = None
        self._lock = ForkSafeLock()

    @property
    def seconds(self) -> float:
        """Time of all layers together."""
        return sum(row.seconds for row in self.layers)

    def start(self, graph: Graph, plan: Plan) -> Observer:
        """Return what a run tells of its steps."""

        def observe(step: Step, began: float, ended: float) -> None:
            with self._lock:
                if self._origin is None:
                    self._origin = began
                self.layers.append(_row(graph, plan, step, began - self._origin, ended - began))
                self._threads.append(threading.get_ident())

        return observe

    def trace(self) -> dict[str, Any]:
        """Return the run in Chrome's Trace Event Format, to be written as JSON.

        Source: Trace Event Format, 'Complete Events': times in microseconds.
        """
        numbers: dict[int, int] = {}
        events: list[dict[str, Any]] = []
        for row, thread in zip(self.layers, self._threads, strict=True):
            number = numbers.setdefault(thread, len(numbers))
            events.append(
                {
                    "name": row.layer,
                    "cat": row.type,
                    "ph": "X",
                    "ts": row.start * 1e6,
                    "dur": row.seconds * 1e6,
                    "pid": os.getpid(),
                    "tid": number,
                    "args": {
                        "type": row.type,
                        "output": row.output,
                        "gflop": None if row.operations is None else row.operations / 1e9,
                    },
                }
            )
        return {"traceEvents": events, "displayTimeUnit": "ms"}


def _row(graph: Graph, plan: Plan, step: Step, start: float, seconds: float) -> LayerTime:
    layer = graph.layers[step.layer]
    sources = [s for s in graph.topology.sources[step.layer] if s is not None]
    inputs: Sequence[TensorInfo] = [plan.infos[s[0]][s[1]] for s in sources]
    outputs = plan.infos[step.layer]
    first = outputs[0] if outputs else TensorInfo(None)
    operations = layer.operation.work(inputs, first)
    kind = layer.type
    for index in step.fused:
        added = graph.layers[index]
        kind = f"{kind}+{added.type}"
        more = added.operation.work([first, first], first)
        operations = None if operations is None or more is None else operations + more
    shape = f"{first.element_type or '?'}{format_shape(first.shape)}"
    return LayerTime(layer.name, kind, shape, start, seconds, operations)
