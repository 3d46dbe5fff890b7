"""Valid IRs from which mutations start: the samples, and one for each worked example."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from support import IR, deconvolution_ir

from deconv_ir.ops import all_operations
from deconv_ir.ops.examples import parse_example

SAMPLES = Path(__file__).parents[2] / "samples"

# Attributes that reach branches which the worked examples do not.
DECONVOLUTIONS = (
    {"strides": "2,2", "dilations": "1,2", "pads_begin": "1,0", "pads_end": "0,1"},
    {"strides": "3,1", "auto_pad": "same_upper", "output_padding": "2,0"},
    {"strides": "1,1", "auto_pad": "valid", "pads_begin": "0,0", "pads_end": "0,0"},
)


class Seed(NamedTuple):
    """An IR: the bytes of its two files."""

    name: str
    xml: bytes
    weights: bytes


def seeds() -> list[Seed]:
    """Return all seeds, in an order that does not change."""
    found = [*_samples(), *_examples(), *_deconvolutions()]
    return [seed for seed in found if len(seed.xml) < 1 << 16]


def _samples() -> Iterator[Seed]:
    for path in sorted(SAMPLES.rglob("*.xml")):
        weights = path.with_suffix(".bin")
        name = str(path.relative_to(SAMPLES))
        yield Seed(name, path.read_bytes(), weights.read_bytes() if weights.exists() else b"")


def _examples() -> Iterator[Seed]:
    for operation in all_operations():
        for text in operation.examples:
            example = parse_example(text)
            ir = IR()
            sources = []
            for position, tensor in enumerate(example.inputs):
                dims = ",".join(map(str, tensor.shape or ()))
                if tensor.elements is None:
                    sources.append(ir.parameter(f"x{position}", dims, tensor.element_type.name))
                else:
                    data = tensor.array().tobytes()
                    sources.append(ir.raw_const(data, tensor.element_type.name, tensor.shape or ()))
            layer, first = ir.layer(
                operation.type,
                sources,
                example.attributes,
                outputs=[",".join(map(str, t.shape or ())) for t in example.outputs],
                version=operation.versions[-1] if operation.versions else "",
                precision=example.outputs[0].element_type.ir_name,
            )
            for port in range(len(example.outputs)):
                ir.result((layer, first + port))
            yield Seed(f"{operation.type}: {text}", ir.xml().encode(), bytes(ir.weights))


def _deconvolutions() -> Iterator[Seed]:
    for attributes in DECONVOLUTIONS:
        ir = deconvolution_ir(attributes=attributes)
        yield Seed(f"deconvolution {attributes}", ir.xml().encode(), bytes(ir.weights))
    ir = IR()
    x = ir.parameter("x", "1,2,3..9,?")
    w = ir.parameter("w", "2,1,2,2")
    wanted = ir.const(np.array([9, 9], np.int64))
    y = ir.layer("ConvolutionBackpropData", [x, w, wanted], {"strides": "2,2"}, names="y")
    shape = ir.layer("ShapeOf", [y], {"output_type": "i64"}, version="opset3", precision="I64")
    ir.result(y)
    ir.result(shape)
    yield Seed("deconvolution with output_shape", ir.xml().encode(), bytes(ir.weights))
