"""Results of a run on the page: tensors as pictures, times, differences."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from deconv_ir.compare.diff import ModelDifference
from deconv_ir.compare.evaluate import Evaluator
from deconv_ir.compare.network import open_network
from deconv_ir.drawing.blocks import flow_of
from deconv_ir.execute.machine_limits import measure_limits
from deconv_ir.execute.profile import Profile
from deconv_ir.ir.dtypes import Array
from deconv_ir.ir.graph import Graph
from deconv_ir.model import Model
from deconv_ir.view.facts import Progress
from deconv_ir.view.pictures import pictures_of
from deconv_ir.view.statistics import number

if TYPE_CHECKING:
    pass

PROFILED_RUNS = 3
MAX_LISTED = 200


def draw_tensors(
    model: Model,
    arrays: Mapping[str, Array],
    others: Mapping[str, Array] | None,
    max_bytes: int,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Draw every tensor of a run, or the differences that other inputs cause.

    `arrays` are those of the inputs; with `others`, differences are drawn as well.  `max_bytes`
    bounds the total size of all pictures; each tensor gets an equal share of the rest.  Return
    pictures by ``layer:output``; ``""`` -> number of tensors that did not fit.

    Raises
    ------
    DeconvError
        The arrays do not fit the model, or a layer cannot be run.
    """
    network = open_network(model, model.semantics)
    graph = model.graph
    wanted = [i for i in flow_of(graph).order if graph.layers[i].outputs]
    runs = [
        Evaluator(network, network.inputs.bind(given, cast=False), wanted)
        for given in (arrays, others)
        if given is not None
    ]
    found: dict[str, Any] = {}
    left, tensors = max_bytes, sum(len(graph.layers[i].outputs) for i in wanted)
    missing = 0
    for done, index in enumerate(wanted):
        if progress is not None:
            progress("Running", done, len(wanted))
        results = [run.take(index) for run in runs]
        for output, pair in enumerate(zip(*results, strict=True)):
            pictures = _draw(pair, left // max(1, tensors))
            tensors -= 1
            if pictures:
                found[f"{index}:{output}"] = pictures
                left -= sum(len(str(picture)) for picture in pictures)
            else:
                missing += 1
    if progress is not None:
        progress("Running", 1, 1)
    return found | ({"": missing} if missing else {})


def _draw(arrays: tuple[Array, ...], most_bytes: int) -> list[Any]:
    """Draw a tensor; for two runs, both and their difference."""
    import numpy as np

    if len(arrays) == 1:
        return pictures_of(arrays[0], most_bytes)
    first, second = arrays
    found = pictures_of(first, most_bytes // 3, "first input")
    found += pictures_of(second, most_bytes // 3, "other input")
    if first.shape == second.shape and first.dtype.kind not in "OSU":
        with np.errstate(all="ignore"):
            change = second.astype(np.float64) - first.astype(np.float64)
        found += pictures_of(change, most_bytes // 3, "difference", signed=True)
    return found


def profile(model: Model, arrays: Mapping[str, Array]) -> dict[str, Any]:
    """Time the layers of a model: the fastest of a few runs, after a warm-up run."""
    bound = model.bind(arrays)
    bound.run()
    profiles = [Profile() for _ in range(PROFILED_RUNS)]
    for one in profiles:
        bound.run(profile=one)
    best = min(profiles, key=lambda one: one.seconds)
    # The first one of several layers with the same name.
    index = {layer.name: i for i, layer in reversed([*enumerate(model.graph.layers)])}
    layers = {
        index[row.layer]: [row.seconds, row.operations, row.type]
        for row in best.layers
        if row.layer in index
    }
    return {"seconds": best.seconds, "layers": layers, "peak": measure_limits().operations}


def differences_of(graph: Graph, found: ModelDifference) -> dict[str, Any]:
    """Assign the result of a comparison to the layers of its first model."""
    labels = {layer.label: index for index, layer in enumerate(graph.layers)}
    layers = {
        labels[t.layer]: [number(t.relative), number(t.rms), t.within, t.note]
        for t in found.tensors
        if t.layer in labels
    }
    culprit = found.culprit
    return {
        "other": found.b,
        "layers": layers,
        "structure": [str(difference) for difference in found.differences[:MAX_LISTED]],
        "culprit": culprit and culprit.sentence(),
    }
