"""The tensors of a model in OpenVINO."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final

from deconv_ir.compare.judge import Execution
from deconv_ir.compare.network import Network
from deconv_ir.compare.sides import GroupedSide, import_runtime, last_line
from deconv_ir.errors import UnsupportedError
from deconv_ir.formats.openvino_xml import OPENVINO_XML
from deconv_ir.formats.openvino_xml.weights import Weights
from deconv_ir.formats.openvino_xml.writer import to_bytes
from deconv_ir.formats.registry import format_of
from deconv_ir.ir.dtypes import BF16, F16, F32, Array, parse_element_type
from deconv_ir.ir.graph import Source
from deconv_ir.ops.constants.constant import unpack

OPENVINO_SETTINGS: Final = {"INFERENCE_PRECISION_HINT": "f32"}
"""The settings of OpenVINO, unless others are given."""


class OpenVINOSide(GroupedSide):
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
        self.sizes = sizes
        self.executions: dict[str, Execution] = {}
        self.precision = self.settings["INFERENCE_PRECISION_HINT"]
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
        return Execution(_FLOATS.get(self.precision)) if stated is None else stated

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
            # A processor without arithmetic of f16 takes bf16 or f32 instead.
            self.precision = compiled.get_property("INFERENCE_PRECISION_HINT").get_type_name()
            self.executions |= _executions(compiled.get_runtime_model(), self.precision)
            by_name = {self.ports[i, 0][0]: array for i, array in self.inputs.items()}
            given = [by_name[port.get_node().get_friendly_name()] for port in model.inputs]
            request = compiled.create_infer_request()
            request.infer(list(map(as_tensor, given, model.inputs)))
        except RuntimeError as error:
            raise UnsupportedError(
                f"OpenVINO cannot run the model: {last_line(error)}", file=self.network.graph.file
            ) from error
        # A port that is already an output is not added again.
        found: dict[Any, Array] = {}
        for position, output in enumerate(model.outputs):
            source = output.get_node().input_value(0)
            key = (source.get_node().get_friendly_name(), source.get_index())
            found[key] = as_array(request.get_output_tensor(position))
        return {source: found[self.ports[source]] for source in group}


_FLOATS = {"f32": F32, "bf16": BF16, "f16": F16}


def _executions(runtime_model: Any, precision: str) -> dict[str, Execution]:
    """Return how OpenVINO computes each layer, by its name, as the compiled model states it.

    A layer counts as computed in the model's inference precision if its kernel, its operands or an
    output have that type; its other types are those in which constants are stored.
    """
    found: dict[str, Execution] = {}
    for node in runtime_model.get_ordered_ops():
        info = node.get_rt_info()
        primitive = _text(info, "primitiveType")
        kernel = primitive.rpartition("_")[2]
        stated = _text(info, "runtimePrecision")  # the weights alone may have this type
        types = {kernel, stated, *_text(info, "outputPrecisions").split(",")}
        execution = Execution(
            _FLOATS[precision] if precision in types & _FLOATS.keys() else None,
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


def as_tensor(array: Array, port: Any) -> Any:
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


def as_array(tensor: Any) -> Array:
    """Return a result, which keeps its tensor; types that NumPy lacks are raw bytes there."""
    element_type = parse_element_type(tensor.element_type.get_type_name())
    if element_type.numpy().isbuiltin == 1 and tensor.data.dtype == element_type.numpy():
        found: Array = tensor.data
        return found
    count = math.prod(tensor.shape)
    return unpack(memoryview(tensor.data.tobytes()), element_type, count).reshape(tensor.shape)
