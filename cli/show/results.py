"""Results of a run on the page: tensors as pictures, times, differences."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from deconv_ir.compare.diff import ModelDifference
from deconv_ir.compare.evaluate import Evaluator
from deconv_ir.compare.network import Network, open_network
from deconv_ir.drawing.graph.blocks import flow_of
from deconv_ir.drawing.graph.bodies import DrawnBody
from deconv_ir.drawing.page.facts import Progress
from deconv_ir.drawing.page.pictures import pictures_of
from deconv_ir.drawing.text import number
from deconv_ir.execute.machine_limits import measure_limits
from deconv_ir.execute.profile import Profile
from deconv_ir.execute.variables import Variables
from deconv_ir.ir.body import Body
from deconv_ir.ir.dtypes import Array
from deconv_ir.ir.graph import Graph
from deconv_ir.model import Model

PROFILED_RUNS = 3
MAX_LISTED = 200


def draw_tensors(
    model: Model,
    arrays: Mapping[str, Array],
    others: Mapping[str, Array] | None,
    max_bytes: int,
    progress: Progress | None = None,
    parts: Sequence[DrawnBody] = (),
) -> tuple[dict[str, Any], dict[str, list[int]]]:
    """Draw every tensor of a run, or the differences that other inputs cause.

    Parameters
    ----------
    model : Model
    arrays, others : mapping
        Arrays of the inputs; with `others`, differences are drawn as well.
    max_bytes : int
        Total size of all pictures; each tensor gets an equal share of the rest.
    progress : callable, optional
    parts : sequence of DrawnBody
        The bodies that are drawn; of a body, the tensors of its last run are drawn.

    Returns
    -------
    pictures : dict
        Pictures by ``layer:output``; ``""`` -> number of tensors that did not fit.
    runs : dict
        Numbers of runs of each body, for each of the inputs, by ``layer:body``.

    Raises
    ------
    DeconvError
        The arrays do not fit the model, or a layer cannot be run.
    """
    network = open_network(model, model.semantics)
    given = [arrays] if others is None else [arrays, others]
    runs = [
        _Run(which, network, network.inputs.match(one, cast=False), {})
        for which, one in enumerate(given)
    ]
    drawer = _Drawer(parts, len(given), max_bytes)
    graph = model.graph
    layers = parts[0].first if parts else len(graph.layers)  # those that follow are not drawn
    order = [i for i in flow_of(graph).order if graph.layers[i].outputs and i < layers]
    drawer.tensors += sum(len(graph.layers[i].outputs) for i in order)
    drawer.draw(runs, order, 0, progress)
    if progress is not None:
        progress("Running", 1, 1)
    missing = {"": drawer.missing} if drawer.missing else {}
    return drawer.pictures | missing, drawer.runs


class _Run(NamedTuple):
    """A run of a graph: of the model, or the last one of a body."""

    which: int
    """Number of the inputs: 1 for the other ones."""
    network: Network
    inputs: Mapping[int, Array]
    variables: Mapping[str, Array]
    times: int = 1


class _Drawer:
    """Draws the tensors of a graph and its bodies."""

    def __init__(self, parts: Sequence[DrawnBody], inputs: int, max_bytes: int) -> None:
        self.pictures: dict[str, Any] = {}
        self.runs: dict[str, list[int]] = {}
        self.missing = 0
        self.tensors = 0
        self._inputs = inputs
        self._left = max_bytes
        self._parts: dict[int, list[DrawnBody]] = {}
        self._orders: dict[int, list[int]] = {}
        for part in parts:
            layers = part.body.graph.layers
            order = [i for i in flow_of(part.body.graph).order if layers[i].outputs]
            self._parts.setdefault(part.owner, []).append(part)
            self._orders[part.first] = order
            self.tensors += sum(len(layers[i].outputs) for i in order)

    def draw(
        self,
        runs: Sequence[_Run],
        order: Sequence[int],
        first: int,
        progress: Progress | None = None,
    ) -> None:
        """Draw the outputs of some layers, and the bodies of these layers.

        `first` is the index of the graph's first layer on the page.
        """
        seen: list[dict[int, _Run]] = [{} for _ in runs]
        evaluators = [
            Evaluator(run.network, run.inputs, order, run.variables, _keep(run, bodies))
            for run, bodies in zip(runs, seen, strict=True)
        ]
        for done, index in enumerate(order):
            if progress is not None:
                progress("Running", done, len(order))
            results = [evaluator.take(index) for evaluator in evaluators]
            for output, arrays in enumerate(zip(*results, strict=True)):
                self._add(f"{first + index}:{output}", runs, arrays)
            for part in self._parts.get(first + index, ()):
                inner = []
                for run, bodies in zip(runs, seen, strict=True):
                    own = run.network.graph.layers[index].operation.bodies
                    (body,) = (body for body in own if body.name == part.body.name)
                    inner += [bodies.pop(id(body))] if id(body) in bodies else []
                self.runs[f"{part.owner}:{part.body.name}"] = [
                    sum(run.times for run in inner if run.which == which)
                    for which in range(self._inputs)
                ]
                if inner:
                    self.draw(inner, self._orders[part.first], part.first)
                else:
                    self._leave_out(part)

    def _leave_out(self, part: DrawnBody) -> None:
        """Give the share of a body that did not run to the other tensors."""
        layers = part.body.graph.layers
        self.tensors -= sum(len(layers[i].outputs) for i in self._orders[part.first])
        for index in part.layers:
            for inner in self._parts.get(index, ()):
                self._leave_out(inner)

    def _add(self, key: str, runs: Sequence[_Run], arrays: Sequence[Array]) -> None:
        most_bytes = self._left // max(1, self.tensors)
        self.tensors -= 1
        if self._inputs == 1:
            pictures = pictures_of(arrays[0], most_bytes)
        else:
            named = [(_TITLES[run.which], array) for run, array in zip(runs, arrays, strict=True)]
            pictures = _draw(named, most_bytes)
        if pictures:
            self.pictures[key] = pictures
            self._left -= sum(len(str(picture)) for picture in pictures)
        else:
            self.missing += 1


_TITLES = ("first input", "other input")


def _keep(
    run: _Run, bodies: dict[int, _Run]
) -> Callable[[Body, Mapping[int, Array], Mapping[str, Array]], None]:
    """Return an observer that keeps the last run of each body, by the `id` of the body."""

    def observe(body: Body, given: Mapping[int, Array], variables: Mapping[str, Array]) -> None:
        before = bodies.get(id(body))
        times = 1 if before is None else before.times + 1
        own = Variables(body.graph)
        graph = own.with_parameters(own.known(variables))
        inputs = {**given, **own.read(variables)}
        network = Network(graph, run.network.context)
        bodies[id(body)] = _Run(run.which, network, inputs, dict(variables), times)

    return observe


def _draw(arrays: Sequence[tuple[str, Array]], most_bytes: int) -> list[Any]:
    """Draw the arrays of a tensor, and the difference of two."""
    found = []
    for title, array in arrays:
        found += pictures_of(array, most_bytes // 3, title)
    if len(arrays) < 2:
        return found
    (_, first), (_, second) = arrays
    if first.shape == second.shape and first.dtype.kind not in "OSU":
        with np.errstate(all="ignore"):
            change = second.astype(np.float64) - first.astype(np.float64)
        found += pictures_of(change, most_bytes // 3, "difference", signed=True)
    return found


def profile(
    model: Model, arrays: Mapping[str, Array], parts: Sequence[DrawnBody] = ()
) -> dict[str, Any]:
    """Time the layers of a model: the fastest of a few runs, after a warm-up run.

    Times of layers in `parts`, the bodies that are drawn, are summed over the runs of the body.
    """
    bound = model.bind(arrays)
    bound.run()
    profiles = [Profile() for _ in range(PROFILED_RUNS)]
    for one in profiles:
        bound.run(profile=one)
    best = min(profiles, key=lambda one: one.seconds)
    drawn = model.graph.layers[: parts[0].first] if parts else model.graph.layers
    names = {i: layer.name for i, layer in enumerate(drawn)}
    places = dict.fromkeys(names, "")
    # The first one of several layers with the same name.
    index = {("", name): i for i, name in reversed(names.items())}
    for part in parts:  # outer ones first
        around = places[part.owner]
        place = f"{around}/" if around else ""
        place += f"{names[part.owner]}/{part.body.name}"
        for i, layer in reversed([*zip(part.layers, part.body.graph.layers, strict=True)]):
            index[place, layer.name], places[i], names[i] = i, place, layer.name
    layers: dict[int, list[Any]] = {}
    for row in best.layers:
        at = index.get((row.within, row.layer))
        if at is None:
            continue
        found = layers.setdefault(at, [0.0, None, row.type, 0])
        found[0] += row.seconds
        found[3] += 1
        if row.operations is not None:
            found[1] = (found[1] or 0) + row.operations
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
