"""The cost of halos by tile size, and how throughput grows with the number of workers.

    python bench/tiles_cost.py halos       # elements computed in tiles, relative to one run
    python bench/tiles_cost.py samples     # the halos of the networks in samples/
    python bench/tiles_cost.py workers     # a simulation of 1 to 1,000 workers
    python bench/tiles_cost.py measure     # 1 and 2 local workers, to compare with the simulation

The simulation has four parameters: the seconds of a tile on a worker, the bytes that it reads and
writes, the bandwidth of the storage that all workers share, and the milliseconds that the scheduler
takes for a task, one after the other.  It does not model failures, stragglers, the start of
workers, or caches.
"""

from __future__ import annotations

import argparse
import heapq
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
sys.path += [str(ROOT / "tests"), str(ROOT / "bench")]

from tiles import run, sparse, unet  # noqa: E402 - found by the path above

import deconv_ir  # noqa: E402
from deconv_ir.ir.boxes import Box, box_shape  # noqa: E402
from deconv_ir.ir.shapes import element_count  # noqa: E402

HALOS = {
    "2-D U-Net, 2 levels": (unet, (1, 1, 4096, 4096), 2),
    "2-D U-Net, 4 levels": (unet, (1, 1, 4096, 4096), 4),
    "3-D U-Net, 2 levels": (unet, (1, 1, 1024, 1024, 1024), 2),
    "3-D U-Net, 3 levels": (unet, (1, 1, 1024, 1024, 1024), 3),
}
"""Network -> its maker, the shape of its input, levels."""
SAMPLES = (
    "block/block.xml",
    "upsample/bilinear_x2.xml",
    "documents/convolution_backprop_data_1.xml",
    "documents/convolution_backprop_data_older.xml",
    "documents/group_convolution_backprop_data.xml",
)


