"""Loading the model of a command, and reporting its findings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from deconv_ir.errors import DeconvError

from .common import FROM_STDIN, STREAM, Mistake, as_line, read_standard_input, warn

if TYPE_CHECKING:
    from deconv_ir import Finding, Model

    from ..run.request import Request


def open_model(request: Request) -> Model:
    """Load the model, or its requested layer, with the requested changes."""
    # NumPy's import is most of the start-up time; it is not needed before.
    from deconv_ir.loading import load

    given: str | bytes = request.model
    if given == STREAM:
        given = read_standard_input(request.limits.xml_bytes)
    try:
        model = load(
            given,
            request.weights,
            request.semantics,
            warn=False,
            limits=request.limits,
            memory_limit=request.memory_limit,
            accuracy=request.arithmetic,
            overrides=request.overrides(),
        )
    except DeconvError as error:
        if given is not request.model:
            error.locate(file=FROM_STDIN)
        raise
    model = model if request.layer is None else model.layer(request.layer)
    if request.changes_model:
        from .changes import changed, with_constants

        model = with_constants(model, request.constants, request.cast)
        model = changed(model, request, always=request.save_xml is not None)
    return model


def model_name(model: Model) -> str:
    """Return the name of the model in messages and summaries."""
    return model.graph.file or FROM_STDIN


def report_findings(findings: Sequence[Finding], strict: bool) -> None:
    """Warn of findings; with `strict`, wrong declared dims are errors."""
    wrong = [f for f in findings if f.rule.startswith("declared-")]
    if strict and wrong:
        more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
        raise Mistake(f"{as_line(wrong[0])}{more}")
    for finding in findings:
        warn(as_line(finding))
