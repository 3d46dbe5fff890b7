"""Seeded random networks in OpenVINO's layout, which no other test uses, and a trial of --fix.

Each network has blocks of convolutions, pools, resampling, products, reductions and movements,
whose attributes are drawn too.  Dims are declared as the layers compute them.  One thing is changed
in a network: after --fix the file must compute what the unchanged one did, or have a finding.

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
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[2]
if __name__ == "__main__":
    sys.path[:0] = [str(ROOT), str(ROOT / "tests")]

from support import IR, Out  # noqa: E402

import deconv_ir  # noqa: E402
from deconv_ir.ir.infer import infer  # noqa: E402
from deconv_ir.ir.operation import Context  # noqa: E402
from deconv_ir.ir.shapes import declared_form  # noqa: E402
from deconv_ir.linter.engine import check_bytes  # noqa: E402
from deconv_ir.linter.fix import fix_bytes  # noqa: E402
from deconv_ir.linter.options import choose  # noqa: E402
from linter.meaning import computes_the_same, meaning  # noqa: E402
from linter.mutations import FORMS, MUTATORS, SILENT  # noqa: E402

EACH = 40
"""Mutants of each network."""
PADS = {"pads_begin": "1, 1", "pads_end": "1, 1"}
NO_PADS = {"pads_begin": "0, 0", "pads_end": "0, 0"}
NUMPY = {"auto_broadcast": "numpy"}


class Drawing:
    """A network being drawn: its last tensor of rank 4, and the shape of that."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)
        self.arrays = np.random.default_rng(seed)
        self.ir = IR()
        self.shape = [1, self.rng.choice([2, 3, 4]), self.rng.choice([6, 7, 8]), 8]
        self.at = self.ir.parameter("x", ",".join(map(str, self.shape)))

    def const(self, *shape: int) -> Out:
        return self.ir.const(self.arrays.normal(size=shape).astype(np.float32))

    def ints(self, *values: int) -> Out:
        return self.ir.const(np.array(values, np.int64))

    def add(self, kind: str, sources: Sequence[Out], version: str = "opset1", **data: Any) -> Out:
        attributes = {name.replace("__", "-"): str(value) for name, value in data.items()}
        return self.ir.layer(kind, [self.at, *sources], attributes, version=version)

    def convolution(self) -> None:
        c, out, k = self.shape[1], self.rng.choice([2, 3, 5]), self.rng.choice([1, 3])
        pads = PADS if k == 3 else NO_PADS
        strides = self.rng.choice(["1, 1", "2, 2", "1, 2"])
        self.at = self.add(
            "Convolution",
            [self.const(out, c, k, k)],
            strides=strides,
            dilations="1, 1",
            auto_pad="explicit",
            **pads,
        )
        self.at = self.add("Add", [self.const(1, out, 1, 1)], **NUMPY)

    def deconvolution(self) -> None:
        c, out = self.shape[1], self.rng.choice([2, 3, 5])
        k, s = self.rng.choice([(2, 2), (3, 2), (4, 2), (3, 1)])
        pads = PADS if k > 2 else NO_PADS
        more = "1, 1" if (k, s) == (3, 2) else "0, 0"
        self.at = self.add(
            "ConvolutionBackpropData",
            [self.const(c, out, k, k)],
            strides=f"{s}, {s}",
            dilations="1, 1",
            auto_pad="explicit",
            output_padding=more,
            **pads,
        )

    def pool(self) -> None:
        data = {
            "kernel": "2, 2",
            "strides": "2, 2",
            "rounding_type": self.rng.choice(["floor", "ceil"]),
            "auto_pad": "explicit",
            **NO_PADS,
        }
        if self.rng.random() < 0.5:
            exclude = self.rng.choice(["true", "false"])
            data |= {"kernel": "3, 3", **PADS}
            self.at = self.add("AvgPool", [], **data, **{"exclude-pad": exclude})
        else:
            self.at = self.add("MaxPool", [], **data)

    def activation(self) -> None:
        kind = self.rng.choice(["ReLU", "Sigmoid", "Tanh", "Elu", "Clamp", "HSwish", "PReLU"])
        if kind == "Elu":
            self.at = self.add(kind, [], alpha=1.0)
        elif kind == "Clamp":
            self.at = self.add(kind, [], min=-1.0, max=1.0)
        elif kind == "PReLU":
            self.at = self.add(kind, [self.const(self.shape[1])])
        else:
            self.at = self.add(kind, [], "opset4" if kind == "HSwish" else "opset1")

    def normalize(self) -> None:
        if self.rng.random() < 0.5:
            axes = self.ints(2, 3)
            variance = self.rng.choice(["true", "false"])
            self.at = self.add(
                "MVN",
                [axes],
                "opset6",
                normalize_variance=variance,
                eps=1e-5,
                eps_mode="inside_sqrt",
            )
        else:
            self.at = self.add("SoftMax", [], "opset8", axis=self.rng.choice([1, -1, 2]))

    def excite(self) -> None:
        c = self.shape[1]
        whole = self.at
        self.at = self.add("ReduceMean", [self.ints(2, 3)], keep_dims="true")
        self.at = self.add(
            "Convolution",
            [self.const(c, c, 1, 1)],
            strides="1, 1",
            dilations="1, 1",
            auto_pad="explicit",
            **NO_PADS,
        )
        self.at = self.add("Sigmoid", [])
        self.at = self.add("Multiply", [whole], **NUMPY)

    def move(self) -> None:
        chosen = self.rng.randrange(5)
        n, c, h, w = self.shape
        if chosen == 0:
            self.at = self.add("Transpose", [self.ints(0, 1, 3, 2)])
        elif chosen == 1:
            self.at = self.add(
                "Pad",
                [self.ints(0, 0, 1, 1), self.ints(0, 0, 1, 0)],
                pad_mode=self.rng.choice(["edge", "reflect", "symmetric"]),
            )
        elif chosen == 2:
            self.at = self.add("Reshape", [self.ints(0, c, -1)], special_zero="true")
            self.at = self.add("Reshape", [self.ints(n, c, h, w)], special_zero="false")
        elif chosen == 3:
            other = self.add("ReLU", [])
            self.at = self.add("Concat", [other], axis=1)
        else:
            self.at = self.add(
                "StridedSlice",
                [self.ints(0, 0, 1, 0), self.ints(0, 0, 0, 0), self.ints(1, 1, 1, 1)],
                begin_mask="1, 1, 0, 1",
                end_mask="1, 1, 1, 1",
                new_axis_mask="",
                shrink_axis_mask="",
                ellipsis_mask="",
            )

    def resize(self) -> None:
        h, w = self.shape[2:]
        sizes = [self.ints(2 * h, w), self.const(2), self.ints(2, 3)]
        mode = self.rng.choice(["nearest", "linear_onnx"])
        self.at = self.add(
            "Interpolate",
            sizes,
            "opset4",
            mode=mode,
            shape_calculation_mode="sizes",
            coordinate_transformation_mode=self.rng.choice(["half_pixel", "asymmetric"]),
            nearest_mode="floor",
            antialias="false",
            pads_begin="0",
            pads_end="0",
            cube_coeff=-0.75,
        )

    def finish(self) -> None:
        n, c, h, w = self.shape
        self.at = self.add("Reshape", [self.ints(n, c * h * w)], special_zero="false")
        transposed = self.rng.random() < 0.5
        shape = (3, c * h * w) if transposed else (c * h * w, 3)
        self.at = self.add(
            "MatMul", [self.const(*shape)], transpose_a="false", transpose_b=str(transposed).lower()
        )
        self.ir.result(self.at, "y")


