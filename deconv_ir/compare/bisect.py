"""Search for the first layer that another tool computes differently, using only final outputs."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deconv_ir.compare.culprit import describe_culprit, infer_run
from deconv_ir.compare.cut import results_of, write_part
from deconv_ir.compare.diff import RTOL, ModelDifference
from deconv_ir.compare.evaluate import Evaluator
from deconv_ir.compare.extract_part import extract_part, output_names
from deconv_ir.compare.network import Comparable, Network, open_stored
from deconv_ir.compare.tensors import TensorDifference, compare_tensors, require_tolerances
from deconv_ir.errors import DeconvError, InputError
from deconv_ir.execute.effort import require_modest_run
from deconv_ir.ir.dtypes import Array
from deconv_ir.ir.graph import Graph, Source

if TYPE_CHECKING:
    from deconv_ir.model import Inputs


class ToolError(DeconvError):
    """Raised by a `Runner` whose tool ends abnormally; the message says how.

    Examples
    --------
    >>> import deconv_ir
    >>> def tool(path, arrays):  # one that crashes on activations
    ...     if "ReLU" in path.read_text():
    ...         raise deconv_ir.ToolError("the tool crashes: exit code -11")
    ...     return deconv_ir.load(path).run(arrays)
    >>> import numpy as np
    >>> x = np.ones((1, 8, 16, 16), np.float32)
    >>> deconv_ir.bisect("samples/block/block.xml", tool, x).culprit.tensor.note
    'the tool crashes: exit code -11'
    """


Runner = Callable[[Path, Mapping[str, Any]], Mapping[str, Any]]
"""A function from the path of an IR and arrays by input name to arrays by output name."""


def bisect(
    model: Comparable,
    run: Runner,
    inputs: Inputs,
    *,
    rtol: float = RTOL,
    atol: float = 0.0,
    progress: Callable[[str], None] | None = None,
    modest: bool = False,
) -> ModelDifference:
    """Find the first layer whose output another tool computes differently.

    The model is cut after a layer, both run the first half, and so on: for 10,000
    layers, the tool runs 15 times.  Errors are assumed to persist in later layers.

    Parameters
    ----------
    model : Model or path-like
    run : callable
        Runs an IR (path, arrays by input name), and returns the arrays by output name; a
        `ToolError` counts as a wrong result.
    inputs : mapping, iterable or array
        As in `Model.run`.
    rtol, atol : float
        As in `diff`.
    progress : callable, optional
        Called with one line per run.
    modest : bool
        As in `diff`.

    Returns
    -------
    ModelDifference
        Its `tensors` are those at the decisive cuts.

    Raises
    ------
    InputError
        The tool returns no array for an output, or crashes with every part, even without layers.

    Examples
    --------
    >>> import numpy as np
    >>> import deconv_ir
    >>> def tool(path, arrays):  # one that gets activations wrong
    ...     found = deconv_ir.load(path).run(arrays)
    ...     return {name: array - (name == "y") for name, array in found.items()}
    >>> x = np.ones((1, 8, 16, 16), np.float32)
    >>> deconv_ir.bisect("samples/block/block.xml", tool, x).culprit.tensor.layer
    "'up/relu' (ReLU, id 7)"
    """
    require_tolerances(rtol=rtol, atol=atol)
    network = open_stored(model)
    arrays = network.inputs.match(inputs, cast=False)
    search = _Search(network, run, arrays, (rtol, atol), progress)
    if modest:
        require_modest_run(network.graph, search.infos)
    tensors, culprit = search.run()
    name = network.graph.file or network.graph.name
    nodes = len(list(network.nodes))
    return ModelDifference(name, "the other tool", (nodes, 0), 0, (), tensors, culprit)


class _Search:
    def __init__(
        self,
        network: Network,
        run: Runner,
        arrays: Mapping[int, Array],
        tolerances: tuple[float, float],
        progress: Callable[[str], None] | None,
    ) -> None:
        self.network = network
        self.tool = run
        self.arrays = arrays
        self.tolerances = tolerances
        self.progress = progress
        self.crashed: ToolError | None = None
        self.answered = False
        self.infos = infer_run(network, arrays)
        self.results = results_of(network.graph)
        needed = Evaluator(network, arrays, [source[0] for source in self.results]).needed
        self.order = [
            i
            for i in network.graph.topology.order
            if i in needed and i not in network.constant_layers and i not in arrays
        ]
        self.rank = {index: place for place, index in enumerate(self.order)}

    def run(self) -> tuple[tuple[TensorDifference, ...], Any]:
        """Halve the layers until the first one that differs remains."""
        last = len(self.order) - 1
        at_end = self._compare(last)
        if all(found.within for found in at_end.values()):
            return tuple(at_end.values()), None
        low, high, decided = -1, last, at_end
        while high - low > 1:
            middle = (low + high) // 2
            found = self._compare(middle)
            if all(tensor.within for tensor in found.values()):
                low = middle
            else:
                high, decided = middle, found
        if self.crashed is not None and not self.answered:
            self._require_working_tool(self.crashed)
        wrong = [(source, tensor) for source, tensor in decided.items() if not tensor.within]
        # Earlier tensors agree, so the one that does not belongs to the last layer.
        source, tensor = max(wrong, key=lambda pair: self.rank.get(pair[0][0], -1))
        culprit = describe_culprit(self.network, self.infos, source[0], tensor)
        return tuple(decided.values()), culprit

    def _require_working_tool(self, crash: ToolError) -> None:
        """Require that a tool that crashes with every part does not do so without layers."""
        for index in self.network.inputs.parameters:
            part = extract_part(self.network.graph, self.infos, (), [(index, 0)])
            try:
                self._run_tool(part)
                return
            except ToolError:
                continue
        raise InputError(f"{crash}, with every part of the model, even an input alone")

    def _run_tool(self, part: Graph) -> Mapping[str, Any]:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "part.xml"
            write_part(self.network, part, path)
            names = {x.id: x.outputs[0].names[0] for x in part.layers if x.type == "Parameter"}
            arrays = {self.network.layer(i).id: array for i, array in self.arrays.items()}
            return self.tool(path, {name: arrays[own] for own, name in names.items()})

    def _live(self, place: int) -> list[Source]:
        """Return the tensors that exist after a layer and are still needed."""
        behind = set(self.order[: place + 1])
        live = dict.fromkeys(result for result in self.results if result[0] in behind)
        for index in behind:
            for user, port in self.network.consumers[index]:
                source = self.network.graph.topology.sources[user][port]
                if self.rank.get(user, -1) > place and source is not None:
                    live[source] = None
        return sorted(live)

    def _compare(self, place: int) -> dict[Source, TensorDifference]:
        network = self.network
        live = self._live(place)
        if self.progress is not None:
            layer = network.layer(self.order[place])
            self.progress(f"layers up to {layer.label} ({place + 1} of {len(self.order)})")
        part = extract_part(network.graph, self.infos, (), live)
        try:
            theirs = self._run_tool(part)
        except ToolError as crash:
            self.crashed = crash
            if self.progress is not None:
                self.progress(str(crash))
            return {source: self._crash_at(source, crash) for source in live}
        self.answered = True
        evaluator = Evaluator(network, self.arrays, list({source[0] for source in live}))
        found: dict[Source, TensorDifference] = {}
        taken: dict[int, Sequence[Array]] = {}
        for source, name in zip(live, output_names(part), strict=True):
            if name not in theirs:
                raise InputError(f"the tool returns no array for {name!r}", file=network.graph.file)
            if source[0] not in taken:
                taken[source[0]] = evaluator.take(source[0])
            layer = network.layer(source[0])
            found[source] = compare_tensors(
                name,
                layer.label,
                layer.line,
                taken[source[0]][source[1]],
                theirs[name],
                *self.tolerances,
            )
        return found

    def _crash_at(self, source: Source, crash: ToolError) -> TensorDifference:
        layer, name = self.network.layer(source[0]), self.network.tensor_name(source)
        return TensorDifference(name, layer.label, layer.line, False, note=str(crash))
