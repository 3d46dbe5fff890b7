"""Windows of convolutions and poolings that fit at no size, or lie in the pads alone.

Measured with OpenVINO 2026.4, whose reader or CPU plugin refuses each of them.
"""

from __future__ import annotations

from typing import Final

from deconv_ir.findings import Finding, GraphLocation
from deconv_ir.ir.geometry import Dim, PadMode, bounds
from deconv_ir.ir.operation import Infos, Operation
from deconv_ir.ops.pooling.pooling import Pooling

NEGATIVE_PADS: Final = ("Convolution", "GroupConvolution", "BinaryConvolution")
"""Types whose negative pads this reader runs, and OpenVINO does not."""


def window_problem(layer: int, operation: Operation, inputs: Infos) -> Finding | None:
    """Return the first problem of the windows of the layer with an index."""
    shape = inputs[0].shape
    if shape is None or getattr(operation, "channels_last", False):
        return None
    spatial = shape[2:]
    kernel: tuple[Dim, ...]
    if isinstance(operation, Pooling):
        kernel = operation.kernel
    else:
        filter_ = inputs[1].shape
        kernel = () if filter_ is None else filter_[len(filter_) - len(spatial) :]
    explicit = operation.auto_pad is PadMode.EXPLICIT  # type: ignore[attr-defined]
    valid = operation.auto_pad is PadMode.VALID  # type: ignore[attr-defined]
    for axis, (extent, taps) in enumerate(zip(spatial, kernel, strict=False)):
        pads = [_at(operation, name, axis, 0) if explicit else 0 for name in _PADS]
        for name, pad in zip(_PADS, pads, strict=True):
            if pad < 0 and operation.type in NEGATIVE_PADS:
                return Finding(
                    f"{name} of a {operation.type} is {pad} on spatial axis {axis}, which OpenVINO "
                    "does not run",
                    GraphLocation(layer=layer, attribute=name),
                    expected=">= 0",
                    actual=str(pad),
                )
        if not isinstance(taps, int):
            continue
        effective = (taps - 1) * _at(operation, "dilations", axis, 1) + 1
        _, most = bounds(extent)
        if (explicit or valid) and most is not None and most + sum(pads) < effective:
            place = "kernel" if isinstance(operation, Pooling) else "pads_begin"
            return Finding(
                f"the effective kernel {effective} on spatial axis {axis} is larger than the "
                f"data, which has at most {most}, with pads {pads[0]} and {pads[1]}",
                GraphLocation(layer=layer, attribute=place),
                expected=f"<= {most + sum(pads)}",
                actual=str(effective),
            )
        if getattr(operation, "exclude_pad", False):
            for name, pad in zip(_PADS, pads, strict=True):
                if pad >= effective:
                    return Finding(
                        f"{name} {pad} on spatial axis {axis} is not smaller than the kernel "
                        f"{effective}: with exclude-pad, a window of pads alone has no mean",
                        GraphLocation(layer=layer, attribute=name),
                        expected=f"< {effective}",
                        actual=str(pad),
                    )
    return None


_PADS: Final = ("pads_begin", "pads_end")


def _at(operation: Operation, name: str, axis: int, default: int) -> int:
    """Return the number of an attribute for a spatial axis."""
    values = getattr(operation, name, None)
    return values[axis] if values and axis < len(values) else default
