"""Compare MONAI's sliding_window_inference with our tiles on a U-Net: error, time and memory.

Needs the `peers` extra:

    python bench/tiles_monai.py

Each method runs in a process of its own, on the same volume and weights, with the same tile and
number of threads; the error is the largest difference from torch's result for the whole volume,
relative to its largest element.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path += [str(ROOT), str(ROOT / "tests"), str(ROOT / "bench")]

import deconv_ir  # noqa: E402 - found by the path above

LEVELS = 2
OVERLAPS = (0.0, 0.125, 0.25, 0.5)


def network(model: deconv_ir.Model) -> Callable[[Any], Any]:
    """Return the U-Net of bench/tiles.py in torch, with the weights of the model."""
    import torch
    from torch.nn import functional

    weights = []
    for layer in model.graph.of_type("Const"):
        (array,) = model.run(model_inputs(model), outputs=[layer.name]).values()
        weights.append(torch.from_numpy(array.copy()))

    def forward(x: Any) -> Any:
        given = iter(weights)
        skips = []
        for _ in range(LEVELS):
            x = functional.relu(functional.conv3d(x, next(given), padding=1))
            skips.append(x)
            x = functional.max_pool3d(x, 2)
        x = functional.relu(functional.conv3d(x, next(given), padding=1))
        for skip in reversed(skips):
            x = functional.conv_transpose3d(x, next(given), stride=2)
            x = functional.relu(functional.conv3d(torch.cat([skip, x], 1), next(given), padding=1))
        return functional.conv3d(x, next(given))

    return forward


def model_inputs(model: deconv_ir.Model) -> dict[str, np.ndarray]:
    """Return zeros for the inputs."""
    return {name: np.zeros(port.shape, np.float32) for name, port in model.inputs.items()}


def child(method: str, folder: Path, tile: int, overlap: float, threads: int) -> None:
    """Compute the volume by one method, and print seconds and peak resident memory."""
    model = deconv_ir.load(folder / "model.xml", warn=False)
    x = np.load(folder / "x.npy")
    deconv_ir.set_threads(threads)
    if method == "ours":
        from deconv_ir.ir.boxes import as_slices
        from deconv_ir.tiling.grid import Grid, fit_tile

        tiles = model.tiled()
        y = np.empty(tiles.shape, np.float32)
        began = time.perf_counter()
        for box in Grid(tiles.shape, fit_tile(tiles.shape, (tile,) * 3)).boxes():
            y[as_slices(box)] = tiles.run(tiles.tile(box), lambda _, b: x[as_slices(b)].copy())
    else:
        import torch

        torch.set_num_threads(threads)
        forward = network(model)
        began = time.perf_counter()
        with torch.inference_mode():
            if method == "whole":
                y = forward(torch.from_numpy(x)).numpy()
            else:
                from monai.inferers import sliding_window_inference

                size = (tile,) * 3
                importance = {"mode": "gaussian"} if method == "gaussian" else {}
                found = sliding_window_inference(
                    torch.from_numpy(x), size, 1, forward, overlap=overlap, **importance
                )
                y = found.numpy()
    seconds = time.perf_counter() - began
    np.save(folder / f"{method}-{overlap}.npy", y)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(json.dumps({"seconds": seconds, "rss": peak}))


def main() -> None:
    """Print one row for each method."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--extent", type=int, default=128)
    parser.add_argument("--tile", type=int, default=64)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--child", nargs=3)
    given = parser.parse_args()
    if given.child is not None:
        method, folder, overlap = given.child
        child(method, Path(folder), given.tile, float(overlap), given.threads)
        return
    from tiles import unet

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shape = (1, 1, *(given.extent,) * 3)
        unet(shape, levels=LEVELS).save(folder)
        x = np.random.default_rng(0).standard_normal(shape).astype(np.float32)
        np.save(folder / "x.npy", x)
        rows = [("whole", 0.0), ("ours", 0.0)]
        rows += [(mode, overlap) for mode in ("constant", "gaussian") for overlap in OVERLAPS]
        expected = None
        for method, overlap in rows:
            arguments = [sys.executable, __file__, "--tile", str(given.tile)]
            arguments += ["--threads", str(given.threads)]
            arguments += ["--child", method, str(folder), str(overlap)]
            text = subprocess.run(
                arguments, check=True, capture_output=True, text=True, env=os.environ
            ).stdout
            found = json.loads(text.splitlines()[-1])
            y = np.load(folder / f"{method}-{overlap}.npy")
            expected = y if expected is None else expected
            error = float(np.abs(y - expected).max() / np.abs(expected).max())
            seconds, peak = found["seconds"], found["rss"] / 2**20
            print(f"{method} {overlap}: error {error:.2g}, {seconds:.1f} s, {peak:.0f} MiB")


if __name__ == "__main__":
    main()
