"""Peak memory of real runs beside what the plan says, a process for each network.

    python bench/memory.py --output out/bench/memory.json

`used` is by how much a run, its loading and packing included, raised the
process's peak resident memory, as deconv-run runs it; `graph` is the part of it
that the loaded graph takes, Python's objects; `bound` is the plan's lower bound,
with every constant once, inputs and outputs.  The same network runs before, with
few channels, so that the modules are there.  Linux only.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from networks import NETWORKS, Saved, convert

CHILD = """
import json, pathlib, sys
import numpy as np
import deconv_ir
from deconv_cli.resources import hand_back

def peak():
    # Not ru_maxrss, which begins with that of the process this one was forked from.
    status = pathlib.Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) * 1024

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
before = peak()
graph, bound, planned = run(*full)
used = peak() - before
print(json.dumps({"used": used, "graph": graph, "bound": bound, "planned": planned}))
"""


def measure(small: Saved, full: Saved) -> dict[str, Any]:
    """Run a network in a process of its own, small, then full; return bytes by name."""
    sides = (":".join(map(str, (saved.path, *saved.files))) for saved in (small, full))
    command = [sys.executable, "-c", CHILD, *sides]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


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
            f"{name} {row[name] / 2**20:8.2f} MiB" for name in ("used", "graph", "planned", "bound")
        )
        print(f"{network.name:16s} {sizes}  ratio {rows[-1]['ratio']:.2f}", flush=True)
    print(f"worst ratio {max(row['ratio'] for row in rows):.2f}")
    options.output.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
