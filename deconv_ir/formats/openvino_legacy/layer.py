"""A layer of an old IR as the file states it: attributes, ports and blobs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

from deconv_ir.findings import TextSpan
from deconv_ir.formats.openvino_xml.scanner import Element
from deconv_ir.ir.dtypes import F32, ElementType, parse_element_type
from deconv_ir.ir.graph import Edge, Port


class OldBlob(NamedTuple):
    """A range of the weights file that belongs to a layer.

    Attributes
    ----------
    offset, size : int
        In bytes.
    precision : str
        Spelling of its element type; empty: that of the layer.
    span : TextSpan
        Its element in the text.
    """

    offset: int
    size: int
    precision: str
    span: TextSpan


class OldBody(NamedTuple):
    """The body of a TensorIterator as the file states it.

    Attributes
    ----------
    layers : list of OldLayer
    edges : list of Edge
    inputs, outputs, back_edges : list of mapping
        Attributes of the entries of the port map, and of the back edges.
    """

    layers: list[OldLayer]
    edges: list[Edge]
    inputs: list[Mapping[str, str]]
    outputs: list[Mapping[str, str]]
    back_edges: list[Mapping[str, str]]


class OldLayer(NamedTuple):
    """A layer as the file states it.

    Attributes
    ----------
    id : int
    name, type : str
    precision : str
        Empty if the file states none.
    attributes : mapping
        Those of ``<data>``.
    inputs, outputs : tuple of Port
    blobs : mapping
        Name, such as ``weights``, ``biases`` or ``custom`` -> range.
    line : int
    start : int
        Offset of the element in the text.
    element : Element
    body : OldBody or None
    """

    id: int
    name: str
    type: str
    precision: str
    attributes: Mapping[str, str]
    inputs: tuple[Port, ...]
    outputs: tuple[Port, ...]
    blobs: Mapping[str, OldBlob]
    line: int
    start: int
    element: Element
    body: OldBody | None = None

    @property
    def label(self) -> str:
        """The name that messages use."""
        return f"{self.name!r} ({self.type}, id {self.id})"


_OTHER_PRECISIONS: Final = {"BOOL": "boolean", "BIN": "u1", "MIXED": "f32", "UNSPECIFIED": "f32"}


def stored_type(precision: str) -> ElementType | None:
    """Return the element type of a precision as blobs have it; None: it has none here, as Q78."""
    if not precision:
        return F32
    try:
        return parse_element_type(_OTHER_PRECISIONS.get(precision.upper(), precision.upper()))
    except ValueError:
        return None


def computed_type(stored: ElementType | None) -> ElementType:
    """Return the type in which tensors of a precision are computed: f32 for all floats.

    The Inference Engine took inputs and gave outputs in FP32 by default, for networks of FP16, too,
    and its CPU plugin computed them in FP32.
    """
    return F32 if stored is None or stored.is_float else stored
