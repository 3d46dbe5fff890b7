"""Evaluation of a model layer by layer; each tensor is freed after its last use."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from deconv_ir.arrays.fitting import describe
from deconv_ir.compare.network import Network
from deconv_ir.execute.analysis import require_implemented
from deconv_ir.execute.executor import BodyExecutors
from deconv_ir.execute.memory import require_memory
from deconv_ir.execute.places import tensor_bytes
from deconv_ir.ir.body import Body
from deconv_ir.ir.dtypes import Array
from deconv_ir.ir.graph import ancestors, locating


class Evaluator:
    """The tensors of a model for given inputs, each computed when it is requested.

    Layers are not fused, so that every tensor of the file exists.  A tensor is freed after its last
    use by the layers that need it, and by the caller, who takes the outputs of each layer in
    `wanted` once.  `inputs` has the array of each Parameter layer, by its index; `variables` are
    those of bodies, by name.  `observe` is called before each run of a body, with the body, the
    arrays of its Parameters and the variables.

    Raises
    ------
    UnsupportedError
        A needed layer has no implementation.
    """

    def __init__(
        self,
        network: Network,
        inputs: Mapping[int, Array],
        wanted: Sequence[int],
        variables: Mapping[str, Array] | None = None,
        observe: Callable[[Body, Mapping[int, Array], Mapping[str, Array]], None] | None = None,
    ) -> None:
        self.graph = network.graph
        bodies = BodyExecutors(network.graph, network.context, None)
        values = dict(variables or {})

        def run_body(body: Body, given: Mapping[int, Array]) -> Sequence[Array]:
            if observe is not None:
                observe(body, given, values)
            return bodies.run(body, given, values)

        self.context = network.context._replace(run_body=run_body)
        self.sources = network.graph.topology.sources
        self.needed = ancestors(network.graph.topology, wanted)
        require_implemented(self.graph, sorted(self.needed))
        self.uses = dict.fromkeys(self.needed, 0)
        for index in self.needed:
            for source in self.sources[index]:
                if source is not None:
                    self.uses[source[0]] += 1
        for index in wanted:
            self.uses[index] += 1
        self.values: dict[int, Sequence[Any]] = {
            index: (array,) for index, array in inputs.items() if index in self.needed
        }

    def take(self, index: int) -> Sequence[Array]:
        """Return the outputs of a layer; the caller must not request them again.

        Raises
        ------
        DeconvError
            A layer cannot be computed.
        """
        stack = [index]
        while stack:
            at = stack[-1]
            if at in self.values:
                stack.pop()
                continue
            missing = [s[0] for s in self.sources[at] if s and s[0] not in self.values]
            if missing:
                stack += missing
                continue
            self.values[at] = self._compute(at)
            stack.pop()
        return self._use(index)

    def replace(self, index: int, output: int, array: Array) -> None:
        """Let the layers that are not computed yet take another array for an output."""
        if index in self.values:
            values = list(self.values[index])
            values[output] = array.astype(values[output].dtype)
            self.values[index] = values

    def _compute(self, index: int) -> Sequence[Array]:
        import numpy as np

        layer = self.graph.layers[index]
        arrays = [self._use(s[0])[s[1]] for s in self.sources[index] if s is not None]
        with locating(self.graph, layer):
            # `execute` requires inputs that `infer` accepts.
            outputs = layer.operation.infer(list(map(describe, arrays)), self.context)
            require_memory(sum(tensor_bytes(info) or 0 for info in outputs), file=self.graph.file)
            with np.errstate(all="ignore"):
                return layer.operation.execute(arrays, self.context)

    def _use(self, index: int) -> Sequence[Array]:
        found = self.values[index]
        self.uses[index] -= 1
        if not self.uses[index]:
            del self.values[index]
        return found
