"""Fit the constants of the cost model to the machine at hand, and report where it is wrong.

Named layers of `bench/cases.py` and random ones, half of them convolutions, are run with each
algorithm and with tiles for several cache sizes.  Predicted cycles stand beside measured ones, up
to a common factor; the constants on which predictions depend are fitted.  Writes a table and a data
file; the constants in C only with `--write`:

    python tools/fit_costs.py --output out/costs

Cycles are those of dependent additions, which are timed in between.  For one thread they are the
median of its processor time; for several, the lower decile of the wall clock, which other programs
disturb: let nothing else run.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import platform
import random
import statistics
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from cost_fit import (
    ROOT,
    Measurements,
    Predictions,
    Sample,
    fit,
    groups_of,
    left_out,
    report,
    table,
    with_constants,
)

from bench.cases import NAMED, Case, random_cases
from deconv_ir.ir.dtypes import Array
from deconv_ir.ir.scratchpad import UNLIMITED
from deconv_ir.kernels import get_threads, kernel_info, set_threads
from deconv_ir.kernels.activation import Activation
from deconv_ir.kernels.algorithm import NATIVE
from deconv_ir.kernels.dispatch import DEFAULT_SCRATCH_BYTES
from deconv_ir.kernels.native import CompiledKernel, supports
from deconv_ir.kernels.native_plan import CompiledPlan
from deconv_ir.kernels.plan import RunShapes
from deconv_ir.kernels.problem import Problem
from deconv_ir.kernels.runtime.cpu import Machine, current_machine
from deconv_ir.kernels.runtime.extension import compiled_module

CONSTANTS = ROOT / "deconv_ir/kernels/_native/cost_constants.inc.h"
CACHES = (1.0, 0.5, 0.25, 2.0)
"""Second-level caches for which tiles are chosen, relative to that of the machine."""
AT_MOST_ONE = frozenset({"WAITING_SHARE", "WINO_GAIN"})
ADDITIONS = 400_000
PAUSE = 0.01
"""Seconds between runs on several threads: then the system gives the cores to this process."""
FEWEST_TURNS = 6


class Layer(NamedTuple):
    """A convolution, transposed unless it is `forward`."""

    name: str
    forward: bool
    data: tuple[int, ...]
    filter: tuple[int, ...]
    groups: int
    strides: tuple[int, ...]
    pads: tuple[int, ...]
    dilations: tuple[int, ...]
    output: tuple[int, ...]
    """The whole shape."""


def transposed(case: Case) -> Layer:
    """Return the layer of a benchmark."""
    output = (case.data[0], case.out_channels, *case.output)
    return Layer(case.name, False, case.data, case.filter, case.groups, case.strides, case.pads,
                 case.dilations, output)  # fmt: skip


def adjoint(layer: Layer) -> Layer:
    """Return the convolution with the same filter from the layer's output to its data."""
    return layer._replace(
        name=f"{layer.name}-forward", forward=True, data=layer.output, output=layer.data
    )


def layers(names: Sequence[str] | None, count: int, seed: int) -> list[Layer]:
    """Return named layers, and random ones, half of them convolutions."""
    named = [transposed(case) for case in NAMED if not names or case.name in names]
    drawn = [transposed(case) for case in random_cases(seed, count)]
    return named + [adjoint(layer) if i % 2 else layer for i, layer in enumerate(drawn)]


class Planned(NamedTuple):
    """A plan that can be run and predicted."""

    layer: Layer
    threads: int
    plan: CompiledPlan
    chosen: bool

    def sample(self, predicted: float, measured: float) -> Sample:
        """Return the sample with these cycles."""
        tiling = self.plan.details
        algorithm = "winograd" if "winograd" in tiling else "direct"
        return Sample(self.layer.name, self.threads, algorithm, words(tiling), self.chosen,
                      predicted, measured)  # fmt: skip


_OF_DIRECT = ("compact", "depthwise", "output_vectors", "channels", "blocks")
_OF_WINOGRAD = ("alignments", "chunks", "width", "fills")


def words(tiling: dict[str, Any]) -> str:
    """Describe a tiling, so that other tilings of the layer have other descriptions."""
    form = " x ".join(f"F({m},{r})" for m, r in tiling.get("winograd", ()))
    names = (*(_OF_WINOGRAD if form else _OF_DIRECT), "images", "jobs", "threads", "bytes")
    values = {name: tiling[name] for name in ("tile", *names)}
    shown = [
        f"{name} {'x'.join(map(str, value)) if isinstance(value, tuple) else value}"
        for name, value in values.items()
        if value
    ]
    return ", ".join([form, *shown] if form else shown)


def plans(layer: Layer, threads: int, machine: Machine) -> list[Planned]:
    """Plan a layer with each algorithm and for several caches; equal plans are listed once."""
    set_threads(threads)
    problem = Problem.of_filter(
        layer.filter, layer.strides, layer.dilations, layer.groups, forward=layer.forward
    )
    weights = np.random.default_rng(0).standard_normal(layer.filter, np.float32)
    shapes = RunShapes(layer.data, layer.pads, layer.output)
    found: dict[str, Planned] = {}
    if not supports(problem, weights.dtype):
        return []
    for cache in CACHES:
        assumed = machine._replace(level2_bytes=int(cache * machine.level2_bytes))
        for algorithm in NATIVE:
            kernel = CompiledKernel(
                *(problem, weights, None, Activation()),
                scratch_bytes=DEFAULT_SCRATCH_BYTES,
                algorithm=algorithm,
                machine=assumed,
            )
            plan = CompiledPlan(kernel, shapes, UNLIMITED)
            if words(plan.details) not in found:
                found[words(plan.details)] = Planned(layer, threads, plan, chosen=not found)
    return list(found.values())