def halo(model: deconv_ir.Model) -> list[tuple[int, int]]:
    """Return the reach of the receptive field of an element in the middle, for each axis."""
    tiles = model.tiled()
    low, high = [0] * (len(tiles.shape) - 2), [0] * (len(tiles.shape) - 2)
    # The reach depends on the position where a network shrinks and grows again: take the largest.
    for shift in range(16):
        at = [extent // 2 + shift for extent in tiles.shape[2:]]
        box: Box = (*((0, n) for n in tiles.shape[:2]), *((a, a + 1) for a in at))
        (found,) = tiles.tile(box).inputs.values()
        for axis, ((start, stop), place) in enumerate(zip(found[2:], at, strict=True)):
            low[axis] = max(low[axis], place - start)
            high[axis] = max(high[axis], stop - 1 - place)
    return list(zip(low, high, strict=True))


def overhead(model: deconv_ir.Model, extent: int) -> tuple[float, float]:
    """Return elements read and computed by a tile in the middle, relative to those of the whole."""
    tiles = model.tiled()
    start = [n // 2 // 16 * 16 for n in tiles.shape[2:]]
    box: Box = (*((0, n) for n in tiles.shape[:2]), *((a, a + extent) for a in start))
    tile = tiles.tile(box)
    whole = tiles.tile(tuple((0, n) for n in tiles.shape))
    share = element_count(box_shape(box)) / element_count(tiles.shape)
    (read,) = tile.inputs.values()
    (all_read,) = whole.inputs.values()
    return (
        element_count(box_shape(read)) / (share * element_count(box_shape(all_read))),
        tiles.work_of(tile) / (share * tiles.work_of(whole)),
    )


def print_halos(extents: Sequence[int]) -> None:
    """Print the tables of docs/tiles.md."""
    print("| network | halo | " + " | ".join(f"tile {n}" for n in extents) + " |")
    print("|---|---|" + "---|" * len(extents))
    for name, (make, shape, levels) in HALOS.items():
        ir = make(shape, levels=levels)
        model = deconv_ir.load(ir.xml().encode(), bytes(ir.weights), accuracy="direct", warn=False)
        (reach, *_) = halo(model)
        cells = []
        for extent in extents:
            read, work = overhead(model, extent)
            cells.append(f"{work:.2f}\u00d7 ({read:.2f}\u00d7)")
        print(f"| {name} | {reach[0]} before, {reach[1]} after | {' | '.join(cells)} |")


def print_samples() -> None:
    """Print the halo that a tile in the middle reads around its input, for docs/tiles.md."""
    print("| network | output over input | halo |\n|---|---|---|")
    for name in SAMPLES:
        model = deconv_ir.load(ROOT / "samples" / name, accuracy="direct", warn=False)
        (port, *_) = model.inputs
        extents = [n if isinstance(n, int) else 64 for n in model.inputs[port].shape or ()]
        tiles = model.tiled({port: tuple(extents)})
        box: Box = tuple((0, n) for n in tiles.shape)
        scale = round(tiles.shape[-1] / extents[-1])
        start = extents[-1] // 2
        share = (start, start + 4)
        wanted = (*box[:-1], (share[0] * scale, share[1] * scale))
        low, high = tiles.tile(wanted).inputs[port][-1]
        print(f"| `samples/{name}` | {scale} | {share[0] - low} before, {high - share[1]} after |")


class Cluster(NamedTuple):
    """The parameters of the simulation."""

    tile_seconds: float
    tile_bytes: float
    bandwidth: float
    scheduler_seconds: float = 1e-3


def simulate(cluster: Cluster, tiles: int, workers: int) -> float:
    """Return the seconds that the workers take for all tiles.

    A task waits for the scheduler, which takes one at a time, then for its worker; its bytes
    wait for the storage, which serves one tile at a time at full bandwidth.
    """
    free = [0.0] * workers
    scheduler = storage = 0.0
    for _ in range(tiles):
        scheduler = max(scheduler, free[0]) + cluster.scheduler_seconds
        start = max(heapq.heappop(free), scheduler)
        storage = max(storage, start) + cluster.tile_bytes / cluster.bandwidth
        heapq.heappush(free, max(start, storage) + cluster.tile_seconds)
    return max(free)


def print_workers(cluster: Cluster, tiles: int) -> None:
    """Print how throughput grows with workers."""
    one = simulate(cluster, tiles, 1)
    print("| workers | speed-up | efficiency |\n|---|---|---|")
    for workers in (1, 2, 8, 32, 128, 512, 1000):
        speed = one / simulate(cluster, tiles, workers)
        print(f"| {workers} | {speed:.3g}\u00d7 | {speed / workers:.0%} |")


def print_measured(extent: int) -> None:
    """Run a volume on 1 and 2 local workers."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        shape = (1, 1, extent, extent, extent)
        model = unet(shape).save(folder)
        sparse(folder / "x.npy", shape)
        options = ("--tile", "64,128,128", "--threads", "1", "--workers")
        for workers in ("1", "2"):
            taken = run(model, folder / "x.npy", folder / "y.zarr", *options, workers)
            print(f"{workers} workers: {taken.seconds:.1f} s")


def main() -> None:
    """Print the requested tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=["halos", "samples", "workers", "measure"])
    parser.add_argument("--tile-seconds", type=float, default=2.0)
    parser.add_argument("--tile-mib", type=float, default=70.0)
    parser.add_argument("--bandwidth-gib", type=float, default=2.0)
    parser.add_argument("--tiles", type=int, default=10_000)
    parser.add_argument("--extent", type=int, default=256)
    given = parser.parse_args()
    if given.what == "halos":
        print_halos((32, 64, 128, 256))
    elif given.what == "samples":
        print_samples()
    elif given.what == "measure":
        print_measured(given.extent)
    else:
        bandwidth = given.bandwidth_gib * 2**30
        cluster = Cluster(given.tile_seconds, given.tile_mib * 2**20, bandwidth)
        print_workers(cluster, given.tiles)


if __name__ == "__main__":
    main()
