"""Seeded random networks in OpenVINO's layout, which no other test uses, and a trial of --fix.

Networks are static or dynamic, compute in f32, f16 or partly in 8 bits, and half of them have If,
Loop or TensorIterator, whose bodies may have such a layer again.  Dims are declared as the layers
compute them.  One thing is changed in a network: after --fix the file must compute what the
unchanged one did, or have a finding.  Where a layer is changed together with the dims that it
declares, the file may also compute what the changed one does: the change may be meant.

    python tests/linter/drawn.py --networks 300    # 12,000 mutants; exit 1: a fix was wrong
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np
from lxml import etree

ROOT = Path(__file__).resolve().parents[2]
if __name__ == "__main__":
    sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from support import IR  # noqa: E402

import deconv_ir  # noqa: E402
from deconv_ir.formats.openvino_xml.entry import read_bytes  # noqa: E402
from deconv_ir.ir.graph import Graph  # noqa: E402
from deconv_ir.ir.infer import infer  # noqa: E402
from deconv_ir.ir.operation import Context, TensorInfo  # noqa: E402
from deconv_ir.ir.shapes import declared_form  # noqa: E402
from deconv_ir.linter.engine import check_bytes  # noqa: E402
from deconv_ir.linter.fix import fix_bytes  # noqa: E402
from deconv_ir.linter.options import choose  # noqa: E402
from linter.blocks import NUMPY, Drawing  # noqa: E402
from linter.meaning import computes_the_same, meaning  # noqa: E402
from linter.mutations import (  # noqa: E402
    FORMS,
    MUTATORS,
    SILENT,
    Mutation,
    change_attribute,
    change_number,
    change_port_map,
    change_word,
    remove_port_map,
)

EACH = 40
"""Mutants of each network."""
BLOCKS = (
    "convolution",
    "deconvolution",
    "pool",
    "activation",
    "normalize",
    "excite",
    "move",
    "resize",
    "deconvolution_to_size",
    "quantized",
    "split",
)
BODIES = ("branches", "loop", "iterator")
SAME = ("convolution", "activation", "normalize", "excite", "down_and_up", "requantized")
"""Blocks that keep the shape, or can."""
DEPTH = 2
"""Greatest depth of bodies within bodies."""
DYNAMIC = ("{n},{c},?,?", "{n},{c},?,{w}", "?,{c},{h},{w}", "1..4,{c},4..16,?")


class Nested(Drawing):
    """A graph being drawn, with layers that have bodies.

    Attributes
    ----------
    depth : int
        Number of bodies around it.
    """

    depth = 0
    refused = ""
    """The block that this body must not have: OpenVINO reads no TensorIterator within another."""

    def block(self, *names: str) -> None:
        """Draw one of some blocks."""
        getattr(self, self.rng.choice(names))()
        self.measure()

    def measure(self) -> None:
        """Set the shape to that of the last tensor."""
        layer, port = self.at
        text = self.ir.layers[layer]
        inputs = text[: text.index("<output>")].count("<port ")
        outputs = infer_all(_graph(self.ir), {}, self.ir.weights)[()]
        self.shape = [int(str(n)) for n in outputs[layer][port - inputs].shape or ()]

    def inner(self) -> Nested:
        """Begin the graph of a body."""
        found = Nested(self.rng, self.ir.body(), self.kind, dynamic=self.dynamic)
        found.depth = self.depth + 1
        found.is_whole = False
        return found

    def same(self) -> None:
        """Draw blocks that keep the shape."""
        for _ in range(self.rng.randrange(1, 3)):
            bodies = [b for b in BODIES if self.depth < DEPTH and b != self.refused]
            chosen = self.rng.choice([*SAME, *bodies])
            if chosen == "convolution":
                self.convolution(self.shape[1], "1, 1")
            elif chosen in BODIES:
                getattr(self, chosen)(keeps=True)
            else:
                getattr(self, chosen)()

    def down_and_up(self) -> None:
        """Halve the extents and double them again, if they are even and known."""
        c = self.shape[1]
        if self.dynamic or any(n % 2 for n in self.shape[2:]):
            self.convolution(c, "1, 1")
        else:
            self.convolution(strides="2, 2")
            self.measure()
            self.deconvolution(c, doubles=True)
            self.measure()

    def requantized(self) -> None:
        """Draw a convolution of 8 bits, and one that gives the channels that there were."""
        c = self.shape[1]
        self.quantized()
        self.measure()
        self.convolution(c, "1, 1")
        self.measure()

    def branches(self, *, keeps: bool = False) -> None:
        """Draw an If on whether the sum of the elements is positive."""
        total = self.add("ReduceSum", [self.ints(0, 1, 2, 3)], keep_dims="false")
        zero = self.ir.const(np.zeros((), np.float16 if self.kind == "f16" else np.float32))
        condition = self.ir.layer("Greater", [total, zero], NUMPY)
        out = self.rng.choice([self.shape[1], self.shape[1] if keeps else 3])
        maps, bodies = "", ""
        for name in ("then", "else"):
            inner = self.inner()
            x = inner.begin("x", self.shape)
            inner.same()
            if self.rng.random() < 0.5 or out != self.shape[1]:
                inner.convolution(out, "1, 1")
            y = inner.ir.result(inner.at)
            entries = [("input", 1, x[0], ""), ("output", 2, y[0], "")]
            maps += _joints(f"{name}_port_map", entries)
            bodies += f"<{name}_body>\n{inner.ir.sections()}</{name}_body>\n"
        self.at = self.ir.layer("If", [condition, self.at], version="opset8", bodies=maps + bodies)

    def loop(self, *, keeps: bool = False) -> None:
        """Draw a Loop whose state keeps its shape; a tensor from outside takes part."""
        trips = self.ints(self.rng.choice([2, 3]))
        go = self.ir.raw_const(b"\1", "boolean", ())
        bias = self.const(1, self.shape[1], 1, 1)
        inner = self.inner()
        shared = inner.ir.parameter("bias", f"1,{self.shape[1]},1,1", self.kind)
        number = inner.ir.parameter("number", "1", "i64")
        state = inner.begin("state", self.shape)
        inner.same()
        inner.at = inner.add("Add", [shared], **NUMPY)
        other = state
        if self.rng.random() < 0.5:
            other = inner.ir.layer("Convert", [number], {"destination_type": self.kind})
        inner.at = inner.add("Add", [other], **NUMPY)
        y = inner.ir.result(inner.at)
        goes_on = inner.ir.result(inner.ir.raw_const(b"\1", "boolean", ()))
        stacked = not keeps and self.rng.random() < 0.5
        entries = [
            ("input", 2, shared[0], ""),
            ("input", -1, number[0], 'purpose="current_iteration"'),
            ("input", 3, state[0], ""),
            ("output", -1, goes_on[0], 'purpose="execution_condition"'),
            ("output", 4, y[0], _slices(1, self.shape[1]) if stacked else ""),
        ]
        self.at = self.ir.layer(
            "Loop",
            [trips, go, bias, self.at],
            version="opset5",
            bodies=_joints("port_map", entries)
            + f'<back_edges>\n<edge from-layer="{y[0]}" to-layer="{state[0]}"/>\n</back_edges>\n'
            + f"<body>\n{inner.ir.sections()}</body>\n",
        )

    def iterator(self, *, keeps: bool = True) -> None:
        """Draw a TensorIterator over the rows, with a state; it always keeps the shape."""
        n, c, _, w = self.shape
        if self.dynamic:
            first = self.add("ReduceMean", [self.ints(2)], keep_dims="true")
        else:
            first = self.const(n, c, 1, w)
        inner = self.inner()
        inner.refused = "iterator"
        row = inner.ir.parameter("row", f"{n},{c},1,{w}", self.kind)
        state = inner.begin("state", [n, c, 1, w])
        inner.same()
        inner.at = inner.add("Add", [row], **NUMPY)
        y = inner.ir.result(inner.at)
        entries = [
            ("input", 0, row[0], _slices(2, 1)),
            ("input", 1, state[0], ""),
            ("output", 2, y[0], _slices(2, 1)),
        ]
        self.at = self.ir.layer(
            "TensorIterator",
            [self.at, first],
            bodies=_joints("port_map", entries)
            + f'<back_edges>\n<edge from-layer="{y[0]}" to-layer="{state[0]}"/>\n</back_edges>\n'
            + f"<body>\n{inner.ir.sections()}</body>\n",
        )


def _slices(axis: int, size: int) -> str:
    return f'axis="{axis}" start="0" end="-1" stride="{size}" part_size="{size}"'


def _joints(tag: str, entries: Sequence[tuple[str, int, int, str]]) -> str:
    """Write a port map."""
    lines = "".join(
        f'<{side} external_port_id="{port}" internal_layer_id="{layer}" {more}/>\n'
        for side, port, layer, more in entries
    )
    return f"<{tag}>\n{lines}</{tag}>\n"


def drawn_network(seed: int) -> tuple[str, bytes]:
    """Return the text and the weights of a network."""
    rng = random.Random(seed)
    kind = rng.choice(["f32", "f32", "f16"])
    dynamic = rng.random() < 0.4
    has_bodies = rng.random() < 0.5
    drawing = Nested(rng, IR(), kind, dynamic=dynamic)
    drawing.begin("x", [1, rng.choice([2, 3, 4]), rng.choice([6, 7, 8]), 8])
    n, c, h, w = drawing.shape
    shape = rng.choice(DYNAMIC).format(n=n, c=c, h=h, w=w)
    count = rng.randrange(4, 8) - 2 * has_bodies
    chosen = rng.randrange(count) if has_bodies else None
    for number in range(count):
        fits = [b for b in BLOCKS if b not in ("pool", "resize") or min(drawing.shape[2:]) > 3]
        if max(drawing.shape[2:]) > 12:
            fits = ["pool"]
        drawing.block(*(BODIES if number == chosen else fits))
    drawing.finish()
    ir = drawing.ir
    if dynamic:
        ir.layers[0] = ir.layers[0].replace(f'shape="{n},{c},{h},{w}"', f'shape="{shape}"')
    return declared(ir), bytes(ir.weights)


Shown = dict[tuple[object, ...], Sequence[Sequence[TensorInfo]]]
"""Path to a body (layer, tag, layer, ...) -> the outputs of its layers."""


def infer_all(graph: Graph, given: dict[int, TensorInfo], weights: bytes | bytearray) -> Shown:
    """Infer a graph and the bodies in it."""
    context = Context(weights=_Bytes(bytes(weights)))
    inference = infer(graph, context, given, collect=True)
    assert not inference.errors, inference.errors
    found: Shown = {(): inference.outputs}
    for index, layer in enumerate(graph.layers):
        if layer.operation.bodies:
            sources = [s for s in graph.topology.sources[index] if s is not None]
            inputs = [inference.outputs[layer][port] for layer, port in sources]
            of_bodies = layer.operation.infer_parameters(inputs, context)
            for body, infos in zip(layer.operation.bodies, of_bodies, strict=True):
                inside = infer_all(body.graph, infos, weights)
                found |= {(index, body.name, *path): rows for path, rows in inside.items()}
    return found


def _graph(ir: IR) -> Graph:
    return deconv_ir.load(ir.xml().encode(), bytes(ir.weights), warn=False).graph


class _Bytes:
    def __init__(self, data: bytes) -> None:
        self.data = data

    def __len__(self) -> int:
        return len(self.data)

    def read(self, offset: int, size: int) -> memoryview:
        return memoryview(self.data)[offset : offset + size]


def declared(ir: IR) -> str:
    """Return the text with dims and precisions at all ports, in OpenVINO's layout."""
    root = etree.fromstring(ir.xml().encode())
    outputs = infer_all(_graph(ir), {}, ir.weights)
    _declare(root, (), outputs)
    return _text(root)


