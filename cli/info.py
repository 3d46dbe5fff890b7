"""The option --info: inputs and outputs of a model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from deconv_ir.errors import UnsupportedError
from deconv_ir.ir.shapes import format_shape

from .common import EXIT_OK, print_json, warn
from .models import model_name
from .shapes import input_shapes

if TYPE_CHECKING:
    from deconv_ir import Model
    from deconv_ir.ir.dtypes import ElementType
    from deconv_ir.ir.shapes import Shape

    from .request import Request


def print_info(model: Model, request: Request) -> int:
    """Print inputs and outputs, with types and shapes; warn of layers that cannot be run."""
    try:
        model.require_runnable(request.wanted)
    except UnsupportedError as error:
        warn(str(error))
    shapes = input_shapes(model, request.shapes)
    inferred = model.infer_shapes(shapes)
    inputs = [(name, port.element_type, shapes[name]) for name, port in model.inputs.items()]
    outputs = [(name, port.element_type, inferred[name]) for name, port in model.outputs.items()]
    if request.as_json:
        document = {
            "model": model_name(model),
            "name": model.graph.name,
            "layers": len(model.graph.layers),
            "inputs": [_described(*port) for port in inputs],
            "outputs": [_described(*port) for port in outputs],
        }
        print_json(document)
        return EXIT_OK
    from .tables import print_table

    table = [
        [kind, name, str(element_type or "?"), format_shape(shape)]
        for kind, ports in (("input", inputs), ("output", outputs))
        for name, element_type, shape in ports
    ]
    print_table(table, ["", "name", "type", "shape"], ("left", "left", "left", "left"))
    click.echo(f"\n{model.graph.name}: {len(model.graph.layers)} layers")
    return EXIT_OK


def _described(name: str, element_type: ElementType | None, shape: Shape) -> dict[str, Any]:
    dims = None if shape is None else [d if isinstance(d, int) else str(d) for d in shape]
    type_name = None if element_type is None else str(element_type)
    return {"name": name, "element_type": type_name, "shape": dims}
