"""A graph of current operations, and the conversion of each old layer to them."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from deconv_ir.errors import AttributeValueError, DeconvError
from deconv_ir.formats.openvino_legacy.attributes import LayerAttributes
from deconv_ir.formats.openvino_legacy.layer import OldBlob, OldLayer, computed_type, stored_type
from deconv_ir.formats.openvino_legacy.literal import AddedConstant
from deconv_ir.formats.openvino_legacy.parsed import OldOrigin
from deconv_ir.ir.dtypes import F32, I32, I64, ElementType
from deconv_ir.ir.graph import Edge, Graph, Layer, Port, Source
from deconv_ir.ir.infer import infer_layer
from deconv_ir.ir.operation import Context, Operation, TensorInfo
from deconv_ir.ir.shapes import format_shape, is_static, static
from deconv_ir.ops import find_operation
from deconv_ir.ops.base import UnknownOperation, attributes_of, format_attributes, parse_attributes
from deconv_ir.ops.constants.constant import Const
from deconv_ir.ops.constants.parameter import Result
from deconv_ir.ops.opsets import LAST_OPSET, OF_OPSET_2


def first_version(type_name: str, version: str = "opset1") -> type[Operation]:
    """Return the oldest version of an operation from an opset on: all releases read it."""
    for number in range(int(version.removeprefix("opset")), LAST_OPSET + 1):
        found = find_operation(type_name, f"opset{number}")
        if found is not None:
            return found
    raise AssertionError(f"{type_name} is implemented")


def written_attributes(operation: Operation) -> tuple[tuple[str, str], ...]:
    """Return the attributes of an operation as text, without empty lists that are a default.

    OpenVINO 2026.4 dies of an empty `output_roi` of ROIPooling.
    """
    optional = {spec.name for spec in attributes_of(type(operation)) if spec.has_default}
    written = format_attributes(operation).items()
    return tuple((name, value) for name, value in written if value or name not in optional)


class Conversion:
    """The layers and edges of a graph that is being built.

    Attributes
    ----------
    layers : list of Layer
    edges : list of Edge
    origins : list of OldOrigin
    bodies : list of (int, Conversion, list of OldLayer, Graph)
        For each body the index of its layer, its conversion, the old layers and the graph.
    """

    def __init__(self, file: str | None) -> None:
        self.file = file
        self.layers: list[Layer] = []
        self.edges: list[Edge] = []
        self.origins: list[OldOrigin] = []
        self.bodies: list[tuple[int, Conversion, list[OldLayer], Graph]] = []
        self.infos: dict[Source, TensorInfo] = {}
        self._names: set[str] = set()

    def reserve(self, names: Sequence[str]) -> None:
        """Keep names for the layers that have them in the old file."""
        self._names.update(names)

    def add(
        self,
        name: str,
        type_name: str,
        version: str | None,
        operation: Operation,
        sources: Sequence[Source],
        step: LayerConversion,
        outputs: int = 1,
    ) -> int:
        """Add a layer behind others, with a name of its own; return its index."""
        index = len(self.layers)
        unique, number = name, 1
        while unique in self._names:
            number += 1
            unique = f"{name}_{number}"
        self._names.add(unique)
        ports = tuple(step.origin_of(source) for source in sources)
        old = step.layer
        inputs = tuple(
            Port(
                i,
                None if port < 0 else old.inputs[port].shape,
                self.infos[source].element_type,
                (),
                0 if port < 0 else old.inputs[port].line_offset,
            )
            for i, (port, source) in enumerate(zip(ports, sources, strict=True))
        )
        infos = self._infer(operation, [self.infos[s] for s in sources], outputs)
        layer = Layer(
            index,
            unique,
            operation,
            type_name,
            version,
            inputs,
            tuple(Port(len(inputs) + i, None, info.element_type) for i, info in enumerate(infos)),
            written_attributes(operation),
            old.line,
        )
        self.layers.append(layer)
        self.origins.append(OldOrigin(old.start, ports))
        for i, info in enumerate(infos):
            self.infos[index, i] = info
        for i, source in enumerate(sources):
            port_id = self.layers[source[0]].outputs[source[1]].id
            self.edges.append(Edge(source[0], port_id, index, i, old.line))
        return index

    def _infer(
        self, operation: Operation, inputs: Sequence[TensorInfo], outputs: int
    ) -> tuple[TensorInfo, ...]:
        """Infer as far as that is possible without the weights file."""
        layer = Layer(0, "", operation, operation.type)
        if operation.implemented:
            try:
                found = infer_layer(layer, inputs, Context())
            except DeconvError:  # reported when the graph is checked
                found = ()
            if len(found) >= outputs:
                return found[:outputs]
        known = inputs[0].element_type if inputs else None
        return (TensorInfo(None, known),) * outputs

    def finish(self, step: LayerConversion, outputs: Sequence[Source]) -> None:
        """Give the layers that compute the outputs of an old layer its name, ports and dims."""
        old = step.layer
        last = {source[0] for source in outputs}
        for index in last:
            layer = self.layers[index]
            if len(last) == 1:
                layer = layer._replace(name=old.name)
            ports = list(layer.outputs)
            for i, source in enumerate(outputs):
                if source[0] != index:
                    continue
                stated = old.outputs[i]
                name = old.name if len(outputs) == 1 else f"{old.name}.{i}"
                ports[source[1]] = ports[source[1]]._replace(
                    shape=stated.shape,
                    names=(name,) if step.is_named and name else (),
                    line_offset=stated.line_offset,
                )
                info = self.infos[source]
                if stated.shape is not None:
                    self.infos[source] = info._replace(shape=stated.shape)
            self.layers[index] = layer._replace(outputs=tuple(ports))
            own = tuple((s[1], i) for i, s in enumerate(outputs) if s[0] == index)
            self.origins[index] = self.origins[index]._replace(outputs=own)

    def add_result(self, old: OldLayer, number: int, source: Source) -> int:
        """Add a Result of an output of an old layer; return its index."""
        shown = Port(0, old.outputs[number].shape, self.infos[source].element_type)
        position = len(self.layers)
        name = f"{old.name}/sink_port_{number}"
        self.layers.append(
            Layer(position, name, Result(), "Result", "opset1", (shown,), line=old.line)
        )
        self.origins.append(OldOrigin(old.start))
        port_id = self.layers[source[0]].outputs[source[1]].id
        self.edges.append(Edge(source[0], port_id, position, 0, old.line))
        return position


class LayerConversion(LayerAttributes):
    """The conversion of one old layer: its attributes, inputs and blobs, and new layers.

    Attributes
    ----------
    layer : OldLayer
    inputs : list of Source
        What its input ports are connected to.
    is_named : bool
        Whether its name is unique in the file.
    convert_body : callable
        Converts the layers of its body.
    """

    def __init__(
        self,
        conversion: Conversion,
        layer: OldLayer,
        inputs: Sequence[Source],
        is_named: bool,
        convert_body: Callable[
            [list[OldLayer], list[Edge]], tuple[Conversion, dict[int, list[Source]]]
        ],
    ) -> None:
        self.convert_body = convert_body
        self._ports = {source: index for index, source in reversed(list(enumerate(inputs)))}
        self.conversion = conversion
        self.layer = layer
        self.inputs = list(inputs)
        self.is_named = is_named
        self.first = len(conversion.layers)

    def origin_of(self, source: Source) -> int:
        """Return the position of an input; -1: the source is inside the conversion."""
        return self._ports.get(source, -1)

    # Tensors

    def dims(self, source: Source, least: int = 0, most: int | None = None) -> tuple[int, ...]:
        """Return the static dims of a tensor, of which there are `least` to `most`.

        Raises
        ------
        UnsupportedError
            The file does not state them, or there are others.
        """
        shape = self.conversion.infos[source].shape
        if not is_static(shape):
            raise self.unsupported(f"static dims are needed, found {format_shape(shape)}")
        return self._counted(static(shape), least, most)

    def _counted(
        self, dims: tuple[int, ...], least: int, most: int | None = None
    ) -> tuple[int, ...]:
        """Return dims if there are as many as a layer needs."""
        if least <= len(dims) <= (len(dims) if most is None else most):
            return dims
        wanted = f"{least}" if most == least else f"at least {least}"
        raise self.unsupported(f"{wanted} dims are needed, found {format_shape(dims)}")

    def rank(self, source: Source) -> int:
        """Return the rank of a tensor."""
        shape = self.conversion.infos[source].shape
        if shape is None:
            raise self.unsupported("the rank of an input is needed, its port has no dims")
        return len(shape)

    def type_of(self, source: Source) -> ElementType:
        """Return the element type of a tensor."""
        return self.conversion.infos[source].element_type or F32

    def declared(self, output: int = 0) -> tuple[int, ...] | None:
        """Return the declared dims of an output; None if it has none."""
        shape = self.layer.outputs[output].shape if output < len(self.layer.outputs) else None
        return static(shape) if shape is not None and is_static(shape) else None

    def stated(self, output: int = 0, least: int = 0) -> tuple[int, ...]:
        """Return the declared dims of an output, which are needed, and at least `least` of them."""
        found = self.declared(output)
        if found is None:
            raise self.unsupported(f"output {output} has no dims, which the conversion needs")
        return self._counted(found, least)

    def input(self, index: int = 0) -> Source:
        """Return what an input port is connected to.

        Raises
        ------
        UnsupportedError
            The layer has fewer inputs.
        """
        if index >= len(self.inputs):
            raise self.unsupported(
                f"{self.layer.type} needs {index + 1} inputs, found {len(self.inputs)}"
            )
        return self.inputs[index]

    # New layers

    def apply(
        self, operation: Operation, *sources: Source, outputs: int = 1, suffix: str = ""
    ) -> tuple[Source, ...]:
        """Add a layer of an operation; return its outputs."""
        type_name = operation.type
        version = (type(operation).versions or ("opset1",))[0]
        version = "opset2" if type_name in OF_OPSET_2 else version
        name = f"{self.layer.name}/{suffix or type_name}"
        index = self.conversion.add(name, type_name, version, operation, sources, self, outputs)
        return tuple((index, i) for i in range(outputs))

    def many(
        self,
        type_name: str,
        *sources: Source,
        outputs: int,
        version: str = "opset1",
        **attributes: Any,
    ) -> tuple[Source, ...]:
        """Add an operation of several outputs."""
        found = first_version(type_name, version)
        return self.apply(found(**attributes), *sources, outputs=outputs)

    def add(
        self, type_name: str, *sources: Source, version: str = "opset1", **attributes: Any
    ) -> Source:
        """Add an operation; its attributes are typed values."""
        return self.many(type_name, *sources, outputs=1, version=version, **attributes)[0]

    def written(
        self,
        type_name: str,
        *sources: Source,
        version: str = "opset1",
        outputs: int = 1,
        given: dict[str, str] | None = None,
        **attributes: str,
    ) -> tuple[Source, ...]:
        """Add an operation whose attributes are written as in the old layer.

        Those of `attributes` are added.  Old tools wrote whole numbers as 1.0, which is read.
        """
        found = first_version(type_name, version)
        names = dict(self.layer.attributes) if given is None else given
        stated = {k: _plain(v) for k, v in names.items() if v.strip()} | attributes
        operation, errors = parse_attributes(found, stated)
        for error in errors:
            raise error
        assert operation is not None, "or there are errors"
        return self.apply(operation, *sources, outputs=outputs)

    def literal(
        self,
        values: Sequence[float],
        element_type: ElementType = I64,
        shape: Sequence[int] | None = None,
        suffix: str = "value",
    ) -> Source:
        """Add a constant; by default a list of i64."""
        dims = (len(values),) if shape is None else tuple(shape)
        made = AddedConstant(values=tuple(values), element_type=element_type, shape=dims)
        return self.apply(made, suffix=suffix)[0]

    def scalar(self, value: float, like: Source | None = None) -> Source:
        """Add a number, of the element type of another tensor."""
        return self.literal((value,), F32 if like is None else self.type_of(like), ())

    def convert(self, source: Source, element_type: ElementType) -> Source:
        """Convert a tensor to an element type, if it has another one."""
        if self.type_of(source) is element_type:
            return source
        return self.add("Convert", source, destination_type=element_type)

    def integral(self, source: Source) -> Source:
        """Return a tensor of axes or sizes as integers: old files may have them as floats."""
        return source if self.type_of(source).is_integer else self.convert(source, I64)

    def reshape(self, source: Source, shape: Sequence[int]) -> Source:
        """Change the dims of a tensor; 0 keeps one, -1 is computed."""
        return self.add("Reshape", source, self.literal(shape, suffix="shape"), special_zero=True)

    def own(self, source: Source) -> Source:
        """Return a tensor that a new layer computes: an input gets a Convert to its own type."""
        if source[0] >= self.first:
            return source
        return self.copy(source)

    def copy(self, source: Source) -> Source:
        """Return a tensor of a layer of its own with the same elements."""
        return self.add("Convert", source, destination_type=self.type_of(source))

    # Blobs

    def blob_type(self, name: str, count: int | None = None) -> ElementType:
        """Return the element type in which a blob of `count` elements is stored.

        Model Optimizer stored I64 as I32 for the plugins of version 7, and named the former.
        """
        blob, outputs = self.layer.blobs[name], self.layer.outputs
        precision = blob.precision or self.layer.precision
        if not precision and outputs and outputs[0].element_type is not None:
            return outputs[0].element_type
        found = stored_type(precision)
        if found is None:
            raise self.unsupported(f"blob {name!r} has precision {precision!r}, which has no type")
        return I32 if found is I64 and count is not None and blob.size == 4 * count else found

    def blob_elements(self, name: str) -> int:
        """Return the number of elements of a blob, by its size."""
        return self.layer.blobs[name].size * 8 // max(1, self.blob_type(name).bits)

    def has_blob(self, name: str) -> bool:
        """Whether the layer has a blob with elements."""
        return name in self.layer.blobs and self.layer.blobs[name].size > 0

    def blob(self, name: str, shape: Sequence[int]) -> Source:
        """Add a constant of a blob, with a Convert to the type in which tensors are computed.

        Raises
        ------
        AttributeValueError
            The layer has no such blob, or its size is another one.
        """
        if not self.has_blob(name):
            raise AttributeValueError(
                f"blob {name!r} is missing", attribute=name, rule="legacy-blob", expected=name
            )
        blob: OldBlob = self.layer.blobs[name]
        stored = self.blob_type(name, math.prod(shape))
        needed = stored.size_of(math.prod(shape))
        if needed != blob.size:
            dims = format_shape(tuple(shape))
            raise AttributeValueError(
                f"blob {name!r} has {blob.size} bytes, but {stored}{dims} takes {needed}",
                attribute=name,
                expected=needed,
                actual=blob.size,
                rule="legacy-blob",
                location=blob.span,
            )
        const = Const(element_type=stored, shape=tuple(shape), offset=blob.offset, size=blob.size)
        made = self.apply(const, suffix=name)[0]
        return self.convert(made, computed_type(stored))


def _plain(text: str) -> str:
    """Write numbers such as 1.000000 as 1, so that whole numbers are read as such."""
    words = []
    for word in text.split(","):
        head, dot, tail = word.strip().partition(".")
        whole = dot and head.removeprefix("-").isdigit() and not tail.strip("0")
        words.append(head if whole else word.strip())
    return ",".join(words)


Rule = Callable[[LayerConversion], Source | Sequence[Source]]
"""Converts a layer: adds new ones, and returns what computes each of its outputs."""


def outputs_of(made: Source | Sequence[Source]) -> list[Source]:
    """Return the outputs that a rule returned: one, or several."""
    if made and isinstance(made[0], int):
        return [(made[0], int(made[1]))]  # type: ignore[arg-type]
    return list(made)  # type: ignore[arg-type]


def unknown(step: LayerConversion) -> None:
    """Add a layer that cannot be converted as an unknown operation, with its ports."""
    old = step.layer
    conversion = step.conversion
    index = len(conversion.layers)
    operation = UnknownOperation(attributes=tuple(old.attributes.items()), searched=True)
    conversion.add(old.name, old.type, None, operation, step.inputs, step, len(old.outputs))
    conversion.layers[index] = conversion.layers[index]._replace(
        attributes=tuple(old.attributes.items())
    )
    for i, port in enumerate(old.outputs):
        known = computed_type(stored_type(old.precision))
        conversion.infos[index, i] = TensorInfo(port.shape, port.element_type or known)
    conversion.finish(step, [(index, i) for i in range(len(old.outputs))])
