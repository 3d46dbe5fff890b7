"""Conversion of an IR to a oneDNN Graph file, for the operations that oneDNN Graph supports."""

from __future__ import annotations

import functools
import itertools
import json
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from deconv_ir.errors import UnsupportedError
from deconv_ir.formats.onednn_json.expressions import RULES
from deconv_ir.formats.onednn_json.given import Feed, LayerWriter
from deconv_ir.formats.onednn_json.kinds import DTYPES
from deconv_ir.formats.onednn_json.layout import dense_strides
from deconv_ir.formats.onednn_json.missing import Missing
from deconv_ir.ir.graph import Graph, Layer
from deconv_ir.ir.infer import infer
from deconv_ir.ir.operation import Context, TensorInfo
from deconv_ir.ir.shapes import element_count, is_static, static
from deconv_ir.ops.constants.constant import Const

if TYPE_CHECKING:
    from deconv_ir.ir.dtypes import Array

_SPELLINGS: Final = {ours: theirs for theirs, ours in DTYPES.items()}
_MAX_RANK: Final = 12
_MAX_FOLDED: Final = 1 << 24
"""Elements of a layer on constants that is computed instead of written."""


def express(graph: Graph, context: Context) -> tuple[str, dict[str, Array]]:
    """Return the JSON of a graph, and its constants by tensor id.

    Raises
    ------
    UnsupportedError
        Some operations have no counterpart (all are named), or shapes are not static.
    """
    inference = infer(graph, context)
    writer = _GraphWriter(context, graph)
    missing = Missing("the model cannot be written as a oneDNN Graph file")
    sources = graph.topology.sources
    needed = {source[0] for row in sources for source in row if source is not None}
    for index in graph.topology.order:
        layer = graph.layers[index]
        feeds = [source for source in sources[index] if source is not None]
        if isinstance(layer.operation, Const):
            if index in needed:
                writer.known[(index, 0)] = functools.partial(_elements, layer, context)
            continue
        if (
            feeds
            and all(source in writer.known for source in feeds)
            and _folds(layer, inference.outputs[index])
        ):
            writer.fold(index, layer, feeds)
            continue
        try:
            inputs = [
                Feed(writer.reference(source), inference.outputs[source[0]][source[1]])
                for source in feeds
            ]
            writer.layer(index, layer, inputs, inference.outputs[index])
        except UnsupportedError as error:
            missing.add(error, layer)
            # The result is declared so that the following layers are checked too.
            for output in range(len(layer.outputs)):
                writer.tensors[(index, output)] = next(writer.numbers)
    missing.refuse(graph)
    return writer.text(), writer.constants


def _same(array: Array) -> Array:
    return array


def _elements(layer: Layer, context: Context) -> Array:
    return layer.operation.execute((), context)[0]


def _folds(layer: Layer, results: Sequence[TensorInfo]) -> bool:
    """Whether a layer on constants is computed here: it has static results of a bounded size."""
    if (
        layer.type == "Result"
        or len(results) != 1
        or not layer.operation.implemented
        or layer.operation.bodies
    ):
        return False
    if not layer.operation.is_repeatable:
        return False
    return all(
        is_static(info.shape) and element_count(static(info.shape)) <= _MAX_FOLDED
        for info in results
    )


