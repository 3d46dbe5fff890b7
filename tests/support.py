"""A builder of small IRs, and a way to run the command, for all tests."""

from __future__ import annotations

import importlib
import itertools
import tracemalloc
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import numpy as np
from click.testing import CliRunner, Result

from deconv_ir.ir.dtypes import from_numpy, parse_element_type

LFS_POINTER = (
    b"version https://git-lfs.github.com/spec/v1\n"
    b"oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n"
)
"""A file that Git LFS left in place of its content."""

Row = TypeVar("Row")
Value = TypeVar("Value")
Out = tuple[int, int]
"""Layer id, output port id."""


def in_turn(rows: Iterable[Row], values: Sequence[Value], each: int) -> list[tuple[Row, Value]]:
    """Pair each row of a table with `each` values, the next ones for the next row.

    For tables whose rows and values take separate paths: every value is used, and no product of
    both is needed.
    """
    turns = itertools.cycle(values)
    return [(row, value) for row in rows for value in itertools.islice(turns, each)]


def batches(count: int, each: int) -> list[range]:
    """Divide seeds into batches of one test each: a test costs more than a small problem."""
    return [range(first, min(first + each, count)) for first in range(0, count, each)]


@dataclass
class IR:
    """Collects layers and edges, then writes model.xml and model.bin."""

    version: int = 11
    layers: list[str] = field(default_factory=list)
    edges: list[str] = field(default_factory=list)
    weights: bytearray = field(default_factory=bytearray)

    def layer(
        self,
        kind: str,
        inputs: Sequence[Out] = (),
        attributes: Mapping[str, str] | None = None,
        *,
        outputs: Sequence[str] = ("",),
        name: str | None = None,
        version: str = "opset1",
        precision: str | Sequence[str] = "FP32",
        names: str | None = None,
        bodies: str = "",
    ) -> Out:
        """Add a layer; `outputs` are declared dims, as "1,3,?" (empty: none).

        `precision` is the type of all outputs, or of each.
        """
        own = len(self.layers)
        data = "".join(f' {k}="{v}"' for k, v in (attributes or {}).items())
        ports_in = "".join(f'<port id="{i}" precision="FP32"/>\n' for i in range(len(inputs)))
        tensor = f' names="{names}"' if names else ""
        types = [precision] * len(outputs) if isinstance(precision, str) else precision
        ports_out = "".join(
            f'<port id="{len(inputs) + i}" precision="{element_type}"{tensor}>\n'
            + "".join(f"<dim>{d}</dim>\n" for d in dims.split(",") if d)
            + "</port>\n"
            for i, (dims, element_type) in enumerate(zip(outputs, types, strict=True))
        )
        self.layers.append(
            f'<layer id="{own}" name="{name or f"layer{own}"}" type="{kind}" version="{version}">\n'
            + (f"<data{data}/>\n" if data else "")
            + (f"<input>\n{ports_in}</input>\n" if inputs else "")
            + (f"<output>\n{ports_out}</output>\n" if outputs else "")
            + bodies
            + "</layer>\n"
        )
        for port, (layer, source) in enumerate(inputs):
            self.edges.append(
                f'<edge from-layer="{layer}" from-port="{source}" '
                f'to-layer="{own}" to-port="{port}"/>\n'
            )
        return own, len(inputs)

    def parameter(self, name: str, shape: str, element_type: str = "f32") -> Out:
        """Add an input of the model."""
        return self.layer(
            "Parameter",
            attributes={"shape": shape, "element_type": element_type},
            name=name,
            precision=parse_element_type(element_type).ir_name,
            names=name,
        )

    def const(self, array: np.ndarray, name: str | None = None) -> Out:
        """Add a constant; its bytes go to the weights file."""
        element_type = from_numpy(array.dtype)
        assert element_type is not None
        return self.raw_const(array.tobytes(), element_type.name, array.shape, name)

    def raw_const(
        self,
        data: bytes,
        element_type: str,
        shape: Sequence[int],
        name: str | None = None,
        overrides: Mapping[str, str] | None = None,
    ) -> Out:
        """Add a constant with these bytes; attributes can be overridden."""
        attributes = {
            "element_type": element_type,
            "shape": ",".join(map(str, shape)),
            "offset": str(len(self.weights)),
            "size": str(len(data)),
        } | dict(overrides or {})
        self.weights += data
        return self.layer(
            "Const",
            attributes=attributes,
            name=name,
            precision=parse_element_type(element_type).ir_name,
        )

    def result(self, source: Out, name: str | None = None) -> Out:
        """Add an output of the model."""
        return self.layer("Result", [source], outputs=(), name=name)

    def body(self) -> IR:
        """Begin a graph within this one; its constants go to the same weights file."""
        return IR(weights=self.weights)

    def sections(self) -> str:
        """Return the XML of the layers and the edges."""
        layers, edges = "".join(self.layers), "".join(self.edges)
        return f"<layers>\n{layers}</layers>\n<edges>\n{edges}</edges>\n"

    def xml(self) -> str:
        """Return the text of the .xml file."""
        head = f'<?xml version="1.0"?>\n<net name="net" version="{self.version}">\n'
        return f"{head}{self.sections()}</net>\n"

    def save(self, folder: Path) -> Path:
        """Write model.xml and model.bin; return the path of the .xml."""
        (folder / "model.bin").write_bytes(self.weights)
        path = folder / "model.xml"
        path.write_text(self.xml())
        return path


def deconvolution_ir(
    x_shape: str = "1,2,5,5",
    filter_shape: Sequence[int] = (2, 3, 3, 3),
    attributes: Mapping[str, str] | None = None,
    declared: str = "",
) -> IR:
    """Build one ConvolutionBackpropData with a seeded constant filter."""
    ir = IR()
    x = ir.parameter("x", x_shape)
    filter_ = np.random.default_rng(0).standard_normal(filter_shape).astype(np.float32)
    w = ir.const(filter_, "filter")
    y = ir.layer(
        "ConvolutionBackpropData", [x, w], attributes, outputs=(declared,), name="up", names="y"
    )
    ir.result(y, "result")
    return ir


def invoke(*arguments: object, stdin: bytes | None = None) -> Result:
    """Run deconv-run in this process, as its script does."""
    return invoke_script("run", *arguments, stdin=stdin)


def invoke_script(module: str, *arguments: object, stdin: bytes | None = None) -> Result:
    """Run the command deconv-MODULE in this process, as its script does."""

    class Script:
        """A command for click's runner that runs the script, up to its exit."""

        name = f"deconv-{module}"

        def main(self, args: Sequence[str], prog_name: str, **_: object) -> None:
            import sys

            from deconv_cli.shared.common import run_command

            script = importlib.import_module(f"deconv_cli.{module}.command")
            old, sys.argv = sys.argv, [prog_name, *args]
            try:
                run_command(script.command)
            finally:
                sys.argv = old

    return CliRunner().invoke(Script(), [str(a) for a in arguments], input=stdin)  # type: ignore[arg-type]


def traced_peak(run: Callable[[], object], times: int = 3) -> int:
    """Return the peak of the bytes that a call allocates, as NumPy and Python report them.

    This is the minimum over several calls, since other threads of the test runner may allocate too.
    """
    peaks = []
    for _ in range(times):
        tracemalloc.start()
        try:
            run()
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
    return min(peaks)
