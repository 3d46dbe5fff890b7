"""Whole networks beside OpenVINO: the process from file to file, and the second and later runs.

Each network of `tests/peers/architectures.py` is converted from torch, in f32
and static, as small as the tests take it or (`--size full`) at a width and a
size that people run.  Needs the `peers` extra:

    python bench/networks.py --output out/bench/networks.json

`process` is deconv-run beside a Python script that does the same with
OpenVINO, `run` is Model.run beside the infer of a request that neither copies
inputs nor allocates outputs.  Both take turns, with the same number of
threads; a ratio is the median of those of the turns, ours by theirs.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

# Before NumPy is there, as in compare.py.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import openvino as ov
from compare import geometric_mean, machine

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT))

import deconv_ir  # noqa: E402
from deconv_ir import kernels  # noqa: E402
from tests.peers.architectures import NETWORKS, Network  # noqa: E402 - found by the path above

PRECISION = {"INFERENCE_PRECISION_HINT": "f32"}
THEIRS = """
import sys, numpy, openvino
path, threads, count, *files = sys.argv[1:]
core = openvino.Core()
settings = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": int(threads)}
compiled = core.compile_model(core.read_model(path), "CPU", settings)
results = compiled([numpy.load(file) for file in files[:int(count)]])
for result, file in zip(results.values(), files[int(count):], strict=True):
    numpy.save(file, result)
"""
CORES = kernels.get_threads()
Clock = Callable[[], float]


class Saved:
    """A converted network: its IR, and its inputs as files."""

    def __init__(self, network: Network, folder: Path, *, full: bool) -> None:
        self.name = network.name
        self.path = folder / f"{network.name}.xml"
        tensors = network.inputs(seed=2, full=full)
        self.arrays = [tensor.numpy() for tensor in tensors]
        self.files = [folder / f"{network.name}-{i}.npy" for i in range(len(tensors))]
        self.results = folder / network.name
        self.results.mkdir(parents=True, exist_ok=True)
        if not self.path.exists():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model = ov.convert_model(
                    network.module(full=full),
                    example_input=tuple(tensors),
                    input=[tuple(t.shape) for t in tensors],
                )
            ov.save_model(model, self.path, compress_to_fp16=False)
        for file, array in zip(self.files, self.arrays, strict=True):
            np.save(file, array)


def time_processes(saved: Saved, rounds: int, threads: int, *, cpu: bool) -> dict[str, Any]:
    """Time both processes, in turns."""
    names = list(deconv_ir.load(saved.path).outputs)
    inputs = [part for file in saved.files for part in ("--input", str(file))]
    ours = [
        str(Path(sys.executable).with_name("deconv-run")), str(saved.path), *inputs,
        "--output", str(saved.results), "--force", "--quiet",
    ]  # fmt: skip
    if threads != CORES:
        ours += ["--threads", str(threads)]
    results = [str(saved.results / f"theirs-{i}.npy") for i in range(len(names))]
    theirs = [
        sys.executable, "-c", THEIRS, str(saved.path), str(threads), str(len(saved.files)),
        *map(str, saved.files), *results,
    ]  # fmt: skip
    times = [(_process(ours, cpu), _process(theirs, cpu)) for _ in range(rounds)]
    return _row(times)


def _process(command: list[str], cpu: bool) -> float:
    """Run a command; return its time by the clock, or by the processor."""
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = usage.ru_utime + usage.ru_stime if cpu else time.perf_counter() - started
    if status:
        raise SystemExit(f"failed: {' '.join(command)}")
    return seconds


def time_runs(saved: Saved, seconds: float, threads: int, clock: Clock) -> dict[str, Any]:
    """Time second and later runs of loaded models, in turns; check that they agree."""
    settings = PRECISION | {"INFERENCE_NUM_THREADS": threads}
    request = ov.Core().compile_model(saved.path, "CPU", settings).create_infer_request()
    model = deconv_ir.load(saved.path)

    def ours() -> Any:
        return model.run(saved.arrays)

    def theirs() -> Any:
        return request.infer(saved.arrays, share_inputs=True, share_outputs=True)

    for mine, expected in zip(ours().values(), theirs().values(), strict=True):
        error = float(np.abs(mine - expected).max() / np.abs(expected).max())
        if mine.shape != expected.shape or not error <= 1e-4:
            raise SystemExit(f"{saved.name}: the results differ by {error:.1e} of the scale")
    times: list[tuple[float, float]] = []
    end = time.perf_counter() + seconds
    repeat = 1
    while time.perf_counter() < end or len(times) < 5:
        taken = [_mean(run, repeat, clock) for run in (ours, theirs)]
        # The first turn measures how many runs a turn has to have to be timed well.
        if repeat == 1:
            repeat = max(2, min(50, int(0.01 / max(min(taken), 1e-5))))
        else:
            times.append((taken[0], taken[1]))
    return _row(times)


def _mean(run: Callable[[], Any], count: int, clock: Clock) -> float:
    """Run once to bring threads and caches over, then time `count` runs."""
    run()
    started = clock()
    for _ in range(count):
        run()
    return (clock() - started) / count


def _row(times: list[tuple[float, float]]) -> dict[str, Any]:
    return {
        "ours": statistics.median(a for a, _ in times),
        "theirs": statistics.median(b for _, b in times),
        "ratio": statistics.median(a / b for a, b in times),
        "turns": len(times),
    }


def report(row: dict[str, Any]) -> str:
    """Write a network's figures in one line."""
    parts = [f"{row['network']:16s}"]
    for what in ("process", "run"):
        if what in row:
            t = row[what]
            parts.append(
                f"{what} {t['ours'] * 1e3:9.3f} ms, OpenVINO {t['theirs'] * 1e3:9.3f} ms,"
                f" ratio {t['ratio']:5.2f}"
            )
    return "  | ".join(parts)