class _GraphWriter:
    """Collects operations; constants become inputs that are declared constant."""

    def __init__(self, context: Context, graph: Graph) -> None:
        self.context = context
        self.graph = graph
        self.operations: list[dict[str, Any]] = []
        self.inputs: list[int] = []
        self.outputs: list[int] = []
        self.constants: dict[str, Array] = {}
        self.known: dict[tuple[int, int], Callable[[], Array]] = {}
        """Constants that are not written yet; those that rules make have negative layers."""
        self.tensors: dict[tuple[int, int], int] = {}
        self.numbers = itertools.count()

    def text(self) -> str:
        """Return the file."""
        members = {
            "version": "3.0.0",
            "engine_kind": "cpu",
            "fpmath_mode": "strict",
            "input_ports": self.inputs,
            "output_ports": self.outputs,
            "graph": self.operations,
        }
        return json.dumps(members, indent=2) + "\n"

    def reference(self, source: tuple[int, int]) -> int:
        """Return the reference of a tensor; negative for a constant that is not used yet."""
        return -1 - source[0] if source in self.known else self.tensors[source]

    def constant(self, reference: int, shape: Sequence[int] | None = None) -> int:
        """Return the id of a tensor; a constant is written first, possibly reshaped."""
        if reference >= 0:
            return reference
        source = (-1 - reference, 0)
        if source in self.tensors and shape is None:
            return self.tensors[source]
        array = self.known[source]()
        number = next(self.numbers)
        self.constants[str(number)] = array if shape is None else array.reshape(shape)
        self.inputs.append(number)
        if shape is None:
            self.tensors[source] = number
        return number

    def fill(self, shape: tuple[int, ...], value: float) -> int:
        """Make a constant of one number, and return its reference."""
        import numpy as np

        made = len(self.graph.layers) + len(self.known)
        self.known[(made, 0)] = functools.partial(np.full, shape, np.float32(value))
        return -1 - made

    def fold(self, index: int, layer: Layer, feeds: Sequence[tuple[int, int]]) -> None:
        """Compute a layer on constants."""
        (array,) = layer.operation.execute([self.known[source]() for source in feeds], self.context)
        self.known[(index, 0)] = functools.partial(_same, array)

    def tensor(self, number: int, info: TensorInfo, shape: Sequence[int] | None) -> dict[str, Any]:
        """Return the declaration of a tensor."""
        if shape is None:
            if not is_static(info.shape):
                raise UnsupportedError("shapes that are not static have no counterpart")
            shape = static(info.shape)
        if len(shape) > _MAX_RANK:
            raise UnsupportedError(f"tensors of rank {len(shape)} have no counterpart")
        name = None if info.element_type is None else _SPELLINGS.get(info.element_type.name)
        if name is None:
            raise UnsupportedError(f"element type {info.element_type} has no counterpart")
        dense = dense_strides(shape, "abcdefghijkl"[: len(shape)])
        return {
            "id": number,
            "dtype": name,
            "shape": list(shape),
            "stride": list(dense),
            "layout_type": "strided",
            "property_type": "constant" if str(number) in self.constants else "undef",
        }

    def layer(
        self, index: int, layer: Layer, feeds: Sequence[Feed], results: Sequence[TensorInfo]
    ) -> None:
        """Write a layer."""
        if layer.type == "Parameter":
            number = self.tensors[(index, 0)] = next(self.numbers)
            self.inputs.append(number)
            self.tensor(number, results[0], None)  # checks that it can be declared
            return
        if layer.type == "Result":
            if feeds[0].reference < 0:
                raise UnsupportedError("a constant as output has no counterpart")
            self.outputs.append(feeds[0].reference)
            return
        rule = RULES.get(layer.type)
        if rule is None or not layer.operation.implemented:
            raise UnsupportedError(f"{layer.type} has no counterpart")
        rule(LayerWriter(layer, feeds, results[0], self.context, self.write, self.fill, self.graph))
        self.tensors[(index, 0)] = self.operations[-1]["outputs"][0]["id"]

    def write(
        self,
        name: str,
        kind: str,
        feeds: Sequence[Feed],
        result: TensorInfo,
        attributes: Mapping[str, Any],
    ) -> int:
        """Write an operation, and return the id of its output."""
        stated = [
            self.tensor(self.constant(feed.reference, feed.shape), feed.info, feed.shape)
            for feed in feeds
        ]
        output = next(self.numbers)
        self.operations.append(
            {
                "id": len(self.operations),
                "name": name,
                "kind": kind,
                "attrs": {name: _attribute(value) for name, value in attributes.items()},
                "inputs": stated,
                "outputs": [self.tensor(output, result, None)],
            }
        )
        return output


def _attribute(value: Any) -> dict[str, Any]:
    """Return the declaration of an attribute with its type."""
    if isinstance(value, bool):
        return {"type": "bool", "value": int(value)}
    if isinstance(value, str):
        return {"type": "string", "value": value}
    if isinstance(value, int):
        return {"type": "s64", "value": value}
    if isinstance(value, float):
        if not math.isfinite(value):
            raise UnsupportedError(f"attribute value {value} has no counterpart")
        return {"type": "f32", "value": value}
    kind = "f32[]" if any(isinstance(v, float) for v in value) else "s64[]"
    return {"type": kind, "value": list(value)}