def _text(root: etree._Element) -> str:
    etree.indent(root, "\t")
    return '<?xml version="1.0"?>\n' + etree.tostring(root).decode().replace("/>", " />") + "\n"


def _declare(graph: etree._Element, path: tuple[object, ...], outputs: Shown) -> None:
    sources = {
        (edge.get("to-layer"), edge.get("to-port")): (edge.get("from-layer"), edge.get("from-port"))
        for edge in graph.iterfind("edges/edge")
    }
    layers = {layer.get("id"): layer for layer in graph.iterfind("layers/layer")}
    for index, layer in enumerate(layers.values()):
        for port, info in zip(layer.iterfind("output/port"), outputs[path][index], strict=False):
            assert info.element_type is not None
            port.set("precision", info.element_type.ir_name)
            for dim in declared_form(info.shape):
                etree.SubElement(port, "dim").text = dim
            if layer.get("type") == "Parameter" and path:
                (data,) = layer.iterfind("data")
                data.set("shape", ",".join(map(str, info.shape or ())))
        for tag in ("body", "then_body", "else_body"):
            for body in layer.iterfind(tag):
                _declare(body, (*path, index, tag), outputs)
    for number, layer in layers.items():
        for port in layer.iterfind("input/port"):
            start, start_port = sources[number, port.get("id")]
            (source,) = layers[start].iterfind(f"output/port[@id='{start_port}']")
            port.set("precision", source.get("precision") or "")
            for dim in source:
                etree.SubElement(port, "dim").text = dim.text


