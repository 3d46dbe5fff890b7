"""The compiled extension, if it was built."""

from __future__ import annotations

import functools
import importlib
from types import ModuleType

_INTERFACE = 32
"""Version of the calls into C; to be raised, here and in module.c, when a call changes."""


@functools.cache
def compiled_module() -> ModuleType | None:
    """Return the extension module, or None if it was not built."""
    try:
        module = importlib.import_module("deconv_ir.kernels._compiled")
    except ImportError:
        return None
    # An extension built from older sources, as in an editable install, is ignored.
    return module if getattr(module, "INTERFACE", None) == _INTERFACE else None
