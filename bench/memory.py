"""Compare the peak memory of real runs with the plan, each run in its own process.

    python bench/memory.py --output out/bench/memory.json

`used` is the increase of the process's peak resident memory by a run, including loading and
packing, as deconv-run does it; `graph` is the part of it that the Python objects of the loaded
graph take; `bound` is the plan's lower bound, with every constant once, inputs and outputs.  The
same network runs before, with few channels, so that the modules are loaded.

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
from pathlib import Path
from typing import Any

from networks import NETWORKS, Saved, convert

RUNS = 5  # processes of each network
CHILD = """
import json, pathlib, sys
import numpy as np
import deconv_ir
from deconv_cli.resources import hand_back

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


def measure(small: Saved, full: Saved) -> dict[str, Any]:
    """Run a network small, then full, in a process of its own; return medians of bytes by name."""
    sides = (":".join(map(str, (saved.path, *saved.files))) for saved in (small, full))
    command = [sys.executable, "-c", CHILD, *sides]
    runs = [json.loads(subprocess.check_output(command)) for _ in range(RUNS)]
    return {name: statistics.median(run[name] for run in runs) for name in runs[0]}


def main() -> None:
    """Measure the networks, print a table and write it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("out/bench/memory.json"))
    parser.add_argument("--network", action="append", help="only these")
    options = parser.parse_args()
    folder = options.output.with_suffix("")
    rows = []
    for network in NETWORKS:
        if options.network and network.name not in options.network:
            continue
        pair = (
            convert(network, folder / ("full" if size else "small"), full=size, to_onnx=False)
            for size in (False, True)
        )
        row = {"network": network.name} | measure(*pair)
        rows.append(row | {"ratio": row["used"] / row["bound"]})
        sizes = "  ".join(
            f"{name} {row[name] / 2**20:8.2f} MiB"
            for name in ("used", "code", "graph", "planned", "bound")
        )
        print(f"{network.name:16s} {sizes}  ratio {rows[-1]['ratio']:.2f}", flush=True)
    print(f"worst ratio {max(row['ratio'] for row in rows):.2f}")
    options.output.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
