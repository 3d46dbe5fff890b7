"""Kill tiled runs at random moments (SIGKILL), and compare what they resume to.

    python -m tests.tiling.kill_runs --count 50 --seed 0

Each run has a .npy or a Zarr output, may need two passes, and may have workers; it is killed up to
three times, half of the times while tiles are computed.  The resumed result must be that of an
uninterrupted run, bit for bit, and that one the result of a whole run, where docs/tiles.md says so.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np

import deconv_ir
from deconv_ir.formats.volumes import remove_volume, zarr
from tests.support import IR

from .exactness import is_exact

TILES = ("16,16", "40,64", "1000,8", "auto")


def network(folder: Path) -> None:
    """Write a model with a mean that needs two passes, and its input."""
    rng = np.random.default_rng(0)
    ir = IR()
    at = ir.parameter("x", "1,4,120,100")
    window = {"strides": "1,1", "dilations": "1,1", "pads_begin": "1,1", "pads_end": "1,1"}
    for number in range(3):
        weights = ir.const(rng.standard_normal((4, 4, 3, 3)).astype(np.float32))
        at = ir.layer("Convolution", [at, weights], window, name=f"conv{number}")
    weights = ir.const(rng.standard_normal((4, 2, 4, 4)).astype(np.float32))
    up = ir.layer("ConvolutionBackpropData", [at, weights], window | {"strides": "2,2"}, name="up")
    axes = ir.const(np.array([2, 3]))
    mean = ir.layer("ReduceMean", [up, axes], {"keep_dims": "true"}, name="mean")
    ir.result(ir.layer("Subtract", [up, mean], name="scaled"), "result")
    ir.save(folder)
    np.save(folder / "x.npy", rng.standard_normal((1, 4, 120, 100)).astype(np.float32))


def command(folder: Path, output: str, options: tuple[str, ...]) -> list[str]:
    """Return the words of a run."""
    model, data = str(folder / "model.xml"), str(folder / "x.npy")
    words = [sys.executable, "-m", "deconv_ir", "run", model, "--input", data, "--quiet"]
    return [*words, "--output", str(folder / output), *options]


def start(words: list[str], errors: int = subprocess.PIPE) -> subprocess.Popen[bytes]:
    """Start a run in a process group of its own, with its workers."""
    return subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=errors, start_new_session=True)


def kill(process: subprocess.Popen[bytes], alone: bool) -> bool:
    """Kill a process, and its workers unless `alone`; return whether it was still running."""
    running = process.poll() is None
    if running and alone:
        process.kill()  # its workers end when they notice
    elif running:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return running


def load(path: Path) -> np.ndarray:
    """Read a result."""
    return np.load(path) if path.suffix == ".npy" else zarr().open_array(path, mode="r")[...]


def clean(folder: Path, output: str) -> None:
    """Remove a result and all that runs have left of it."""
    for path in folder.glob(f"{output}*"):
        remove_volume(path)
    (folder / ".deconv-run.json").unlink(missing_ok=True)


def try_one(
    folder: Path, draw: random.Random, output: str, options: tuple[str, ...]
) -> tuple[str, str | None]:
    """Kill a run, resume it, and return what was left, and what is wrong, if anything is."""
    clean(folder, output)
    words = command(folder, output, options)
    began = time.monotonic()
    done = start(words)
    _, errors = done.communicate()
    seconds = time.monotonic() - began
    if done.returncode:
        return "", f"the uninterrupted run failed: {errors.decode(errors='replace')}"
    expected = load(folder / output)
    clean(folder, output)
    left: list[str] = []
    for number in range(draw.choice([1, 1, 2, 3])):
        more = ["--resume"] if number else []
        process = start([*words, *more], subprocess.DEVNULL)
        if draw.random() < 0.5:
            while process.poll() is None and not (folder / f"{output}.partial").exists():
                time.sleep(0.001)
            time.sleep(draw.random() * seconds / 8)
        else:
            time.sleep(draw.random() * 1.1 * seconds)
        running = kill(process, alone=draw.random() < 0.5)
        partial = (folder / f"{output}.partial").exists()
        state = "partial" if partial else "complete" if (folder / output).exists() else "none"
        left.append(state if running else "ended")
    process = start([*words, "--resume"])
    _, errors = process.communicate()
    if process.returncode:
        return ", ".join(left), errors.decode(errors="replace").strip()
    if not np.array_equal(load(folder / output), expected):
        return ", ".join(left), "another result"
    if names := [path.name for path in folder.glob(f"{output}?*")]:
        return ", ".join(left), f"left behind: {names}"
    model = deconv_ir.load(folder / "model.xml")
    wanted = "up" if "up" in options else "scaled"
    (whole,) = model.run(np.load(folder / "x.npy"), outputs=wanted).values()
    if "--two-pass" in options:
        good = np.allclose(expected, whole, rtol=0, atol=1e-6 * float(np.abs(whole).max()))
    else:
        good = is_exact(expected, whole)
    return ", ".join(left), None if good else "not the result of a whole run"


def main() -> int:
    """Try many runs, and print what was left and what failed; return 1 if one failed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    draw = random.Random(given.seed)
    kinds = list(
        itertools.product(
            ("y.npy", "y.zarr"), (("--until", "up"), ("--two-pass",)), ((), (), ("--workers", "2"))
        )
    )
    states: Counter[str] = Counter()
    failures = 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        network(folder)
        for number in range(given.count):
            output, passes, workers = kinds[number % len(kinds)]
            options = (*passes, *workers, "--tile", draw.choice(TILES))
            left, wrong = try_one(folder, draw, output, options)
            states.update(left.split(", "))
            failures += wrong is not None
            if wrong is not None:
                print(f"{number}: {output} {' '.join(options)}: after {left}: {wrong}", flush=True)
    print(f"{given.count} runs, {sum(states.values())} kills, {failures} failures")
    print("left by the kills:", ", ".join(f"{n} {state}" for state, n in states.most_common()))
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
