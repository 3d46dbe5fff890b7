"""Loader, shape linter and executor for OpenVINO-style XML IR.

Built around transposed convolution: OpenVINO ConvolutionBackpropData-1 and
GroupConvolutionBackpropData-1, oneDNN Graph ConvTranspose-1 and
ConvolutionBackwardData.

Examples
--------
>>> import numpy as np
>>> import deconv_ir
>>> model = deconv_ir.load("samples/block/block.xml")
>>> model.run(np.zeros((1, 8, 16, 16), np.float32))["y"].shape
(1, 4, 32, 32)
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
from deconv_ir.version import __version__

if TYPE_CHECKING:
    from deconv_ir.bound import BoundModel
    from deconv_ir.compare.bisect import ToolError, bisect
    from deconv_ir.compare.culprit import Culprit
    from deconv_ir.compare.cut import Part, cut
    from deconv_ir.compare.diff import ModelDifference, diff
    from deconv_ir.compare.measure import SideVerdict
    from deconv_ir.compare.structure import Aspect, Difference
    from deconv_ir.compare.tensors import TensorDifference
    from deconv_ir.compare.thresholds import Failure, Metric, Threshold
    from deconv_ir.compare.verdict import LayerVerdict, ModelVerdict, SettingVerdict
    from deconv_ir.execute.plan import Plan, Step
    from deconv_ir.execute.profile import LayerTime, Profile
    from deconv_ir.findings import (
        Finding,
        Fix,
        GraphLocation,
        IRWarning,
        Severity,
        TextSpan,
    )
    from deconv_ir.formats.onednn_json.overrides import Overrides
    from deconv_ir.functional import conv_transpose
    from deconv_ir.hints import Advice, Hint
    from deconv_ir.ir.dtypes import ElementType
    from deconv_ir.ir.geometry import Interval, PadMode
    from deconv_ir.ir.graph import Edge, Graph, Info, Layer, Port, Topology
    from deconv_ir.ir.options import Accuracy, Semantics
    from deconv_ir.ir.regions import Blocker
    from deconv_ir.ir.symbolic_shapes import InferredShapes, SymbolicShapes
    from deconv_ir.kernels import get_threads, set_memory_pool_limit, set_threads
    from deconv_ir.limits import Limits
    from deconv_ir.linter import lint
    from deconv_ir.loading import load, save
    from deconv_ir.model import Model
    from deconv_ir.state import State
    from deconv_ir.tiling.tiled_run import Tile, TiledRun

# Models
__all__ = ["Accuracy", "BoundModel", "IRWarning", "Limits", "Model", "Overrides", "Semantics"]
__all__ += ["State", "load", "save"]
# The network
__all__ += ["Edge", "ElementType", "Graph", "Info", "Interval", "Layer", "Port"]
__all__ += ["InferredShapes", "SymbolicShapes", "Topology"]
# Running
__all__ += ["Blocker", "LayerTime", "PadMode", "Plan", "Profile", "Step", "Tile", "TiledRun"]
__all__ += ["conv_transpose"]
__all__ += ["get_threads", "set_memory_pool_limit", "set_threads"]
# Comparing
__all__ += ["Aspect", "Culprit", "Difference", "ModelDifference", "Part", "TensorDifference"]
__all__ += ["Failure", "LayerVerdict", "Metric", "ModelVerdict", "SettingVerdict", "SideVerdict"]
__all__ += ["Threshold"]
__all__ += ["ToolError", "bisect", "cut", "diff"]
# Checking
__all__ += ["Advice", "Finding", "Fix", "GraphLocation", "Hint", "Severity", "TextSpan", "lint"]
# Errors
__all__ += [
    "AttributeValueError",
    "DeconvError",
    "IRError",
    "InputError",
    "OutputError",
    "ResourceError",
    "SettingError",
    "ShapeError",
    "UnsupportedError",
    "WeightsError",
]
__all__ += ["__version__"]

# Imported on first use: the commands start faster.
_LATER = {
    "Accuracy": "ir.options",
    "Advice": "hints",
    "Aspect": "compare.structure",
    "Blocker": "ir.regions",
    "BoundModel": "bound",
    "Culprit": "compare.culprit",
    "LayerVerdict": "compare.verdict",
    "SettingVerdict": "compare.verdict",
    "SideVerdict": "compare.measure",
    "ModelVerdict": "compare.verdict",
    "Failure": "compare.thresholds",
    "Metric": "compare.thresholds",
    "Threshold": "compare.thresholds",
    "Difference": "compare.structure",
    "Edge": "ir.graph",
    "ElementType": "ir.dtypes",
    "Finding": "findings",
    "Fix": "findings",
    "Graph": "ir.graph",
    "GraphLocation": "findings",
    "Hint": "hints",
    "IRWarning": "findings",
    "Info": "ir.graph",
    "Interval": "ir.geometry",
    "Layer": "ir.graph",
    "LayerTime": "execute.profile",
    "Limits": "limits",
    "Model": "model",
    "ModelDifference": "compare.diff",
    "Overrides": "formats.onednn_json.overrides",
    "PadMode": "ir.geometry",
    "Part": "compare.cut",
    "Plan": "execute.plan",
    "Port": "ir.graph",
    "Profile": "execute.profile",
    "Semantics": "ir.options",
    "Severity": "findings",
    "State": "state",
    "Step": "execute.plan",
    "InferredShapes": "ir.symbolic_shapes",
    "SymbolicShapes": "ir.symbolic_shapes",
    "TensorDifference": "compare.tensors",
    "TextSpan": "findings",
    "Tile": "tiling.tiled_run",
    "TiledRun": "tiling.tiled_run",
    "ToolError": "compare.bisect",
    "Topology": "ir.graph",
    "bisect": "compare.bisect",
    "conv_transpose": "functional",
    "cut": "compare.cut",
    "diff": "compare.diff",
    "get_threads": "kernels",
    "lint": "linter",
    "load": "loading",
    "save": "loading",
    "set_memory_pool_limit": "kernels",
    "set_threads": "kernels",
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
