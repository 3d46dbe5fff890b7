"""Bare layers as printed in the documents, with generated attribute text."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from xml.sax.saxutils import quoteattr

import numpy as np
from support import IR

from deconv_ir.ir.dtypes import parse_element_type

from .oracle import (
    Window,
    backward_data_window,
    conv_transpose_window,
    is_pointwise,
    openvino_window,
    transposed,
)
from .problems import Problem, array, openvino_problem
from .runtimes import bfloat16

__all__ = ["OneDNNLayer", "OpenVINOLayer", "onednn_layers", "openvino_layers"]

_KIND = {
    "float32": "f32",
    "float16": "f16",
    "bfloat16": "bf16",
    "int32": "i32",
    "int64": "i64",
}


def _precision(kind: str) -> str:
    return parse_element_type(kind).ir_name


class Writer:
    """Writes one layer in one of many equivalent forms."""

    def __init__(self, seed: int) -> None:
        self.rng = random.Random(seed)

    def values(self, values: Sequence[int]) -> str:
        """Write a list as ``1,1``, ``1, 1`` or wider."""
        return self.rng.choice((",", ", ", " , ")).join(map(str, values))

    def cased(self, word: str) -> str:
        """Write a word in lower, upper or mixed case."""
        return self.rng.choice((word, word.upper(), word.title()))

    def layer(
        self,
        kind: str,
        attributes: Mapping[str, str],
        inputs: Sequence[tuple[str, Sequence[int]]],
        output: tuple[str, Sequence[int]],
        number: int = 5,
        version: str = "",
    ) -> str:
        """Write the layer, with any order of attributes and port ids of documents or IRs."""
        pairs = list(attributes.items())
        self.rng.shuffle(pairs)
        data = "".join(f" {name}={quoteattr(text)}" for name, text in pairs)
        # The documents' examples reuse an input's id for the output.
        last = self.rng.choice((0, len(inputs)))
        # An output needs a precision in OpenVINO; for inputs the documents leave it out.
        typed = self.rng.random() < 0.5 or output[0] != "FP32" or "I64" in dict(inputs)
        ports = "".join(_port(i, p if typed else "", d) for i, (p, d) in enumerate(inputs))
        return (
            f'<layer id="{number}" name="deconvolution" type="{kind}"{version}>\n<data{data}/>\n'
            f"<input>\n{ports}</input>\n<output>\n{_port(last, *output)}</output>\n</layer>\n"
        )


def _port(number: int, precision: str, dims: Sequence[int]) -> str:
    stated = f' precision="{precision}"' if precision else ""
    inner = "".join(f"<dim>{d}</dim>" for d in dims)
    return f'<port id="{number}"{stated}>{inner}</port>\n'


def _common(problem: Problem, write: Writer) -> dict[str, str]:
    return {
        "strides": write.values(problem.strides),
        "dilations": write.values(problem.dilations),
        "pads_begin": write.values(problem.pads_begin),
        "pads_end": write.values(problem.pads_end),
    }


@dataclass(frozen=True, slots=True)
class OpenVINOLayer:
    """A bare ConvolutionBackpropData or GroupConvolutionBackpropData whose inputs are all fed."""

    problem: Problem
    grouped: bool

    def __str__(self) -> str:
        return f"{self.problem}{'-grouped' if self.grouped else ''}"

    @property
    def fault(self) -> str | None:
        """The fault of OpenVINO that this layer meets: a key of FAULTS."""
        if is_pointwise(self.problem):
            return "pointwise"
        return "group-of-one" if self.grouped and self.problem.groups == 1 else None

    def inputs(self) -> dict[str, np.ndarray]:
        """The input arrays, by the documents' names."""
        p = self.problem
        data, filters = p.tensors()
        if self.grouped:
            filters = filters.reshape(p.groups, p.filters, *p.filter_shape[1:])
        arrays = {"data": data, "filter": filters}
        if p.output_shape is not None:
            arrays["output_shape"] = np.array(p.output_shape, np.int64)
        return arrays

    def text(self, number: int = 5, *, version: bool = False) -> str:
        """Write the layer; the problem's seed determines the text of its attributes."""
        p = self.problem
        write = Writer(p.seed)
        attributes = _common(p, write)
        if p.auto_pad != "explicit" or write.rng.random() < 0.5:
            attributes["auto_pad"] = write.cased(p.auto_pad)
        if any(p.output_padding) or write.rng.random() < 0.5:
            attributes["output_padding"] = write.values(p.output_padding)
        extents = [extent for _, extent in openvino_window(p, "spec")]
        return write.layer(
            ("Group" if self.grouped else "") + "ConvolutionBackpropData",
            attributes,
            [(_precision(_KIND[a.dtype.name]), a.shape) for a in self.inputs().values()],
            ("FP32", (p.batch, p.channels, *extents)),
            number,
            ' version="opset1"' if version else "",
        )

    def save(self, folder: Path) -> Path:
        """Write the bare layer to a file."""
        path = folder / "layer.xml"
        path.write_text(self.text())
        return path

    def save_network(self, folder: Path) -> Path:
        """Write the same layer inside a network, for OpenVINO."""
        ir = IR()
        sources = [
            ir.parameter(name, ",".join(map(str, a.shape)), _KIND[a.dtype.name])
            for name, a in self.inputs().items()
        ]
        own = len(ir.layers)
        text = self.text(own, version=True)
        output_port = int(text.split("<output>")[1].split('id="')[1].split('"')[0])
        ir.layers.append(text)
        ir.edges += [
            f'<edge from-layer="{source}" from-port="{port}" to-layer="{own}" to-port="{i}"/>\n'
            for i, (source, port) in enumerate(sources)
        ]
        ir.result((own, output_port))
        return ir.save(folder)

    def expected(self, semantics: str) -> np.ndarray:
        """Return the result of the oracle."""
        data, filters = self.problem.tensors()
        return transposed(self.problem, data, filters, openvino_window(self.problem, semantics))


