"""The option --info: inputs and outputs of a model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from deconv_ir.errors import UnsupportedError
from deconv_ir.ir.shapes import format_shape, format_sizes, is_static

from ..shared.common import EXIT_OK, counted, model_name, print_json, warn
from ..shared.shapes import input_shapes

if TYPE_CHECKING:
    from deconv_ir import Model
    from deconv_ir.ir.dtypes import ElementType
    from deconv_ir.ir.shapes import Shape

    from .request import RunRequest


def print_info(model: Model, request: RunRequest) -> int:
    """Print inputs and outputs, with types and shapes; warn of layers that cannot be run."""
    try:
        model.require_runnable(request.wanted)
    except UnsupportedError as error:
        warn(str(error))
    shapes = input_shapes(model, request.shapes)
    inferred = model.infer_shapes(shapes)
    inputs = [(name, port.element_type, shapes[name]) for name, port in model.inputs.items()]
    outputs = [(name, port.element_type, inferred[name]) for name, port in model.outputs.items()]
    is_dynamic = not all(is_static(shape) for *_, shape in (*inputs, *outputs))
    symbolic = model.symbolic_shapes(shapes) if is_dynamic else None
    named = (symbolic.inputs, symbolic.outputs) if symbolic else (None, None)
    if request.as_json:
        document = {
            "model": model_name(model),
            "name": model.graph.name,
            "layers": len(model.graph.layers),
            "inputs": [_described(*port, named[0]) for port in inputs],
            "outputs": [_described(*port, named[1]) for port in outputs],
            "conditions": list(symbolic.conditions) if symbolic else [],
        }
        if request.verbose:
            document["layers"] = _layers(model, shapes)
        print_json(document)
        return EXIT_OK
    from ..shared.tables import print_table

    table = [
        [side, name, str(element_type or "?"), format_shape(shape)]
        for side, ports in (("input", inputs), ("output", outputs))
        for name, element_type, shape in ports
    ]
    headers = ["", "name", "type", "shape"]
    if symbolic:
        headers.append("sizes")
        sizes = [*symbolic.inputs.values(), *symbolic.outputs.values()]
        table = [[*row, format_sizes(found)] for row, found in zip(table, sizes, strict=True)]
    print_table(table, headers, ("left",) * len(headers))
    if symbolic and symbolic.conditions:
        click.echo(f"\nfits only where: {'; '.join(symbolic.conditions)}")
    click.echo(f"\n{model.graph.name}: {counted(model.graph.layers, 'layer')}")
    if request.verbose:
        rows = [
            [row["id"], row["name"], row["type"], ", ".join(row["sizes"])]
            for row in _layers(model, shapes)
        ]
        print_table(rows, ["id", "layer", "type", "outputs"], ("right", "left", "left", "left"))
    return EXIT_OK


def _layers(model: Model, shapes: Mapping[str, Shape]) -> list[dict[str, Any]]:
    """Describe the layers, in the order of the file, with the inferred outputs."""
    from deconv_ir.ir.infer import infer
    from deconv_ir.ir.operation import TensorInfo

    inputs = [i for i, layer in enumerate(model.graph.layers) if layer.type == "Parameter"]
    given = {
        index: TensorInfo(shapes[name], port.element_type)
        for index, (name, port) in zip(inputs, model.inputs.items(), strict=True)
    }
    inference = infer(model.graph, model.context, given, collect=True)
    infos = inference.outputs
    sizes = [[str(info) for info in outputs] for outputs in infos]
    if any(not is_static(info.shape) for outputs in infos for info in outputs):
        from deconv_ir.ir.symbolic import infer_symbolic

        symbolic = infer_symbolic(model.graph, model.context, inference)
        if symbolic is not None:
            sizes = [[str(info) for info in outputs] for outputs in symbolic.infos]
    return [
        {
            "id": layer.id,
            "name": layer.name,
            "type": layer.type,
            "outputs": [str(info) for info in outputs],
            "sizes": texts,
        }
        for layer, outputs, texts in zip(model.graph.layers, infos, sizes, strict=True)
    ]


def _described(
    name: str,
    element_type: ElementType | None,
    shape: Shape,
    sizes: Mapping[str, Sequence[int | str] | None] | None,
) -> dict[str, Any]:
    dims = None if shape is None else [d if isinstance(d, int) else str(d) for d in shape]
    type_name = None if element_type is None else str(element_type)
    expressions = sizes[name] if sizes else dims
    return {"name": name, "element_type": type_name, "shape": dims, "sizes": expressions}
