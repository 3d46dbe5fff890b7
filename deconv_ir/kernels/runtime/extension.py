"""The compiled extension, if it was built."""

from __future__ import annotations

import functools
import importlib
from types import ModuleType

from deconv_ir.kernels.runtime import interface


def compiled_module() -> ModuleType | None:
    """Return the extension module, or None if it cannot be used."""
    return load_extension()[0]


def missing_kernel() -> str:
    """Return why the compiled kernel cannot be used; an empty text if it can."""
    return load_extension()[1]


@functools.cache
def load_extension() -> tuple[ModuleType | None, str]:
    """Return the extension module, or None and why it cannot be used; once for a process."""
    name = "deconv_ir.kernels._compiled"
    try:
        module = importlib.import_module(name)
    except ModuleNotFoundError:
        return None, "no compiled kernel in this installation"
    except ImportError as error:
        return None, f"the compiled kernel cannot be loaded ({error})"
    # An editable install keeps an extension that was built from older sources.
    found = getattr(module, "INTERFACE", None)
    if found == interface.INTERFACE:
        return module, ""
    return None, (
        f"the compiled kernel has interface {found}, the sources have {interface.INTERFACE}"
    )
