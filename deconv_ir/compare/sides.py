"""Sources of the tensors with which those of a model are compared."""

from __future__ import annotations

import abc
import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Protocol

from deconv_ir.compare.evaluate import Evaluator
from deconv_ir.compare.judge import Execution
from deconv_ir.compare.network import Network
from deconv_ir.errors import InputError, UnsupportedError
from deconv_ir.formats.dumps import safe_stem
from deconv_ir.hints import Hint
from deconv_ir.ir.dtypes import Array, from_numpy
from deconv_ir.ir.graph import Layer, Port, Source

_GROUP_BYTES = 256 << 20
_GROUP_TENSORS = 1024


class Side(Protocol):
    """A source of tensors, by the corresponding layers of the first model."""

    def has(self, index: int) -> bool:
        """Whether the outputs of a layer of the first model are available."""
        ...

    def take(self, index: int) -> Sequence[Array | None]:
        """Return the outputs; each layer is requested once, in topological order."""
        ...

    def own(self, index: int) -> int:
        """Return the index of a layer in the network that this side runs."""
        ...

    def provides(self, source: Source) -> bool:
        """Whether a tensor of the network that this side runs is available."""
        ...

    def execution(self, index: int) -> Execution:
        """Return how a layer of the network that this side runs was computed."""
        ...

    @property
    def same_run(self) -> Mapping[Source, Array]:
        """Earlier tensors, as they were in the run that gave the last ones."""
        ...


class OneRunSide:
    """A side that runs the first model, once, as most do."""

    same_run: Mapping[Source, Array] = MappingProxyType({})

    def own(self, index: int) -> int:
        """Return the same index."""
        return index

    def execution(self, index: int) -> Execution:
        """Return that nothing is known."""
        return Execution()


class ModelSide(OneRunSide):
    """The second model, run by this library."""

    def __init__(self, evaluator: Evaluator, pairs: Mapping[int, int]) -> None:
        self.evaluator = evaluator
        self.pairs = pairs
        self.partners = frozenset(pairs.values())
        self.windows = not evaluator.context.accuracy.is_direct

    def own(self, index: int) -> int:
        """Return the index of the partner."""
        return self.pairs[index]

    def provides(self, source: Source) -> bool:
        """Whether the layer has a partner."""
        return source[0] in self.partners

    def execution(self, index: int) -> Execution:
        """Return whether Winograd may be used."""
        return Execution(windows=self.windows)

    def has(self, index: int) -> bool:
        """Whether the layer has a partner."""
        return index in self.pairs

    def take(self, index: int) -> Sequence[Array | None]:
        """Compute the partner's outputs."""
        return self.evaluator.take(self.pairs[index])


