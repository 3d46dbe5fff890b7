"""One spatial axis of a layer in numbers, for pictures and pages."""

from __future__ import annotations

from typing import NamedTuple, Self

from deconv_ir.ir.geometry import Axis, AxisGeometry


class Window(NamedTuple):
    """All numbers of one spatial axis of a layer."""

    data: int
    kernel: int
    stride: int
    dilation: int
    output_padding: int
    pad_begin: int
    pad_end: int
    output: int

    @classmethod
    def of(cls, axis: Axis, found: AxisGeometry, data: int, kernel: int) -> Self:
        """Combine attributes, pads, the output extent, and the extents X and K."""
        given = (data, kernel, axis.stride, axis.dilation, axis.output_padding)
        return cls(*given, found.pad_begin, found.pad_end, found.output)
