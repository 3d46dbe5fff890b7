"""Hover texts of editors for the part of an IR under the pointer, in Markdown."""

from __future__ import annotations

from bisect import bisect_right
from typing import NamedTuple

from deconv_ir.formats.openvino_xml.locations import XMLLocator
from deconv_ir.formats.openvino_xml.scanner import Element
from deconv_ir.ir.operation import Operation, TensorInfo
from deconv_ir.ir.shapes import format_shape
from deconv_ir.linter.context import LintContext
from deconv_ir.ops import find_operation
from deconv_ir.ops.base import AttributeSpec, attributes_of


class Hover(NamedTuple):
    """A text, and the span of the file that it describes."""

    text: str
    span: tuple[int, int]


def hover(context: LintContext, offset: int) -> Hover | None:
    """Describe the element at an offset of a document; None: unknown."""
    if context.parsed.graph is None or not isinstance(context.locator, XMLLocator):
        return None
    for inner in reversed(list(context.with_bodies())):
        found = _Pointer(inner, offset).describe()
        if found is not None:
            return found
    return None


class _Pointer:
    """An offset into one graph."""

    def __init__(self, context: LintContext, offset: int) -> None:
        assert isinstance(context.locator, XMLLocator)
        self.context = context
        self.locator = context.locator
        self.graph = context.graph
        self.offset = offset

    def describe(self) -> Hover | None:
        layers, edges = self.locator.layers, self.locator.edges
        edge = bisect_right(edges, self.offset) - 1
        if not self.graph.bare and edge >= 0:
            element = self.locator.element(edges[edge])
            if self.inside(element):
                return self.edge(edge, element)
        at = bisect_right(layers, self.offset) - 1
        if at < 0:
            return None
        element = self.locator.layer(at)
        if not self.inside(element):
            return None
        type_name = element.attributes().get("type")
        # Layers that complete a bare layer have the same start.
        candidates = [i for i, start in enumerate(layers) if start == element.start]
        index = next((i for i in candidates if self.graph.layers[i].type == type_name), at)
        return self.layer(index, element)

    def inside(self, element: Element) -> bool:
        return element.start <= self.offset < element.end

    def layer(self, index: int, element: Element) -> Hover | None:
        if element.start <= self.offset < element.head_end:
            return Hover(self.operation(index), element.head)
        section = next((child for child in element.children if self.inside(child)), None)
        if section is None:
            return None
        if section.tag == "data":
            return self.data(index, section)
        ports = list(section.named("port"))
        port = next((p for p in ports if self.inside(p)), None)
        if section.tag not in ("input", "output") or port is None:
            return None
        position = ports.index(port)
        dims = list(port.named("dim"))
        axis = next((i for i, dim in enumerate(dims) if self.inside(dim)), None)
        span = port.head if axis is None else (dims[axis].start, dims[axis].end)
        return Hover(self.tensor(index, section.tag, position, axis), span)

    def edge(self, index: int, element: Element) -> Hover | None:
        edge = self.graph.edges[index]
        by_id = {layer.id: i for i, layer in enumerate(self.graph.layers)}
        start, end = by_id.get(edge.from_layer), by_id.get(edge.to_layer)
        if start is None or end is None:
            return None
        layers = self.graph.layers
        lines = [f"{_code(layers[start].label)} → {_code(layers[end].label)}"]
        ids = [port.id for port in layers[start].outputs]
        if edge.from_port in ids:
            lines.append(self.tensor(start, "output", ids.index(edge.from_port), None))
        return Hover("\n\n".join(lines), element.head)

    # Texts

    def operation(self, index: int) -> str:
        """Describe the operation of a layer."""
        layer = self.graph.layers[index]
        cls = self.declared(index)
        if cls is None:
            return f"**{layer.type}**: no shape rule for this operation, declared shape used"
        names = ", ".join(f"`{spec.name}`" for spec in attributes_of(cls)) or "none"
        inputs = ", ".join(f"`{name}`" for name in cls.inputs) or "none"
        parts = [f"**{_name(cls)}**", _summary(cls), f"Inputs: {inputs}. Attributes: {names}."]
        return "\n\n".join(filter(None, parts))

    def declared(self, index: int) -> type[Operation] | None:
        """Return the class of a layer, even if its attributes cannot be read."""
        layer = self.graph.layers[index]
        return find_operation(layer.type, layer.version)

    def data(self, index: int, element: Element) -> Hover | None:
        """Describe an attribute by its declaration."""
        cls = self.declared(index)
        for name, (start, _, end) in element.attribute_spans().items():
            if start <= self.offset <= end and cls is not None:
                specs = {spec.name: spec for spec in attributes_of(cls)}
                known = ", ".join(f"`{n}`" for n in specs) or "none"
                text = (
                    _attribute(cls, specs[name])
                    if name in specs
                    else f"**{name}** is not an attribute of {_name(cls)}, which has: {known}"
                )
                return Hover(text, (start, end + 1))
        return Hover(self.operation(index), element.head) if cls is not None else None

    def tensor(self, index: int, side: str, port: int, axis: int | None) -> str:
        """Describe a tensor, or one of its dims, with its formula."""
        producer, output = index, port
        came = ""
        if side == "input":
            source = self.context.topology.sources[index][port]
            if source is None:
                return "no edge leads to this port: declared dims used"
            producer, output = source
            came = f" of {_code(self.graph.layers[producer].label)}"
        info = self.context.outputs(producer)[output]
        where = f"output {output}{came}"
        if info.shape is None:
            return f"{where}: the rank is not known"
        expressions = self.expressions(producer, output)
        if axis is None:
            joined = None if expressions is None else ",".join(expressions)
            sizes = "" if joined is None else f", sizes {_code(f'[{joined}]')}"
            shape = f"{_code(format_shape(info.shape))} {info.element_type or ''}".rstrip()
            return f"{where}: {shape}{sizes}"
        if axis >= len(info.shape):
            return f"{where} has no axis {axis}: the computed shape is {format_shape(info.shape)}"
        text = f"{where}, axis {axis}: **{format_shape((info.shape[axis],))[1:-1]}**"
        if expressions is not None:
            text += f", size {_code(expressions[axis])}"
        formula = self.formula(producer, output, axis)
        return f"{text}\n\n{_code(formula)}" if formula else text

    def expressions(self, index: int, output: int) -> tuple[str, ...] | None:
        """Return the dims of a tensor of a dynamic model as expressions; None: they are numbers."""
        found = self.context.symbolic
        return None if found is None else found.texts(index, output)

    def formula(self, index: int, output: int, axis: int) -> str | None:
        layer = self.graph.layers[index]
        inputs: list[TensorInfo] = self.context.inputs(index)
        if not layer.operation.implemented or index in self.context.unfit:
            return None
        return layer.operation.explain(inputs, self.context.inference_context, output, axis)


def _name(cls: type[Operation]) -> str:
    versions = getattr(cls, "versions", ())
    return f"{cls.type}, {versions[0]}" if versions and versions[0] else cls.type


def _summary(cls: type[Operation]) -> str:
    """Return the paragraphs of an operation's docstring, without sections and examples."""
    paragraphs = [" ".join(p.split()) for p in (cls.__doc__ or "").split("\n\n")]
    kept = [p for p in paragraphs if p and "----" not in p and not p.startswith(">>>")]
    return "\n\n".join(kept).replace("``", "`")


def _attribute(cls: type[Operation], spec: AttributeSpec) -> str:
    """Describe a declared attribute."""
    if not spec.has_default:
        absent = "Required."
    elif spec.required:
        absent = "Required by the document; readers tolerate its absence."
    elif spec.default is None:
        absent = "May be absent."
    else:
        absent = f"Default: {_code(spec.kind.format(spec.default) or 'empty')}."
    return f"**{spec.name}** of {_name(cls)}: {spec.kind.allowed}. {absent}"


def _code(text: str) -> str:
    """Format any text as code."""
    fence = "``" if "`" in text else "`"
    return f"{fence}{text}{fence}"
