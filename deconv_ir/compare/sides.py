"""Sources of the tensors with which those of a model are compared."""

from __future__ import annotations

import abc
import math
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final, Protocol

from deconv_ir.compare.evaluate import Evaluator
from deconv_ir.compare.judge import Execution
from deconv_ir.compare.network import Network
from deconv_ir.errors import InputError, UnsupportedError
from deconv_ir.formats.dumps import safe_stem
from deconv_ir.formats.openvino_xml import OPENVINO_XML
from deconv_ir.formats.openvino_xml.weights import Weights
from deconv_ir.formats.openvino_xml.writer import to_bytes
from deconv_ir.formats.registry import format_of
from deconv_ir.hints import Hint
from deconv_ir.ir.dtypes import BF16, F16, F32, Array, from_numpy, parse_element_type
from deconv_ir.ir.graph import Layer, Port, Source
from deconv_ir.ops.constants.constant import unpack

OPENVINO_SETTINGS: Final = {"INFERENCE_PRECISION_HINT": "f32"}
"""The settings of OpenVINO, unless others are given."""
_GROUP_BYTES = 256 << 20
_GROUP_TENSORS = 64


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
    """What most sides have in common: they run the first model, and have one run."""

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
    lambda layer, output: (layer.name,) if output == 0 else (),
    lambda layer, output: (f"{layer.name}.{output}", f"{layer.name}:{output}"),
)
"""The names that other tools may use for a tensor, by decreasing priority."""


def _names(layer: Layer, output: int) -> Iterator[str]:
    """Return the names that other tools may use for a tensor."""
    for forms in _FORMS:
        yield from forms(layer, output)


class _Grouped(OneRunSide, abc.ABC):
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


class OpenVINOSide(_Grouped):
    """The second model, run by OpenVINO.

    Raises
    ------
    UnsupportedError
        OpenVINO is not installed, or cannot read the model.
    """

    def __init__(
        self,
        network: Network,
        pairs: Mapping[int, int],
        inputs: Mapping[int, Array],
        wanted: Sequence[int],
        sizes: Mapping[Source, int],
        settings: Mapping[str, str] | None = None,
    ) -> None:
        openvino = import_runtime("openvino")
        self.settings = OPENVINO_SETTINGS | dict(settings or {})
        self.executions: dict[str, Execution] = {}
        self.network = network
        self.pairs = pairs
        self.inputs = inputs
        self.core = openvino.Core()
        graph = network.graph
        self.model: str | bytes | None = graph.file
        self.weights: str | bytes = network.weights_file or ""
        self.ports = {
            (i, output): (layer.name, output)
            for i, layer in enumerate(graph.layers)
            for output in range(len(layer.outputs))
        }
        """Tensor -> its layer's name in OpenVINO, and the output."""
        own = format_of(graph)
        if not own.has_opsets:
            ir = own.to_opsets(graph)
            self.model, self.weights = to_bytes(ir.graph), ir.weights
            self.ports = {source: (name, 0) for source, name in ir.names.items()}
        elif graph.changed or own is not OPENVINO_XML:  # OpenVINO does not read its file
            stored = network.context.weights
            self.model = to_bytes(graph)
            self.weights = b"".join(stored.chunks()) if isinstance(stored, Weights) else b""
        if self.model is None:
            raise UnsupportedError("OpenVINO reads a model from its file, this one has none")
        try:
            model = self._read()
        except RuntimeError as error:
            raise UnsupportedError(
                f"OpenVINO cannot read the model: {last_line(error)}", file=graph.file
            ) from error
        # Layers of an IR may share a name, which then does not identify a tensor.
        names = Counter(op.get_friendly_name() for op in model.get_ops())
        rows = {i: range(len(network.layer(pairs[i]).outputs)) for i in wanted}
        self.known = {
            i: [(pairs[i], output) for output in row]
            for i, row in rows.items()
            if all(names[self.ports[pairs[i], output][0]] == 1 for output in row)
        }
        known = [source for row in self.known.values() for source in row]
        super().__init__(network, known, sizes)

    def _read(self) -> Any:
        given = (self.model, self.weights) if self.weights else (self.model,)
        return self.core.read_model(*given)

    def has(self, index: int) -> bool:
        """Whether OpenVINO has the layer."""
        return index in self.known

    def own(self, index: int) -> int:
        """Return the index in the second model."""
        return self.pairs[index]

    def execution(self, index: int) -> Execution:
        """Return the precision that the compiled model states for a layer, or else for all."""
        stated = self.executions.get(self.ports[index, 0][0]) if (index, 0) in self.ports else None
        hint = self.settings.get("INFERENCE_PRECISION_HINT", "")
        whole = _FLOATS.get(hint)
        if stated is None:
            return Execution(whole)
        return stated

    def take(self, index: int) -> Sequence[Array | None]:
        """Run the network up to the tensors of the next layers, unless that was done."""
        return [self.fetch(source) for source in self.known[index]]

    def compute(self, group: Sequence[Source]) -> dict[Source, Array]:
        """Add outputs, compile, run."""
        model = self._read()
        ops = {op.get_friendly_name(): op for op in model.get_ops()}
        try:
            model.add_outputs([ops[name].output(k) for name, k in (self.ports[s] for s in group)])
            compiled = self.core.compile_model(model, "CPU", dict(self.settings))
            hint = self.settings.get("INFERENCE_PRECISION_HINT", "")
            self.executions |= _executions(compiled.get_runtime_model(), hint)
            by_name = {self.ports[i, 0][0]: array for i, array in self.inputs.items()}
            given = [by_name[port.get_node().get_friendly_name()] for port in model.inputs]
            request = compiled.create_infer_request()
            request.infer(list(map(_as_tensor, given, model.inputs)))
        except RuntimeError as error:
            raise UnsupportedError(
                f"OpenVINO cannot run the model: {last_line(error)}", file=self.network.graph.file
            ) from error
        # A port that is already an output is not added again.
        found: dict[Any, Array] = {}
        for position, output in enumerate(model.outputs):
            source = output.get_node().input_value(0)
            key = (source.get_node().get_friendly_name(), source.get_index())
            found[key] = _as_array(request.get_output_tensor(position))
        return {source: found[self.ports[source]] for source in group}


