"""Time f32 and `accuracy="bf16"` here, and OpenVINO's f32 and bf16; one thread.

    python bench/bf16.py MODEL.xml [MODEL.xml ...] [--rounds N]
    python bench/bf16.py --layers [--rounds N]

With --layers, the named layers of bench/cases.py.  Interleaved in one process; medians.  Errors are
the largest of the output's scale, against `accuracy="float64"`.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
from cases import NAMED
from peers import openvino_model

import deconv_ir


def measure(name: str, path: Path, rounds: int) -> list[float]:
    """Print the times of a model; return our ratio of bf16 to f32, and OpenVINO's."""
    plain, rounded = deconv_ir.load(path), deconv_ir.load(path, accuracy="bf16")
    rng = np.random.default_rng(0)
    x = [rng.standard_normal(tuple(map(int, p.shape)), np.float32) for p in plain.inputs.values()]
    runs: dict[str, Callable[[], Any]] = {
        "f32": lambda: plain.run(x),
        "bf16": lambda: rounded.run(x),
    }
    for hint in ("f32", "bf16"):
        settings = {"INFERENCE_NUM_THREADS": 1, "INFERENCE_PRECISION_HINT": hint}
        request = ov.Core().compile_model(path, "CPU", settings).create_infer_request()
        runs[f"openvino {hint}"] = lambda request=request: request.infer(x)
    exact = next(iter(deconv_ir.load(path, accuracy="float64").run(x).values()))
    errors = [
        float(np.abs(next(iter(run().values())) - exact).max() / np.abs(exact).max())
        for run in runs.values()
    ]
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for kind, run in runs.items():
            run()
            began = time.process_time()
            run()
            times[kind].append(time.process_time() - began)
    found = {kind: 1e3 * statistics.median(row) for kind, row in times.items()}
    shown = "  ".join(f"{kind} {value:.2f}" for kind, value in found.items())
    ratios = [found["bf16"] / found["f32"], found["openvino bf16"] / found["openvino f32"]]
    told = ", ".join(f"{error:.0e}" for error in errors)
    print(
        f"{name:24s} ms: {shown} | bf16 / f32: {ratios[0]:.2f}, OpenVINO's {ratios[1]:.2f}; "
        f"errors {told}",
        flush=True,
    )
    return ratios


def layers(folder: Path) -> Iterator[tuple[str, Path]]:
    """Write each named layer to a file."""
    for case in NAMED:
        weights = np.random.default_rng(0).standard_normal(case.filter, dtype=np.float32)
        path = folder / case.name / "layer.xml"
        path.parent.mkdir()
        ov.save_model(openvino_model(case, weights), path, compress_to_fp16=False)
        yield case.name, path


def main() -> None:
    """Run the comparison."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", type=Path, nargs="*")
    parser.add_argument("--layers", action="store_true")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    deconv_ir.set_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        named = [(path.stem, path) for path in options.models]
        for name, path in layers(Path(folder)) if options.layers else named:
            measure(name, path, options.rounds)


if __name__ == "__main__":
    main()
