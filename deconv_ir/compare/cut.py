"""Extraction of a part of a model as a separate IR, with only the weights that it uses."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from deconv_ir.compare.extract_part import extract_part, output_names
from deconv_ir.compare.network import Network, open_stored
from deconv_ir.errors import IRError
from deconv_ir.formats.conversion import write_graph
from deconv_ir.formats.exchange import Extract, Written
from deconv_ir.formats.openvino_xml import OPENVINO_XML
from deconv_ir.formats.registry import format_of, format_of_suffix
from deconv_ir.hints import Hint
from deconv_ir.ir.graph import Graph, Source
from deconv_ir.ir.infer import infer
from deconv_ir.ir.operation import TensorInfo
from deconv_ir.ir.tensor_names import find_tensors
from deconv_ir.model import Model


class Part(NamedTuple):
    """The files that `cut` wrote.

    Attributes
    ----------
    layers : int
        Number of layers.
    inputs : tuple of str
        Name, type and shape of each input.
    outputs : tuple of str
        Names of the outputs.
    weight_bytes : int
        Bytes of the weights file.
    kept : tuple of str
        With `strip_weights`: names of the constants that were kept, with those of bodies.

    Examples
    --------
    >>> import deconv_ir
    >>> part = deconv_ir.cut("samples/block/block.xml", "part.xml", end="up")
    >>> isinstance(part, deconv_ir.Part), part.inputs, part.outputs
    (True, ('x: f32[1,8,16,16]',), ('up',))
    """

    layers: int
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    weight_bytes: int
    kept: tuple[str, ...] = ()


def cut(
    model: Model | str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    start: str | Sequence[str] = (),
    end: str | Sequence[str] = (),
    strip_weights: int | None = None,
) -> Part:
    """Write the part of a model between tensors as an IR.

    Parameters
    ----------
    model : Model or path-like
    output : path-like
        The file, whose suffix chooses its format: .xml, by default, with the weights in the same
        name with .bin; .json only for the part of a oneDNN Graph file, given as a path.
    start, end : str or sequence of str
        Tensors by tensor name, layer name or layer id: the inputs and the outputs of the
        part.  By default, those of the model.  If they are in a body (``LAYER/BODY/NAME``), the
        part is one of the body.
    strip_weights : int, optional
        Seed of noise that replaces the weights, so that the part can be shared: floats
        of the same mean and deviation, 8-bit and smaller integers of the same range.
        Other integers, strings and constants of up to 16 elements are kept; the result names them.

    Returns
    -------
    Part

    Raises
    ------
    IRError
        A tensor does not exist, or no layers lie between them.
    OutputError
        A file cannot be written.

    Examples
    --------
    >>> import deconv_ir
    >>> part = deconv_ir.cut("samples/block/block.xml", "part.xml", start="up", end="y")
    >>> deconv_ir.load("part.xml")
    <Model 'block (part)' (up: f32[1,4,32,32]) -> (y: f32[1,4,32,32])>
    """
    network = open_stored(model)
    network, starts_in, ends_in = _inside(network, _names(start), _names(end))
    infos = infer(network.graph, network.context, collect=True).outputs
    starts = list(find_tensors(network.graph, starts_in).values())
    ends = list(find_tensors(network.graph, ends_in).values()) or results_of(network.graph)
    if not ends:
        message = "the model has no outputs"
        raise IRError(message, file=network.graph.file, hint=Hint.OTHER_END())
    part = extract_part(network.graph, infos, starts, ends)
    source = None if isinstance(model, Model) else Path(model)
    return write_part(network, part, Path(output), strip_weights, source)


def _inside(
    network: Network, starts: Sequence[str], ends: Sequence[str]
) -> tuple[Network, list[str], list[str]]:
    """Return the body whose tensors the names are, and their names there; else the network."""
    from deconv_ir.changes.exposed import body_at, find_inner, names_at

    graph = network.graph
    places: dict[str, tuple[tuple[tuple[int, int], ...], str]] = {}
    for name in (*starts, *ends):
        try:
            find_tensors(graph, [name])
            places[name] = ((), name)
        except IRError:
            found = find_inner(graph, name)
            if not found:
                raise
            prefix = "/".join(names_at(graph, found[0].path)) + "/"
            places[name] = (found[0].path, name.removeprefix(prefix))
    paths = dict.fromkeys(path for path, _ in places.values())
    if len(paths) > 1:
        raise IRError(
            "the inputs and outputs of a part must be tensors of the same body, or of the network",
            file=graph.file,
            expected=next(iter(places)),
            actual=next(n for n, (path, _) in places.items() if path != next(iter(paths))),
        )
    path = next(iter(paths), ())
    inner = network if not path else Network(_body(graph, body_at(graph, path)), network.context)
    return inner, [places[n][1] for n in starts], [places[n][1] for n in ends]


def _body(graph: Graph, body: Graph) -> Graph:
    """Return a body as a network of the same file."""
    return body.replace(
        file=graph.file, format=graph.format, ir_version=graph.ir_version, name=graph.name
    )


def _names(given: str | Sequence[str]) -> Sequence[str]:
    return (given,) if isinstance(given, str) else given


def results_of(graph: Graph) -> list[Source]:
    """Return the tensors that are outputs of a graph."""
    rows = zip(graph.layers, graph.topology.sources, strict=True)
    return [row[0] for layer, row in rows if layer.type == "Result" and row[0] is not None]


def write_part(
    network: Network,
    part: Graph,
    output: Path,
    seed: int | None = None,
    source: Path | None = None,
) -> Part:
    """Write a part of a network, with only the weights that it uses.

    `source` is the file of the network; None if the network may differ from it.
    """
    target = format_of_suffix(output) or OPENVINO_XML
    own = format_of(part)
    names = tuple(output_names(part))
    written = Written()
    if own.has_opsets or target is own:
        extract = Extract(part, names, network.context.weights, source, seed)
        written = target.cut(extract, output)
    else:
        write_graph(part, None, output, target)
    return Part(len(part.layers), _inputs(part), names, written.weight_bytes, written.kept)


def _inputs(part: Graph) -> tuple[str, ...]:
    """Return name, type and shape of each input."""
    return tuple(
        f"{layer.outputs[0].names[0] if layer.outputs[0].names else layer.name}: "
        f"{TensorInfo(layer.outputs[0].shape, layer.outputs[0].element_type)}"
        for layer in part.layers
        if layer.type == "Parameter"
    )
