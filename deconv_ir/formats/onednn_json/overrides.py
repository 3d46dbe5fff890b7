"""Changes to a graph for experiments, with the syntax of benchdnn's options.

Source: oneDNN, tests/benchdnn/doc/driver_graph.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple, TypeVar

from deconv_ir.errors import InputError
from deconv_ir.formats.onednn_json.kinds import DTYPES, KINDS, SPELLINGS
from deconv_ir.formats.onednn_json.layout import dense_strides
from deconv_ir.formats.onednn_json.parsed import LogicalTensor, Stated
from deconv_ir.ir.dtypes import parse_element_type
from deconv_ir.ir.graph import Graph, Layer
from deconv_ir.ir.infer import infer
from deconv_ir.ir.operation import Context
from deconv_ir.ir.shapes import Shape

_REMOVED: Final = "undef"
_DIMS: Final = re.compile(r"[0-9]{1,18}(?:x[0-9]{1,18})*")
_NUMBERS: Final = re.compile(r"-?[0-9][-+0-9.e]*(?:x-?[0-9][-+0-9.e]*)*")
_TAG: Final = re.compile(r"[a-z]+")
_CHANNELS: Final = 2**20
"""Maximum number of channels to which scales are repeated."""
_WITH_WEIGHTS: Final = frozenset(
    [
        *("BatchNormInference", "BiasAdd", "ConvTranspose", "ConvTransposeBackwardData"),
        *("Convolution", "ConvolutionBackwardData", "GroupNorm", "LayerNorm", "PReLU", "RMSNorm"),
    ]
)
"""Kinds for which only the first input has a batch."""
_FLOATS: Final = ("f32", "bf16", "f16")
_CONVERSIONS: Final = frozenset(
    ["TypeCast", "Quantize", "Dequantize", "DynamicQuantize", "DynamicDequantize"]
)
"""Kinds that convert between element types."""
_NORMALIZATIONS: Final = {
    **dict.fromkeys(
        ("BatchNormForwardTraining", "BatchNormInference", "GroupNorm", "LayerNorm"), 1
    ),
    **dict.fromkeys(("BatchNormTrainingBackward", "LayerNormBackward"), 2),
}
"""Kinds whose parameters and statistics keep their element type -> number of data inputs."""
_Value = TypeVar("_Value")


class TensorChange(NamedTuple):
    """A new shape, or layout, or both; None: unchanged.

    Attributes
    ----------
    shape : tuple of int, or None
    strides : tuple of int, or None
    tag : str
        A permutation of axes, as ``acdb``; empty: none.
    """

    shape: tuple[int, ...] | None = None
    strides: tuple[int, ...] | None = None
    tag: str = ""


class Overrides:
    """Changes to tensors, attributes, kinds and element types.

    Parameters
    ----------
    in_shapes : str
        ``ID:SHAPE[*TAG]`` joined by ``+``, as in ``0:2x64x56x56*acdb+1:32x64x2x2``.
        ``-`` and ``scalar`` are the shape of a scalar.
    op_attrs : str
        ``ID:NAME:VALUE[*NAME:VALUE]`` joined by ``+``; ``undef`` removes an attribute.
    mb : int
        First dim of the inputs; 0: unchanged.
    dt : str
        f32, bf16 or f16 for all floating-point tensors but parameters and statistics of
        normalizations, or ``ID:DTYPE`` joined by ``+``.
    op_kind : str
        ``ID:KIND`` joined by ``+``.

    Raises
    ------
    InputError
        An option has invalid syntax.

    Examples
    --------
    >>> import deconv_ir
    >>> changes = deconv_ir.Overrides(in_shapes="0:4x3x9x9", op_attrs="0:strides:3x3")
    >>> model = deconv_ir.load("samples/onednn/upsample.json", overrides=changes)
    >>> model.inputs["0"].shape, model.outputs["2"].shape
    ((4, 3, 9, 9), (4, 2, 27, 27))
    """

    def __init__(
        self, in_shapes: str = "", op_attrs: str = "", mb: int = 0, dt: str = "", op_kind: str = ""
    ) -> None:
        self.in_shapes = in_shapes
        self.op_attrs = op_attrs
        self.mb = mb
        self.dt = dt
        self.op_kind = op_kind
        Changes(self)  # raises on invalid syntax


class Changes:
    """The changes of some overrides, for one file."""

    def __init__(self, overrides: Overrides) -> None:
        self.shapes = _entries("in-shapes", overrides.in_shapes, _tensor_change)
        self.attributes = _entries("op-attrs", overrides.op_attrs, _attributes)
        self.mb = overrides.mb
        if not isinstance(self.mb, int) or self.mb < 0:
            raise InputError(f"mb: expected a batch size, found {self.mb!r}")
        dt = overrides.dt
        self.dtype = ""
        self.dtypes: dict[int, str] = {}
        if ":" in dt:
            self.dtypes = _entries("dt", dt, _dtype)
        elif dt and dt != _REMOVED:
            self.dtype = _dtype(dt)
            if dt not in _FLOATS:
                raise InputError(
                    f"dt: expected f32, bf16 or f16 for all tensors, found {dt!r} "
                    "(ID:DTYPE changes one tensor)"
                )
        self.kept: set[int] = set()
        self.kinds = _entries("op-kind", overrides.op_kind, str)
        self.used: set[int] = set()
        self.changed: set[int] = set()

    def tensor(self, tensor: LogicalTensor) -> LogicalTensor:
        """Return a tensor with its changes."""
        self.used.add(tensor.id)
        shape, strides = tensor.shape, tensor.strides
        change = self.shapes.get(tensor.id)
        if change is not None:
            shape, strides = _changed(tensor, change)
        dtype = self.dtypes.get(tensor.id, tensor.dtype)
        if self.dtype and tensor.dtype in _FLOATS and tensor.id not in self.kept:
            dtype = self.dtype
        element_type = tensor.element_type
        if dtype != tensor.dtype:
            element_type = parse_element_type(DTYPES[dtype])
        return tensor._replace(shape=shape, strides=strides, dtype=dtype, element_type=element_type)

    def output(self, tensor: LogicalTensor) -> LogicalTensor:
        """Return an output with its changes; its shape is dropped if it must be inferred again."""
        found = self.tensor(tensor)
        again = self.shapes or self.attributes or self.kinds
        return self._inferred(found) if again else found

    def _inferred(self, tensor: LogicalTensor) -> LogicalTensor:
        change = self.shapes.get(tensor.id)
        if change is not None and change.shape is not None:
            return tensor
        return tensor._replace(shape=None, strides=None)

    def change_attributes(self, operation: int, attributes: dict[str, str]) -> None:
        """Change the attributes of an operation."""
        self.changed.add(operation)
        for name, value in self.attributes.get(operation, {}).items():
            attributes.pop(SPELLINGS.get(name, ""), None)
            if value == _REMOVED:
                attributes.pop(name, None)
            else:
                attributes[name] = value

    def keep_types(self, stated: list[tuple[Layer, Stated]]) -> None:
        """Find the tensors that keep their element type when that of all others changes.

        Source: oneDNN, tests/benchdnn/graph/flex_rewrite.cpp.

        Raises
        ------
        InputError
            The graph has conversions between element types.
        """
        for layer, facts in stated:
            if layer.type in _CONVERSIONS:
                error = InputError(
                    "dt: one element type for all tensors does not fit a graph with conversions "
                    "(ID:DTYPE changes one tensor)"
                )
                error.locate(line=layer.line, layer=layer.label)
                raise error
            kind = KINDS.get(layer.type)
            if kind is None:
                continue
            inputs = _NORMALIZATIONS.get(layer.type)
            outputs = None if inputs is None else 1
            for tensors, lists, data in (
                (facts.inputs, kind.inputs, inputs),
                (facts.outputs, kind.outputs, outputs),
            ):
                for index, tensor in enumerate(tensors):
                    allowed = lists[min(index, len(lists) - 1)]
                    if self.dtype not in allowed or (data is not None and index >= data):
                        self.kept.add(tensor.id)

    def fit_channels(self, graph: Graph) -> Graph:
        """Fit parameters per channel to the data: scales repeat, and further zero points are 0.

        Source: oneDNN, tests/benchdnn/graph/flex_rewrite.cpp.
        """
        if not (self.shapes or self.attributes):
            return graph
        from deconv_ir.ops.onednn.quantization import QuantizationType, StaticQuantization

        layers = list(graph.layers)
        found = [
            (index, layer, layer.operation)
            for index, layer in enumerate(layers)
            if isinstance(layer.operation, StaticQuantization)
            and layer.operation.qtype is QuantizationType.PER_CHANNEL
        ]
        for index, layer, operation in found:  # shapes do not depend on the parameters
            plain = QuantizationType.PER_TENSOR
            fitting = operation.replace(qtype=plain, scales=(1.0,), zps=(), grouped=None)
            layers[index] = layer._replace(operation=fitting)
        known = infer(graph.replace(layers=tuple(layers)), Context(), collect=True).outputs
        for index, layer, operation in found:
            shape = known[index][0].shape
            rank = 0 if shape is None else len(shape)
            extent = shape[operation.axis] if shape and -rank <= operation.axis < rank else None
            groups = 1 if operation.grouped is None else operation.grouped.groups
            if isinstance(extent, int) and extent * groups <= _CHANNELS:
                operation = operation.fitted(extent * groups)
            layers[index] = layer._replace(operation=operation)
        return graph.replace(layers=tuple(layers))

    def change_batch(self, stated: list[tuple[Layer, Stated]]) -> list[tuple[Layer, Stated]]:
        """Change the batch of the graph's inputs, and of shapes that attributes state.

        Inputs have the batch of the first operation's data, unless they are constant, weights,
        or broadcast from a lower rank.
        """
        if not self.mb:
            return stated
        produced = {t.id for _, facts in stated for t in facts.outputs}
        batched: set[int] = set()
        old = None
        for layer, facts in stated:
            rank = max((len(t.shape) for t in facts.inputs if t.shape), default=0)
            for index, tensor in enumerate(facts.inputs):
                constant = tensor.property_type == "constant" or (
                    index and (layer.type in _WITH_WEIGHTS or (layer.type == "MatMul" and rank < 3))
                )
                if tensor.id in produced or constant or not tensor.shape:
                    continue
                if len(tensor.shape) < rank:
                    continue
                if old is None:
                    old = tensor.shape[0]
                if tensor.shape[0] == old:
                    batched.add(tensor.id)
        changed = []
        for layer, facts in stated:
            inputs = tuple(
                t._replace(shape=(self.mb, *t.shape[1:])) if t.id in batched and t.shape else t
                for t in facts.inputs
            )
            operation = layer.operation
            names: tuple[str, ...] = ("dst_shape", "shape", "src_shape")
            if layer.type == "AvgPoolBackward":
                names += ("declared_shape",)
            for name in names:
                dims = getattr(operation, name, None)
                if dims and dims[0] == old:
                    operation = operation.replace(**{name: (self.mb, *dims[1:])})
            outputs = tuple(map(self._inferred, facts.outputs))
            ports = tuple(
                port._replace(shape=tensor.shape)
                for port, tensor in zip(layer.outputs, outputs, strict=True)
            )
            layer = layer._replace(operation=operation, outputs=ports)
            changed.append((layer, facts._replace(inputs=inputs, outputs=outputs)))
        return changed

    def require_used(self) -> None:
        """Require that every change named a tensor or operation of the file.

        Raises
        ------
        InputError
            A change names an unknown tensor or operation.
        """
        for option, ids, there, what in (
            ("in-shapes", self.shapes, self.used, "tensor"),
            ("dt", self.dtypes, self.used, "tensor"),
            ("op-attrs", self.attributes, self.changed, "operation"),
            ("op-kind", self.kinds, self.changed, "operation"),
        ):
            for number in ids:
                if number not in there:
                    known = ", ".join(map(str, sorted(there)[:16])) or "none"
                    known += ", ..." if len(there) > 16 else ""
                    raise InputError(
                        f"{option}: the graph has no {what} {number} (there are {known})"
                    )


def _entries(option: str, text: str, parse: Callable[[str], _Value]) -> dict[int, _Value]:
    found: dict[int, _Value] = {}
    for entry in text.split("+") if text else ():
        number, colon, rest = entry.partition(":")
        if not colon or not number.isdecimal() or len(number) > 20:
            raise InputError(f"{option}: expected ID:VALUE, found {entry!r}")
        if int(number) in found:
            raise InputError(f"{option}: operation or tensor {number} is given twice")
        try:
            found[int(number)] = parse(rest)
        except ValueError as error:
            raise InputError(f"{option}: {error}, found {entry!r}") from None
    return found


def _tensor_change(text: str) -> TensorChange:
    dims, star, layout = text.partition("*")
    if not star and _TAG.fullmatch(dims) and dims not in ("scalar",):
        dims, layout = "", dims  # the older form: ID:TAG
    shape: tuple[int, ...] | None = None
    if dims in ("-", "scalar"):
        shape = ()
    elif dims:
        shape = _dims(dims)
    if not layout:
        if shape is None:
            raise ValueError("expected SHAPE, *TAG or SHAPE*TAG")
        return TensorChange(shape)
    if _DIMS.fullmatch(layout):
        return TensorChange(shape, _dims(layout))
    if "".join(sorted(layout)) != "".join(map(chr, range(97, 97 + len(layout)))):
        raise ValueError("a tag must be a permutation such as acdb")
    return TensorChange(shape, None, layout)


def _dims(text: str) -> tuple[int, ...]:
    if not _DIMS.fullmatch(text):
        raise ValueError("a shape must be numbers joined by x")
    return tuple(map(int, text.split("x")))


def _attributes(text: str) -> dict[str, str]:
    found = {}
    for entry in text.split("*"):
        name, colon, value = entry.partition(":")
        if not colon or not name:
            raise ValueError("expected ID:NAME:VALUE")
        found[name] = value.replace("x", ",") if _NUMBERS.fullmatch(value) else value
    return found


def _dtype(text: str) -> str:
    if text not in DTYPES:
        raise InputError(f"dt: unknown element type {text!r} (known are {', '.join(DTYPES)})")
    return text


def _changed(tensor: LogicalTensor, change: TensorChange) -> tuple[Shape, tuple[int, ...] | None]:
    shape: Shape = tensor.shape if change.shape is None else change.shape
    rank = None if shape is None else len(shape)
    if change.strides is not None:
        if rank is not None and len(change.strides) != rank:
            raise InputError(
                f"in-shapes: tensor {tensor.id} has {rank} dims, "
                f"found {len(change.strides)} strides"
            )
        return shape, change.strides
    if shape is None or not all(isinstance(d, int) for d in shape):
        return shape, None
    dims = [d for d in shape if isinstance(d, int)]
    tag = change.tag or "".join(map(chr, range(97, 97 + len(dims))))
    if len(tag) != len(dims):
        raise InputError(f"in-shapes: tensor {tensor.id} has {len(dims)} dims, found tag {tag!r}")
    return shape, dense_strides(dims, tag)
