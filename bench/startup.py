"""Time whole processes: deconv-run on a small model beside the imports it can not do without.

    python bench/startup.py [ROUNDS]

Interleaved, medians; the ratio is of the medians.  Also prints the peak memory
of the document's first example (1x20x224x224 -> 1x10x447x447) as a process.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
SCRIPT = Path(sys.executable).with_name("deconv-run")


def seconds(command: list[str]) -> float:
    """Run a command and time it."""
    started = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True)
    return time.perf_counter() - started


def peak_mebibytes(command: list[str]) -> float:
    """Run a command and return its peak resident memory."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"failed: {' '.join(command)}")
    return usage.ru_maxrss / 1024


def main() -> None:
    """Print the table."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    with tempfile.TemporaryDirectory() as folder:
        x = Path(folder) / "x.npy"
        np.save(x, np.zeros((1, 8, 16, 16), np.float32))
        block = str(ROOT / "samples/block/block.xml")
        output = str(Path(folder) / "y.npy")
        commands = {
            "import numpy, lxml.etree, click": [
                sys.executable, "-c", "import numpy, lxml.etree, click",
            ],
            "deconv-run block.xml": [
                str(SCRIPT), block, "--input", str(x), "--output", output, "--force",
            ],
            "deconv-run --help": [str(SCRIPT), "--help"],
        }  # fmt: skip
        times: dict[str, list[float]] = {name: [] for name in commands}
        for _ in range(rounds):
            for name, command in commands.items():
                times[name].append(seconds(command))
        base = statistics.median(times["import numpy, lxml.etree, click"])
        for name, taken in times.items():
            median = statistics.median(taken)
            print(f"{name:34} {median * 1e3:7.1f} ms  {median / base:.2f}x")
        example = str(ROOT / "samples/documents/convolution_backprop_data_1.xml")
        big = peak_mebibytes(
            [str(SCRIPT), example, "--random-inputs", "0", "--output", output, "--force"]
        )
        print(f"peak memory of 1x20x224x224 -> 1x10x447x447: {big:.0f} MiB")


if __name__ == "__main__":
    main()
