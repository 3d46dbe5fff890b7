"""What the axes of an example come down to, for a picture."""

from __future__ import annotations

from typing import Any, NamedTuple

from deconv_ir.errors import DeconvError
from deconv_ir.ir.geometry import natural_extent
from deconv_ir.spec_examples.golden import geometry_of
from deconv_ir.spec_examples.specfile import ExampleSpec

MAX_CELLS = 48
"""Positions on an axis beyond which a picture shows nothing any more."""


class Line(NamedTuple):
    """What one axis comes down to; the names are those of `geometry`."""

    data: int
    kernel: int
    stride: int
    dilation: int
    output_padding: int
    pad_begin: int
    pad_end: int
    output: int

    @property
    def natural(self) -> int:
        """F: the positions that the filter reaches."""
        return natural_extent(self.data, self.kernel, self.stride, self.dilation)

    @property
    def first(self) -> int:
        """The first position of the picture: before 0 where zeros are added."""
        return min(0, self.pad_begin)

    @property
    def stop(self) -> int:
        """The position after the last of the picture."""
        return max(self.natural + self.output_padding, self.pad_begin + self.output)

    def sources(self, position: int) -> list[int]:
        """Return the data elements that add to a position."""
        return [
            x
            for x in range(self.data)
            if any(self.stride * x + self.dilation * k == position for k in range(self.kernel))
        ]


def lines_of(example: ExampleSpec) -> tuple[Line, ...]:
    """Return what the axes of an example come down to.

    Raises
    ------
    DeconvError
        The operation has no such axes, or they are too long to be drawn.
    """
    geometry = geometry_of(example, example.profiles[0])
    operation: Any = example.operation
    data, filter_ = operation.views(example.infos, len(geometry))
    lines = tuple(
        Line(
            x,
            k,
            a.stride,
            a.dilation,
            a.output_padding,
            g.pad_begin,
            g.pad_end,
            g.output,
        )
        for a, g, x, k in zip(
            operation.axes(len(geometry)), geometry, data.spatial, filter_.kernel, strict=True
        )
    )
    longest = max(line.stop - line.first for line in lines)
    if longest > MAX_CELLS:
        raise DeconvError(
            f"example {example.name!r} is too large for a picture: {longest} positions on an "
            f"axis, {MAX_CELLS} can be shown",
            hint="diagram = false makes the example without one",
            rule="spec",
        )
    return lines
