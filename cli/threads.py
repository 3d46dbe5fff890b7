"""How many threads the computation may use."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator


@contextlib.contextmanager
def limit_threads(threads: int | None) -> Iterator[None]:
    """Bound the threads of the BLAS within the block; None: as it is."""
    if threads is None:
        yield
        return
    import numpy as np
    from threadpoolctl import threadpool_limits

    np.ones((1, 1)) @ np.ones((1, 1))  # the BLAS must be loaded to be bounded
    with threadpool_limits(threads):
        yield
