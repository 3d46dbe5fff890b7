"""The option --dump: every tensor of a run, in a folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from deconv_ir.formats.dumps import add_to_manifest
from deconv_ir.ir.graph import Source, constant_layers
from deconv_ir.ir.tensor_names import tensor_name

from ..shared.common import counted, note
from .targets import output_targets, write_arrays

if TYPE_CHECKING:
    from deconv_ir import Model
    from deconv_ir.ir.dtypes import Array

    from ..shared.guard import Guard
    from .request import RunRequest

_SINKS = ("Result", "Assign")


class Dump:
    """The files of the tensors of a model, checked before any is computed."""

    def __init__(self, model: Model, request: RunRequest, guard: Guard) -> None:
        assert request.dump is not None, "the option was given"
        self.model = model
        graph = model.graph
        constant = constant_layers(graph, graph.topology.order)
        self.tensors: dict[str, Source] = {}
        for index in graph.topology.order:
            layer = graph.layers[index]
            if layer.type in _SINKS or (index in constant and not request.dump_all):
                continue
            for output in range(len(layer.outputs)):
                source = (index, output)
                name = tensor_name(graph, source)
                if name in self.tensors:  # layers of the same name
                    name = f"{layer.name}.{layer.id}.{output}"
                self.tensors[name] = source
        folder = request.dump.rstrip("/") + "/"
        self.targets = output_targets("--dump", list(self.tensors), folder, request.force, guard)

    def write(self, arrays: Mapping[str, Array], request: RunRequest) -> None:
        """Compute the tensors one after the other, and write each."""
        from deconv_ir.compare.evaluate import Evaluator
        from deconv_ir.compare.network import open_network

        network = open_network(self.model)
        wanted = list(dict.fromkeys(index for index, _ in self.tensors.values()))
        given = network.inputs.match(arrays, cast=request.cast)
        evaluator = Evaluator(network, given, wanted)
        by_layer: dict[int, dict[str, int]] = {}
        for name, (index, output) in self.tensors.items():
            by_layer.setdefault(index, {})[name] = output
        for index, names in by_layer.items():
            outputs = evaluator.take(index)
            together = {name: outputs[output] for name, output in names.items()}
            paths = {name: self.targets.paths[name] for name in together}
            write_arrays(together, self.targets._replace(paths=paths, entries=()))
        add_to_manifest(Path(request.dump or ""), self.targets.entries)
        if not request.quiet:
            note(f"wrote {counted(self.tensors, 'tensor')} to {Path(request.dump or '')}")
