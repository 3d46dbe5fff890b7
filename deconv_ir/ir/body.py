"""The bodies of If, Loop and TensorIterator: graphs that a layer runs, and how they are joined.

Source: OpenVINO operation specifications, If-8, Loop-5, TensorIterator-1.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, NamedTuple

from deconv_ir.ir.graph import Graph

NONE = -1
"""The index of a missing port of the layer, or of a missing layer of the body."""


class Slices(NamedTuple):
    """The slicing of an axis into parts, one for each iteration.

    Attributes
    ----------
    axis : int
    start, end : int
        The range of the axis; a negative number counts from its end, -1 is the end itself.
    stride : int
        Step from one part to the next; negative: from the end of the range to its start.
    part_size : int
        Extent of a part.

    Examples
    --------
    >>> from deconv_ir.operations import Slices
    >>> rows = Slices(axis=0, start=0, end=-1, stride=2, part_size=2)
    >>> rows.parts(6), rows.part(6, 1)
    (3, slice(2, 4, None))
    """

    axis: int
    start: int = 0
    end: int = -1
    stride: int = 1
    part_size: int = 1

    def range(self, extent: int) -> tuple[int, int]:
        """Return the begin and the end of the range on an axis of this extent."""
        first, last = (x + extent + 1 if x < 0 else x for x in (self.start, self.end))
        return (last, first) if self.stride < 0 else (first, last)

    def parts(self, extent: int) -> int | None:
        """Return the number of parts; None if the range does not divide into whole parts."""
        first, last = self.range(extent)
        step = abs(self.stride)
        if not step or not 0 <= first <= last <= extent or (last - first) % step:
            return None
        return (last - first) // step

    def part(self, extent: int, iteration: int) -> slice:
        """Return the part of an iteration."""
        first, last = self.range(extent)
        if self.stride < 0:
            stop = last + iteration * self.stride
            return slice(stop - self.part_size, stop)
        start = first + iteration * self.stride
        return slice(start, start + self.part_size)


class Joint(NamedTuple):
    """An entry of a port map: a port of the layer, and a Parameter or Result of the body.

    Attributes
    ----------
    port : int
        Position among the inputs or outputs of the layer; `NONE`: no such port.
    inner : int
        Index of the layer in the body; `NONE`: the body has no such Parameter or Result.
    slices : Slices or None
        None: the tensor goes in or out as a whole.
    purpose : str
        ``current_iteration``, ``execution_condition`` or empty.

    Examples
    --------
    >>> from deconv_ir.operations import Joint
    >>> Joint(port=1, inner=0).slices is None  # the tensor goes in as a whole
    True
    """

    port: int
    inner: int
    slices: Slices | None = None
    purpose: str = ""


@dataclasses.dataclass(frozen=True, kw_only=True)
class Body:
    """A graph that a layer runs.

    Attributes
    ----------
    name : str
        ``body``, ``then_body`` or ``else_body``.
    graph : Graph
    inputs, outputs : tuple of Joint
        The port map.
    back_edges : tuple of (int, int)
        A Result, and the Parameter that takes its value in the next iteration.

    Examples
    --------
    >>> import deconv_ir
    >>> from deconv_ir.operations import Body, Joint
    >>> graph = deconv_ir.load("samples/block/block.xml").graph
    >>> Body(name="then_body", graph=graph, inputs=(Joint(1, 0),), outputs=(Joint(0, 8),)).results
    (8,)
    """

    name: str
    graph: Graph
    inputs: tuple[Joint, ...] = ()
    outputs: tuple[Joint, ...] = ()
    back_edges: tuple[tuple[int, int], ...] = ()

    @functools.cached_property
    def changing(self) -> frozenset[int]:
        """The Parameters that take another tensor in each iteration."""
        return frozenset(
            joint.inner for joint in self.inputs if joint.slices is not None or joint.purpose
        ).union(end for _, end in self.back_edges)

    @functools.cached_property
    def results(self) -> tuple[int, ...]:
        """The Results that the outputs or back edges use, in order."""
        used = {joint.inner for joint in self.outputs} | {start for start, _ in self.back_edges}
        return tuple(sorted(used - {NONE}))

    def replace(self, **changes: Any) -> Body:
        """Return a body with other values in some fields."""
        return dataclasses.replace(self, **changes)

    def purpose(self, name: str) -> int:
        """Return the Parameter or Result of a purpose; `NONE` if the port map has no such entry."""
        joints = (*self.inputs, *self.outputs)
        return next((joint.inner for joint in joints if joint.purpose == name), NONE)

    def error(self) -> str | None:
        """Return the first problem of the port map or the back edges; None if both are valid."""
        for side, joints in (("input", self.inputs), ("output", self.outputs)):
            for joint in joints:
                if joint.inner == NONE:
                    type_name = "Parameter" if side == "input" else "Result"
                    return (
                        f"the port map names an {side} of the {self.name} that is not a {type_name}"
                    )
                if joint.port == NONE and not joint.purpose:
                    return f"the port map of the {self.name} names an {side} port that is missing"
        if any(NONE in edge for edge in self.back_edges):
            return f"a back edge of the {self.name} must lead from a Result to a Parameter"
        filled = {joint.port for joint in self.outputs} - {NONE}
        missing = set(range(len(filled))) - filled
        if missing:
            return f"the port map of the {self.name} fills no output {min(missing)}"
        given = {joint.inner for joint in self.inputs}
        for index, layer in enumerate(self.graph.layers):
            if layer.type == "Parameter" and index not in given:
                return f"no port map brings data to the Parameter {layer.name!r} of the {self.name}"
        return None
