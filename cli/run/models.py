"""The model of a run: loading, protection of its files, and its findings."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from deconv_ir.errors import DeconvError

from ..shared.common import FROM_STDIN, STREAM, Mistake, as_line, note, read_standard_input, warn
from ..shared.guard import Guard

if TYPE_CHECKING:
    from deconv_ir import Finding, Model

    from .request import RunRequest


def open_model(request: RunRequest) -> Model:
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
    if request.accuracy == "bf16":
        from deconv_ir.kernels.runtime.cpu import has_pairs

        if not has_pairs():
            note(
                "no products of bf16 (AVX-512 BF16) are available here: convolutions are computed "
                "in f32"
            )
    model = model if request.layer is None else model.layer(request.layer)
    if request.changes_model:
        from ..shared.changes import changed, with_constants

        model = with_constants(model, request.constants, request.cast)
        model = changed(model, request, always=request.save_xml is not None)
    if request.wanted and request.save_xml is None:
        from deconv_ir.changes.exposed import expose, inner_named

        if inner := inner_named(model.graph, request.wanted):
            graph, weights, _ = expose(model.graph, model.context.weights, inner)
            model = model.replaced(graph, weights)
    return model


def report_findings(findings: Sequence[Finding], strict: bool) -> None:
    """Warn of findings; with `strict`, wrong declared dims are errors."""
    wrong = [f for f in findings if f.rule.startswith("declared-")]
    if strict and wrong:
        more = f" (and {len(wrong) - 1} more)" if len(wrong) > 1 else ""
        raise Mistake(f"{as_line(wrong[0])}{more}")
    for finding in findings:
        warn(as_line(finding))


def guard_run(
    model: Model, request: RunRequest, read: Iterable[tuple[str, str | os.PathLike[str]]]
) -> Guard:
    """Protect the model, its weights, and the other files that a run reads."""
    guard = Guard([("the model", request.model), *read])
    if model.weights_file is not None:
        guard.add("the weights", model.weights_file)
    if request.constants:
        from ..shared.changes import constant_files

        for name, path in constant_files(request.constants).items():
            guard.add(f"the array of constant {name!r}", path)
    return guard
