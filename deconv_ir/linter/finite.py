"""A search for NaN and infinite weights that takes neither NumPy nor a pass over each element."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from deconv_ir.linter.constants import needed_bytes
from deconv_ir.linter.patterns import constant_before

if TYPE_CHECKING:
    from deconv_ir.linter.inferred_graph import InferredGraph
    from deconv_ir.linter.weights import RecordedWeights
    from deconv_ir.ops.constants.constant import Const

MAX_BYTES: Final = 16 << 20
"""Bytes of constants that are searched in one file without --deep."""
MAX_MASKED: Final = 4096
"""Elements of -inf that are passed one by one."""

WEIGHTS: Final[Mapping[str, tuple[int, ...]]] = {
    "Convolution": (1,),
    "GroupConvolution": (1,),
    "ConvolutionBackpropData": (1,),
    "GroupConvolutionBackpropData": (1,),
    "ConvTranspose": (1,),
    "ConvolutionBackwardData": (1,),
    "MatMul": (0, 1),
    "RNNCell": (2, 3),
    "GRUCell": (2, 3),
    "LSTMCell": (3, 4),
    "RNNSequence": (3, 4),
    "GRUSequence": (3, 4),
    "LSTMSequence": (4, 5),
}
"""Type -> inputs that are weights, which are multiplied with data."""
ARITHMETIC: Final = frozenset(
    """
    Add BatchNormInference Convolution ConvolutionBackpropData DeformableConvolution Divide Einsum
    FakeQuantize GRUCell GRUSequence GroupConvolution GroupConvolutionBackpropData
    GroupNormalization LSTMCell LSTMSequence MatMul Multiply NormalizeL2 PReLU RNNCell RNNSequence
    Subtract
    """.split()  # noqa: SIM905 - as readable as the table of operations
)
"""Types that calculate with a constant: an infinite one makes their outputs infinite or NaN."""
MOVEMENT: Final = frozenset(
    ["Convert", "Reshape", "Transpose", "Squeeze", "Unsqueeze", "Gather", "Tile"]
)
"""Types that pass its elements on."""

# Type -> size of an element; its last bytes if all bits of the exponent may be set, and those of
# the exponent's bits that are in the byte before.
_ALL_ONES: Final[dict[str, tuple[int, bytes, int]]] = {
    "f32": (4, b"\x7f\xff", 0x80),
    "bf16": (2, b"\x7f\xff", 0x80),
    "f64": (8, b"\x7f\xff", 0xF0),
    "f16": (2, b"\x7c\x7d\x7e\x7f\xfc\xfd\xfe\xff", 0x00),
}
_NEGATIVE_INFINITY: Final = {
    "f32": b"\0\0\x80\xff",
    "bf16": b"\x80\xff",
    "f64": b"\0\0\0\0\0\0\xf0\xff",
    "f16": b"\0\xfc",
}


def suspicious(context: InferredGraph) -> list[tuple[int, bool]]:
    """Return the constants that may have a NaN or an infinite element.

    The flag tells that -inf is allowed, which masks consist of: no layer multiplies with it.
    """
    weights = context.weights
    if weights is None:
        return []
    multiplied = {at for at, _ in multiplied_constants(context)}
    searched = None if context.deep else _calculated(context)
    found = []
    for index, _, const in context.constants():
        needed = needed_bytes(const) or 0
        if const.element_type is None or not const.element_type.is_float or not needed:
            continue
        if const.offset + needed > len(weights) or needed > const.size:
            continue  # other rules report it
        mask_allowed = index not in multiplied
        if searched is not None:
            if index not in searched or needed > MAX_BYTES - weights.searched:
                continue
            weights.searched += needed
            if not _may_be_infinite(const, needed, weights, mask_allowed):
                continue
        found.append((index, mask_allowed))
    return found


def multiplied_constants(context: InferredGraph) -> Iterator[tuple[int, Const]]:
    """Iterate over the constants that layers multiply with data."""
    for type_name, ports in WEIGHTS.items():
        for index, port in [(i, p) for i, _ in context.layers(type_name) for p in ports]:
            found = constant_before(context, index, port, ("Convert", "Reshape", "Transpose"))
            if found is not None:
                yield found


def _may_be_infinite(
    const: Const, needed: int, weights: RecordedWeights, mask_allowed: bool
) -> bool:
    """Whether a constant has a NaN or infinite element, or many of -inf.

    Types that are not searched, of eight bits and fewer, have none.
    """
    known = _ALL_ONES.get(str(const.element_type))
    if known is None:
        return False
    size, exponents, mask = known
    allowed = _NEGATIVE_INFINITY[str(const.element_type)] if mask_allowed else b""
    masked = 0
    for block in weights.blocks(const.offset, needed):
        last = block[size - 1 :: size]
        for byte in exponents:
            at = last.find(byte)
            while at >= 0:
                if block[at * size + size - 2] & mask == mask:
                    masked += 1
                    if block[at * size : (at + 1) * size] != allowed or masked > MAX_MASKED:
                        return True
                at = last.find(byte, at + 1)
    return False


def _calculated(context: InferredGraph) -> set[int]:
    """Return the constants with which a layer calculates, directly or after it was moved."""
    layers, sources = context.graph.layers, context.topology.sources
    found: set[int] = set()
    pending = [i for type_name in ARITHMETIC for i in context.by_type.get(type_name, ())]
    seen = set(pending)
    while pending:
        for source in sources[pending.pop()]:
            if source is None or source[0] in seen:
                continue
            seen.add(source[0])
            type_name = layers[source[0]].type
            if type_name == "Const":
                found.add(source[0])
            elif type_name in MOVEMENT:
                pending.append(source[0])
    return found