def main() -> None:
    """Time the networks, print a table and write it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("out/bench/networks.json"))
    parser.add_argument("--size", choices=["small", "full"], default="full")
    parser.add_argument("--only", choices=["process", "run"])
    parser.add_argument("--network", action="append", help="only these")
    parser.add_argument("--threads", type=int, default=CORES)
    parser.add_argument("--rounds", type=int, default=7, help="of the processes")
    parser.add_argument("--seconds", type=float, default=2.0, help="for the runs of a network")
    parser.add_argument(
        "--cpu-time",
        action="store_true",
        help="by the processor's time: for machines that others use as well, with --threads 1",
    )
    options = parser.parse_args()
    clock = time.process_time if options.cpu_time else time.perf_counter
    kernels.set_threads(options.threads)
    folder = options.output.with_suffix("") / options.size
    folder.mkdir(parents=True, exist_ok=True)
    rows = []
    for network in NETWORKS:
        if options.network and network.name not in options.network:
            continue
        saved = Saved(network, folder, full=options.size == "full")
        row: dict[str, Any] = {"network": network.name}
        if options.only != "run":
            row["process"] = time_processes(
                saved, options.rounds, options.threads, cpu=options.cpu_time
            )
        if options.only != "process":
            row["run"] = time_runs(saved, options.seconds, options.threads, clock)
        rows.append(row)
        print(report(row), flush=True)
        gc.collect()
    document = {"machine": machine(options.threads), "size": options.size, "networks": rows}
    if all("process" in row for row in rows):
        document["process_median"] = statistics.median(r["process"]["ratio"] for r in rows)
        print(f"processes: median of ratios {document['process_median']:.2f}")
    if all("run" in row for row in rows):
        document["run_geometric_mean"] = geometric_mean([r["run"]["ratio"] for r in rows])
        print(f"runs: geometric mean of ratios {document['run_geometric_mean']:.2f}")
    options.output.write_text(json.dumps(document, indent=2) + "\n")


if __name__ == "__main__":
    main()
