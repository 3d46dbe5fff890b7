"""What a page shows: a graph, sound or broken, its inference and its findings."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from deconv_ir.errors import WeightsError
from deconv_ir.formats.openvino_xml.weights import Weights
from deconv_ir.ir.findings import Finding, Severity
from deconv_ir.ir.graph import Graph, GraphLocation
from deconv_ir.ir.infer import Inference, infer
from deconv_ir.ir.operation import ConstantSource, Context
from deconv_ir.limits import DEFAULT_LIMITS, Limits
from deconv_ir.linter.engine import check_bytes
from deconv_ir.linter.options import Options
from deconv_ir.view.sketch import Sketch, sketch_of

if TYPE_CHECKING:
    from deconv_ir.model import Model


MARKS = {Severity.ERROR: "#d13438", Severity.WARNING: "#d98e04", Severity.INFO: "#3d7edb"}


class Subject(NamedTuple):
    """What a page shows.

    Attributes
    ----------
    file : str
        The file, as messages name it.
    findings : sequence of Finding
    graph : Graph or None
        None for a file that holds none.
    inference : Inference or None
    context : Context
        Semantics and constants.
    """

    file: str
    findings: Sequence[Finding]
    graph: Graph | None
    inference: Inference | None
    context: Context

    @property
    def sketch(self) -> Sketch | None:
        """The layout of the graph; None for a file without layers."""
        if self.graph is None or self.inference is None or not self.graph.layers:
            return None
        return sketch_of(self.graph, self.inference.outputs)

    @property
    def marks(self) -> dict[int, str]:
        """The colour of the border of each layer that has findings."""
        found: dict[int, str] = {}
        for severity in (Severity.INFO, Severity.WARNING, Severity.ERROR):
            for finding in self.findings:
                index = self.layer_of(finding)
                if finding.severity is severity and index >= 0:
                    found[index] = MARKS[severity]
        return found

    def layer_of(self, finding: Finding) -> int:
        """Return the index of the layer that a finding is about; -1: of none."""
        if self.graph is None:
            return -1
        place = finding.place
        if isinstance(place, GraphLocation):
            layers = self.graph.layers
            index = place.layer
            if index is None and place.edge is not None and place.edge < len(self.graph.edges):
                wanted = self.graph.edges[place.edge].to_layer
                index = next((i for i, layer in enumerate(layers) if layer.id == wanted), None)
                return -1 if index is None else index
            # A finding of a body names a layer of the body.
            if index is not None and index < len(layers) and layers[index].label == finding.layer:
                return index
            return -1
        return self._labels().get(finding.layer or "", -1)

    def _labels(self) -> dict[str, int]:
        assert self.graph is not None
        return {layer.label: index for index, layer in enumerate(self.graph.layers)}


def read_subject(
    data: bytes,
    file: str,
    options: Options,
    weights: str | os.PathLike[str] | None = None,
    limits: Limits = DEFAULT_LIMITS,
) -> Subject:
    """Read and check a model; a broken one has findings, and as much of a graph as can be read.

    Parameters
    ----------
    data : bytes
        The file's contents.
    file : str
    options : Options
        Rules of the linter, and the semantics.
    weights : path-like, optional
        The .bin file.
    limits : Limits
    """
    result = check_bytes(data, file, options, weights, limits, resume=False)
    graph = None if result.document is None else result.document.graph
    source: ConstantSource | None = None
    if graph is not None and weights is not None and Path(weights).exists():
        with contextlib.suppress(WeightsError):  # a finding says so
            source = Weights(weights)
    context = Context(options.semantics, source)
    inference = None if graph is None else infer(graph, context, collect=True)
    return Subject(file, result.findings, graph, inference, context)


def subject_of(model: Model) -> Subject:
    """Return what a page shows of a model that is loaded."""
    inference = infer(model.graph, model.context, collect=True)
    file = model.graph.file or model.graph.name
    return Subject(file, model.findings, model.graph, inference, model.context)