_FLOATS = {"f32": F32, "bf16": BF16, "f16": F16}


def _executions(runtime_model: Any, hint: str) -> dict[str, Execution]:
    """Return how OpenVINO computes each layer, by its name, as the compiled model states it.

    A layer counts as computed in the type of the hint if its kernel or an output has that type;
    its other types are those in which constants are stored.
    """
    found: dict[str, Execution] = {}
    for node in runtime_model.get_ordered_ops():
        info = node.get_rt_info()
        primitive = _text(info, "primitiveType")
        kernel = primitive.rpartition("_")[2]
        types = {kernel, *_text(info, "outputPrecisions").split(",")}
        execution = Execution(
            _FLOATS[hint] if hint in types & _FLOATS.keys() else None,
            "wino" in primitive,
            kernel in ("i8", "u8", "i4", "u4"),
        )
        names = [node.get_friendly_name(), *_text(info, "originalLayersNames").split(",")]
        for name in filter(None, names):
            before = found.get(name)
            found[name] = execution if before is None else _coarser(before, execution)
    return found


def _coarser(a: Execution, b: Execution) -> Execution:
    """Return the execution with the larger errors."""
    order = (None, F32, F16, BF16)
    executed = max((a.executed, b.executed), key=order.index)
    return Execution(executed, a.windows or b.windows, a.levels or b.levels)


def _text(info: Any, name: str) -> str:
    try:
        value = info[name]
    except (KeyError, RuntimeError):
        return ""
    return str(getattr(value, "value", value))


def _as_tensor(array: Array, port: Any) -> Any:
    """Return an array for OpenVINO, which needs raw bytes for types that NumPy lacks."""
    import numpy as np

    element_type = parse_element_type(port.get_element_type().get_type_name())
    codes = np.ascontiguousarray(array)
    if element_type.name in ("i4", "u4"):  # two share a byte, the first the low half
        codes = np.append(codes.view(np.uint8) & 15, np.zeros(array.size % 2, np.uint8))
        codes = codes[::2] | (codes[1::2] << 4)
    elif element_type.is_packed:
        raise UnsupportedError(f"an input of type {element_type} cannot be given to OpenVINO")
    elif array.dtype.isbuiltin != 1:
        codes = codes.view(f"u{array.itemsize}")
    return import_runtime("openvino").Tensor(codes, array.shape, port.get_element_type())


def _as_array(tensor: Any) -> Array:
    """Return a copy of a result; OpenVINO returns raw bytes for types that NumPy lacks."""
    element_type = parse_element_type(tensor.element_type.get_type_name())
    count = math.prod(tensor.shape)
    return unpack(memoryview(tensor.data.tobytes()), element_type, count).reshape(tensor.shape)


class OnnxSide(_Grouped):
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
    import importlib

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
