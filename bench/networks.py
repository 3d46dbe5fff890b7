"""Time whole networks against OpenVINO: processes from file to file, and second and later runs.

Each network of `tests/peers/architectures.py` is converted from torch, in f32 and static, at the
small size of the tests or (`--size full`) at a width and a size used in practice; then those of
`published.py`, at the widths of their publications, and the text detector of
tests/peers/test_trained.py where it is installed.  Needs the `peers` extra:

    python bench/networks.py --output out/bench/networks.json

`process` is deconv-run beside a Python script that does the same with OpenVINO, `run` is Model.run
beside the infer of a request that neither copies inputs nor allocates outputs, and beside
onnxruntime (`--onnxruntime`).  All take turns, with the same number of threads, and in every order.
With onnxruntime, a turn begins when threads of the one before are asleep: onnxruntime's stay busy
for some milliseconds, which slows the next engine.  A ratio is the median of those of the turns,
ours by the better of theirs.
"""

from __future__ import annotations

import argparse
import gc
import importlib.metadata
import itertools
import json
import os
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

# Set before NumPy is imported: see compare.py.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np
import onnxruntime
import openvino as ov
import torch
from compare import geometric_mean, machine, settle

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT))

import deconv_ir  # noqa: E402
from bench.published import PUBLISHED  # noqa: E402
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


DETECTOR = "rapidocr-onnxruntime", "detector", (1, 3, 320, 480)
"""Package, name and input of a trained network."""


class Saved:
    """A network saved as files: its IR, optionally its ONNX model, and its inputs."""

    def __init__(self, name: str, folder: Path, arrays: list[np.ndarray]) -> None:
        self.name = name
        self.path = folder / f"{name}.xml"
        self.onnx = folder / f"{name}.onnx"
        self.arrays = arrays
        self.files = [folder / f"{name}-{i}.npy" for i in range(len(arrays))]
        self.results = folder / name
        self.results.mkdir(parents=True, exist_ok=True)
        for file, array in zip(self.files, self.arrays, strict=True):
            np.save(file, array)


def convert(network: Network, folder: Path, *, full: bool, to_onnx: bool) -> Saved:
    """Convert a torch network, unless its files already exist."""
    tensors = network.inputs(seed=2, full=full)
    saved = Saved(network.name, folder, [tensor.numpy() for tensor in tensors])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if not saved.path.exists():
            module = network.module(full=full)
            shapes = [tuple(t.shape) for t in tensors]
            model = ov.convert_model(module, example_input=tuple(tensors), input=shapes)
            ov.save_model(model, saved.path, compress_to_fp16=False)
        if to_onnx and not saved.onnx.exists():
            # The exporter without dynamo requires no other package.
            torch.onnx.export(
                network.module(full=full), tuple(tensors), str(saved.onnx), dynamo=False
            )
    return saved


def convert_detector(folder: Path) -> Saved | None:
    """Convert the trained text detector; None where it is not installed."""
    package, name, shape = DETECTOR
    try:
        files = importlib.metadata.files(package) or []
    except importlib.metadata.PackageNotFoundError:
        return None
    (found,) = [f for f in files if f.name.endswith(".onnx") and "det" in f.name]
    saved = Saved(name, folder, [np.random.default_rng(2).normal(size=shape).astype(np.float32)])
    if not saved.path.exists():
        model = ov.convert_model(found.locate())
        model.reshape(shape)
        ov.save_model(model, saved.path, compress_to_fp16=False)
        saved.onnx.write_bytes(Path(str(found.locate())).read_bytes())
    return saved


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
    for command in (ours, theirs):
        _process(command, cpu)  # compiles modules to bytecode
    return _row([(_process(ours, cpu), _process(theirs, cpu)) for _ in range(rounds)])


def _process(command: list[str], cpu: bool) -> float:
    """Run a command; return its elapsed time or its processor time."""
    # Installed commands have bytecode, so the timed processes may write and use it as well.
    env = {name: v for name, v in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    started = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, env=env)
    _, status, usage = os.wait4(process.pid, 0)
    seconds = usage.ru_utime + usage.ru_stime if cpu else time.perf_counter() - started
    if status:
        raise SystemExit(f"failed: {' '.join(command)}")
    return seconds


