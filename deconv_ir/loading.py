"""Reading a model from files, and writing it."""

from __future__ import annotations

import os
import warnings
from pathlib import Path
from typing import TYPE_CHECKING

from deconv_ir.errors import ShapeError
from deconv_ir.findings import Finding, IRWarning
from deconv_ir.formats.openvino_xml import OPENVINO_XML
from deconv_ir.formats.reading import Readable, compare_size, read_graph, with_weights
from deconv_ir.formats.registry import format_of_suffix
from deconv_ir.ir.dtypes import F16
from deconv_ir.ir.graph import Graph, walk_graphs
from deconv_ir.ir.options import Accuracy, Semantics
from deconv_ir.limits import DEFAULT_LIMITS, Limits
from deconv_ir.model import Model

if TYPE_CHECKING:
    from deconv_ir.formats.format import Format
    from deconv_ir.formats.onednn_json.overrides import Overrides

__all__ = ["load", "save"]


def load(
    path: Readable,
    weights: Readable | None = None,
    semantics: Semantics | str = Semantics.SPEC,
    *,
    strict: bool = False,
    warn: bool = True,
    limits: Limits = DEFAULT_LIMITS,
    scratch_bytes: int = 64 << 20,
    memory_limit: int | None = None,
    accuracy: Accuracy | str = Accuracy.FAST,
    overrides: Overrides | None = None,
) -> Model:
    """Load an IR (`net version` 2 to 7, 10 or 11, or a single `layer`) or a oneDNN Graph file.

    Parameters
    ----------
    path : path-like or bytes
        The .xml or .json file, or its contents.
    weights : path-like or bytes, optional
        The .bin file, or its contents; by default the file next to the .xml.
        Only the constants in use are read into memory.
    semantics : Semantics or str
        ``spec`` or ``openvino``: the rule for cases in which the two differ.
    strict : bool
        Whether declared dims that differ from the computed ones are an error.
    warn : bool
        Whether to emit a warning (`IRWarning`) for each finding.
    limits : Limits
        Sizes above which the file is rejected.
    scratch_bytes : int
        Bound on a kernel's temporary memory, in bytes.
    memory_limit : int, optional
        Bytes that a run may use; by default the memory available when it starts.
    accuracy : Accuracy or str
        ``fast``, or ``direct``: convolutions are summed directly, without
        Winograd.  ``docs/numerics.md`` states the error bounds of both.  ``float64``: all layers
        are computed in f64, and so are outputs; ``float64-rounded`` rounds these once.  ``bf16``:
        what constant filters and matrices multiply may be rounded to bf16, where that is faster.
    overrides : Overrides, optional
        Changes to a oneDNN Graph file: shapes, attributes, element types.

    Returns
    -------
    Model

    Raises
    ------
    IRError
        The file is not an IR, or its graph is inconsistent.
    AttributeValueError
        An attribute is missing, of the wrong form or out of range.
    WeightsError
        The weights file is missing or too short.
    ShapeError
        The inputs of a layer do not fit it, or `strict` found a difference.

    Examples
    --------
    >>> import deconv_ir
    >>> deconv_ir.load("samples/block/block.xml")
    <Model 'block' (x: f32[1,8,16,16]) -> (y: f32[1,4,32,32])>
    >>> from pathlib import Path
    >>> xml, weights = Path("samples/block/block.xml"), Path("samples/block/block.bin")
    >>> model = deconv_ir.load(xml.read_bytes(), weights.read_bytes())
    """
    chosen, algorithms = Semantics.of(semantics), Accuracy.of(accuracy)
    read = read_graph(path, limits, overrides)
    graph, opened = with_weights(read, weights, chosen, algorithms)
    model = Model(graph, opened, chosen, scratch_bytes, memory_limit, algorithms)
    whole = [compare_size(read, weights)]
    if chosen is Semantics.SPEC and graph.ir_version is not None:
        whole += _compare_types(graph)
    model.add_findings(finding for finding in whole if finding is not None)
    for finding in model.findings:
        if strict and finding.rule.startswith("declared-"):
            raise ShapeError(
                finding.message,
                file=finding.file,
                line=finding.line,
                layer=finding.layer,
                expected=finding.expected,
                actual=finding.actual,
                rule=finding.rule,
            )
        if warn:
            warnings.warn(str(finding), IRWarning, stacklevel=2)
    return model


def _compare_types(graph: Graph) -> list[Finding | None]:
    """Report the element types that OpenVINO changes."""
    found: list[Finding | None] = []
    if graph.ir_version == 10:
        from deconv_ir.formats.openvino_xml.version10 import compare_types

        found.append(compare_types(graph))
    ports = (port for part in walk_graphs(graph) for layer in part.layers for port in layer.outputs)
    if any(port.element_type is F16 for port in ports):
        from deconv_ir.ops.precision import compare_rounding

        found.append(compare_rounding(graph))
    return found


def save(model: Model, path: str | os.PathLike[str]) -> None:
    """Write a model, and its weights file next to it.

    Parameters
    ----------
    model : Model
        Layers, attributes and constants are written unchanged, for any `semantics`; those of a
        oneDNN Graph file are converted to layers of opsets.
    path : path-like
        The file, whose suffix chooses its format: .xml, by default, with the weights in the same
        name with .bin; .json, a oneDNN Graph file, with its constants in the same name with .npz.

    Raises
    ------
    OutputError
        A file cannot be written.
    UnsupportedError
        An operation has no counterpart in the format.

    Examples
    --------
    >>> import deconv_ir
    >>> model = deconv_ir.load("samples/block/block.xml")
    >>> deconv_ir.save(model, "copy.xml")
    >>> deconv_ir.load("copy.xml").graph.layers[3].label
    "'up' (ConvolutionBackpropData, id 3)"
    """
    write_model(model, Path(path))


def write_model(model: Model, path: Path, target: Format | None = None) -> list[str]:
    """Write a model as `save` does; return the files that were written."""
    from deconv_ir.formats.conversion import write_graph

    chosen = target or format_of_suffix(path) or OPENVINO_XML
    return write_graph(model.graph.stored or model.graph, model.context.weights, path, chosen)
