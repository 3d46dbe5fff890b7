"""Time the start of deconv-run and deconv-lint on a small model, and of the imports they need.

    python bench/startup.py [ROUNDS]

Interleaved; processor time (user and system) and elapsed time, medians, and the
median of the ratios to the imports of the same round.  Also prints the processor time that each
mechanism for a fast start saves a process (docs/architecture.md, Start-up), and the peak memory of
the document's first example (1x20x224x224 -> 1x10x447x447).
"""

from __future__ import annotations

import compileall
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from statistics import median

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
BIN = Path(sys.executable).parent
# Where Python may not write bytecode, each start would compile the sources.
ENVIRONMENT = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}

WITHOUT = {
    "no garbage collection": "import gc; gc.disable = lambda: None",
    "os._exit at the end": "import os, sys; os._exit = sys.exit",
    "NumPy on first use": "import numpy",
    "index of operations": "from deconv_ir.ops import all_operations; all_operations()",
    "imports in functions": "import deconv_ir, importlib, pkgutil\n"
    "for m in pkgutil.walk_packages(deconv_ir.__path__, 'deconv_ir.'):\n"
    "    if '__main__' not in m.name: importlib.import_module(m.name)",
}
"""Mechanism -> code that undoes it before a command starts."""


def run(command: list[str]) -> tuple[float, float, float]:
    """Run a command; return its processor and elapsed seconds, and its peak memory in MiB."""
    started = time.perf_counter()
    process = subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=ENVIRONMENT
    )
    _, status, usage = os.wait4(process.pid, 0)
    elapsed = time.perf_counter() - started
    if status:
        raise SystemExit(f"failed: {' '.join(command)}")
    return usage.ru_utime + usage.ru_stime, elapsed, usage.ru_maxrss / 1024


def imports(modules: str) -> list[str]:
    """Return a command that imports the given modules."""
    return [sys.executable, "-c", f"import {modules}"]


def started(command: list[str], before: str) -> list[str]:
    """Return a command that runs `before` in its process, then starts one of ours."""
    name, *arguments = command
    entry = Path(name).name.removeprefix("deconv-")
    start = f"import sys; sys.argv[1:] = {arguments!r}; import deconv_cli.start as s; s.{entry}()"
    return [sys.executable, "-P", "-c", f"{before}\n{start}"]


def main() -> None:
    """Print the tables."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    for package in ("deconv_ir", "cli"):
        compileall.compile_dir(ROOT / package, quiet=1)
    with tempfile.TemporaryDirectory() as folder:
        x, y = str(Path(folder) / "x.npy"), str(Path(folder) / "y.npy")
        np.save(x, np.zeros((1, 8, 16, 16), np.float32))
        block = str(ROOT / "samples/block/block.xml")
        run_block = [str(BIN / "deconv-run"), block, "--input", x, "--output", y, "--force"]
        tables = [
            {
                "import numpy, click": imports("numpy, click"),
                "deconv-run block.xml": run_block,
                "deconv-run --help": [str(BIN / "deconv-run"), "--help"],
            },
            {
                "import click": imports("click"),
                "deconv-lint block.xml": [str(BIN / "deconv-lint"), block],
                "deconv-lint --help": [str(BIN / "deconv-lint"), "--help"],
            },
        ]
        print(f"{'':34} {'processor':>18} {'elapsed':>18}")
        for commands in tables:
            taken = [[run(command)[:2] for command in commands.values()] for _ in range(rounds)]
            for i, name in enumerate(commands):
                cells = [
                    f"{median(row[i][k] for row in taken) * 1e3:8.1f} ms "
                    f"{median(row[i][k] / row[0][k] for row in taken):5.2f}x"
                    for k in (0, 1)
                ]
                print(f"{name:34} {' '.join(cells)}")
        print(f"\n{'saves, of deconv-':34} {'run':>18} {'lint':>18}")
        for name, code in WITHOUT.items():
            cells = []
            for command in (run_block, tables[1]["deconv-lint block.xml"]):
                pair = [started(command, ""), started(command, code)]
                taken = [[run(c)[0] for c in pair] for _ in range(rounds)]
                cells.append(f"{median(b - a for a, b in taken) * 1e3:15.1f} ms")
            print(f"{name:34} {' '.join(cells)}")
        example = str(ROOT / "samples/documents/convolution_backprop_data_1.xml")
        command = [str(BIN / "deconv-run"), example, "--random-inputs", "0", "--output", y]
        print(
            f"peak memory of 1x20x224x224 -> 1x10x447x447: {run([*command, '--force'])[2]:.0f} MiB"
        )


if __name__ == "__main__":
    main()
