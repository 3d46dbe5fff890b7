"""The compiled extension, where it was built."""

from __future__ import annotations

import functools
import importlib
from types import ModuleType

_INTERFACE = 31
"""Of the calls into C; to be raised, here and in module.c, when one changes."""


@functools.cache
def compiled_module() -> ModuleType | None:
    """Return the extension module, or None where it was not built."""
    try:
        module = importlib.import_module("deconv_ir.kernels._compiled")
    except ImportError:
        return None
    # One that was built from older sources, as an editable install may leave it, is passed over.
    return module if getattr(module, "INTERFACE", None) == _INTERFACE else None
