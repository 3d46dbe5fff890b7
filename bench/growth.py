"""How a layer's time grows with its batch, its channels and its area.

python bench/growth.py --output out/bench
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

from deconv_ir import kernels
from deconv_ir.kernels.runtime.extension import compiled_module


def seconds(data: tuple[int, ...], weights: tuple[int, ...], path: str) -> float:
    """Time a 4x4 layer of stride 2."""
    rng = np.random.default_rng(0)
    kernel = kernels.Deconvolution(
        rng.standard_normal(weights, dtype=np.float32),
        strides=(2, 2),
        dilations=(1, 1),
        path=path,
    )
    x = rng.standard_normal(data, dtype=np.float32)
    output = tuple(2 * extent for extent in data[2:])
    times: list[float] = []
    begin = time.perf_counter()
    while len(times) < 5 or time.perf_counter() - begin < 0.3:
        start = time.perf_counter()
        kernel.run(x, (1, 1), output)
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def main() -> None:
    """Measure, write JSON and plot."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("out/bench"), help="directory")
    options = parser.parse_args()
    paths = (["compiled"] if compiled_module() else []) + ["phases"]
    layers: dict[str, list[tuple[int, tuple[int, ...], tuple[int, ...]]]] = {
        "batch": [(n, (n, 64, 32, 32), (64, 32, 4, 4)) for n in (1, 2, 4, 8, 16, 32)],
        "input channels": [(c, (1, c, 32, 32), (c, 32, 4, 4)) for c in (16, 64, 256, 1024)],
        "output channels": [(c, (1, 64, 32, 32), (64, c, 4, 4)) for c in (8, 32, 128, 512)],
        "area": [(e * e, (1, 64, e, e), (64, 32, 4, 4)) for e in (8, 16, 32, 64, 128, 256)],
    }
    series: dict[str, list[dict[str, Any]]] = {
        name: [
            {"size": size, "seconds": {path: seconds(data, weights, path) for path in paths}}
            for size, data, weights in points
        ]
        for name, points in layers.items()
    }
    report = {"threads": kernels.get_threads(), "series": series}
    options.output.mkdir(parents=True, exist_ok=True)
    target = options.output / "growth.json"
    target.write_text(json.dumps(report, indent=1) + "\n")
    print(target)
    from plots import plot_growth

    print(plot_growth(report, options.output / "growth.png"))


if __name__ == "__main__":
    main()
