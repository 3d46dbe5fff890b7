"""Verdicts on converted networks: no side may be called wrong unless it is.

python bench/verdicts.py NETWORKS/ --output out/bench/verdicts.json
python bench/verdicts.py NETWORKS/ --setting INFERENCE_PRECISION_HINT=bf16

Each .xml below a folder (with its .onnx, if there is one, in onnxruntime) runs here and in OpenVINO
on the arrays NAME-0.npy, NAME-1.npy ... next to it, or on random ones; outputs of torch are
NAME.torch-0.npy ... (`bench/converted.py` writes such networks).  The table has the number of
tensors, of those where a side is wrong or not judged, the largest deviation in units of its
allowance, and the time of the comparison with and without the verdict.  The exit code is 1 if any
tensor is wrong: look at the sentence, and compute the element exactly.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

import deconv_ir


def main() -> None:
    """Judge the networks, print a table and write it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, nargs="+")
    parser.add_argument("--output", type=Path, default=Path("out/bench/verdicts.json"))
    parser.add_argument("--setting", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--time", action="store_true", help="compare with OpenVINO's whole process")
    options = parser.parse_args()
    settings = dict(pair.split("=", 1) for pair in options.setting)
    rows = []
    for folder in options.folder:
        for path in sorted(folder.rglob("*.xml")) if folder.is_dir() else [folder]:
            runtimes: list[tuple[str, Path | None]] = [("openvino", None)]
            if path.with_suffix(".onnx").exists():
                runtimes.append(("onnxruntime", path.with_suffix(".onnx")))
            if list(path.parent.glob(f"{path.stem}.torch-*.npy")):
                runtimes.append(("torch", None))
            for runtime, second in runtimes:
                row = judge(path, second, runtime, settings)
                if options.time and runtime == "openvino":
                    row |= process_times(path)
                rows.append(row)
                print(line(row), flush=True)
    options.output.parent.mkdir(parents=True, exist_ok=True)
    options.output.write_text(json.dumps(rows, indent=2) + "\n")
    if any(row["wrong"] != [0, 0] for row in rows):
        sys.exit(1)


def judge(
    path: Path, second: Path | None, runtime: str, settings: dict[str, str]
) -> dict[str, Any]:
    """Compare one network, with and without a verdict."""
    model = deconv_ir.load(path, warn=False)
    inputs = arrays(model, path)
    against: Any = runtime
    if runtime == "torch":
        files = sorted(path.parent.glob(f"{path.stem}.torch-*.npy"))
        against = dict(zip(model.outputs, map(np.load, files), strict=True))
    took = []
    for verdict in (False, True):
        start = time.perf_counter()
        found = deconv_ir.diff(
            path, second, inputs, against=against, verdict=verdict, settings=settings
        )
        took.append(time.perf_counter() - start)
    assert found.verdict is not None
    layers = found.verdict.layers
    sides = [[layer.a for layer in layers], [layer.b for layer in layers]]
    return {
        "network": path.stem,
        "runtime": runtime,
        "tensors": len(layers),
        "wrong": [sum(side.right is False for side in one) for one in sides],
        "not judged": [sum(side.right is None for side in one) for one in sides],
        "types not judged": sorted(
            {layer.type for layer in layers if None in (layer.a.right, layer.b.right)}
        ),
        "times": [max((side.times for side in one if side.right), default=0.0) for one in sides],
        "seconds": took,
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10,
        "sentence": found.verdict.sentence,
    }


_OPENVINO = """
import sys, numpy, openvino
settings = {"INFERENCE_PRECISION_HINT": "f32"}
model = openvino.Core().compile_model(sys.argv[1], "CPU", settings)
model([numpy.load(path) for path in sys.argv[2:]])
"""


def process_times(path: Path) -> dict[str, Any]:
    """Return the seconds of processes, the least of three: OpenVINO alone, and deconv-diff."""
    files = [str(file) for file in sorted(path.parent.glob(f"{path.stem}-[0-9]*.npy"))]
    command = Path(sys.executable).with_name("deconv-diff")
    given = [word for file in files for word in ("--input", file)]
    diff = [command, path, *given, "--against", "openvino", "--verdict", "always"]
    found = []
    for words in ([sys.executable, "-c", _OPENVINO, str(path), *files], diff):
        took = []
        for _ in range(3):
            start = time.perf_counter()
            subprocess.run(words, check=False, capture_output=True)
            took.append(time.perf_counter() - start)
        found.append(min(took))
    return {"processes": found}


def arrays(model: deconv_ir.Model, path: Path) -> list[np.ndarray]:
    """Return the arrays next to a network, or random ones."""
    stored = sorted(path.parent.glob(f"{path.stem}-[0-9]*.npy"))
    if len(stored) == len(model.inputs):
        return [np.load(file) for file in stored]
    rng = np.random.default_rng(0)
    shapes = [port.shape for port in model.inputs.values()]
    return [
        rng.standard_normal([d if isinstance(d, int) else 1 for d in shape or ()]).astype(
            np.float32
        )
        for shape in shapes
    ]


def line(row: dict[str, Any]) -> str:
    """Return a row of the table."""
    plain, judged = row["seconds"]
    whole = ""
    if "processes" in row:
        alone, diff = row["processes"]
        whole = (
            f"\n    OpenVINO's process {alone:.2f} s, deconv-diff {diff:.2f} s: x{diff / alone:.1f}"
        )
    return (
        f"{row['network']:18s} {row['runtime']:11s} {row['tensors']:4d} tensors  "
        f"wrong {row['wrong']}  not judged {row['not judged']} {row['types not judged']}  "
        f"share of the allowance {row['times'][0]:.2f} {row['times'][1]:.2f}  "
        f"{plain:.1f} s, with verdict {judged:.1f} s, {row['peak']} MiB\n"
        f"    {row['sentence']}{whole}"
    )


if __name__ == "__main__":
    main()