BLOCKS = (
    "convolution",
    "deconvolution",
    "pool",
    "activation",
    "normalize",
    "excite",
    "move",
    "resize",
)


def drawn_network(seed: int) -> tuple[str, bytes]:
    """Return the text and the weights of a network."""
    drawing = Drawing(seed)
    for _ in range(drawing.rng.randrange(4, 8)):
        fits = [b for b in BLOCKS if b not in ("pool", "resize") or min(drawing.shape[2:]) > 3]
        if max(drawing.shape[2:]) > 12:
            fits = ["pool"]
        getattr(drawing, drawing.rng.choice(fits))()
        shapes = _outputs(drawing.ir)
        drawing.shape = [int(n) for n in shapes[drawing.at[0]][0]]
    drawing.finish()
    return _declared(drawing.ir), bytes(drawing.ir.weights)


def _outputs(ir: IR) -> list[list[tuple[str, ...]]]:
    """Return the dims of each output of each layer."""
    graph = deconv_ir.load(ir.xml().encode(), bytes(ir.weights), warn=False).graph
    inference = infer(graph, Context(weights=_Bytes(bytes(ir.weights))), collect=True)
    assert not inference.errors, inference.errors
    return [[declared_form(info.shape) for info in row] for row in inference.outputs]


class _Bytes:
    def __init__(self, data: bytes) -> None:
        self.data = data

    def __len__(self) -> int:
        return len(self.data)

    def read(self, offset: int, size: int) -> memoryview:
        return memoryview(self.data)[offset : offset + size]


def _declared(ir: IR) -> str:
    """Return the text with dims and precisions at all ports, in OpenVINO's layout."""
    from lxml import etree

    outputs = _outputs(ir)
    root = etree.fromstring(ir.xml().encode())
    sources = {
        (edge.get("to-layer"), edge.get("to-port")): (edge.get("from-layer"), edge.get("from-port"))
        for edge in root.iterfind("edges/edge")
    }
    layers = {layer.get("id"): layer for layer in root.iterfind("layers/layer")}
    for number, layer in layers.items():
        for index, port in enumerate(layer.iterfind("output/port")):
            for dim in outputs[int(number or 0)][index]:
                etree.SubElement(port, "dim").text = dim
    for number, layer in layers.items():
        for port in layer.iterfind("input/port"):
            start, start_port = sources[number, port.get("id")]
            (source,) = layers[start].iterfind(f"output/port[@id='{start_port}']")
            port.set("precision", source.get("precision") or "")
            for dim in source:
                etree.SubElement(port, "dim").text = dim.text
    etree.indent(root, "\t")
    return '<?xml version="1.0"?>\n' + etree.tostring(root).decode().replace("/>", " />") + "\n"


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
            mutate = choices.choice(SILENT if number % 2 else MUTATORS + FORMS)
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
            same = meaning(text.encode(), weights) == meaning(new, weights)
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