def frequency() -> float:
    """Return the clock's cycles per second, by dependent additions."""
    module = compiled_module()
    assert module is not None
    start = time.thread_time()
    module.add_in_turn(ADDITIONS)
    return ADDITIONS / (time.thread_time() - start)


def measure(planned: Sequence[Planned], seconds: float) -> list[float]:
    """Return the cycles of plans of one layer, which take turns in any order."""
    layer, threads = planned[0].layer, planned[0].threads
    set_threads(threads)
    clock = time.thread_time if threads == 1 else time.perf_counter
    data = np.random.default_rng(0).standard_normal(layer.data, np.float32)
    out = np.empty(layer.output, np.float32)
    times: list[list[float]] = [[] for _ in planned]
    rates: list[float] = []
    turns = list(range(len(planned)))
    order, begin = random.Random(0), time.perf_counter()
    while time.perf_counter() - begin < seconds or len(rates) < FEWEST_TURNS:
        order.shuffle(turns)
        rates.append(frequency())
        for i in turns:
            if threads > 1:
                time.sleep(PAUSE)
            planned[i].plan.run([data], out)  # packs weights, warms up caches and threads
            for _ in range(2):
                start = clock()
                planned[i].plan.run([data], out)
                times[i].append(clock() - start)
    rate = statistics.median(rates)
    return [rate * (statistics.median(t) if threads == 1 else sorted(t)[len(t) // 10])
            for t in times]  # fmt: skip


def recorded(path: Path, planned: Sequence[Planned]) -> tuple[list[Planned], list[float]]:
    """Read measured cycles of an earlier run, for the plans that are still the same."""
    known = {
        (entry["layer"], entry["threads"], entry["plan"]): entry["measured"]
        for entry in json.loads(path.read_text())["samples"]
    }
    keys = [(p.layer.name, p.threads, words(p.plan.details)) for p in planned]
    kept = [(p, known[key]) for p, key in zip(planned, keys, strict=True) if key in known]
    print(f"{path}: {len(known)} plans, {len(kept)} of them are still planned")
    return [p for p, _ in kept], [cycles for _, cycles in kept]


def parse() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("out/costs"), help="directory")
    parser.add_argument("--threads", type=int, action="append", help="default: 1, and all")
    parser.add_argument("--seconds", type=float, default=0.5, help="for each layer")
    parser.add_argument("--case", action="append", help="only these named layers")
    parser.add_argument("--random", type=int, default=21, metavar="N", help="random layers")
    parser.add_argument("--seed", type=int, default=2026, help="of the random layers")
    parser.add_argument("--measured", type=Path, help="fit to the data file of an earlier run")
    parser.add_argument("--write", action="store_true", help=f"write {CONSTANTS.name}")
    return parser.parse_args()


def main() -> None:
    """Measure, fit and report."""
    options = parse()
    module = compiled_module()
    if module is None:
        raise SystemExit("error: the compiled kernel was not built")
    machine = current_machine()
    names, old = map(list, zip(*module.COST_CONSTANTS, strict=True))
    planned: list[Planned] = []
    measured: list[float] = []
    counts = options.threads or sorted({1, get_threads()})
    for layer in layers(options.case, options.random, options.seed):
        for threads in counts:
            found = plans(layer, threads, machine)
            planned += found
            if found and not options.measured:
                print(f"{layer.name}, {threads} threads: {len(found)} plans", flush=True)
                measured += measure(found, options.seconds)
            gc.collect()
    if options.measured:
        planned, measured = recorded(options.measured, planned)

    def predict(costs: Sequence[float]) -> Array:
        """Predict the cycles of all plans with the whole cache: the clock shows what is there."""
        whole = machine._replace(hides_threads=False)
        return np.array([one.plan.predict(whole, costs) for one in planned])

    before = predict(old)
    samples = [
        one.sample(float(cycles), clock)
        for one, cycles, clock in zip(planned, before, measured, strict=True)
    ]
    if len({(sample.layer, sample.threads) for sample in samples}) < 2:
        raise SystemExit("error: a fit needs plans of at least two layers, or numbers of threads")
    measurements = Measurements(predict, np.array(measured), groups_of(samples))
    largest = [1.0 if name in AT_MOST_ONE else math.inf for name in names]
    new = fit(measurements, old, largest)
    scale = float(np.median(measurements.measured / before))
    kinds = [
        Predictions(f"old constants, times {scale:.2f}", list(scale * before)),
        Predictions(
            f"new constants, times {new.scale:.2f}", list(new.scale * predict(new.constants))
        ),
        Predictions("fitted without the layer", list(left_out(measurements, old, largest))),
    ]
    text = report(samples, names, old, new, kinds)
    print(text)
    fitted = {names[i]: new.constants[i] for i in new.fitted}
    content = {
        "machine": {"processor": platform.processor() or platform.machine(), **machine._asdict()},
        "kernel": str(kernel_info()),
        "samples": [sample._asdict() for sample in samples],
        "constants": dict(zip(names, old, strict=True)),
        "fitted": fitted,
        "scale": {"old": scale, "fitted": new.scale},
    }
    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / "costs.json").write_text(json.dumps(content, indent=1) + "\n")
    rows = table(samples, kinds[0].cycles, kinds[1].cycles)
    (options.output / "costs.md").write_text(f"{rows}\n```text\n{text}\n```\n")
    print(options.output / "costs.md", options.output / "costs.json", sep="\n")
    if options.write:
        CONSTANTS.write_text(with_constants(CONSTANTS.read_text(), fitted))
        print(f"{CONSTANTS}: now build the extension, and test under every DECONV_IR_MACHINE")


if __name__ == "__main__":
    main()
