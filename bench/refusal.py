"""Time until an IR whose output would take 1 TiB is refused: python bench/refusal.py."""

from __future__ import annotations

import statistics
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support import IR

import deconv_ir

SIDE = 2**19
"""1 x 1 x 2^19 x 2^19 floats are a tebibyte; the input is one of them."""


def main() -> None:
    """Load and refuse the IR several times, and print the medians."""
    ir = IR()
    data, weights = ir.parameter("x", "1,1,1,1"), ir.const(np.ones((1, 1, 1, 1), np.float32))
    shape = ir.const(np.array([SIDE, SIDE], np.int64))
    attributes = {"strides": "1,1", "dilations": "1,1", "pads_begin": "0,0", "pads_end": "0,0"}
    ir.result(ir.layer("ConvolutionBackpropData", [data, weights, shape], attributes, names="y"))
    loading, refusing, message = [], [], ""
    with tempfile.TemporaryDirectory() as folder:
        path = ir.save(Path(folder))
        for _ in range(21):
            began = time.perf_counter()
            model = deconv_ir.load(path, warn=False)
            loaded = time.perf_counter()
            try:
                model.run([np.ones((1, 1, 1, 1), np.float32)])
            except deconv_ir.ResourceError as error:
                message = str(error).removeprefix(f"{path}: ")
            refusing.append(time.perf_counter() - loaded)
            loading.append(loaded - began)
    print(message)
    for what, times in (("loaded", loading), ("refused", refusing)):
        first, median = times[0] * 1000, statistics.median(times) * 1000
        print(f"{what} in {median:.1f} ms, the first time in {first:.1f} ms")


if __name__ == "__main__":
    main()
