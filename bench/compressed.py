"""Measure the memory and time of networks whose weights are compressed, beside OpenVINO's.

    python bench/compressed.py [FORMAT ...] [--rows N ...] [--decoder] [--output FILE]

The transformer has 80 MB of weights in f32: embeddings, six layers of width 512, and logits.
`used` is the increase of a process's peak resident memory by loading, packing and running it once,
after a small one of the same kind was run, so that modules are loaded; `file` are the bytes of the
weights, and `ratio` is `used` to the bytes of the weights plus tensors.  `ms` is the time of a run
of N tokens, on one thread, the lowest of interleaved rounds; `ms f32` that of the same network in
f32, whose numbers are those of its codes.  OpenVINO quantises the tokens of some formats.  Linux
only.

With `--decoder`, the network has 89 MB of filters in f32, of convolutions and transposed ones.
"""

from __future__ import annotations

import argparse
import functools
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
from openvino import opset13 as ops

import deconv_ir

FORMATS = ("f32", "f16", "bf16", "f8e4m3", "i8", "u8", "u8-f32", "u4", "u4-64", "i4", "i4-32")
FORMATS += ("nf4-64",)
"""An element type, and the terms of a group with its own scale; default: all.  Scales are f16,
unless it says f32; unsigned types have zero points."""
RUNS, ROUNDS = 5, 15
CHILD = """
import json, pathlib, sys

def read(field):
    status = pathlib.Path("/proc/self/status").read_text()
    return int(status.partition(field + ":")[2].split()[0]) * 1024

def ours(path, file):
    import numpy as np
    import deconv_ir
    from deconv_cli.run.resources import hand_back
    hand_back()
    model = deconv_ir.load(path, warn=False)
    bound = model.bind([np.load(file)])
    hand_back(bound.plan)
    bound.run()
    return bound.plan.tensor_bytes

def theirs(path, file):
    import numpy as np
    import openvino as ov
    settings = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1}
    compiled = ov.Core().compile_model(path, "CPU", settings)
    compiled([np.load(file)])
    return 0

run = {"ours": ours, "openvino": theirs}[sys.argv[1]]
run(*sys.argv[2:4])  # modules and threads
pathlib.Path("/proc/self/clear_refs").write_text("5")  # the peak is what is there now
before, files = read("VmHWM"), read("RssFile")
tensors = run(*sys.argv[4:6])
code = read("RssFile") - files
print(json.dumps({"used": read("VmHWM") - before - max(0, code), "tensors": tensors}))
"""


