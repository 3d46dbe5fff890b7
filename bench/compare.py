"""Compare transposed convolutions with OpenVINO, onnxruntime, PyTorch and OpenCV.

`model` is what users run: `deconv_ir.load(file).run(x)`, second and later runs; `kernel` is the
compiled kernel alone, `numpy` its fallback.  Every engine computes every case in turn, over and
over, in one process and with the same number of threads; figures are medians.  Writes a table, JSON
and a plot.  Needs the `peers` extra and matplotlib:

    python bench/compare.py --random 28 --output out/bench

With `--avx2` all engines are restricted to AVX2.  Onnxruntime and OpenCV, which have no such
switch, and the NumPy fallback are left out.
"""

from __future__ import annotations

import argparse
import gc
import json
import math
import os
import platform
import random
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

# Set before NumPy is imported: several of our threads call its BLAS.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
from cases import NAMED, Case, random_cases
from peers import PEERS, openvino_model, versions

import deconv_ir
from deconv_ir import kernels
from deconv_ir.kernels.runtime.extension import compiled_module

if TYPE_CHECKING:
    from peers import Runner

OURS = ("model", "kernel", "numpy")
# The libraries read these when they are loaded. OpenBLAS's variable only affects `limits`.
HELD_TO_AVX2 = {
    "ONEDNN_MAX_CPU_ISA": "AVX2",
    "DECONV_IR_ISA": "avx2",
    "OPENBLAS_CORETYPE": "Haswell",
}
CAN_BE_HELD = ("model", "kernel", "openvino", "torch")
# Timed calls of an engine in a turn, and turns at least: beside a slow peer, one disturbance must
# not decide.
TURN, TURNS = 3, 5
# Seconds that each check for spinning threads lasts (longer than a clock tick, after which the
# system updates the CPU times of threads on other cores), and the largest number of checks.
LOOK, LOOKS = 0.012, 20


def save_ir(case: Case, weights: Any, folder: str) -> str:
    """Write the layer as an IR."""
    import openvino as ov

    path = str(Path(folder, f"{case.name}.xml"))
    ov.save_model(openvino_model(case, weights), path, compress_to_fp16=False)
    return path


def model(case: Case, weights: Any, threads: int) -> Runner:
    """Load the layer from an IR, as users do."""
    kernels.set_threads(threads)
    with tempfile.TemporaryDirectory() as folder:
        loaded = deconv_ir.load(save_ir(case, weights, folder))
        loaded.run([np.zeros(case.data, np.float32)])  # reads the weights

    def run(x: Any) -> Any:
        (result,) = loaded.run([x]).values()
        return result

    return run


def ours(algorithm: str) -> Callable[[Case, Any, int], Runner]:
    """Return a function that makes our kernel with one algorithm."""

    def make(case: Case, weights: Any, threads: int) -> Runner:
        kernels.set_threads(threads)
        kernel = kernels.pack_deconvolution(
            weights,
            strides=case.strides,
            dilations=case.dilations,
            groups=case.groups,
            algorithm=algorithm,
        )
        plan = kernel.plan(case.data, case.pads, case.output)
        return lambda data: plan.run([data])[0]

    return make


def limits(threads: int, clock: Callable[[], float]) -> tuple[float, float]:
    """Measure the machine's peak: single-precision operations and streamed bytes per second."""
    import threading

    size = 1152
    a = np.random.default_rng(0).standard_normal((size, size), dtype=np.float32)
    data = np.ones(1 << 24, np.float32)

    def best(work: Callable[[Any], None], make: Callable[[], Any]) -> float:
        """Time `work` on all threads at once, each with its own memory."""
        buffers = [make() for _ in range(threads)]
        times = []
        for _ in range(5):
            workers = [threading.Thread(target=work, args=(buffer,)) for buffer in buffers]
            start = clock()
            for worker in workers:
                worker.start()
            for worker in workers:
                worker.join()
            times.append(clock() - start)
        return statistics.median(times)

    def multiply(out: Any) -> None:
        for _ in range(4):
            np.matmul(a, a, out=out)

    def copy(out: Any) -> None:
        for _ in range(4):
            np.copyto(out, data)

    operations = threads * 4 * 2 * size**3 / best(multiply, lambda: np.empty_like(a))
    stream = threads * 4 * 2 * data.nbytes / best(copy, lambda: np.zeros_like(data))
    return operations, stream


