"""A third file format, as another package would add it: one tensor a line.

toy
x = Parameter f32 1,4
y = ReLU x
Result y
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from deconv_ir.errors import IRError, UnsupportedError
from deconv_ir.findings import Finding, GraphLocation, Location, TextSpan
from deconv_ir.formats.format import Format, Locator, ParsedFile
from deconv_ir.ir.dtypes import parse_element_type
from deconv_ir.ir.graph import Edge, Graph, Layer, Port
from deconv_ir.ir.shapes import format_shape
from deconv_ir.limits import Limits
from deconv_ir.linter.context import LintContext
from deconv_ir.linter.rule import WARNING, rule
from deconv_ir.operations import ConstantSource, find_operation

LINE = re.compile(r"(?:(\w+) = )?(\w+) (.+)")


class ToyText:
    comments = ()

    def __init__(self, text: str) -> None:
        self.text = text

    def position(self, offset: int) -> tuple[int, int]:
        before = self.text[:offset]
        return before.count("\n") + 1, offset - (before.rfind("\n") + 1) + 1

    def line_text(self, line: int) -> str:
        return self.text.split("\n")[line - 1]


class ToyDocument(ParsedFile):
    format = "toy"
    states_edges = False

    def __init__(self, file: str | None, text: str) -> None:
        super().__init__(file)
        self.file_text = ToyText(text)
        self.starts: list[int] = []

    def locator(self) -> ToyLocator:
        return ToyLocator(self)


class ToyLocator(Locator):
    def __init__(self, parsed: ToyDocument) -> None:
        self.file_text = parsed.file_text
        self.starts = parsed.starts

    def span(self, location: Location) -> TextSpan:
        if not isinstance(location, GraphLocation):
            return location
        start = self.starts[location.layer or 0]
        return TextSpan(start, self.file_text.text.index("\n", start))


class Toy(Format):
    name = "toy"
    title = "a toy"
    suffixes = (".toy",)
    rules = "toy"

    def recognise(self, data: bytes, file: str | None) -> bool:
        return data.startswith(b"toy\n")

    def read(self, data: bytes, file: str | None, limits: Limits) -> ToyDocument:
        text = data.decode()
        parsed = ToyDocument(file, text)
        layers: list[Layer] = []
        edges: list[Edge] = []
        made: dict[str, Layer] = {}
        at = text.index("\n") + 1
        for number, line in enumerate(text.splitlines()[1:], 2):
            match = LINE.fullmatch(line)
            found = match and find_operation(match[2])
            if match is None or found is None:
                message = f"no operation in {line!r}"
                parsed.errors.append(IRError(message, file=file, line=number, rule="toy"))
                return parsed
            name, kind, rest = match.groups()
            parsed.starts.append(at)
            at += len(line) + 1
            own, inputs, outputs = len(layers), (), (Port(1, None, names=(name or "",)),)
            attributes: tuple[tuple[str, str], ...] = ()
            if kind == "Parameter":
                element_type, shape = rest.split()
                dims = tuple(map(int, shape.split(",")))
                operation = found(shape=dims, element_type=parse_element_type(element_type))
                attributes = (("element_type", element_type), ("shape", shape))
            else:
                source = made[rest].outputs[0]
                inputs = (source._replace(id=0, names=()),)
                edges.append(Edge(made[rest].id, 1, own, 0))
                dims, operation = source.shape, found()
            outputs = (outputs[0]._replace(shape=dims, element_type=parse_element_type("f32")),)
            layer = Layer(
                own,
                name or f"{rest}/result",
                operation,
                kind,
                "opset1",
                inputs,
                () if kind == "Result" else outputs,
                attributes,
                number,
            )
            made[name or ""] = layer
            layers.append(layer)
        parsed.graph = Graph(
            name="toy", layers=tuple(layers), edges=tuple(edges), file=file, format=self.name
        )
        return parsed

    def save(self, graph: Graph, weights: ConstantSource | None, path: Path) -> list[str]:
        lines = ["toy"]
        names = {layer.id: layer.name for layer in graph.layers}
        for index in graph.topology.order:
            layer = graph.layers[index]
            given = [names[graph.layers[s[0]].id] for s in graph.topology.sources[index] if s]
            if layer.type == "Parameter":
                port = layer.outputs[0]
                dims = format_shape(port.shape).strip("[]")
                lines.append(f"{layer.name} = Parameter {port.element_type} {dims}")
            elif layer.type == "Result":
                lines.append(f"Result {given[0]}")
            elif len(given) != 1 or layer.attributes:
                raise UnsupportedError(f"a toy has no {layer.type}", layer=layer.label)
            else:
                lines.append(f"{layer.name} = {layer.type} {given[0]}")
        path.write_text("\n".join(lines) + "\n")
        return [str(path)]


@rule("TOY1", "shouted-name", WARNING)
def shouted_names(context: LintContext) -> Iterator[Finding]:
    """A name is in capitals."""
    for index, layer in enumerate(context.graph.layers):
        if layer.name.isupper():
            yield Finding(f"{layer.name} is shouted", GraphLocation(layer=index))
