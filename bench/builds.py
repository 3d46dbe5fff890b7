"""Compare two builds of the compiled kernel on models, by the processor time of one thread.

A change of the kernel, or a variant of it that is switched off where it is chosen, is measured
beside the build before: each build runs in a process of its own, and both take turns.  A ratio is
the median of those of the turns, the time of the second build by that of the first.

    python bench/builds.py OLD.so NEW.so models/*.xml --seconds 2

The inputs of NAME.xml are NAME-0.npy, NAME-1.npy and so on, if there are such files, else random.
"""

from __future__ import annotations

import argparse
import hashlib
import importlib.machinery
import importlib.util
import math
import os
import statistics
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import deconv_ir
from deconv_ir import kernels

EXTENSION = "deconv_ir.kernels._compiled"
TURN = 0.003  # seconds
FEWEST_TURNS = 6


def use(build: str) -> None:
    """Load a build in place of the installed one."""
    loader = importlib.machinery.ExtensionFileLoader(EXTENSION, build)
    spec = importlib.util.spec_from_file_location(EXTENSION, build, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    sys.modules[EXTENSION] = module


def load(path: Path) -> tuple[Any, list[Any]]:
    """Return a model and its inputs."""
    model = deconv_ir.load(path)
    rng = np.random.default_rng(0)
    inputs = []
    for i, port in enumerate(model.inputs.values()):
        file = path.with_name(f"{path.stem}-{i}.npy")
        shape = tuple(int(str(dim)) for dim in port.shape or ())
        inputs.append(
            np.load(file) if file.exists() else rng.standard_normal(shape, dtype=np.float32)
        )
    return model, inputs


def serve(build: str) -> None:
    """Load models, and time runs, as standard input asks."""
    use(build)
    kernels.set_threads(1)
    model: Any = None
    inputs: list[Any] = []
    for line in sys.stdin:
        word, value = line.rstrip("\n").split(" ", 1)
        if word == "load":
            model, inputs = load(Path(value))
            outputs = model.run(inputs).values()
            print(hashlib.sha256(b"".join(y.tobytes() for y in outputs)).hexdigest(), flush=True)
            continue
        start = time.thread_time_ns()
        for _ in range(int(value)):
            model.run(inputs)
        print((time.thread_time_ns() - start) / int(value) / 1e9, flush=True)


class Build:
    """A process that runs models with one build."""

    def __init__(self, path: str) -> None:
        command = [sys.executable, __file__, "--serve", path]
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)

    def ask(self, line: str) -> str:
        """Return the answer to a line."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(line, file=self._process.stdin, flush=True)
        return self._process.stdout.readline().strip()


def compare(builds: list[Build], path: str, seconds: float) -> float:
    """Print the time of a model and return the ratio."""
    hashes = [build.ask(f"load {path}") for build in builds]
    once = min(float(builds[0].ask("run 1")) for _ in range(3))
    count = max(1, int(TURN / once))
    ratios: list[float] = []
    end = time.monotonic() + seconds
    while time.monotonic() < end or len(ratios) < FEWEST_TURNS:
        order = builds if len(ratios) % 2 else builds[::-1]
        taken = {build: float(build.ask(f"run {count}")) for build in order}
        ratios.append(taken[builds[1]] / taken[builds[0]])
    ratio = statistics.median(ratios)
    bits = "" if hashes[0] == hashes[1] else "  other bits"
    print(f"{Path(path).stem:20} {once * 1e3:8.2f} ms {ratio:7.3f}{bits}", flush=True)
    return ratio


def main() -> None:
    """Measure, and print a line for each model."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("builds", nargs=2, help="two files of the extension")
    parser.add_argument("models", nargs="+", help="IRs")
    parser.add_argument("--seconds", type=float, default=2, help="of each model")
    arguments = parser.parse_args()
    builds = [Build(path) for path in arguments.builds]
    ratios = [compare(builds, path, arguments.seconds) for path in arguments.models]
    mean = math.exp(statistics.fmean(map(math.log, ratios)))
    print(f"geometric mean {mean:.3f}, smallest {min(ratios):.3f}, largest {max(ratios):.3f}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--serve"]:
        serve(sys.argv[2])
    else:
        main()
