"""Kernel, instruction set, BLAS and threads, for --version -v."""

from __future__ import annotations


def describe_fallback() -> str:
    """Return a note that the compiled kernel was not built, or an empty text if it was."""
    from importlib.machinery import EXTENSION_SUFFIXES
    from pathlib import Path

    import deconv_ir

    # Importing the extension would import NumPy, which takes most of the time of --version.
    folder = Path(deconv_ir.__file__).with_name("kernels")
    if any((folder / f"_compiled{suffix}").exists() for suffix in EXTENSION_SUFFIXES):
        return ""
    return (
        "no compiled kernel in this installation: layers are computed with NumPy, which is slower"
    )


def describe_kernels() -> str:
    """Describe versions, kernel, BLAS and threads, one line each."""
    import os
    import platform

    import numpy as np

    from deconv_ir.kernels.info import kernel_info

    info = kernel_info()
    available = ", ".join(info.available) or "none: it was not built"
    return "\n".join(
        [
            f"python {platform.python_version()}, numpy {np.__version__}",
            f"kernel {info.kernel}"
            + (f" ({info.instruction_set})" if info.instruction_set else ""),
            f"compiled kernel for {available}",
            f"BLAS {info.blas}",
            f"threads {info.threads} of {len(os.sched_getaffinity(0))} cores",
        ]
    )
