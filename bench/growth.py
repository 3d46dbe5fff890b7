"""Time of a layer as its batch, channels and extents grow, and of its plan as threads grow.

python bench/growth.py --output out/bench

Long axes are measured up to 64 M samples and 32768 x 32768 positions, as far as data and result
fit in `--memory`; plans, which touch no data, for 1 to 256 threads up to there.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from deconv_ir import kernels
from deconv_ir.kernels.runtime.extension import compiled_module

# An algorithm that takes longer than this many seconds is not run on larger layers.
PATIENCE = 20.0
THREADS = (1, 2, 4, 16, 64, 256)


class Layer(NamedTuple):
    """A layer of stride 2, transposed unless it is a convolution of stride 1."""

    data: tuple[int, ...]
    weights: tuple[int, ...]
    element: str = "float32"
    forward: bool = False

    @property
    def axes(self) -> int:
        """Spatial axes."""
        return len(self.data) - 2

    @property
    def output(self) -> tuple[int, ...]:
        """Shape of the result."""
        channels = self.weights[0] if self.forward else self.weights[1]
        stride = 1 if self.forward else 2
        return (self.data[0], channels, *(stride * extent for extent in self.data[2:]))

    @property
    def bytes(self) -> int:
        """Bytes of data and result."""
        size = np.dtype(self.element).itemsize
        return size * (math.prod(self.data) + math.prod(self.output))

    def prepare(self, algorithm: str) -> Any:
        """Return the kernel."""
        pack: Any = kernels.pack_convolution if self.forward else kernels.pack_deconvolution
        return pack(
            np.ones(self.weights, self.element),
            strides=(1 if self.forward else 2,) * self.axes,
            dilations=(1,) * self.axes,
            algorithm=algorithm,
        )


def seconds(layer: Layer, algorithm: str) -> float:
    """Time a layer: the median of at least five runs, or of fewer if they exceed the time limit."""
    kernel = layer.prepare(algorithm)
    data = np.ones(layer.data, layer.element)
    out = np.ones(layer.output, layer.element)
    times: list[float] = []
    begin = time.perf_counter()
    while len(times) < 5 or time.perf_counter() - begin < 0.3:
        start = time.perf_counter()
        kernel.run(data, (1,) * layer.axes, layer.output[2:], out)
        times.append(time.perf_counter() - start)
        if time.perf_counter() - begin > PATIENCE / 4:
            break
    return statistics.median(times)


def planned(layer: Layer, threads: int) -> float:
    """Return the cycles that the cost model predicts for a run on this number of threads."""
    kernel = layer.prepare("auto")
    kernels.set_threads(threads)
    try:
        return kernel.plan(layer.data, (1,) * layer.axes, layer.output[2:]).algorithm.cycles
    finally:
        kernels.set_threads(None)


def layers() -> dict[str, list[tuple[int, Layer]]]:
    """Return the names of the series, each with its sizes and layers."""
    samples = [1 << power for power in range(16, 27, 2)]
    sides = [1 << power for power in range(9, 16, 2)]
    return {
        "batch": [(n, Layer((n, 64, 32, 32), (64, 32, 4, 4))) for n in (1, 2, 4, 8, 16, 32)],
        "input channels": [(c, Layer((1, c, 32, 32), (c, 32, 4, 4))) for c in (16, 64, 256, 1024)],
        "output channels": [(c, Layer((1, 64, 32, 32), (64, c, 4, 4))) for c in (8, 32, 128, 512)],
        "area": [(e * e, Layer((1, 64, e, e), (64, 32, 4, 4))) for e in (8, 16, 32, 64, 128, 256)],
        "samples, 4 to 2 channels": [(n, Layer((1, 4, n), (4, 2, 4))) for n in samples],
        "samples, 64 to 32 channels": [(n, Layer((1, 64, n), (64, 32, 4))) for n in samples],
        "samples, int8": [(n, Layer((1, 16, n), (16, 8, 4), "int8")) for n in samples],
        "samples, convolution": [(n, Layer((1, 2, n), (4, 2, 3), forward=True)) for n in samples],
        "rows of 16, 8 to 4 channels": [
            (n, Layer((1, 8, 16, n // 16), (8, 4, 4, 4))) for n in samples
        ],
        "square, convolution of 1 channel": [
            (e * e, Layer((1, 1, e, e), (1, 1, 3, 3), forward=True)) for e in sides
        ],
    }


def measure(
    points: list[tuple[int, Layer]], memory: int
) -> Iterator[tuple[int, dict[str, float], dict[int, float]]]:
    """Yield the size, seconds by algorithm, and planned cycles by threads of each point."""
    algorithms = [*(["compiled"] if compiled_module() else []), "numpy"]
    for size, layer in points:
        found = {}
        for algorithm in list(algorithms) if layer.bytes <= memory else []:
            found[algorithm] = seconds(layer, algorithm)
            if found[algorithm] > PATIENCE / 4:
                algorithms.remove(algorithm)
        plans = {t: planned(layer, t) for t in THREADS} if compiled_module() else {}
        yield size, found, plans


def main() -> None:
    """Measure, write JSON and plot."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("out/bench"), help="directory")
    parser.add_argument(
        "--memory", type=float, default=10, help="GiB of data and result at most (default: 10)"
    )
    options = parser.parse_args()
    series: dict[str, list[dict[str, Any]]] = {}
    for name, points in layers().items():
        series[name] = []
        for size, found, plans in measure(points, int(options.memory * 2**30)):
            series[name].append({"size": size, "seconds": found, "planned_cycles": plans})
            print(f"{name}: {size:>10} {found}", flush=True)
    report = {"threads": kernels.get_threads(), "series": series}
    options.output.mkdir(parents=True, exist_ok=True)
    target = options.output / "growth.json"
    target.write_text(json.dumps(report, indent=1) + "\n")
    print(target)
    from plots import plot_growth

    print(plot_growth(report, options.output / "growth.png"))


if __name__ == "__main__":
    main()
