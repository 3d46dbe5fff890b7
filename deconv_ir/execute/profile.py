"""The time of each layer of a run."""

from __future__ import annotations

import os
import threading
from collections import deque
from time import perf_counter
from typing import Any, NamedTuple

from deconv_ir.execute.executor import Observer
from deconv_ir.execute.places import tensor_bytes
from deconv_ir.execute.plan import Plan, Step
from deconv_ir.ir.operation import Infos, TensorInfo
from deconv_ir.ir.shapes import format_shape
from deconv_ir.kernels.runtime.locks import ForkSafeLock

_StepTime = tuple[Plan, Step, str, float, float, int, int]
"""A plan and a step; the layer and body that it is in; begin and end, as `time.perf_counter`
counts; thread; number of the run."""


class LayerTime(NamedTuple):
    """The time of one layer.

    Attributes
    ----------
    layer, type : str
        Name and type; with a fused addition, ``Convolution+Add``.
    output : str
        Element type and shape of its first output.
    start, seconds : float
        Start, in seconds from the start of the first run, and duration.
    operations : int or None
        Arithmetic operations, a multiply-add counted as two; None: not counted.
    within : str
        The layer and its body that the layer is in, as ``loop/body``; empty: in none.
    bytes : int or None
        Bytes of its inputs and outputs, each counted once: the least that it can read and write;
        None: not known.
    run : int
        Number of the run, among those with the same profile; the first is 0.
    precision : str
        The types in which it computes: ``f32``, ``i8``, ``f32 (u4 weights)``.
    reason : str or None
        Why a layer of quantised data is computed in f32.

    Examples
    --------
    >>> import deconv_ir
    >>> row = deconv_ir.LayerTime("up", "Convolution", "f32[1,4,32,32]", 0.0, 0.5, 1000)
    >>> row.rate
    2000.0
    """

    layer: str
    type: str
    output: str
    start: float
    seconds: float
    operations: int | None
    within: str = ""
    bytes: int | None = None
    run: int = 0
    precision: str = ""
    reason: str | None = None

    @property
    def rate(self) -> float | None:
        """Arithmetic operations per second; None: not known."""
        return self.operations / self.seconds if self.operations and self.seconds else None


class Profile:
    """Records the time of each layer; given to `Model.run`.

    Examples
    --------
    >>> import numpy as np
    >>> import deconv_ir
    >>> profile = deconv_ir.Profile()
    >>> model = deconv_ir.load("samples/block/block.xml")
    >>> y = model.run(np.zeros((1, 8, 16, 16), np.float32), profile=profile)
    >>> [(row.layer, row.type, row.output) for row in profile.layers]
    [('up', 'ConvolutionBackpropData+Add+ReLU', 'f32[1,4,32,32]')]
    """

    def __init__(self) -> None:
        # Rows are made when they are read: describing a layer takes longer than a small one runs.
        self._unread: deque[_StepTime] = deque()
        self._rows: list[LayerTime] = []
        self._threads: list[int] = []
        self._origin: float | None = None
        self._runs = 0
        self._lock = ForkSafeLock()

    @property
    def layers(self) -> list[LayerTime]:
        """All layers in the order of execution, for all runs with this profile."""
        with self._lock:
            origin = self._origin or 0.0
            described: dict[int, LayerTime] = {}
            # Plans stay alive until all of their steps are described, so no `id` is used twice.
            times = [self._unread.popleft() for _ in range(len(self._unread))]
            for plan, step, place, began, ended, thread, run in times:
                self._threads.append(thread)
                row = described.get(id(step))
                if row is None:
                    row = described[id(step)] = _row(plan, step)
                self._rows.append(
                    row._replace(start=began - origin, seconds=ended - began, within=place, run=run)
                )
            return list(self._rows)

    @property
    def seconds(self) -> float:
        """Total time of all layers, in seconds; layers of bodies are included in their layer."""
        return sum(row.seconds for row in self.layers if not row.within)

    def start(self) -> int:
        """Begin a run and return its number; the first one starts the clock."""
        with self._lock:
            if self._origin is None:
                self._origin = perf_counter()
            self._runs += 1
            return self._runs - 1

    def add(self, time: _StepTime) -> None:
        """Add the time of a step; `start` was called before."""
        self._unread.append(time)

    def trace(self) -> dict[str, Any]:
        """Return the run in Chrome's Trace Event Format, to be written as JSON.

        Source: Trace Event Format, 'Complete Events': times in microseconds.
        """
        numbers: dict[int, int] = {}
        events: list[dict[str, Any]] = []
        for row, thread in zip(self.layers, self._threads, strict=False):
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
                        "precision": row.precision,
                        **({"within": row.within} if row.within else {}),
                        "gflop": None if row.operations is None else row.operations / 1e9,
                    },
                }
            )
        return {"traceEvents": events, "displayTimeUnit": "ms"}


def record(profile: Profile, plan: Plan) -> Observer:
    """Return the observer to which a run reports its steps."""
    return _Recorder(profile, plan, profile.start())


class _Recorder(NamedTuple):
    """Takes the times of the steps of one plan."""

    profile: Profile
    plan: Plan
    run: int
    place: str = ""

    def __call__(self, step: Step, began: float, ended: float) -> None:
        thread = threading.get_ident()
        self.profile.add((self.plan, step, self.place, began, ended, thread, self.run))

    def within(self, step: Step, body: str, plan: Plan) -> _Recorder:
        name = f"{self.plan.graph.layers[step.layer].name}/{body}"
        place = f"{self.place}/{name}" if self.place else name
        return _Recorder(self.profile, plan, self.run, place)


def _row(plan: Plan, step: Step) -> LayerTime:
    """Describe a step, without its time."""
    graph = plan.graph
    layer = graph.layers[step.layer]
    sources = [s for s in graph.topology.sources[step.layer] if s is not None]
    inputs: Infos = [plan.numbers[s[0]][s[1]] for s in sources]
    outputs, numbers = plan.infos[step.layer], plan.numbers[step.layer]
    first = outputs[0] if outputs else TensorInfo(None)
    result = numbers[0] if numbers else first
    operations = layer.operation.work(inputs, result)
    type_name = layer.type
    for index in step.fused:
        added = graph.layers[index]
        type_name = f"{type_name}+{added.type}"
        more = added.operation.work([result, result], result)
        operations = None if operations is None or more is None else operations + more
    shape = f"{first.element_type or '?'}{format_shape(first.shape)}"
    made = plan.infos[step.made][: len(step.outputs)]
    sizes = [tensor_bytes(plan.infos[s[0]][s[1]]) for s in dict.fromkeys(sources)]
    sizes += map(tensor_bytes, made)
    moved = None if None in sizes else sum(size for size in sizes if size is not None)
    return LayerTime(
        layer.name,
        type_name,
        shape,
        0.0,
        0.0,
        operations,
        bytes=moved,
        precision=plan.precision(step),
        reason=plan.reasons.get(step.layer),
    )
