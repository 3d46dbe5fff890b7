"""The names of the algorithms, and the one that the caller or the environment requests."""

from __future__ import annotations

import enum
import os

from deconv_ir.errors import SettingError
from deconv_ir.kernels.runtime.extension import compiled_module


class Algorithm(enum.Enum):
    """The algorithms: NumPy's methods, and those of the compiled kernel."""

    NUMPY = "numpy"
    IM2COL = "im2col"
    GEMM_COL2IM = "gemm_col2im"
    COMPILED = "compiled"
    """Direct sums or Winograd, by cost."""
    DIRECT = "direct"
    WINOGRAD = "winograd"
    """Winograd whenever possible."""


NATIVE = (Algorithm.COMPILED, Algorithm.DIRECT, Algorithm.WINOGRAD)
"""The algorithms of the compiled kernel."""


def wanted_algorithm(algorithm: str) -> Algorithm | None:
    """Return the kernel that the caller, or else DECONV_IR_KERNEL, requests; None: choose."""
    given_by = "algorithm"
    if algorithm == "auto":
        algorithm, given_by = os.environ.get("DECONV_IR_KERNEL", "") or "auto", "DECONV_IR_KERNEL"
    if algorithm == "auto":
        return None
    try:
        wanted = Algorithm(algorithm)
    except ValueError:
        names = ", ".join(["auto", *(a.value for a in Algorithm)])
        message = f"{given_by}: unknown algorithm {algorithm!r} (expected one of {names})"
        raise SettingError(message) from None
    if wanted in NATIVE and compiled_module() is None:
        raise SettingError(f"{given_by}: no compiled kernel in this installation")
    return wanted


def preferred_algorithm() -> Algorithm:
    """Return the algorithm of f32 layers in this process; DECONV_IR_KERNEL may set it."""
    compiled = compiled_module() is not None
    return wanted_algorithm("auto") or (Algorithm.COMPILED if compiled else Algorithm.NUMPY)
