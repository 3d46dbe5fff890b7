"""Kernel, instruction set, BLAS and threads, for --version -v."""

from __future__ import annotations


def describe_fallback(*, load: bool) -> str:
    """Return a note that the compiled kernel is missing, or an empty text if it is not.

    Only with `load` is a kernel that was built for other sources, or cannot be loaded, noticed.
    """
    if load:
        from deconv_ir.kernels.runtime.extension import missing_kernel

        reason = missing_kernel()
    else:
        reason = "" if _was_built() else "no compiled kernel in this installation"
    if not reason:
        return ""
    how = (
        "'pip install --editable .' in the checkout, or 'pip install --force-reinstall .', "
        "builds it anew"
        if _was_built()
        else "a C compiler and 'pip install --force-reinstall .' in a checkout, or a wheel, add it"
    )
    return f"{reason}: layers are computed with NumPy, which is slower ({how})"


def _was_built() -> bool:
    """Whether the file of the compiled kernel exists."""
    from importlib.machinery import EXTENSION_SUFFIXES
    from pathlib import Path

    import deconv_ir

    # Importing the extension would import NumPy, which takes most of the time of --version.
    folder = Path(deconv_ir.__file__).with_name("kernels")
    return any((folder / f"_compiled{suffix}").exists() for suffix in EXTENSION_SUFFIXES)


def note_fallback() -> None:
    """Say on standard error, once for each installation and reason, that NumPy computes."""
    import contextlib
    import os
    from pathlib import Path

    from .common import note

    if os.environ.get("DECONV_IR_KERNEL") or not (text := describe_fallback(load=True)):
        return
    base = os.environ.get("XDG_CACHE_HOME")
    said = (Path(base) if base else Path.home() / ".cache") / "deconv-ir" / "no-compiled-kernel"
    here = f"{Path(__file__).parents[1]}: {' '.join(text.split())}"
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
    from deconv_ir.kernels.runtime.extension import missing_kernel

    info = kernel_info()
    available = ", ".join(info.available) or f"none: {missing_kernel()}"
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
