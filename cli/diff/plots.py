"""The plot of deconv-diff: the error through the network."""

from __future__ import annotations

import io
import math
from typing import TYPE_CHECKING, Any

from deconv_ir.compare.sides import import_runtime
from deconv_ir.drawing.text import cut
from deconv_ir.errors import OutputError
from deconv_ir.formats.files import replace_file

from ..shared.common import Mistake

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from deconv_ir import ModelDifference, ModelVerdict, TensorDifference

_NAMED = 12
_LABEL = 30


def label_of(tensor: TensorDifference) -> str:
    """Return a short label: the name of the layer for a tensor that converters have numbered."""
    name = tensor.name
    if name.isdecimal():
        name = tensor.layer.rpartition(" (")[0].strip("'") or name
    return cut(name, _LABEL)


def _plot_verdict(axes: Any, verdict: ModelVerdict, tensors: Sequence[TensorDifference]) -> None:
    """Draw the error that each side makes in each layer, and mark the layers that are wrong."""
    places = {(t.name, t.layer): k for k, t in enumerate(tensors)}
    at = [places.get((layer.name, layer.layer)) for layer in verdict.layers]
    for side, name in enumerate(verdict.sides):
        found = [
            (k, (layer.a, layer.b)[side])
            for k, layer in zip(at, verdict.layers, strict=True)
            if k is not None
        ]
        local = [judged.local or math.nan for _, judged in found]
        axes.plot(
            [k for k, _ in found], local, ".", label=f"made by {cut(name, _LABEL)}", ms=4, alpha=0.6
        )
        wrong = [k for k, judged in found if judged.right is False]
        if wrong:
            height = [0.04 + 0.05 * side] * len(wrong)
            label = f"{cut(name, _LABEL)} is wrong"
            axes.plot(wrong, height, "x", transform=axes.get_xaxis_transform(), label=label)


def plot_errors(found: ModelDifference, path: Path, *, force: bool) -> None:
    """Draw the largest and the RMS error of each tensor, in the order of computation.

    Raises
    ------
    Mistake
        The file exists, or has another ending than .png or .svg.
    UnsupportedError
        matplotlib is not installed.
    OutputError
        The file cannot be written.
    """
    if path.suffix not in (".png", ".svg"):
        raise Mistake(f"--plot {path}: the name must end with .png or .svg")
    if path.exists() and not force:
        raise Mistake(f"--plot {path}: the file exists (use --force)")
    import_runtime("matplotlib", "diagrams").use("Agg")
    from matplotlib import pyplot

    tensors = [t for t in found.tensors if t.relative < float("inf")]
    places = range(len(tensors))
    figure, axes = pyplot.subplots(figsize=(9, 4), layout="constrained")
    # A logarithmic axis cannot show an error of 0: there the line is broken.
    largest = [t.relative or math.nan for t in tensors]
    rms = [t.rms / t.scale if t.rms and t.scale else math.nan for t in tensors]
    axes.plot(places, largest, ".-", label="largest error", lw=1, ms=3)
    axes.plot(places, rms, ".-", label="RMS error", lw=1, ms=3)
    if found.verdict is not None:
        _plot_verdict(axes, found.verdict, tensors)
    axes.set_xlim(-0.5, max(len(tensors), 1) - 0.5)
    if any(value > 0 for value in largest):
        axes.set_yscale("log")
    axes.set_ylabel("error / largest magnitude")
    axes.set_xlabel("tensors in the order of computation")
    step = max(1, len(tensors) // _NAMED)
    axes.set_xticks(
        list(places)[::step],
        [label_of(t).replace("$", r"\$") for t in tensors[::step]],
        rotation=40,
        ha="right",
        fontsize=7,
    )
    if found.culprit is not None:
        at = next((k for k, t in enumerate(tensors) if t == found.culprit.tensor), None)
        if at is not None:
            axes.axvline(at, color="tab:red", lw=1, ls="--")
            axes.annotate(
                "first error",
                (at, 1),
                xycoords=("data", "axes fraction"),
                color="tab:red",
                xytext=(4, -12),
                textcoords="offset points",
                fontsize=8,
            )
    axes.legend(frameon=False)
    data = io.BytesIO()
    figure.savefig(data, format=path.suffix[1:], dpi=150)
    pyplot.close(figure)
    try:
        with replace_file(path) as stream:
            stream.write(data.getvalue())
    except OSError as error:
        raise OutputError(f"cannot write the plot: {error.strerror}", file=str(path)) from error
