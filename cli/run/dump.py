"""The option --dump: every tensor of a run, in a folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from deconv_ir.arrays.fitting import describe
from deconv_ir.changes.exposed import InnerTensor, body_at, expose, inner_tensors, names_at
from deconv_ir.compare.network import open_network
from deconv_ir.formats.dumps import TensorFile, add_to_manifest
from deconv_ir.ir.graph import constant_layers
from deconv_ir.ir.infer import infer
from deconv_ir.ir.options import Accuracy
from deconv_ir.ir.shapes import is_static
from deconv_ir.ir.tensor_names import tensor_name, unique_names

from ..shared.common import counted, note, warn
from .targets import output_targets, write_arrays

if TYPE_CHECKING:
    from deconv_ir import Model
    from deconv_ir.ir.dtypes import Array

    from ..shared.guard import Guard
    from .request import RunRequest

_SINKS = ("Result", "Assign")


class Dump:
    """The files of the tensors of a model, checked before any is computed."""

    def __init__(
        self, model: Model, request: RunRequest, guard: Guard, arrays: Mapping[str, Array]
    ) -> None:
        assert request.dump is not None, "the option was given"
        if request.accuracy == Accuracy.BF16.value:
            warn("--dump computes layer by layer in f32: tensors are not those of bf16")
        self.model = model
        graph = model.graph
        constant = constant_layers(graph, graph.topology.order)
        order = (i for i in graph.topology.order if graph.layers[i].type not in _SINKS)
        kept = (i for i in order if i not in constant or request.dump_all)
        self.tensors = unique_names(graph, kept)
        self.inner: dict[str, InnerTensor] = {}
        self.left_out: list[str] = []
        if request.dump_all:
            given = open_network(model).inputs.match(arrays, cast=request.cast)
            shapes = {index: describe(array) for index, array in given.items()}
            infos = infer(graph, model.context, shapes, collect=True).outputs
            for tensor, info in inner_tensors(graph, infos, model.context):
                if tensor.name in self.tensors:
                    continue
                # The runs of a body are joined, which needs tensors of one shape.
                if is_static(info.shape):
                    self.inner[tensor.name] = tensor
                else:
                    self.left_out.append(tensor.name)
        names = [*self.tensors, *self.inner]
        folder = request.dump.rstrip("/") + "/"
        self.targets = output_targets("--dump", names, folder, request.force, guard)

    def write(self, arrays: Mapping[str, Array], request: RunRequest) -> None:
        """Compute the tensors one after the other, and write each."""
        from deconv_ir.compare.evaluate import Evaluator

        tensors, model = self.tensors, self.model
        if self.inner:
            inner = list(self.inner.values())
            graph, weights, sources = expose(model.graph, model.context.weights, inner)
            model = model.replaced(graph, weights)
            tensors = tensors | dict(zip(self.inner, sources, strict=True))
        network = open_network(model)
        wanted = list(dict.fromkeys(index for index, _ in tensors.values()))
        given = network.inputs.match(arrays, cast=request.cast)
        evaluator = Evaluator(network, given, wanted)
        by_layer: dict[int, dict[str, int]] = {}
        for name, (index, output) in tensors.items():
            by_layer.setdefault(index, {})[name] = output
        written: set[str] = set()
        for index, names in by_layer.items():
            outputs = evaluator.take(index)
            together = {name: outputs[output] for name, output in names.items()}
            # A body that did not run has no tensors.
            together = {n: a for n, a in together.items() if a.size or n not in self.inner}
            written |= together.keys()
            paths = {name: self.targets.paths[name] for name in together}
            write_arrays(together, self.targets._replace(paths=paths, entries=()))
        entries = [self._entry(e) for e in self.targets.entries if e.path in written]
        add_to_manifest(Path(request.dump or ""), entries)
        if self.left_out:
            warn(
                f"{counted(self.left_out, 'tensor')} of bodies, such as {self.left_out[0]!r}, not "
                "written: the shape may change from one run of the body to the next"
            )
        if not request.quiet:
            note(f"wrote {counted(written, 'tensor')} to {Path(request.dump or '')}")

    def _entry(self, entry: TensorFile) -> TensorFile:
        """Return the entry of a manifest, for a tensor of a body with the names around it."""
        tensor = self.inner.get(entry.path)
        if tensor is None:
            return TensorFile(entry.path, entry.file)
        own = tensor_name(body_at(self.model.graph, tensor.path), tensor.source)
        return TensorFile(own, entry.file, names_at(self.model.graph, tensor.path))
