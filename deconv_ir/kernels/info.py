"""The kernel and BLAS in use: for `--version -v`, bug reports and benchmarks."""

import contextlib
from typing import Any, NamedTuple

import numpy as np

from deconv_ir.kernels.algorithm import NATIVE, preferred_algorithm
from deconv_ir.kernels.runtime.cpu import instruction_set
from deconv_ir.kernels.runtime.extension import compiled_module
from deconv_ir.kernels.runtime.threads import get_threads


class KernelInfo(NamedTuple):
    """The kernel in use."""

    kernel: str
    """The algorithm of f32 layers: ``compiled``, ``numpy``, or the one that was requested."""
    instruction_set: str
    """Instruction set of the compiled kernel; empty if that is not used."""
    available: tuple[str, ...]
    """Instruction sets of the compiled kernel on this machine; empty if it was not built."""
    blas: str
    """NumPy's BLAS and its version."""
    threads: int

    def __str__(self) -> str:
        """One line."""
        isa = f" ({self.instruction_set})" if self.instruction_set else ""
        return f"kernel {self.kernel}{isa}, BLAS {self.blas}, {self.threads} threads"


def kernel_info() -> KernelInfo:
    """Return the kernel in use; DECONV_IR_KERNEL and DECONV_IR_ISA may set it."""
    module = compiled_module()
    algorithm = preferred_algorithm()
    return KernelInfo(
        algorithm.value,
        instruction_set() if algorithm in NATIVE else "",
        tuple(module.isas()) if module else (),
        _blas_name(),
        get_threads(),
    )


def _blas_name() -> str:
    """Name NumPy's BLAS and its version, as far as NumPy knows."""
    with contextlib.suppress(Exception):
        config: Any = np.show_config(mode="dicts")
        blas = config["Build Dependencies"]["blas"]
        return f"{blas['name']} {blas['version']}"
    return "unknown"
