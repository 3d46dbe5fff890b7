"""Time quantised networks: integers and f32 here, OpenVINO's integers; one thread.

    python bench/quantized.py ORIGINALS FOLDER [NAME ...] [--quantize] [--rounds N]
    python bench/quantized.py --layers [--rounds N]

ORIGINALS has NAME.xml for each network (bench/converted.py writes them).  With --quantize, NNCF
quantises them to FOLDER/NAME/int8.xml first, with random data: its default preset, 4 samples.
With --layers, the named layers of bench/cases.py and some products, whose data and weights are
quantised.
Interleaved in one process; medians.  Errors are the largest of the output's scale, against
`accuracy="float64"`.
"""

from __future__ import annotations

import argparse
import functools
import math
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import openvino as ov
from cases import NAMED
from peers import openvino_model

import deconv_ir

SAMPLES = 4
PRODUCTS = [
    (197, 768, 768), (197, 768, 3072), (197, 3072, 768), (64, 512, 512), (1024, 64, 64),
    (1, 2048, 1000),
]  # fmt: skip
"""Rows, terms and columns."""


def draw(model: Any, seed: int) -> list[Any]:
    """Return random inputs."""
    rng = np.random.default_rng(seed)
    return [rng.standard_normal(tuple(port.shape), dtype=np.float32) for port in model.inputs]


def quantize(original: Path, target: Path) -> None:
    """Quantise a network with NNCF."""
    import nncf

    model = ov.Core().read_model(original)
    samples = nncf.Dataset([draw(model, seed) for seed in range(SAMPLES)])
    target.parent.mkdir(parents=True, exist_ok=True)
    quantised = nncf.quantize(model, samples, subset_size=SAMPLES)
    ov.save_model(quantised, target, compress_to_fp16=False)


def measure(original: Path, quantised: Path, rounds: int) -> tuple[float, float]:
    """Print the times of one network; return the ratios to f32 and to OpenVINO."""
    settings = {"INFERENCE_NUM_THREADS": 1, "INFERENCE_PRECISION_HINT": "f32"}
    compiled = ov.Core().compile_model(quantised, "CPU", settings)
    request, x = compiled.create_infer_request(), draw(compiled, SAMPLES)
    integers, f32 = deconv_ir.load(quantised), deconv_ir.load(original)
    exact = next(iter(deconv_ir.load(quantised, accuracy="float64").run(x).values()))
    runs: dict[str, Callable[[], Any]] = {
        "integers": lambda: integers.run(x),
        "f32": lambda: f32.run(x),
        "openvino": lambda: request.infer(x, share_inputs=True, share_outputs=True),
    }
    scale = float(np.abs(exact).max())
    errors = {
        name: float(np.abs(next(iter(run().values())) - exact).max()) / scale
        for name, run in runs.items()
        if name != "f32"
    }
    times: dict[str, list[float]] = {name: [] for name in runs}
    for _ in range(rounds):
        for name, run in runs.items():
            run()
            began = time.process_time()
            run()
            times[name].append(time.process_time() - began)
    found = {name: 1e3 * statistics.median(row) for name, row in times.items()}
    shown = "  ".join(f"{name} {value:7.2f}" for name, value in found.items())
    ratios = found["integers"] / found["f32"], found["integers"] / found["openvino"]
    print(
        f"{quantised.parent.name:16s} ms: {shown}  | of f32 {ratios[0]:.2f}, "
        f"of OpenVINO {ratios[1]:.2f}; errors {errors['integers']:.1e}, {errors['openvino']:.1e}",
        flush=True,
    )
    return ratios


def product_model(shape: tuple[int, ...], columns: int, *, quantised: bool) -> Any:
    """Return a MatMul with weights for each column, and an addition, as an OpenVINO model."""
    from openvino import opset13 as ops

    rng = np.random.default_rng(0)
    parameter = data = ops.parameter(shape, np.float32)
    weights = ops.constant(rng.standard_normal((columns, shape[-1]), dtype=np.float32))
    if quantised:
        data = ops.fake_quantize(parameter, *(np.float32(end) for end in (-3, 3, -3, 3)), 256)
        codes = ops.constant(rng.integers(-127, 128, (columns, shape[-1]), np.int8))
        scales = ops.constant(rng.uniform(0.01, 0.02, (columns, 1)).astype(np.float32))
        weights = ops.multiply(ops.convert(codes, "f32"), scales)
    bias = rng.standard_normal((1,) * (len(shape) - 1) + (columns,), dtype=np.float32)
    return ov.Model([ops.add(ops.matmul(data, weights, False, True), bias)], [parameter])


def measure_layers(rounds: int) -> list[tuple[float, float]]:
    """Measure each named layer, and each product."""
    models: dict[str, Callable[..., Any]] = {}
    for case in NAMED:
        weights = np.random.default_rng(0).standard_normal(case.filter, dtype=np.float32)
        models[case.name] = functools.partial(openvino_model, case, weights)
    for *shape, columns in PRODUCTS:
        name = "x".join(map(str, (*shape, columns)))
        models[name] = functools.partial(product_model, tuple(shape), columns)
    rows = []
    for name, make in models.items():
        with tempfile.TemporaryDirectory() as folder:
            files = Path(folder, "f32.xml"), Path(folder, name, "int8.xml")
            for path, quantised in zip(files, (False, True), strict=True):
                path.parent.mkdir(exist_ok=True)
                ov.save_model(make(quantised=quantised), path, compress_to_fp16=False)
            rows.append(measure(*files, rounds))
    return rows


def main() -> None:
    """Run the comparison."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("originals", type=Path, nargs="?")
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("names", nargs="*")
    parser.add_argument("--layers", action="store_true")
    parser.add_argument("--quantize", action="store_true")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    deconv_ir.set_threads(1)
    if options.layers:
        summarise(measure_layers(options.rounds))
        return
    if options.folder is None:
        parser.error("name ORIGINALS and FOLDER, or pass --layers")
    rows = []
    for name in options.names or sorted(path.name for path in options.folder.iterdir()):
        original = options.originals / f"{name}.xml"
        quantised = options.folder / name / "int8.xml"
        if options.quantize:
            quantize(original, quantised)
        rows.append(measure(original, quantised, options.rounds))
    summarise(rows)


def summarise(rows: list[tuple[float, float]]) -> None:
    """Print the means of both ratios."""
    for row, of in zip(zip(*rows, strict=True), ("f32", "OpenVINO"), strict=True):
        mean = math.exp(statistics.fmean(map(math.log, row)))
        print(f"geometric mean of {of}: {mean:.2f}, worst {max(row):.2f}")


if __name__ == "__main__":
    main()
