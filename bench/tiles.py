"""Run a U-Net in tiles: memory and speed over a volume larger than memory, and the cost of halos.

    python bench/tiles.py --output out/bench/tiles.json

`large` runs deconv-run over a sparse .npy file with a memory limit and reports its peak
resident memory; `untiled` and `tiled` take turns on a volume that fits, in processes of their
own, and `speed` is the ratio of the elements a second of `large` and `untiled`.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

ROOT = Path(__file__).resolve().parent.parent
sys.path.append(str(ROOT / "tests"))

from support import IR, Out  # noqa: E402 - found by the path above

RUN = Path(sys.executable).with_name("deconv-run")


def unet(shape: Sequence[int], channels: int = 4, levels: int = 2, seed: int = 0) -> IR:
    """Build a U-Net of 3-wide convolutions, max pooling and transposed convolutions."""
    numbers = np.random.default_rng(seed)
    rank = len(shape) - 2
    ones, zeros = ",".join("1" * rank), ",".join("0" * rank)
    ir = IR()

    def convolution(x: Out, inputs: int, outputs: int, extent: int = 3) -> Out:
        size = (outputs, inputs, *(extent,) * rank)
        weights = numbers.standard_normal(size) / np.sqrt(inputs * extent**rank)
        pads = ",".join(str(extent // 2) for _ in range(rank))
        window = {"strides": ones, "dilations": ones, "pads_begin": pads, "pads_end": pads}
        return ir.layer("Convolution", [x, ir.const(weights.astype(np.float32))], window)

    def relu(x: Out) -> Out:
        return ir.layer("ReLU", [x])

    half = {"strides": ones.replace("1", "2"), "pads_begin": zeros, "pads_end": zeros}
    x = ir.parameter("x", ",".join(map(str, shape)))
    skips = []
    width, count = shape[1], channels
    for _ in range(levels):
        x = relu(convolution(x, width, count))
        skips.append((x, count))
        x = ir.layer("MaxPool", [x], half | {"kernel": half["strides"]})
        width, count = count, 2 * count
    x, width = relu(convolution(x, width, width)), width
    for skip, count in reversed(skips):
        size = (width, count, *(2,) * rank)
        weights = (numbers.standard_normal(size) / np.sqrt(width)).astype(np.float32)
        x = ir.layer("ConvolutionBackpropData", [x, ir.const(weights)], half | {"dilations": ones})
        x = ir.layer("Concat", [skip, x], {"axis": "1"})
        x, width = relu(convolution(x, 2 * count, count)), count
    ir.result(convolution(x, width, 1, 1))
    return ir


def sparse(path: Path, shape: Sequence[int]) -> None:
    """Write a .npy file of zeros that takes no disk space."""
    header = {"descr": "<f4", "fortran_order": False, "shape": tuple(shape)}
    with path.open("wb") as stream:
        np.lib.format.write_array_header_1_0(stream, header)
        stream.truncate(stream.tell() + 4 * int(np.prod(shape)))


class Taken(NamedTuple):
    """Elapsed seconds of a run, its processor seconds, and its peak resident memory in bytes."""

    seconds: float
    cpu: float
    rss: int


def run(model: Path, data: Path, target: Path, *options: str) -> Taken:
    """Run the command."""
    arguments = [str(RUN), str(model), "--input", str(data), "--output", str(target)]
    began = time.perf_counter()
    process = subprocess.Popen([*arguments, "--force", "--quiet", *options])
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        raise SystemExit(f"{' '.join(arguments)} ended with {status}")
    process.returncode = status
    cpu = usage.ru_utime + usage.ru_stime
    return Taken(time.perf_counter() - began, cpu, usage.ru_maxrss * 1024)


def _rates(several: Sequence[Taken], shape: Sequence[int]) -> dict[str, float]:
    """Return elements per second, and per processor second, which other load affects less."""
    count = float(np.prod(shape))
    return {
        "seconds": statistics.median(t.seconds for t in several),
        "rate": count / statistics.median(t.seconds for t in several),
        "cpu_rate": count / statistics.median(t.cpu for t in several),
        "rss": max(t.rss for t in several),
    }


def measure(folder: Path, extents: Sequence[int], fitting: int, turns: int) -> dict[str, Any]:
    """Measure a large volume in tiles, and a small one as a whole and in tiles, in turns."""
    folder.mkdir(parents=True, exist_ok=True)
    large, small = (1, 1, *extents), (1, 1, fitting, fitting, fitting)
    found: dict[str, Any] = {"large": {"shape": large}, "small": {"shape": small}}
    for name, shape in (("large", large), ("small", small)):
        path = unet(shape).save(folder)
        path.rename(folder / f"{name}.xml")
        (folder / "model.bin").rename(folder / f"{name}.bin")
        sparse(folder / f"{name}.npy", shape)
    taken: dict[str, list[Taken]] = {"untiled": [], "tiled": []}
    limit = ("--tile", "auto", "--memory-limit", "900MiB")
    for _ in range(turns):
        for way, options in (("untiled", ()), ("tiled", limit)):
            model, data = folder / "small.xml", folder / "small.npy"
            taken[way].append(run(model, data, folder / "out.npy", *options))
    for way, several in taken.items():
        found["small"][way] = _rates(several, small)
    whole = run(folder / "large.xml", folder / "large.npy", folder / "out.npy", *limit)
    found["large"] |= _rates([whole], large)
    for figure in ("rate", "cpu_rate"):
        found[f"speed_by_{figure}"] = found["large"][figure] / found["small"]["untiled"][figure]
    for name in ("large.npy", "small.npy", "out.npy"):
        (folder / name).unlink()
    return found


def main() -> None:
    """Run the benchmarks that the options select, and print the figures."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--folder", type=Path, default=Path("out/bench/tiles"))
    parser.add_argument("--extents", type=int, nargs=3, default=(1024, 1024, 2048))
    parser.add_argument("--fitting", type=int, default=256)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--output", type=Path)
    given = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    found = measure(given.folder, given.extents, given.fitting, given.turns)
    text = json.dumps(found, indent=2)
    print(text)
    if given.output is not None:
        given.output.write_text(text + "\n")


if __name__ == "__main__":
    main()