class ArraysSide(OneRunSide):
    """Arrays by tensor name or layer name, such as dumps of other tools.

    Characters that file names cannot have may be replaced by ``_`` in the names, if that is unique.
    """

    def __init__(self, arrays: Mapping[str, Any], network: Network) -> None:
        self.network = network
        self.arrays = arrays
        self.keys: dict[Source, str] = {}
        """Tensor -> the name of its array."""
        self.unmatched = dict.fromkeys(arrays, "no tensor has this name")
        """Name of an array without a tensor -> the reason."""
        tensors = [
            (index, output)
            for index, layer in enumerate(network.graph.layers)
            for output in range(len(layer.outputs))
        ]
        for forms in _FORMS:
            self._assign({source: forms(network.layer(source[0]), source[1]) for source in tensors})
        self._assign(
            {s: map(safe_stem, _names(network.layer(s[0]), s[1])) for s in tensors},
        )

    def _assign(self, names: Mapping[Source, Iterable[str]]) -> None:
        """Give tensors without an array the one with one of their names, if no other has it."""
        claims: dict[str, dict[Source, None]] = {}
        for source, known in names.items():
            if source not in self.keys:
                for name in known:
                    if name in self.unmatched:
                        claims.setdefault(name, {})[source] = None
        for name, sources in claims.items():
            if len(sources) == 1:
                self.keys.setdefault(next(iter(sources)), name)
                del self.unmatched[name]
            else:
                which = " or ".join(repr(self.network.tensor_name(s)) for s in [*sources][:3])
                self.unmatched[name] = f"it may be {which}"

    def has(self, index: int) -> bool:
        """Whether there is an array for one of the outputs."""
        return any((index, k) in self.keys for k in range(len(self.network.layer(index).outputs)))

    def take(self, index: int) -> Sequence[Array | None]:
        """Return the arrays.

        Raises
        ------
        InputError
            An array has no numbers.
        """
        ports = enumerate(self.network.layer(index).outputs)
        return [self._read((index, output), port) for output, port in ports]

    def provides(self, source: Source) -> bool:
        """Whether there is an array for a tensor."""
        return source in self.keys

    def execution(self, index: int) -> Execution:
        """Return that any algorithm may have been used."""
        return Execution(windows=True)

    def _read(self, source: Source, port: Port) -> Array | None:
        import numpy as np

        if source not in self.keys:
            return None
        name = self.keys[source]
        array = np.asarray(self.arrays[name])
        if array.dtype.kind == "V" and from_numpy(array.dtype) is None:
            # A .npy file has raw bytes of types that NumPy lacks.
            stated = port.element_type
            if stated is not None and stated.numpy().itemsize == array.dtype.itemsize:
                array = array.view(stated.numpy())
        if from_numpy(array.dtype) is None:
            raise InputError(f"the array {name!r} has dtype {array.dtype}, which no tensor has")
        return array


_FORMS: tuple[Callable[[Layer, int], Sequence[str]], ...] = (
    lambda layer, output: layer.outputs[output].names,
    # Dumps of this library name the second of two tensors of one name so (`unique_names`).
    lambda layer, output: (f"{layer.name}.{layer.id}.{output}",),
    lambda layer, output: layer.outputs[output].names,
    lambda layer, output: (layer.name,) if output == 0 else (),
    lambda layer, output: (f"{layer.name}.{output}", f"{layer.name}:{output}"),
)
"""The names that other tools may use for a tensor, by decreasing priority."""


def _names(layer: Layer, output: int) -> Iterator[str]:
    """Return the names that other tools may use for a tensor."""
    for forms in _FORMS:
        yield from forms(layer, output)


class GroupedSide(OneRunSide, abc.ABC):
    """A runtime that computes several tensors at a time, as added outputs.

    The inputs of their layers are outputs of the same run: with other outputs, a runtime fuses
    other layers, and rounds differently.
    """

    def __init__(
        self, network: Network, wanted: Sequence[Source], sizes: Mapping[Source, int]
    ) -> None:
        self.sources = network.graph.topology.sources
        self.provided = dict.fromkeys(wanted)
        self.groups = list(_groups(wanted, sizes))
        self.ready: dict[Source, Array] = {}

    def provides(self, source: Source) -> bool:
        """Whether the tensor can be an output."""
        return source in self.provided

    def fetch(self, source: Source) -> Array:
        """Return a tensor; earlier ones are not kept."""
        while source not in self.ready:
            group = self.groups.pop(0)
            before = self._before(group)
            found = self.compute([*group, *before])
            self.same_run = {s: found[s] for s in before}
            self.ready = {s: found[s] for s in group}
        return self.ready.pop(source)

    def _before(self, group: Sequence[Source]) -> list[Source]:
        """Return the last tensors before those of a group."""
        own = set(group)
        stack = [s for index, _ in group for s in self.sources[index] if s is not None]
        seen, found = set(stack), []
        while stack:
            source = stack.pop()
            if source in own:
                continue
            if source in self.provided:
                found.append(source)
                continue
            more = [s for s in self.sources[source[0]] if s is not None and s not in seen]
            seen.update(more)
            stack += more
        return found

    @abc.abstractmethod
    def compute(self, group: Sequence[Source]) -> dict[Source, Array]:
        """Run the network once, for these tensors."""


