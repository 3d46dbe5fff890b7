"""Loader, shape linter and executor for OpenVINO-style XML IR.

    >>> import deconv_ir
    >>> model = deconv_ir.load("model.xml")            # doctest: +SKIP
    >>> model.run({"x": array})                        # doctest: +SKIP

Built around transposed convolution: OpenVINO ConvolutionBackpropData-1 and
GroupConvolutionBackpropData-1, oneDNN Graph ConvTranspose-1 and
ConvolutionBackwardData.
"""

from typing import TYPE_CHECKING, Any

from .api import IRWarning, Model, load, save
from .errors import (
    AttributeValueError,
    DeconvError,
    InputError,
    IRError,
    OutputError,
    ResourceError,
    ShapeError,
    UnsupportedError,
    WeightsError,
)
from .findings import Finding, Severity
from .geometry import Interval, Semantics

# The function shadows the subpackage of its name, which stays importable.
from .lint import lint
from .version import __version__

if TYPE_CHECKING:
    from .functional import conv_transpose

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


def __getattr__(name: str) -> Any:
    """Import what a command that runs a model does not need when it is asked for."""
    if name == "conv_transpose":
        from .functional import conv_transpose

        return conv_transpose
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
