"""Time deconv-lint against OpenVINO's reader, and as the size of the file grows.

Run it with a Python that has OpenVINO to compare the two. Without OpenVINO the table has only the
column of deconv-lint::

    python bench/lint.py [LAYERS ...]

Times are medians of interleaved runs, so that both are measured under the same load.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

SIZES = (12_500, 25_000, 50_000, 100_000)
DIMS = (1, 8, 16, 16)


def port(number: int, dims: tuple[int, ...]) -> str:
    """Write a port in OpenVINO's form."""
    inside = "".join(f"\t\t\t\t\t<dim>{d}</dim>\n" for d in dims)
    return f'\t\t\t\t<port id="{number}" precision="FP32">\n{inside}\t\t\t\t</port>\n'


class Chain:
    """A network of deconvolutions, each with a bias and ReLU, in the form that OpenVINO writes."""

    def __init__(self) -> None:
        self.layers: list[str] = []
        self.edges: list[str] = []
        self.offset = 0

    def layer(
        self,
        name: str,
        type_name: str,
        data: str,
        inputs: list[tuple[int, ...]],
        outputs: list[tuple[int, ...]],
    ) -> int:
        """Add a layer, and return its id."""
        number = len(self.layers)
        text = f'\t\t<layer id="{number}" name="{name}" type="{type_name}" version="opset1">\n'
        text += f"\t\t\t<data {data} />\n" if data else ""
        for tag, first, ports in (("input", 0, inputs), ("output", len(inputs), outputs)):
            if ports:
                inside = "".join(port(first + i, dims) for i, dims in enumerate(ports))
                text += f"\t\t\t<{tag}>\n{inside}\t\t\t</{tag}>\n"
        self.layers.append(text + "\t\t</layer>\n")
        return number

    def constant(self, name: str, dims: tuple[int, ...]) -> int:
        """Add a constant."""
        size = 4
        for dim in dims:
            size *= dim
        shape = ", ".join(map(str, dims))
        data = f'element_type="f32" shape="{shape}" offset="{self.offset}" size="{size}"'
        self.offset += size
        return self.layer(name, "Const", data, [], [dims])

    def edge(self, source: tuple[int, int], to: int, to_port: int) -> None:
        """Add an edge."""
        self.edges.append(
            f'\t\t<edge from-layer="{source[0]}" from-port="{source[1]}"'
            f' to-layer="{to}" to-port="{to_port}" />\n'
        )

    def block(self, source: tuple[int, int], number: int) -> tuple[int, int]:
        """Add a filter, a deconvolution, a bias, an Add and a ReLU."""
        filter_, bias = (8, 8, 3, 3), (1, 8, 1, 1)
        weights = self.constant(f"weights_{number}", filter_)
        attributes = (
            'strides="1, 1" dilations="1, 1" pads_begin="1, 1" pads_end="1, 1"'
            ' auto_pad="explicit" output_padding="0, 0"'
        )
        type_name = "ConvolutionBackpropData"
        deconv = self.layer(f"deconv_{number}", type_name, attributes, [DIMS, filter_], [DIMS])
        self.edge(source, deconv, 0)
        self.edge((weights, 0), deconv, 1)
        added = self.constant(f"bias_{number}", bias)
        add = self.layer(f"add_{number}", "Add", 'auto_broadcast="numpy"', [DIMS, bias], [DIMS])
        self.edge((deconv, 2), add, 0)
        self.edge((added, 0), add, 1)
        relu = self.layer(f"relu_{number}", "ReLU", "", [DIMS], [DIMS])
        self.edge((add, 2), relu, 0)
        return relu, 1


def write_chain(path: Path, layers: int) -> None:
    """Write a network of `count` layers, and its .bin (all zeros, sparse)."""
    chain = Chain()
    data = f'shape="{",".join(map(str, DIMS))}" element_type="f32"'
    at = (chain.layer("x", "Parameter", data, [], [DIMS]), 0)
    for number in range(layers // 5):
        at = chain.block(at, number)
    chain.edge(at, chain.layer("y", "Result", "", [DIMS], []), 0)
    with path.open("w", encoding="utf-8") as stream:
        stream.write('<?xml version="1.0"?>\n<net name="chain" version="11">\n\t<layers>\n')
        stream.writelines(chain.layers)
        stream.write("\t</layers>\n\t<edges>\n")
        stream.writelines(chain.edges)
        stream.write("\t</edges>\n\t<rt_info />\n</net>\n")
    with path.with_suffix(".bin").open("wb") as binary:
        binary.truncate(chain.offset)


def seconds(function: Any, *arguments: Any) -> float:
    """Time one call."""
    gc.collect()
    start = time.perf_counter()
    function(*arguments)
    return time.perf_counter() - start


def compare(sizes: list[int], runs: int) -> None:
    """Print the table of sizes."""
    import deconv_ir

    try:
        import openvino
    except ImportError:
        core = None
    else:
        core = openvino.Core()
    print("| layers | XML MB | deconv-lint s | us a layer | read_model s | ratio |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for size in sizes:
            path = Path(folder) / "chain.xml"
            write_chain(path, size)
            assert deconv_ir.lint(path) == []
            if core is not None:
                core.read_model(path)
            ours, theirs = [], []
            for _ in range(runs):
                ours.append(seconds(deconv_ir.lint, path))
                if core is not None:
                    theirs.append(seconds(core.read_model, path))
            median = statistics.median(ours)
            row = [f"{size:,}", f"{path.stat().st_size / 1e6:.1f}", f"{median:.3f}"]
            row.append(f"{median / size * 1e6:.1f}")
            if theirs:
                ratios = [a / b for a, b in zip(ours, theirs, strict=True)]
                row += [f"{statistics.median(theirs):.3f}", f"{statistics.median(ratios):.2f}"]
            else:
                row += ["", ""]
            print(f"| {' | '.join(row)} |", flush=True)


def main() -> None:
    """Run the requested benchmarks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("layers", nargs="*", type=int, default=list(SIZES))
    parser.add_argument("--runs", type=int, default=7)
    options = parser.parse_args()
    compare(options.layers, options.runs)


if __name__ == "__main__":
    main()
