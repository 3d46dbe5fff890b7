"""Random geometries through every kernel, against the loop oracle; not collected by pytest.

    python tests/kernels/fuzz.py --count 5000 --seed 1
    make fuzz-sanitized

Stops at the first difference and prints the seed and the problem.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

import numpy as np

from deconv_ir import kernels
from deconv_ir.kernels.runtime.extension import compiled_module

sys.path.insert(0, str(Path(__file__).parents[1]))
from kernels.cases import DTYPES, Case, draw, draw_leftovers, draw_odd


def check(case: Case, algorithm: str, scratch_bytes: int) -> None:
    """Compare a kernel with the loops."""
    if algorithm != "bf16":
        case.check(case.actual(algorithm=algorithm, scratch_bytes=scratch_bytes), algorithm)
    elif case.fits_bf16:
        kernel = case.kernel_of_bf16(scratch_bytes=scratch_bytes)
        case.rounded().check(kernel.run(case.data, case.pads_begin, case.output))


def main() -> None:
    """Run the fuzzer."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--algorithm", action="append", help="kernels; default: all")
    options = parser.parse_args()
    compiled = compiled_module()
    native = ["compiled", "direct", "winograd", "bf16"] if compiled else []
    algorithms = options.algorithm or [*native, "im2col", "gemm_col2im"]
    isas = compiled.isas() if compiled else []
    begin = time.perf_counter()
    for seed in range(options.seed, options.seed + options.count):
        rng = np.random.default_rng(seed)
        dtype = DTYPES[str(rng.choice(list(DTYPES)))]
        # Tiles sum many channels in several passes.
        channels = int(rng.choice([4, 4, 4, 30, 150]))
        axes = int(rng.integers(1, 5 if channels == 4 else 3 if channels == 30 else 2))
        if seed % 3 == 0:
            case = draw_odd(seed, dtype)
        elif seed % 3 == 1:
            case = draw(seed, dtype, axes, channels)
        else:  # mostly in the type that has most kernels
            case = draw_leftovers(seed, dtype if seed % 4 == 0 else DTYPES["float32"])
        # A kernel that computes one element at a time is slow, and small problems suffice for it.
        least = 0 if case.filter.size < 2_000 else 3
        scratch_bytes = int(rng.choice([1, 300, 5_000, 100_000, 400_000, 64 << 20][least:]))
        kernels.set_threads(int(rng.integers(1, 5)))
        for algorithm in algorithms:
            for isa in isas if algorithm in native else [""]:
                os.environ["DECONV_IR_ISA"] = isa
                try:
                    check(case, algorithm, scratch_bytes)
                except BaseException:
                    print(f"seed {seed}, {algorithm} {isa}, scratch {scratch_bytes}: {case}")
                    raise
    seconds = time.perf_counter() - begin
    print(f"{options.count} problems, kernels {algorithms} {isas}: no difference ({seconds:.0f} s)")


if __name__ == "__main__":
    main()
