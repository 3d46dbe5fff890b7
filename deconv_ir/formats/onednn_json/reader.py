"""Reading oneDNN Graph files: JSON in, a frozen graph out.

Each operation becomes a layer, each tensor that no operation produces a Parameter, and each output
a Result.  Tensors are named by their ids.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from deconv_ir.errors import AttributeValueError, DeconvError, IRError
from deconv_ir.findings import GraphLocation, TextSpan
from deconv_ir.formats.onednn_json.kinds import KINDS, SPELLINGS, OpKind
from deconv_ir.formats.onednn_json.members import Members, UnusableError, elements, layout_info
from deconv_ir.formats.onednn_json.overrides import Changes, Overrides
from deconv_ir.formats.onednn_json.parsed import LogicalTensor, ParsedJSON, Stated
from deconv_ir.formats.onednn_json.text import JSONText, Node, parse
from deconv_ir.hints import Hint
from deconv_ir.ir.graph import Edge, Graph, Info, Layer, Port
from deconv_ir.ir.operation import Operation
from deconv_ir.ir.shapes import format_shape
from deconv_ir.limits import DEFAULT_LIMITS, Limits
from deconv_ir.ops.base import UnknownOperation, attributes_of, parse_attributes
from deconv_ir.ops.constants.parameter import Parameter, Result
from deconv_ir.ops.convolution.onednn import ConvTranspose
from deconv_ir.suggestions import nearest


def parse_bytes(
    data: bytes,
    file: str | None = None,
    limits: Limits = DEFAULT_LIMITS,
    overrides: Overrides | None = None,
) -> ParsedJSON:
    """Read a graph, and keep the location of each part."""
    parsed = ParsedJSON(file)
    try:
        if len(data) > limits.xml_bytes:
            raise IRError(
                f"the file has {len(data)} bytes, more than the limit of {limits.xml_bytes}",
                file=file,
                line=1,
                rule="oversize",
                expected=limits.xml_bytes,
                actual=len(data),
            )
        parsed.file_text = JSONText(data, file)
        root = parse(parsed.file_text, limits)
        _GraphReader(parsed, parsed.file_text, limits, overrides).read(root)
    except DeconvError as error:
        error.locate(file=file)
        parsed.errors.append(error)
    return parsed


class _GraphReader(Members):
    def __init__(
        self, parsed: ParsedJSON, file_text: JSONText, limits: Limits, overrides: Overrides | None
    ) -> None:
        super().__init__(parsed, file_text, limits)
        self.overrides = None if overrides is None else Changes(overrides)
        self.layers: list[Layer] = []
        self.edges: list[Edge] = []
        self.misplaced: list[tuple[AttributeValueError, Node]] = []

    def read(self, root: Node) -> None:
        """Read the file into `parsed`."""
        self.parsed.root = TextSpan(root.start, root.start + 1)
        operations = root.get("graph")
        if operations is None or not isinstance(operations.value, list | tuple):
            what = "the file has no list 'graph'"
            raise IRError(
                f"not a oneDNN Graph file: {what}",
                file=self.parsed.file,
                line=self.file_text.position(root.start)[0],
                rule="root" if operations is None else "missing-element",
                hint=Hint.ONEDNN_DUMPS(),
            )
        if len(operations.value) > self.limits.layers:
            raise IRError(
                f"the graph has {len(operations.value)} operations, more than the limit of "
                f"{self.limits.layers}",
                file=self.parsed.file,
                line=self.file_text.position(operations.start)[0],
                rule="oversize",
            )
        if self.overrides is not None and self.overrides.dtype:
            unchanged = _GraphReader(
                ParsedJSON(self.parsed.file), self.file_text, self.limits, None
            )
            self.overrides.keep_types(unchanged.operations(operations))
        stated = self.operations(operations)
        if self.overrides is not None and not self.parsed.errors:
            self.overrides.require_used()
            stated = self.overrides.change_batch(stated)
        ended = {
            tensor.id for layer, facts in stated if layer.type == "End" for tensor in facts.inputs
        }
        stated = [entry for entry in stated if entry[0].type != "End"]
        ports = {name: self.ports(root, name) for name in ("input_ports", "output_ports")}
        self.connect(stated, ports["input_ports"], ports["output_ports"], ended)
        self._place()
        graph = Graph(
            name=self._name(),
            layers=tuple(self.layers),
            edges=tuple(self.edges),
            extras=tuple(self.settings(root)),
            file=self.parsed.file,
            format=ParsedJSON.format,
        )
        quantizes = any(layer.type == "Dequantize" for layer in self.layers)
        if quantizes and not self.parsed.errors:
            from deconv_ir.ops.onednn.integer_graphs import with_grouped_scales

            graph = with_grouped_scales(graph)
        self.parsed.graph = graph
        if self.overrides is not None and not self.parsed.errors:
            self.parsed.graph = self.overrides.fit_channels(self.parsed.graph)

    def operations(self, section: Node) -> list[tuple[Layer, Stated]]:
        """Read the operations that can be used."""
        found = []
        for position, node in enumerate(elements(section)):
            self.label = f"graph[{position}]"
            try:
                found.append(self.operation(node, position))
            except UnusableError:
                continue
        self.label = None
        return found

    def _name(self) -> str:
        file = self.parsed.file or "graph"
        return file.replace("\\", "/").rpartition("/")[2].removesuffix(".json")

    def settings(self, root: Node) -> list[Info]:
        """Return the members of the file with settings of the computation, which are kept."""
        found = []
        for name in ("version", "engine_kind", "fpmath_mode", "fpmath_mode_apply_to_int"):
            node = root.get(name)
            if node is not None and isinstance(node.value, str):
                found.append((name, node.value))
        return [Info("onednn_graph", tuple(found))]

    def ports(self, root: Node, name: str) -> tuple[int, ...] | None:
        """Return the tensor ids of a list of ports; None if the list is missing."""
        node = root.get(name)
        if node is None:
            return None
        if not isinstance(node.value, tuple) and node.value != []:
            message = f"{name} must be a list of tensor ids, found {self.shown(node)}"
            self.error("number", message, node)
            return None
        ids = tuple(node.value)
        for index, tensor in enumerate(ids):
            self.parsed.ports.append((name, tensor, self.file_text.integer_span(node, index)))
        return ids

    def operation(self, node: Node, position: int) -> tuple[Layer, Stated]:
        """Read one operation."""
        if not isinstance(node.value, dict):
            message = f"an operation must be an object, found {self.shown(node)}"
            raise self.fail("json", message, node)
        kind = self.member(node, "kind", str, "text")
        number = self.member(node, "id", int, "a whole number")
        name = node.get("name")
        text = name.value if name is not None and isinstance(name.value, str) else ""
        self.label = f"{(text or kind)!r} ({kind}, id {number})"
        inputs = tuple(self.tensors(node, "inputs"))
        outputs = tuple(self.tensors(node, "outputs"))
        if self.overrides is not None:
            kind = self.overrides.kinds.get(number, kind)
            inputs = tuple(map(self.overrides.tensor, inputs))
            outputs = tuple(map(self.overrides.output, outputs))
        row = KINDS.get(kind)
        given = self.attributes(node)
        if self.overrides is not None:
            self.overrides.change_attributes(number, given)
        operation: Operation
        if row is None:
            written = tuple(given.items())
            operation = UnknownOperation(
                attributes=written, hint=nearest(kind, KINDS), searched=True
            )
        else:
            written, operation = self.make(row, kind, given, inputs, outputs, node)
        line, _ = self.file_text.position(node.start)
        layer = Layer(
            number,
            text or f"{kind}_{number}",
            operation,
            kind,
            None,
            tuple(self.port(t, i, line, output=False) for i, t in enumerate(inputs)),
            tuple(self.port(t, i, line, output=True) for i, t in enumerate(outputs)),
            written,
            line,
        )
        return layer, Stated(node, inputs, outputs)

    def make(
        self,
        row: OpKind,
        kind: str,
        given: Mapping[str, str],
        inputs: Sequence[LogicalTensor],
        outputs: Sequence[LogicalTensor],
        node: Node,
    ) -> tuple[tuple[tuple[str, str], ...], Operation]:
        """Make the operation of a kind from its attributes."""
        cls = row.operation(kind, {t.element_type for t in (*inputs, *outputs)})
        known = {spec.name for spec in attributes_of(cls)}
        stated = row.attributes(cls)
        written = dict(row.defaults)
        unknown = {}
        for name, value in given.items():
            spelt = name if name in stated else SPELLINGS.get(name, name)
            if spelt in stated:
                written[stated[spelt]] = value
            else:
                unknown[name] = value
        visible = (*written.items(), *unknown.items())
        if outputs and outputs[0].element_type is not None and "output_type" in known:
            written["output_type"] = outputs[0].element_type.name
        if "output_count" in known:
            written["output_count"] = str(max(1, len(outputs)))
        declared = outputs[0].shape if outputs else None
        static = declared is not None and all(isinstance(d, int) for d in declared)
        if static and declared:
            text = ",".join(map(str, declared))
            if "declared_shape" in known:
                written["declared_shape"] = text
            zeros = set(written.get("dst_shape", "0").split(","))
            if "dst_shape" in known and zeros <= {"0", ""} and len(inputs) < 3:
                written["dst_shape"] = text
        if set(written.get("dst_shape", "1").split(",")) <= {"0", ""}:
            del written["dst_shape"]  # a missing attribute may be written as zeros
        made, errors = parse_attributes(cls, written)
        for error in errors:
            self._file(error, node)
        if made is None:
            return visible, UnknownOperation(attributes=visible)
        if isinstance(made, ConvTranspose) and static and declared:
            made = made.replace(declared=declared)
        return visible, made

    def _file(self, error: AttributeValueError, node: Node) -> None:
        """Collect the problem of an attribute; `_place` sets its location."""
        line, _ = self.file_text.position(node.start)
        error.locate(file=self.parsed.file, line=line, layer=self.label)
        self.parsed.errors.append(error)
        self.misplaced.append((error, node))

    def _place(self) -> None:
        """Set the graph locations of the attributes with problems."""
        indices = {id(stated.node): i for i, stated in enumerate(self.parsed.stated)}
        for error, node in self.misplaced:
            error.location = GraphLocation(layer=indices.get(id(node)), attribute=error.attribute)

    # The graph

    def connect(
        self,
        stated: list[tuple[Layer, Stated]],
        inputs: tuple[int, ...] | None,
        outputs: tuple[int, ...] | None,
        ended: set[int],
    ) -> None:
        """Make Parameters, Results and edges; an End operation also becomes a Result."""
        produced: dict[int, tuple[Layer, int]] = {}
        for layer, facts in stated:
            for index, tensor in enumerate(facts.outputs):
                if tensor.id in produced:
                    first, _ = produced[tensor.id]
                    self.label = layer.label
                    self.error(
                        "tensor-produced-twice",
                        f"tensor {tensor.id} is already produced by {first.label} "
                        f"in line {first.line}",
                        tensor.node,
                        actual=tensor.id,
                    )
                    continue
                produced[tensor.id] = layer, index
        self.label = None
        used: dict[int, LogicalTensor] = {}
        for _, facts in stated:
            for tensor in facts.inputs:
                used.setdefault(tensor.id, tensor)
        free = 1 + max((layer.id for layer, _ in stated), default=0)
        missing = [number for number in used if number not in produced]
        if inputs is not None:
            places = {number: i for i, number in enumerate(inputs)}
            missing.sort(key=lambda number: places.get(number, len(places)))
        made: dict[int, int] = {}
        for number in missing:
            made[number] = free
            self._parameter(free, used[number])
            free += 1
        for layer, facts in stated:
            # An inner tensor without dims may be a scalar or have an unknown rank.
            ports = tuple(
                port if tensor.shape or tensor.id in made else port._replace(shape=None)
                for port, tensor in zip(layer.inputs, facts.inputs, strict=True)
            )
            self.layers.append(layer._replace(inputs=ports))
            self.parsed.stated.append(facts)
            for index, tensor in enumerate(facts.inputs):
                line, _ = self.file_text.position(tensor.node.start)
                if tensor.id in produced:
                    source, port = produced[tensor.id]
                    self.edges.append(Edge(source.id, port, layer.id, index, line))
                else:
                    self.edges.append(Edge(made[tensor.id], 0, layer.id, index, line))
        wanted = [number for number in produced if number not in used or number in ended]
        if outputs is not None and any(number in produced for number in outputs):
            asked = dict.fromkeys((*outputs, *sorted(ended)))
            wanted = [number for number in asked if number in produced]
        tensors = {t.id: t for _, facts in stated for t in facts.outputs}
        for number in wanted:
            self._result(free, tensors[number], *produced[number])
            free += 1

    def _parameter(self, number: int, tensor: LogicalTensor) -> None:
        line, _ = self.file_text.position(tensor.node.start)
        operation = Parameter(shape=tensor.shape, element_type=tensor.element_type)
        name = str(tensor.id)
        written = (("shape", format_shape(tensor.shape)), ("element_type", tensor.dtype))
        port = Port(0, tensor.shape, tensor.element_type, (name,), 0, (layout_info(tensor),))
        self.layers.append(
            Layer(number, name, operation, "Parameter", "opset1", (), (port,), written, line)
        )
        self.parsed.stated.append(Stated(tensor.node, (), (tensor,)))

    def _result(self, number: int, tensor: LogicalTensor, source: Layer, index: int) -> None:
        line, _ = self.file_text.position(tensor.node.start)
        port = Port(0, source.outputs[index].shape, tensor.element_type)
        name = f"{tensor.id}/result"
        self.layers.append(Layer(number, name, Result(), "Result", "opset1", (port,), line=line))
        self.parsed.stated.append(Stated(tensor.node, (tensor,)))
        self.edges.append(Edge(source.id, index, number, 0, line))