def change_layer_and_dims(choices: random.Random, text: str) -> Mutation:
    """Change an attribute of a layer, and declare at its outputs what it computes then."""
    mutation = choices.choice((change_attribute, change_number, change_word))(choices, text)
    graph, errors = read_bytes(mutation.text.encode())
    if graph is None or errors:
        raise ValueError("it cannot be read")
    root = etree.fromstring(mutation.text.encode())
    layers = root.findall("layers/layer")
    index = max(i for i, layer in enumerate(layers) if (layer.sourceline or 0) <= mutation.line)
    outputs = infer(graph, Context(), {}, collect=True).outputs[index]
    for port, info in zip(layers[index].iterfind("output/port"), outputs, strict=True):
        if any(
            old.text != "-1" and not isinstance(n, int)
            for old, n in zip(port, info.shape or (), strict=False)
        ):
            raise ValueError("the elements of constants are needed")
        for dim in list(port):
            port.remove(dim)
        for text in declared_form(info.shape):
            etree.SubElement(port, "dim").text = text
    return mutation._replace(text=_text(root))


CHANGES = (
    (*MUTATORS, *FORMS),
    SILENT,
    (change_layer_and_dims, change_layer_and_dims, change_number, change_port_map, remove_port_map),
)
"""The mutations that a trial takes in turn."""


