"""Compare the peak memory of processes that run a network once with OpenVINO's, and with the plan.

    python bench/memory.py --output out/bench/memory.json

`ours` and `openvino` are the peak resident memory of whole processes, which load a network, run it
once and end, in turns: what people would use instead.  Networks are those of networks.py, then the
layers of cases.py.

`used` is the increase of our process's peak by a run, including loading and packing, as deconv-run
does it; `graph` is the part of it that the Python objects of the loaded graph take; `planned` and
`bound` are the plan's peak and its lower bound, with every constant once, inputs and outputs.  The
same network runs before, with few channels, so that the modules are loaded; other networks and
layers have no such figures.

`code` is not part of `used`: pages of program files, 128 KiB of the extension where
the full network runs kernels that the small one did not; processes share them.
Linux counts resident pages by processor and adds them up late, so that a peak is
known to 128 KiB or so: each figure is the median of five processes.  Linux only.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from cases import NAMED, Case
from compare import geometric_mean, save_ir
from networks import NETWORKS, PRECISION, PUBLISHED, Saved, convert

from deconv_ir import kernels

RUNS = 5  # processes of each network
PEAK = """
import pathlib
status = pathlib.Path("/proc/self/status").read_text()
print(int(status.partition("VmHWM:")[2].split()[0]) * 1024)
"""
OURS = """
import sys
import numpy as np
import deconv_ir
from deconv_cli.run.resources import hand_back, limit_threads

threads, path, *files = sys.argv[1:]
with limit_threads(int(threads)):
    hand_back()
    bound_model = deconv_ir.load(path).bind([np.load(file) for file in files])
    hand_back(bound_model.plan)
    bound_model.run()
"""
THEIRS = f"""
import sys
import numpy as np
import openvino as ov

threads, path, *files = sys.argv[1:]
core = ov.Core()
settings = {PRECISION} | {{"INFERENCE_NUM_THREADS": int(threads)}}
compiled = core.compile_model(core.read_model(path), "CPU", settings)
compiled([np.load(file) for file in files])
"""
CHILD = """
import json, pathlib, sys
import numpy as np
import deconv_ir
from deconv_cli.run.resources import hand_back

def read(field):
    status = pathlib.Path("/proc/self/status").read_text()
    return int(status.partition(field + ":")[2].split()[0]) * 1024

def peak():
    # Not ru_maxrss, which begins with that of the process this one was forked from.
    return read("VmHWM")

def run(path, *files):
    arrays = [np.load(file) for file in files]
    begun = peak()
    model = deconv_ir.load(path)
    graph = peak() - begun
    bound_model = model.bind(arrays)
    hand_back(bound_model.plan)
    bound_model.run()
    plan = bound_model.plan
    given = sum(array.nbytes for array in arrays)
    bound = plan.bound_bytes + given
    return graph, bound, plan.peak_bytes + given

hand_back()
small, full = (arguments.split(":") for arguments in sys.argv[1:])
run(*small)  # modules and threads
pathlib.Path("/proc/self/clear_refs").write_text("5")  # the peak is what is there now
before, files = peak(), read("RssFile")
graph, bound, planned = run(*full)
code = read("RssFile") - files
used = peak() - before - code
sizes = {"used": used, "code": code, "graph": graph, "bound": bound, "planned": planned}
print(json.dumps(sizes))
"""


SIZES = ("ours", "openvino", "used", "planned", "bound")


def measure(small: Saved, full: Saved) -> dict[str, Any]:
    """Run a network small, then full, in one process; return medians of bytes by name."""
    sides = (":".join(map(str, (saved.path, *saved.files))) for saved in (small, full))
    command = [sys.executable, "-c", CHILD, *sides]
    runs = [json.loads(subprocess.check_output(command)) for _ in range(RUNS)]
    return {name: statistics.median(run[name] for run in runs) for name in runs[0]}


def compare(path: Path, files: Sequence[Path]) -> dict[str, float]:
    """Run a model in processes of both sides, in turns; return the medians of their peaks."""
    arguments = [str(kernels.get_threads()), *map(str, (path, *files))]
    peaks: dict[str, list[int]] = {"ours": [], "openvino": []}
    for _ in range(RUNS):
        for name, code in (("ours", OURS), ("openvino", THEIRS)):
            command = [sys.executable, "-c", code + PEAK, *arguments]
            peaks[name].append(int(subprocess.check_output(command).split()[-1]))
    return {name: statistics.median(values) for name, values in peaks.items()}


def save_case(case: Case, folder: Path) -> tuple[Path, list[Path]]:
    """Write a layer as an IR, and its data."""
    rng = np.random.default_rng(0)
    weights = rng.standard_normal(case.filter, dtype=np.float32)
    data = folder / f"{case.name}.npy"
    np.save(data, rng.standard_normal(case.data, dtype=np.float32))
    return Path(save_ir(case, weights, str(folder))), [data]


def main() -> None:
    """Measure the networks and layers, print a table and write it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("out/bench/memory.json"))
    parser.add_argument("--name", action="append", help="only these networks and layers")
    options = parser.parse_args()
    folder = options.output.with_suffix("")
    (folder / "layers").mkdir(parents=True, exist_ok=True)
    rows = []
    for found in (*NETWORKS, *PUBLISHED, *NAMED):
        if options.name and found.name not in options.name:
            continue
        row: dict[str, Any] = {"name": found.name}
        if isinstance(found, Case):
            path, files = save_case(found, folder / "layers")
        else:
            full = convert(found, folder / "full", full=True, to_onnx=False)
            path, files = full.path, full.files
            if found in NETWORKS:
                small = convert(found, folder / "small", full=False, to_onnx=False)
                row |= measure(small, full)
        row |= compare(path, files)
        row["ratio"] = row["ours"] / row["openvino"]
        rows.append(row)
        sizes = "  ".join(f"{name} {row[name] / 2**20:7.1f}" for name in row if name in SIZES)
        print(f"{found.name:18s} MiB: {sizes}  ratio {row['ratio']:.2f}", flush=True)
    ratios = [row["ratio"] for row in rows]
    print(f"ours / openvino: geometric mean {geometric_mean(ratios):.2f}, worst {max(ratios):.2f}")
    options.output.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
