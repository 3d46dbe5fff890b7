"""What computes: kernel, BLAS, threads; for --version -v."""

from __future__ import annotations

import os
import platform


def describe_kernels() -> str:
    """Describe versions, kernel, BLAS and threads, one line each."""
    import numpy as np
    from threadpoolctl import threadpool_info

    np.ones((1, 1)) @ np.ones((1, 1))
    lines = [
        f"python {platform.python_version()}, numpy {np.__version__}",
        "kernel col2im on BLAS",
    ]
    for library in threadpool_info():
        if library.get("user_api") == "blas":
            lines.append(
                f"BLAS {library.get('internal_api')} {library.get('version')} "
                f"({library.get('architecture', 'unknown architecture')}), "
                f"{library.get('num_threads')} threads"
            )
    lines.append(f"cores {len(os.sched_getaffinity(0))}")
    return "\n".join(lines)
