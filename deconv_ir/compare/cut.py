"""Extraction of a part of a model as a separate IR, with only the weights that it uses."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from deconv_ir.compare.extract_part import extract_part, output_names
from deconv_ir.compare.network import Network, open_stored
from deconv_ir.errors import InputError, IRError
from deconv_ir.formats.conversion import write_lowered
from deconv_ir.formats.files import output_errors, replace_file
from deconv_ir.formats.openvino_xml.packing import Packer
from deconv_ir.formats.openvino_xml.writer import to_bytes
from deconv_ir.formats.reading import is_onednn
from deconv_ir.hints import Hint
from deconv_ir.ir.dtypes import Array, ElementType
from deconv_ir.ir.graph import Graph, Source
from deconv_ir.ir.infer import infer
from deconv_ir.ir.operation import ConstantSource, TensorInfo
from deconv_ir.ir.tensor_names import find_tensors
from deconv_ir.model import Model
from deconv_ir.ops.constants.constant import unpack

_SMALL = 16
"""Constants with at most this many elements are settings (a scale, a clamp), not weights."""


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
        The .xml file; the weights are written to the same name with .bin.  The part of a oneDNN
        Graph file, given as a path, may also be a .json file.
    start, end : str or sequence of str
        Tensors by tensor name, layer name or layer id: the inputs and the outputs of the
        part.  By default, those of the model.
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
    infos = infer(network.graph, network.context, collect=True).outputs
    starts = list(find_tensors(network.graph, _names(start)).values())
    ends = list(find_tensors(network.graph, _names(end)).values()) or results_of(network.graph)
    if not ends:
        message = "the model has no outputs"
        raise IRError(message, file=network.graph.file, hint=Hint.OTHER_END())
    part = extract_part(network.graph, infos, starts, ends)
    if Path(output).suffix == ".json":
        return _write_operations(model, network, part, Path(output))
    return write_part(network, part, Path(output), strip_weights)


def _write_operations(
    model: Model | str | os.PathLike[str], network: Network, part: Graph, output: Path
) -> Part:
    """Write a part of a oneDNN Graph file in its own format."""
    from deconv_ir.formats.onednn_json.part import part_of_file
    from deconv_ir.formats.openvino_xml.entry import read_file

    if isinstance(model, Model) or not is_onednn(network.graph):
        raise InputError(f"{output}: only a part of a oneDNN Graph file can be a .json file")
    described = _describe(part, 0)
    inputs = [layer.outputs[0].names[0] for layer in part.layers if layer.type == "Parameter"]
    ids = {layer.id for layer in part.layers}
    text = part_of_file(read_file(model), ids, inputs, described.outputs)
    with output_errors(output, "the part"), replace_file(output) as stream:
        stream.write(text.encode())
    return described


def _names(given: str | Sequence[str]) -> Sequence[str]:
    return (given,) if isinstance(given, str) else given


def results_of(graph: Graph) -> list[Source]:
    """Return the tensors that are outputs of a graph."""
    rows = zip(graph.layers, graph.topology.sources, strict=True)
    return [row[0] for layer, row in rows if layer.type == "Result" and row[0] is not None]


def write_part(network: Network, part: Graph, output: Path, seed: int | None = None) -> Part:
    """Write a part of a network, with only the weights that it uses."""
    if is_onednn(network.graph):
        write_lowered(part, output)
        return _describe(part, 0)
    packer = _Packer(network.context.weights, seed)
    packed = packer.pack(part)
    with output_errors(output, "the part"):
        if packer.size:
            with replace_file(output.with_suffix(".bin")) as stream:
                for chunk in packer.chunks():
                    stream.write(chunk)
        with replace_file(output) as stream:
            stream.write(to_bytes(packed))
    return _describe(packed, packer.size)._replace(kept=tuple(packer.kept))


def _describe(part: Graph, weight_bytes: int) -> Part:
    inputs = [layer for layer in part.layers if layer.type == "Parameter"]
    described = (
        f"{layer.outputs[0].names[0] if layer.outputs[0].names else layer.name}: "
        f"{TensorInfo(layer.outputs[0].shape, layer.outputs[0].element_type)}"
        for layer in inputs
    )
    return Part(len(part.layers), tuple(described), tuple(output_names(part)), weight_bytes)


class _Packer(Packer):
    """Replaces weights by noise if there is a seed."""

    def __init__(self, weights: ConstantSource | None, seed: int | None) -> None:
        super().__init__(weights)
        self.seed = seed
        self.kept: list[str] = []
        """Names of constants that are not replaced by noise, if others are."""

    def note(self, name: str, element_type: ElementType, size: int) -> None:
        if self.seed is not None and not _is_weight(element_type, size):
            self.kept.append(name)

    def data(
        self, number: int, offset: int, size: int, element_type: ElementType
    ) -> Iterator[bytes | memoryview]:
        if self.seed is None or not _is_weight(element_type, size):
            yield from super().data(number, offset, size, element_type)
            return
        assert self.weights is not None
        yield _noise(self.weights.read(offset, size), element_type, [self.seed, number])


def _is_weight(element_type: ElementType, size: int) -> bool:
    elements = size * 8 // (element_type.bits or 8)
    return elements > _SMALL and (element_type.is_float or 0 < element_type.bits <= 8)


def _noise(data: memoryview, element_type: ElementType, seed: Sequence[int]) -> bytes:
    """Return the bytes of random elements with the same statistics."""
    import numpy as np

    rng = np.random.default_rng(seed)
    if element_type.is_packed or not element_type.is_float:
        raw = np.frombuffer(data, np.uint8)
        if element_type.is_packed or element_type.kind == "bool":
            # Every bit pattern of a packed type is a valid element.
            return rng.permutation(raw).tobytes()
        values = raw.view(element_type.numpy())
        least, most = int(values.min()), int(values.max())
        return rng.integers(least, most, len(values), endpoint=True).astype(values.dtype).tobytes()
    values = unpack(data, element_type, len(data) * 8 // element_type.bits).astype(np.float64)
    finite = values[np.isfinite(values)]
    mean, deviation = (float(finite.mean()), float(finite.std())) if finite.size else (0.0, 1.0)
    low, high = (float(finite.min()), float(finite.max())) if finite.size else (-1.0, 1.0)
    drawn: Array = np.clip(rng.normal(mean, deviation, values.size), low, high)
    return drawn.astype(element_type.numpy()).tobytes()
