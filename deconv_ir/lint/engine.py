"""The linter's way through one file: read, connect, infer; collect all the way."""

from __future__ import annotations

import os
from pathlib import Path

from ..api import as_semantics, open_weights
from ..errors import DeconvError, WeightsError
from ..findings import Finding, Severity
from ..infer import infer
from ..model import Context
from ..xmlio import Weights, read


def check_file(path: str | os.PathLike[str], semantics: str) -> list[Finding]:
    """Collect everything that reading, connecting and inferring finds wrong."""
    chosen = as_semantics(semantics)
    graph, problems = read(path)
    errors: list[DeconvError] = list(problems)
    findings: list[Finding] = []
    if graph is not None:
        errors += graph.topology.problems
        weights: Weights | None = None
        try:
            weights = open_weights(graph, Path(path), None)
        except WeightsError as error:
            errors.append(error)
        inference = infer(graph, Context(chosen, weights), collect=True)
        errors += inference.errors
        findings += inference.findings
    findings += [from_error(error) for error in errors]
    return sorted(findings, key=lambda f: (f.line or 0, f.rule))


def from_error(error: DeconvError) -> Finding:
    """Make a finding of an error."""
    return Finding(
        error.rule or "error",
        Severity.ERROR,
        error.message,
        error.file,
        error.line,
        error.layer,
        error.expected,
        error.actual,
        error.hint,
    )
