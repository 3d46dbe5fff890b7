"""Time whole processes from the shell to the .npy file: deconv-run, OpenVINO and onnxruntime.

    python bench/coldstart.py [--rounds 15] [--case spec1]

Each process computes the same layer, read from a file in its own format. The engines take turns.
The ratio is peer / deconv-run, round by round, and its median is printed.  Needs the `peers` extra.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from cases import NAMED, Case
from peers import onnx_model, openvino_model

SCRIPT = Path(sys.executable).with_name("deconv-run")

OPENVINO = """
import sys
import numpy as np
import openvino as ov
model, data, output = sys.argv[1:]
core = ov.Core()
compiled = core.compile_model(core.read_model(model), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})
np.save(output, compiled([np.load(data)])[0])
"""

ONNXRUNTIME = """
import sys
import numpy as np
import onnxruntime as ort
model, data, output = sys.argv[1:]
session = ort.InferenceSession(model, providers=["CPUExecutionProvider"])
np.save(output, session.run(None, {"x": np.load(data)})[0])
"""


def write_models(case: Case, folder: Path) -> None:
    """Write the layer as IR and as ONNX, and its data."""
    import openvino as ov

    rng = np.random.default_rng(0)
    weights = rng.standard_normal(case.filter, dtype=np.float32)
    np.save(folder / "x.npy", rng.standard_normal(case.data, dtype=np.float32))
    ov.save_model(openvino_model(case, weights), folder / "model.xml", compress_to_fp16=False)
    (folder / "model.onnx").write_bytes(onnx_model(case, weights))


def seconds(command: list[str]) -> float:
    """Run a command and time it."""
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    started = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, env=environment)
    return time.perf_counter() - started


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--case", default="spec1", choices=[case.name for case in NAMED])
    options = parser.parse_args()
    case = next(c for c in NAMED if c.name == options.case)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_models(case, folder)
        x, ir, onnx = (str(folder / file) for file in ("x.npy", "model.xml", "model.onnx"))
        results = {engine: str(folder / f"{engine}.npy") for engine in ("ours", "ov", "ort")}
        commands = {
            "deconv-run": [
                str(SCRIPT), ir, "--input", x, "--output", results["ours"], "--force",
            ],
            "openvino": [sys.executable, "-c", OPENVINO, ir, x, results["ov"]],
            "onnxruntime": [sys.executable, "-c", ONNXRUNTIME, onnx, x, results["ort"]],
        }  # fmt: skip
        for command in commands.values():
            seconds(command)
        ours, *theirs = (np.load(file) for file in results.values())
        for their in theirs:
            error = np.abs(ours - their).max() / np.abs(their).max()
            if not error <= 1e-5:
                raise SystemExit(f"the engines differ by {error:.1e} of the scale")
        times: dict[str, list[float]] = {engine: [] for engine in commands}
        for _ in range(options.rounds):
            for engine, command in commands.items():
                times[engine].append(seconds(command))
    for engine, taken in times.items():
        ratio = statistics.median(t / o for t, o in zip(taken, times["deconv-run"], strict=True))
        print(f"{engine:12} {statistics.median(taken) * 1e3:7.0f} ms  {ratio:.2f}x of deconv-run")


if __name__ == "__main__":
    main()
