"""Errors of whole networks against float64, here and in OpenVINO, at the widths of networks.py.

python bench/accuracy.py --output out/bench/accuracy.json

Torch computes each network in float64; its IR is run here and with OpenVINO in f32.  An error is
the largest over the outputs, relative to the largest element of the exact output.  Needs the
`peers` extra.  The exit code is 1 where a bound of docs/numerics.md is exceeded.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from networks import convert

from bench.published import PUBLISHED
from tests.peers.architectures import NETWORKS
from tests.peers.float64 import Errors, measure_errors


def main() -> None:
    """Measure the networks, print a table and write it as JSON."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, default=Path("out/bench/accuracy.json"))
    parser.add_argument("--network", action="append", help="only these")
    options = parser.parse_args()
    folder = options.output.with_suffix("") / "full"
    folder.mkdir(parents=True, exist_ok=True)
    rows: dict[str, Errors] = {}
    for network in (*NETWORKS, *PUBLISHED):
        if options.network and network.name not in options.network:
            continue
        saved = convert(network, folder, full=True, to_onnx=False)
        inputs = network.inputs(seed=2, full=True)
        errors = measure_errors(network.module(full=True), saved.path, inputs)
        rows[network.name] = errors
        print(
            f"{network.name:16s} ours {errors.ours:.1e}  OpenVINO {errors.openvino:.1e}  "
            f"ratio {errors.ratio:4.2f}{'' if errors.within_bounds else '  beyond the bounds'}",
            flush=True,
        )
    document = {name: errors._asdict() for name, errors in rows.items()}
    options.output.write_text(json.dumps(document, indent=2) + "\n")
    if not all(errors.within_bounds for errors in rows.values()):
        sys.exit(1)


if __name__ == "__main__":
    main()