def _groups(wanted: Sequence[Source], sizes: Mapping[Source, int]) -> Iterator[list[Source]]:
    group: list[Source] = []
    held = 0
    for source in wanted:
        size = sizes.get(source, 0)
        if group and (len(group) == _GROUP_TENSORS or held + size > _GROUP_BYTES):
            yield group
            group, held = [], 0
        group.append(source)
        held += size
    if group:
        yield group


class OnnxSide(GroupedSide):
    """An ONNX model, run by onnxruntime; tensors are matched by name.

    Raises
    ------
    UnsupportedError
        onnx or onnxruntime is not installed, or cannot run the model.
    InputError
        An input of the ONNX model has no array.
    """

    def __init__(
        self,
        path: str,
        network: Network,
        inputs: Mapping[str, Array],
        wanted: Sequence[int],
        sizes: Mapping[Source, int],
    ) -> None:
        onnx = import_runtime("onnx")
        self.runtime = import_runtime("onnxruntime")
        self.path = path
        try:
            self.model = onnx.load(path)
        except Exception as error:  # protobuf and onnx have no common root
            raise UnsupportedError(
                f"onnx cannot read the model: {last_line(error)}", file=path
            ) from error
        self.network = network
        graph = self.model.graph
        produced = {name for node in graph.node for name in node.output if name}
        self.names: dict[Source, str] = {}
        for index in wanted:
            layer = network.layer(index)
            for output in range(len(layer.outputs)):
                name = next((n for n in _names(layer, output) if n in produced), None)
                if name is not None:
                    self.names[index, output] = name
        constant = {tensor.name for tensor in graph.initializer}
        asked = [value.name for value in graph.input if value.name not in constant]
        missing = [name for name in asked if name not in inputs]
        if missing and len(asked) == len(inputs):
            inputs = dict(zip(asked, inputs.values(), strict=True))
        elif missing:
            raise InputError(f"no array for input {missing[0]!r} of the ONNX model", file=path)
        self.inputs = {name: inputs[name] for name in asked}
        super().__init__(network, list(self.names), sizes)

    def has(self, index: int) -> bool:
        """Whether the ONNX model has a tensor with one of the layer's names."""
        return any((index, k) in self.names for k in range(len(self.network.layer(index).outputs)))

    def take(self, index: int) -> Sequence[Array | None]:
        """Run the network up to the tensors of the next layers, unless that was done."""
        outputs = range(len(self.network.layer(index).outputs))
        return [self.fetch((index, k)) if (index, k) in self.names else None for k in outputs]

    def compute(self, group: Sequence[Source]) -> dict[Source, Array]:
        """Make the tensors outputs of the graph, and run it."""
        graph = self.model.graph
        del graph.output[:]
        names = list(dict.fromkeys(self.names[source] for source in group))
        for name in names:
            graph.output.add().name = name
        try:
            session = self.runtime.InferenceSession(
                self.model.SerializeToString(), providers=["CPUExecutionProvider"]
            )
            results = session.run(names, self.inputs)
        except Exception as error:  # onnxruntime has no common root
            raise UnsupportedError(
                f"onnxruntime cannot run the model: {last_line(error)}", file=self.path
            ) from error
        by_name = dict(zip(names, results, strict=True))
        return {source: by_name[self.names[source]] for source in group}


def import_runtime(name: str, extra: str = "peers") -> Any:
    """Import an optional package.

    Raises
    ------
    UnsupportedError
        The package is not installed.
    """
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise UnsupportedError(
            f"{name} is not installed", hint=Hint.INSTALL_EXTRA(extra)
        ) from error


def last_line(error: Exception) -> str:
    """Return the message of a runtime's error, without its trace."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__
