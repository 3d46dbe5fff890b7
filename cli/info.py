"""The option --info: what a model takes and returns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click

from deconv_ir.ir.shapes import format_shape

from .common import EXIT_OK
from .models import model_name
from .shapes import input_shapes

if TYPE_CHECKING:
    from deconv_ir import Model
    from deconv_ir.ir.graph import Port
    from deconv_ir.ir.shapes import Shape

    from .request import Request


def print_info(model: Model, request: Request) -> int:
    """Print inputs and outputs, with types and shapes, on standard output."""
    shapes = input_shapes(model, request.shapes)
    inferred = model.infer_shapes(shapes)
    ports = [
        *(("input", name, port, shapes[name]) for name, port in model.inputs.items()),
        *(("output", name, port, inferred[name]) for name, port in model.outputs.items()),
    ]
    if request.as_json:
        _print_json(model, ports)
        return EXIT_OK
    from .tables import print_table

    print_table(
        [
            [kind, name, str(port.element_type or "?"), format_shape(shape)]
            for kind, name, port, shape in ports
        ],
        ["", "name", "type", "shape"],
        ("left", "left", "left", "left"),
    )
    click.echo(f"\n{model.graph.name}: {len(model.graph.layers)} layers")
    return EXIT_OK


def _print_json(model: Model, ports: Sequence[tuple[str, str, Port, Shape]]) -> None:
    import json

    def described(wanted: str) -> list[dict[str, Any]]:
        return [
            {
                "name": name,
                "element_type": None if port.element_type is None else str(port.element_type),
                "shape": None if shape is None else [_dim(dim) for dim in shape],
            }
            for kind, name, port, shape in ports
            if kind == wanted
        ]

    document = {
        "model": model_name(model),
        "name": model.graph.name,
        "layers": len(model.graph.layers),
        "inputs": described("input"),
        "outputs": described("output"),
    }
    click.echo(json.dumps(document, indent=2))


def _dim(dim: Any) -> int | str:
    """An unknown dim is text: ``?``, ``2..8``."""
    return dim if isinstance(dim, int) else str(dim)