def time_runs(saved: Saved, seconds: float, threads: int, clock: Clock) -> dict[str, Any]:
    """Time second and later runs of loaded models in turns, and check that their outputs agree."""
    settings = PRECISION | {"INFERENCE_NUM_THREADS": threads}
    request = ov.Core().compile_model(saved.path, "CPU", settings).create_infer_request()
    model = deconv_ir.load(saved.path)

    def ours() -> Any:
        return model.run(saved.arrays)

    def theirs() -> Any:
        return request.infer(saved.arrays, share_inputs=True, share_outputs=True)

    runs = [ours, theirs]
    settled = saved.onnx.exists()
    if settled:
        runs.append(_onnxruntime(saved, threads))
    for mine, expected in zip(ours().values(), theirs().values(), strict=True):
        error = float(np.abs(mine - expected).max() / np.abs(expected).max())
        if mine.shape != expected.shape or not error <= 1e-4:
            raise SystemExit(f"{saved.name}: the results differ by {error:.1e} of the scale")
    times: list[tuple[float, ...]] = []
    end = time.perf_counter() + seconds
    repeat = 1
    orders = itertools.cycle(itertools.permutations(range(len(runs))))
    while time.perf_counter() < end or len(times) < 5:
        means = {i: _mean(runs[i], repeat, clock, settled=settled) for i in next(orders)}
        taken = tuple(means[i] for i in range(len(runs)))
        # The first turn is used to choose how many runs each turn needs for an accurate time.
        if repeat == 1:
            repeat = max(2, min(50, int(0.01 / max(min(taken), 1e-5))))
        else:
            times.append(taken)
    return _row(times)


def _onnxruntime(saved: Saved, threads: int) -> Callable[[], Any]:
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    session = onnxruntime.InferenceSession(saved.onnx, options, ["CPUExecutionProvider"])
    names = [i.name for i in session.get_inputs()]
    inputs = dict(zip(names, saved.arrays, strict=True))
    return lambda: session.run(None, inputs)


def _mean(run: Callable[[], Any], count: int, clock: Clock, *, settled: bool) -> float:
    """Run once to warm up threads and caches, then time `count` runs."""
    if settled:
        settle()
    run()
    started = clock()
    for _ in range(count):
        run()
    return (clock() - started) / count


def _row(times: list[tuple[float, ...]]) -> dict[str, Any]:
    row = {
        "ours": statistics.median(t[0] for t in times),
        "theirs": statistics.median(t[1] for t in times),
        "ratio": statistics.median(t[0] / min(t[1:]) for t in times),
        "turns": len(times),
    }
    if len(times[0]) > 2:
        row["onnxruntime"] = statistics.median(t[2] for t in times)
    return row


def report(row: dict[str, Any]) -> str:
    """Write a network's figures in one line."""
    parts = [f"{row['network']:16s}"]
    for what in ("process", "run"):
        if what in row:
            t = row[what]
            parts.append(
                f"{what} {t['ours'] * 1e3:9.3f} ms, OpenVINO {t['theirs'] * 1e3:9.3f} ms,"
                + (f" onnxruntime {t['onnxruntime'] * 1e3:9.3f} ms," if len(t) > 4 else "")
                + f" ratio {t['ratio']:5.2f}"
            )
    return "  | ".join(parts)


def networks(options: argparse.Namespace, folder: Path) -> Iterator[Saved]:
    """Convert the requested networks, one after the other."""
    full = options.size == "full"
    chosen = [
        *(NETWORKS if options.which != "published" else ()),
        *(PUBLISHED if options.which != "architectures" and full else ()),
    ]
    for network in chosen:
        if not options.network or network.name in options.network:
            yield convert(network, folder, full=full, to_onnx=options.onnxruntime)
    if options.which != "architectures" and full:
        detector = convert_detector(folder)
        if detector is None:
            print(f"no text detector: {DETECTOR[0]} is not installed", file=sys.stderr)
        elif not options.network or detector.name in options.network:
            yield detector


def main() -> None:
    """Time the networks, print a table and write it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("out/bench/networks.json"))
    parser.add_argument("--size", choices=["small", "full"], default="full")
    parser.add_argument("--only", choices=["process", "run"])
    parser.add_argument("--network", action="append", help="only these")
    parser.add_argument(
        "--set", choices=["architectures", "published", "all"], default="all", dest="which"
    )
    parser.add_argument("--onnxruntime", action="store_true", help="also beside onnxruntime")
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
    for saved in networks(options, folder):
        row: dict[str, Any] = {"network": saved.name}
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
