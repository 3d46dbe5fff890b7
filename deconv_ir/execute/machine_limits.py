"""The arithmetic and memory rates that this machine reaches, for comparison with layers."""

from __future__ import annotations

from time import perf_counter
from typing import NamedTuple

_EXTENT = 1024
_COPIED = 32 << 20
_ROUNDS = 4


class MachineLimits(NamedTuple):
    """Rates of this machine on the threads in use."""

    operations: float
    """Operations per second in f32, a multiply-add counted as two, of a matrix product."""
    bytes: float
    """Bytes per second, read and written, of a copy that is larger than the caches."""

    def share(self, operations: float | None, moved: float | None, seconds: float) -> float | None:
        """Return the larger share of the two rates; more than 1 for tensors that stay in a cache.

        `operations` are arithmetic operations, `moved` are bytes; None if neither is known.

        Examples
        --------
        >>> MachineLimits(100e9, 10e9).share(20e9, 5e9, 1.0)
        0.5
        """
        rates = (operations, self.operations), (moved, self.bytes)
        shares = [amount / limit / seconds for amount, limit in rates if amount and seconds]
        return max(shares, default=None)


def measure_limits() -> MachineLimits:
    """Measure both rates, the best of a few runs; takes about a tenth of a second."""
    import numpy as np

    from deconv_ir.kernels import get_threads
    from deconv_ir.kernels.products import matmul
    from deconv_ir.kernels.runtime.parallel import run_jobs

    matrix = np.ones((_EXTENT, _EXTENT), np.float32)
    threads = get_threads()
    source = np.ones((threads, _COPIED // threads), np.uint8)
    target = np.empty_like(source)

    def copy(job: int) -> None:
        np.copyto(target[job], source[job])

    product = copied = float("inf")
    for _ in range(_ROUNDS):
        began = perf_counter()
        matmul(matrix, matrix)
        product = min(product, perf_counter() - began)
        began = perf_counter()
        run_jobs(lambda: copy, threads, threads)
        copied = min(copied, perf_counter() - began)
    return MachineLimits(2 * _EXTENT**3 / product, 2 * source.size / copied)