def settle() -> None:
    """Wait until the previous engine's threads have gone to sleep.

    They spin for a while after a call, onnxruntime's for 50 ms, and would take
    a core away from the next engine.
    """
    for _ in range(LOOKS):
        start = time.process_time()
        time.sleep(LOOK)
        if time.process_time() - start < LOOK / 4:
            return


def measure(
    case: Case,
    engines: dict[str, Any],
    threads: int,
    seconds: float,
    clock: Callable[[], float] = time.perf_counter,
    *,
    settled: bool = True,
) -> dict[str, Any]:
    """Time all engines on one case, in turns."""
    rng = np.random.default_rng(0)
    data = rng.standard_normal(case.data, dtype=np.float32)
    weights = rng.standard_normal(case.filter, dtype=np.float32)
    made = {name: make(case, weights, threads) for name, make in engines.items()}
    runners = {name: run for name, run in made.items() if run is not None}
    reference: Any = None
    worst = 0.0
    for name, run in list(runners.items()):
        result = np.asarray(run(data)).copy()
        if reference is None:
            reference = result
        if name == "opencv" and result.shape != reference.shape:  # it ignores some attributes
            del runners[name]
            continue
        worst = max(worst, float(np.abs(result - reference).max() / np.abs(reference).max()))
    if worst > 1e-4:
        raise SystemExit(f"{case.name}: the engines differ by {worst:.1e} of the scale")
    times: dict[str, list[float]] = {name: [] for name in runners}
    begin = time.perf_counter()
    names = list(runners)
    order = random.Random(0)
    while time.perf_counter() - begin < seconds or len(times[names[0]]) < TURNS * TURN:
        # An engine must not always run after the same one, whose caches and threads it inherits.
        order.shuffle(names)
        # An untimed call warms up threads and caches, then timed calls follow.
        for name in names:
            if settled:
                settle()
            runners[name](data)
            for _ in range(TURN):
                start = clock()
                result = runners[name](data)
                times[name].append(clock() - start)
                del result
    return {
        "name": case.name,
        "data": case.data,
        "filter": case.filter,
        "groups": case.groups,
        "strides": case.strides,
        "pads": case.pads,
        "dilations": case.dilations,
        "output_padding": case.output_padding,
        "operations": case.operations,
        "bytes": case.bytes,
        "seconds": {name: statistics.median(t) for name, t in times.items()},
        "calls": {name: len(t) for name, t in times.items()},
    }


def geometric_mean(values: list[float]) -> float:
    """Return the geometric mean."""
    return math.exp(statistics.fmean(math.log(v) for v in values))


def machine(threads: int) -> dict[str, Any]:
    """Describe the machine and the software versions."""
    model = platform.processor()
    info = Path("/proc/cpuinfo")
    if info.exists():
        lines = [line for line in info.read_text().splitlines() if line.startswith("model name")]
        model = lines[0].split(":", 1)[1].strip() if lines else model
    return {
        "processor": model,
        "threads": threads,
        "python": platform.python_version(),
        "numpy": np.__version__,
        **versions(),
    }


def complete(row: dict[str, Any], peak: float, stream: float) -> None:
    """Add the ratios and the distance to the machine's limit to a measured case."""
    seconds = row["seconds"]
    peers = {name: t for name, t in seconds.items() if name not in OURS}
    row["operations_per_second"], row["bytes_per_second"] = peak, stream
    row["limit"] = max(row["operations"] / peak, row["bytes"] / stream)
    if peers:
        row["best_peer"] = min(peers, key=lambda name: peers[name])
    for name in OURS:
        if name in seconds:
            row[f"{name}_to_limit"] = row["limit"] / seconds[name]
            if peers:
                row[f"{name}_ratio"] = peers[row["best_peer"]] / seconds[name]


