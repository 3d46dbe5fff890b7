"""Pictures (SVG) of examples."""

from __future__ import annotations

from typing import Any

from deconv_ir.drawing import alignment
from deconv_ir.drawing.alignment import MAX_CELLS, AxisPicture
from deconv_ir.drawing.svg import write_svg
from deconv_ir.errors import DeconvError
from deconv_ir.hints import Hint
from deconv_ir.spec_examples.golden import geometry_of
from deconv_ir.spec_examples.specfile import ExampleSpec


def lines_of(example: ExampleSpec) -> tuple[AxisPicture, ...]:
    """Return the numbers of an example's axes."""
    geometry = geometry_of(example, example.profiles[0])
    operation: Any = example.operation
    data, filter_ = operation.dims(example.infos, len(geometry))
    lines = tuple(
        AxisPicture.of(*numbers)
        for numbers in zip(
            operation.axes(len(geometry)), geometry, data.spatial, filter_.kernel, strict=True
        )
    )
    longest = max(line.stop - line.first for line in lines)
    if longest > MAX_CELLS:
        raise DeconvError(
            f"example {example.name!r} is too large for a picture: {longest} positions on an "
            f"axis, {MAX_CELLS} can be shown",
            hint=Hint.WITHOUT_DIAGRAM(),
            rule="spec",
        )
    return lines


def draw(example: ExampleSpec) -> bytes:
    """Draw an example as SVG, the same on every run."""
    return write_svg(alignment.draw(lines_of(example), example.title)).encode()
