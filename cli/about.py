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
        "no compiled kernel in this installation: layers are computed with NumPy, which is slower "
        "(a C compiler and 'pip install --force-reinstall .' in a checkout, or a wheel, add it)"
    )


def note_fallback() -> None:
    """Say on standard error, once for each installation, that the compiled kernel is missing."""
    import contextlib
    import os
    from pathlib import Path

    from .common import note

    text = describe_fallback()
    if not text or os.environ.get("DECONV_IR_KERNEL"):
        return
    base = os.environ.get("XDG_CACHE_HOME")
    said = (Path(base) if base else Path.home() / ".cache") / "deconv-ir" / "no-compiled-kernel"
    here = str(Path(__file__).parent)
    with contextlib.suppress(OSError, UnicodeDecodeError):
        if here in said.read_text().splitlines():
            return
    note(text)
    with contextlib.suppress(OSError):
        said.parent.mkdir(parents=True, exist_ok=True)
        with said.open("a") as stream:
            stream.write(f"{here}\n")


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