class Compressor:
    """Makes matrices of a format."""

    def __init__(self, form: str, *, decoded: bool) -> None:
        kind, _, rest = form.partition("-")
        self.kind, self.group = kind, int(rest) if rest.isdecimal() else None
        self.scale_type = ov.Type.f32 if rest == "f32" else ov.Type.f16
        self.decoded = decoded
        self.rng = np.random.default_rng(0)

    def matrix(self, rows: int, columns: int) -> Any:
        """Return [rows, columns] in f32, as NNCF writes it."""
        shape = [rows, columns]
        scale = self.rng.uniform(0.5, 1.5, (rows, 1)) / np.sqrt(columns)
        if self.kind in ("f32", "f16", "bf16", "f8e4m3"):
            values = (
                self.rng.standard_normal(shape) * (1 if self.kind == "f8e4m3" else scale)
            ).astype(np.float32)
            if self.kind == "f32":
                return ops.constant(values)
            stored = ops.constant(values, getattr(ov.Type, self.kind))
            at = ops.convert(stored, "f32")
            if self.kind == "f8e4m3":
                at = ops.multiply(at, ops.constant(scale.astype(np.float32)))
            return self._plain(at)
        bits = 8 if self.kind in ("i8", "u8") else 4
        group = self.group or columns
        parts = [rows, columns // group, group] if self.group else shape
        outer = [*parts[:-1], 1]
        scales = (
            self.rng.uniform(0.5, 1.5, outer)
            / np.sqrt(columns)
            / (1 if self.kind == "nf4" else 2 ** (bits - 2))
        )
        stored = self._codes(parts)
        at = ops.convert(stored, self.scale_type.get_type_name())
        if self.kind[0] == "u":
            zero = ops.convert(self._codes(outer), self.scale_type.get_type_name())
            at = ops.subtract(at, zero)
        dtype = np.float32 if self.scale_type == ov.Type.f32 else np.float16
        at = ops.multiply(at, ops.constant(scales.astype(dtype)))
        if self.group:
            at = ops.reshape(at, ops.constant(np.array(shape, np.int64)), False)
        if self.scale_type != ov.Type.f32:
            at = ops.convert(at, "f32")
        return self._plain(at)

    def filter(self, shape: list[int], axis: int) -> Any:
        """Return a filter, with a scale for each index of an axis: the output channels."""
        others = [extent for i, extent in enumerate(shape) if i != axis]
        scale = 1 / np.sqrt(np.prod(others))
        if self.kind in ("f32", "f16", "bf16"):
            values = (self.rng.standard_normal(shape) * scale).astype(np.float32)
            if self.kind == "f32":
                return ops.constant(values)
            stored = ops.constant(values, getattr(ov.Type, self.kind))
            return self._plain(ops.convert(stored, "f32"))
        bits = 8 if self.kind in ("i8", "u8") else 4
        outer = [1] * len(shape)
        outer[axis] = shape[axis]
        at = ops.convert(self._codes(shape), "f16")
        if self.kind[0] == "u":
            at = ops.subtract(at, ops.convert(self._codes(outer), "f16"))
        scales = self.rng.uniform(0.5, 1.5, outer) * scale
        scales /= 1 if self.kind == "nf4" else 2 ** (bits - 2)
        at = ops.multiply(at, ops.constant(scales.astype(np.float16)))
        return self._plain(ops.convert(at, "f32"))

    def _codes(self, shape: list[int]) -> Any:
        tensor = ov.Tensor(getattr(ov.Type, self.kind), ov.Shape(shape))
        raw = self.rng.integers(0, 256, tensor.byte_size, np.uint8)
        tensor.data.reshape(-1).view(np.uint8)[...] = raw[: tensor.data.size]
        return ov.op.Constant(tensor)

    def _plain(self, at: Any) -> Any:
        """Return the numbers in f32, if they are wanted."""
        if not self.decoded:
            return at
        (values,) = (
            ov.Core()
            .compile_model(ov.Model([at], []), "CPU", {"INFERENCE_PRECISION_HINT": "f32"})([])
            .values()
        )
        return ops.constant(np.array(values))


def save(
    form: str, folder: Path, rows: int, *, width: int, layers: int, decoded: bool = False
) -> tuple[Path, Path]:
    """Write a transformer, and its input of some tokens."""
    words, heads, c = 4 * width, 8, Compressor(form, decoded=decoded)
    tokens = ops.parameter([1, rows], ov.Type.i32, name="tokens")
    at = ops.gather(c.matrix(words, width), tokens, ops.constant(0))

    def linear(x: Any, inner: int, outer: int) -> Any:
        return ops.matmul(x, c.matrix(outer, inner), False, True)

    def normalized(x: Any) -> Any:
        return ops.mvn(x, ops.constant([-1]), True, 1e-5, "INSIDE_SQRT")

    def split(x: Any) -> Any:
        parts = ops.reshape(x, ops.constant([1, rows, heads, width // heads]), False)
        return ops.transpose(parts, ops.constant([0, 2, 1, 3]))

    for _ in range(layers):
        x = normalized(at)
        q, k, v = (split(linear(x, width, width)) for _ in range(3))
        weights = ops.softmax(ops.matmul(q, k, False, True), -1)
        mixed = ops.transpose(ops.matmul(weights, v, False, False), ops.constant([0, 2, 1, 3]))
        mixed = ops.reshape(mixed, ops.constant([1, rows, width]), False)
        at = ops.add(at, linear(mixed, width, width))
        inner = ops.gelu(linear(normalized(at), width, 4 * width), "ERF")
        at = ops.add(at, linear(inner, 4 * width, width))
    model = ov.Model([linear(normalized(at), width, words)], [tokens])
    folder.mkdir(parents=True, exist_ok=True)
    path, file = folder / "model.xml", folder / "tokens.npy"
    ov.save_model(model, path, compress_to_fp16=False)
    np.save(file, np.random.default_rng(1).integers(0, words, (1, rows)).astype(np.int32))
    return path, file


def save_decoder(
    form: str, folder: Path, *, width: int, decoded: bool = False
) -> tuple[Path, Path]:
    """Write a decoder, and its input of 8 x 8 positions."""
    c = Compressor(form, decoded=decoded)
    at = data = ops.parameter([1, width, 8, 8], ov.Type.f32, name="x")
    ones, twos = [1, 1], [2, 2]
    for channels in (width, width // 2, width // 4):
        filter_ = c.filter([channels, channels, 3, 3], 0)
        at = ops.relu(ops.convolution(at, filter_, ones, ones, ones, ones))
        filter_ = c.filter([channels, channels // 2, 4, 4], 1)
        at = ops.convolution_backprop_data(at, filter_, twos, None, ones, ones, ones)
        at = ops.relu(at)
    folder.mkdir(parents=True, exist_ok=True)
    path, file = folder / "model.xml", folder / "x.npy"
    ov.save_model(ov.Model([at], [data]), path, compress_to_fp16=False)
    np.save(file, np.random.default_rng(1).standard_normal((1, width, 8, 8)).astype(np.float32))
    return path, file


def memory(side: str, small: tuple[Path, Path], full: tuple[Path, Path]) -> dict[str, float]:
    """Return the medians of bytes of several processes."""
    command = [sys.executable, "-c", CHILD, side, *map(str, (*small, *full))]
    runs = [json.loads(subprocess.check_output(command)) for _ in range(RUNS)]
    return {name: statistics.median(run[name] for run in runs) for name in runs[0]}


def times(full: tuple[Path, Path], plain: tuple[Path, Path]) -> dict[str, float]:
    """Return the lowest times of interleaved runs, in ms."""
    settings = {"INFERENCE_NUM_THREADS": 1, "INFERENCE_PRECISION_HINT": "f32"}
    tokens = np.load(full[1])
    f32 = deconv_ir.load(plain[0])
    ours = deconv_ir.load(full[0], warn=False)
    direct = deconv_ir.load(full[0], warn=False, accuracy="direct")
    compiled = ov.Core().compile_model(full[0], "CPU", settings)
    runs: dict[str, Callable[[], Any]] = {
        "ms": lambda: ours.run(tokens),
        "ms f32": lambda: f32.run(tokens),
        "ms direct": lambda: direct.run(tokens),
        "ms openvino": lambda: compiled([tokens]),
    }
    found: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(ROUNDS):
        for name, run in runs.items():
            run()
            began = time.process_time()
            run()
            found[name].append(1e3 * (time.process_time() - began))
    return {name: min(row) for name, row in found.items()}


def main() -> None:
    """Measure, print a table and write it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("formats", nargs="*", default=FORMATS)
    parser.add_argument("--rows", type=int, nargs="+", default=[1, 16, 64, 512])
    parser.add_argument("--decoder", action="store_true")
    parser.add_argument("--no-times", action="store_true")
    parser.add_argument("--no-memory", action="store_true")
    parser.add_argument("--output", type=Path, default=Path("out/bench/compressed.json"))
    options = parser.parse_args()
    deconv_ir.set_threads(1)
    folder, table = options.output.with_suffix(""), []
    for form in options.formats:
        for rows in [8] if options.decoder else options.rows:
            if options.decoder:
                make = functools.partial(save_decoder, form)
                small, full = (make(folder / form / f"decoder-{n}", width=n) for n in (32, 1024))
            else:
                small = save(form, folder / form / "small", rows, width=64, layers=1)
                full = save(form, folder / form / str(rows), rows, width=512, layers=6)
            row: dict[str, Any] = {"format": form, "rows": rows}
            stored = full[0].with_suffix(".bin").stat().st_size
            row["file"] = stored / 2**20
            if not options.no_memory:
                found = memory("ours", small, full)
                row["used"] = found["used"] / 2**20
                row["ratio"] = found["used"] / (stored + found["tensors"])
                row["openvino used"] = memory("openvino", small, full)["used"] / 2**20
            if not options.no_times:
                to = folder / form / "f32"
                if options.decoder:
                    plain = save_decoder(form, to, width=1024, decoded=True)
                else:
                    plain = save(form, to, rows, width=512, layers=6, decoded=True)
                row |= times(full, plain)
            table.append(row)
            cells = (f"{k} {v:7.2f}" for k, v in row.items() if isinstance(v, float))
            print(f"{form:7s} {rows:4d}  {'  '.join(cells)}", flush=True)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(table, indent=2) + "\n")


if __name__ == "__main__":
    main()
