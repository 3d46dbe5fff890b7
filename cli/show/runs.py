"""The runs of deconv-show: tensors, times and differences for the page."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deconv_ir.errors import DeconvError, ResourceError
from deconv_ir.execute.effort import require_modest_run

from ..shared.common import Mistake, as_line, warn

if TYPE_CHECKING:
    from deconv_ir import Model
    from deconv_ir.drawing.graph.bodies import DrawnBody
    from deconv_ir.drawing.page.linted_file import LintedFile
    from deconv_ir.ir.dtypes import Array

    from .request import ShowRequest


def run_model(
    data: bytes, weights: str | None, linted: LintedFile, request: ShowRequest
) -> tuple[LintedFile, dict[str, Any]]:
    """Run a model for a request; return it with the shapes of the run, and the results.

    A model that cannot be loaded or run is shown without results, with a warning.
    """
    from ..shared.changes import changed
    from ..shared.inputs import gather_inputs
    from ..shared.shapes import input_shapes

    against = request.against
    if against == "onnxruntime":
        raise Mistake("--against onnxruntime requires an ONNX model (use deconv-diff)")
    if against is not None and against != "openvino" and not Path(against).is_file():
        raise Mistake(f"--against {against}: neither openvino, nor a model")
    try:
        model = _load(data, weights, linted)
    except DeconvError as error:
        return linted, _without(error)
    try:
        loaded, model = model, changed(model, request)
    except DeconvError as error:
        raise error.locate(file=linted.file) from error
    if model is not loaded:
        linted = linted._replace(graph=model.graph, context=model.context)
    shapes = input_shapes(model, request.shapes)
    if not request.runs:
        return linted.at_shapes(shapes), {}
    modest = request.random_inputs is not None and not request.shapes
    try:
        arrays = gather_inputs(model, request.inputs, request.random_inputs, shapes, modest=modest)
    except ResourceError as error:
        return linted, _without(error)
    others = _other_arrays(model, arrays, request.other_inputs)
    linted = linted.at_shapes({name: array.shape for name, array in arrays.items()})
    try:
        if modest and linted.inference is not None:
            require_modest_run(model.graph, linted.inference.outputs)
        return linted, _results(model, linted.parts, arrays, others, request, modest)
    except DeconvError as error:
        return linted, _without(error)


def _without(error: DeconvError) -> dict[str, Any]:
    warn(f"the page shows no run: {as_line(error)}")
    return {}


def _load(data: bytes, weights: str | None, linted: LintedFile) -> Model:
    from deconv_ir import load

    beside = weights if weights is not None and Path(weights).exists() else None
    try:
        return load(data, beside, linted.context.semantics, warn=False)
    except DeconvError as error:
        raise error.locate(file=linted.file) from error


def _other_arrays(
    model: Model, arrays: dict[str, Array], given: tuple[str, ...]
) -> dict[str, Array] | None:
    """Return the arrays of --other-input, and those of --input for the other inputs."""
    from ..shared.inputs import pair, read_input

    if not given:
        return None
    paths = pair("--other-input", given, list(model.inputs))
    return arrays | {name: read_input(path, name, model) for name, path in paths.items()}


def _results(
    model: Model,
    parts: Sequence[DrawnBody],
    arrays: dict[str, Array],
    others: dict[str, Array] | None,
    request: ShowRequest,
    modest: bool,
) -> dict[str, Any]:
    from ..shared.pages import progress
    from .results import differences_of, draw_tensors, profile

    shown = None if request.quiet else progress()
    pictures, runs = draw_tensors(model, arrays, others, request.max_size, shown, parts)
    found: dict[str, Any] = {"pictures": pictures, "runs": runs}
    if request.profile:
        found["profile"] = profile(model, arrays, parts)
    if (against := request.against) is not None:
        from deconv_ir import diff

        runtime = against == "openvino"
        second, by = (None, against) if runtime else (against, None)
        compared = diff(model, second, arrays, against=by, modest=modest)
        found["differences"] = differences_of(model.graph, compared)
    return found
