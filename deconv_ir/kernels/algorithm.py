"""The choice of the kernel: a pure function, which the caller or the environment overrides."""

from __future__ import annotations

import enum
import os
from typing import Any

import numpy as np

from deconv_ir.errors import SettingError
from deconv_ir.kernels.native import WinogradUse, supports
from deconv_ir.kernels.problem import Problem
from deconv_ir.kernels.runtime.extension import compiled_module


class Algorithm(enum.Enum):
    """The kernels."""

    NUMPY = "numpy"
    IM2COL = "im2col"
    GEMM_COL2IM = "gemm_col2im"
    COMPILED = "compiled"
    DIRECT = "direct"
    WINOGRAD = "winograd"


NATIVE = {
    Algorithm.COMPILED: WinogradUse.BY_COST,
    Algorithm.DIRECT: WinogradUse.NEVER,
    Algorithm.WINOGRAD: WinogradUse.ALWAYS,
}
"""The algorithms of the compiled kernel, and their use of Winograd."""


def choose_algorithm(problem: Problem, dtype: np.dtype[Any], *, compiled: bool) -> Algorithm:
    """Choose the kernel for a problem; `compiled`: whether the compiled kernel is available."""
    return Algorithm.COMPILED if compiled and supports(problem, dtype) else Algorithm.NUMPY


def wanted_algorithm(algorithm: str) -> Algorithm | None:
    """Return the kernel that the caller, or else DECONV_IR_KERNEL, requests; None: choose."""
    source = "algorithm"
    if algorithm == "auto":
        algorithm, source = os.environ.get("DECONV_IR_KERNEL", "") or "auto", "DECONV_IR_KERNEL"
    if algorithm == "auto":
        return None
    try:
        wanted = Algorithm(algorithm)
    except ValueError:
        names = ", ".join(["auto", *(a.value for a in Algorithm)])
        message = f"{source}: unknown algorithm {algorithm!r} (expected one of {names})"
        raise SettingError(message) from None
    if wanted in NATIVE and compiled_module() is None:
        raise SettingError(f"{source}: no compiled kernel in this installation")
    return wanted


def preferred_algorithm() -> Algorithm:
    """Return the algorithm of f32 layers in this process; DECONV_IR_KERNEL may set it."""
    problem = Problem(1, 1, 1, (1,), (1,), (1,))
    compiled = compiled_module() is not None
    return wanted_algorithm("auto") or choose_algorithm(
        problem, np.dtype(np.float32), compiled=compiled
    )