def print_row(row: dict[str, Any]) -> None:
    """Print one line of the table."""
    times = "  ".join(f"{name} {1e3 * t:8.3f}" for name, t in row["seconds"].items())
    ratios = "  ".join(
        f"{name} x{row[f'{name}_ratio']:.2f} limit {row[f'{name}_to_limit']:.2f}"
        for name in OURS
        if f"{name}_ratio" in row
    )
    print(f"{row['name']:12s} ms: {times}  | {ratios}", flush=True)


def summarise(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Return geometric means and worst cases."""
    result: dict[str, Any] = {}
    for name in OURS:
        for what in ("ratio", "to_limit"):
            values = [row[f"{name}_{what}"] for row in rows if f"{name}_{what}" in row]
            if values:
                result[f"{name}_{what}"] = {
                    "geometric_mean": geometric_mean(values),
                    "worst": min(values),
                }
    return result


def main() -> None:
    """Run the comparison."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("out/bench"), help="directory")
    parser.add_argument("--threads", type=int, default=kernels.get_threads())
    parser.add_argument(
        "--cpu-time",
        action="store_true",
        help="one thread, by the processor's time: for machines that others use as well",
    )
    parser.add_argument("--seconds", type=float, default=3.0, help="for each case")
    parser.add_argument(
        "--spinning",
        action="store_true",
        help="begin a turn while threads of the engine before may still be spinning",
    )
    parser.add_argument("--random", type=int, default=28, metavar="N", help="random layers")
    parser.add_argument("--seed", type=int, default=2026, help="of the random layers")
    parser.add_argument("--case", action="append", help="only these named layers")
    parser.add_argument(
        "--engine", action="append", choices=(*OURS, *PEERS), help="only these engines"
    )
    parser.add_argument("--avx2", action="store_true", help="hold all engines to AVX2")
    options = parser.parse_args()
    if options.avx2 and HELD_TO_AVX2.items() - os.environ.items():
        os.execve(sys.executable, [sys.executable, *sys.argv], os.environ | HELD_TO_AVX2)
    if options.cpu_time:
        options.threads = 1
    clock = time.process_time if options.cpu_time else time.perf_counter
    engines: dict[str, Any] = {"model": model}
    if compiled_module():
        engines["kernel"] = ours("compiled")
    engines |= {"numpy": ours("numpy")} | PEERS
    if options.avx2:
        engines = {name: engines[name] for name in CAN_BE_HELD if name in engines}
    if options.engine:
        missing = [name for name in options.engine if name not in engines]
        if missing:
            parser.error(f"--engine {missing[0]}: not built here, or not to be held to AVX2")
        engines = {name: engines[name] for name in options.engine}
    families = {
        "named": [c for c in NAMED if not options.case or c.name in options.case],
        "random": [] if options.case else random_cases(options.seed, options.random),
    }
    report: dict[str, Any] = {"machine": machine(options.threads)}
    report["machine"]["clock"] = "processor" if options.cpu_time else "wall"
    report["machine"]["settled"] = not options.spinning
    report["machine"]["kernel"] = str(kernels.kernel_info())
    print(json.dumps(report, indent=1))
    for family, cases in families.items():
        rows = []
        for case in cases:
            # Measured again for each case: the speed of shared machines changes.
            peak, stream = limits(options.threads, clock)
            row = measure(
                case,
                engines,
                options.threads,
                options.seconds,
                clock,
                settled=not options.spinning,
            )
            complete(row, peak, stream)
            print_row(row)
            rows.append(row)
            gc.collect()
        if rows:
            report[family] = {"summary": summarise(rows), "cases": rows}
            print(family, json.dumps(report[family]["summary"], indent=1))
    options.output.mkdir(parents=True, exist_ok=True)
    name = "deconvolution-avx2" if options.avx2 else "deconvolution"
    target = options.output / f"{name}.json"
    target.write_text(json.dumps(report, indent=1) + "\n")
    print(target)
    try:
        from plots import plot_comparison
    except ImportError as error:
        print(f"no plot: {error}", file=sys.stderr)
    else:
        print(plot_comparison(report, target.with_suffix(".png")))


if __name__ == "__main__":
    main()
