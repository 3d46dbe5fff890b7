"""Bounds on the sizes of files from untrusted sources."""

from typing import NamedTuple


class Limits(NamedTuple):
    """Sizes above which a file is rejected.

    Attributes
    ----------
    xml_bytes : int
        Bytes of an IR's XML.
    tags : int
        Tags of the XML, including start tags, end tags and comments.
    layers : int
        Layers of a network.
    rank : int
        Dims of a port.
    problems : int
        Mistakes in one file; after this number, the rest of the file is not read.
    document_bytes : int
        Bytes of a document with examples.

    Examples
    --------
    >>> import deconv_ir
    >>> deconv_ir.Limits().layers
    1000000
    >>> small = deconv_ir.Limits(layers=3)
    >>> try:
    ...     deconv_ir.load("samples/block/block.xml", limits=small)
    ... except deconv_ir.IRError as error:
    ...     print(error)
    samples/block/block.xml:48: the network has more layers than the limit of 3
    """

    xml_bytes: int = 256 << 20
    tags: int = 16_000_000
    layers: int = 1_000_000
    rank: int = 64
    problems: int = 10_000
    document_bytes: int = 64 << 20


DEFAULT_LIMITS = Limits()
