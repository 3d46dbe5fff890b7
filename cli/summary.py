"""The summary of a run, for a person and for a machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from deconv_ir.dtypes import from_numpy
from deconv_ir.shapes import format_shape

if TYPE_CHECKING:
    from deconv_ir import Finding, Model
    from deconv_ir.dtypes import Array

    from .compare import Comparison


def print_summary(
    model: Model,
    inputs: Mapping[str, Array],
    outputs: Mapping[str, Array],
    targets: Mapping[str, Path | None],
    comparisons: Sequence[Comparison],
    findings: Sequence[Finding],
    timing: Mapping[str, float],
    *,
    as_json: bool,
    verbose: bool,
    quiet: bool,
) -> None:
    """Print inputs, outputs, comparisons and times.

    For a person on standard error, the paths of outputs on standard output;
    as JSON, all of it on standard output.
    """
    if as_json:
        _print_json(model, inputs, outputs, targets, comparisons, findings, timing)
        return
    if not quiet:
        for name, array in inputs.items():
            click.echo(f"input  {name}  {_describe(array)}", err=True)
        for name, array in outputs.items():
            numbers = _statistics(array)
            shown = "  ".join(f"{key} {value:.6g}" for key, value in numbers.items())
            click.echo(f"output {name}  {_describe(array)}  {shown}".rstrip(), err=True)
    for comparison in comparisons:
        colour = "green" if comparison.within else "red"
        if not quiet or not comparison.within:
            click.echo(click.style(str(comparison), fg=colour), err=True)
    if verbose:
        from .about import describe_kernels

        click.echo(f"layers {len(model.graph.layers)}", err=True)
        click.echo(describe_kernels(), err=True)
    if not quiet:
        times = ", ".join(f"{key} {seconds * 1e3:.1f} ms" for key, seconds in timing.items())
        click.echo(f"time   {times}", err=True)
        for path in targets.values():
            if path is not None:
                click.echo(str(path))


def _describe(array: Array) -> str:
    return f"{from_numpy(array.dtype) or array.dtype}{format_shape(array.shape)}"


def _statistics(array: Array) -> dict[str, float]:
    """Compute smallest, largest and mean; how many NaN, where there are any."""
    import numpy as np

    if array.size == 0 or array.dtype.kind == "b":
        return {}
    wide = array.astype(np.float32) if array.dtype.itemsize < 4 else array
    with np.errstate(all="ignore"):
        numbers = {
            "min": float(wide.min()),
            "max": float(wide.max()),
            "mean": float(wide.mean(dtype=np.float64)),
        }
        if wide.dtype.kind == "f" and np.isnan(numbers["mean"]):
            numbers["nan"] = float(np.isnan(wide).sum())
    return numbers


def _print_json(
    model: Model,
    inputs: Mapping[str, Array],
    outputs: Mapping[str, Array],
    targets: Mapping[str, Path | None],
    comparisons: Sequence[Comparison],
    findings: Sequence[Finding],
    timing: Mapping[str, float],
) -> None:
    import json

    def port(name: str, array: Array) -> dict[str, Any]:
        return {
            "name": name,
            "shape": list(array.shape),
            "element_type": str(from_numpy(array.dtype) or array.dtype),
        }

    document = {
        "model": model.graph.file,
        "semantics": model.semantics.value,
        "inputs": [port(name, array) for name, array in inputs.items()],
        "outputs": [
            port(name, array)
            | {"file": str(targets[name]) if targets.get(name) else None}
            | {key: _number(value) for key, value in _statistics(array).items()}
            for name, array in outputs.items()
        ],
        "comparisons": [
            {
                "name": c.name,
                "within_tolerance": c.within,
                "largest_absolute_error": _number(c.largest_absolute),
                "largest_relative_error": _number(c.largest_relative),
                "position": None if c.position is None else list(c.position),
                "elements_out_of_tolerance": c.outside,
            }
            for c in comparisons
        ],
        "findings": [
            {
                "rule": f.rule,
                "severity": f.severity.value,
                "message": f.message,
                "file": f.file,
                "line": f.line,
                "layer": f.layer,
            }
            for f in findings
        ],
        "seconds": dict(timing),
    }
    click.echo(json.dumps(document, indent=2))


def _number(value: float) -> float | str:
    """JSON has no infinity and no NaN; they are written as text."""
    return value if value - value == 0 else str(value)
