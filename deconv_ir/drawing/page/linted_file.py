"""A file for the page: its graph, valid or not, its inference and its findings."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from deconv_ir.drawing.graph.bodies import DrawnBody, flatten
from deconv_ir.drawing.graph.sketch import Sketch, sketch_of
from deconv_ir.drawing.palette import MARKS
from deconv_ir.findings import Finding, GraphLocation
from deconv_ir.ir.graph import Graph
from deconv_ir.ir.infer import Inference, infer
from deconv_ir.ir.operation import Context, TensorInfo
from deconv_ir.ir.shapes import Shape


class LintedFile(NamedTuple):
    """A file, read and linted."""

    file: str
    """Name of the file in messages."""
    findings: Sequence[Finding]
    graph: Graph | None
    """The graph; None for a file without one."""
    inference: Inference | None
    context: Context
    """Semantics and constants."""

    @property
    def sketch(self) -> Sketch | None:
        """The layout of the graph; None for a file without layers."""
        if self.graph is None or self.inference is None or not self.graph.layers:
            return None
        return sketch_of(self.graph, self.inference.outputs, self.context)

    @property
    def parts(self) -> list[DrawnBody]:
        """The bodies that a sketch draws inside their layers."""
        if self.graph is None or self.inference is None:
            return []
        return flatten(self.graph, self.inference.outputs, self.context).parts

    def at_shapes(self, shapes: Mapping[str, Shape]) -> LintedFile:
        """Return a copy with other shapes of inputs, by name; findings are kept."""
        if self.graph is None:
            return self
        given = {}
        for index, layer in enumerate(self.graph.layers):
            names = [layer.name, *(name for port in layer.outputs for name in port.names)]
            wanted = next((shapes[name] for name in names if name in shapes), None)
            if layer.type == "Parameter" and wanted is not None and layer.outputs:
                given[index] = TensorInfo(wanted, layer.outputs[0].element_type)
        inference = infer(self.graph, self.context, given, collect=True)
        return self._replace(inference=inference)

    def layers_of_findings(self, parts: Sequence[DrawnBody] = ()) -> list[int]:
        """Return, for each finding, the index of its layer; -1 if it has none.

        With the bodies of a sketch, `parts`, indices are those of its flat graph.
        """
        if self.graph is None:
            return [-1] * len(self.findings)
        layers = self.graph.layers
        labels = {layer.label: index for index, layer in enumerate(layers)}
        ids = {layer.id: index for index, layer in enumerate(layers)}
        lines = [layer.line or 0 for layer in layers]
        found = []
        for finding in self.findings:
            location = finding.location
            index = labels.get(finding.layer or "", -1)
            if isinstance(location, GraphLocation):
                edges = (
                    ()
                    if location.edge is None
                    else self.graph.edges[location.edge : location.edge + 1]
                )
                meant = (
                    () if location.layer is None else layers[location.layer : location.layer + 1]
                )
                if edges:
                    index = ids.get(edges[0].to_layer, -1)
                elif meant and location.layer is not None and meant[0].label == finding.layer:
                    index = location.layer  # choose this one among layers with the same label
            around = bisect_right(lines, finding.line or 0) - 1
            if finding.layer and around >= 0 and layers[around].operation.bodies:
                index = _inside(around, finding, parts)
            found.append(index)
        return found

    def marks(self) -> dict[int, str]:
        """Return the border colour of each layer with findings: that of the worst finding."""
        found: dict[int, str] = {}
        sketch = self.sketch
        about = self.layers_of_findings(() if sketch is None else sketch.flat.parts)
        for severity, colour in MARKS.items():
            for finding, index in zip(self.findings, about, strict=True):
                if finding.severity is severity and index >= 0:
                    found[index] = colour
        return found


def _inside(owner: int, finding: Finding, parts: Sequence[DrawnBody]) -> int:
    """Return the layer of a finding in the bodies of a layer, or that layer itself."""
    owners, found, last = {owner}, owner, -1
    for part in parts:  # outer bodies come first
        if part.owner not in owners:
            continue
        owners.update(part.layers)
        for index, layer in zip(part.layers, part.body.graph.layers, strict=True):
            line = layer.line or 0
            if layer.label == finding.layer and last < line <= (finding.line or 0):
                found, last = index, line
    return found