def openvino_layers(count: int, first: int) -> list[OpenVINOLayer]:
    """Return `count` layers of random problems."""
    layers = []
    for seed in range(first, first + count):
        problem = openvino_problem(seed)
        layers.append(OpenVINOLayer(problem, problem.groups > 1 or seed % 8 == 0))
    return layers


@dataclass(frozen=True, slots=True)
class OneDNNLayer:
    """A bare ConvTranspose (S3) or ConvolutionBackwardData (S4)."""

    kind: str
    problem: Problem
    channels_last: bool
    spatial_first: bool
    dtype: str
    bias: bool
    shape_from: str
    """dst_shape of ConvolutionBackwardData: attribute, input, or both (the input wins)"""

    def __str__(self) -> str:
        layout = f"{'NXC' if self.channels_last else 'NCX'}-{'X' if self.spatial_first else 'C'}"
        shape = self.shape_from if self.kind == "ConvolutionBackwardData" else ""
        extra = "bias" if self.bias else shape
        return f"{self.kind}-{layout}-{self.dtype}-{extra}-{self.problem}"

    @property
    def window(self) -> Window:
        """The window of the document."""
        if self.kind == "ConvTranspose":
            return conv_transpose_window(self.problem)
        return backward_data_window(self.problem)

    def lay_out(self, canonical: np.ndarray) -> np.ndarray:
        """Transpose [N, C, spatial...] to the layout of data and output."""
        return np.moveaxis(canonical, 1, -1) if self.channels_last else canonical

    def _tensors(self) -> list[np.ndarray]:
        p = self.problem
        kind = bfloat16 if self.dtype == "bfloat16" else np.dtype(self.dtype)
        tensors = list(p.tensors(kind))
        if self.bias:
            tensors.append(array(p.seed + 2, (p.channels,), kind))
        return tensors

    @property
    def _dst_shape(self) -> tuple[int, ...]:
        extents = tuple(extent for _, extent in self.window)
        p = self.problem
        return (
            (p.batch, *extents, p.channels)
            if self.channels_last
            else (p.batch, p.channels, *extents)
        )

    def inputs(self) -> list[np.ndarray]:
        """The input arrays in the order of the ports."""
        data, filters, *bias = self._tensors()
        if self.spatial_first:  # [in, out/groups, spatial...] -> [spatial..., out/groups, in]
            filters = np.moveaxis(filters, (0, 1), (-1, -2))
        arrays = [self.lay_out(data), filters, *bias]
        if self.kind == "ConvolutionBackwardData" and self.shape_from != "attribute":
            arrays.append(np.array(self._dst_shape, np.int32))
        return arrays

    def save(self, folder: Path) -> Path:
        """Save the bare layer; defaults are sometimes left out."""
        p = self.problem
        write = Writer(p.seed)
        attributes = _common(p, write)
        formats = {
            "data_format": ("NXC", "NCX", self.channels_last),
            **(
                {"filter_format": ("XOI", "IOX", self.spatial_first)}
                if self.kind == "ConvTranspose"
                else {"weights_format": ("XIO", "OIX", self.spatial_first)}
            ),
        }
        for name, (default, other, is_default) in formats.items():
            if not is_default or write.rng.random() < 0.5:
                attributes[name] = default if is_default else other
        word = "none" if p.auto_pad == "explicit" else p.auto_pad
        if word != "none" or write.rng.random() < 0.5:
            # Serialised oneDNN graphs write None, SAME_UPPER, SAME_LOWER and VALID.
            attributes["auto_pad"] = write.cased(word)
        if any(p.output_padding) or write.rng.random() < 0.5:
            # ... and twelve entries of output_padding, whatever the rank.
            more = (0,) * (12 - len(p.output_padding)) if write.rng.random() < 0.5 else ()
            attributes["output_padding"] = write.values(p.output_padding + more)
        if p.groups > 1 or write.rng.random() < 0.5:
            attributes["groups"] = str(p.groups)
        if self.kind == "ConvolutionBackwardData" and self.shape_from != "input":
            shape = self._dst_shape
            if self.shape_from == "both":  # the input, which differs, takes precedence
                shape = (shape[0], *(d + 1 for d in shape[1:]))
            attributes["dst_shape"] = write.values(shape)
        path = folder / "layer.xml"
        path.write_text(
            write.layer(
                self.kind,
                attributes,
                [(_precision(_KIND[a.dtype.name]), a.shape) for a in self.inputs()],
                (_precision(_KIND[self.dtype]), self._dst_shape),
            )
        )
        return path

    def expected(self) -> np.ndarray:
        """Return the result of the oracle, in float64."""
        data, filters, *bias = self._tensors()
        output = transposed(self.problem, data, filters, self.window)
        for values in bias:
            shape = (1, -1) + (1,) * len(self.problem.extents)
            output = output + np.asarray(values, np.float64).reshape(shape)
        return self.lay_out(output)


def onednn_layers(kind: str, count: int, first: int) -> list[OneDNNLayer]:
    """Return `count` layers of random problems."""
    layers = []
    for seed in range(first, first + count):
        rng = random.Random(seed)
        problem = openvino_problem(seed)
        if kind == "ConvTranspose":
            problem = replace(problem, output_shape=None)
        elif problem.output_shape is None:
            shape = tuple(rng.randint(1, f + 3) for f in problem.natural)
            problem = replace(problem, output_shape=shape)
        layers.append(
            OneDNNLayer(
                kind=kind,
                problem=problem,
                channels_last=rng.random() < 0.5,
                spatial_first=rng.random() < 0.5,
                dtype=rng.choice(("float32", "float32", "float16", "bfloat16")),
                bias=kind == "ConvTranspose" and rng.random() < 0.5,
                shape_from=rng.choice(("attribute", "input", "both")),
            )
        )
    return layers
