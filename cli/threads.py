"""How many threads the computation may use."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator


@contextlib.contextmanager
def limit_threads(threads: int | None) -> Iterator[None]:
    """Bound the threads of kernels and BLAS within the block; None: as it is."""
    if threads is None:
        yield
        return
    import numpy as np
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    from deconv_ir.kernels import set_threads

    np.ones((1, 1)) @ np.ones((1, 1))  # the BLAS must be loaded to be bounded
    set_threads(threads)
    try:
        with threadpool_limits(threads):
            yield
    finally:
        set_threads(None)