def trial(seeds: Iterable[int], folder: Path) -> tuple[Counter[str], list[str]]:
    """Mutate and fix networks; return what became of the mutants, and the wrong fixes."""
    ends: Counter[str] = Counter()
    wrong = []
    options = choose()
    file = folder / "drawn.bin"
    for seed in seeds:
        text, weights = drawn_network(seed)
        file.write_bytes(weights)
        choices = random.Random(seed)
        for number in range(EACH):
            mutate = choices.choice(CHANGES[number % len(CHANGES)])
            try:
                mutation = mutate(choices, text)
            except (IndexError, ValueError):
                continue  # there is nothing of that kind
            if not check_bytes(mutation.text.encode(), "m.xml", options, file).findings:
                ends["without finding"] += 1
                continue
            new, _, left = fix_bytes(mutation.text.encode(), "m.xml", options, file)
            if left.findings:
                ends["left"] += 1
                continue
            ends["fixed"] += 1
            meant = [text, mutation.text] if mutate is change_layer_and_dims else [text]
            same = meaning(new, weights) in [meaning(t.encode(), weights) for t in meant]
            if not same and not computes_the_same(text.encode(), new, weights, folder):
                wrong.append(f"{seed}:{mutation.line} {mutation.was!r} -> {mutation.now!r}")
    return ends, wrong


def main() -> int:
    """Run the trial."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--networks", type=int, default=300)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        ends, wrong = trial(range(given.networks), Path(folder))
    print(", ".join(f"{count} {end}" for end, count in ends.items()), *wrong, sep="\n")
    return int(bool(wrong))


if __name__ == "__main__":
    sys.exit(main())
