"""Bounds on what is read from files that may come from anywhere."""

from __future__ import annotations

from deconv_ir.ir.record import Record, field


class Limits(Record):
    """Sizes beyond which a file is refused.

    Attributes
    ----------
    xml_bytes : int
        Size of an IR's XML.
    tags : int
        Tags of the XML; start and end tags, comments and the like count alike.
    layers : int
        Layers of a network.
    rank : int
        Dims of a port.
    problems : int
        Mistakes in one file; after that many, the rest of it is not read.
    document_bytes : int
        Size of a document with examples.
    """

    xml_bytes: int = field(default=256 << 20)
    tags: int = field(default=16_000_000)
    layers: int = field(default=1_000_000)
    rank: int = field(default=64)
    problems: int = field(default=10_000)
    document_bytes: int = field(default=64 << 20)


DEFAULT_LIMITS = Limits()
