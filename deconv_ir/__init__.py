"""Loader, shape linter and executor for OpenVINO-style XML IR.

    >>> import deconv_ir
    >>> model = deconv_ir.load("model.xml")            # doctest: +SKIP
    >>> model.run({"x": array})                        # doctest: +SKIP

Built around transposed convolution: OpenVINO ConvolutionBackpropData-1 and
GroupConvolutionBackpropData-1, oneDNN Graph ConvTranspose-1 and
ConvolutionBackwardData.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from deconv_ir.errors import (
    AttributeValueError,
    DeconvError,
    InputError,
    IRError,
    OutputError,
    ResourceError,
    SettingError,
    ShapeError,
    UnsupportedError,
    WeightsError,
)
from deconv_ir.ir.findings import Finding, Severity
from deconv_ir.ir.geometry import Interval, Semantics
from deconv_ir.linter import lint
from deconv_ir.version import __version__

if TYPE_CHECKING:
    from deconv_ir.functional import conv_transpose
    from deconv_ir.model import IRWarning, Model, load, save

__all__ = [
    "AttributeValueError",
    "DeconvError",
    "Finding",
    "IRError",
    "IRWarning",
    "InputError",
    "Interval",
    "Model",
    "OutputError",
    "ResourceError",
    "Semantics",
    "SettingError",
    "Severity",
    "ShapeError",
    "UnsupportedError",
    "WeightsError",
    "__version__",
    "conv_transpose",
    "lint",
    "load",
    "save",
]

# What the linter does not need is imported when it is asked for.
_LATER = {
    "IRWarning": "model",
    "Model": "model",
    "conv_transpose": "functional",
    "load": "model",
    "save": "model",
}


def __getattr__(name: str) -> Any:
    module = _LATER.get(name)
    if module is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    value = getattr(importlib.import_module(f".{module}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
